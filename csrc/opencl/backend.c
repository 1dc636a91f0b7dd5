/* backend.c: see backend.h. */
#include "opencl/backend.h"

#include "opencl/copy.h"
#include "opencl/fallback.h"
#include "opencl/pinned.h"

static int synchronize(tp_device device) {
    tp_cl_device *d = tp_cl_get(device.index < 0 ? tp_cl_current() : device.index);
    if (!d || tp_cl_finish(d) < 0) return -1;
    tp_cl_settle(d->index);
    return 0;
}

static const tp_device_ops ops = {
    .allocate = tp_cl_allocate,
    .release = tp_cl_release,
    .copy_from_host = tp_cl_copy_from_host,
    .copy_to_host = tp_cl_copy_to_host,
    .copy_inside = tp_cl_copy_inside,
    .device_count = tp_cl_device_count,
    .current_device = tp_cl_current,
    .set_device = tp_cl_set_current,
    .synchronize = synchronize,
    .pin = tp_cl_pin,
    .is_pinned = tp_cl_is_pinned,
    .copy_async = tp_cl_copy_async,
};

int tp_cl_load(void) {
    tp_register_device(TP_DEVICE_OPENCL, &ops);
    return tp_cl_register_fallback();
}
