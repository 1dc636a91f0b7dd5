/* opencl.c: OpenCL's devices for saved plans; a small library for the CPU is without this file (codegen/only.py). */
#include "core/error.h"
#include "embed/parts.h"
#include "opencl/runtime/backend.h"
#include "opencl/runtime/later.h"

/* A plan's kernels are waited for. */
int tp_embed_find(const char *name, tp_device *device) {
    static bool known;
    if (!known) {
        tp_cl_register_device();
        tp_cl_set_builds_wait(true);
        known = true;
    }
    if (tp_device_parse(name, device) < 0) return -1;
    if (device->type != TP_DEVICE_CPU && device->type != TP_DEVICE_OPENCL)
        return tp_fail(TP_RuntimeError, "a saved plan runs on cpu or opencl, not %.40s", name);
    return tp_device_resolve(*device, device);
}
