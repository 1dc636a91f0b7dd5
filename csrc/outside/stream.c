/* stream.c: streams, events, pinned memory and figures of devices from outside: what a backend may leave out.
 *
 * Which stream is a thread's current one is kept here, so that a backend has no state of threads. */
#include "core/stream.h"

#include "core/error.h"
#include "core/memory.h"
#include "outside/backend.h"

#include <stdlib.h>
#include <string.h>

/* Small, since a thread starts with all of it, and static TLS is scarce. */
static _Thread_local uint8_t current[TENSORPY_MAX_BACKENDS][TP_STREAM_DEVICES];

static uint8_t *current_of(tp_device d) { return &current[d.type - TP_DEVICE_PRIVATEUSE1][d.index]; }

int64_t tp_backend_stream(const char *name, int device) {
    for (int i = 0; i < TENSORPY_MAX_BACKENDS; i++)
        if (tp_backends[i].name && strcmp(tp_backends[i].name, name) == 0)
            return device >= 0 && device < TP_STREAM_DEVICES ? current[i][device] : 0;
    return 0;
}

/* ---- what is there ---- */

enum { STREAMS, MEMORY, PINNED, GROUPS };
#define GROUP(member, group) {#member, offsetof(tensorpy_backend, member), group}
static const struct {
    const char *name;
    size_t offset;
    int group;
} members[] = {
    GROUP(stream_new, STREAMS),
    GROUP(stream_query, STREAMS),
    GROUP(stream_synchronize, STREAMS),
    GROUP(event_record, STREAMS),
    GROUP(event_release, STREAMS),
    GROUP(event_query, STREAMS),
    GROUP(event_synchronize, STREAMS),
    GROUP(event_wait, STREAMS),
    GROUP(event_elapsed, STREAMS),
    GROUP(record_stream, STREAMS),
    GROUP(memory_stats, MEMORY),
    GROUP(reset_peak_memory_stats, MEMORY),
    GROUP(empty_cache, MEMORY),
    GROUP(pin, PINNED),
    GROUP(unpin, PINNED),
    GROUP(copy_async, PINNED),
};

static bool is_there(const tensorpy_backend *b, size_t offset) {
    void (*function)(void);
    memcpy(&function, (const char *)b + offset, sizeof function);
    return function != NULL;
}

int tp_check_backend_groups(const tensorpy_backend *b) {
    const char *there[GROUPS] = {0}, *missing[GROUPS] = {0};
    for (size_t i = 0; i < TP_COUNTOF(members); i++) {
        const char **names = is_there(b, members[i].offset) ? there : missing;
        if (!names[members[i].group]) names[members[i].group] = members[i].name;
    }
    for (int g = 0; g < GROUPS; g++)
        if (there[g] && missing[g])
            return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND: %s is not filled in, but %s is", missing[g], there[g]);
    return 0;
}

static int checked(const tensorpy_backend *b, int status, const char *what) {
    return (int)tp_backend_checked(b, status == 0 ? 0 : -1, what);
}

/* ---- streams ---- */

static int64_t stream_new(tp_device d, int priority) {
    const tensorpy_backend *b = tp_backend_of(d);
    int64_t made = tp_backend_checked(b, b->stream_new(d.index, priority), "a new stream");
    if (made <= UINT8_MAX) return made;
    return tp_fail(TP_RuntimeError, "%s: stream_new gave %lld; numbers end at %d", b->name, (long long)made, UINT8_MAX);
}
static int64_t stream_current(tp_device d) { return d.index < TP_STREAM_DEVICES ? *current_of(d) : 0; }
static int stream_set(tp_device d, int64_t stream) {
    if (stream < 0 || stream > UINT8_MAX)
        return tp_fail(TP_RuntimeError, "%s:%d has no stream %lld", tp_backend_of(d)->name, d.index, (long long)stream);
    *current_of(d) = (uint8_t)stream;
    return 0;
}
static int stream_query(tp_device d, int64_t stream) {
    const tensorpy_backend *b = tp_backend_of(d);
    return (int)tp_backend_checked(b, b->stream_query(d.index, stream), "a stream's query");
}
static int stream_synchronize(tp_device d, int64_t stream) {
    const tensorpy_backend *b = tp_backend_of(d);
    return checked(b, b->stream_synchronize(d.index, stream), "a wait for a stream");
}
static int stream_use(const tp_tensor *t, int64_t stream) {
    if (t->storage->context && !t->storage->deleter)
        tp_backend_of(t->device)->record_stream(t->device.index, t->storage->context, stream);
    return 0;
}

/* An event and whose it is. */
typedef struct {
    const tensorpy_backend *b;
    void *event;
    bool timing;
} mark;

