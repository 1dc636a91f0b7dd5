/* backend_hooks.c: what a backend may define and PyTorch's own code calls: copies, which work on every device here, and
 * attention, which a backend has to bring. */
#include "NativeFunctions.h"
#include "Functions.h"
#include "core/error.h"

/* _copy_from(Tensor self, Tensor dst, bool non_blocking=False) -> Tensor */
tp_tensor *_copy_from_composite(tp_tensor *self, tp_tensor *dst, bool non_blocking) {
    return tp_copy_(dst, self, non_blocking) < 0 ? NULL : tp_retain(dst);
}

/* _copy_from_and_resize(Tensor self, Tensor dst) -> Tensor */
tp_tensor *_copy_from_and_resize_composite(tp_tensor *self, tp_tensor *dst) {
    if (!tp_same_sizes(self, dst) && tp_resize_(dst, tp_sizes(self), TP_NO_FORMAT) < 0) return NULL;
    return _copy_from_composite(self, dst, false);
}

static int refuse(const char *op, const char *mark) {
    return tp_fail(TP_NotImplementedError,
                   "%s not implemented%s This is an operator for privateuse1 backends, please use "
                   "TORCH_LIBRARY_IMPL to override this function",
                   op, mark);
}

/* _scaled_dot_product_fused_attention_overrideable(Tensor query, Tensor key, Tensor value, Tensor? attn_bias=None,
 * float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output,
 * Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor philox_seed, Tensor
 * philox_offset, Tensor debug_attn_mask) */
int _scaled_dot_product_fused_attention_overrideable_composite(
    tp_tensor *query TP_UNUSED, tp_tensor *key TP_UNUSED, tp_tensor *value TP_UNUSED, tp_tensor *attn_bias TP_UNUSED,
    double dropout_p TP_UNUSED, bool is_causal TP_UNUSED, bool return_debug_mask TP_UNUSED,
    tp_opt_float scale TP_UNUSED, tp_value *results TP_UNUSED) {
    return refuse("_scaled_dot_product_fused_attention_overrideable", ".");
}

/* _scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value,
 * Tensor attn_bias, bool[4] grad_input_mask, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt
 * max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float?
 * scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value, Tensor grad_attn_bias) */
tp_tensor4 _scaled_dot_product_fused_attention_overrideable_backward_composite(
    tp_tensor *grad_out TP_UNUSED, tp_tensor *query TP_UNUSED, tp_tensor *key TP_UNUSED, tp_tensor *value TP_UNUSED,
    tp_tensor *attn_bias TP_UNUSED, tp_bools grad_input_mask TP_UNUSED, tp_tensor *out TP_UNUSED,
    tp_tensor *logsumexp TP_UNUSED, tp_tensor *cum_seq_q TP_UNUSED, tp_tensor *cum_seq_k TP_UNUSED,
    int64_t max_q TP_UNUSED, int64_t max_k TP_UNUSED, double dropout_p TP_UNUSED, bool is_causal TP_UNUSED,
    tp_tensor *philox_seed TP_UNUSED, tp_tensor *philox_offset TP_UNUSED, tp_opt_float scale TP_UNUSED) {
    refuse("_scaled_dot_product_fused_attention_overrideable_backward", ":");
    return (tp_tensor4){{NULL}};
}
