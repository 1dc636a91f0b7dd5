/* pool.c: the loops of 2-dimensional pooling over contiguous planes, compiled once per capability.
 *
 * A plane is one channel of one image. A window is clipped to the plane; what lies outside counts for an average only
 * as the operator says. */
#include "cpu/pool.h"

#include "cpu/kernels.h"

#include <math.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#define POOL(name, T, LOWEST, IS_NAN)                                                                            \
    static void max_##name(const tp_pool_plan *p, const void *in_, void *out_, int64_t *index) {                 \
        const T *in = in_;                                                                                       \
        T *out = out_;                                                                                           \
        for (int64_t oy = 0; oy < p->out[0]; oy++)                                                               \
            for (int64_t ox = 0; ox < p->out[1]; ox++, out++, index++) {                                         \
                int64_t y0 = oy * p->stride[0] - p->padding[0], x0 = ox * p->stride[1] - p->padding[1];          \
                int64_t y1 = least(y0 + (p->kernel[0] - 1) * p->dilation[0] + 1, p->in[0]);                      \
                int64_t x1 = least(x0 + (p->kernel[1] - 1) * p->dilation[1] + 1, p->in[1]);                      \
                while (y0 < 0) y0 += p->dilation[0];                                                             \
                while (x0 < 0) x0 += p->dilation[1];                                                             \
                T best = LOWEST;                                                                                 \
                int64_t where = y0 * p->in[1] + x0;                                                              \
                for (int64_t y = y0; y < y1; y += p->dilation[0])                                                \
                    for (int64_t x = x0; x < x1; x += p->dilation[1]) {                                          \
                        T v = in[y * p->in[1] + x];                                                              \
                        bool better = v > best || IS_NAN(v);                                                     \
                        best = better ? v : best;                                                                \
                        where = better ? y * p->in[1] + x : where;                                               \
                    }                                                                                            \
                *out = best;                                                                                     \
                *index = where;                                                                                  \
            }                                                                                                    \
    }                                                                                                            \
                                                                                                                 \
    /* Windows of 2x2 side by side, the common case. */                                                          \
    static void max22_##name(const tp_pool_plan *p, const void *in_, void *out_, int64_t *index) {               \
        T *out = out_;                                                                                           \
        int64_t width = p->in[1];                                                                                \
        for (int64_t oy = 0; oy < p->out[0]; oy++, out += p->out[1], index += p->out[1]) {                       \
            const T *a = (const T *)in_ + 2 * oy * width, *b = a + width;                                        \
            for (int64_t x = 0; x < p->out[1]; x++) {                                                            \
                T best = a[2 * x];                                                                               \
                int64_t at = 2 * x;                                                                              \
                bool r = a[2 * x + 1] > best || IS_NAN(a[2 * x + 1]);                                            \
                best = r ? a[2 * x + 1] : best, at = r ? 2 * x + 1 : at;                                         \
                r = b[2 * x] > best || IS_NAN(b[2 * x]);                                                         \
                best = r ? b[2 * x] : best, at = r ? 2 * x + width : at;                                         \
                r = b[2 * x + 1] > best || IS_NAN(b[2 * x + 1]);                                                 \
                best = r ? b[2 * x + 1] : best, at = r ? 2 * x + 1 + width : at;                                 \
                out[x] = best;                                                                                   \
                index[x] = at + 2 * oy * width;                                                                  \
            }                                                                                                    \
        }                                                                                                        \
    }                                                                                                            \
                                                                                                                 \
    static void max_backward_##name(const tp_pool_plan *p, const void *grad_, const int64_t *index, void *in_) { \
        const T *grad = grad_;                                                                                   \
        T *in = in_;                                                                                             \
        int64_t n = p->out[0] * p->out[1], limit = p->in[0] * p->in[1];                                          \
        for (int64_t i = 0; i < limit; i++) in[i] = 0;                                                           \
        for (int64_t i = 0; i < n; i++)                                                                          \
            if (index[i] >= 0 && index[i] < limit) in[index[i]] += grad[i];                                      \
    }                                                                                                            \
                                                                                                                 \
    static void average_##name(const tp_pool_plan *p, const void *in_, void *out_, bool backward) {              \
        T *in = (T *)in_, *out = out_;                                                                           \
        if (backward)                                                                                            \
            for (int64_t i = 0; i < p->in[0] * p->in[1]; i++) in[i] = 0;                                         \
        for (int64_t oy = 0; oy < p->out[0]; oy++)                                                               \
            for (int64_t ox = 0; ox < p->out[1]; ox++, out++) {                                                  \
                tp_pool_window w = tp_pool_window_at(p, oy, ox);                                                 \
                T sum = 0, share = backward ? *out / (T)w.divisor : 0;                                           \
                for (int64_t y = w.y0; y < w.y1; y++)                                                            \
                    for (int64_t x = w.x0; x < w.x1; x++)                                                        \
                        if (backward) in[y * p->in[1] + x] += share;                                             \
                        else sum += in[y * p->in[1] + x];                                                        \
                if (!backward) *out = sum / (T)w.divisor;                                                        \
            }                                                                                                    \
    }

#define FLOAT_NAN(v) ((v) != (v))
#define NEVER(v) false
POOL(f32, float, -INFINITY, FLOAT_NAN)
POOL(f64, double, -INFINITY, FLOAT_NAN)
POOL(i64, int64_t, INT64_MIN, NEVER)

const tp_pool_kernels TP_CAP(tp_pool) = {
    .max = {max_f32, max_f64, max_i64},
    .max22 = {max22_f32, max22_f64, max22_i64},
    .max_backward = {max_backward_f32, max_backward_f64, max_backward_i64},
    .average = {average_f32, average_f64, average_i64},
};
