/* norm.c: normalisations. layer_norm has kernels of its own; batch_norm is made of other operators, which are
 * differentiated.
 *
 * Statistics run in double over float32 and float64, in the order of memory; 16-bit floats go through float32. */
#include "NativeFunctions.h"
#include "core/parallel.h"
#include "native/plain.h"

#include <math.h>
#include <string.h>

/* ---- layer_norm ---- */

static int check_layer(const tp_tensor *input, tp_ints shape, const tp_tensor *weight, const tp_tensor *bias,
                       int64_t *rows, int64_t *n) {
    bool fits = shape.size >= 1 && input->ndim >= shape.size;
    *rows = *n = 1;
    for (int64_t i = 0; fits && i < shape.size; i++) fits = input->sizes[input->ndim - shape.size + i] == shape.data[i];
    if (!fits) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, shape);
        tp_text_ints(&b, tp_sizes(input));
        return tp_fail(TP_RuntimeError,
                       "Given normalized_shape=%s, expected input with shape [*, those], but got input of size %s",
                       a.text, b.text);
    }
    for (int i = 0; i < input->ndim; i++) *(i < input->ndim - shape.size ? rows : n) *= input->sizes[i];
    const tp_tensor *both[] = {weight, bias};
    for (int k = 0; k < 2; k++) {
        bool same = !both[k] || both[k]->ndim == shape.size;
        for (int64_t i = 0; same && both[k] && i < shape.size; i++) same = both[k]->sizes[i] == shape.data[i];
        if (!same)
            return tp_fail(TP_RuntimeError, "Expected %s to be of same shape as normalized_shape",
                           k ? "bias" : "weight");
    }
    if (!tp_is_floating(input))
        return tp_fail(TP_NotImplementedError, "\"LayerNormKernelImpl\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)input->dtype));
    return 0;
}

static tp_tensor *statistics(const tp_tensor *input, int64_t reduced, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    for (int i = 0; i < input->ndim; i++) sizes[i] = i < input->ndim - reduced ? input->sizes[i] : 1;
    return tp_new_empty((tp_ints){sizes, input->ndim}, dtype, input->device);
}

typedef struct {
    const void *input, *grad, *weight, *bias;
    void *out, *mean, *rstd;
    int64_t n;
    double eps;
} job;

#define LAYER(T, s)                                                                                     \
    static void forward_##s(int64_t begin, int64_t end, void *context) {                                \
        const job *j = context;                                                                         \
        const T *w = j->weight, *b = j->bias;                                                           \
        for (int64_t r = begin; r < end; r++) {                                                         \
            const T *x = (const T *)j->input + r * j->n;                                                \
            T *y = (T *)j->out + r * j->n;                                                              \
            double sum = 0, square = 0;                                                                 \
            for (int64_t i = 0; i < j->n; i++) sum += (double)x[i];                                     \
            double mean = sum / (double)j->n;                                                           \
            for (int64_t i = 0; i < j->n; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean); \
            double rstd = 1 / sqrt(square / (double)j->n + j->eps);                                     \
            T m = (T)mean, scale = (T)rstd;                                                             \
            for (int64_t i = 0; i < j->n; i++) {                                                        \
                T v = (x[i] - m) * scale;                                                               \
                y[i] = (w ? v * w[i] : v) + (b ? b[i] : 0);                                             \
            }                                                                                           \
            ((T *)j->mean)[r] = m, ((T *)j->rstd)[r] = scale;                                           \
        }                                                                                               \
    }                                                                                                   \
    static void backward_##s(int64_t begin, int64_t end, void *context) {                               \
        const job *j = context;                                                                         \
        const T *w = j->weight;                                                                         \
        for (int64_t r = begin; r < end; r++) {                                                         \
            const T *x = (const T *)j->input + r * j->n, *g = (const T *)j->grad + r * j->n;            \
            T *out = (T *)j->out + r * j->n;                                                            \
            double mean = (double)((T *)j->mean)[r], rstd = (double)((T *)j->rstd)[r], a = 0, b = 0;    \
            for (int64_t i = 0; i < j->n; i++) {                                                        \
                double gw = (double)g[i] * (w ? (double)w[i] : 1), v = ((double)x[i] - mean) * rstd;    \
                a += gw, b += gw * v;                                                                   \
            }                                                                                           \
            a /= (double)j->n, b /= (double)j->n;                                                       \
            for (int64_t i = 0; i < j->n; i++) {                                                        \
                double gw = (double)g[i] * (w ? (double)w[i] : 1), v = ((double)x[i] - mean) * rstd;    \
                out[i] = (T)(rstd * (gw - a - v * b));                                                  \
            }                                                                                           \
        }                                                                                               \
    }
