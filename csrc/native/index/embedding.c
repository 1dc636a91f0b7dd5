/* embedding.c: rows of a table by index, what flows back into the table, and rows kept short. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/index/gather.h"
#include "prim/plain.h"

#include <string.h>

static int check(const tp_tensor *weight, const tp_tensor *indices) {
    if (weight->ndim != 2) return tp_fail(TP_RuntimeError, "'weight' must be 2-D");
    if (indices->dtype != TP_INT64 && indices->dtype != TP_INT32)
        return tp_fail(
            TP_RuntimeError,
            "Expected tensor for argument 'indices' to have one of the following scalar types: Long, Int; but got %s",
            tp_scalar_type_name((tp_dtype)indices->dtype));
    return indices->ndim < TP_MAX_DIMS ? 0 : tp_fail(TP_RuntimeError, "embedding: too many dimensions");
}

/* embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) ->
 * Tensor */
tp_tensor *embedding_dense(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx TP_UNUSED,
                           bool scale_grad_by_freq TP_UNUSED, bool sparse TP_UNUSED) {
    int64_t sizes[TP_MAX_DIMS];
    if (check(weight, indices) < 0) return NULL;
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1));
    tp_autoref *rows = flat ? tp_index_take(TP_INDEX_FAULT(TP_IndexError, "embedding"), weight, 0, flat, false) : NULL;
    memcpy(sizes, indices->sizes, indices->ndim * sizeof *sizes);
    sizes[indices->ndim] = weight->sizes[1];
    return rows ? tp_reshape(rows, (tp_ints){sizes, indices->ndim + 1}) : NULL;
}

/* ---- the gradient ---- */

/* rows (new, stolen) over how often each index occurs. */
static tp_tensor *share_steal(tp_tensor *rows, tp_tensor *flat, int64_t num_weights) {
    tp_autoref *given = rows, *ones = tp_ones(tp_sizes(flat), (tp_dtype)rows->dtype, TP_STRIDED, flat->device, -1);
    tp_autoref *none =
        ones ? tp_zeros(TP_INTS(num_weights), (tp_dtype)rows->dtype, TP_STRIDED, flat->device, -1) : NULL;
    if (!none || tp_index_add_(none, 0, flat, ones, TP_SCALAR_I(1)) < 0) return NULL;
    tp_autoref *counts = tp_index_select(none, 0, flat), *column = counts ? tp_unsqueeze(counts, 1) : NULL;
    return column ? tp_div_Tensor(given, column) : NULL;
}

/* The row of the padding index has no gradient, whatever was added to it. */
static int clear_row(tp_tensor *table, int64_t row) {
    if (row < 0 || row >= table->sizes[0]) return 0;
    tp_autoref *line = tp_select_int(table, 0, row);
    return line ? tp_fill_data(line, TP_SCALAR_I(0)) : -1;
}

/* embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool
 * scale_grad_by_freq) -> Tensor */
tp_tensor *embedding_dense_backward_dense(tp_tensor *grad_output, tp_tensor *indices, int64_t num_weights,
                                          int64_t padding_idx, bool scale_grad_by_freq) {
    tp_dtype given = (tp_dtype)grad_output->dtype, dtype = tp_compute_dtype(given);
    if (!tp_is_floating(grad_output))
        return tp_fail_null(TP_NotImplementedError, "embedding_dense_backward is not implemented for %s",
                            tp_dtype_names[given]);
    if (grad_output->ndim < 1)
        return tp_fail_null(TP_RuntimeError, "embedding_dense_backward: grad_output must have a dimension");
    int64_t n = grad_output->sizes[grad_output->ndim - 1];
    if (indices->numel * n != grad_output->numel)
        return tp_fail_null(TP_RuntimeError, "embedding_dense_backward: grad_output does not fit the indices");
    tp_autoref *out = tp_new_empty(TP_INTS(num_weights, n), dtype, grad_output->device);
    if (!out || tp_fill_data(out, TP_SCALAR_I(0)) < 0) return NULL;
    if (grad_output->numel == 0) return tp_narrow_steal(tp_take(out), given);
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1)), *wide = flat ? tp_plain(grad_output, dtype) : NULL;
    tp_autoref *rows = wide ? tp_reshape(wide, TP_INTS(-1, n)) : NULL;
    if (!rows) return NULL;
    tp_autoref *shared = scale_grad_by_freq ? share_steal(tp_take(rows), flat, num_weights) : tp_retain(rows);
    int fault = TP_INDEX_FAULT(TP_IndexError, "embedding_dense_backward");
    if (!shared || tp_index_write(fault, tp_prim_put_add, out, 0, flat, shared, false) < 0) return NULL;
    return clear_row(out, padding_idx) == 0 ? tp_narrow_steal(tp_take(out), given) : NULL;
}

