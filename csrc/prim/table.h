/* table.h: small tensors of the host that operators make or read themselves: places, weights, counts. */
#pragma once

#include "core/tensor.h"

/* A new contiguous tensor of the host, and its elements, which are the caller's to set. */
tp_tensor *tp_table_int64(tp_ints sizes, int64_t **values);
tp_tensor *tp_table_float64(tp_ints sizes, double **values);
/* The elements of a contiguous int64 tensor of the host; NULL and a RuntimeError for one without memory of its own, as
 * a batched tensor is. */
const int64_t *tp_table_values(const tp_tensor *table);
