/* upsample.c: resizing images: nearest, linear and cubic, in one to three dimensions, and the gradients.
 *
 * All of them are separable and linear: along each dimension an output is a sum of taps, elements of the input times
 * weights. A dimension is resized by one index_select per tap, its adjoint by one index_add per tap; autograd
 * differentiates both. Invariant: taps depend on sizes, scale and mode alone. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/nn/upsample.h"
#include "native/common/table_beside.h"
#include "core/parallel.h"
#include "core/tls.h"

#include <math.h>
#include <string.h>

typedef enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC } mode;

#define MAX_TAPS 4

typedef struct {
    int count;
    tp_tensor *index[MAX_TAPS], *weight[MAX_TAPS]; /* weight NULL: 1 */
} taps;

static void taps_free(taps *t) {
    for (int k = 0; k < MAX_TAPS; k++) {
        tp_release(t->index[k]);
        tp_release(t->weight[k]);
    }
}

/* How far apart two outputs are in the input. */
static double step_of(int64_t in, int64_t out, mode m, bool align_corners, tp_opt_float scale) {
    if (m >= LINEAR && align_corners) return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return scale.has && scale.value > 0 ? 1 / scale.value : (double)in / (double)out;
}

static int64_t within(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/* The element at a place, which a scale may put beyond all integers. */
static int64_t element_at(double place, int64_t n) { return within(tp_scalar_int(TP_SCALAR_F(place)), n); }

/* The cubic convolution kernel with a = -3/4, at the four elements around a place t after the second. */
static void cubic_weights(double t, double w[4]) {
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        double x = fabs(t + 1 - k);
        w[k] = x <= 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    }
}

/* The taps of output i. */
static void taps_at(int64_t i, int64_t in, double step, mode m, bool align_corners, int64_t at[4], double w[4]) {
    double place = m >= LINEAR && !align_corners ? step * ((double)i + 0.5) - 0.5 : step * (double)i;
    switch (m) {
    case NEAREST: at[0] = element_at(floorf((float)i * (float)step), in); break;
    case NEAREST_EXACT: at[0] = element_at(floorf(((float)i + 0.5f) * (float)step), in); break;
    case LINEAR:
        if (place < 0) place = 0;
        at[0] = element_at(place, in), at[1] = within(at[0] + 1, in);
        w[1] = fmin(place - (double)at[0], 1), w[0] = 1 - w[1];
        break;
    case CUBIC: {
        double second = floor(place);
        cubic_weights(place - second, w);
        for (int k = 0; k < 4; k++) at[k] = element_at(second - 1 + k, in);
        break;
    }
    }
}

/* Taps for `n` outputs along dimension d of x. */
static int taps_new(taps *t, const tp_tensor *x, int64_t d, int64_t in, int64_t n, mode m, bool align_corners,
                    tp_opt_float scale) {
    int64_t shape[TP_MAX_DIMS], *index[MAX_TAPS];
    double *weight[MAX_TAPS];
    for (int i = 0; i < x->ndim; i++) shape[i] = i == d ? n : 1;
    *t = (taps){.count = m == CUBIC ? 4 : m == LINEAR ? 2 : 1};
    tp_dtype dtype = tp_is_floating(x) || tp_is_complex(x) ? (tp_dtype)x->dtype : TP_FLOAT32;
    double step = step_of(in, n, m, align_corners, scale);
    for (int k = 0; k < t->count; k++) {
        t->index[k] = tp_table_int64_beside(x, TP_INTS(n), &index[k]);
        if (m >= LINEAR) t->weight[k] = tp_table_float64_beside(x, (tp_ints){shape, x->ndim}, &weight[k]);
        if (!t->index[k] || (m >= LINEAR && !t->weight[k])) return -1;
    }
    for (int64_t i = 0; index[0] && i < n; i++) {
        int64_t at[MAX_TAPS] = {0};
        double w[MAX_TAPS] = {0};
        taps_at(i, in, step, m, align_corners, at, w);
        for (int k = 0; k < t->count; k++) {
            index[k][i] = at[k];
            if (m >= LINEAR) weight[k][i] = w[k];
        }
    }
    for (int k = 0; k < t->count; k++) {
        if (!(t->index[k] = tp_table_moved_steal(t->index[k], x, TP_INT64))) return -1;
        if (m >= LINEAR && !(t->weight[k] = tp_table_moved_steal(t->weight[k], x, dtype))) return -1;
    }
    return 0;
}

