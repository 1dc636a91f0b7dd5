/* attention.c: scaled dot-product attention from products and softmax. */
#include "NativeFunctions.h"
#include "native/checks.h"

#include <math.h>

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

/* Which keys a query may see: those that are not behind it. */
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
    bool share = enable_gqa && query->ndim > 2;
    tp_autoref *k = share ? shared_heads(key, query) : tp_retain(key),
               *v = share ? shared_heads(value, query) : tp_retain(value);
    if (!k || !v) return NULL;
    double factor = scale.has ? scale.value : 1 / sqrt((double)query->sizes[query->ndim - 1]);
    tp_autoref *turned = tp_transpose_int(k, -2, -1),
               *scaled = turned ? tp_mul_Scalar(query, TP_SCALAR_F(factor)) : NULL;
    tp_autoref *scores = scaled ? tp_matmul(scaled, turned) : NULL;
    if (!scores) return NULL;
    tp_autoref *mask = is_causal ? causal_mask(scores) : tp_retain(attn_mask);
    if (is_causal && !mask) return NULL;
    tp_autoref *seen = mask ? masked(scores, mask) : tp_retain(scores),
               *all = seen ? (mask ? tp__safe_softmax(seen, -1, TP_NO_DTYPE) : tp_softmax_int(seen, -1, TP_NO_DTYPE))
                           : NULL;
    tp_autoref *weights = all && dropout_p != 0 ? tp_dropout(all, dropout_p, true) : tp_retain(all);
    return weights ? tp_matmul(weights, v) : NULL;
}
