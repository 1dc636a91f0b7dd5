/* about.c: questions about a tensor that need none of its elements, and what dtype a result would have. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "dispatch/key.h"
#include "iter/iter.h"

#include <string.h>

#define QUESTION(name, answer)                            \
    int name##_composite(tp_tensor *self, bool *result) { \
        (void)self;                                       \
        *result = answer;                                 \
        return 0;                                         \
    }
/* is_floating_point(Tensor self) -> bool */
QUESTION(is_floating_point, tp_is_floating(self))
/* is_complex(Tensor self) -> bool */
QUESTION(op_is_complex, tp_is_complex(self))
/* is_signed(Tensor self) -> bool */
QUESTION(is_signed, tp_is_signed_dtype((tp_dtype)self->dtype))
/* is_inference(Tensor self) -> bool */
QUESTION(is_inference, (self->flags & TP_FLAG_INFERENCE) != 0)
/* is_conj(Tensor self) -> bool */
QUESTION(is_conj, tp_reads_conj(self))
/* is_neg(Tensor self) -> bool */
QUESTION(is_neg, tp_reads_neg(self))

/* is_set_to(Tensor self, Tensor tensor) -> bool */
int is_set_to_dense(tp_tensor *self, tp_tensor *tensor, bool *result) {
    *result = self->storage == tensor->storage && self->byte_offset == tensor->byte_offset &&
              tp_same_sizes(self, tensor) && tp_ints_equal(tp_strides(self), tp_strides(tensor));
    return 0;
}

/* type_as(Tensor self, Tensor other) -> Tensor */
tp_tensor *type_as_composite(tp_tensor *self, tp_tensor *other) {
    return tp_to_other(self, other, false, false, TP_NO_FORMAT);
}

static int result_of(tp_operand a, tp_operand b, tp_dtype *result) {
    *result = tp_result_type((tp_operand[]){a, b}, 2);
    return *result == TP_NO_DTYPE ? -1 : 0;
}
/* result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType */
int result_type_Tensor_composite(tp_tensor *tensor, tp_tensor *other, tp_dtype *result) {
    return result_of((tp_operand){tensor, NULL}, (tp_operand){other, NULL}, result);
}
int result_type_Scalar_composite(tp_tensor *tensor, const tp_scalar *other, tp_dtype *result) {
    return result_of((tp_operand){tensor, NULL}, (tp_operand){NULL, other}, result);
}
int result_type_Scalar_Tensor_composite(const tp_scalar *scalar, tp_tensor *tensor, tp_dtype *result) {
    return result_of((tp_operand){NULL, scalar}, (tp_operand){tensor, NULL}, result);
}
int result_type_Scalar_Scalar_composite(const tp_scalar *scalar1, const tp_scalar *scalar2, tp_dtype *result) {
    return result_of((tp_operand){NULL, scalar1}, (tp_operand){NULL, scalar2}, result);
}

/* ---- what Python asks the tensor itself ---- */

/* get_device(Tensor self) -> int */
int get_device_composite(tp_tensor *self, int64_t *result) {
    *result = self->device.index;
    return 0;
}
/* sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool */
int sym_is_contiguous_composite(tp_tensor *self, tp_memory_format memory_format, bool *result) {
    *result = tp_is_contiguous_in(self, memory_format == TP_PRESERVE_FORMAT ? TP_CONTIGUOUS_FORMAT : memory_format);
    return 0;
}
/* _debug_has_internal_overlap(Tensor self) -> int: 0 no, 1 yes, 2 it is not known */
int _debug_has_internal_overlap_composite(tp_tensor *self, int64_t *result) {
    bool repeats = false;
    for (int d = 0; d < self->ndim; d++) repeats |= self->sizes[d] > 1 && self->strides[d] == 0;
    *result = tp_is_dense(self) ? 0 : repeats ? 1 : 2;
    return 0;
}
/* _has_same_storage_numel(Tensor self, Tensor other) -> bool */
int _has_same_storage_numel_composite(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = self->storage->nbytes / (size_t)tp_itemsize((tp_dtype)self->dtype) ==
              other->storage->nbytes / (size_t)tp_itemsize((tp_dtype)other->dtype);
    return 0;
}
/* _has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool: one of them can become the other */
int _has_compatible_shallow_copy_type_composite(tp_tensor *self, tp_tensor *from, bool *result) {
    *result = ((self->keys ^ from->keys) & (TP_BACKEND_KEYS | TP_LAYOUT_KEYS)) == 0;
    return 0;
}
/* can_cast(ScalarType from_, ScalarType to) -> bool */
int op_can_cast_composite(tp_dtype from, tp_dtype to, bool *result) {
    *result = tp_can_cast(from, to);
    return 0;
}
/* promote_types(ScalarType type1, ScalarType type2) -> ScalarType */
int op_promote_types_composite(tp_dtype type1, tp_dtype type2, tp_dtype *result) {
    *result = tp_promote_dtypes(type1, type2);
    return *result == TP_NO_DTYPE ? -1 : 0;
}
/* _new_zeros_with_same_feature_meta(Tensor self, Tensor other, *, int self_num_batch_dims=0) -> Tensor: zeros in the
 * geometry of `other`, as often as the first dimensions of `self` count */
tp_tensor *_new_zeros_with_same_feature_meta_composite(tp_tensor *self, tp_tensor *other, int64_t self_num_batch_dims) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS], batch = self_num_batch_dims;
    if (batch < 0 || batch > self->ndim || batch + other->ndim > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "_new_zeros_with_same_feature_meta: %lld batch dimensions of %d",
                            (long long)batch, self->ndim);
    int64_t each = (int64_t)other->storage->nbytes / tp_itemsize((tp_dtype)other->dtype), count = each;
    for (int64_t d = batch - 1; d >= 0; d--) {
        sizes[d] = self->sizes[d];
        strides[d] = count;
        count *= sizes[d];
    }
    memcpy(sizes + batch, other->sizes, (size_t)other->ndim * sizeof *sizes);
    memcpy(strides + batch, other->strides, (size_t)other->ndim * sizeof *strides);
    tp_autoref *flat = tp_new_zeros(other, (tp_ints){&count, 1}, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    return flat ? tp_as_strided(flat, (tp_ints){sizes, batch + other->ndim}, (tp_ints){strides, batch + other->ndim},
                                TP_SOME_INT(tp_storage_offset(other)))
                : NULL;
}
