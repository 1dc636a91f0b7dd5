/* devices.h: what generated wrappers call to see that a call's tensors are on one device (codegen/device_checks.py). */
#pragma once

#include "core/tensor.h"

TP_INLINE bool tp_other_device(const tp_tensor *a, const tp_tensor *b) {
    return tp_unlikely(b && (a->device.type != b->device.type || a->device.index != b->device.index));
}

/* RuntimeError that names every argument's device, unless they are all on one. */
int tp_check_devices(const char *op, const tp_device_argument *given, int64_t n);
