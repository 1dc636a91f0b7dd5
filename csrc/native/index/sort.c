/* sort.c: orders along a dimension: sort, argsort, searchsorted. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/determinism.h"
#include "core/scalar_math.h"
#include "prim/transfer.h"
#include "iter/iter.h"
#include "native/index/order.h"
#include "prim/fault.h"

#include <string.h>

tp_tensor *tp_comparable(const char *op, tp_tensor *self, int64_t dim) {
    if (tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "%s: Sort does not support complex dtypes on CPU or elsewhere (dtype %s)",
                            op, tp_dtype_names[self->dtype]);
    tp_autoref *moved = self->ndim > 1 ? tp_transpose_int(self, dim, -1) : tp_retain(self);
    tp_autoref *wide =
        moved ? tp_to_dtype(moved, tp_compute_dtype((tp_dtype)self->dtype), false, false, TP_NO_FORMAT) : NULL;
    return wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
}
int tp_take_along(tp_tensor *self, int64_t d, tp_tensor *places, tp_tensor *values) {
    return places->numel ? tp_prim_take(self, d, places, TP_TRUSTED, false, values) : 0;
}

/* ---- sort ---- */

/* What the primitive writes for a result: the result itself, or lines that are copied to it afterwards. */
static tp_tensor *lines_for(tp_tensor *result, const tp_tensor *keys, tp_dtype dtype, int64_t d) {
    bool last = d == result->ndim - 1 || result->ndim == 0;
    if (last && tp_is_contiguous(result) && result->dtype == dtype) return tp_retain(result);
    return tp_new_empty(tp_sizes(keys), dtype, result->device);
}
static int put_lines(tp_tensor *result, tp_tensor *lines, int64_t d) {
    if (lines == result) return 0;
    tp_autoref *there = lines->ndim > 1 ? tp_transpose_int(lines, d, -1) : tp_retain(lines);
    return there ? tp_copy_data(result, there) : -1;
}

/* Sorts along a dimension into either or both. */
static int sort_into(const char *op, tp_tensor *given, int64_t d, bool descending, tp_tensor *values,
                     tp_tensor *indices) {
    tp_autoref *self = tp_still(given), *keys = self ? tp_comparable(op, self, d) : NULL;
    if (!keys) return -1;
    tp_autoref *sorted = values ? lines_for(values, keys, (tp_dtype)keys->dtype, d) : NULL;
    tp_autoref *order = indices ? lines_for(indices, keys, TP_INT64, d) : NULL;
    if ((values && !sorted) || (indices && !order)) return -1;
    if (self->numel && tp_prim_sort(keys, descending, sorted, order) < 0) return -1;
    if (values && put_lines(values, sorted, d) < 0) return -1;
    return indices ? put_lines(indices, order, d) : 0;
}

/* sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices) */
tp_tensor2 sort_stable_dense(tp_tensor *self, tp_opt_bool stable, int64_t dim, bool descending) {
    (void)stable;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *values = d < 0 ? NULL : tp_new_empty_like(self, (tp_dtype)self->dtype);
    tp_autoref *indices = values ? tp_new_empty_like(values, TP_INT64) : NULL;
    if (!indices || sort_into("sort", self, d, descending, values, indices) < 0) return (tp_tensor2){{NULL, NULL}};
    return (tp_tensor2){{tp_take(values), tp_take(indices)}};
}
tp_tensor2 sort_composite(tp_tensor *self, int64_t dim, bool descending) {
    return tp_sort_stable(self, 0, dim, descending);
}
/* argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor */
tp_tensor *argsort_stable_dense(tp_tensor *self, bool stable, int64_t dim, bool descending) {
    (void)stable;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *indices = d < 0 ? NULL : tp_new_empty_like(self, TP_INT64);
    return indices && sort_into("sort", self, d, descending, NULL, indices) == 0 ? tp_take(indices) : NULL;
}
tp_tensor *argsort_composite(tp_tensor *self, int64_t dim, bool descending) {
    return tp_argsort_stable(self, false, dim, descending);
}
/* msort(Tensor self) -> Tensor */
tp_tensor *msort_dense(tp_tensor *self) {
    tp_autoref *values = tp_new_empty_like(self, (tp_dtype)self->dtype);
    return values && sort_into("sort", self, 0, false, values, NULL) == 0 ? tp_take(values) : NULL;
}

/* ---- searchsorted ---- */

