/* view.c: views of batched tensors and memory by strides: each sample lies and is read as it would alone. */
#include "NativeFunctions.h"
#include "batched/batched.h"
#include "core/scalar_math.h"

/* as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a) */
tp_tensor *as_strided_batched(tp_tensor *self, tp_ints size, tp_ints stride, tp_opt_int storage_offset) {
    tp_autobatch s;
    int64_t sizes[TP_MAX_DIMS + 1], strides[TP_MAX_DIMS + 1];
    if (tp_batch_enter(&s, (tp_tensors){&self, 1}) < 0) return NULL;
    if (size.size != stride.size || size.size >= TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "as_strided: %lld sizes and %lld strides", (long long)size.size,
                            (long long)stride.size);
    tp_tensor *inner = tp_batch_inner_borrow(self);
    sizes[0] = s.size;
    strides[0] = inner->strides[0];
    for (int64_t d = 0; d < size.size; d++) sizes[d + 1] = size.data[d], strides[d + 1] = stride.data[d];
    return tp_batch_wrap_steal(
        tp_as_strided(inner, (tp_ints){sizes, size.size + 1}, (tp_ints){strides, size.size + 1}, storage_offset),
        s.number);
}

/* new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None,
 * Device? device=None, bool? pin_memory=None) -> Tensor: samples behind each other, each with these strides */
tp_tensor *new_empty_strided_batched(tp_tensor *self, tp_ints size, tp_ints stride, tp_dtype dtype, tp_layout layout,
                                     tp_device device, tp_opt_bool pin_memory) {
    tp_autobatch s;
    int64_t sizes[TP_MAX_DIMS + 1], strides[TP_MAX_DIMS + 1], low, high;
    if (tp_batch_enter(&s, (tp_tensors){&self, 1}) < 0) return NULL;
    if (size.size != stride.size || size.size >= TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "new_empty_strided: %lld sizes and %lld strides", (long long)size.size,
                            (long long)stride.size);
    if (tp_strided_extent(size, stride, &low, &high) < 0) return NULL;
    sizes[0] = s.size;
    strides[0] = high + 1;
    for (int64_t d = 0; d < size.size; d++) sizes[d + 1] = size.data[d], strides[d + 1] = stride.data[d];
    return tp_batch_wrap_steal(tp_op_new_empty_strided(tp_batch_inner_borrow(self), (tp_ints){sizes, size.size + 1},
                                                       (tp_ints){strides, size.size + 1}, dtype, layout, device,
                                                       pin_memory),
                               s.number);
}

/* squeeze(Tensor(a) self) -> Tensor(a) */
tp_tensor *squeeze_batched(tp_tensor *self) {
    int64_t dims[TP_MAX_DIMS], n = 0;
    for (int d = 0; d < self->ndim; d++)
        if (self->sizes[d] == 1) dims[n++] = d;
    return tp_squeeze_dims(self, (tp_ints){dims, n});
}

/* resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!): within the memory of a
 * sample, whose neighbour lies after it. */
int resize__batched(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    int64_t strides[TP_MAX_DIMS], numel = tp_checked_numel(size);
    bool plain = memory_format == TP_NO_FORMAT || memory_format == TP_CONTIGUOUS_FORMAT;
    if (numel < 0) return -1;
    if (tp_ints_equal(size, tp_sizes(self)) && memory_format == TP_NO_FORMAT) return 0;
    if (size.size >= TP_MAX_DIMS || numel > self->numel || !tp_is_contiguous(self) || !plain)
        return tp_fail(TP_RuntimeError,
                       "vmap: resize_ cannot be called on a batched tensor beyond what a contiguous sample has in "
                       "memory: its next sample lies there. Make a tensor of that size with new_empty()");
    tp_contiguous_strides(size, strides);
    tp_autoref *view = as_strided_batched(self, size, (tp_ints){strides, size.size}, TP_NO_INT);
    return view ? tp_batch_assign(self, tp_batch_inner_borrow(view)) : -1;
}
