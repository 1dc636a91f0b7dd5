/* pointwise_checks.h: what a pointwise operator asks of its arguments' values before its loops run (`check:` in the
 * YAML). */
#pragma once

#include "prim/pointwise.h"

/* add: an alpha that fits what is computed. */
int tp_refuse_alpha(const tp_pointwise *p, const tp_operand *inputs, const tp_scalar *alpha);
TP_INLINE int tp_check_alpha(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    const tp_scalar *alpha = params[0].scalar;
    return tp_likely(alpha->kind == TP_SCALAR_INT) ? 0 : tp_refuse_alpha(p, inputs, alpha);
}
TP_INLINE bool tp_operand_is_bool(const tp_operand *o) {
    return o->number ? o->number->kind == TP_SCALAR_BOOL : o->tensor->dtype == TP_BOOL;
}
/* sub: the same, and no bools. */
int tp_refuse_bools(const tp_operand *inputs);
TP_INLINE int tp_check_subtraction(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    if (tp_unlikely(tp_operand_is_bool(&inputs[0]) || tp_operand_is_bool(&inputs[1]))) return tp_refuse_bools(inputs);
    return tp_check_alpha(p, inputs, params);
}
/* neg: no bools. */
int tp_refuse_negation(const tp_pointwise *p);
TP_INLINE int tp_check_negation(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    return tp_unlikely(tp_operand_is_bool(&inputs[0])) ? tp_refuse_negation(p) : 0;
}
/* lerp: nothing is promoted; but the weight of lerp may be a number of another dtype in a tensor. */
int tp_check_one_dtype(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* heaviside: the same of real numbers. */
int tp_check_real_step(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* sign, signbit, floor and its kin: real numbers, and what to call for others. */
int tp_check_real_sign(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_real_sign_bit(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_no_bools(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_order(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_real_infinity(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_real_rounding(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* polygamma: how many derivatives. */
int tp_check_nonnegative_order(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* masked_fill: a boolean mask. */
int tp_check_mask(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* masked_fill_ of an expanded tensor: its memory is filled where the mask is true for one of its elements. */
int tp_expanded_fill(tp_tensor *self, tp_tensor *mask, const tp_scalar *value);
/* addcdiv: no quotient of two integers. */
int tp_check_true_quotient(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* softshrink: a bound that is not below zero. */
int tp_check_nonnegative_bound(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* hardtanh: limits that an unsigned dtype can hold. */
int tp_check_unsigned_limits(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* leaky_relu_backward and elu_backward: a result says of the sign of its input only where the slope is not negative. */
int tp_check_slope_of_result(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_check_slope_of_elu_result(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* gelu: a word that it knows. */
int tp_check_approximation(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* clamp: bounds that the tensor's dtype can hold, unless the number decides what is computed in. */
int tp_check_bounds(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* where: the condition's dtype, and a number that the other's dtype can hold. */
int tp_odd_condition(const tp_tensor *condition);
int tp_check_choices(const tp_pointwise *p, const tp_operand *inputs);
TP_INLINE int tp_check_condition(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    const tp_tensor *t = inputs[0].tensor;
    if (tp_unlikely(t && t->dtype != TP_BOOL)) return tp_odd_condition(t);
    return inputs[1].number || inputs[2].number ? tp_check_choices(p, inputs) : 0;
}
/* Integer division needs divisors other than zero: RuntimeError "ZeroDivisionError". */
int tp_check_nonzero_divisor(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* The same, and a rounding mode that exists. */
int tp_check_rounded_division(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* Integers to negative powers are no integers. */
int tp_check_nonnegative_exponent(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