static void *event_record(tp_device d, int64_t stream, bool timing) {
    const tensorpy_backend *b = tp_backend_of(d);
    mark *m = malloc(sizeof *m);
    if (!m) return tp_fail_memory((int64_t)sizeof *m), NULL;
    *m = (mark){b, b->event_record(d.index, stream, timing), timing};
    if (m->event) return m;
    tp_backend_checked(b, -1, "an event");
    free(m);
    return NULL;
}
static void event_free(void *event) {
    mark *m = event;
    if (!m) return;
    m->b->event_release(m->event);
    free(m);
}
static int event_query(void *event) {
    const mark *m = event;
    return (int)tp_backend_checked(m->b, m->b->event_query(m->event), "an event's query");
}
static int event_synchronize(void *event) {
    const mark *m = event;
    return checked(m->b, m->b->event_synchronize(m->event), "a wait for an event");
}
static int event_hold(void *event, tp_device d, int64_t stream) {
    const mark *m = event;
    return checked(m->b, m->b->event_wait(m->event, d.index, stream), "a wait for an event");
}
static int event_elapsed(void *from_, void *to_, double *milliseconds) {
    const mark *from = from_, *to = to_;
    if (!from->timing || !to->timing)
        return tp_fail(TP_RuntimeError, "both events must be made with enable_timing=True");
    if (event_synchronize(from_) < 0 || event_synchronize(to_) < 0) return -1;
    return checked(from->b, from->b->event_elapsed(from->event, to->event, milliseconds),
                   "the time between two events");
}

static const tp_stream_ops stream_ops = {
    .make = stream_new,
    .current = stream_current,
    .set = stream_set,
    .query = stream_query,
    .synchronize = stream_synchronize,
    .use = stream_use,
    .record = event_record,
    .event_free = event_free,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_hold = event_hold,
    .event_elapsed = event_elapsed,
};

/* ---- figures ---- */

static int memory_stats(tp_device d, tensorpy_memory_stats *out) {
    const tensorpy_backend *b = tp_backend_of(d);
    return checked(b, b->memory_stats(d.index, out), "memory_stats");
}
static int reset_peaks(tp_device d) {
    const tensorpy_backend *b = tp_backend_of(d);
    return checked(b, b->reset_peak_memory_stats(d.index), "reset_peak_memory_stats");
}
static int empty_cache(tp_device d) {
    const tensorpy_backend *b = tp_backend_of(d);
    return checked(b, b->empty_cache(d.index), "empty_cache");
}
static const tp_memory_ops memory_ops = {memory_stats, reset_peaks, empty_cache};

static int properties(tp_device d, tensorpy_device_properties *out) {
    const tensorpy_backend *b = tp_backend_of(d);
    out->name = b->name;
    return b->properties ? checked(b, b->properties(d.index, out), "properties") : 0;
}

/* ---- pinned memory ---- */

typedef struct {
    const tensorpy_backend *b;
    size_t nbytes;
} pinned;

static void unpin(void *context, void *data) {
    pinned *p = context;
    p->b->unpin(data, p->nbytes);
    free(p);
}

static tp_storage *pin(tp_device d, size_t nbytes) {
    const tensorpy_backend *b = tp_backend_of(d);
    pinned *p = malloc(sizeof *p);
    if (!p) return tp_fail_memory((int64_t)sizeof *p), NULL;
    *p = (pinned){b, nbytes};
    void *data = b->pin(nbytes);
    tp_storage *s = data ? tp_storage_from_blob(TP_CPU, data, nbytes, unpin, p) : NULL;
    if (s) return s;
    if (data) unpin(p, data);
    else free(p), tp_backend_checked(b, -1, "pinned memory");
    return NULL;
}

static bool is_pinned_by(const tp_storage *s, int i) {
    return s->deleter == unpin && ((const pinned *)s->context)->b == &tp_backends[i];
}
static bool is_pinned_0(const tp_storage *s) { return is_pinned_by(s, 0); }
static bool is_pinned_1(const tp_storage *s) { return is_pinned_by(s, 1); }
static bool is_pinned_2(const tp_storage *s) { return is_pinned_by(s, 2); }

/* What a copy in flight keeps. */
typedef struct {
    tp_storage *to, *from;
} flight;

static void land(void *context) {
    flight *f = context;
    tp_storage_release(f->to);
    tp_storage_release(f->from);
    free(f);
}

static int copy_async(tp_tensor *dst, const tp_tensor *src) {
    bool up = src->device.type == TP_DEVICE_CPU;
    tp_device d = up ? dst->device : src->device;
    const tensorpy_backend *b = tp_backend_of(d);
    if (!is_pinned_by(up ? src->storage : dst->storage, (int)(b - tp_backends))) return 0;
    flight *f = malloc(sizeof *f);
    if (!f) return tp_fail_memory((int64_t)sizeof *f);
    *f = (flight){tp_storage_retain(dst->storage), tp_storage_retain(src->storage)};
    size_t nbytes = (size_t)(dst->numel * tp_itemsize((tp_dtype)dst->dtype));
    if (b->copy_async(d.index, tp_data(dst), tp_data(src), nbytes, up, land, f) == 0) return 1;
    land(f);
    return checked(b, -1, "a copy");
}

void tp_backend_optional(int i, tp_device_ops *ops) {
    static bool (*const are_pinned[TENSORPY_MAX_BACKENDS])(const tp_storage *) = {is_pinned_0, is_pinned_1,
                                                                                  is_pinned_2};
    const tensorpy_backend *b = &tp_backends[i];
    ops->properties = properties;
    if (b->stream_new) ops->streams = &stream_ops;
    if (b->memory_stats) ops->memory = &memory_ops;
    if (b->pin) ops->pin = pin, ops->is_pinned = are_pinned[i], ops->copy_async = copy_async;
}
