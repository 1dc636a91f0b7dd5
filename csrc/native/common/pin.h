/* pin.h: pinned host memory (see pin.c). */
#pragma once

#include "core/tensor.h"

/* A storage on the host; d names the device that will copy from it, TP_NO_DEVICE: the first that pins. NULL and the
 * error, with the operator's name, where none does. */
tp_storage *tp_pinned_storage(const char *op, tp_device d, size_t nbytes);
/* A tensor in such memory; device is where the caller wants it, which must be the host. */
tp_tensor *tp_new_pinned(const char *op, tp_ints sizes, tp_ints strides, tp_dtype dtype, tp_device device);
