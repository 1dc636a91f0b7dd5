/* backend.c: see backend.h. */
#include "opencl/runtime/backend.h"

#include "opencl/runtime/fault.h"
#include "core/clock.h"
#include "core/stream.h"
#include "opencl/runtime/copy.h"
#include "opencl/runtime/event.h"
#include "opencl/runtime/fallback.h"
#include "opencl/runtime/memory.h"
#include "opencl/runtime/pinned.h"

#include <sched.h>

static int synchronize(tp_device device) {
    tp_cl_device *d = tp_cl_get(device.index < 0 ? tp_cl_current() : device.index);
    if (!d || tp_cl_finish(d) < 0) return -1;
    tp_cl_settle(d->index);
    return 0;
}

/* ---- streams and events ---- */

static int64_t stream_make(tp_device device, int priority TP_UNUSED) {
    tp_cl_device *d = tp_cl_get(device.index);
    return d ? tp_cl_stream_new(d) : -1;
}
static int64_t stream_current(tp_device device) {
    tp_cl_device *d = tp_cl_get(device.index);
    return d ? tp_cl_stream(d) : -1;
}
static int stream_set(tp_device device, int64_t stream) {
    tp_cl_device *d = tp_cl_get(device.index);
    return d ? tp_cl_stream_set(d, stream < INT32_MAX ? (int)stream : -1) : -1;
}
static void *record(tp_device device, int64_t stream, bool timing) {
    return tp_cl_event_record(device.index, (int)stream, timing);
}
static void event_free(void *event) { tp_cl_event_free(event); }
static int event_query(void *event) { return tp_cl_event_query(event); }
static int event_synchronize(void *event) { return tp_cl_event_wait(event); }
static int event_hold(void *event, tp_device device, int64_t stream) {
    return tp_cl_event_hold(event, device.index, (int)stream);
}
static int event_elapsed(void *from, void *to, double *milliseconds) {
    return tp_cl_event_elapsed(from, to, milliseconds);
}

#define MARK_PATIENCE 200000 /* ns that a driver has for the mark itself */

/* A stream's are those of a mark at its end. A driver may take a moment to pass the mark of an idle stream. */
static int stream_query(tp_device device, int64_t stream) {
    tp_cl_marker *mark = tp_cl_event_record(device.index, (int)stream, false);
    int done = mark ? tp_cl_event_query(mark) : -1;
    for (int64_t end = tp_clock_ns() + MARK_PATIENCE; done == 0 && tp_clock_ns() < end;) {
        sched_yield();
        done = tp_cl_event_query(mark);
    }
    tp_cl_event_free(mark);
    return done;
}
static int stream_synchronize(tp_device device, int64_t stream) {
    tp_cl_marker *mark = tp_cl_event_record(device.index, (int)stream, false);
    int status = mark ? tp_cl_event_wait(mark) : -1;
    tp_cl_event_free(mark);
    return status;
}
static int stream_use(const tp_tensor *t, int64_t stream) {
    if (t->storage->context && !t->storage->deleter) tp_cl_stream_use(t, (int)stream);
    return 0;
}

static const tp_stream_ops streams = {
    .make = stream_make,
    .current = stream_current,
    .set = stream_set,
    .query = stream_query,
    .synchronize = stream_synchronize,
    .use = stream_use,
    .record = record,
    .event_free = event_free,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_hold = event_hold,
    .event_elapsed = event_elapsed,
};

/* ---- figures ---- */

static int memory_stats(tp_device device, tensorpy_memory_stats *out) {
    tp_cl_memory_stats s = tp_cl_memory(device.index);
    out->allocated = s.allocated, out->peak_allocated = s.peak, out->reserved = s.reserved;
    out->peak_reserved = s.peak_reserved, out->blocks = s.blocks;
    return 0;
}
static int reset_peaks(tp_device device) {
    tp_cl_reset_peak(device.index);
    return 0;
}
static int empty_cache(tp_device device) { return tp_cl_empty_cache(device.index); }
static const tp_memory_ops memory = {memory_stats, reset_peaks, empty_cache};

static int properties(tp_device device, tensorpy_device_properties *out) {
    const tp_cl_device *d = tp_cl_describe(device.index);
    if (!d) return -1;
    out->name = d->name;
    out->total_memory = (int64_t)d->global_memory;
    out->multi_processor_count = d->compute_units;
    return 0;
}

static bool has_double(tp_device device) {
    const tp_cl_device *d = tp_cl_describe(device.index);
    return d && d->has_fp64;
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
    .streams = &streams,
    .memory = &memory,
    .properties = properties,
    .has_double = has_double,
};

void tp_cl_register_device(void) { tp_register_device(TP_DEVICE_OPENCL, &ops); }

int tp_cl_load(void) {
    tp_cl_register_device();
    return tp_cl_register_fallback();
}
