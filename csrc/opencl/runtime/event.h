/* event.h: marks in a stream: whether what was enqueued before is done, and when it was. */
#pragma once

#include "opencl/runtime/stream.h"

typedef struct {
    tp_cl_device *device;
    cl_event event;
    bool timing;
} tp_cl_marker;

/* A mark after all that is enqueued; NULL and the error set on failure. With timing the stream takes times from here
 * on. stream -1: the current one. */
tp_cl_marker *tp_cl_event_record(int device, int stream, bool timing);
/* What is enqueued on a stream from here on comes after the mark. The host waits where the mark is another device's. */
int tp_cl_event_hold(const tp_cl_marker *m, int device, int stream);
void tp_cl_event_free(tp_cl_marker *m);
int tp_cl_event_query(const tp_cl_marker *m); /* 1 done, 0 not yet, -1 error */
int tp_cl_event_wait(const tp_cl_marker *m);
int tp_cl_event_elapsed(const tp_cl_marker *from, const tp_cl_marker *to, double *milliseconds);
