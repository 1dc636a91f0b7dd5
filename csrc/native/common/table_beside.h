/* table_beside.h: tables of the host (prim/table.h) for what a tensor's device computes: a table is filled only where
 * there are values to compute with. */
#pragma once

#include "core/tensor.h"

/* A new table, and its elements to set; on Meta like `like`, with *values NULL, if that has no values and no layer
 * records the call. */
tp_tensor *tp_table_int64_beside(const tp_tensor *like, tp_ints sizes, int64_t **values);
tp_tensor *tp_table_float64_beside(const tp_tensor *like, tp_ints sizes, double **values);
/* The table on the device of `like` in the dtype; NULL for NULL. */
tp_tensor *tp_table_moved_steal(tp_tensor *table, const tp_tensor *like, tp_dtype dtype);
