/* embedding_bag.c: sums, means and maxima over bags of rows of a table.
 *
 * A bag is a run of the indices that begins at its offset; indices that are the padding count for nothing, nor do those
 * beyond the last bag's end. Beside the result there are, for the gradient, the bag of every index (-1: none), how many
 * indices each bag counts, and for maxima the row that each element came from. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "prim/plain.h"
#include "prim/transfer.h"

enum { SUM, MEAN, MAX };

static int check_indices(const tp_tensor *t, const char *name) {
    if (t->dtype == TP_INT64 || t->dtype == TP_INT32) return 0;
    return tp_fail(TP_RuntimeError,
                   "Expected tensor for argument '%s' to have one of the following scalar types: Long, Int; but got %s",
                   name, tp_scalar_type_name((tp_dtype)t->dtype));
}

static int check_bags(const tp_tensor *weight, const tp_tensor *indices, const tp_tensor *offsets, int64_t mode,
                      const tp_tensor *per_sample) {
    if (check_indices(indices, "indices") < 0 || check_indices(offsets, "offsets") < 0) return -1;
    if (!tp_is_floating(weight))
        return tp_fail(TP_RuntimeError,
                       "Expected tensor for argument 'weight' to have one of the following scalar types: Half, "
                       "BFloat16, Float, Double; but got %s",
                       tp_scalar_type_name((tp_dtype)weight->dtype));
    if (mode < SUM || mode > MAX) return tp_fail(TP_RuntimeError, "`mode` must be sum, mean, or max.");
    if (weight->ndim != 2)
        return tp_fail(TP_RuntimeError, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
    if (indices->ndim != 1 && indices->ndim != 2)
        return tp_fail(TP_RuntimeError, "input has to be a 1D or 2D Tensor, but got Tensor of dimension %d",
                       indices->ndim);
    if (offsets->ndim != 1)
        return tp_fail(TP_RuntimeError, "offsets has to be a 1D Tensor, but got Tensor of dimension %d", offsets->ndim);
    if (indices->ndim != 1)
        return tp_fail(TP_RuntimeError, "embedding_bag: indices and offsets must have 1 dimension, but have %d and %d",
                       indices->ndim, offsets->ndim);
    if (!per_sample) return 0;
    if (mode != SUM)
        return tp_fail(TP_RuntimeError, "embedding_bag: per_sample_weights only supported with mode='sum'");
    if (per_sample->dtype != weight->dtype)
        return tp_fail(TP_RuntimeError,
                       "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                       "'per_sample_weights'; but %s does not equal %s",
                       tp_dtype_names[weight->dtype], tp_dtype_names[per_sample->dtype]);
    if (per_sample->numel != indices->numel)
        return tp_fail(TP_RuntimeError, "embedding_bag: %lld per_sample_weights for %lld indices",
                       (long long)per_sample->numel, (long long)indices->numel);
    return 0;
}

static tp_tensor4 none(void) { return (tp_tensor4){{NULL}}; }

static tp_tensor *new_filled(tp_ints sizes, tp_dtype dtype, tp_device device, int64_t value) {
    tp_autoref *t = tp_new_empty(sizes, dtype, device);
    return t && (t->numel == 0 || tp_fill_data(t, TP_SCALAR_I(value)) == 0) ? tp_take(t) : NULL;
}

/* _embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool
 * sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor,
 * Tensor, Tensor, Tensor) */
tp_tensor4 _embedding_bag_dense(tp_tensor *weight, tp_tensor *indices, tp_tensor *offsets,
                                bool scale_grad_by_freq TP_UNUSED, int64_t mode, bool sparse TP_UNUSED,
                                tp_tensor *per_sample_weights, bool include_last_offset, int64_t padding_idx) {
    if (check_bags(weight, indices, offsets, mode, per_sample_weights) < 0) return none();
    if (include_last_offset && offsets->numel < 1)
        return tp_fail(TP_RuntimeError, "include_last_offset: number of offset should be at least 1"), none();
    int64_t bags = offsets->numel - include_last_offset, columns = weight->sizes[1];
    tp_dtype dtype = tp_compute_dtype((tp_dtype)weight->dtype);
    tp_autoref *table = tp_plain(weight, dtype), *each = tp_plain(per_sample_weights, dtype);
    tp_autoref *places = tp_plain(indices, TP_INT64), *begins = tp_plain(offsets, TP_INT64);
    if (!table || !places || !begins || (per_sample_weights && !each)) return none();
    tp_autoref *out = new_filled(TP_INTS(bags, columns), dtype, weight->device, 0);
    tp_autoref *bag = out ? new_filled(TP_INTS(places->numel), TP_INT64, weight->device, -1) : NULL;
    tp_autoref *size = bag ? new_filled(TP_INTS(bags), TP_INT64, weight->device, 0) : NULL;
    tp_autoref *at =
        size ? new_filled(mode == MAX ? TP_INTS(bags, columns) : TP_INTS(bags), TP_INT64, weight->device, 0) : NULL;
    if (!at) return none();
    if (bags && places->numel &&
        tp_prim_bag_forward(table, places, begins, each, mode, include_last_offset, padding_idx, out, bag, size, at) <
            0)
        return none();
    tp_autoref *narrow = tp_narrow_steal(tp_take(out), (tp_dtype)weight->dtype);
    return narrow ? (tp_tensor4){{tp_take(narrow), tp_take(bag), tp_take(size), tp_take(at)}} : none();
}

