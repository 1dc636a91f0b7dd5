/* nested_padded.c: nested tensors of padded ones, and what PyTorch's modules ask about them by operators of their own
 * (Note [Nested kernels]). */
#include "native/layout/nested.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "dispatch/key.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

tp_tensor *tp_corner(tp_tensor *t, tp_ints sizes) {
    tp_autoref *part = tp_retain(t);
    for (int64_t d = 0; part && d < sizes.size; d++) {
        if (sizes.data[d] < 0 || sizes.data[d] > part->sizes[d])
            return tp_fail_null(TP_RuntimeError,
                                "a piece of the size %lld along dimension %lld of a padded one of %lld",
                                (long long)sizes.data[d], (long long)d, (long long)part->sizes[d]);
        tp_tensor *narrow = tp_narrow(part, d, 0, sizes.data[d]);
        tp_release(part);
        part = narrow;
    }
    return tp_take(part);
}

/* _nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, bool fuse_transform_0213=False) -> Tensor */
tp_tensor *_nested_from_padded_composite(tp_tensor *padded, tp_tensor *sizes, bool fuse_transform_0213) {
    tp_autoref *table = tp_host_ints(sizes), *whole = NULL;
    const int64_t *rows = table ? tp_table_values(table) : NULL;
    if (!rows) return NULL;
    if (fuse_transform_0213 && padded->ndim != 4)
        return tp_fail_null(TP_RuntimeError, "_nested_from_padded: heads are joined in 4 dimensions, not %d",
                            padded->ndim);
    whole = fuse_transform_0213 ? tp_permute(padded, TP_INTS(0, 2, 1, 3)) : tp_retain(padded);
    if (!whole) return NULL;
    if (fuse_transform_0213) {
        tp_tensor *joined = tp_flatten_using_ints(whole, 2, 3);
        tp_release(whole);
        if (!(whole = joined)) return NULL;
    }
    if (sizes->ndim != 2 || whole->ndim != sizes->sizes[1] + 1 || whole->sizes[0] != sizes->sizes[0])
        return tp_fail_null(TP_RuntimeError, "_nested_from_padded: a table of a row of sizes for each of the batch");
    tp_autoseq *pieces = tp_tensor_seq_new(sizes->sizes[0]);
    for (int64_t i = 0; pieces && i < pieces->size; i++) {
        tp_autoref *one = tp_select_int(whole, 0, i);
        int64_t columns = sizes->sizes[1];
        if (!one || !(pieces->items[i] = tp_corner(one, (tp_ints){rows + i * columns, columns}))) return NULL;
    }
    return pieces ? tp__nested_from_list(tp_tensor_seq_borrow(pieces), false) : NULL;
}

/* ---- of a mask ---- */

/* _nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool: whether true comes first in each row */
int _nested_tensor_from_mask_left_aligned_composite(tp_tensor *t TP_UNUSED, tp_tensor *mask, bool *result) {
    *result = false;
    if (mask->ndim != 2 || mask->dtype != TP_BOOL)
        return tp_fail(TP_RuntimeError, "_nested_tensor_from_mask: a mask of bool of two dimensions");
    tp_autoref *bytes = tp_to_dtype(mask, TP_UINT8, false, false, TP_NO_FORMAT);
    tp_tensor2 both = bytes ? tp_sort(bytes, 1, true) : (tp_tensor2){{NULL}};
    tp_autoref *sorted = both.v[0], *order TP_UNUSED = both.v[1];
    return sorted ? tp_equal(bytes, sorted, result) : -1;
}

