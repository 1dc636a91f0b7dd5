/* host.h: an operator of another device computed by the CPU's kernel, with copies there and back.
 *
 * What a device does with operators that it has no kernel for (opencl/runtime/fallback.c, outside/backend.c). A result
 * of a factory goes to the device that it was told. */
#pragma once

#include "dispatch/op.h"

int tp_call_on_host(tp_device_type type, const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results);
/* Fails where an out= is a part of a tensor that is read, or that a part of it: asked before the arguments are copied
 * apart, which would hide it. */
int tp_check_outs(const tp_op *op, const tp_value *args);

/* How often that stood in for a kernel of the device, by operator; who calls the above for that counts it, and is told
 * how often it was before. */
int64_t tp_count_host_call(tp_device_type type, const tp_op *op);
int64_t tp_host_calls(tp_device_type type, const tp_op *op);
