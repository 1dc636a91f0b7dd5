/* reduction.h: the driver of reductions over any dimensions of a tensor.
 *
 * A reduction says how elements are folded into an accumulator and how accumulators are put together; the driver brings
 * it the elements: inner, outer and mixed dimensions, any strides, conversion through blocks that stay in the L1 cache,
 * threads. Accumulators are combined in a binary tree over leaves of at most TP_REDUCE_LEAF elements, so a sum's error
 * grows with the logarithm of the count. The tree depends on the shape only, not on the number of threads.
 *
 * The folds are in tables (kernels.h), compiled per capability; cpu/reduce.c picks a row for each primitive. */
#pragma once

#include "core/tensor.h"

#define TP_REDUCE_LEAF 4096

typedef struct tp_reduction {
    tp_dtype in, out;  /* what fold reads and finish writes; others are converted */
    int64_t size;      /* bytes of an accumulator, at most 64; alignment up to 16 */
    int64_t leaf;      /* the most elements that fold_runs takes into one accumulator: 0 is TP_REDUCE_LEAF */
    int64_t leaf_rows; /* the most rows that fold_rows takes into one accumulator: 0 is TP_REDUCE_LEAF */
    bool indexed;      /* `index` matters: only for one reduced dimension, or a contiguous tensor as a whole */
    void (*init)(void *acc, int64_t n);
    /* In both folds `stride` leads, in bytes, from what belongs to one accumulator to what belongs to the next, and
     * run_stride or row_stride to the next element of the same. index: the first element's number in the reduced space.
     */
    /* Folds n runs of `length` elements into n accumulators: all elements of the i-th run into the i-th. */
    void (*fold_runs)(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                      int64_t index);
    /* Folds rows of n elements into n accumulators: the i-th element of each row into the i-th. */
    void (*fold_rows)(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                      int64_t index);
    /* Puts n accumulators each into another that came earlier. */
    void (*combine)(void *into, const void *from, int64_t n);
    /* Optional: whether no further element can change any of n accumulators. */
    bool (*settled)(const void *acc, int64_t n);
    /* Writes n contiguous results. count: how many elements each is of. `params` is the operator's own. */
    void (*finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params);
} tp_reduction;

/* Reduces dimensions. `out` has the sizes that are left, with or without ones in the others' place, and any strides. */
int tp_reduce(const tp_reduction *r, const tp_tensor *self, tp_ints dim, tp_tensor *out, const void *params);

/* A row of a table of kernels: the functions that cpu/reduction_of.h makes under a name. */
#define TP_REDUCTION_ROW(name, in_, out_, size_) \
    {.in = in_,                                  \
     .out = out_,                                \
     .size = size_,                              \
     .init = name##_init,                        \
     .fold_runs = name##_fold_runs,              \
     .fold_rows = name##_fold_rows,              \
     .combine = name##_combine,                  \
     .finish = name##_finish}
