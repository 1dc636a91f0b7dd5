/* sort.h: the order of lines, for kernels that look at elements in it. */
#pragma once

#include "core/tensor.h"

/* For each place of each line (the last dimension) where its element is in the unsorted line, stable: int64 of the
 * lines' shape. */
int tp_cl_sort_places(tp_tensor *lines, bool descending, tp_tensor *places);
