/* about.c: questions about a tensor that need none of its elements, and what dtype a result would have. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "dispatch/key.h"
#include "iter/iter.h"

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