/* _nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor */
tp_tensor *_nested_tensor_from_mask_composite(tp_tensor *t, tp_tensor *mask, bool mask_check) {
    bool aligned = true;
    if (t->ndim != 3 || mask->ndim != 2 || mask->dtype != TP_BOOL || t->sizes[0] != mask->sizes[0] ||
        t->sizes[1] != mask->sizes[1])
        return tp_fail_null(TP_RuntimeError, "_nested_tensor_from_mask: a tensor (N, L, D) and a mask of bool (N, L)");
    if (mask_check && _nested_tensor_from_mask_left_aligned_composite(t, mask, &aligned) < 0) return NULL;
    if (!aligned)
        return tp_fail_null(TP_RuntimeError,
                            "Mask must be left-aligned: in each row what is true comes before the rest");
    tp_autoref *counts = tp_sum_dim_IntList(mask, TP_INTS(1), false, TP_INT64), *table = tp_host_ints(counts);
    const int64_t *length = table ? tp_table_values(table) : NULL;
    tp_autoseq *pieces = length ? tp_tensor_seq_new(t->sizes[0]) : NULL;
    for (int64_t i = 0; pieces && i < pieces->size; i++) {
        tp_autoref *one = tp_select_int(t, 0, i);
        if (!one || !(pieces->items[i] = tp_narrow(one, 0, 0, length[i]))) return NULL;
    }
    return pieces ? tp__nested_from_list(tp_tensor_seq_borrow(pieces), false) : NULL;
}

/* ---- rows of a padded tensor, and the values of a jagged one ---- */

/* _padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor */
tp_tensor *_padded_dense_to_jagged_forward_composite(tp_tensor *dense, tp_tensors offsets, tp_opt_int total) {
    if (offsets.size != 1 || dense->ndim < 2 || offsets.data[0]->ndim != 1 ||
        offsets.data[0]->numel != dense->sizes[0] + 1)
        return tp_fail_null(TP_RuntimeError, "_padded_dense_to_jagged_forward: one tensor of offsets, with one number "
                                             "more than there are rows");
    tp_autoref *table = tp_host_ints(offsets.data[0]);
    const int64_t *at = table ? tp_table_values(table) : NULL;
    if (!at) return NULL;
    if (total.has && total.value != at[dense->sizes[0]])
        return tp_fail_null(TP_RuntimeError,
                            "_padded_dense_to_jagged_forward: total_L is %lld, the offsets end at %lld",
                            (long long)total.value, (long long)at[dense->sizes[0]]);
    tp_autoseq *pieces = tp_tensor_seq_new(dense->sizes[0]);
    for (int64_t i = 0; pieces && i < pieces->size; i++) {
        tp_autoref *one = tp_select_int(dense, 0, i);
        int64_t length = (int64_t)((uint64_t)at[i + 1] - (uint64_t)at[i]);
        if (!one || !(pieces->items[i] = tp_corner(one, TP_INTS(length)))) return NULL;
    }
    return pieces ? tp_cat(tp_tensor_seq_borrow(pieces), 0) : NULL;
}

/* _jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0.0) ->
 * Tensor: what is longer than max_lengths is left out */
tp_tensor *_jagged_to_padded_dense_forward_composite(tp_tensor *values, tp_tensors offsets, tp_ints max_lengths,
                                                     double padding_value) {
    if (offsets.size != 1 || max_lengths.size != 1 || max_lengths.data[0] < 0 || values->ndim < 1)
        return tp_fail_null(TP_RuntimeError, "_jagged_to_padded_dense_forward: one tensor of offsets and one length");
    tp_autoref *nested = tp__nested_make(values, offsets.data[0], NULL, NULL, 1, true, -1, -1);
    tp_autoseq *pieces = nested ? tp_unbind_int(nested, 0) : NULL;
    int64_t pad[2 * TP_MAX_DIMS] = {0};
    for (int64_t i = 0; pieces && i < pieces->size; i++) {
        int64_t own = pieces->items[i]->sizes[0], most = max_lengths.data[0];
        tp_autoref *kept = tp_narrow(pieces->items[i], 0, 0, own < most ? own : most);
        pad[2 * values->ndim - 1] = own < most ? most - own : 0;
        tp_tensor *padded =
            kept ? tp_constant_pad_nd(kept, (tp_ints){pad, 2 * values->ndim}, TP_SCALAR_F(padding_value)) : NULL;
        tp_release(pieces->items[i]);
        if (!(pieces->items[i] = padded)) return NULL;
    }
    return pieces ? tp_stack(tp_tensor_seq_borrow(pieces), 0) : NULL;
}

