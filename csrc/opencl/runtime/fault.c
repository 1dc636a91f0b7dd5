/* fault.c: see fault.h. */
#include "opencl/runtime/fault.h"

#include "core/host.h"
#include "core/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under the device's lock but where said otherwise. */
static struct {
    cl_mem words;
    uint32_t unseen; /* bits: the streams that a checked kernel was enqueued on since their last look */
    uint32_t raised; /* notes, so far */
} devices[TP_CL_MAX_DEVICES];

static _Atomic int waits = -1;

bool tp_cl_checks_wait(void) {
    if (tp_unlikely(waits < 0)) {
        const char *named = getenv("TENSORPY_OPENCL_CHECK_INDICES");
        waits = named && strcmp(named, "sync") == 0;
    }
    return waits;
}

void tp_cl_set_checks_wait(bool wait) { waits = wait; }

static cl_int start_words(tp_cl_device *d) {
    static const int64_t none[4];
    cl_int status;
    cl_mem words = tp_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, sizeof none, NULL, &status);
    if (!words) return status;
    status = tp_cl.clEnqueueWriteBuffer(tp_cl_queue(d), words, 1, 0, sizeof none, none, 0, NULL, NULL);
    if (status == CL_SUCCESS) devices[d->index].words = words;
    else tp_cl.clReleaseMemObject(words);
    return status;
}

void tp_cl_pass_fault(tp_cl_call *c, int fault) {
    if (!c->kernel) return;
    int at = c->device->index;
    cl_int status = devices[at].words ? CL_SUCCESS : start_words(c->device);
    if (status != CL_SUCCESS) {
        if (c->status == CL_SUCCESS) c->status = status;
        return;
    }
    devices[at].unseen |= 1u << tp_cl_stream(c->device);
    tp_cl_pass(c, sizeof(cl_mem), &devices[at].words);
    tp_cl_pass_int(c, fault + 1); /* 0: nothing was noted */
}

/* Waits for the stream. */
static int look_now(tp_cl_device *d) {
    tp_cl_look look;
    if (tp_cl_await_stream(d) < 0 || tp_cl_look_begin(d, &look) < 0) return -1;
    if (!look.looks) return 0;
    void *held = tp_host_lock_release();
    cl_int status = tp_cl.clFinish(tp_cl_queue(d));
    tp_host_lock_acquire(held);
    return status == CL_SUCCESS ? tp_cl_look_end(d, &look) : tp_cl_fail(status, "clFinish");
}

int tp_cl_run_checked(tp_cl_call *c, int64_t items, size_t group) {
    tp_cl_device *d = c->device;
    return tp_cl_run(c, items, group) < 0 ? -1 : tp_cl_checks_wait() ? look_now(d) : 0;
}

int tp_cl_look_begin(tp_cl_device *d, tp_cl_look *look) {
    cl_int status = CL_SUCCESS;
    tp_cl_lock(d);
    look->looks = devices[d->index].unseen != 0;
    look->raised = devices[d->index].raised;
    if (look->looks)
        status = tp_cl.clEnqueueReadBuffer(tp_cl_queue(d), devices[d->index].words, 0, 0, sizeof look->words,
                                           look->words, 0, NULL, NULL);
    if (status == CL_SUCCESS) devices[d->index].unseen &= ~(1u << tp_cl_stream(d));
    tp_cl_unlock(d);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueReadBuffer");
}

void tp_cl_look_drop(tp_cl_device *d, const tp_cl_look *look) {
    if (look->looks) tp_cl.clFinish(tp_cl_queue(d));
}

int tp_cl_look_idle(tp_cl_device *d) {
    cl_int status = CL_SUCCESS;
    tp_cl_look look;
    tp_cl_lock(d);
    look.looks = devices[d->index].unseen != 0;
    look.raised = devices[d->index].raised;
    if (look.looks)
        status = tp_cl.clEnqueueReadBuffer(tp_cl_queue(d), devices[d->index].words, 1, 0, sizeof look.words, look.words,
                                           0, NULL, NULL);
    if (status == CL_SUCCESS) devices[d->index].unseen = 0;
    tp_cl_unlock(d);
    return status == CL_SUCCESS ? tp_cl_look_end(d, &look) : tp_cl_fail(status, "clEnqueueReadBuffer");
}

/* Makes room for the next note; false: another thread has raised this one. */
static bool take_note(tp_cl_device *d, const tp_cl_look *look) {
    static const int64_t none[4];
    tp_cl_lock(d);
    bool first = devices[d->index].raised == look->raised;
    if (first) {
        devices[d->index].raised++;
        tp_cl.clEnqueueFillBuffer(tp_cl_queue(d), devices[d->index].words, none, sizeof none[0], 0, sizeof none, 0,
                                  NULL, NULL);
    }
    tp_cl_unlock(d);
    return first;
}

int tp_cl_look_end(tp_cl_device *d, const tp_cl_look *look) {
    int fault = look->looks ? (int)(int32_t)look->words[0] - 1 : -1;
    if (tp_likely(!tp_fault_at(fault)) || !take_note(d, look)) return 0;
    char where[200];
    snprintf(where, sizeof where, " (found on opencl:%d)%s", d->index,
             tp_cl_checks_wait()
                 ? ""
                 : "\n  next step: tensorpy.opencl.check_indices = \"sync\" raises this in the call that "
                   "is at fault, for its traceback");
    return tp_raise_fault(fault, look->words[1], look->words[2], look->words[3], where);
}
