/* reduce.h: OpenCL C of the reductions that the YAML gives as expressions. */
#pragma once

#include "core/dtype.h"

/* Generated (ReductionOpenCL.c), by program: the functions of_start, of_step, of_join and of_finish by the
 * accumulator's dtype. */
extern const char *const *const tp_cl_reduction_table[];
