/* masked.c: elements picked by a mask or by flat places: masked_select, nonzero, masked_scatter, put.
 *
 * Masks are bool and broadcast; elements are taken and given in row-major order. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/common/tags.h"
#include "native/index/gather.h"
#include "prim/transfer.h"

static int broadcast_shape(const tp_tensor *a, const tp_tensor *b, int64_t *shape) {
    return tp_broadcast_sizes(tp_sizes(a), tp_sizes(b), shape);
}
/* t broadcast to the shape, contiguous. */
static tp_tensor *spread(tp_tensor *t, tp_ints shape) {
    tp_autoref *wide = tp_expand(t, shape, false);
    return wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* ---- masked_select ---- */

/* masked_select(Tensor self, Tensor mask) -> Tensor */
tp_tensor *masked_select_dense(tp_tensor *self, tp_tensor *mask) {
    int64_t sizes[TP_MAX_DIMS];
    if (mask->dtype != TP_BOOL) return tp_fail_null(TP_RuntimeError, "masked_select: expected BoolTensor for mask");
    int ndim = broadcast_shape(self, mask, sizes);
    if (ndim < 0) return NULL;
    tp_ints shape = {sizes, ndim};
    tp_autoref *from = spread(self, shape), *where = from ? spread(mask, shape) : NULL;
    if (!where) return NULL;
    return from->numel ? tp_prim_pack(from, where) : tp_new_empty(TP_INTS(0), (tp_dtype)self->dtype, self->device);
}
/* masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor */
tp_tensor *masked_select_backward_composite(tp_tensor *grad, tp_tensor *input, tp_tensor *mask) {
    int64_t sizes[TP_MAX_DIMS];
    int ndim = broadcast_shape(input, mask, sizes);
    if (ndim < 0) return NULL;
    tp_autoref *into = tp_zeros((tp_ints){sizes, ndim}, (tp_dtype)grad->dtype, TP_NO_LAYOUT, grad->device, -1);
    return into ? tp_masked_scatter(into, mask, grad) : NULL;
}

/* ---- nonzero ---- */

/* nonzero(Tensor self) -> Tensor: one row per element, one column per dimension; columns lie one after another. */
tp_tensor *nonzero_dense(tp_tensor *self) {
    bool ready = self->dtype == TP_BOOL && tp_is_contiguous(self);
    tp_autoref *mask = ready ? tp_retain(self) : tp_new_empty(tp_sizes(self), TP_BOOL, self->device);
    if (!mask || (!ready && tp_copy_data(mask, self) < 0)) return NULL;
    return mask->numel ? tp_prim_nonzero(mask) : tp_new_empty(TP_INTS(0, self->ndim), TP_INT64, self->device);
}

/* ---- masked_scatter ---- */

static int check_masked_scatter(const tp_tensor *self, const tp_tensor *mask, const tp_tensor *source) {
    int64_t sizes[TP_MAX_DIMS];
    if (self->dtype != source->dtype)
        return tp_fail(TP_RuntimeError,
                       "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)source->dtype));
    if (mask->dtype != TP_BOOL)
        return tp_fail(TP_RuntimeError, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                       tp_scalar_type_name((tp_dtype)mask->dtype));
    return broadcast_shape(self, mask, sizes) < 0 ? -1 : 0;
}
/* masked_scatter_(Tensor(a!) self, Tensor mask, Tensor source) -> Tensor(a!) */
int masked_scatter__dense(tp_tensor *self, tp_tensor *mask, tp_tensor *source) {
    if (check_masked_scatter(self, mask, source) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *where = spread(mask, tp_sizes(self)),
               *from = where ? tp_contiguous(source, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!from) return -1;
    bool apart = tp_overlap_of(self, from) == TP_OVERLAP_NONE && tp_overlap_of(self, where) == TP_OVERLAP_NONE;
    tp_autoref *into = tp_is_contiguous(self) && apart ? tp_retain(self) : tp_clone(self, TP_CONTIGUOUS_FORMAT);
    if (!into) return -1;
    int fault = TP_FAULT(TP_RuntimeError, "masked_scatter_", "Number of elements of source < number of ones in mask");
    if (into->numel && tp_prim_unpack(from, where, fault, into) < 0) return -1;
    return into == self ? 0 : tp_copy_data(self, into);
}
/* masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor */
tp_tensor *masked_scatter_composite(tp_tensor *self, tp_tensor *mask, tp_tensor *source) {
    int64_t sizes[TP_MAX_DIMS];
    int ndim = broadcast_shape(self, mask, sizes);
    tp_autoref *wide = ndim < 0 ? NULL : tp_expand(self, (tp_ints){sizes, ndim}, false),
               *out = wide ? tp_clone(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    return out && tp_masked_scatter_(out, mask, source) == 0 ? tp_take(out) : NULL;
}
/* masked_scatter_backward(Tensor grad_output, Tensor mask, SymInt[] sizes) -> Tensor: what source gets; it may be
 * longer than was needed. */
tp_tensor *masked_scatter_backward_composite(tp_tensor *grad_output, tp_tensor *mask, tp_ints sizes) {
    tp_autoref *taken = tp_masked_select(grad_output, mask);
    int64_t n = taken ? tp_checked_numel(sizes) : -1;
    if (n < 0) return NULL;
    tp_autoref *rest = tp_zeros(TP_INTS(n - taken->numel), (tp_dtype)taken->dtype, TP_NO_LAYOUT, taken->device, -1),
               *all = rest ? tp_cat((tp_tensors){(tp_tensor *const[]){taken, rest}, 2}, 0) : NULL;
    return all ? tp_reshape(all, sizes) : NULL;
}

/* ---- put ---- */

static int check_put(const tp_tensor *self, const tp_tensor *index, const tp_tensor *source) {
    if (index->dtype != TP_INT64)
        return tp_fail(TP_RuntimeError, "put_(): Expected a long tensor for index, but got %s",
                       tp_scalar_type_name((tp_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return tp_fail(TP_RuntimeError,
                       "put_(): self and source expected to have the same dtype, but got self.dtype = %s and "
                       "source.dtype = %s",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)source->dtype));
    if (index->numel != source->numel)
        return tp_fail(TP_IndexError,
                       "put_(): Expected source and index to have the same number of elements, but got source.numel() "
                       "= %lld, index.numel() = %lld",
                       (long long)source->numel, (long long)index->numel);
    return index->numel && !self->numel
               ? tp_fail(TP_IndexError, "put_(): Expected self to be non-empty, but it has no elements")
               : 0;
}
/* put_(Tensor(a!) self, Tensor index, Tensor source, bool accumulate=False) -> Tensor(a!) */
int put__dense(tp_tensor *self, tp_tensor *index, tp_tensor *source, bool accumulate) {
    if (!accumulate && tp_check_determinism("put_") < 0) return -1; /* which of two values comes last is open */
    if (check_put(self, index, source) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *row = tp_reshape(index, TP_INTS(-1)), *line = row ? tp_reshape(source, TP_INTS(-1)) : NULL;
    tp_autoref *places = line ? tp_apart(row, self) : NULL, *from = places ? tp_apart(line, self) : NULL;
    tp_autoref *into = !from ? NULL : tp_is_contiguous(self) ? tp_retain(self) : tp_clone(self, TP_CONTIGUOUS_FORMAT);
    tp_autoref *flat = into ? tp_new_alias(into, TP_INTS(into->numel), TP_INTS(1), into->byte_offset) : NULL;
    if (!flat) return -1;
    int fault = TP_INDEX_FAULT(TP_IndexError, "put_");
    if (flat->numel && from->numel &&
        (accumulate ? tp_prim_put_add : tp_prim_put_set)(flat, 0, places, from, fault, true) < 0)
        return -1;
    return into == self ? 0 : tp_copy_data(self, into);
}
/* put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor */
tp_tensor *put_composite(tp_tensor *self, tp_tensor *index, tp_tensor *source, bool accumulate) {
    tp_autoref *out = tp_clone(self, TP_NO_FORMAT);
    return out && tp_put_(out, index, source, accumulate) == 0 ? tp_take(out) : NULL;
}
