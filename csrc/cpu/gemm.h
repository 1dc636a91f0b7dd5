/* gemm.h: matrix products on strided operands. */
#pragma once

#include "core/tensor.h"

/* out = alpha * a @ b + beta * out for matrices (m,k), (k,n), (m,n) of one dtype, any strides; with beta 0 out's old
 * content does not matter. Row- and column-major operands, with or without gaps, go to BLAS as they are; others are
 * copied. 16-bit floats compute in float32; integers and bool in C. */
int tp_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
