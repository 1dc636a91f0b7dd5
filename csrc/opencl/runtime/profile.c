/* profile.c: see profile.h. */
#include "opencl/runtime/profile.h"

#include "opencl/runtime/fault.h"
#include "opencl/runtime/memory.h"
#include "opencl/runtime/stream.h"

#include <stdlib.h>

typedef struct {
    cl_event event;
    int64_t launched;
    tp_cl_profiled kernel;
} launch;

static struct {
    launch *items;
    int64_t count, capacity;
} kept[TP_CL_MAX_DEVICES]; /* each under its device's lock */

void tp_cl_profile_keep_steal(tp_cl_device *d, const char *name, const tp_cl_command *c) {
    int i = d->index;
    if (kept[i].count == kept[i].capacity) {
        int64_t larger = kept[i].capacity ? kept[i].capacity * 2 : 256;
        launch *grown = realloc(kept[i].items, (size_t)larger * sizeof *grown);
        if (!grown) {
            tp_cl.clReleaseEvent(c->event);
            return;
        }
        kept[i].items = grown;
        kept[i].capacity = larger;
    }
    launch *l = &kept[i].items[kept[i].count++];
    *l = (launch){c->event, c->now, {.name = name, .device = i, .stream = tp_cl_stream(d), .at = -1}};
    tp_profile_open(&l->kernel.thread, &l->kernel.at);
}

int tp_cl_profile_start(void) {
    int n = tp_cl_opened() ? tp_cl_device_count() : 0;
    tp_cl_profiling = true;
    for (int i = 0; i < n; i++) {
        const tp_cl_device *described = tp_cl_describe(i);
        for (int s = 0; s < TP_CL_MAX_STREAMS; s++)
            if (described->queues[s] && tp_cl_profile((tp_cl_device *)described, s) < 0) return -1;
    }
    return 0;
}

int64_t tp_cl_live_bytes(void) {
    int64_t total = 0, n = tp_cl_opened() ? tp_cl_device_count() : 0;
    for (int i = 0; i < n; i++) total += tp_cl_memory(i).allocated;
    return total;
}

/* The device's clock is another one: the launch is known on both. False where the driver took no times. */
static bool read_times(launch *l) {
    static const cl_uint what[] = {CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
    cl_ulong t[3];
    for (int i = 0; i < 3; i++)
        if (tp_cl.clGetEventProfilingInfo(l->event, what[i], sizeof t[i], &t[i], NULL) != CL_SUCCESS) return false;
    l->kernel.begin = l->launched + (int64_t)(t[1] - t[0]);
    l->kernel.end = l->launched + (int64_t)(t[2] - t[0]);
    return true;
}

/* Takes what was kept for a device; the caller frees the items. */
static int64_t take_kept(tp_cl_device *d, launch **items) {
    tp_cl_lock(d);
    int64_t n = kept[d->index].count;
    *items = kept[d->index].items;
    kept[d->index].items = NULL;
    kept[d->index].count = kept[d->index].capacity = 0;
    tp_cl_unlock(d);
    return n;
}

static int tell_of_device(tp_cl_device *d, int (*tell)(const tp_cl_profiled *k, void *context), void *context) {
    launch *items;
    int64_t n = take_kept(d, &items);
    int status = n ? tp_cl_finish(d) : 0;
    for (int64_t k = 0; k < n; k++) {
        if (status == 0 && read_times(&items[k])) status = tell(&items[k].kernel, context);
        tp_cl.clReleaseEvent(items[k].event);
    }
    free(items);
    return status;
}

int tp_cl_profile_stop(int (*tell)(const tp_cl_profiled *k, void *context), void *context) {
    int status = 0, n = tp_cl_opened() ? tp_cl_device_count() : 0;
    tp_cl_profiling = false;
    for (int i = 0; i < n; i++) {
        int one = tell_of_device((tp_cl_device *)tp_cl_describe(i), tell, context);
        if (status == 0) status = one;
    }
    return status;
}