LAYER(float, f32)
LAYER(double, f64)

static void release_all(tp_tensor3 *r) {
    for (int i = 0; i < 3; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

/* native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 native_layer_norm_meta(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                  double eps TP_UNUSED) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    tp_dtype dtype = (tp_dtype)input->dtype;
    if (check_layer(input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = statistics(input, normalized_shape.size, dtype);
    r.v[2] = statistics(input, normalized_shape.size, dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) release_all(&r);
    return r;
}

tp_tensor3 native_layer_norm_cpu(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                 double eps) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    if (check_layer(input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = tp_plain(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    if (!x || (weight && !w) || (bias && !b)) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = statistics(input, normalized_shape.size, dtype);
    r.v[2] = statistics(input, normalized_shape.size, dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) return release_all(&r), r;
    job j = {.input = tp_data(x),
             .weight = w ? tp_data(w) : NULL,
             .bias = b ? tp_data(b) : NULL,
             .out = tp_data(r.v[0]),
             .mean = tp_data(r.v[1]),
             .rstd = tp_data(r.v[2]),
             .n = n,
             .eps = eps};
    if (rows && n && tp_parallel_for(rows, 1 + TP_GRAIN / n, dtype == TP_FLOAT32 ? forward_f32 : forward_f64, &j) < 0)
        return release_all(&r), r;
    for (int i = 0; i < 3; i++) r.v[i] = tp_narrow_steal(r.v[i], (tp_dtype)input->dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) release_all(&r);
    return r;
}

/* The weight's and the bias's gradients are sums over the rows, through operators. */
static tp_tensor *sum_rows(tp_tensor *t, tp_ints normalized_shape, int64_t rows, int64_t n) {
    tp_autoref *flat = tp_reshape(t, TP_INTS(rows, n)),
               *sum = flat ? tp_sum_dim_IntList(flat, TP_INTS(0), false, TP_NO_DTYPE) : NULL;
    return sum ? tp_reshape(sum, normalized_shape) : NULL;
}

static tp_tensor *normalised(tp_tensor *input, tp_tensor *mean, tp_tensor *rstd) {
    tp_autoref *centred = tp_sub_Tensor(input, mean, TP_SCALAR_I(1));
    return centred ? tp_mul_Tensor(centred, rstd) : NULL;
}

/* native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
 * Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_layer_norm_backward_cpu(tp_tensor *grad_out, tp_tensor *input, tp_ints normalized_shape,
                                          tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, tp_tensor *bias,
                                          tp_bools output_mask) {
    int64_t rows, n;
    tp_tensor3 r = {{NULL}};
    if (check_layer(input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = tp_plain(input, dtype), *g = tp_plain(grad_out, dtype), *w = tp_plain(weight, dtype),
               *m = tp_plain(mean, dtype), *s = tp_plain(rstd, dtype);
    if (!x || !g || !m || !s || (weight && !w)) return r;
    if (output_mask.data[0]) {
        if (!(r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device))) return r;
        job j = {.input = tp_data(x),
                 .grad = tp_data(g),
                 .weight = w ? tp_data(w) : NULL,
                 .out = tp_data(r.v[0]),
                 .mean = tp_data(m),
                 .rstd = tp_data(s),
                 .n = n};
        if (rows && n &&
            tp_parallel_for(rows, 1 + TP_GRAIN / n, dtype == TP_FLOAT32 ? backward_f32 : backward_f64, &j) < 0)
            return release_all(&r), r;
        if (!(r.v[0] = tp_narrow_steal(r.v[0], (tp_dtype)input->dtype))) return r;
    }
    if (output_mask.data[1] && weight) {
        tp_autoref *v = normalised(x, m, s), *product = v ? tp_mul_Tensor(g, v) : NULL;
        if (!product ||
            !(r.v[1] = tp_narrow_steal(sum_rows(product, normalized_shape, rows, n), (tp_dtype)weight->dtype)))
            return release_all(&r), r;
    }
    if (output_mask.data[2] && bias &&
        !(r.v[2] = tp_narrow_steal(sum_rows(g, normalized_shape, rows, n), (tp_dtype)bias->dtype)))
        release_all(&r);
    return r;
}

tp_tensor3 native_layer_norm_backward_meta(tp_tensor *grad_out TP_UNUSED, tp_tensor *input,
                                           tp_ints normalized_shape TP_UNUSED, tp_tensor *mean TP_UNUSED,
                                           tp_tensor *rstd TP_UNUSED, tp_tensor *weight, tp_tensor *bias,
                                           tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    tp_tensor *like[] = {input, weight, bias};
    for (int i = 0; i < 3; i++)
        if (output_mask.data[i] && like[i] &&
            !(r.v[i] = tp_new_empty(tp_sizes(like[i]), (tp_dtype)like[i]->dtype, input->device)))
            return release_all(&r), r;
    return r;
}

/* layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool
 * cudnn_enable=True) -> Tensor */
tp_tensor *layer_norm_composite(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                double eps, bool cudnn_enable TP_UNUSED) {
    tp_tensor3 r = tp_native_layer_norm(input, normalized_shape, weight, bias, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor */
tp_tensor *rms_norm_composite(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_opt_float eps) {
    int64_t rows, n, dims[TP_MAX_DIMS];
    if (check_layer(input, normalized_shape, weight, NULL, &rows, &n) < 0) return NULL;
    for (int64_t i = 0; i < normalized_shape.size; i++) dims[i] = input->ndim - normalized_shape.size + i;
    double e = eps.has ? eps.value : input->dtype == TP_FLOAT64 ? 0x1p-52 : 0x1p-23;
    tp_autoref *x = tp_to_dtype(input, tp_compute_dtype((tp_dtype)input->dtype), false, false, TP_NO_FORMAT);
    tp_autoref *square = x ? tp_mul_Tensor(x, x) : NULL;
    tp_autoref *sum =
        square ? tp_sum_dim_IntList(square, (tp_ints){dims, normalized_shape.size}, true, TP_NO_DTYPE) : NULL;
    tp_autoref *mean = sum ? tp_div_Scalar(sum, TP_SCALAR_F((double)n)) : NULL;
    tp_autoref *safe = mean ? tp_add_Scalar(mean, TP_SCALAR_F(e), TP_SCALAR_I(1)) : NULL,
               *root = safe ? tp_sqrt(safe) : NULL;
    tp_autoref *normed = root ? tp_div_Tensor(x, root) : NULL;
    tp_autoref *scaled = normed && weight ? tp_mul_Tensor(normed, weight) : tp_retain(normed);
    return scaled ? tp_to_dtype(scaled, (tp_dtype)input->dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* ---- group_norm and batch_norm, over [a, b, c] with statistics over some of the three ---- */

static tp_tensor *mean_of(tp_tensor *t, tp_ints dims, double count) {
    tp_autoref *sum = tp_sum_dim_IntList(t, dims, true, TP_NO_DTYPE);
    return sum ? tp_div_Scalar(sum, TP_SCALAR_F(count)) : NULL;
}

/* (x - mean) / sqrt(var + eps) */
static tp_tensor *standardised(tp_tensor *x, tp_tensor *mean, tp_tensor *var, double eps) {
    tp_autoref *centred = tp_sub_Tensor(x, mean, TP_SCALAR_I(1)),
               *safe = centred ? tp_add_Scalar(var, TP_SCALAR_F(eps), TP_SCALAR_I(1)) : NULL;
    tp_autoref *root = safe ? tp_sqrt(safe) : NULL;
    return root ? tp_div_Tensor(centred, root) : NULL;
}

static tp_tensor *variance(tp_tensor *x, tp_tensor *mean, tp_ints dims, double count) {
    tp_autoref *centred = tp_sub_Tensor(x, mean, TP_SCALAR_I(1)),
               *square = centred ? tp_mul_Tensor(centred, centred) : NULL;
    return square ? mean_of(square, dims, count) : NULL;
}

/* The affine map per channel of [n, channels, rest]. */
static tp_tensor *affine(tp_tensor *x, tp_tensor *weight, tp_tensor *bias) {
    tp_autoref *w = weight ? tp_reshape(weight, TP_INTS(-1, 1)) : NULL,
               *b = bias ? tp_reshape(bias, TP_INTS(-1, 1)) : NULL;
    if ((weight && !w) || (bias && !b)) return NULL;
    tp_autoref *scaled = w ? tp_mul_Tensor(x, w) : tp_retain(x);
    return scaled && b ? tp_add_Tensor(scaled, b, TP_SCALAR_I(1)) : tp_take(scaled);
}

static int check_channels(const char *op, const tp_tensor *input, tp_tensor *const *per_channel, int n) {
    if (input->ndim < 2)
        return tp_fail(TP_RuntimeError, "%s: Expected at least 2 dimensions for input tensor but received %d", op,
                       input->ndim);
    for (int i = 0; i < n; i++)
        if (per_channel[i] && per_channel[i]->numel != input->sizes[1])
            return tp_fail(TP_RuntimeError, "%s: expected one value for each of %lld channels, but got %lld", op,
                           (long long)input->sizes[1], (long long)per_channel[i]->numel);
    return 0;
}

/* group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool
 * cudnn_enabled=True) -> Tensor */
tp_tensor *group_norm_composite(tp_tensor *input, int64_t num_groups, tp_tensor *weight, tp_tensor *bias, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    tp_tensor *both[] = {weight, bias};
    if (check_channels("group_norm", input, both, 2) < 0) return NULL;
    if (num_groups < 1 || input->sizes[1] % num_groups)
        return tp_fail_null(TP_RuntimeError,
                            "Expected number of channels in input to be divisible by num_groups, but got %lld channels "
                            "and num_groups=%lld",
                            (long long)input->sizes[1], (long long)num_groups);
    if (input->numel == 0) return tp_clone(input, TP_NO_FORMAT);
    int64_t n = input->sizes[0], channels = input->sizes[1], rest = input->numel / (n * channels);
    double count = (double)(channels / num_groups * rest);
    tp_autoref *wide = tp_to_dtype(input, tp_compute_dtype((tp_dtype)input->dtype), false, false, TP_NO_FORMAT);
    tp_autoref *x = wide ? tp_reshape(wide, TP_INTS(n * num_groups, channels / num_groups * rest)) : NULL;
    tp_autoref *mean = x ? mean_of(x, TP_INTS(1), count) : NULL,
               *var = mean ? variance(x, mean, TP_INTS(1), count) : NULL;
    tp_autoref *normed = var ? standardised(x, mean, var, eps) : NULL;
    tp_autoref *rows = normed ? tp_reshape(normed, TP_INTS(n, channels, rest)) : NULL,
               *mapped = rows ? affine(rows, weight, bias) : NULL;
    tp_autoref *out = mapped ? tp_reshape(mapped, tp_sizes(input)) : NULL;
    return out ? tp_to_dtype(out, (tp_dtype)input->dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* running = (1 - momentum) * running + momentum * value, without a gradient. */
static int update_running(tp_tensor *running, tp_tensor *value, double momentum, double factor) {
    if (!running) return 0;
    tp_autoref *plain = tp_detach(value), *flat = plain ? tp_reshape(plain, tp_sizes(running)) : NULL;
    if (!flat || tp_mul__Scalar(running, TP_SCALAR_F(1 - momentum)) < 0) return -1;
    return tp_add__Tensor(running, flat, TP_SCALAR_F(momentum * factor));
}

/* batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
 * float momentum, float eps, bool cudnn_enabled) -> Tensor */
tp_tensor *batch_norm_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                tp_tensor *running_var, bool training, double momentum, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    tp_tensor *all[] = {weight, bias, running_mean, running_var};
    if (check_channels("batch_norm", input, all, 4) < 0) return NULL;
    if (!training && (!running_mean || !running_var))
        return tp_fail_null(TP_RuntimeError,
                            "batch_norm: running_mean and running_var must be defined in evaluation mode");
    if (input->numel == 0) return tp_clone(input, TP_NO_FORMAT);
    int64_t n = input->sizes[0], channels = input->sizes[1], rest = input->numel / (n * channels);
    double count = (double)(n * rest);
    tp_autoref *wide = tp_to_dtype(input, tp_compute_dtype((tp_dtype)input->dtype), false, false, TP_NO_FORMAT);
    tp_autoref *x = wide ? tp_reshape(wide, TP_INTS(n, channels, rest)) : NULL, *mean = NULL, *var = NULL;
    if (!x) return NULL;
    if (training) {
        if (!(mean = mean_of(x, TP_INTS(0, 2), count)) || !(var = variance(x, mean, TP_INTS(0, 2), count))) return NULL;
        if (update_running(running_mean, mean, momentum, 1) < 0) return NULL;
        if (update_running(running_var, var, momentum, count > 1 ? count / (count - 1) : 1) < 0) return NULL;
    } else if (!(mean = tp_reshape(running_mean, TP_INTS(-1, 1))) || !(var = tp_reshape(running_var, TP_INTS(-1, 1)))) {
        return NULL;
    }
    tp_autoref *normed = standardised(x, mean, var, eps), *mapped = normed ? affine(normed, weight, bias) : NULL;
    tp_autoref *out = mapped ? tp_reshape(mapped, tp_sizes(input)) : NULL;
    return out ? tp_to_dtype(out, (tp_dtype)input->dtype, false, false, TP_NO_FORMAT) : NULL;
}
