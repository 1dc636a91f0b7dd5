/* reduction.h: the reductions that the YAML gives as expressions: from a call to the primitive reduce.program. */
#pragma once

#include "prim/reduce.h"

/* dim: TP_NO_INTS or empty for all dimensions. dtype: TP_NO_DTYPE, or what self is converted to first. */
tp_tensor *tp_reduction_new(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype);
int tp_reduction_into(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype,
                      tp_tensor *out);
