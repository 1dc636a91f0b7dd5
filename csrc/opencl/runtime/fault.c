/* fault.c: see fault.h. */
#include "opencl/runtime/fault.h"

#include "core/host.h"
#include "core/lock.h"
#include "opencl/runtime/later.h"
#include "opencl/runtime/program.h"

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

cl_int tp_cl_fault_words(tp_cl_device *d, cl_mem **words) {
    cl_int status = devices[d->index].words ? CL_SUCCESS : start_words(d);
    if (status != CL_SUCCESS) return status;
    devices[d->index].unseen |= 1u << tp_cl_stream(d);
    *words = &devices[d->index].words;
    return CL_SUCCESS;
}

int tp_cl_look_now(tp_cl_device *d) {
    tp_cl_look look;
    if (tp_cl_await_stream(d) < 0 || tp_cl_look_begin(d, &look) < 0) return -1;
    if (!look.looks) return 0;
    void *held = tp_host_lock_release();
    cl_int status = tp_cl.clFinish(tp_cl_queue(d));
    tp_host_lock_acquire(held);
    return status == CL_SUCCESS ? tp_cl_look_end(d, &look) : tp_cl_fail(status, "clFinish");
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

int tp_cl_finish(tp_cl_device *d) {
    for (int i = 0; i < TP_CL_MAX_STREAMS; i++)
        if (__atomic_load_n(&d->queues[i], __ATOMIC_ACQUIRE) && tp_cl_await_queue(d, i) < 0) return -1;
    tp_cl_settle_programs(false);
    return tp_cl_look_idle(d);
}

void tp_cl_shut_down(void) {
    tp_cl_await_builds(true);
    for (int i = 0; i < TP_CL_MAX_DEVICES; i++) {
        tp_cl_device *d = tp_cl_started(i) ? tp_cl_get(i) : NULL;
        if (!d) continue;
        tp_cl_finish_locked(d);
        if (tp_cl_look_idle(d) < 0) fprintf(stderr, "tensorpy: %s\n", tp_error_message());
    }
    if (tp_cl_opened()) tp_cl_settle_programs(true);
}
