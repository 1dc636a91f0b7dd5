/* sgemm.h: products of float32 matrices that are large enough to be laid out for the registers. */
#pragma once

#include "core/base.h"

/* A matrix [rows, columns] whose element (i, j) is data[i * row + j * column]; one of the two steps is 1. */
typedef struct {
    const float *data;
    int64_t row, column;
} tp_strided;

#define TP_SGEMM_ROWS 14 /* at most */
typedef struct {
    int64_t rows, columns; /* of the tile whose sums the registers hold */
    /* Lays columns of b, at most `columns`, as [k, columns]; what is missing is 0. */
    void (*pack)(tp_strided b, int64_t k, int64_t n, float *panel);
    /* c[m, n] = alpha * a[m, k] @ b + beta * c, rows of c ldc apart; b's columns lie in panels one after another. room:
     * for (m + rows) * k floats. */
    void (*multiply)(tp_strided a, int64_t m, int64_t k, const float *panels, int64_t n, float alpha, float beta,
                     float *c, int64_t ldc, float *room);
    /* `rows` rows of n numbers, `next` apart, become columns of rows that are `width` apart. */
    void (*turn)(const float *from, int64_t next, int64_t rows, int64_t n, float *to, int64_t width);
} tp_sgemm_kernels; /* functions of NULL where there are no vectors for it */

/* Whether tp_sgemm takes products of these sizes: it is faster than the BLAS library then. */
bool tp_sgemm_fits(int64_t m, int64_t n, int64_t k, tp_strided b);

/* c[m, n] = alpha * a[m, k] @ b[k, n] + beta * c, rows of c ldc apart; c is not read where beta is 0. Sums are made in
 * the same order for any number of threads and of rows. The caller may hold no host lock. -1: no memory, or a signal.
 */
int tp_sgemm(int64_t m, int64_t n, int64_t k, float alpha, tp_strided a, tp_strided b, float beta, float *c,
             int64_t ldc);