/* What the values are compared in. */
static tp_dtype search_dtype(tp_dtype common) {
    if (tp_is_reduced_dtype(common)) return TP_FLOAT32;
    if (tp_is_floating_dtype(common) || common == TP_UINT64 || common == TP_INT64) return common;
    return common == TP_UINT32 ? TP_INT64 : TP_INT32;
}
/* Whether the arguments fit each other, and in *right on which side of equal values. */
static int check_search(const tp_tensor *sequence, const tp_tensor *self, const char *side, bool *right) {
    if (side && strcmp(side, "left") && strcmp(side, "right"))
        return tp_fail(TP_RuntimeError, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    if (side && *right && strcmp(side, "left") == 0)
        return tp_fail(
            TP_RuntimeError,
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    *right |= side && strcmp(side, "right") == 0;
    for (int d = 0; sequence->ndim != 1 && d < sequence->ndim; d++)
        if (self->ndim != sequence->ndim || (d < self->ndim - 1 && self->sizes[d] != sequence->sizes[d]))
            return tp_fail(TP_RuntimeError,
                           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
                           "of boundaries tensor and input value tensor must match");
    if (sequence->ndim == 0)
        return tp_fail(TP_RuntimeError, "torch.searchsorted(): boundaries tensor should have positive dimension");
    return 0;
}
static int warn_of_copy(const char *what, const tp_tensor *t, bool *warned) {
    if (!t || tp_is_contiguous(t) || !tp_warns_here(warned)) return 0;
    return tp_warn("torch.searchsorted(): %s tensor is non-contiguous: it is copied in each call. This is said once.",
                   what);
}
/* Into out, int64; all are contiguous, sequences and values of one dtype. */
static int run_search(tp_tensor *sequence, tp_tensor *values, bool right, tp_tensor *out) {
    if (values->numel == 0) return 0;
    if (sequence->numel == 0) return tp_fill_data(out, TP_SCALAR_I(0));
    if (sequence->sizes[sequence->ndim - 1] > UINT32_MAX)
        return tp_fail(TP_RuntimeError, "searchsorted: sequences of 2**32 elements are too long");
    return (right ? tp_prim_search_right : tp_prim_search_left)(sequence, values, out);
}
/* searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None,
 * Tensor? sorter=None) -> Tensor */
tp_tensor *searchsorted_Tensor_dense(tp_tensor *sorted_sequence, tp_tensor *self, bool out_int32, bool right,
                                     const char *side, tp_tensor *sorter) {
    static bool warned[3];
    if (check_search(sorted_sequence, self, side, &right) < 0) return NULL;
    if (warn_of_copy("boundary", sorted_sequence, &warned[0]) < 0 ||
        warn_of_copy("input value", self, &warned[1]) < 0 || warn_of_copy("sorter", sorter, &warned[2]) < 0)
        return NULL;
    if (sorter && !tp_same_sizes(sorter, sorted_sequence))
        return tp_fail_null(TP_RuntimeError, "torch.searchsorted(): boundary and sorter must have the same size");
    if (sorter && sorter->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError, "torch.searchsorted(): sorter must be a tensor of long dtype but got %s",
                            tp_scalar_type_name((tp_dtype)sorter->dtype));
    tp_autoref *sequence = sorter ? tp_gather(sorted_sequence, -1, sorter, false) : tp_retain(sorted_sequence);
    tp_dtype common = sequence ? tp_promote_dtypes((tp_dtype)sequence->dtype, (tp_dtype)self->dtype) : TP_NO_DTYPE;
    if (common == TP_NO_DTYPE) return NULL;
    if (tp_is_complex_dtype(common))
        return tp_fail_null(TP_RuntimeError, "searchsorted: not implemented for complex tensors (dtype %s)",
                            tp_dtype_names[common]);
    common = search_dtype(common);
    tp_autoref *a = tp_to_dtype(sequence, common, false, false, TP_NO_FORMAT),
               *b = a ? tp_to_dtype(self, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *sorted = b ? tp_contiguous(a, TP_CONTIGUOUS_FORMAT) : NULL,
               *wanted = sorted ? tp_contiguous(b, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *out = wanted ? tp_new_empty(tp_sizes(self), TP_INT64, wanted->device) : NULL;
    if (!out || run_search(sorted, wanted, right, out) < 0) return NULL;
    return out_int32 ? tp_to_dtype(out, TP_INT32, false, false, TP_NO_FORMAT) : tp_take(out);
}
tp_tensor *searchsorted_Scalar_composite(tp_tensor *sorted_sequence, const tp_scalar *self, bool out_int32, bool right,
                                         const char *side, tp_tensor *sorter) {
    tp_autoref *number = tp_number_beside(self, sorted_sequence),
               *value = number ? tp_to_device(number, sorted_sequence->device, (tp_dtype)number->dtype, false, false,
                                              TP_NO_FORMAT)
                               : NULL;
    return value ? tp_searchsorted_Tensor(sorted_sequence, value, out_int32, right, side, sorter) : NULL;
}
tp_tensor *bucketize_Tensor_composite(tp_tensor *self, tp_tensor *boundaries, bool out_int32, bool right) {
    if (boundaries->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "boundaries tensor must be 1 dimension, but got dim(%d)",
                            boundaries->ndim);
    return tp_searchsorted_Tensor(boundaries, self, out_int32, right, NULL, NULL);
}
tp_tensor *bucketize_Scalar_composite(const tp_scalar *self, tp_tensor *boundaries, bool out_int32, bool right) {
    return searchsorted_Scalar_composite(boundaries, self, out_int32, right, NULL, NULL);
}
