/* pinned.h: host memory that the driver has pinned, and copies between it and a device that nobody waits for.
 *
 * A copy in flight keeps both storages: they are let go when a later copy, or a synchronize, finds it done. */
#pragma once

#include "core/storage.h"
#include "core/tensor.h"

/* ---- tp_device_ops ---- */
tp_storage *tp_cl_pin(tp_device device, size_t nbytes);
bool tp_cl_is_pinned(const tp_storage *s);
/* 1: enqueued; 0: these two cannot be copied so; -1: error. Same sizes, strides and dtype; one is on the host. */
int tp_cl_copy_async(tp_tensor *dst, const tp_tensor *src);

/* Lets go of the storages of copies that are done. */
void tp_cl_settle(int device);
