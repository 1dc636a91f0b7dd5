/* panels.h: products of a few rows with a matrix that lies in panels, or whose columns or rows are contiguous. */
#pragma once

#include "core/base.h"
#include "prim/panels.h"

#define TP_FEW_ROWS 4

typedef struct {
    /* out[rows, TP_PANEL] = a[rows, k] @ panel[k, TP_PANEL], the rows of a and out lda and ldc apart; `more`: onto out.
     * NULL where there are no vectors for it. */
    void (*multiply)(const float *a, int64_t lda, int64_t rows, const float *panel, int64_t k, float *out, int64_t ldc,
                     bool more);
    /* out[rows, n] = alpha * a[rows, k] @ b[n, k]^T + beta * out, rows of a, b and out lda, ldb and ldc apart, numbers
     * of a row of out `next`; at most TP_FEW_ROWS rows. NULL likewise. */
    void (*dots)(const float *a, int64_t lda, int64_t rows, const float *b, int64_t ldb, int64_t n, int64_t k,
                 float alpha, float beta, float *out, int64_t ldc, int64_t next);
    int64_t most_rows; /* up to which groups of so few rows are faster than a product of many */
    /* The same of a[rows, k] @ b[k, n], whose rows are ldb apart; a row of out lies side by side. NULL likewise. */
    void (*sums)(const float *a, int64_t lda, int64_t rows, const float *b, int64_t ldb, int64_t n, int64_t k,
                 float alpha, float beta, float *out, int64_t ldc);
} tp_panels_kernels;
