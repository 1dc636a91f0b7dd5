/* pointwise_checks.c: conditions on the values of pointwise operators' arguments. Each looks at the elements only where
 * the computation is in integers, and never on Meta. */
#include "native/pointwise/pointwise_checks.h"

#include "Functions.h"
#include "core/determinism.h"
#include "native/common/checks.h"
#include "native/common/out.h"

#include <string.h>

static bool is_integral(const tp_operand *o) {
    if (o->number) return o->number->kind <= TP_SCALAR_UINT;
    return tp_dtype_categories[o->tensor->dtype] <= TP_SIGNED;
}

static bool computes_in_integers(const tp_operand *inputs) {
    return is_integral(&inputs[0]) && is_integral(&inputs[1]);
}

static bool on_meta(const tp_operand *inputs, int n) {
    for (int i = 0; i < n; i++)
        if (inputs[i].tensor && !tp_has_values(inputs[i].tensor)) return true;
    return false;
}

static bool is_complex(const tp_operand *o) {
    if (o->number) return o->number->kind == TP_SCALAR_COMPLEX;
    return tp_dtype_categories[o->tensor->dtype] == TP_COMPLEX;
}

int tp_refuse_alpha(const tp_pointwise *p, const tp_operand *inputs, const tp_scalar *alpha) {
    bool bools = tp_operand_is_bool(&inputs[0]) && tp_operand_is_bool(&inputs[1]);
    if (alpha->kind == TP_SCALAR_BOOL && !bools)
        return tp_fail(TP_RuntimeError, "%s: Boolean alpha only supported for Boolean results", p->name);
    if (alpha->kind >= TP_SCALAR_FLOAT && computes_in_integers(inputs))
        return tp_fail(TP_RuntimeError,
                       "%s: For integral input tensors, argument alpha must not be a floating point number, got %g",
                       p->name, tp_scalar_double(alpha));
    if (alpha->kind == TP_SCALAR_COMPLEX && !is_complex(&inputs[0]) && !is_complex(&inputs[1]))
        return tp_fail(TP_RuntimeError,
                       "%s: For non-complex input tensors, argument alpha must not be a complex number", p->name);
    return 0;
}

int tp_refuse_bools(const tp_operand *inputs) {
    bool both = tp_operand_is_bool(&inputs[0]) && tp_operand_is_bool(&inputs[1]);
    return tp_fail(TP_RuntimeError, "Subtraction, the `-` operator, with %s not supported. %s",
                   both ? "two bool tensors is" : "a bool tensor is",
                   both ? "Use the `^` or `logical_xor()` operator instead."
                        : "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.");
}

int tp_refuse_negation(const tp_pointwise *p) {
    return tp_fail(TP_RuntimeError,
                   "%s: Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
                   "mask, use the `~` or `logical_not()` operator instead.",
                   p->name);
}

int tp_check_one_dtype(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    for (int i = 1; i < p->ninputs; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t || (i > 1 && t->ndim == 0)) continue;
        tp_dtype wanted = (tp_dtype)inputs[0].tensor->dtype;
        if (t->dtype != wanted)
            return tp_fail(TP_RuntimeError, "%s: expected dtype %s for `%s` but got dtype %s", p->name,
                           tp_c_type_name(wanted), p->inputs[i], tp_c_type_name((tp_dtype)t->dtype));
    }
    return 0;
}

int tp_check_real_step(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (is_complex(&inputs[0]) || is_complex(&inputs[1]))
        return tp_fail(TP_RuntimeError, "%s is not yet implemented for complex tensors.", p->name);
    if (inputs[0].tensor && inputs[1].tensor && inputs[0].tensor->dtype != inputs[1].tensor->dtype)
        return tp_fail(TP_RuntimeError, "%s is not yet implemented for tensors with different dtypes: %s and %s",
                       p->name, tp_dtype_names[inputs[0].tensor->dtype], tp_dtype_names[inputs[1].tensor->dtype]);
    return 0;
}

int tp_check_real_sign(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_complex(&inputs[0])) return 0;
    return tp_fail(TP_NotImplementedError,
                   "Unlike NumPy, torch.%s is not intended to support complex numbers. Please use torch.sgn instead.",
                   p->name);
}

