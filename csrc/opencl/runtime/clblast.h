/* clblast.h: matrix products of CLBlast (Nugteren, IWOCL 2018), where TENSORPY_CLBLAST names its library: its kernels
 * are tuned for many GPUs. Without the variable tensorpy's own kernels are taken, which are the faster ones on CPU
 * devices and on the GPU that was measured (docs/opencl.md).
 */
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"
#include "opencl/runtime/runtime.h"

/* out = alpha * a @ b + beta * out for matrices, or batches of them. 1: enqueued; 0: not for CLBlast (another dtype,
 * strides that BLAS has no words for, no library); -1: error. */
int tp_cl_clblast(tp_cl_device *d, const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha,
                  const tp_scalar *beta);
