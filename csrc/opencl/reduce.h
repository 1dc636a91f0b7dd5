/* reduce.h: reductions: the driver of iter/reduce.h for tensors on an OpenCL device. */
#pragma once

#include "iter/reduce.h"
#include "native/reduction.h"

/* OpenCL C of a reduction that the YAML gives as expressions: the functions of_start, of_step, of_join and of_finish.
 */
typedef struct {
    const tp_reduction_op *op;
    const char *const *functions; /* by the accumulator's dtype */
} tp_cl_reduction;
extern const tp_cl_reduction tp_cl_reduction_table[]; /* generated (ReductionOpenCL.c); ends with a NULL op */

/* The runner of tp_set_reduction_runner. Only enqueues. */
int tp_cl_reduce(const tp_reduction *r, const tp_tensor *self, uint64_t mask, tp_tensor *out, const void *params);
