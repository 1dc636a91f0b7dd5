/* gemm.h: matrix products on memory. */
#pragma once

#include "core/tensor.h"

/* c = a @ b + beta * c on row-major memory without checks: a (m,k), stored transposed if trans_a, rows lda apart; b and
 * c likewise. dtype: float32, float64, complex64, complex128 or an integer type. The caller may hold no host lock. */
int tp_gemm_raw(tp_dtype dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                const void *b, int64_t ldb, int beta, void *c, int64_t ldc);
