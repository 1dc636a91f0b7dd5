/* im2col.c: the primitive fold on the CPU: threads share the planes. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "core/memory.h"

#include <string.h>

/* to[i * step] += from[i] */
#define ADD_ROW(T, s)                                                                \
    static void add_row_##s(char *to, const char *from, int64_t n, int64_t step) {   \
        for (int64_t i = 0; i < n; i++) ((T *)to)[i * step] += ((const T *)from)[i]; \
    }
ADD_ROW(float, f32)
ADD_ROW(double, f64)
ADD_ROW(tp_complex64, c64)
ADD_ROW(tp_complex128, c128)

typedef struct {
    int64_t in[2], out[2], kernel[2];
    const char *columns;
    char *images;
    const int64_t *padding, *dilation, *stride;
    int64_t item;
    void (*add_row)(char *to, const char *from, int64_t n, int64_t step);
} job;

/* The output places along a dimension whose windows have element k inside the image: [*first, *last). */
static void inside(const job *j, int d, int64_t k, int64_t *first, int64_t *last) {
    int64_t s = j->stride[d], shift = j->padding[d] - k * j->dilation[d], room = j->in[d] - 1 + shift;
    *first = shift > 0 ? (shift + s - 1) / s : 0;
    *last = room < 0 ? 0 : room / s + 1;
    if (*last > j->out[d]) *last = j->out[d];
}

static void add_planes(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t area = j->kernel[0] * j->kernel[1], row = j->out[1] * j->item;
    for (int64_t i = begin; i < end; i++) {
        const char *from = j->columns + i * area * j->out[0] * row;
        char *to = j->images + i * j->in[0] * j->in[1] * j->item;
        for (int64_t k = 0; k < area; k++, from += j->out[0] * row) {
            int64_t ky = k / j->kernel[1], kx = k % j->kernel[1], y0, y1, x0, x1;
            inside(j, 0, ky, &y0, &y1);
            inside(j, 1, kx, &x0, &x1);
            for (int64_t y = y0; y < y1 && x0 < x1; y++) {
                int64_t at_y = y * j->stride[0] - j->padding[0] + ky * j->dilation[0];
                int64_t at_x = x0 * j->stride[1] - j->padding[1] + kx * j->dilation[1];
                j->add_row(to + (at_y * j->in[1] + at_x) * j->item, from + y * row + x0 * j->item, x1 - x0,
                           j->stride[1]);
            }
        }
    }
}

static void (*add_row_of(tp_dtype dtype))(char *to, const char *from, int64_t n, int64_t step) {
    switch (dtype) {
    case TP_FLOAT32: return add_row_f32;
    case TP_FLOAT64: return add_row_f64;
    case TP_COMPLEX64: return add_row_c64;
    default: return add_row_c128;
    }
}

int fold_cpu(tp_tensor *columns, tp_ints kernel, tp_ints dilation, tp_ints padding, tp_ints stride, tp_tensor *out) {
    job j = {.columns = tp_data(columns),
             .images = tp_data(out),
             .padding = padding.data,
             .dilation = dilation.data,
             .stride = stride.data,
             .item = tp_itemsize((tp_dtype)out->dtype),
             .add_row = add_row_of((tp_dtype)out->dtype)};
    for (int i = 0; i < 2; i++) {
        j.in[i] = out->sizes[2 + i];
        j.kernel[i] = kernel.data[i];
        j.out[i] = (j.in[i] + 2 * padding.data[i] - dilation.data[i] * (kernel.data[i] - 1) - 1) / stride.data[i] + 1;
    }
    memset(j.images, 0, (size_t)(out->numel * j.item));
    int64_t planes = out->sizes[0] * out->sizes[1];
    return tp_parallel_for(planes, 1 + TP_GRAIN / (columns->numel / planes + 1), add_planes, &j);
}
