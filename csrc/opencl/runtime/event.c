/* event.c: see event.h. */
#include "opencl/runtime/event.h"

#include <stdlib.h>

#define COMPLETE 0 /* CL_COMPLETE */

tp_cl_marker *tp_cl_event_record(int device, int stream, bool timing) {
    tp_cl_device *d = tp_cl_get(device);
    if (!d) return NULL;
    if (stream < 0) stream = tp_cl_stream(d);
    if (timing && tp_cl_profile(d, stream) < 0) return NULL;
    tp_cl_marker *m = malloc(sizeof *m);
    if (!m) return tp_fail_memory((int64_t)sizeof *m), NULL;
    *m = (tp_cl_marker){.device = d, .timing = timing};
    const char *call;
    cl_int status = tp_cl_mark(d, stream, &m->event, &call);
    if (status == CL_SUCCESS) return m;
    tp_cl_fail(status, call);
    free(m);
    return NULL;
}

int tp_cl_event_hold(const tp_cl_marker *m, int device, int stream) {
    tp_cl_device *d = tp_cl_get(device);
    if (!d) return -1;
    if (d != m->device) return tp_cl_event_wait(m);
    cl_int status = tp_cl_hold(d, stream < 0 ? tp_cl_stream(d) : stream, m->event);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueBarrierWithWaitList");
}

void tp_cl_event_free(tp_cl_marker *m) {
    if (m && !tp_cl_forked()) tp_cl.clReleaseEvent(m->event);
    free(m);
}

int tp_cl_event_query(const tp_cl_marker *m) {
    cl_int done = 1,
           status = tp_cl.clGetEventInfo(m->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof done, &done, NULL);
    return status == CL_SUCCESS ? done == COMPLETE : tp_cl_fail(status, "clGetEventInfo");
}

int tp_cl_event_wait(const tp_cl_marker *m) { return tp_cl_await(m->event); }

static int end_of(const tp_cl_marker *m, cl_ulong *nanoseconds) {
    if (!m->timing) return tp_fail(TP_RuntimeError, "both events must be made with enable_timing=True");
    if (tp_cl_event_wait(m) < 0) return -1;
    cl_int status =
        tp_cl.clGetEventProfilingInfo(m->event, CL_PROFILING_COMMAND_END, sizeof *nanoseconds, nanoseconds, NULL);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clGetEventProfilingInfo");
}

int tp_cl_event_elapsed(const tp_cl_marker *from, const tp_cl_marker *to, double *milliseconds) {
    cl_ulong a, b;
    if (end_of(from, &a) < 0 || end_of(to, &b) < 0) return -1;
    *milliseconds = ((double)b - (double)a) * 1e-6;
    return 0;
}
