/* gemm.h: matrix products on strided operands. */
#pragma once

#include "core/tensor.h"

/* out = alpha * a @ b + beta * out for matrices (m,k), (k,n), (m,n) of one dtype, any strides; with beta 0 out's old
 * content does not matter. Row- and column-major operands, with or without gaps, go to BLAS as they are; others are
 * copied. 16-bit floats compute in float32; integers and bool in C. */
int tp_gemm(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta);
/* The same for batches of matrices: three dimensions, the first a batch (stride 0 will do for a and b). */
int tp_gemm_batched(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha,
                    const tp_scalar *beta);

/* c = a @ b + beta * c on row-major memory without checks: a (m,k), stored transposed if trans_a, rows lda apart; b and
 * c likewise. dtype: float32, float64, complex64, complex128 or an integer type. The caller may hold no host lock. */
int tp_gemm_raw(tp_dtype dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                const void *b, int64_t ldb, int beta, void *c, int64_t ldc);
