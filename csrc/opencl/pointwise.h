/* pointwise.h: launches of elementwise kernels: a plan of the iterator, an expression, operands.
 *
 * The kernel's text is put together once for each combination of operator, operand dtypes and layout class: loads that
 * convert to the compute dtype, the generated function, a store that converts back. The layout classes are `flat`
 * (every operand is contiguous or one element) and `strided` with the number of dimensions; sizes and strides are
 * arguments. */
#pragma once

#include "opencl/launch.h"
#include "prim/pointwise.h"

typedef struct {
    const char *function; /* OpenCL C of `expr` */
    const char *types;    /* of its parameters behind the inputs, separated by spaces */
    const char *how;      /* where the host takes them from, separated by commas: 0vf32, 1n, 2stanh */
    const char *built_in; /* the function of OpenCL C that `expr` is, or "" */
    const char *quick;    /* OpenCL C of `quick_expr`, by the quick forms of math.h, or "": there are none */
} tp_cl_expression;

typedef struct {
    const char *name; /* "add_Tensor", no two alike */
    const tp_cl_expression *expressions;
} tp_cl_pointwise;

/* Generated (PointwiseOpenCL.c): by the number of the operator. */
extern const tp_cl_pointwise tp_cl_pointwise_table[];

/* Operand 0 from operand 1 by the conversion between their dtypes; a NULL tensor is a number at it->data[1]. */
int tp_cl_run_copy(const tp_iter *it, tp_tensor *const *tensors);
