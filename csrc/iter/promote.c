/* promote.c: result types: which dtype an operator computes in and which it gives.
 *
 * PyTorch's rule (aten/src/ATen/native/TypeProperties.cpp): operands fall into three groups, tensors with dimensions,
 * 0-dimensional tensors and numbers. Each group promotes by itself; a lower group changes the result of a higher one
 * only where it is of a higher category. */
#include "core/memory.h"
#include "iter/iter.h"

/* The promotion of a group so far with one more dtype. */
static int promote_group(tp_dtype *group, tp_dtype d) {
    if (*group == TP_NO_DTYPE || *group == d) {
        *group = d;
        return 0;
    }
    *group = tp_promote_dtypes(*group, d);
    return *group == TP_NO_DTYPE ? -1 : 0;
}

static tp_dtype complex_of(tp_dtype d) {
    if (!tp_is_float8_dtype(d)) return tp_to_complex_dtype(d);
    tp_fail(TP_RuntimeError, "Unknown Complex ScalarType for %s", tp_scalar_type_name(d));
    return TP_NO_DTYPE;
}

static tp_dtype combine_groups(tp_dtype high, tp_dtype low) {
    if (high == TP_NO_DTYPE) return low;
    if (low == TP_NO_DTYPE || tp_is_complex_dtype(high)) return high;
    if (tp_is_floating_dtype(high)) return tp_is_complex_dtype(low) ? complex_of(high) : high;
    if (tp_is_complex_dtype(low)) return low; /* also for the wide unsigned types, which promote with no complex type */
    if (high == TP_BOOL || tp_is_floating_dtype(low)) return tp_promote_dtypes(high, low);
    return high;
}

static tp_dtype wrapped_dtype(const tp_tensor *t) {
    if (tp_is_complex(t)) return tp_to_complex_dtype(tp_default_dtype());
    return tp_is_floating(t) ? tp_default_dtype() : (tp_dtype)t->dtype;
}

tp_dtype tp_result_type(const tp_operand *operands, int n) {
    tp_dtype dimensioned = TP_NO_DTYPE, zero_dim = TP_NO_DTYPE, number = TP_NO_DTYPE;
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = operands[i].tensor;
        int status;
        if (!t) status = operands[i].number ? promote_group(&number, tp_scalar_dtype(operands[i].number)) : 0;
        else if (t->ndim) status = promote_group(&dimensioned, (tp_dtype)t->dtype);
        else if (t->flags & TP_FLAG_WRAPPED_NUMBER) status = promote_group(&number, wrapped_dtype(t));
        else status = promote_group(&zero_dim, (tp_dtype)t->dtype);
        if (status < 0) return TP_NO_DTYPE;
    }
    tp_dtype low = combine_groups(zero_dim, number);
    if (low == TP_NO_DTYPE && tp_error_pending()) return TP_NO_DTYPE;
    return combine_groups(dimensioned, low);
}

tp_tensor *tp_number_beside(const tp_scalar *number, const tp_tensor *t) {
    tp_dtype common = tp_result_type((tp_operand[]){{(tp_tensor *)t, NULL}, {NULL, number}}, 2);
    tp_tensor *made = common == TP_NO_DTYPE ? NULL : tp_new_empty(TP_EMPTY_INTS, common, TP_CPU);
    if (made) tp_scalar_store(number, common, tp_data(made));
    return made;
}

tp_dtype tp_promotion_compute(tp_promotion promotion, tp_dtype common) {
    switch (promotion) {
    case TP_PROMOTE_INT_TO_FLOAT: return common < TP_FLOAT16 ? tp_default_dtype() : common;
    case TP_PROMOTE_BOOL_TO_LONG: return common == TP_BOOL ? TP_INT64 : common;
    default: return common;
    }
}

int tp_check_castable(tp_dtype from, tp_dtype to) {
    if (tp_can_cast(from, to)) return 0;
    return tp_fail(TP_RuntimeError, "result type %s can't be cast to the desired output type %s",
                   tp_scalar_type_name(from), tp_scalar_type_name(to));
}
