/* view_scatter.c: a copy of a tensor in which what a view shows is replaced: select_scatter and its kin; diagonals
 * filled in place. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"

#include <string.h>

/* Writes src where `part_steal`, a view of `out_steal`, lies; gives out. */
static tp_tensor *replace_steal(tp_tensor *out_steal, tp_tensor *part_steal, tp_tensor *src) {
    tp_autoref *out = out_steal, *part = part_steal;
    if (!part) return NULL;
    if (!tp_same_sizes(part, src)) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(src));
        tp_text_ints(&b, tp_sizes(part));
        return tp_fail_null(TP_RuntimeError,
                            "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
                            a.text, b.text);
    }
    return tp_copy_(part, src, false) == 0 ? tp_take(out) : NULL;
}
/* A copy with the same strides and offset, where the strides allow it. */
static tp_tensor *clone_with_strides(tp_tensor *self) {
    int64_t low, high;
    if (tp_strided_extent(tp_sizes(self), tp_strides(self), &low, &high) < 0) return NULL;
    int64_t itemsize = tp_itemsize((tp_dtype)self->dtype), n = (int64_t)self->storage->nbytes / itemsize;
    tp_autoref *memory = tp_new_empty(TP_INTS(n), (tp_dtype)self->dtype, self->device);
    tp_autoref *from = memory ? tp_new_alias(self, TP_INTS(n), TP_INTS(1), 0) : NULL;
    if (!from || (n && tp_copy_(memory, from, false) < 0)) return NULL;
    return tp_new_alias(memory, tp_sizes(self), tp_strides(self), self->byte_offset);
}

/* select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor */
tp_tensor *select_scatter_composite(tp_tensor *self, tp_tensor *src, int64_t dim, int64_t index) {
    tp_tensor *out = tp_clone(self, TP_NO_FORMAT);
    return out ? replace_steal(out, tp_select_int(out, dim, index), src) : NULL;
}
/* slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor */
tp_tensor *slice_scatter_composite(tp_tensor *self, tp_tensor *src, int64_t dim, tp_opt_int start, tp_opt_int end,
                                   int64_t step) {
    tp_tensor *out = tp_clone(self, TP_NO_FORMAT);
    return out ? replace_steal(out, tp_slice_Tensor(out, dim, start, end, step), src) : NULL;
}
/* diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor */
tp_tensor *diagonal_scatter_composite(tp_tensor *self, tp_tensor *src, int64_t offset, int64_t dim1, int64_t dim2) {
    tp_tensor *out = tp_clone(self, TP_NO_FORMAT);
    return out ? replace_steal(out, tp_diagonal(out, offset, dim1, dim2), src) : NULL;
}
/* as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor */
tp_tensor *as_strided_scatter_composite(tp_tensor *self, tp_tensor *src, tp_ints size, tp_ints stride,
                                        tp_opt_int storage_offset) {
    tp_tensor *out = clone_with_strides(self);
    return out ? replace_steal(out, tp_as_strided(out, size, stride, storage_offset), src) : NULL;
}

/* _split_scatter(Tensor self, Tensor src, SymInt[] split_sizes, int dim, int which) -> Tensor */
tp_tensor *_split_scatter_composite(tp_tensor *self, tp_tensor *src, tp_ints split_sizes, int64_t dim, int64_t which) {
    if (which < 0 || which >= split_sizes.size)
        return tp_fail_null(TP_IndexError, "_split_scatter: there is no part %lld of %lld", (long long)which,
                            (long long)split_sizes.size);
    int64_t start = 0, end;
    bool wraps = false;
    for (int64_t i = 0; i < which; i++) wraps |= __builtin_add_overflow(start, split_sizes.data[i], &start);
    wraps |= __builtin_add_overflow(start, split_sizes.data[which], &end);
    if (wraps || start < 0 || end < start)
        return tp_fail_null(TP_RuntimeError, "_split_scatter: the sizes of the parts do not add up");
    return tp_slice_scatter(self, src, dim, TP_SOME_INT(start), TP_SOME_INT(end), 1);
}

/* fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!) */
int fill_diagonal__composite(tp_tensor *self, const tp_scalar *fill_value, bool wrap) {
    if (self->ndim < 2) return tp_fail(TP_RuntimeError, "fill_diagonal_: dimensions must larger than 1");
    int64_t n = self->sizes[0], step = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (self->ndim > 2 && self->sizes[d] != self->sizes[0])
            return tp_fail(TP_RuntimeError, "fill_diagonal_: all dimensions of input must be of equal length");
        n = tp_min_int(n, self->sizes[d]);
        step += self->strides[d];
    }
    tp_opt_int offset = TP_SOME_INT(tp_storage_offset(self));
    tp_autoref *diagonal = tp_as_strided(self, TP_INTS(n), TP_INTS(step), offset);
    if (!diagonal || tp_fill__Scalar(diagonal, fill_value) < 0) return -1;
    int64_t rows = self->sizes[0], columns = self->ndim == 2 ? self->sizes[1] : 0;
    /* The diagonal starts again after a row that it leaves out. */
    for (int64_t first = columns + 1; wrap && self->ndim == 2 && first < rows; first += columns + 1) {
        tp_opt_int at = TP_SOME_INT(tp_storage_offset(self) + first * self->strides[0]);
        tp_autoref *again = tp_as_strided(self, TP_INTS(tp_min_int(columns, rows - first)), TP_INTS(step), at);
        if (!again || tp_fill__Scalar(again, fill_value) < 0) return -1;
    }
    return 0;
}
