/* sparse.h: the loops of products of sparse matrices with dense ones. */
#pragma once

#include "core/base.h"

/* A sparse matrix by rows (begins) or by coordinates (rows), and what it is multiplied with; indices are in range. */
typedef struct {
    const int64_t *begins, *rows, *columns;
    int64_t n;          /* of values */
    const void *values; /* NULL: ones */
    const void *dense, *other;
    int64_t width; /* columns of the dense matrices */
    void *out;
} tp_sparse_job;

typedef struct {
    /* Rows first up to end of the product; what is there is overwritten. */
    void (*rows)(const tp_sparse_job *job, int64_t first, int64_t end);
    /* Values first up to end whose row is among `low` up to `high` are added. */
    void (*places)(const tp_sparse_job *job, int64_t first, int64_t end, int64_t low, int64_t high);
    /* Values first up to end: products of rows of `dense` and of `other`. */
    void (*dots)(const tp_sparse_job *job, int64_t first, int64_t end);
} tp_sparse_loops;

typedef struct {
    tp_sparse_loops f32, f64;
} tp_sparse_kernels;
