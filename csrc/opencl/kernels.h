/* kernels.h: the families that have a kernel on OpenCL devices besides pointwise operators and reductions: the entries
 * of native/device_kernels.h. Only enqueue. */
#pragma once

#include "native/device_kernels.h"

int tp_cl_norm(tp_norm_what what, const tp_norm_job *j);
