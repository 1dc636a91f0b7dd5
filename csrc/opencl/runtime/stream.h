/* stream.h: the queues of a device, its streams.
 *
 * Number 0 is the default stream; the others are made when they are first asked for and given out in turn. What a
 * thread enqueues goes to its current stream of the device. Streams are in order each, and know nothing of one another:
 * who works on two makes one wait for the other (events), and says which tensors the second one uses
 * (tp_cl_stream_use), as their memory goes back to the stream that they were made on. */
#pragma once

#include "opencl/runtime/runtime.h"

extern __thread uint8_t tp_cl_streams[TP_CL_MAX_DEVICES] __attribute__((tls_model("initial-exec")));

TP_INLINE int tp_cl_stream(const tp_cl_device *d) { return tp_cl_streams[d->index]; }
/* Where this thread's commands go. */
TP_INLINE cl_command_queue tp_cl_queue(const tp_cl_device *d) {
    return __atomic_load_n(&d->queues[tp_cl_streams[d->index]], __ATOMIC_ACQUIRE); /* others may be made meanwhile */
}

/* The number of a stream besides the default one; -1 and the error set on failure. */
int tp_cl_stream_new(tp_cl_device *d);
int tp_cl_stream_set(tp_cl_device *d, int stream);

/* From here on the stream notes when commands start and end, which events with timing ask for. */
int tp_cl_profile(tp_cl_device *d, int stream);

/* A mark after all that is enqueued on a stream; `call` is the driver's function that failed. */
cl_int tp_cl_mark(tp_cl_device *d, int stream, cl_event *event, const char **call);
/* What is enqueued on a stream from here on comes after an event of the same device. */
cl_int tp_cl_hold(tp_cl_device *d, int stream, cl_event event);
/* What is enqueued on `stream` from here on comes after all that the streams of a set (bits) were given so far. */
void tp_cl_hold_for(tp_cl_device *d, int stream, uint32_t others);

/* Waits for an event, and for what a stream, or the thread's, was given so far. Gives up the host lock while it waits;
 * -1 and the error set, too, when a signal's handler raises. */
int tp_cl_await(cl_event event);
int tp_cl_await_stream(tp_cl_device *d);
int tp_cl_await_queue(tp_cl_device *d, int stream);
/* Waits for all streams with the host lock held, for those that hold a lock of their own. */
cl_int tp_cl_finish_locked(tp_cl_device *d);
