/* attention.c: scaled dot-product attention: from products and softmax, or for many scores by an operator that keeps no
 * matrix of them for its gradient, and on the CPU makes none (cpu/attention.c). */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "native/common/checks.h"
#include "native/common/out.h"
#include "native/common/rounding.h"
#include "prim/transfer.h"

#include <math.h>

/* Scores of a head from which on it is faster to make them part by part; with causality that leaves some out. Who is
 * asked as one operator (a class of tensors) gets the bits of who is not. */
static bool has_many_scores(int64_t queries, int64_t keys, bool is_causal) {
    return queries * keys >= (is_causal ? 64 * 64 : 128 * 128);
}

/* Whether they have the same leading sizes, values as many as keys, and keys the queries' features. */
static bool are_heads(const tp_tensor *q, const tp_tensor *k, const tp_tensor *v) {
    const tp_tensor *const all[] = {q, k, v};
    for (int i = 0; i < 3; i++) {
        if (all[i]->ndim != q->ndim || !all[i]->numel) return false;
        for (int d = 0; d < q->ndim - 2; d++)
            if (all[i]->sizes[d] != q->sizes[d]) return false;
    }
    return k->sizes[k->ndim - 1] == q->sizes[q->ndim - 1] && k->sizes[k->ndim - 2] == v->sizes[k->ndim - 2];
}

static bool are_float32(const tp_tensor *q, const tp_tensor *k, const tp_tensor *v) {
    return q->dtype == TP_FLOAT32 && k->dtype == TP_FLOAT32 && v->dtype == TP_FLOAT32;
}

/* Keys and values with fewer heads than the query are shared by neighbouring heads. */
static tp_tensor *shared_heads(tp_tensor *t, const tp_tensor *query) {
    int64_t sizes[TP_MAX_DIMS], h = t->ndim - 3, factor = t->sizes[h] ? query->sizes[h] / t->sizes[h] : 1;
    if (t->sizes[h] * factor != query->sizes[h])
        return tp_fail_null(
            TP_RuntimeError,
            "scaled_dot_product_attention: the number of heads in key and value must divide the query's");
    tp_autoref *split = tp_unsqueeze(t, h + 1);
    if (!split) return NULL;
    for (int i = 0; i < split->ndim; i++) sizes[i] = i == h + 1 ? factor : split->sizes[i];
    tp_autoref *wide = tp_expand(split, (tp_ints){sizes, split->ndim}, false);
    for (int i = 0; i < t->ndim; i++) sizes[i] = i == h ? query->sizes[h] : t->sizes[i];
    return wide ? tp_reshape(wide, (tp_ints){sizes, t->ndim}) : NULL;
}

/* Which keys a query may see: those that are not after it. */
static tp_tensor *causal_mask(const tp_tensor *scores) {
    int64_t l = scores->sizes[scores->ndim - 2], s = scores->sizes[scores->ndim - 1];
    tp_autoref *rows = tp_arange(TP_SCALAR_I(l), TP_INT64, TP_NO_LAYOUT, scores->device, -1),
               *cols = tp_arange(TP_SCALAR_I(s), TP_INT64, TP_NO_LAYOUT, scores->device, -1);
    tp_autoref *down = rows && cols ? tp_unsqueeze(rows, 1) : NULL;
    return down ? tp_ge_Tensor(down, cols) : NULL;
}

static tp_tensor *masked(tp_tensor *scores, tp_tensor *mask) {
    if (mask->dtype == TP_BOOL) {
        tp_autoref *hidden = tp_logical_not(mask);
        return hidden ? tp_masked_fill_Scalar(scores, hidden, TP_SCALAR_F(-INFINITY)) : NULL;
    }
    return tp_add_Tensor(scores, mask, TP_SCALAR_I(1));
}

/* ---- the operator for many scores, where no kernel makes them part by part ---- */

/* Whether a primitive takes them as a whole, where there is one. */
static bool is_whole(int primitive, const tp_tensor *q, const tp_tensor *k, const tp_tensor *v, const tp_tensor *mask,
                     double dropout_p, bool is_causal) {
    return q->ndim == 4 && are_heads(q, k, v) && are_float32(q, k, v) && dropout_p == 0 &&
           (!mask || mask->dtype == TP_FLOAT32) && q->sizes[2] <= INT32_MAX && k->sizes[2] <= INT32_MAX &&
           has_many_scores(q->sizes[2], k->sizes[2], is_causal) && tp_has_primitive(primitive, q->device);
}