/* _embedding_bag_forward_only: the same; there is nothing that a gradient alone would need much time for. */
tp_tensor4 _embedding_bag_forward_only_dense(tp_tensor *weight, tp_tensor *indices, tp_tensor *offsets,
                                             bool scale_grad_by_freq, int64_t mode, bool sparse,
                                             tp_tensor *per_sample_weights, bool include_last_offset,
                                             int64_t padding_idx) {
    return _embedding_bag_dense(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                                include_last_offset, padding_idx);
}

/* embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool
 * sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)
 */
tp_tensor4 embedding_bag_padding_idx_composite(tp_tensor *weight, tp_tensor *indices, tp_tensor *offsets,
                                               bool scale_grad_by_freq, int64_t mode, bool sparse,
                                               tp_tensor *per_sample_weights, bool include_last_offset,
                                               tp_opt_int padding_idx) {
    int64_t padding = -1, rows = weight->ndim ? weight->sizes[0] : 0;
    if (padding_idx.has) {
        padding = padding_idx.value;
        if (padding < -rows || padding >= rows)
            return tp_fail(TP_RuntimeError,
                           "padding_idx must be within the number of embeddings, -%lld through %lld, but got %lld",
                           (long long)rows, (long long)rows - 1, (long long)padding),
                   none();
        if (padding < 0) padding += rows;
    }
    return tp__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                             include_last_offset, padding);
}

tp_tensor4 embedding_bag_composite(tp_tensor *weight, tp_tensor *indices, tp_tensor *offsets, bool scale_grad_by_freq,
                                   int64_t mode, bool sparse, tp_tensor *per_sample_weights, bool include_last_offset) {
    return tp__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                             include_last_offset, -1);
}

/* ---- gradients ---- */

/* _embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, Tensor
 * maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, int
 * padding_idx=-1) -> Tensor */
tp_tensor *_embedding_bag_dense_backward_dense(tp_tensor *grad, tp_tensor *indices, tp_tensor *offset2bag,
                                               tp_tensor *bag_size, tp_tensor *maximum_indices, int64_t num_weights,
                                               bool scale_grad_by_freq, int64_t mode, tp_tensor *per_sample_weights,
                                               int64_t padding_idx) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)grad->dtype);
    if (grad->ndim != 2 || bag_size->numel != grad->sizes[0] || offset2bag->numel != indices->numel ||
        (mode == MAX && maximum_indices->numel != grad->numel))
        return tp_fail_null(TP_RuntimeError, "_embedding_bag_dense_backward: the gradient does not fit the bags");
    tp_autoref *rows = tp_plain(grad, dtype), *each = tp_plain(per_sample_weights, dtype);
    tp_autoref *places = tp_plain(indices, TP_INT64), *bag = tp_plain(offset2bag, TP_INT64),
               *size = tp_plain(bag_size, TP_INT64), *at = tp_plain(maximum_indices, TP_INT64);
    if (!rows || !places || !bag || !size || !at || (per_sample_weights && !each)) return NULL;
    tp_autoref *out = new_filled(TP_INTS(num_weights, grad->sizes[1]), dtype, grad->device, 0);
    if (!out ||
        (out->numel && rows->numel && places->numel &&
         tp_prim_bag_backward(rows, places, bag, size, at, each, mode, scale_grad_by_freq, padding_idx, out) < 0))
        return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)grad->dtype);
}

tp_tensor *_embedding_bag_backward_composite(tp_tensor *grad, tp_tensor *indices, tp_tensor *offsets TP_UNUSED,
                                             tp_tensor *offset2bag, tp_tensor *bag_size, tp_tensor *maximum_indices,
                                             int64_t num_weights, bool scale_grad_by_freq, int64_t mode,
                                             bool sparse TP_UNUSED, tp_tensor *per_sample_weights,
                                             int64_t padding_idx) {
    return tp__embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights,
                                            scale_grad_by_freq, mode, per_sample_weights, padding_idx);
}

/* _embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor offsets, Tensor
 * offset2bag, int mode, int padding_idx=-1) -> Tensor */
tp_tensor *_embedding_bag_per_sample_weights_backward_dense(tp_tensor *grad, tp_tensor *weight, tp_tensor *indices,
                                                            tp_tensor *offsets TP_UNUSED, tp_tensor *offset2bag,
                                                            int64_t mode, int64_t padding_idx) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)grad->dtype);
    if (mode != SUM)
        return tp_fail_null(TP_RuntimeError, "embedding_bag: per_sample_weights only supported with mode='sum'");
    if (grad->ndim != 2 || weight->ndim != 2 || weight->sizes[1] != grad->sizes[1] || weight->dtype != grad->dtype ||
        offset2bag->numel != indices->numel)
        return tp_fail_null(TP_RuntimeError,
                            "_embedding_bag_per_sample_weights_backward: the gradient does not fit the bags");
    tp_autoref *rows = tp_plain(grad, dtype), *table = tp_plain(weight, dtype), *places = tp_plain(indices, TP_INT64),
               *bag = tp_plain(offset2bag, TP_INT64);
    tp_autoref *out = rows && table && places && bag ? new_filled(tp_sizes(indices), dtype, grad->device, 0) : NULL;
    if (!out || (out->numel && rows->numel && table->numel &&
                 tp_prim_bag_weights(rows, table, places, bag, padding_idx, out) < 0))
        return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)grad->dtype);
}
