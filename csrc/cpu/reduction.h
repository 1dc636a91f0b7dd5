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
#include "tensorpy/expressions.h"

#define TP_REDUCE_LEAF 4096

/* Reduces dimensions. `out` has the sizes that are left, with or without ones in the others' place, and any strides. */
int tp_reduce(const tp_reduction *r, const tp_tensor *self, tp_ints dim, tp_tensor *out, const void *params);