/* A RuntimeError if the mask does not broadcast to [batch, heads, queries, keys]. */
static int check_mask(const tp_tensor *mask, const tp_tensor *q, const tp_tensor *k) {
    const int64_t wanted[] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
    bool fits = !mask || mask->ndim <= 4;
    for (int i = 0; mask && fits && i < mask->ndim; i++)
        fits = mask->sizes[i] == wanted[4 - mask->ndim + i] || mask->sizes[i] == 1;
    return fits ? 0 : tp_fail(TP_RuntimeError, "scaled_dot_product_attention: the mask does not fit the scores");
}

/* t, or a contiguous copy if its features do not lie side by side; new. */
static tp_tensor *operand(tp_tensor *t) {
    if (t->strides[3] == 1 && t->strides[2] >= t->sizes[3] && t->strides[2] <= INT32_MAX) return tp_retain(t);
    tp_autoref *copy = tp_new_empty(tp_sizes(t), TP_FLOAT32, t->device);
    return copy && tp_copy_data(copy, t) == 0 ? tp_take(copy) : NULL;
}

/* Shaped so, but with the heads' rows side by side, as they came from one matrix and go into one; new. */
static tp_tensor *new_result(const tp_tensor *like, int64_t features) {
    int64_t b = like->sizes[0], h = like->sizes[1], n = like->sizes[2];
    int64_t head = h == 1 ? n * features : features,
            row = n == 1 ? features : h * features; /* as contiguous ones have */
    return tp_new_empty_strided(TP_INTS(b, h, n, features), TP_INTS(h * n * features, head, row, 1), TP_FLOAT32,
                                like->device);
}

static double factor_of(const tp_tensor *q, tp_opt_float scale) {
    return scale.has ? scale.value : 1 / sqrt((double)q->sizes[3]);
}

/* t (stolen) with the rows of all heads side by side, as the kernel gives it: they come from one matrix and go into
 * one. */
static tp_tensor *heads_inside_steal(tp_tensor *t) {
    tp_autoref *given = t;
    if (!t || t->ndim != 4) return tp_take(given);
    tp_autoref *turned = tp_transpose_int(t, 1, 2);
    tp_autoref *plain = turned ? tp_contiguous(turned, TP_CONTIGUOUS_FORMAT) : NULL;
    return plain ? tp_transpose_int(plain, 1, 2) : NULL;
}

static tp_tensor2 forward_as_a_whole(tp_tensor *query, tp_tensor *key, tp_tensor *value, bool is_causal,
                                     tp_tensor *mask, tp_opt_float scale) {
    tp_tensor2 none = {{NULL}};
    if (check_mask(mask, query, key) < 0) return none;
    tp_autoref *q = operand(query), *k = q ? operand(key) : NULL, *v = k ? operand(value) : NULL,
               *out = v ? new_result(query, value->sizes[3]) : NULL,
               *lse = out ? tp_new_empty(TP_INTS(query->sizes[0], query->sizes[1], query->sizes[2]), TP_FLOAT32,
                                         query->device)
                          : NULL;
    if (!lse || tp_prim_attention_forward(q, k, v, mask, is_causal, factor_of(q, scale), out, lse) < 0) return none;
    return (tp_tensor2){{tp_take(out), tp_take(lse)}};
}

tp_tensor2 _scaled_dot_product_flash_attention_for_cpu_dense(tp_tensor *query, tp_tensor *key, tp_tensor *value,
                                                             double dropout_p, bool is_causal, tp_tensor *attn_mask,
                                                             tp_opt_float scale) {
    if (is_whole(TP_PRIM_attention_forward, query, key, value, attn_mask, dropout_p, is_causal)) {
        tp_tensor2 made = forward_as_a_whole(query, key, value, is_causal, attn_mask, scale);
        if (made.v[0] || !tp_take_decline()) return made;
    }
    tp_tensor2 r = tp__attention_math(query, key, value, is_causal, attn_mask, scale);
    if (!r.v[0] || (r.v[0] = heads_inside_steal(r.v[0]))) return r;
    tp_release(r.v[1]);
    return (tp_tensor2){{NULL}};
}

