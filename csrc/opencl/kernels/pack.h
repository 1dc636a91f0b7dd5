/* pack.h: numbering of groups, which sort.c ends with. */
#pragma once

#include "core/tensor.h"

/* begins: whether each of n items, in an order (NULL: their own), is the first of its group. The first item of each
 * group, its size, and the group of every item, as the primitive distinct gives them. Waits for their number. */
tp_tensor3 tp_cl_number_groups(const tp_tensor *begins, const tp_tensor *order);