/* ---- questions, and a gradient ---- */

static int64_t longest(const tp_nested *n, bool largest) {
    int64_t said = largest ? n->most : n->least;
    if (said >= 0) return said;
    int64_t found = n->count ? n->length[0] : 0;
    for (int64_t i = 1; i < n->count; i++)
        if (largest ? n->length[i] > found : n->length[i] < found) found = n->length[i];
    return found;
}

/* _nested_get_min_seqlen(Tensor self) -> Tensor, _nested_get_max_seqlen: a length that is the size of a tensor without
 * elements */
tp_tensor *_nested_length_composite(tp_tensor *self, bool largest) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return NULL;
    if (!n.jagged)
        return tp_fail_null(TP_NotImplementedError, "a nested tensor of the layout strided has no %s of its pieces",
                            largest ? "_nested_get_max_seqlen" : "_nested_get_min_seqlen");
    int64_t found = longest(&n, largest);
    return tp_empty_memory_format(TP_INTS(found, 0), (tp_dtype)n.values->dtype, TP_STRIDED, n.values->device, -1,
                                  TP_NO_FORMAT);
}

/* _nested_longest(Tensor self, bool largest, bool computes) -> int: the least or the largest length of the pieces; -1
 * where nobody said it and it is not computed. */
int _nested_longest_composite(tp_tensor *self, bool largest, bool computes, int64_t *result) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return -1;
    if (!n.jagged) return tp_fail(TP_RuntimeError, "a nested tensor of the layout strided has no lengths of pieces");
    *result = computes ? longest(&n, largest) : largest ? n.most : n.least;
    return 0;
}

/* _nested_compute_contiguous_strides_offsets(Tensor nested_size) -> (Tensor, Tensor) */
tp_tensor2 _nested_compute_contiguous_strides_offsets_composite(tp_tensor *nested_size) {
    tp_tensor2 none = {{NULL}};
    if (nested_size->ndim != 2 || nested_size->sizes[1] >= TP_MAX_DIMS)
        return tp_fail(TP_RuntimeError, "a table of a row of sizes for each tensor"), none;
    int64_t *stride, *offset, at = 0, count = nested_size->sizes[0], dims = nested_size->sizes[1];
    tp_autoref *table = tp_host_ints(nested_size);
    tp_autoref *made = table ? tp_table_int64(TP_INTS(count, dims), &stride) : NULL,
               *places = made ? tp_table_int64(TP_INTS(count), &offset) : NULL;
    const int64_t *size = places ? tp_table_values(table) : NULL;
    for (int64_t i = 0; size && i < count; i++) {
        tp_ints row = {size + i * dims, dims};
        int64_t numel = tp_checked_numel(row);
        if (numel < 0) return tp_error_pending() ? 0 : tp_fail(TP_RuntimeError, "a size below 0"), none;
        tp_contiguous_strides(row, stride + i * dims);
        offset[i] = at;
        at += numel;
    }
    return size ? (tp_tensor2){{tp_take(made), tp_take(places)}} : none;
}

/* _nested_select_backward(Tensor grad_output, Tensor self, int dim, SymInt index) -> Tensor */
tp_tensor *_nested_select_backward_composite(tp_tensor *grad_output, tp_tensor *self, int64_t dim, int64_t index) {
    tp_autoref *zeros = tp_zeros_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    tp_autoref *piece = zeros ? tp_select_int(zeros, dim, index) : NULL;
    return piece && tp_copy_(piece, grad_output, false) == 0 ? tp_take(zeros) : NULL;
}
