/* norm.c: batched normalisations. Weights that are batched are applied by themselves; the rest is lines, samples, or,
 * for statistics over a batch of a sample's own, channels. */
#include "NativeFunctions.h"
#include "batched/batched.h"

static bool any_batched(const tp_tensor *a, const tp_tensor *b) {
    return (a && tp_is_batched(a)) || (b && tp_is_batched(b));
}

/* `normalised` times weight plus bias, each in the given sizes; the first of r, which is stolen, becomes that. */
static tp_tensor3 scaled_steal(tp_tensor3 r, tp_tensor *weight, tp_tensor *bias, tp_ints sizes) {
    tp_autoref *x = r.v[0], *mean = r.v[1], *rstd = r.v[2];
    tp_tensor3 none = {{NULL}};
    if (!x) return none;
    tp_autoref *w = weight ? tp_reshape(weight, sizes) : NULL, *b = bias ? tp_reshape(bias, sizes) : NULL;
    if ((weight && !w) || (bias && !b)) return none;
    tp_autoref *product = w ? tp_mul_Tensor(x, w) : tp_retain(x);
    tp_autoref *sum = !product ? NULL : b ? tp_add_Tensor(product, b, TP_SCALAR_I(1)) : tp_retain(product);
    return sum ? (tp_tensor3){{tp_take(sum), tp_take(mean), tp_take(rstd)}} : none;
}

/* C, 1, 1, ...: for what has a number a channel. */
static tp_ints channel_sizes(const tp_tensor *input, int64_t *room) {
    int n = input->ndim > 1 ? input->ndim - 1 : 1;
    for (int d = 0; d < n; d++) room[d] = 1;
    room[0] = input->ndim > 1 ? input->sizes[1] : 1;
    return (tp_ints){room, n};
}

static tp_tensor3 wrapped_steal(tp_tensor3 r, const tp_batch_scope *s) {
    for (int i = 0; i < 3; i++) r.v[i] = tp_batch_wrap_steal(r.v[i], s->number);
    if (r.v[0] && r.v[1] && r.v[2]) return r;
    for (int i = 0; i < 3; i++) tp_release(r.v[i]);
    return (tp_tensor3){{NULL}};
}

/* Dimension `dim` of each, which has the batch in it, in two: the batch to the front. */
static tp_tensor3 split_steal(tp_tensor3 r, const tp_batch_scope *s, int dim) {
    for (int i = 0; i < 3; i++) {
        tp_autoref *t = r.v[i];
        int d = t && t->ndim > dim ? dim : 0;
        r.v[i] = NULL;
        tp_autoref *split = t ? tp_unflatten_int(t, d, TP_INTS(s->size, t->sizes[d] / s->size)) : NULL;
        if (split) r.v[i] = d ? tp_transpose_int(split, 0, d) : tp_retain(split);
    }
    return wrapped_steal(r, s);
}

static tp_tensor *merged(const tp_batch_scope *s, tp_tensor *t, int dim) {
    tp_autoref *all = tp_batch_all(s, t);
    tp_autoref *turned = !all ? NULL : dim ? tp_transpose_int(all, 0, dim) : tp_retain(all);
    return turned ? tp_flatten_using_ints(turned, dim, dim + 1) : NULL;
}

/* native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 native_layer_norm_batched(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias,
                                     double eps) {
    if (any_batched(weight, bias))
        return scaled_steal(tp_native_layer_norm(input, normalized_shape, NULL, NULL, eps), weight, bias,
                            normalized_shape);
    tp_autobatch s;
    if (tp_batch_enter(&s, (tp_tensors){&input, 1}) < 0) return (tp_tensor3){{NULL}};
    tp_tensor *x = tp_batch_inner_borrow(input);
    return wrapped_steal(tp_native_layer_norm(x, normalized_shape, weight, bias, eps), &s);
}

/* _fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor) */
tp_tensor2 _fused_rms_norm_batched(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_opt_float eps) {
    const tp_tensor2 none = {{NULL}};
    if (weight && tp_is_batched(weight)) {
        tp_tensor2 r = tp__fused_rms_norm(input, normalized_shape, NULL, eps);
        tp_autoref *x = r.v[0], *rstd = r.v[1], *scaled = x ? tp_mul_Tensor(x, weight) : NULL;
        return scaled ? (tp_tensor2){{tp_take(scaled), tp_take(rstd)}} : none;
    }
    tp_autobatch s;
    if (tp_batch_enter(&s, (tp_tensors){&input, 1}) < 0) return none;
    tp_tensor2 r = tp__fused_rms_norm(tp_batch_inner_borrow(input), normalized_shape, weight, eps);
    tp_autoref *x = tp_batch_wrap_steal(r.v[0], s.number), *rstd = tp_batch_wrap_steal(r.v[1], s.number);
    return x && rstd ? (tp_tensor2){{tp_take(x), tp_take(rstd)}} : none;
}

