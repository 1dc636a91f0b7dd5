/* pack.h: numbering of groups, which sort.c ends with. */
#pragma once

#include "native/device_kernels.h"

/* begins: whether each of n items, in an order (NULL: their own), is the first of its group. Waits for their number. */
int tp_cl_number_groups(const tp_tensor *begins, const tp_tensor *order, tp_distinct *out);
