/* norm.c: normalisations over the last dimensions; those over channels are in norm_channels.c.
 *
 * Statistics run in double over float32 and float64; 16-bit floats go through float32. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/transfer.h"
#include "prim/pieces.h"
#include "prim/plain.h"
#include "prim/norm.h"
#include "native/common/checks.h"
#include "iter/iter.h"

/* ---- layer_norm ---- */

/* complex_op: the operator that takes complex numbers too, or NULL. */
static int check_layer(const char *complex_op, const tp_tensor *input, tp_ints shape, tp_tensor *weight,
                       tp_tensor *bias, int64_t *rows, int64_t *n) {
    bool fits = shape.size >= 1 && input->ndim >= shape.size;
    *rows = *n = 1;
    for (int64_t i = 0; fits && i < shape.size; i++) fits = input->sizes[input->ndim - shape.size + i] == shape.data[i];
    if (shape.size < 1)
        return tp_fail(TP_RuntimeError,
                       "Expected normalized_shape to be at least 1-dimensional, but got normalized_shape = []");
    if (!fits) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, shape);
        tp_text_ints(&b, tp_sizes(input));
        return tp_fail(TP_RuntimeError,
                       "Given normalized_shape=%s, expected input with shape [*, those], but got input of size %s",
                       a.text, b.text);
    }
    for (int i = 0; i < input->ndim; i++) *(i < input->ndim - shape.size ? rows : n) *= input->sizes[i];
    static const char *const names[] = {"weight", "bias"};
    tp_tensor *const both[] = {weight, bias};
    for (int k = 0; k < 2; k++) {
        bool same = !both[k] || both[k]->ndim == shape.size;
        for (int64_t i = 0; same && both[k] && i < shape.size; i++) same = both[k]->sizes[i] == shape.data[i];
        if (!same) return tp_fail(TP_RuntimeError, "Expected %s to be of same shape as normalized_shape", names[k]);
    }
    if (!tp_is_floating(input) && !(complex_op && tp_is_complex(input)))
        return tp_fail(TP_NotImplementedError, "\"LayerNormKernelImpl\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)input->dtype));
    return complex_op ? 0 : tp_check_norm_dtypes("layer_norm", input, both, names, 2);
}

/* The sizes of what has an element a row. */
static tp_ints statistic_sizes(const tp_tensor *input, int64_t reduced, int64_t *sizes) {
    for (int i = 0; i < input->ndim; i++) sizes[i] = i < input->ndim - reduced ? input->sizes[i] : 1;
    return (tp_ints){sizes, input->ndim};
}

static tp_tensor *statistics(const tp_tensor *input, int64_t reduced, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    return tp_new_empty(statistic_sizes(input, reduced, sizes), dtype, input->device);
}

/* Part i sums rows i * rows / parts on: the split depends on the rows only. */
#define PARTS 8
static int64_t parts_of(int64_t rows) { return rows >= 2 * PARTS ? PARTS : 1; }

