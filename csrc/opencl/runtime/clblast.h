/* clblast.h: matrix products of CLBlast (Nugteren, IWOCL 2018), where it is installed: its kernels are tuned for many
 * GPUs.
 *
 * TENSORPY_CLBLAST names another library than libclblast.so.1; empty: none is used. Without the variable CPU devices
 * keep tensorpy's own kernel, which is the faster one there. */
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"
#include "opencl/runtime/runtime.h"

/* out = alpha * a @ b + beta * out for matrices, or batches of them. 1: enqueued; 0: not for CLBlast (another dtype,
 * strides that BLAS has no words for, no library); -1: error. */
int tp_cl_clblast(tp_cl_device *d, const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha,
                  const tp_scalar *beta);
