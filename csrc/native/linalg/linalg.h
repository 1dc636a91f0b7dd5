/* linalg.h: what the files of linear algebra ask of matrices, and how they lay them out for the primitives. */
#pragma once

#include "core/tensor.h"

/* RuntimeError unless t is a batch of matrices (square ones, with `square`) of a dtype that is factorized. */
int tp_check_matrix(const char *op, const char *name, const tp_tensor *t, bool square);
/* RuntimeError unless they are of one dtype. */
int tp_check_same_matrices(const char *op, const tp_tensor *a, const tp_tensor *b);

/* The sizes of t without the last `drop`. */
TP_INLINE tp_ints tp_batch_sizes(const tp_tensor *t, int drop) { return (tp_ints){t->sizes, t->ndim - drop}; }
TP_INLINE int64_t tp_rows(const tp_tensor *t) { return t->sizes[t->ndim - 2]; }
TP_INLINE int64_t tp_columns(const tp_tensor *t) { return t->sizes[t->ndim - 1]; }

/* New matrices of a batch that stand column by column in memory; and a copy of t as such, broadcast to the batch. */
tp_tensor *tp_new_columns(tp_ints batch, int64_t rows, int64_t columns, tp_dtype dtype, tp_device device);
tp_tensor *tp_copy_columns(const tp_tensor *t, tp_ints batch);
/* New vectors, contiguous: the batch's sizes and n; without n if it is negative. */
tp_tensor *tp_new_vectors(tp_ints batch, int64_t n, tp_dtype dtype, tp_device device);
/* The same memory as the primitives take it: [batch, columns, rows] of matrices that stand column by column; [batch,
 * rows, columns] of contiguous ones; [batch, n] of contiguous vectors, n negative: [batch]. */
tp_tensor *tp_as_columns(const tp_tensor *t);
tp_tensor *tp_as_rows(const tp_tensor *t);
tp_tensor *tp_as_vectors(const tp_tensor *t, int64_t n);
/* Whether B of A X = B is a vector, or a batch of them: it has the shape of A without its last dimension. */
bool tp_is_vector_side(const tp_tensor *a, const tp_tensor *b);
