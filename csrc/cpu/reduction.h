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
#include "prim/reduce.h"
#include "tensorpy/expressions.h"

#include <stddef.h>

/* Reduces dimensions. `out` has the sizes that are left, with or without ones in the others' place, and any strides. */
int tp_reduce(const tp_reduction *r, const tp_tensor *self, tp_ints dim, tp_tensor *out, const void *params);

/* The kernels of a fold of x into out (cpu/reduce.c); `program` and `compute` are a program's. NULL and the error set
 * where there is no such fold or program. */
const tp_reduction *tp_reduction_row(tp_fold fold, int64_t program, tp_dtype compute, const tp_tensor *x,
                                     const tp_tensor *out);

/* Elements that are made as they are reduced, each once. */
typedef struct {
    size_t state; /* bytes of a thread's own, for `make`, which finds in them what the last call left */
    bool whole;   /* all elements are to be made, whatever the result needs */
    /* Makes the elements from `first` on, in the order of the tensor's elements; they lie where it says, in the buffer
     * or in memory that stays. Sets the thread's error on failure. */
    const char *(*make)(const void *context, void *state, char *buffer, int64_t first, int64_t n);
    const void *context;
} tp_reduce_source;

/* The same of a contiguous tensor without memory, whose elements are the source's; the same bits as from memory. False
 * where the source cannot give them in the order in which they are folded: nothing has been done then; else *status is
 * the result. */
bool tp_reduce_made(const tp_reduction *r, const tp_tensor *self, const tp_reduce_source *source, tp_ints dim,
                    tp_tensor *out, int *status);