/* native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps)
 * -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_group_norm_batched(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t N, int64_t C,
                                     int64_t HxW, int64_t group, double eps) {
    int64_t room[TP_MAX_DIMS];
    if (any_batched(weight, bias))
        return scaled_steal(tp_native_group_norm(input, NULL, NULL, N, C, HxW, group, eps), weight, bias,
                            channel_sizes(input, room));
    tp_autobatch s;
    if (tp_batch_enter(&s, (tp_tensors){&input, 1}) < 0) return (tp_tensor3){{NULL}};
    tp_autoref *x = merged(&s, input, 0);
    if (!x) return (tp_tensor3){{NULL}};
    return split_steal(tp_native_group_norm(x, weight, bias, N * s.size, C, HxW, group, eps), &s, 0);
}

/* ---- batch norm: each sample has statistics of its own, and so channels of its own ---- */

/* [C] or batched [C] as [B * C]; NULL passes. A statistic that is written is viewed, not copied. */
static int per_channel(const tp_batch_scope *s, tp_tensor *t, tp_tensor **out) {
    tp_autoref *all = t ? tp_batch_all(s, t) : NULL;
    *out = all ? tp_reshape(all, TP_INTS(-1)) : NULL;
    return t && !*out ? -1 : 0;
}

static int check_running(const tp_batch_scope *s, const tp_tensor *input, const tp_tensor *mean, const tp_tensor *var,
                         bool training) {
    if (!training || !tp_batch_has(s, input)) return 0;
    if ((!mean || tp_batch_has(s, mean)) && (!var || tp_batch_has(s, var))) return 0;
    return tp_fail(
        TP_RuntimeError,
        "vmap: native_batch_norm writes running statistics that all samples share, what is different for each "
        "sample. Let the layer keep none (track_running_stats=False), or call it in eval mode");
}

/* A statistic that all share gets what was written to the first of its copies. */
static int write_shared(const tp_batch_scope *s, tp_tensor *t, tp_tensor *copies) {
    if (!t || tp_batch_has(s, t)) return 0;
    tp_autoref *first = tp_narrow(copies, 0, 0, t->numel);
    return first ? tp_copy_(t, first, false) : -1;
}

/* native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * training, float momentum, float eps) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_batch_norm_batched(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                     tp_tensor *running_var, bool training, double momentum, double eps) {
    int64_t room[TP_MAX_DIMS];
    tp_tensor3 none = {{NULL}};
    if (any_batched(weight, bias))
        return scaled_steal(tp_native_batch_norm(input, NULL, NULL, running_mean, running_var, training, momentum, eps),
                            weight, bias, channel_sizes(input, room));
    tp_autobatch s;
    tp_tensor *given[] = {input, running_mean, running_var};
    if (tp_batch_enter(&s, (tp_tensors){given, 3}) < 0) return none;
    if (check_running(&s, input, running_mean, running_var, training) < 0) return none;
    tp_autoref *x = merged(&s, input, 1), *w = NULL, *b = NULL, *mean = NULL, *var = NULL;
    if (!x || per_channel(&s, weight, &w) < 0 || per_channel(&s, bias, &b) < 0 ||
        per_channel(&s, running_mean, &mean) < 0 || per_channel(&s, running_var, &var) < 0)
        return none;
    tp_tensor3 r = tp_native_batch_norm(x, w, b, mean, var, training, momentum, eps);
    if (r.v[0] && training && s.size &&
        (write_shared(&s, running_mean, mean) < 0 || write_shared(&s, running_var, var) < 0)) {
        for (int i = 0; i < 3; i++) tp_release(r.v[i]);
        return none;
    }
    return split_steal(r, &s, 1);
}
