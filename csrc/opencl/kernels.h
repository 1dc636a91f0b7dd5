/* kernels.h: the families that have a kernel on OpenCL devices besides pointwise operators and reductions: the entries
 * of native/device_kernels.h. Only enqueue. */
#pragma once

#include "native/device_kernels.h"

tp_tensor *tp_cl_pack(const tp_tensor *from, const tp_tensor *mask);
int tp_cl_unpack(tp_tensor *into, const tp_tensor *from, const tp_tensor *mask);
tp_tensor *tp_cl_nonzero(const tp_tensor *mask);
int tp_cl_convolution(tp_conv_product which, const tp_conv_plan *plan, const tp_tensor *a, const tp_tensor *b,
                      const tp_tensor *bias, tp_tensor *made);
int tp_cl_pool(const tp_pool_plan *p, tp_pool_what what, tp_tensor *in, tp_tensor *out, tp_tensor *index, bool by_two);
int tp_cl_norm(tp_norm_what what, const tp_norm_job *j);
int tp_cl_col2im(const tp_fold *f, const tp_tensor *columns, tp_tensor *images);