/* ---- a table for each sample ---- */

/* _embedding_of_each(Tensor weight, Tensor indices, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor: tables and
 * lines of indices, as many of each */
tp_tensor *_embedding_of_each_composite(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx TP_UNUSED,
                                        bool scale_grad_by_freq TP_UNUSED) {
    if (weight->ndim != 3 || indices->ndim != 2) return tp_fail_null(TP_RuntimeError, "'weight' must be 2-D");
    tp_autoref *count = tp_arange(TP_SCALAR_I(weight->sizes[0]), TP_INT64, TP_NO_LAYOUT, weight->device, -1);
    tp_autoref *samples = count ? tp_unsqueeze(count, 1) : NULL;
    tp_tensor *places[] = {samples, indices};
    return samples ? tp_index_Tensor(weight, (tp_tensors){places, 2}) : NULL;
}

/* ---- rows kept short ---- */

/* What each row is to be multiplied with; new. */
static tp_tensor *scale_of(tp_tensor *rows, double max_norm, double norm_type) {
    tp_autoref *norm = tp_norm_ScalarOpt_dim(rows, TP_SCALAR_F(norm_type), TP_INTS(1), true);
    tp_autoref *bound = norm ? tp_add_Scalar(norm, TP_SCALAR_F(1e-7), TP_SCALAR_I(1)) : NULL;
    tp_autoref *inverse = bound ? tp_reciprocal(bound) : NULL;
    tp_autoref *factor = inverse ? tp_mul_Scalar(inverse, TP_SCALAR_F(max_norm)) : NULL;
    tp_autoref *is_long = factor ? tp_gt_Scalar(norm, TP_SCALAR_F(max_norm)) : NULL;
    return is_long ? tp_where_ScalarOther(is_long, factor, TP_SCALAR_F(1)) : NULL;
}

/* embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!). A row that is
 * named twice is written twice, with the same. */
int embedding_renorm__dense(tp_tensor *self, tp_tensor *indices, double max_norm, double norm_type) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    int fault = TP_INDEX_FAULT(TP_IndexError, "embedding_renorm_");
    if (check(self, indices) < 0) return -1;
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "embedding_renorm_: expected a floating point table, but got %s",
                       tp_dtype_names[self->dtype]);
    tp_autoref *flat = tp_reshape(indices, TP_INTS(-1));
    if (!flat || flat->numel == 0) return flat ? 0 : -1;
    tp_autoref *rows = tp_index_take(fault, self, 0, flat, false);
    tp_autoref *wide = rows ? tp_plain(rows, tp_compute_dtype(dtype)) : NULL;
    tp_autoref *scale = wide ? scale_of(wide, max_norm, norm_type) : NULL;
    tp_autoref *scaled = scale ? tp_mul_Tensor(wide, scale) : NULL, *made = scaled ? tp_plain(scaled, dtype) : NULL;
    return made ? tp_index_write(fault, tp_prim_put_set, self, 0, flat, made, false) : -1;
}
