/* attention_seeded.c: attention whose dropout is that of a seed and an offset, which it gives back beside the result:
 * the gradient draws the same numbers again (random_keys.c) and keeps no mask. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"
#include "core/generator.h"
#include "prim/table.h"

/* ---- the shares that are left ---- */

/* A seed and an offset of the device's generator, as a tensor of two uint64 on the CPU; zeros where nothing is drawn.
 */
static tp_tensor *new_key(const tp_tensor *query, double dropout_p) {
    int64_t *room;
    tp_philox_state state = {0, 0};
    tp_generator *g = dropout_p > 0 ? tp_default_generator_borrow(query->device) : NULL;
    if (dropout_p > 0 && (!g || tp_generator_reserve(g, 1, &state) < 0)) return NULL;
    tp_autoref *table = tp_table_int64(TP_INTS(2), &room);
    if (!table) return NULL;
    room[0] = (int64_t)state.seed;
    room[1] = (int64_t)state.offset;
    return tp_view_dtype(table, TP_UINT64);
}

/* For each share whether it is left, by the numbers of a key: *kept, NULL without a dropout. */
static int draw_kept(const tp_tensor *q, const tp_tensor *k, double dropout_p, tp_tensor *key, tp_tensor **kept) {
    *kept = NULL;
    if (dropout_p == 0) return 0;
    tp_ints sizes = TP_INTS(q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]);
    tp_autoref *there = tp_to_device(key, q->device, TP_UINT64, false, false, TP_NO_FORMAT),
               *draws = there ? tp_zeros(sizes, TP_FLOAT32, TP_NO_LAYOUT, q->device, -1) : NULL;
    if (!draws || tp__philox_uniform_(draws, there, 0, 1) < 0) return -1;
    *kept = tp_ge_Scalar(draws, TP_SCALAR_F(dropout_p));
    return *kept ? 0 : -1;
}

static int check_heads(const char *op, const tp_tensor *q, const tp_tensor *k, const tp_tensor *v, double dropout_p) {
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4)
        return tp_fail(TP_RuntimeError, "%s: query, key and value are of [batch, heads, length, features]", op);
    if (dropout_p >= 0 && dropout_p < 1) return 0;
    return tp_fail(TP_RuntimeError, "%s: a dropout of %g is none of [0, 1)", op, dropout_p);
}

static tp_tensor *as_float(tp_tensor *t) {
    tp_autoref *apart = t ? tp_detach(t) : NULL;
    return apart ? tp_to_dtype(apart, TP_FLOAT32, false, false, TP_NO_FORMAT) : NULL;
}

/* The values weighted and the logarithms of the scores' sums, in float32 and without a gradient. */
static tp_tensor2 attend(tp_tensor *q, tp_tensor *k, tp_tensor *v, tp_tensor *bias, double dropout_p, bool is_causal,
                         tp_tensor *key, tp_opt_float scale) {
    tp_tensor *kept_or_none, *sums;
    if (draw_kept(q, k, dropout_p, key, &kept_or_none) < 0) return (tp_tensor2){{NULL}};
    tp_autoref *kept = kept_or_none;
    tp_tensor2 made = tp__attention_dropped(q, k, v, is_causal, bias, kept, dropout_p, scale);
    tp_autoref *out = made.v[0], *wide = made.v[1];
    if (!out || !(sums = as_float(wide))) return (tp_tensor2){{NULL}};
    return (tp_tensor2){{tp_take(out), sums}};
}

/* ---- flash ---- */

/* _scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool
 * is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor
 * cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask) */
int _scaled_dot_product_flash_attention_composite(tp_tensor *query, tp_tensor *key, tp_tensor *value, double dropout_p,
                                                  bool is_causal, bool return_debug_mask TP_UNUSED, tp_opt_float scale,
                                                  tp_value *results) {
    if (check_heads("_scaled_dot_product_flash_attention", query, key, value, dropout_p) < 0) return -1;
    tp_autoref *rng = new_key(query, dropout_p),
               *unused = rng ? tp_zeros(TP_EMPTY_INTS, TP_UINT64, TP_NO_LAYOUT, TP_CPU, -1) : NULL,
               *debug = unused ? tp_zeros(TP_INTS(0), (tp_dtype)query->dtype, TP_NO_LAYOUT, query->device, -1) : NULL;
    if (!debug) return -1;
    tp_tensor2 made = attend(query, key, value, NULL, dropout_p, is_causal, rng, scale);
    if (!made.v[0]) return -1;
    tp_tensor *const tensors[] = {made.v[0],    made.v[1],       NULL,          NULL, NULL, NULL,
                                  tp_take(rng), tp_take(unused), tp_take(debug)};
    for (int i = 0; i < 9; i++) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = tensors[i]};
    results[4] = (tp_value){.tag = TP_INT, .i = query->sizes[2]};
    results[5] = (tp_value){.tag = TP_INT, .i = key->sizes[2]};
    return 0;
}

/* _scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out,
 * Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal,
 * Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor
 * grad_value) */
