/* reduction.h: the reductions that the YAML gives as expressions: from a call to the driver of iter/reduce.h.
 *
 * The generator describes each by one tp_reduction_op; the functions here serve its functional and out= variants on the
 * CPU and on Meta. */
#pragma once

#include "iter/reduce.h"

typedef enum {
    TP_REDUCE_DEFAULT,    /* the result has the input's dtype */
    TP_REDUCE_SUM,        /* the same, but int64 for integers and bool */
    TP_REDUCE_ALWAYS_BOOL /* the input's dtype computes, the result is bool */
} tp_reduce_promotion;

typedef struct {
    const char *name; /* "norm1", for messages */
    uint8_t promotion;
    uint32_t dtypes;             /* bit d: an input of dtype d is taken */
    const tp_reduction *kernels; /* by the accumulator's dtype; chosen for this CPU at load */
} tp_reduction_op;

/* dim: TP_NO_INTS or empty for all dimensions. dtype: TP_NO_DTYPE, or what self is converted to first. */
tp_tensor *tp_reduction_new(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype);
int tp_reduction_into(const tp_reduction_op *r, tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype,
                      tp_tensor *out);
