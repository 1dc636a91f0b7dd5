/* pieces.h: calls that want their operands in another form (16-bit floats as float32, gaps closed) take them a part of
 * the rows at a time: what is made for a part stays in the cache, and no call needs memory for a second tensor. */
#pragma once

#include "core/tensor.h"

typedef int (*tp_piece_fn)(tp_tensor *const *parts, const void *context);

#define TP_MAX_PIECES 5     /* tensors that are cut together */
#define TP_WHOLE UINT64_MAX /* all dimensions: nothing is cut */

/* The bits of the last n dimensions. */
TP_INLINE uint64_t tp_last_dims(const tp_tensor *t, int64_t n) { return UINT64_MAX << (t->ndim - n); }

/* Calls `run` for parts of n tensors (NULL: absent), which are cut along those dimensions of the first that are not in
 * `whole` (a bit each); the others have its size there. Rows have to be independent of each other: the results are
 * those of one call. Small tensors come as they are. Returns 0, or -1 and the error of the part that failed. */
int tp_by_pieces(tp_tensor *const *tensors, int n, uint64_t whole, tp_piece_fn run, const void *context);
