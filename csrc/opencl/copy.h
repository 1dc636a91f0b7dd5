/* copy.h: bytes between host and device, and tensors on the device: what the core's tp_device_ops ask for. */
#pragma once

#include "opencl/memory.h"

int tp_cl_copy_from_host(tp_device device, void *dst, const void *src, size_t nbytes);
int tp_cl_copy_to_host(tp_device device, void *dst, const void *src, size_t nbytes);
int tp_cl_copy_inside(tp_device device, void *dst, const void *src, size_t nbytes);
int tp_cl_copy_tensor(tp_tensor *dst, const tp_tensor *src);
int tp_cl_fill_tensor(tp_tensor *t, const void *element);