/* sum + t, where sum may be NULL; takes both over. */
static tp_tensor *plus_steal(tp_tensor *sum, tp_tensor *t) {
    tp_autoref *a = sum, *b = t;
    if (!b) return NULL;
    return a ? tp_add_Tensor(a, b, TP_SCALAR_I(1)) : tp_take(b);
}

/* Between two taps, whose weights make 1 together. */
static tp_tensor *between(tp_tensor *x, int64_t d, const taps *t) {
    tp_autoref *first = tp_index_select(x, d, t->index[0]), *second = tp_index_select(x, d, t->index[1]);
    return first && second ? tp_lerp_Tensor(first, second, t->weight[1]) : NULL;
}

static tp_tensor *resize_dim(tp_tensor *x, int64_t d, int64_t n, mode m, bool align_corners, tp_opt_float scale) {
    taps t;
    tp_tensor *sum = NULL;
    int status = taps_new(&t, x, d, x->sizes[d], n, m, align_corners, scale);
    if (m == LINEAR) {
        sum = status == 0 ? between(x, d, &t) : NULL;
        taps_free(&t);
        return sum;
    }
    for (int k = 0; k < t.count && status == 0; k++) {
        tp_autoref *part = tp_index_select(x, d, t.index[k]);
        sum = plus_steal(sum, part && t.weight[k] ? tp_mul_Tensor(part, t.weight[k]) : tp_retain(part));
        if (!sum) status = -1;
    }
    taps_free(&t);
    if (status < 0) {
        tp_release(sum);
        return NULL;
    }
    return sum;
}

/* The adjoint of resize_dim: from grad to `in` elements along d. */
static tp_tensor *resize_dim_backward(tp_tensor *grad, int64_t d, int64_t in, mode m, bool align_corners,
                                      tp_opt_float scale) {
    taps t;
    int64_t sizes[TP_MAX_DIMS];
    memcpy(sizes, grad->sizes, (size_t)grad->ndim * sizeof *sizes);
    sizes[d] = in;
    tp_autoref *sum = tp_zeros((tp_ints){sizes, grad->ndim}, (tp_dtype)grad->dtype, TP_NO_LAYOUT, grad->device, -1);
    int status = taps_new(&t, grad, d, in, grad->sizes[d], m, align_corners, scale);
    for (int k = 0; k < t.count && status == 0 && sum; k++) {
        tp_autoref *part = t.weight[k] ? tp_mul_Tensor(grad, t.weight[k]) : tp_retain(grad);
        tp_tensor *more = part ? tp_index_add(sum, d, t.index[k], part, TP_SCALAR_I(1)) : NULL;
        tp_release(sum);
        sum = more;
    }
    taps_free(&t);
    return status < 0 ? NULL : tp_take(sum);
}

static int check_sizes(const char *op, tp_ints input, tp_ints output_size, int dims) {
    if (input.size != dims + 2)
        return tp_fail(TP_RuntimeError, "It is expected input_size equals to %d, but got size %lld", dims + 2,
                       (long long)input.size);
    if (output_size.size != dims)
        return tp_fail(TP_RuntimeError, "It is expected output_size equals to %d, but got size %lld", dims,
                       (long long)output_size.size);
    for (int i = 0; i < dims; i++)
        if (input.data[i + 2] < 1 || output_size.data[i] < 1) {
            tp_autotext a = {0}, b = {0};
            tp_text_ints(&a, input);
            tp_text_ints(&b, output_size);
            return tp_fail(TP_RuntimeError,
                           "%s: Input and output sizes should be greater than 0, but got input %s and output %s", op,
                           a.text, b.text);
        }
    return 0;
}

typedef struct {
    tp_ints output_size;
    int dims;
    mode m;
    bool align_corners;
    const tp_opt_float *scales;
} resizing;

