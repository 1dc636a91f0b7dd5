/* copy.c: see copy.h. Copies to the host wait for what is enqueued before them and give up the host lock meanwhile;
 * copies from the host of at most STAGED bytes go through a ring of slots and do not wait, so that a loop that feeds
 * small inputs only enqueues. */
#include "opencl/runtime/copy.h"

#include "core/host.h"
#include "opencl/runtime/fault.h"
#include "opencl/runtime/profile.h"
#include "opencl/runtime/program.h"
#include "core/memory.h"

#include <string.h>

#define STAGED ((size_t)4096)
#define SLOTS 64

typedef struct {
    char bytes[STAGED];
    cl_event done; /* NULL: free */
} slot;

static slot rings[TP_CL_MAX_DEVICES][SLOTS];
static unsigned next_slot[TP_CL_MAX_DEVICES];

/* Under the device's lock. */
static int write_staged(tp_cl_device *d, tp_cl_place to, const void *src, size_t nbytes) {
    slot *s = &rings[d->index][next_slot[d->index]++ % SLOTS];
    cl_int status;
    if (s->done) {
        status = tp_cl.clWaitForEvents(1, &s->done);
        if (status != CL_SUCCESS) return tp_cl_fail(status, "clWaitForEvents"); /* its bytes may still be read */
        tp_cl.clReleaseEvent(s->done);
        s->done = NULL;
    }
    memcpy(s->bytes, src, nbytes);
    tp_cl_command command = tp_cl_command_begin();
    status = tp_cl.clEnqueueWriteBuffer(tp_cl_queue(d), to.buffer, 0, (size_t)to.offset, nbytes, s->bytes, 0, NULL,
                                        &s->done);
    if (command.now && status == CL_SUCCESS) tp_cl.clRetainEvent(command.event = s->done);
    tp_cl_command_end(d, &command, "Memcpy HtoD", status);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueWriteBuffer");
}

static int write_waiting(tp_cl_device *d, tp_cl_place to, const void *src, size_t nbytes) {
    tp_cl_command command = tp_cl_command_begin();
    void *held = tp_host_lock_release();
    cl_int status = tp_cl.clEnqueueWriteBuffer(tp_cl_queue(d), to.buffer, 1, (size_t)to.offset, nbytes, src, 0, NULL,
                                               tp_cl_command_event(&command));
    tp_host_lock_acquire(held);
    tp_cl_command_end_unlocked(d, &command, "Memcpy HtoD", status);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueWriteBuffer");
}

int tp_cl_copy_from_host(tp_device device, void *dst, const void *src, size_t nbytes) {
    tp_cl_place to;
    tp_cl_device *d = tp_cl_get(device.index);
    if (!d) return -1;
    if (nbytes == 0) return 0;
    if (tp_cl_find(device.index, dst, &to) < 0) return -1;
    if (nbytes > STAGED) return write_waiting(d, to, src, nbytes);
    tp_cl_lock(d);
    int status = write_staged(d, to, src, nbytes);
    tp_cl_unlock(d);
    return status;
}

int tp_cl_copy_to_host(tp_device device, void *dst, const void *src, size_t nbytes) {
    tp_cl_place from;
    tp_cl_look look;
    tp_cl_device *d = tp_cl_get(device.index);
    if (!d) return -1;
    if (nbytes == 0) return 0;
    if (tp_cl_find(device.index, src, &from) < 0 || tp_cl_await_stream(d) < 0 || tp_cl_look_begin(d, &look) < 0)
        return -1; /* waited for before: a copy that is under way cannot be left */
    tp_cl_command command = tp_cl_command_begin();
    void *held = tp_host_lock_release();
    cl_int status = tp_cl.clEnqueueReadBuffer(tp_cl_queue(d), from.buffer, 1, (size_t)from.offset, nbytes, dst, 0, NULL,
                                              tp_cl_command_event(&command));
    tp_host_lock_acquire(held);
    tp_cl_command_end_unlocked(d, &command, "Memcpy DtoH", status);
    tp_cl_settle_programs(false);
    if (status == CL_SUCCESS) return tp_cl_look_end(d, &look);
    tp_cl_look_drop(d, &look);
    return tp_cl_fail(status, "clEnqueueReadBuffer");
}

/* Ranges that overlap in one buffer are CL_MEM_COPY_OVERLAP to the driver; the core never asks for them. */
int tp_cl_copy_inside(tp_device device, void *dst, const void *src, size_t nbytes) {
    tp_cl_place to, from;
    tp_cl_device *d = tp_cl_get(device.index);
    if (!d) return -1;
    if (nbytes == 0 || dst == src) return 0;
    if (tp_cl_find(device.index, dst, &to) < 0 || tp_cl_find(device.index, src, &from) < 0) return -1;
    tp_cl_command command = tp_cl_command_begin();
    cl_int status = tp_cl.clEnqueueCopyBuffer(tp_cl_queue(d), from.buffer, to.buffer, (size_t)from.offset,
                                              (size_t)to.offset, nbytes, 0, NULL, tp_cl_command_event(&command));
    tp_cl_command_end_unlocked(d, &command, "Memcpy DtoD", status);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueCopyBuffer");
}