static void release_all(tp_tensor3 *r) {
    for (int i = 0; i < 3; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

/* Rows of n neighbours, whose elements have each a weight of their own. */
static tp_norm_rows rows_of(int64_t rows, int64_t n) {
    return (tp_norm_rows){.rows = rows, .runs = 1, .length = n, .first = n, .per_run = 1, .each = 1};
}

typedef struct {
    tp_tensor *weight, *bias;
    tp_dtype dtype;
    int64_t n; /* elements of a row */
    double eps;
} layer;

/* parts: out, input, rstd, and the mean, without which rows are scaled about 0. */
static int layer_part(tp_tensor *const *parts, const void *context) {
    const layer *l = context;
    tp_autoref *x = tp_plain(parts[1], l->dtype), *out = x ? tp_target(parts[0], l->dtype) : NULL,
               *rstd = out ? tp_target(parts[2], l->dtype) : NULL;
    if (!rstd) return -1;
    tp_norm_rows walk = rows_of(x->numel / l->n, l->n);
    if (!parts[3]) {
        int status = tp_prim_norm_rms(x, l->weight, tp_norm_words(&walk), l->eps, out, rstd);
        return status < 0 || tp_finish(out, parts[0]) < 0 ? -1 : tp_finish(rstd, parts[2]);
    }
    tp_autoref *mean = tp_target(parts[3], l->dtype);
    if (!mean) return -1;
    bool failed =
        tp_prim_norm_forward(x, l->weight, l->bias, tp_norm_words(&walk), l->eps, 0, out, mean, rstd, NULL, NULL) < 0;
    return failed || tp_finish(out, parts[0]) < 0 || tp_finish(rstd, parts[2]) < 0 ? -1 : tp_finish(mean, parts[3]);
}

/* native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 native_layer_norm_dense(tp_tensor *given, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                   double eps) {
    int64_t rows, n, last = normalized_shape.size;
    tp_tensor3 r = {{NULL}};
    tp_autoref *input = tp_still(given);
    if (!input || check_layer(NULL, input, normalized_shape, weight, bias, &rows, &n) < 0) return r;
    tp_dtype given_dtype = (tp_dtype)input->dtype, dtype = tp_compute_dtype(given_dtype);
    tp_autoref *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    if ((weight && !w) || (bias && !b)) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), given_dtype, input->device);
    r.v[1] = statistics(input, last, given_dtype);
    r.v[2] = statistics(input, last, given_dtype);
    if (!r.v[0] || !r.v[1] || !r.v[2]) return release_all(&r), r;
    tp_tensor *const all[] = {r.v[0], input, r.v[2], r.v[1]};
    layer l = {w, b, dtype, n, eps};
    uint64_t whole = tp_needs_copy(input, dtype) ? tp_last_dims(input, last) : TP_WHOLE;
    if (rows && n && tp_by_pieces(all, TP_COUNTOF(all), whole, layer_part, &l) < 0) release_all(&r);
    return r;
}

typedef struct {
    layer of;
    tp_tensor *sums[2]; /* for the weight and the bias, if wanted: what comes of the rows is added */
} layer_gradient;

static int add_columns(tp_tensor *g, tp_tensor *x, tp_tensor *mean, tp_tensor *rstd, const tp_norm_rows *walk,
                       tp_tensor *const sums[2]) {
    tp_tensor *by_part[2] = {NULL};
    int status = 0;
    for (int i = 0; i < 2 && status == 0; i++)
        if (sums[i]) {
            by_part[i] = tp_new_empty(TP_INTS(parts_of(walk->rows), walk->length), (tp_dtype)x->dtype, x->device);
            status = by_part[i] ? 0 : -1;
        }
    if (status == 0) status = tp_prim_norm_columns(g, x, mean, rstd, tp_norm_words(walk), by_part[0], by_part[1]);
    for (int i = 0; i < 2; i++) {
        tp_autoref *sum =
            by_part[i] && status == 0 ? tp_sum_dim_IntList(by_part[i], TP_INTS(0), false, TP_NO_DTYPE) : NULL;
        if (by_part[i] && status == 0) status = sum ? tp_add__Tensor(sums[i], sum, TP_SCALAR_I(1)) : -1;
        tp_release(by_part[i]);
    }
    return status;
}

/* parts: grad_out, input, the gradient of the input, if wanted, rstd, and the mean, if rows are not scaled about 0. */
static int layer_gradient_part(tp_tensor *const *parts, const void *context) {
    const layer_gradient *l = context;
    tp_dtype dtype = l->of.dtype;
    tp_autoref *g = tp_plain(parts[0], dtype), *x = g ? tp_plain(parts[1], dtype) : NULL,
               *rstd = x ? tp_plain(parts[3], dtype) : NULL, *mean = rstd ? tp_plain(parts[4], dtype) : NULL;
    if (!rstd || (parts[4] && !mean)) return -1;
    tp_norm_rows walk = rows_of(x->numel / l->of.n, l->of.n);
    tp_ints words = tp_norm_words(&walk);
    if (parts[2]) {
        tp_autoref *out = tp_target(parts[2], dtype);
        int status = !out   ? -1
                     : mean ? tp_prim_norm_backward(g, x, l->of.weight, mean, rstd, words, out, NULL, NULL)
                            : tp_prim_norm_rms_backward(g, x, l->of.weight, rstd, words, out);
        if (status < 0 || tp_finish(out, parts[2]) < 0) return -1;
    }
    if (!l->sums[0] && !l->sums[1]) return 0;
    tp_autoref *from = mean ? tp_retain(mean) : tp_new_empty(tp_sizes(rstd), dtype, rstd->device);
    if (!from || (!mean && tp_fill_data(from, TP_SCALAR_I(0)) < 0)) return -1;
    return add_columns(g, x, from, rstd, &walk, l->sums);
}

/* The gradients of the input, the weight and the bias, where they are wanted; mean may be NULL. */
static tp_tensor3 layer_gradients(tp_tensor *grad_out, tp_tensor *input, int64_t last, int64_t rows, int64_t n,
                                  tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, tp_tensor *bias,
                                  const bool wanted[3]) {
    tp_tensor3 r = {{NULL}};
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t sizes[TP_MAX_DIMS];
    tp_ints each = statistic_sizes(input, last, sizes);
    tp_autoref *w = tp_plain(weight, dtype), *g = tp_reshape(grad_out, tp_sizes(input)), *s = tp_reshape(rstd, each),
               *m = mean ? tp_reshape(mean, each) : NULL;
    if (!g || !s || (mean && !m) || (weight && !w)) return r;
    tp_tensor *const like[] = {input, weight, bias};
    layer_gradient l = {{w, NULL, dtype, n, 0}, {NULL}};
    int status = 0;
    for (int i = 0; i < 3 && status == 0; i++)
        if (wanted[i] && like[i]) {
            r.v[i] = tp_new_empty(tp_sizes(like[i]), i ? dtype : (tp_dtype)input->dtype, input->device);
            status = !r.v[i] || (i && tp_fill_data(r.v[i], TP_SCALAR_I(0)) < 0) ? -1 : 0;
            if (i && status == 0) status = (l.sums[i - 1] = tp_reshape(r.v[i], TP_INTS(n))) ? 0 : -1;
        }
    if (status == 0 && rows && n) {
        tp_tensor *const all[] = {g, input, r.v[0], s, m};
        bool copies = tp_needs_copy(input, dtype) || tp_needs_copy(g, dtype);
        status =
            tp_by_pieces(all, TP_COUNTOF(all), copies ? tp_last_dims(input, last) : TP_WHOLE, layer_gradient_part, &l);
    }
    for (int i = 1; i < 3; i++) {
        tp_release(l.sums[i - 1]);
        if (r.v[i] && status == 0 && !(r.v[i] = tp_narrow_steal(r.v[i], (tp_dtype)like[i]->dtype))) status = -1;
    }
    if (status < 0) release_all(&r);
    return r;
}

/* native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd,
 * Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_layer_norm_backward_dense(tp_tensor *grad_out, tp_tensor *input, tp_ints normalized_shape,
                                            tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, tp_tensor *bias,
                                            tp_bools output_mask) {
    int64_t rows, n;
    tp_tensor3 none = {{NULL}};
    if (check_layer(NULL, input, normalized_shape, weight, bias, &rows, &n) < 0) return none;
    if (grad_out->numel != input->numel || mean->numel != rows || rstd->numel != rows)
        return tp_fail(TP_RuntimeError, "native_layer_norm_backward: grad_out, mean or rstd does not fit the input"),
               none;
    return layer_gradients(grad_out, input, normalized_shape.size, rows, n, mean, rstd, weight, bias, output_mask.data);
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

/* The dimensions of a layer of `ndim` sizes, which are the last ones. */
static tp_ints last_dims(const tp_tensor *input, int64_t ndim, int64_t *dims) {
    for (int64_t i = 0; i < ndim; i++) dims[i] = input->ndim - ndim + i;
    return (tp_ints){dims, ndim};
}
/* t (stolen) times the weight, in the dtype of `like`. */
static tp_tensor *weighted_steal(tp_tensor *t, tp_tensor *weight, const tp_tensor *like) {
    tp_autoref *given = t, *scaled = t && weight ? tp_mul_Tensor(t, weight) : tp_retain(t);
    return scaled ? tp_to_dtype(scaled, (tp_dtype)like->dtype, false, false, TP_NO_FORMAT) : NULL;
}
/* What the last dimensions of x are divided by. */
static tp_tensor *root_mean_square(tp_tensor *x, tp_ints over, int64_t n, double e) {
    tp_autoref *square = tp_mul_Tensor(x, x),
               *sum = square ? tp_sum_dim_IntList(square, over, true, TP_NO_DTYPE) : NULL;
    tp_autoref *mean = sum ? tp_div_Scalar(sum, TP_SCALAR_F((double)n)) : NULL;
    tp_autoref *safe = mean ? tp_add_Scalar(mean, TP_SCALAR_F(e), TP_SCALAR_I(1)) : NULL;
    return safe ? tp_sqrt(safe) : NULL;
}
static double root_eps(tp_dtype compute, tp_opt_float eps) {
    return eps.has ? eps.value : compute == TP_FLOAT64 || compute == TP_COMPLEX128 ? 0x1p-52 : 0x1p-23;
}

/* rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor */
tp_tensor *rms_norm_composite(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_opt_float eps) {
    int64_t rows, n, dims[TP_MAX_DIMS];
    if (!tp_is_complex(input) && !(weight && tp_is_complex(weight))) {
        tp_tensor2 r = tp__fused_rms_norm(input, normalized_shape, weight, eps);
        tp_release(r.v[1]);
        return r.v[0];
    }
    if (check_layer("rms_norm", input, normalized_shape, weight, NULL, &rows, &n) < 0) return NULL;
    tp_ints over = last_dims(input, normalized_shape.size, dims);
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *x = tp_to_dtype(input, dtype, false, false, TP_NO_FORMAT),
               *root = x ? root_mean_square(x, over, n, root_eps(dtype, eps)) : NULL;
    return root ? weighted_steal(tp_div_Tensor(x, root), weight, input) : NULL;
}

/* _fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor) */
tp_tensor2 _fused_rms_norm_dense(tp_tensor *given, tp_ints normalized_shape, tp_tensor *weight, tp_opt_float eps) {
    int64_t rows, n, last = normalized_shape.size;
    tp_tensor2 none = {{NULL}};
    tp_autoref *input = tp_still(given);
    if (!input || check_layer(NULL, input, normalized_shape, weight, NULL, &rows, &n) < 0) return none;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    tp_autoref *w = tp_plain(weight, dtype);
    tp_autoref *out = tp_new_empty(tp_sizes(input), (tp_dtype)input->dtype, input->device),
               *rstd = statistics(input, last, dtype);
    if (!out || !rstd || (weight && !w)) return none;
    tp_tensor *const all[] = {out, input, rstd, NULL};
    layer l = {w, NULL, dtype, n, root_eps(dtype, eps)};
    uint64_t whole = tp_needs_copy(input, dtype) ? tp_last_dims(input, last) : TP_WHOLE;
    if (rows && n && tp_by_pieces(all, TP_COUNTOF(all), whole, layer_part, &l) < 0) return none;
    return (tp_tensor2){{tp_take(out), tp_take(rstd)}};
}

/* _fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, Tensor rstd, Tensor? weight, bool[2]
 * output_mask) -> (Tensor, Tensor) */
tp_tensor2 _fused_rms_norm_backward_dense(tp_tensor *grad_out, tp_tensor *input, tp_ints normalized_shape,
                                          tp_tensor *rstd, tp_tensor *weight, tp_bools output_mask) {
    int64_t rows, n;
    tp_tensor2 none = {{NULL}};
    if (check_layer(NULL, input, normalized_shape, weight, NULL, &rows, &n) < 0) return none;
    if (grad_out->numel != input->numel || rstd->numel != rows)
        return tp_fail(TP_RuntimeError, "_fused_rms_norm_backward: grad_out or rstd does not fit the input"), none;
    const bool wanted[] = {output_mask.data[0], output_mask.data[1], false};
    tp_tensor3 r = layer_gradients(grad_out, input, normalized_shape.size, rows, n, NULL, rstd, weight, NULL, wanted);
    return (tp_tensor2){{r.v[0], r.v[1]}};
}
