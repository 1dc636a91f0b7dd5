/* slots.h: the devices from outside, by the PrivateUse type that each took. */
#pragma once

#include "core/device.h"
#include "tensorpy/api.h"

extern tensorpy_backend tp_backends[TENSORPY_MAX_BACKENDS];
TP_INLINE const tensorpy_backend *tp_backend_of(tp_device d) { return &tp_backends[d.type - TP_DEVICE_PRIVATEUSE1]; }

#define TP_STREAM_DEVICES 16 /* the most that a backend with streams has */

/* What a backend's function gave, if it is not negative; else -1. One that fails without a word still gives an error.
 */
int64_t tp_backend_checked(const tensorpy_backend *b, int64_t status, const char *what);
