/* stream.h: queues of work of a device, marks in them, and what a device tells of itself: the parts of tp_device_ops
 * that a device need not have. `d` is resolved (it has its index).
 *
 * A thread has a current stream of each device, number 0 until it chooses another; what it asks of the device goes
 * there. -1 (NULL): the error is set. */
#pragma once

#include "core/tensor.h"
#include "tensorpy/backend.h"

typedef struct tp_stream_ops {
    int64_t (*make)(tp_device d, int priority); /* the number of a stream beside the default one */
    int64_t (*current)(tp_device d);
    int (*set)(tp_device d, int64_t stream);
    int (*query)(tp_device d, int64_t stream); /* 1: all that it was given is done; 0: not yet */
    int (*synchronize)(tp_device d, int64_t stream);
    /* Another stream uses the tensor's memory, too, which is not given to others before that is done. */
    int (*use)(const tp_tensor *t, int64_t stream);
    /* An event: a mark after all that a stream was given; with timing it knows when it was reached. */
    void *(*record)(tp_device d, int64_t stream, bool timing);
    void (*event_free)(void *event);
    int (*event_query)(void *event);
    int (*event_synchronize)(void *event);
    /* What the stream is given from here on comes after the event, which is one of the same type of device. */
    int (*event_hold)(void *event, tp_device d, int64_t stream);
    int (*event_elapsed)(void *from, void *to, double *milliseconds);
} tp_stream_ops;

typedef struct tp_memory_ops {
    int (*stats)(tp_device d, tensorpy_memory_stats *out);
    int (*reset_peaks)(tp_device d);
    int (*empty_cache)(tp_device d);
} tp_memory_ops;
