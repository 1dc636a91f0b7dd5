/* copy.h: bytes between host and device and inside it: what the core's tp_device_ops ask for. */
#pragma once

#include "opencl/runtime/memory.h"

int tp_cl_copy_from_host(tp_device device, void *dst, const void *src, size_t nbytes);
int tp_cl_copy_to_host(tp_device device, void *dst, const void *src, size_t nbytes);
int tp_cl_copy_inside(tp_device device, void *dst, const void *src, size_t nbytes);
