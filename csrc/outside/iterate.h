/* iterate.h: the iterator for kernels from outside (tensorpy/iterator.h). */
#pragma once

#include "iter/iter.h"
#include "tensorpy/iterator.h"

tp_tensor *tp_outside_new_output(const tp_operand *inputs, int n, tp_dtype dtype);
int tp_outside_plan(tp_tensor *const *tensors, int noutputs, int n, tp_plan *out);
int tp_outside_walk(const tp_plan *plan, tp_loop_fn loop, const void *params, int64_t grain);
