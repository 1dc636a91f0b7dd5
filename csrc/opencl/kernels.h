/* kernels.h: the families that have a kernel on OpenCL devices besides pointwise operators and reductions: the entries
 * of native/device_kernels.h. Only enqueue. */
#pragma once

#include "native/device_kernels.h"

tp_tensor *tp_cl_pack(const tp_tensor *from, const tp_tensor *mask);
int tp_cl_unpack(tp_tensor *into, const tp_tensor *from, const tp_tensor *mask);
tp_tensor *tp_cl_nonzero(const tp_tensor *mask);
int tp_cl_norm(tp_norm_what what, const tp_norm_job *j);
