/* host_ints.h: ints of a tensor that decide what an operator does: sizes, classes, places. */
#pragma once

#include "core/tensor.h"

/* The elements as a contiguous int64 tensor of the host, new: wherever they are, and of a wrapper, which has none of
 * its own (Note [Wrappers]), by the operators that its class answers. */
tp_tensor *tp_host_ints(tp_tensor *t);