static tp_tensor3 backward_as_a_whole(tp_tensor *grad, tp_tensor *query, tp_tensor *key, tp_tensor *value,
                                      tp_tensor *out, tp_tensor *logsumexp, bool is_causal, tp_tensor *mask,
                                      tp_opt_float scale) {
    tp_tensor3 none = {{NULL}};
    if (check_mask(mask, query, key) < 0) return none;
    tp_autoref *q = operand(query), *k = q ? operand(key) : NULL, *v = k ? operand(value) : NULL,
               *o = v ? operand(out) : NULL, *g = o ? operand(grad) : NULL,
               *to_q = g ? new_result(query, query->sizes[3]) : NULL,
               *to_k = to_q ? new_result(key, key->sizes[3]) : NULL,
               *to_v = to_k ? new_result(value, value->sizes[3]) : NULL;
    int status = to_v ? tp_prim_attention_backward(g, q, k, v, o, logsumexp, mask, is_causal, factor_of(q, scale), to_q,
                                                   to_k, to_v)
                      : -1;
    return status < 0 ? none : (tp_tensor3){{tp_take(to_q), tp_take(to_k), tp_take(to_v)}};
}

tp_tensor3 _scaled_dot_product_attention_backward_dense(tp_tensor *grad_out, tp_tensor *query, tp_tensor *key,
                                                        tp_tensor *value, tp_tensor *out, tp_tensor *logsumexp,
                                                        double dropout_p, bool is_causal, tp_tensor *attn_mask,
                                                        tp_opt_float scale) {
    bool whole = is_whole(TP_PRIM_attention_backward, query, key, value, attn_mask, dropout_p, is_causal) &&
                 tp_same_sizes(grad_out, out) && grad_out->dtype == TP_FLOAT32 && logsumexp->dtype == TP_FLOAT32 &&
                 tp_is_contiguous(logsumexp) && logsumexp->numel == query->numel / query->sizes[3];
    if (whole) {
        tp_tensor3 made = backward_as_a_whole(grad_out, query, key, value, out, logsumexp, is_causal, attn_mask, scale);
        if (made.v[0] || !tp_take_decline()) return made;
    }
    tp_tensor3 r = tp__attention_math_backward(grad_out, query, key, value, is_causal, attn_mask, scale);
    bool made = r.v[0] != NULL;
    for (int i = 0; made && i < 3; i++) made = (r.v[i] = heads_inside_steal(r.v[i])) != NULL;
    for (int i = 0; !made && i < 3; i++) {
        tp_release(r.v[i]);
        r.v[i] = NULL;
    }
    return r;
}

/* Whether that operator takes them: plain float32 of one batch, and nobody wants a tangent. A class that answers for
 * its tensors gets it whatever their size and dtype are: of a DTensor a head is not cut, and by scores heads and batch
 * are one dimension. */
static bool is_for_kernel(const tp_tensor *q, const tp_tensor *k, const tp_tensor *v, const tp_tensor *mask,
                          double dropout_p, bool is_causal) {
    bool is_answered = q->keys & TP_BIT(Python);
    bool many = has_many_scores(q->sizes[q->ndim - 2], k->sizes[k->ndim - 2], is_causal);
    if (tp_tls.batched || tp_tls.forward || dropout_p != 0 || !(many || is_answered)) return false;
    bool masked_plainly =
        !mask || ((mask->dtype == TP_BOOL || mask->dtype == TP_FLOAT32 || is_answered) && mask->ndim <= q->ndim);
    return (q->ndim == 3 || q->ndim == 4) && are_heads(q, k, v) && (is_answered || are_float32(q, k, v)) &&
           masked_plainly;
}

