/* host_ints.h: ints of a tensor that decide what an operator does: sizes, classes, places. */
#pragma once

#include "core/tensor.h"

/* The elements as a contiguous int64 tensor of the host, new: wherever they are, and one by one where a layer sees
 * reads (tp_read_is_seen in dispatch/key.h). */
tp_tensor *tp_host_ints(tp_tensor *t);
