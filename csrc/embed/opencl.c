/* opencl.c: saved plans on devices by name (tensorpy/plan.h). A program that calls none of these is without OpenCL. */
#include "embed/parts.h"

#include "opencl/runtime/backend.h"
#include "opencl/runtime/later.h"

/* The device of a name, if it is there. A plan's kernels are waited for. */
static int find_device(const char *name, tp_device *device) {
    static bool known;
    if (tp_embed_load() < 0) return -1;
    if (!known) {
        tp_cl_register_device();
        tp_cl_set_builds_wait(true);
        known = true;
    }
    return tp_device_parse(name, device) < 0 ? -1 : tp_device_resolve(*device, device);
}

tp_plan *tp_plan_read_on(const void *bytes, size_t size, const char *device) {
    tp_device d;
    return find_device(device, &d) < 0 ? NULL : tp_embed_read(bytes, size, d);
}

tp_plan *tp_plan_open_on(const char *path, const char *device) {
    tp_device d;
    return find_device(device, &d) < 0 ? NULL : tp_embed_open(path, d);
}