/* -inf where a mask of bools hides; other masks as they are. New. */
static tp_tensor *as_addend(tp_tensor *mask) {
    if (!mask || mask->dtype != TP_BOOL) return tp_retain(mask);
    tp_autoref *zeros = tp_zeros_like(mask, TP_FLOAT32, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return zeros ? masked(zeros, mask) : NULL;
}

static tp_tensor *by_kernel(tp_tensor *q, tp_tensor *k, tp_tensor *v, tp_tensor *mask, bool is_causal,
                            tp_opt_float scale) {
    tp_autoref *addend = as_addend(mask);
    if (mask && !addend) return NULL;
    bool heads = q->ndim == 4; /* else there is one */
    tp_autoref *q4 = heads ? tp_retain(q) : tp_unsqueeze(q, 1), *k4 = heads ? tp_retain(k) : tp_unsqueeze(k, 1),
               *v4 = heads ? tp_retain(v) : tp_unsqueeze(v, 1),
               *mask4 = !heads && mask && mask->ndim == 3 ? tp_unsqueeze(addend, 1) : tp_retain(addend);
    if (mask && !mask4) return NULL;
    if (!q4 || !k4 || !v4) return NULL;
    tp_tensor2 r = tp__scaled_dot_product_flash_attention_for_cpu(q4, k4, v4, 0, is_causal, mask4, scale);
    tp_release(r.v[1]);
    tp_autoref *out = r.v[0];
    return out && !heads ? tp_squeeze_dim(out, 1) : tp_take(out);
}

/* ---- from the matrix of all scores ---- */

/* The weights of the values that a dropout leaves: one that is drawn, or `kept`, after which the values grow. */
static tp_tensor *thinned(tp_tensor *weights, double dropout_p, tp_tensor *kept) {
    if (dropout_p == 0) return tp_retain(weights);
    if (!kept) return tp_dropout(weights, dropout_p, true);
    tp_autoref *out = tp_logical_not(kept);
    return out ? tp_masked_fill_Scalar(weights, out, TP_SCALAR_I(0)) : NULL;
}
/* The values weighted, and the weights. */
static tp_tensor2 by_scores(tp_tensor *query, tp_tensor *k, tp_tensor *v, tp_tensor *attn_mask, double dropout_p,
                            bool is_causal, tp_tensor *kept, tp_opt_float scale) {
    tp_tensor2 r = {{NULL}};
    double factor = scale.has ? scale.value : 1 / sqrt((double)query->sizes[query->ndim - 1]);
    tp_autoref *turned = tp_transpose_int(k, -2, -1),
               *scaled = turned ? tp_mul_Scalar(query, TP_SCALAR_F(factor)) : NULL;
    tp_autoref *scores = scaled ? tp_matmul(scaled, turned) : NULL;
    if (!scores) return r;
    tp_autoref *mask = is_causal ? causal_mask(scores) : tp_retain(attn_mask);
    if ((is_causal && !mask) || (mask && tp_check_takes(scores, tp_sizes(mask)) < 0)) return r;
    tp_autoref *seen = mask ? masked(scores, mask) : tp_retain(scores),
               *all = seen ? (mask ? tp__safe_softmax(seen, -1, TP_NO_DTYPE) : tp_softmax_int(seen, -1, TP_NO_DTYPE))
                           : NULL;
    tp_autoref *left = all ? thinned(all, dropout_p, kept) : NULL;
    bool wide = left && left->dtype != v->dtype; /* as the mask is */
    tp_autoref *weights = wide ? tp_to_dtype(left, (tp_dtype)v->dtype, false, false, TP_NO_FORMAT) : tp_retain(left);
    bool grows = dropout_p != 0 && kept;
    tp_autoref *values = grows ? tp_mul_Scalar(v, TP_SCALAR_F(1 / (1 - dropout_p))) : tp_retain(v);
    tp_tensor *made = weights && values ? tp_matmul(weights, values) : NULL;
    return made ? (tp_tensor2){{made, tp_take(left)}} : r;
}

/* scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0,
 * bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor */
tp_tensor *scaled_dot_product_attention_composite(tp_tensor *query, tp_tensor *key, tp_tensor *value,
                                                  tp_tensor *attn_mask, double dropout_p, bool is_causal,
                                                  tp_opt_float scale, bool enable_gqa) {
    if (query->ndim < 2 || key->ndim < 2 || value->ndim < 2)
        return tp_fail_null(
            TP_RuntimeError,
            "scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional");
    const tp_dtype dtype = (tp_dtype)query->dtype;
    if (tp_check_dtype("scaled_dot_product_attention", "key", key, dtype) < 0 ||
        tp_check_dtype("scaled_dot_product_attention", "value", value, dtype) < 0)
        return NULL;
    bool mask_fits = !attn_mask || attn_mask->dtype == TP_BOOL || attn_mask->dtype == TP_FLOAT32 ||
                     (tp_dtype)attn_mask->dtype == dtype;
    if (!mask_fits)
        return tp_fail_null(TP_RuntimeError,
                            "scaled_dot_product_attention: expected attn_mask to be of bools, float32 or %s, but got "
                            "%s",
                            tp_dtype_names[dtype], tp_dtype_names[attn_mask->dtype]);
    if (is_causal && attn_mask)
        return tp_fail_null(TP_RuntimeError,
                            "scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    if (attn_mask && attn_mask->dtype == TP_FLOAT32 &&
        tp_is_reduced_dtype(dtype)) { /* else the layer below casts all */
        tp_autoref *q = tp_widened(query), *wide_k = q ? tp_widened(key) : NULL,
                   *wide_v = wide_k ? tp_widened(value) : NULL;
        if (!wide_v) return NULL;
        return tp_rounded_steal(
            tp_scaled_dot_product_attention(q, wide_k, wide_v, attn_mask, dropout_p, is_causal, scale, enable_gqa),
            dtype);
    }
    bool share = enable_gqa && query->ndim > 2;
    tp_autoref *k = share ? shared_heads(key, query) : tp_retain(key),
               *v = share ? shared_heads(value, query) : tp_retain(value);
    if (!k || !v) return NULL;
    if (is_for_kernel(query, k, v, attn_mask, dropout_p, is_causal))
        return by_kernel(query, k, v, attn_mask, is_causal, scale);
    tp_tensor2 made = by_scores(query, k, v, attn_mask, dropout_p, is_causal, NULL, scale);
    tp_release(made.v[1]);
    return made.v[0];
}

/* _scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float
 * dropout_p=0.0, bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False) ->
 * (Tensor, Tensor) */
tp_tensor2 _scaled_dot_product_attention_math_composite(tp_tensor *query, tp_tensor *key, tp_tensor *value,
                                                        tp_tensor *attn_mask, double dropout_p, bool is_causal,
                                                        tp_tensor *dropout_mask, tp_opt_float scale, bool enable_gqa) {
    tp_tensor2 r = {{NULL}};
    if (is_causal && attn_mask)
        return tp_fail(TP_RuntimeError,
                       "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"),
               r;
    /* A mask of bools is one of ones and zeros here. */
    tp_autoref *mask = attn_mask && attn_mask->dtype == TP_BOOL
                           ? tp_to_dtype(attn_mask, (tp_dtype)query->dtype, false, false, TP_NO_FORMAT)
                           : tp_retain(attn_mask);
    if (attn_mask && !mask) return r;
    bool share = enable_gqa && query->ndim > 2 && key->ndim > 2 && value->ndim > 2;
    tp_autoref *k = share ? shared_heads(key, query) : tp_retain(key),
               *v = share ? shared_heads(value, query) : tp_retain(value);
    return k && v ? by_scores(query, k, v, mask, dropout_p, is_causal, dropout_mask, scale) : r;
}

/* _fused_sdp_choice(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, bool
 * is_causal=False, *, float? scale=None, bool enable_gqa=False) -> int: 1 where an operator that keeps no scores takes
 * them, 0 for the matrix of all scores */
int _fused_sdp_choice_composite(tp_tensor *query, tp_tensor *key, tp_tensor *value, tp_tensor *attn_mask,
                                double dropout_p, bool is_causal, tp_opt_float scale TP_UNUSED, bool enable_gqa,
                                int64_t *result) {
    const tp_tensor *const all[] = {query, key, value};
    bool fits = dropout_p == 0 && !(attn_mask && is_causal);
    for (int i = 0; fits && i < 3; i++) {
        const tp_tensor *t = all[i];
        fits = t->ndim == 4 && tp_is_floating(t) && t->dtype == query->dtype && t->numel > 0 && t->strides[3] == 1 &&
               t->sizes[3] == query->sizes[3] && t->sizes[0] == query->sizes[0] &&
               (t->sizes[1] == query->sizes[1] || (enable_gqa && query->sizes[1] % t->sizes[1] == 0));
    }
    fits = fits && key->sizes[1] == value->sizes[1];
    if (fits && attn_mask) fits = attn_mask->ndim == 2 || attn_mask->ndim == 4;
    *result = fits;
    return 0;
}
