/* join.c: cat, stack and their opposites. */
#include "NativeFunctions.h"
#include "core/host.h"
#include "iter/iter.h"
#include "prim/transfer.h"

#include <string.h>

static const tp_tensor *first_shaped(tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++)
        if (!tp_joins_any(list.data[i])) return list.data[i];
    return list.size ? list.data[0] : NULL;
}

static int check_joinable(const tp_tensor *first, const tp_tensor *t, int64_t number, int64_t dim) {
    if (t->ndim != first->ndim)
        return tp_fail(TP_RuntimeError, "Tensors must have same number of dimensions: got %d and %d", first->ndim,
                       t->ndim);
    for (int d = 0; d < t->ndim; d++)
        if (d != dim && t->sizes[d] != first->sizes[d])
            return tp_fail(TP_RuntimeError,
                           "Sizes of tensors must match except in dimension %lld. Expected size %lld but got size "
                           "%lld for tensor number %lld in the list.",
                           (long long)dim, (long long)first->sizes[d], (long long)t->sizes[d], (long long)number);
    return 0;
}

/* The result of cat without its elements. `*dim` is wrapped. */
static tp_tensor *cat_empty(tp_tensors tensors, int64_t *dim) {
    if (tensors.size <= 0) return tp_fail_null(TP_ValueError, "cat(): expected a non-empty list of Tensors");
    const tp_tensor *first = first_shaped(tensors);
    int64_t sizes[TP_MAX_DIMS];
    if (first->ndim == 0)
        return tp_fail_null(TP_RuntimeError, "zero-dimensional tensor (at position 0) cannot be concatenated");
    *dim = tp_joins_any(first) ? 0 : tp_wrap_dim(*dim, first->ndim); /* where all are skipped, any dimension is one */
    if (*dim < 0) return NULL;
    memcpy(sizes, first->sizes, first->ndim * sizeof *sizes);
    sizes[*dim] = 0;
    tp_dtype dtype = (tp_dtype)tensors.data[0]->dtype;
    for (int64_t i = 0; i < tensors.size; i++) {
        const tp_tensor *t = tensors.data[i];
        dtype = tp_promote_dtypes(dtype, (tp_dtype)t->dtype);
        if (dtype == TP_NO_DTYPE) return NULL;
        if (tp_joins_any(t)) continue;
        if (check_joinable(first, t, i, *dim) < 0) return NULL;
        if (__builtin_add_overflow(sizes[*dim], t->sizes[*dim], &sizes[*dim]))
            return tp_fail_null(TP_RuntimeError, "cat: the sizes overflow");
    }
    return tp_new_empty_format((tp_ints){sizes, first->ndim}, dtype, first->device, tp_suggest_memory_format(first));
}

/* Whether t has the sizes that out has room for from `at` on. */
static bool fits_at(const tp_tensor *out, const tp_tensor *t, int64_t dim, int64_t at) {
    if (t->ndim != out->ndim) return false;
    for (int d = 0; d < t->ndim; d++)
        if (d == dim ? t->sizes[d] > out->sizes[d] - at : t->sizes[d] != out->sizes[d]) return false;
    return true;
}

/* cat(Tensor[] tensors, int dim=0) -> Tensor */
tp_tensor *cat_dense(tp_tensors tensors, int64_t dim) {
    tp_autoref *out = cat_empty(tensors, &dim);
    if (!out) return NULL;
    int64_t at = 0;
    for (int64_t i = 0; i < tensors.size; i++) {
        tp_autoref *t = tp_still(tensors.data[i]);
        if (!t) return NULL;
        if (t->numel == 0) continue;
        if (!fits_at(out, t, dim, at)) break;
        tp_autoref *part = tp_new_alias(out, tp_sizes(t), tp_strides(out),
                                        out->byte_offset + at * out->strides[dim] * tp_itemsize((tp_dtype)out->dtype));
        if (!part || tp_copy_data(part, t) < 0) return NULL;
        at += t->sizes[dim];
    }
    if (out->numel && at != out->sizes[dim])
        return tp_fail_null(TP_RuntimeError, "cat: another thread gave a tensor another shape during the call");
    return tp_take(out);
}

tp_tensor *stack_composite(tp_tensors tensors, int64_t dim) {
    if (tensors.size <= 0) return tp_fail_null(TP_RuntimeError, "stack expects a non-empty TensorList");
    int64_t d = tp_wrap_dim(dim, tensors.data[0]->ndim + 1);
    tp_autoseq *parts = d < 0 ? NULL : tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; parts && i < tensors.size; i++) {
        if (!tp_same_sizes(tensors.data[0], tensors.data[i])) {
            tp_autotext a = {0}, b = {0};
            tp_text_ints(&a, tp_sizes(tensors.data[0]));
            tp_text_ints(&b, tp_sizes(tensors.data[i]));
            return tp_fail_null(
                TP_RuntimeError,
                "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %lld", a.text,
                b.text, (long long)i);
        }
        parts->items[i] = tp_unsqueeze(tensors.data[i], d);
        if (!parts->items[i]) return NULL;
    }
    return parts ? tp_cat(tp_tensor_seq_borrow(parts), d) : NULL;
}

tp_tensor_seq *split_with_sizes_composite(tp_tensor *self, tp_ints split_sizes, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim), total = 0;
    if (d < 0) return NULL;
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "split expects at least a 1-dimensional tensor");
    for (int64_t i = 0; i < split_sizes.size; i++) {
        if (split_sizes.data[i] < 0)
            return tp_fail_null(TP_RuntimeError, "split_with_sizes expects split_sizes have only non-negative entries");
        if (__builtin_add_overflow(total, split_sizes.data[i], &total))
            return tp_fail_null(TP_RuntimeError, "split_with_sizes: the sum of split_sizes does not fit 64 bits");
    }
    if (total != self->sizes[d])
        return tp_fail_null(
            TP_RuntimeError,
            "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size at dimension "
            "%lld), but got sum %lld",
            (long long)self->sizes[d], (long long)d, (long long)total);
    tp_autoseq *seq = tp_tensor_seq_new(split_sizes.size);
    for (int64_t i = 0, at = 0; seq && i < split_sizes.size; at += split_sizes.data[i++]) {
        seq->items[i] = tp_new_alias(self, tp_sizes(self), tp_strides(self),
                                     self->byte_offset + at * self->strides[d] * tp_itemsize((tp_dtype)self->dtype));
        int64_t sizes[TP_MAX_DIMS];
        memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
        sizes[d] = split_sizes.data[i];
        if (!seq->items[i] || tp_tensor_set_geometry(seq->items[i], (tp_ints){sizes, self->ndim}, tp_strides(self)) < 0)
            return NULL;
        if (tp_ends_at(i)) return NULL;
    }
    return tp_take(seq);
}