int tp_check_real_sign_bit(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_complex(&inputs[0])) return 0;
    return tp_fail(TP_NotImplementedError, "%s is not implemented for complex tensors.", p->name);
}

int tp_check_no_bools(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!tp_operand_is_bool(&inputs[0])) return 0;
    return tp_fail(TP_RuntimeError, "Boolean inputs not supported for %s", p->name);
}

int tp_check_order(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_complex(&inputs[0]) && !is_complex(&inputs[1])) return 0;
    return tp_fail(TP_RuntimeError, "%s not implemented for complex tensors.", p->name);
}

int tp_check_real_infinity(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_complex(&inputs[0])) return 0;
    return tp_fail(TP_RuntimeError, "%s does not support complex inputs.", p->name);
}

int tp_check_real_rounding(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_complex(&inputs[0])) return 0;
    return tp_fail(TP_NotImplementedError, "%s is not supported for complex inputs", p->name);
}

int tp_check_nonnegative_order(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)inputs;
    if (params[0].i >= 0) return 0;
    return tp_fail(TP_RuntimeError, "%s(n, x) does not support negative n.", p->name);
}

int tp_check_mask(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    const tp_tensor *mask = inputs[1].tensor;
    if (!mask || mask->dtype == TP_BOOL) return 0;
    return tp_fail(TP_RuntimeError, "%.*s_ only supports boolean masks, but got mask with dtype %s",
                   (int)strcspn(p->name, "."), p->name, tp_scalar_type_name((tp_dtype)mask->dtype));
}

int tp_check_true_quotient(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!is_integral(&inputs[1]) || !is_integral(&inputs[2])) return 0;
    return tp_fail(
        TP_RuntimeError,
        "Integer division with addcdiv is no longer supported; %s takes tensor1 or tensor2 of a floating dtype",
        p->name);
}

int tp_check_nonnegative_bound(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)inputs;
    double bound = tp_scalar_double(params[0].scalar);
    if (bound >= 0) return 0;
    return tp_fail(TP_RuntimeError, "%s: lambda must be in range [0, the largest number of the input dtype], found %g",
                   p->name, bound);
}

int tp_check_unsigned_limits(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    const tp_tensor *t = inputs[0].tensor;
    bool below = tp_scalar_double(params[0].scalar) < 0 || tp_scalar_double(params[1].scalar) < 0;
    if (!below || !t || tp_dtype_categories[t->dtype] != TP_UNSIGNED) return 0;
    return tp_fail(TP_RuntimeError, "cannot do %s on an unsigned type with negative limits", p->name);
}

static int check_slope(const char *name, const tp_scalar *slope, bool is_result) {
    if (!is_result || tp_scalar_double(slope) >= 0) return 0;
    return tp_fail(
        TP_RuntimeError,
        "In-place %s backward calculation is triggered with a negative slope which is not supported. This is "
        "caused by calling in-place forward function with a negative slope, please call out-of-place version "
        "instead.",
        name);
}
int tp_check_slope_of_result(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)p, (void)inputs;
    return check_slope("leakyReLu", params[0].scalar, params[1].b);
}
int tp_check_slope_of_elu_result(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)p, (void)inputs;
    return check_slope("elu", params[0].scalar, params[3].b);
}

int tp_check_approximation(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)inputs;
    if (strcmp(params[0].str, "none") == 0 || strcmp(params[0].str, "tanh") == 0) return 0;
    return tp_fail(TP_RuntimeError, "%s: approximate argument must be either none or tanh, but found '%s'", p->name,
                   params[0].str);
}

/* A number that does not decide the dtype has to be one of it. */
static int check_number(const tp_pointwise *p, const tp_scalar *number, tp_dtype dtype) {
    static const uint8_t categories[] = {[TP_SCALAR_BOOL] = TP_BOOLEAN,
                                         [TP_SCALAR_INT] = TP_SIGNED,
                                         [TP_SCALAR_UINT] = TP_SIGNED,
                                         [TP_SCALAR_FLOAT] = TP_FLOATING,
                                         [TP_SCALAR_COMPLEX] = TP_COMPLEX};
    int own = tp_dtype_categories[dtype] == TP_UNSIGNED ? TP_SIGNED : tp_dtype_categories[dtype];
    if (categories[number->kind] > own || tp_scalar_check_fits(number, dtype) == 0) return 0;
    return tp_error_prefix("%s: ", p->name);
}

