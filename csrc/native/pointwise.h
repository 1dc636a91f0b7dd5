/* pointwise.h: what a pointwise operator asks of its arguments' values before its loops run (`check:` in the YAML). */
#pragma once

#include "iter/pointwise.h"

/* Integer division needs divisors other than zero: RuntimeError "ZeroDivisionError". */
int tp_check_nonzero_divisor(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* The same, and a rounding mode that exists. */
int tp_check_rounded_division(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
/* Integers to negative powers are no integers. */
int tp_check_nonnegative_exponent(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
