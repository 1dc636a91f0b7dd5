/* fallback.c: see fallback.h. */
#include "opencl/runtime/fallback.h"

#include "core/determinism.h"
#include "prim/host.h"

#include <stdio.h>

static tp_cl_fallback_mode mode = TP_CL_FALLBACK_WARN;

void tp_cl_set_fallback(tp_cl_fallback_mode m) { mode = m; }
tp_cl_fallback_mode tp_cl_fallback(void) { return mode; }

/* ---- the fallback ---- */

static int announce(const tp_op *op) {
    char name[128], message[400];
    if (mode == TP_CL_FALLBACK_ERROR)
        return tp_fail(
            TP_NotImplementedError,
            "Could not run '%s' on opencl: it has no OpenCL kernel, and tensorpy.opencl.fallback is \"error\"\n"
            "  next step: move the tensors to the CPU, or set tensorpy.opencl.fallback to \"warn\" or "
            "\"allow\" to have that done for each call",
            tp_op_name(op, name));
    if (tp_count_host_call(TP_DEVICE_OPENCL, op) > 0 || mode != TP_CL_FALLBACK_WARN) return 0;
    snprintf(message, sizeof message,
             "%s has no OpenCL kernel: the CPU computes it, with copies there and back (tensorpy.opencl.fallback = "
             "\"allow\" silences this)",
             tp_op_name(op, name));
    return tp_warn("%s", message);
}

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    if (!tp_kernel_at(op, TP_KEY_CPU)) return tp_missing_kernel(op, ks, args);
    if (announce(op) < 0) return -1;
    return tp_call_on_host(TP_DEVICE_OPENCL, op, ks, args, results);
}

#define SOURCE "opencl/runtime/fallback.c: on the CPU"

int tp_cl_register_fallback(void) {
    return tp_register_fallback(TP_KEY_OpenCL, fall_back, NULL, NULL, SOURCE) < 0 ? -1 : 0;
}

int64_t tp_cl_fall_back_for(tp_op *op) {
    return tp_register(op, TP_KEY_OpenCL, NULL, fall_back, NULL, NULL, SOURCE, true);
}
