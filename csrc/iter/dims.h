/* dims.h: a group of dimensions that is walked by two operands, nearest in memory first: what a reduction keeps, and
 * what it folds. Strides are in the caller's unit. */
#pragma once

#include "core/tensor.h"

typedef struct {
    int n;
    int64_t size[TP_MAX_DIMS + 1], in[TP_MAX_DIMS + 1], out[TP_MAX_DIMS + 1];
} tp_dims;

/* Puts a dimension in its place by the size of `in`; among equal ones the first one added stays first. */
void tp_dims_add(tp_dims *d, int64_t size, int64_t in, int64_t out);
/* Dimensions that lie one after another in both operands become one; none at all becomes one of size 1. */
void tp_dims_merge(tp_dims *d);
int64_t tp_dims_numel(const tp_dims *d);