tp_tensor3 _scaled_dot_product_flash_attention_backward_composite(
    tp_tensor *grad_out, tp_tensor *query, tp_tensor *key, tp_tensor *value, tp_tensor *out TP_UNUSED,
    tp_tensor *logsumexp TP_UNUSED, tp_tensor *cum_seq_q TP_UNUSED, tp_tensor *cum_seq_k TP_UNUSED,
    int64_t max_q TP_UNUSED, int64_t max_k TP_UNUSED, double dropout_p, bool is_causal, tp_tensor *philox_seed,
    tp_tensor *philox_offset TP_UNUSED, tp_opt_float scale) {
    tp_tensor *kept_or_none;
    if (check_heads("_scaled_dot_product_flash_attention_backward", query, key, value, dropout_p) < 0 ||
        draw_kept(query, key, dropout_p, philox_seed, &kept_or_none) < 0)
        return (tp_tensor3){{NULL}};
    tp_autoref *kept = kept_or_none;
    tp_tensor4 r = tp__attention_dropped_backward(grad_out, query, key, value, is_causal, NULL, kept, dropout_p, scale);
    tp_release(r.v[3]);
    return (tp_tensor3){{r.v[0], r.v[1], r.v[2]}};
}

/* ---- efficient ---- */

/* One number of a key as int64, without dimensions. */
static tp_tensor *number_of(tp_tensor *key, int64_t i) {
    tp_autoref *bits = tp_view_dtype(key, TP_INT64), *one = bits ? tp_select_int(bits, 0, i) : NULL;
    return one ? tp_clone(one, TP_NO_FORMAT) : NULL;
}

/* The sums of each query, filled up with zeros to a multiple of 32; none if they are not asked for. */
static tp_tensor *padded_sums(tp_tensor *sums, bool wanted) {
    const int64_t n = sums->sizes[2];
    if (!wanted) return tp_narrow(sums, 2, 0, 0);
    return tp_constant_pad_nd(sums, TP_INTS(0, (n + 31) / 32 * 32 - n), TP_SCALAR_I(0));
}

/* _scaled_dot_product_efficient_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_bias, bool
 * compute_log_sumexp, float dropout_p=0.0, bool is_causal=False, *, float? scale=None) -> (Tensor output, Tensor
 * log_sumexp, Tensor philox_seed, Tensor philox_offset) */
tp_tensor4 _scaled_dot_product_efficient_attention_composite(tp_tensor *query, tp_tensor *key, tp_tensor *value,
                                                             tp_tensor *attn_bias, bool compute_log_sumexp,
                                                             double dropout_p, bool is_causal, tp_opt_float scale) {
    tp_tensor4 none = {{NULL}};
    if (check_heads("_scaled_dot_product_efficient_attention", query, key, value, dropout_p) < 0) return none;
    tp_autoref *rng = new_key(query, dropout_p), *seed = rng ? number_of(rng, 0) : NULL,
               *offset = seed ? number_of(rng, 1) : NULL;
    if (!offset) return none;
    tp_tensor2 made = attend(query, key, value, attn_bias, dropout_p, is_causal, rng, scale);
    tp_autoref *out = made.v[0], *sums = made.v[1], *padded = out ? padded_sums(sums, compute_log_sumexp) : NULL;
    if (!padded) return none;
    return (tp_tensor4){{tp_take(out), tp_take(padded), tp_take(seed), tp_take(offset)}};
}

/* The key of a seed and an offset. New. */
static tp_tensor *key_of(tp_tensor *seed, tp_tensor *offset) {
    tp_tensor *const both[] = {seed, offset};
    tp_autoref *row = tp_stack((tp_tensors){both, 2}, 0);
    return row ? tp_view_dtype(row, TP_UINT64) : NULL;
}

/* _scaled_dot_product_efficient_attention_backward(Tensor grad_out_, Tensor query, Tensor key, Tensor value, Tensor
 * attn_bias, Tensor out, Tensor logsumexp, Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4]
 * grad_input_mask, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor, Tensor, Tensor) */
tp_tensor4 _scaled_dot_product_efficient_attention_backward_composite(
    tp_tensor *grad_out_, tp_tensor *query, tp_tensor *key, tp_tensor *value, tp_tensor *attn_bias,
    tp_tensor *out TP_UNUSED, tp_tensor *logsumexp TP_UNUSED, tp_tensor *philox_seed, tp_tensor *philox_offset,
    double dropout_p, tp_bools grad_input_mask, bool is_causal, tp_opt_float scale) {
    tp_tensor4 none = {{NULL}};
    tp_tensor *kept_or_none, *bias = attn_bias->numel ? attn_bias : NULL;
    if (check_heads("_scaled_dot_product_efficient_attention_backward", query, key, value, dropout_p) < 0) return none;
    tp_autoref *rng = key_of(philox_seed, philox_offset);
    if (!rng || draw_kept(query, key, dropout_p, rng, &kept_or_none) < 0) return none;
    tp_autoref *kept = kept_or_none;
    tp_tensor4 r =
        tp__attention_dropped_backward(grad_out_, query, key, value, is_causal, bias, kept, dropout_p, scale);
    tp_autoref *of_bias = r.v[3];
    r.v[3] = NULL;
    if (!r.v[0] || !bias || !grad_input_mask.data[3]) return r;
    if ((r.v[3] = tp_sum_to_size(of_bias, tp_sizes(bias)))) return r;
    for (int i = 0; i < 3; i++) tp_release(r.v[i]);
    return none;
}