/* The last dimensions of x first, of which fewer elements are made meanwhile. */
static tp_tensor *resize_planes(tp_tensor *self, const resizing *r) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    bool bytes = dtype == TP_UINT8 && r->m >= LINEAR; /* images: each pass stays within what a byte holds */
    tp_dtype wide = r->m < LINEAR ? dtype : bytes ? TP_FLOAT32 : tp_compute_dtype(dtype);
    tp_autoref *x = tp_to_dtype(self, wide, false, false, TP_NO_FORMAT);
    for (int i = r->dims - 1; i >= 0 && x; i--) {
        tp_tensor *next = resize_dim(x, i + 2, r->output_size.data[i], r->m, r->align_corners, r->scales[i]);
        tp_release(x);
        x = next;
        if (x && bytes && tp_clamp_(x, TP_SCALAR_I(0), TP_SCALAR_I(255)) < 0) return NULL;
    }
    if (x && bytes && tp_round_(x) < 0) return NULL;
    return x ? tp_to_dtype(x, dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* What is made meanwhile for a piece of the planes stays in a cache; for all of them it would go through memory. */
#define PIECE_BYTES (512 << 10)

/* How many planes of the result a piece has; 0: they are resized together. */
static int64_t planes_of_piece(const tp_tensor *self, const resizing *r) {
    if (self->device.type != TP_DEVICE_CPU || tp_tls.observe || r->m < LINEAR || !tp_is_contiguous(self)) return 0;
    int64_t plane = (int64_t)sizeof(float), planes = self->sizes[0] * self->sizes[1];
    for (int i = 0; i < r->dims; i++)
        if (__builtin_mul_overflow(plane, r->output_size.data[i], &plane)) return 0; /* no memory has room for one */
    int64_t piece = PIECE_BYTES * tp_get_num_threads() / plane;
    return piece > 0 && planes > 2 * piece ? piece : 0;
}

static tp_tensor *resize_in_pieces(tp_tensor *self, const resizing *r, int64_t piece) {
    int64_t in[TP_MAX_DIMS], out[TP_MAX_DIMS], planes = self->sizes[0] * self->sizes[1];
    memcpy(in, self->sizes, (size_t)self->ndim * sizeof *in);
    memcpy(out, in, sizeof in);
    memcpy(out + 2, r->output_size.data, (size_t)r->dims * sizeof *out);
    tp_autoref *result = tp_new_empty((tp_ints){out, self->ndim}, (tp_dtype)self->dtype, self->device);
    in[0] = out[0] = 1, in[1] = out[1] = planes;
    tp_autoref *from = tp_view(self, (tp_ints){in, self->ndim});
    tp_autoref *to = result ? tp_view(result, (tp_ints){out, self->ndim}) : NULL;
    if (!from || !to) return NULL;
    for (int64_t i = 0; i < planes; i += piece) {
        int64_t n = planes - i < piece ? planes - i : piece;
        tp_autoref *part = tp_narrow(from, 1, i, n), *place = tp_narrow(to, 1, i, n);
        tp_autoref *made = part ? resize_planes(part, r) : NULL;
        if (!made || !place || tp_copy_(place, made, false) < 0) return NULL;
    }
    return tp_take(result);
}

static tp_tensor *resize(const char *op, tp_tensor *self, tp_ints output_size, int dims, mode m, bool align_corners,
                         const tp_opt_float *scales) {
    if (check_sizes(op, tp_sizes(self), output_size, dims) < 0) return NULL;
    if (!tp_is_floating(self) && !(self->dtype == TP_UINT8 && (m < LINEAR || dims == 2)))
        return tp_fail_null(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                            tp_scalar_type_name((tp_dtype)self->dtype));
    resizing r = {output_size, dims, m, align_corners, scales};
    int64_t piece = planes_of_piece(self, &r);
    tp_autoref *out = piece ? resize_in_pieces(self, &r, piece) : resize_planes(self, &r);
    return out ? tp_contiguous(out, tp_suggest_memory_format(self)) : NULL;
}

static tp_tensor *resize_backward(const char *op, tp_tensor *grad, tp_ints output_size, tp_ints input_size, int dims,
                                  mode m, bool align_corners, const tp_opt_float *scales) {
    if (check_sizes(op, input_size, output_size, dims) < 0) return NULL;
    bool fits = grad->ndim == dims + 2;
    for (int i = 0; fits && i < dims; i++) fits = grad->sizes[i + 2] == output_size.data[i];
    for (int i = 0; fits && i < 2; i++) fits = grad->sizes[i] == input_size.data[i];
    if (!fits) {
        tp_autotext a = {0};
        tp_text_ints(&a, tp_sizes(grad));
        return tp_fail_null(TP_RuntimeError, "%s: Expected grad_output to have the output's shape, but got %s", op,
                            a.text);
    }
    tp_dtype dtype = (tp_dtype)grad->dtype, wide = m >= LINEAR ? tp_compute_dtype(dtype) : dtype;
    tp_autoref *x = tp_to_dtype(grad, wide, false, false, TP_NO_FORMAT);
    for (int i = 0; i < dims && x; i++) {
        tp_tensor *next = resize_dim_backward(x, i + 2, input_size.data[i + 2], m, align_corners, scales[i]);
        tp_release(x);
        x = next;
    }
    tp_autoref *out = x ? tp_to_dtype(x, dtype, false, false, TP_NO_FORMAT) : NULL;
    return out ? tp_contiguous(out, tp_suggest_memory_format(grad)) : NULL;
}

int tp_sizes_of_vec(const tp_tensor *input, tp_ints output_size, tp_floats factors, int dims, int64_t *sizes,
                    tp_opt_float *scales) {
    bool by_size = output_size.data != NULL;
    if (by_size == (factors.data != NULL))
        return tp_fail(TP_RuntimeError, "Must specify exactly one of output_size and scale_factors");
    if ((by_size ? output_size.size : factors.size) != dims || input->ndim != dims + 2)
        return tp_fail(TP_RuntimeError, "It is expected input_size equals to %d, but got size %d", dims + 2,
                       input->ndim);
    for (int i = 0; i < dims; i++) {
        const tp_scalar *size =
            by_size ? TP_SCALAR_I(output_size.data[i]) : TP_SCALAR_F((double)input->sizes[i + 2] * factors.data[i]);
        if (tp_scalar_check_fits(size, TP_INT64) < 0) return -1;
        sizes[i] = tp_scalar_int(size);
        scales[i] = by_size ? TP_NO_FLOAT : TP_SOME_FLOAT(factors.data[i]);
    }
    return 0;
}

/* ---- the operators: by dimensions the scales are separate arguments ---- */

#define DECL1 tp_opt_float a
#define DECL2 tp_opt_float a, tp_opt_float b
#define DECL3 tp_opt_float a, tp_opt_float b, tp_opt_float c
#define PASS1 a
#define PASS2 a, b
#define PASS3 a, b, c
#define SCALES1(s) s[0]
#define SCALES2(s) s[0], s[1]
#define SCALES3(s) s[0], s[1], s[2]

/* upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor */
#define NEAREST_OPS(name, d, m)                                                                               \
    tp_tensor *name##_composite(tp_tensor *self, tp_ints output_size, DECL##d) {                              \
        return resize(#name, self, output_size, d, m, false, (tp_opt_float[]){PASS##d});                      \
    }                                                                                                         \
    tp_tensor *name##_backward_composite(tp_tensor *grad, tp_ints output_size, tp_ints input_size, DECL##d) { \
        return resize_backward(#name, grad, output_size, input_size, d, m, false, (tp_opt_float[]){PASS##d}); \
    }                                                                                                         \
    tp_tensor *name##_vec_composite(tp_tensor *input, tp_ints output_size, tp_floats factors) {               \
        int64_t n[3];                                                                                         \
        tp_opt_float s[3];                                                                                    \
        if (tp_sizes_of_vec(input, output_size, factors, d, n, s) < 0) return NULL;                           \
        return tp_##name(input, (tp_ints){n, d}, SCALES##d(s));                                               \
    }
