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
    /* Lays `columns` columns of b at a time as [k, columns], one after another; what is missing in the last is 0. */
    void (*pack)(tp_strided b, int64_t k, int64_t n, float *panels);
    /* Lays groups of `rows` rows of a, each as [k, rows], one after another. room: for (m + rows) * k floats. */
    void (*pack_rows)(tp_strided a, int64_t m, int64_t k, float *room);
    /* c[m, n] = alpha * a[m, k] @ b + beta * c, rows of c ldc apart. rows: a as pack_rows lays it, or NULL, where it is
     * read as it lies. b's columns are laid in panels, or lie there where b has no data. */
    void (*multiply)(tp_strided a, const float *rows, int64_t m, int64_t k, tp_strided b, float *panels, int64_t n,
                     float alpha, float beta, float *c, int64_t ldc);
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
