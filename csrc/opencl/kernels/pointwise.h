/* pointwise.h: launches of elementwise kernels: a plan of the iterator, an expression, operands.
 *
 * The kernel's text is put together once for each combination of operator, operand dtypes and layout class: loads that
 * convert to the compute dtype, the generated function, a store that converts back. The layout classes are `flat`
 * (every operand is contiguous or one element) and `strided` with the number of dimensions; sizes and strides are
 * arguments. */
#pragma once

#include "opencl/runtime/launch.h"
#include "prim/pointwise.h"

/* Operand 0 from operand 1 by the conversion between their dtypes; a NULL tensor is a number at it->data[1]. */
int tp_cl_run_copy(const tp_iter *it, tp_tensor *const *tensors);