int tp_check_bounds(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    int status = 0;
    for (int i = 0; i < p->ninputs; i++)
        if (is_complex(&inputs[i])) return tp_fail(TP_NotImplementedError, "clamp is not supported for complex types");
    for (int i = 1; status == 0 && i < p->ninputs; i++)
        if (inputs[i].number) status = check_number(p, inputs[i].number, (tp_dtype)inputs[0].tensor->dtype);
    return status;
}

/* Into a half too large a number goes as infinity, as in PyTorch. */
int tp_check_choices(const tp_pointwise *p, const tp_operand *inputs) {
    const tp_tensor *t = inputs[1].tensor ? inputs[1].tensor : inputs[2].tensor;
    const tp_scalar *number = inputs[1].number ? inputs[1].number : inputs[2].number;
    if (!t || t->dtype == TP_FLOAT16 || t->dtype == TP_BFLOAT16) return 0;
    return check_number(p, number, (tp_dtype)t->dtype);
}

/* A condition of bytes is taken, as masks once were, and otherwise none but of booleans. */
int tp_odd_condition(const tp_tensor *condition) {
    if (condition->dtype == TP_UINT8)
        return tp_warn_once("where received a uint8 condition tensor. This behavior is deprecated: give a boolean one");
    return tp_fail(TP_RuntimeError, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                   tp_scalar_type_name((tp_dtype)condition->dtype));
}

/* Whether some element of a boolean tensor (stolen) is true; -1 with the error set. */
static int any_true_steal(tp_tensor *mask) {
    tp_autoref *owned = mask;
    tp_autoref *any = owned ? tp_any(owned) : NULL;
    bool found;
    if (!any || tp_holds(any, &found) < 0) return -1;
    return found;
}

/* The integers that a number or a tensor of no dimension is computed in beside another operand. */
static tp_dtype decided_by(const tp_operand *o) {
    return o->tensor && o->tensor->dtype != TP_BOOL ? (tp_dtype)o->tensor->dtype : TP_INT64;
}

/* 256 is zero beside bytes. */
static int is_zero_divisor(const tp_operand *dividend, const tp_operand *divisor) {
    tp_dtype dtype = decided_by(dividend);
    if (divisor->number) return tp_scalar_uint(divisor->number) << (64 - 8 * tp_itemsize(dtype)) == 0;
    bool joins = divisor->tensor->ndim == 0 && dividend->tensor && dividend->tensor->ndim > 0 &&
                 tp_itemsize(dtype) < tp_itemsize((tp_dtype)divisor->tensor->dtype);
    tp_autoref *held = joins ? tp_to_dtype(divisor->tensor, dtype, false, false, TP_NO_FORMAT) : NULL;
    if (joins && !held) return -1;
    return any_true_steal(tp_eq_Scalar(held ? held : divisor->tensor, TP_SCALAR_I(0)));
}

int tp_check_nonzero_divisor(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!computes_in_integers(inputs) || on_meta(inputs, 2)) return 0;
    if (inputs[0].tensor && inputs[0].tensor->numel == 0) return 0;
    int zero = is_zero_divisor(&inputs[0], &inputs[1]);
    if (zero <= 0) return zero;
    return tp_fail(TP_RuntimeError, "ZeroDivisionError: %s: an integer is divided by zero", p->name);
}

int tp_check_rounded_division(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    const char *mode = params[0].tag == TP_STR ? params[0].str : "None";
    if (strcmp(mode, "trunc") != 0 && strcmp(mode, "floor") != 0)
        return tp_fail(TP_RuntimeError,
                       "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode);
    return tp_check_nonzero_divisor(p, inputs, params);
}

static int any_negative(const tp_operand *o) {
    if (o->number) return tp_scalar_double(o->number) < 0;
    return any_true_steal(tp_lt_Scalar(o->tensor, TP_SCALAR_I(0)));
}

int tp_check_nonnegative_exponent(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params) {
    (void)params;
    if (!inputs[1].number || !computes_in_integers(inputs)) return 0; /* a tensor of them gives 0, 1 or -1 below zero */
    if (any_negative(&inputs[1]) == 0) return check_number(p, inputs[1].number, decided_by(&inputs[0]));
    return tp_fail(TP_RuntimeError, "Integers to negative integer powers are not allowed.");
}
