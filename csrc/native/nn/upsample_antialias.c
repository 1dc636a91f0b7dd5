/* upsample_antialias.c: images resized without aliases: each output averages the inputs under a filter as wide as the
 * step between outputs.
 *
 * Resizing is linear and separable: one matrix of weights for each side of the image, and a product with each. The
 * filters are Pillow's: a triangle, Keys' cubic with a = -1/2, Lanczos' with three lobes. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/nn/upsample.h"
#include "native/common/table_beside.h"

#include <math.h>

typedef struct {
    double (*weight)(double);
    double reach; /* half its width */
} filter;

static double triangle(double x) { return fabs(x) < 1 ? 1 - fabs(x) : 0; }
static double cubic(double x) {
    const double a = -0.5;
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }
static double lanczos(double x) { return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

static const filter filters[] = {{triangle, 1}, {cubic, 2}, {lanczos, 3}};
enum { BILINEAR, BICUBIC, LANCZOS };

/* What each input counts for each output: (out, in), the rows' sums are 1. */
static tp_tensor *weights_of(int64_t in, int64_t out, const filter *f, bool align_corners, tp_opt_float scale,
                             const tp_tensor *like, tp_dtype dtype) {
    double step = align_corners                  ? out > 1 ? (double)(in - 1) / (double)(out - 1) : 0
                  : scale.has && scale.value > 0 ? 1 / scale.value
                                                 : (double)in / (double)out;
    double wide = step > 1 ? step : 1, *w;
    tp_tensor *table = tp_table_float64_beside(like, TP_INTS(out, in), &w);
    for (int64_t i = 0; w && i < out; i++) {
        double centre = ((double)i + 0.5) * step, sum = 0;
        double first = fmax(trunc(centre - f->reach * wide + 0.5), 0), last = trunc(centre + f->reach * wide + 0.5);
        for (int64_t j = 0; j < in; j++) {
            bool under = (double)j >= first && (double)j < last;
            sum += w[i * in + j] = under ? f->weight(((double)j - centre + 0.5) / wide) : 0;
        }
        for (int64_t j = 0; j < in; j++) w[i * in + j] /= sum;
    }
    return tp_table_moved_steal(table, like, dtype);
}

static int check(tp_ints input, tp_ints output_size) {
    if (input.size != 4)
        return tp_fail(TP_RuntimeError, "It is expected input_size equals to 4, but got size %lld",
                       (long long)input.size);
    if (output_size.size != 2)
        return tp_fail(TP_RuntimeError, "It is expected output_size equals to 2, but got size %lld",
                       (long long)output_size.size);
    if (input.data[1] > 0 && input.data[2] > 0 && input.data[3] > 0 && output_size.data[0] > 0 &&
        output_size.data[1] > 0)
        return 0;
    return tp_fail(TP_RuntimeError,
                   "Input and output sizes should be greater than 0, but got input (H: %lld, W: %lld) output (H: %lld, "
                   "W: %lld)",
                   (long long)input.data[2], (long long)input.data[3], (long long)output_size.data[0],
                   (long long)output_size.data[1]);
}

/* height * x * width^T for each image and channel. */
static tp_tensor *between(tp_tensor *height, tp_tensor *x, tp_tensor *width, bool bytes) {
    tp_autoref *across = width ? tp_transpose_int(width, 0, 1) : NULL, *rows = across ? tp_matmul(x, across) : NULL,
               *kept = rows && bytes ? tp_clamp(rows, TP_SCALAR_I(0), TP_SCALAR_I(255)) : tp_retain(rows);
    return kept && height ? tp_matmul(height, kept) : NULL;
}

static tp_tensor *resized(tp_tensor *self, tp_ints size, const filter *f, bool align_corners, tp_opt_float h,
                          tp_opt_float w) {
    if (check(tp_sizes(self), size) < 0) return NULL;
    bool bytes = self->dtype == TP_UINT8; /* images: each pass stays within what a byte holds */
    if (!tp_is_floating(self) && !bytes)
        return tp_fail_null(TP_NotImplementedError, "\"upsample_2d_aa\" not implemented for '%s'",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    tp_dtype dtype = (tp_dtype)self->dtype, wide = bytes ? TP_FLOAT32 : tp_compute_dtype(dtype);
    tp_autoref *x = tp_to_dtype(self, wide, false, false, TP_NO_FORMAT),
               *height = x ? weights_of(self->sizes[2], size.data[0], f, align_corners, h, self, wide) : NULL,
               *width = height ? weights_of(self->sizes[3], size.data[1], f, align_corners, w, self, wide) : NULL,
               *made = width ? between(height, x, width, bytes) : NULL;
    if (made && bytes && (tp_round_(made) < 0 || tp_clamp_(made, TP_SCALAR_I(0), TP_SCALAR_I(255)) < 0)) return NULL;
    tp_autoref *out = made ? tp_to_dtype(made, dtype, false, false, TP_NO_FORMAT) : NULL;
    return out ? tp_contiguous(out, tp_suggest_memory_format(self)) : NULL;
}

/* The adjoint: with the weights' matrices transposed. */
static tp_tensor *resized_backward(tp_tensor *grad, tp_ints size, tp_ints input_size, const filter *f,
                                   bool align_corners, tp_opt_float h, tp_opt_float w) {
    if (check(input_size, size) < 0) return NULL;
    if (grad->ndim != 4 || grad->sizes[0] != input_size.data[0] || grad->sizes[1] != input_size.data[1] ||
        grad->sizes[2] != size.data[0] || grad->sizes[3] != size.data[1])
        return tp_fail_null(TP_RuntimeError, "Expected grad_output to have the same shape as output");
    tp_dtype dtype = (tp_dtype)grad->dtype, wide = tp_compute_dtype(dtype);
    tp_autoref *x = tp_to_dtype(grad, wide, false, false, TP_NO_FORMAT),
               *height = x ? weights_of(input_size.data[2], size.data[0], f, align_corners, h, grad, wide) : NULL,
               *width = height ? weights_of(input_size.data[3], size.data[1], f, align_corners, w, grad, wide) : NULL,
               *high = width ? tp_transpose_int(height, 0, 1) : NULL,
               *across = high ? tp_transpose_int(width, 0, 1) : NULL,
               *made = across ? between(high, x, across, false) : NULL,
               *out = made ? tp_to_dtype(made, dtype, false, false, TP_NO_FORMAT) : NULL;
    return out ? tp_contiguous(out, tp_suggest_memory_format(grad)) : NULL;
}

/* _upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float?
 * scales_w=None) -> Tensor; its gradient; and by sizes or factors (.vec) */
#define ANTIALIASED(name, kind)                                                                              \
    tp_tensor *name##_composite(tp_tensor *self, tp_ints size, bool align, tp_opt_float h, tp_opt_float w) { \
        return resized(self, size, &filters[kind], align, h, w);                                             \
    }                                                                                                        \
    tp_tensor *name##_backward_composite(tp_tensor *grad, tp_ints size, tp_ints input_size, bool align,      \
                                         tp_opt_float h, tp_opt_float w) {                                   \
        return resized_backward(grad, size, input_size, &filters[kind], align, h, w);                        \
    }                                                                                                        \
    tp_tensor *name##_vec_composite(tp_tensor *input, tp_ints output_size, bool align, tp_floats factors) {  \
        int64_t n[2];                                                                                        \
        tp_opt_float s[2];                                                                                   \
        if (tp_sizes_of_vec(input, output_size, factors, 2, n, s) < 0) return NULL;                          \
        return tp_##name(input, (tp_ints){n, 2}, align, s[0], s[1]);                                         \
    }
ANTIALIASED(_upsample_bilinear2d_aa, BILINEAR)
ANTIALIASED(_upsample_bicubic2d_aa, BICUBIC)
ANTIALIASED(_upsample_lanczos2d_aa, LANCZOS)
