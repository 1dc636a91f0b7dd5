/* fallback.c: see fallback.h. */
#include "opencl/fallback.h"

#include "core/determinism.h"
#include "core/lock.h"
#include "native/host.h"

#include <stdio.h>
#include <stdlib.h>

static tp_cl_fallback_mode mode = TP_CL_FALLBACK_WARN;

void tp_cl_set_fallback(tp_cl_fallback_mode m) { mode = m; }
tp_cl_fallback_mode tp_cl_fallback(void) { return mode; }

/* ---- counting ---- */

typedef struct counter {
    const tp_op *op;
    int64_t count;
    struct counter *next;
} counter;

static counter *counters[1024];

static counter **bucket_of(const tp_op *op) { return &counters[((uintptr_t)op / sizeof *op) % 1024]; }

/* Counts one more; returns how many there were, 0 the first time. */
static int64_t count_one(const tp_op *op) {
    int64_t before = 0;
    tp_lock(TP_LOCK_ClFallback);
    counter *c = *bucket_of(op);
    while (c && c->op != op) c = c->next;
    if (!c && (c = calloc(1, sizeof *c))) {
        c->op = op;
        c->next = *bucket_of(op);
        *bucket_of(op) = c;
    }
    if (c) before = c->count++;
    tp_unlock(TP_LOCK_ClFallback);
    return before;
}

int64_t tp_cl_fallback_count(const tp_op *op) {
    tp_lock(TP_LOCK_ClFallback);
    const counter *c = *bucket_of(op);
    while (c && c->op != op) c = c->next;
    int64_t count = c ? c->count : 0;
    tp_unlock(TP_LOCK_ClFallback);
    return count;
}

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
    if (count_one(op) > 0 || mode != TP_CL_FALLBACK_WARN) return 0;
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
    tp_count_host_call(TP_DEVICE_OPENCL);
    return tp_call_on_host(TP_DEVICE_OPENCL, op, ks, args, results);
}

#define SOURCE "opencl/fallback.c: on the CPU"

int tp_cl_register_fallback(void) {
    return tp_register_fallback(TP_KEY_OpenCL, fall_back, NULL, NULL, SOURCE) < 0 ? -1 : 0;
}

int64_t tp_cl_fall_back_for(tp_op *op) {
    return tp_register(op, TP_KEY_OpenCL, NULL, fall_back, NULL, NULL, SOURCE, true);
}
