/* index.h: indices that are looked at before another kernel uses them. */
#pragma once

#include "core/tensor.h"

/* Checks a contiguous int64 index on the device against `size` places of dimension `dim`, under the name of `op`
 * (fault.h). rows NULL: that is all. Else the index, counted from 0 and -1 where it is out of range, becomes the row
 * numbers; if not `first`, behind the dimensions that they hold already. */
int tp_cl_check_index(const char *op, tp_error_class cls, const tp_tensor *index, int64_t dim, int64_t size, bool wrap,
                      tp_tensor *rows, bool first);
