/* profile.h: when the device ran each kernel, on the host's clock: for a profile.
 *
 * While `tp_cl_profiling` is set, queues are made with times, launches keep their events, and nothing is waited for
 * until the times are read. */
#pragma once

#include "dispatch/profiler.h"
#include "opencl/runtime.h"

extern bool tp_cl_profiling;

typedef struct {
    const char *name; /* the kernel's */
    int device, stream;
    int64_t begin, end; /* as tp_profile_now */
    uint32_t thread;    /* who launched it, and in which event of that thread; 0: outside of any */
    int64_t at;
} tp_cl_profiled;

/* Queues that are there are made anew. */
int tp_cl_profile_start(void);
/* Waits for the kernels and tells of each in the order of the launches; -1 and the error set if `tell` fails. */
int tp_cl_profile_stop(int (*tell)(const tp_cl_profiled *k, void *context), void *context);
/* A kernel was launched at `now`. Under the device's lock. */
void tp_cl_profile_keep_steal(tp_cl_device *d, const char *name, cl_event event, int64_t now);
