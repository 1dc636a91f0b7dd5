/* stream.c: see stream.h.
 *
 * Invariant: a queue that was made stays until the process ends, so that one may be used without a lock. */
#include "opencl/runtime/stream.h"

#include "core/clock.h"
#include "core/host.h"

#include <sched.h>
#include <time.h>

__thread uint8_t tp_cl_streams[TP_CL_MAX_DEVICES];

/* Under the device's lock. */
static cl_int make_queue(tp_cl_device *d, int stream, cl_bitfield properties) {
    cl_int status;
    if (tp_cl_profiling) properties |= CL_QUEUE_PROFILING_ENABLE;
    cl_command_queue queue = tp_cl.clCreateCommandQueue(d->context, d->id, properties, &status);
    if (!queue) return status;
    if (properties & CL_QUEUE_PROFILING_ENABLE) d->profiled |= 1u << stream;
    __atomic_store_n(&d->queues[stream], queue, __ATOMIC_RELEASE);
    return CL_SUCCESS;
}

int tp_cl_stream_new(tp_cl_device *d) {
    cl_int status = CL_SUCCESS;
    tp_cl_lock(d);
    int stream = 1 + d->given_streams++ % (TP_CL_MAX_STREAMS - 1);
    if (!d->queues[stream]) status = make_queue(d, stream, 0);
    tp_cl_unlock(d);
    return status == CL_SUCCESS ? stream : tp_cl_fail(status, "clCreateCommandQueue");
}

int tp_cl_stream_set(tp_cl_device *d, int stream) {
    if (stream < 0 || stream >= TP_CL_MAX_STREAMS || !d->queues[stream])
        return tp_fail(TP_RuntimeError, "OpenCL: opencl:%d has no stream %d", d->index, stream);
    tp_cl_streams[d->index] = (uint8_t)stream;
    return 0;
}

int tp_cl_profile(tp_cl_device *d, int stream) {
    cl_int status = CL_SUCCESS;
    tp_cl_lock(d);
    if (!(d->profiled & 1u << stream)) {
        tp_cl.clFinish(d->queues[stream]);
        status = make_queue(d, stream, CL_QUEUE_PROFILING_ENABLE);
    }
    tp_cl_unlock(d);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clCreateCommandQueue");
}

cl_int tp_cl_mark(tp_cl_device *d, int stream, cl_event *event, const char **call) {
    *call = "clEnqueueMarkerWithWaitList";
    cl_int status = tp_cl.clEnqueueMarkerWithWaitList(d->queues[stream], 0, NULL, event);
    if (status != CL_SUCCESS) return status;
    *call = "clFlush";
    status = tp_cl.clFlush(d->queues[stream]);
    if (status != CL_SUCCESS) tp_cl.clReleaseEvent(*event);
    return status;
}

cl_int tp_cl_hold(tp_cl_device *d, int stream, cl_event event) {
    return tp_cl.clEnqueueBarrierWithWaitList(d->queues[stream], 1, &event, NULL);
}

void tp_cl_hold_for(tp_cl_device *d, int stream, uint32_t others) {
    for (int i = 0; i < TP_CL_MAX_STREAMS; i++) {
        cl_event mark;
        const char *call;
        if (i == stream || !(others & 1u << i)) continue;
        bool held = tp_cl_mark(d, i, &mark, &call) == CL_SUCCESS;
        if (held) {
            held = tp_cl_hold(d, stream, mark) == CL_SUCCESS;
            tp_cl.clReleaseEvent(mark);
        }
        if (!held) tp_cl.clFinish(d->queues[i]);
    }
}

cl_int tp_cl_finish_locked(tp_cl_device *d) {
    cl_int first = CL_SUCCESS;
    for (int i = 0; i < TP_CL_MAX_STREAMS; i++) {
        cl_command_queue queue = __atomic_load_n(&d->queues[i], __ATOMIC_ACQUIRE);
        cl_int status = queue ? tp_cl.clFinish(queue) : CL_SUCCESS;
        if (first == CL_SUCCESS) first = status;
    }
    return first;
}

/* ---- waiting ---- */

/* A driver's own wait hears no signal, so a long one asks now and then, after a sixteenth of the time gone by. */
#define SHORT_WAIT 100 /* microseconds */
static int poll(cl_event event) {
    const int64_t start = tp_clock_ns() / 1000;
    for (;;) {
        cl_int state = 0,
               status = tp_cl.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
        if (status != CL_SUCCESS) return tp_cl_fail(status, "clGetEventInfo");
        if (state <= 0) return state == 0 ? 0 : tp_cl_fail(state, "clWaitForEvents");
        int64_t gone = tp_clock_ns() / 1000 - start;
        if (gone < SHORT_WAIT) {
            sched_yield();
            continue;
        }
        if (tp_host_look() < 0) return -1;
        nanosleep(&(struct timespec){.tv_nsec = (gone < 80000 ? gone : 80000) / 16 * 1000}, NULL);
    }
}

int tp_cl_await(cl_event event) {
    void *held = tp_host_lock_release();
    int status = poll(event);
    tp_host_lock_acquire(held);
    return status;
}

int tp_cl_await_queue(tp_cl_device *d, int stream) {
    cl_event mark;
    const char *call;
    cl_int status = tp_cl_mark(d, stream, &mark, &call);
    if (status != CL_SUCCESS) return tp_cl_fail(status, call);
    int result = tp_cl_await(mark);
    tp_cl.clReleaseEvent(mark);
    return result;
}

int tp_cl_await_stream(tp_cl_device *d) { return tp_cl_await_queue(d, tp_cl_stream(d)); }
