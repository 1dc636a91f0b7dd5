/* network.c: operators of networks whose kernels on OpenCL devices are other operators' kernels. */
#include "NativeFunctions.h"
#include "prim/transfer.h"
#include "native/gather.h"
#include "opencl/index.h"

#include <string.h>

/* ---- embedding ---- */

/* embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False)
 *   -> Tensor */
tp_tensor *embedding_opencl(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx, bool scale_grad_by_freq,
                            bool sparse) {
    tp_autoref *out = embedding_meta(weight, indices, padding_idx, scale_grad_by_freq, sparse);
    tp_autoref *flat = out ? tp_reshape(indices, TP_INTS(-1)) : NULL;
    tp_autoref *rows = flat ? tp_index_take(TP_INDEX_FAULT(TP_IndexError, "embedding"), weight, 0, flat, false) : NULL;
    return rows ? tp_reshape(rows, tp_sizes(out)) : NULL;
}

/* How often each index occurs, at each of its places, as a column. */
static tp_tensor *frequencies(tp_tensor *flat, int64_t n, tp_dtype dtype) {
    tp_autoref *ones = tp_ones(tp_sizes(flat), dtype, TP_STRIDED, flat->device, -1);
    tp_autoref *none = ones ? tp_zeros(TP_INTS(n), dtype, TP_STRIDED, flat->device, -1) : NULL;
    if (!none || tp_index_add_(none, 0, flat, ones, TP_SCALAR_I(1)) < 0) return NULL;
    tp_autoref *counts = tp_index_select(none, 0, flat);
    return counts ? tp_unsqueeze(counts, 1) : NULL;
}

/* embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx,
 *   bool scale_grad_by_freq) -> Tensor */
tp_tensor *embedding_dense_backward_opencl(tp_tensor *grad_output, tp_tensor *indices, int64_t num_weights,
                                           int64_t padding_idx, bool scale_grad_by_freq) {
    tp_autoref *out = embedding_dense_backward_meta(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq);
    if (!out || tp_fill_data(out, TP_SCALAR_I(0)) < 0) return NULL;
    if (grad_output->numel == 0) return tp_take(out);
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1)), *rows = tp_reshape(grad_output, TP_INTS(-1, out->sizes[1]));
    tp_autoref *column = flat && rows ? tp_unsqueeze(flat, 1) : NULL;
    tp_autoref *padding = column ? tp_eq_Scalar(column, TP_SCALAR_I(padding_idx)) : NULL;
    tp_autoref *kept = padding ? tp_masked_fill_Scalar(rows, padding, TP_SCALAR_I(0)) : NULL;
    if (kept && scale_grad_by_freq) {
        tp_autoref *counts = frequencies(flat, num_weights, (tp_dtype)kept->dtype);
        tp_tensor *shared = counts ? tp_div_Tensor(kept, counts) : NULL;
        tp_release(kept);
        kept = shared;
    }
    return kept && tp_index_add_(out, 0, flat, kept, TP_SCALAR_I(1)) == 0 ? tp_take(out) : NULL;
}
