/* products.c: batched matrix products and convolutions.
 *
 * A product broadcasts over what is in front of its matrices. A convolution takes the batch as more samples where all
 * share the weight, and else as more groups: each sample's channels meet its own weight only. */
#include "NativeFunctions.h"
#include "batched/batched.h"

/* ---- matrix products ---- */

static tp_tensor *product(tp_tensor *a, tp_tensor *b) {
    tp_autobatch s;
    tp_tensor *both[] = {a, b};
    if (tp_batch_enter(&s, (tp_tensors){both, 2}) < 0) return NULL;
    tp_tensor *x = tp_batch_has(&s, a) ? tp_batch_inner_borrow(a) : a;
    tp_tensor *y = tp_batch_has(&s, b) ? tp_batch_inner_borrow(b) : b;
    return tp_batch_wrap_steal(tp_matmul(x, y), s.number);
}

/* mm(Tensor self, Tensor mat2) -> Tensor */
tp_tensor *mm_batched(tp_tensor *self, tp_tensor *mat2) {
    if (self->ndim != 2 || mat2->ndim != 2)
        return tp_fail_null(TP_RuntimeError, "%s must be a matrix", self->ndim != 2 ? "self" : "mat2");
    return product(self, mat2);
}

/* bmm(Tensor self, Tensor mat2) -> Tensor */
tp_tensor *bmm_batched(tp_tensor *self, tp_tensor *mat2) {
    if (self->ndim != 3 || mat2->ndim != 3)
        return tp_fail_null(TP_RuntimeError, "%s must be a 3D tensor", self->ndim != 3 ? "batch1" : "batch2");
    if (self->sizes[0] != mat2->sizes[0])
        return tp_fail_null(TP_RuntimeError, "bmm: batches of %lld and %lld matrices", (long long)self->sizes[0],
                            (long long)mat2->sizes[0]);
    return product(self, mat2);
}

/* ---- the batch in other places ---- */

/* [B, N, ...] as [B * N, ...], and back. */
static tp_tensor *as_samples(const tp_batch_scope *s, tp_tensor *t) {
    tp_autoref *all = tp_batch_all(s, t);
    return all ? tp_flatten_using_ints(all, 0, 1) : NULL;
}
static tp_tensor *of_samples(const tp_batch_scope *s, tp_tensor *t) {
    tp_autoref *split = tp_unflatten_int(t, 0, TP_INTS(s->size, t->sizes[0] / s->size));
    return split ? tp_batch_wrap_steal(tp_retain(split), s->number) : NULL;
}

/* [B, N, C, ...] as [N, B * C, ...], and back. */
static tp_tensor *as_channels(const tp_batch_scope *s, tp_tensor *t) {
    tp_autoref *all = tp_batch_all(s, t);
    tp_autoref *turned = all ? tp_transpose_int(all, 0, 1) : NULL;
    return turned ? tp_flatten_using_ints(turned, 1, 2) : NULL;
}
static tp_tensor *of_channels(const tp_batch_scope *s, tp_tensor *t) {
    tp_autoref *split = tp_unflatten_int(t, 1, TP_INTS(s->size, t->sizes[1] / s->size));
    return split ? tp_batch_wrap_steal(tp_transpose_int(split, 0, 1), s->number) : NULL;
}

/* ---- convolution ---- */

/* One number a channel, [B, C] or [C], in the shape of a batched result [B, N, C, ...]. */
static tp_tensor *per_channel(const tp_batch_scope *s, tp_tensor *t, int ndim) {
    tp_autoref *one = tp_batch_one(s, t);
    int64_t sizes[TP_MAX_DIMS + 1];
    if (!one) return NULL;
    for (int d = 0; d <= ndim; d++) sizes[d] = 1;
    sizes[0] = one->sizes[0];
    sizes[2] = one->sizes[1];
    return tp_reshape(one, (tp_ints){sizes, ndim + 1});
}

static tp_tensor *with_bias(const tp_batch_scope *s, tp_tensor *made, tp_tensor *bias) {
    tp_autoref *shaped = per_channel(s, bias, made->ndim);
    tp_autoref *all = tp_batch_all(s, made);
    return shaped && all ? tp_batch_wrap_steal(tp_add_Tensor(all, shaped, TP_SCALAR_I(1)), s->number) : NULL;
}

/* convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool
 * transposed, SymInt[] output_padding, SymInt groups) -> Tensor */
tp_tensor *convolution_batched(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                               tp_ints dilation, bool transposed, tp_ints output_padding, int64_t groups) {
    tp_autobatch s;
    tp_tensor *given[] = {input, weight, bias};
    if (tp_batch_enter(&s, (tp_tensors){given, 3}) < 0) return NULL;
    bool apart = tp_batch_has(&s, bias) && !tp_batch_has(&s, weight); /* each sample adds a bias of its own */
    if (!tp_batch_has(&s, weight)) {
        bool many = tp_batch_has(&s, input);
        tp_autoref *x = many ? as_samples(&s, input) : tp_retain(input);
        tp_autoref *y = x ? tp_convolution(x, weight, apart ? NULL : bias, stride, padding, dilation, transposed,
                                           output_padding, groups)
                          : NULL;
        tp_autoref *made = !y ? NULL : many ? of_samples(&s, y) : tp_retain(y);
        return !made ? NULL : apart ? with_bias(&s, made, bias) : tp_take(made);
    }
    tp_autoref *x = as_channels(&s, input), *w = as_samples(&s, weight), *b = bias ? as_samples(&s, bias) : NULL;
    if (!x || !w || (bias && !b)) return NULL;
    tp_autoref *y = tp_convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups * s.size);
    return y ? of_channels(&s, y) : NULL;
}

/* convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[]
 * padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 convolution_backward_batched(tp_tensor *grad_output, tp_tensor *input, tp_tensor *weight, tp_ints bias_sizes,
                                        tp_ints stride, tp_ints padding, tp_ints dilation, bool transposed,
                                        tp_ints output_padding, int64_t groups, tp_bools output_mask) {
    tp_autobatch s;
    tp_tensor3 made = {{NULL}}, none = {{NULL}};
    tp_tensor *given[] = {grad_output, input, weight};
    if (tp_batch_enter(&s, (tp_tensors){given, 3}) < 0) return none;
    const bool *mask = output_mask.data;
    bool shared = !tp_batch_has(&s, weight) && !mask[1] && !mask[2];
    tp_autoref *g = shared ? as_samples(&s, grad_output) : as_channels(&s, grad_output);
    tp_autoref *x = shared ? as_samples(&s, input) : as_channels(&s, input);
    tp_autoref *w = shared ? tp_retain(weight) : as_samples(&s, weight);
    if (!g || !x || !w) return none;
    tp_ints sizes = bias_sizes.size == 1 && !shared ? TP_INTS(bias_sizes.data[0] * s.size) : bias_sizes;
    tp_tensor3 r = tp_convolution_backward(g, x, w, sizes, stride, padding, dilation, transposed, output_padding,
                                           shared ? groups : groups * s.size, output_mask);
    tp_autoref *to_input = r.v[0], *to_weight = r.v[1], *to_bias = r.v[2];
    if (tp_error_pending()) return none;
    if (to_input) made.v[0] = shared ? of_samples(&s, to_input) : of_channels(&s, to_input);
    if (to_weight) made.v[1] = of_samples(&s, to_weight);
    if (to_bias) made.v[2] = of_samples(&s, to_bias);
    if ((!to_input || made.v[0]) && (!to_weight || made.v[1]) && (!to_bias || made.v[2])) return made;
    for (int i = 0; i < 3; i++) tp_release(made.v[i]);
    return none;
}
