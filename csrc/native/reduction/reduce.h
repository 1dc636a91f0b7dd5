/* reduce.h: dimensions of reductions: as bits, as sizes, and as the primitives take them. */
#pragma once

#include "core/tensor.h"

#define TP_ALL_DIMS (~UINT64_C(0))

/* A set of dimensions as bits; all of them for an absent or empty list. Fails on a dimension out of range or twice. */
int tp_reduce_mask(tp_ints dim, int64_t ndim, uint64_t *mask);
/* The sizes that are left: without the dimensions of the mask, or with size 1 in their place. Returns their number. */
int tp_reduce_sizes(const tp_tensor *self, uint64_t mask, bool keepdim, int64_t *sizes);
/* The dimensions of the mask, in `room` of TP_MAX_DIMS. */
tp_ints tp_reduce_dims(const tp_tensor *self, uint64_t mask, int64_t *room);
/* Calls a primitive reduce.* that takes dimensions only. */
typedef int (*tp_reduce_prim)(tp_tensor *x, tp_ints dim, tp_tensor *out);
int tp_reduce_by(tp_reduce_prim prim, tp_tensor *self, uint64_t mask, tp_tensor *out);