NEAREST_OPS(upsample_nearest1d, 1, NEAREST)
NEAREST_OPS(upsample_nearest2d, 2, NEAREST)
NEAREST_OPS(upsample_nearest3d, 3, NEAREST)
NEAREST_OPS(_upsample_nearest_exact1d, 1, NEAREST_EXACT)
NEAREST_OPS(_upsample_nearest_exact2d, 2, NEAREST_EXACT)
NEAREST_OPS(_upsample_nearest_exact3d, 3, NEAREST_EXACT)

/* upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float?
 * scales_w=None) -> Tensor */
#define SMOOTH_OPS(name, d, m)                                                                                 \
    tp_tensor *name##_composite(tp_tensor *self, tp_ints output_size, bool align, DECL##d) {                   \
        return resize(#name, self, output_size, d, m, align, (tp_opt_float[]){PASS##d});                       \
    }                                                                                                          \
    tp_tensor *name##_backward_composite(tp_tensor *grad, tp_ints output_size, tp_ints input_size, bool align, \
                                         DECL##d) {                                                            \
        return resize_backward(#name, grad, output_size, input_size, d, m, align, (tp_opt_float[]){PASS##d});  \
    }                                                                                                          \
    tp_tensor *name##_vec_composite(tp_tensor *input, tp_ints output_size, bool align, tp_floats factors) {    \
        int64_t n[3];                                                                                          \
        tp_opt_float s[3];                                                                                     \
        if (tp_sizes_of_vec(input, output_size, factors, d, n, s) < 0) return NULL;                            \
        return tp_##name(input, (tp_ints){n, d}, align, SCALES##d(s));                                         \
    }
SMOOTH_OPS(upsample_linear1d, 1, LINEAR)
SMOOTH_OPS(upsample_bilinear2d, 2, LINEAR)
SMOOTH_OPS(upsample_trilinear3d, 3, LINEAR)
SMOOTH_OPS(upsample_bicubic2d, 2, CUBIC)
