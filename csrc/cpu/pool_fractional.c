/* pool_fractional.c: the primitive pool.fractional on the CPU: threads share the planes. */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "prim/pool.h"

#include <math.h>

typedef struct {
    int64_t in[3], out[3], kernel[3], room[3]; /* fewer dimensions are preceded by ones */
    double pace[3];
    int dims;
    const char *x, *samples;
    char *result;
    int64_t *at;
} job;

#define KERNEL(T, suffix)                                                                                          \
    TP_POOL_BEGIN(T, begin##suffix)                                                                                \
    /* Where window o begins along dimension d; u has a number for each. */                                        \
    TP_INLINE int64_t place##suffix(const job *j, const T *u, int d, int64_t o) {                                  \
        return d < 3 - j->dims                                                                                     \
                   ? 0                                                                                             \
                   : begin##suffix(u[tp_pool_number(j->dims, d)], (T)j->pace[d], o, j->out[d], j->room[d]);        \
    }                                                                                                              \
    static void largest##suffix(const job *j, const T *in, int64_t z, int64_t y, int64_t x, T *out, int64_t *at) { \
        T best = -INFINITY;                                                                                        \
        int64_t where = (z * j->in[1] + y) * j->in[2] + x;                                                         \
        for (int64_t k = z; k < z + j->kernel[0]; k++)                                                             \
            for (int64_t l = y; l < y + j->kernel[1]; l++) {                                                       \
                int64_t row = (k * j->in[1] + l) * j->in[2];                                                       \
                for (int64_t i = row + x; i < row + x + j->kernel[2]; i++)                                         \
                    if (in[i] > best || in[i] != in[i]) best = in[i], where = i;                                   \
            }                                                                                                      \
        *out = best, *at = where;                                                                                  \
    }                                                                                                              \
    static void planes##suffix(int64_t begin, int64_t end, void *context) {                                        \
        const job *j = context;                                                                                    \
        int64_t n_in = j->in[0] * j->in[1] * j->in[2], n = j->out[0] * j->out[1] * j->out[2], done = 0;            \
        int64_t work = j->out[2] * j->kernel[0] * j->kernel[1] * j->kernel[2];                                     \
        for (int64_t plane = begin; plane < end; plane++) {                                                        \
            const T *in = (const T *)j->x + plane * n_in, *u = (const T *)j->samples + plane * j->dims;            \
            T *out = (T *)j->result + plane * n;                                                                   \
            int64_t *at = j->at + plane * n;                                                                       \
            for (int64_t k = 0; k < j->out[0]; k++)                                                                \
                for (int64_t l = 0; l < j->out[1]; l++) {                                                          \
                    int64_t z = place##suffix(j, u, 0, k), y = place##suffix(j, u, 1, l);                          \
                    if ((done += work) >= 1 << 20 && (done = 0, tp_host_look() < 0)) return;                       \
                    for (int64_t i = 0; i < j->out[2]; i++)                                                        \
                        largest##suffix(j, in, z, y, place##suffix(j, u, 2, i), out++, at++);                      \
                }                                                                                                  \
        }                                                                                                          \
    }
KERNEL(float, _f32)
KERNEL(double, _f64)

int pool_fractional_cpu(tp_tensor *x, tp_tensor *samples, tp_ints kernel, tp_tensor *out, tp_tensor *at) {
    job j = {.in = {1, 1, 1}, .out = {1, 1, 1}, .kernel = {1, 1, 1}, .dims = (int)kernel.size, .x = tp_data(x)};
    j.samples = tp_data(samples), j.result = tp_data(out), j.at = tp_data(at);
    int64_t work = 1;
    for (int i = 0, d = 3 - j.dims; d < 3; i++, d++) {
        j.in[d] = x->sizes[x->ndim - j.dims + i], j.out[d] = out->sizes[out->ndim - j.dims + i];
        j.kernel[d] = kernel.data[i], j.room[d] = j.in[d] - j.kernel[d];
        j.pace[d] = tp_pool_pace(j.room[d], j.out[d]);
        work *= j.out[d] * j.kernel[d];
    }
    int64_t planes = out->numel / (j.out[0] * j.out[1] * j.out[2]);
    bool long_work = (double)work * (double)planes > 1e6;
    return tp_parallel_unlocked(long_work, planes, 1 + TP_GRAIN / work,
                                x->dtype == TP_FLOAT32 ? planes_f32 : planes_f64, &j);
}
