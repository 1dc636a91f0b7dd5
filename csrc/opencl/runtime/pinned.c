/* pinned.c: see pinned.h.
 *
 * The portable way to pinned memory: a buffer that the driver puts where the host can reach it, mapped for as long as
 * it lives.
 *
 * Invariant: `flights` of a device are changed under its lock; the storages that they hold are released without it. */
#include "opencl/runtime/pinned.h"

#include "opencl/runtime/memory.h"
#include "core/memory.h"

#include <stdlib.h>

typedef struct {
    cl_mem buffer;
    cl_command_queue queue;
} pin;

typedef struct flight {
    cl_event done;
    tp_storage *to, *from;
    struct flight *next;
} flight;

static flight *flights[TP_CL_MAX_DEVICES];

/* ---- pinned memory ---- */

static void unpin(void *context, void *data) {
    pin *p = context;
    if (!tp_cl_forked()) {
        tp_cl.clEnqueueUnmapMemObject(p->queue, p->buffer, data, 0, NULL, NULL);
        tp_cl.clReleaseMemObject(p->buffer); /* the driver keeps it until the command is done */
    }
    free(p);
}

static void *map(tp_cl_device *d, size_t nbytes, pin *p) {
    cl_int status;
    p->queue = d->queues[0];
    p->buffer =
        tp_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, nbytes ? nbytes : 1, NULL, &status);
    if (!p->buffer) return tp_cl_fail(status, "clCreateBuffer"), NULL;
    void *data = tp_cl.clEnqueueMapBuffer(p->queue, p->buffer, 1, CL_MAP_READ | CL_MAP_WRITE, 0, nbytes ? nbytes : 1, 0,
                                          NULL, NULL, &status);
    if (data) return data;
    tp_cl.clReleaseMemObject(p->buffer);
    return tp_cl_fail(status, "clEnqueueMapBuffer"), NULL;
}

tp_storage *tp_cl_pin(tp_device device, size_t nbytes) {
    tp_cl_device *d = tp_cl_get(device.index);
    pin *p = d ? malloc(sizeof *p) : NULL;
    if (!d) return NULL;
    if (!p) return tp_fail_memory((int64_t)sizeof *p), NULL;
    void *data = map(d, nbytes, p);
    tp_storage *s = data ? tp_storage_from_blob(TP_CPU, data, nbytes, unpin, p) : NULL;
    if (s) return s;
    if (data) unpin(p, data);
    else free(p);
    return NULL;
}

bool tp_cl_is_pinned(const tp_storage *s) { return s->deleter == unpin; }

/* ---- copies ---- */

static bool is_done(const flight *f) {
    cl_int state = 1;
    cl_int status = tp_cl.clGetEventInfo(f->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    return status == CL_SUCCESS && state <= 0; /* 0: complete, negative: it failed */
}

static void let_go(flight *f) {
    tp_cl.clReleaseEvent(f->done);
    tp_storage_release(f->to);
    tp_storage_release(f->from);
    free(f);
}

void tp_cl_settle(int device) {
    tp_cl_device *d = flights[device] ? tp_cl_get(device) : NULL;
    flight *landed = NULL;
    if (!d) return;
    tp_cl_lock(d);
    for (flight **place = &flights[device]; *place;) {
        flight *f = *place;
        if (!is_done(f)) {
            place = &f->next;
            continue;
        }
        *place = f->next;
        f->next = landed;
        landed = f;
    }
    tp_cl_unlock(d);
    while (landed) {
        flight *next = landed->next;
        let_go(landed);
        landed = next;
    }
}

static int enqueue(tp_cl_device *d, tp_tensor *dst, const tp_tensor *src, cl_event *done) {
    size_t nbytes = (size_t)(dst->numel * tp_itemsize((tp_dtype)dst->dtype));
    bool up = src->device.type == TP_DEVICE_CPU;
    tp_cl_place p = up ? tp_cl_place_of(dst, tp_data(dst)) : tp_cl_place_of(src, tp_data(src));
    size_t offset = (size_t)p.offset;
    cl_command_queue queue = tp_cl_queue(d);
    cl_int status = up ? tp_cl.clEnqueueWriteBuffer(queue, p.buffer, 0, offset, nbytes, tp_data(src), 0, NULL, done)
                       : tp_cl.clEnqueueReadBuffer(queue, p.buffer, 0, offset, nbytes, tp_data(dst), 0, NULL, done);
    if (status != CL_SUCCESS) return tp_cl_fail(status, up ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
    tp_cl.clFlush(queue); /* without it the copy starts at the next wait */
    return 0;
}

int tp_cl_copy_async(tp_tensor *dst, const tp_tensor *src) {
    bool up = src->device.type == TP_DEVICE_CPU;
    const tp_tensor *there = up ? dst : src;
    if (!tp_cl_is_pinned(up ? src->storage : dst->storage)) return 0;
    tp_cl_device *d = tp_cl_get(there->device.index);
    flight *f = d ? malloc(sizeof *f) : NULL;
    if (!d) return -1;
    if (!f) return tp_fail_memory((int64_t)sizeof *f);
    tp_cl_settle(d->index);
    *f = (flight){.to = tp_storage_retain(dst->storage), .from = tp_storage_retain(src->storage)};
    tp_cl_lock(d);
    int status = enqueue(d, dst, src, &f->done);
    if (status == 0) {
        f->next = flights[d->index];
        flights[d->index] = f;
    }
    tp_cl_unlock(d);
    if (status == 0) return 1;
    tp_storage_release(f->to);
    tp_storage_release(f->from);
    free(f);
    return -1;
}
