/* profile.h: when the device ran each kernel and copy, on the host's clock: for a profile.
 *
 * While `tp_cl_profiling` is set, queues are made with times, launches keep their events, and nothing is waited for
 * until the times are read. */
#pragma once

#include "dispatch/profiler.h"
#include "opencl/runtime/runtime.h"

typedef struct {
    const char *name; /* the kernel's; "Memset", "Memcpy HtoD" and its kin of a copy */
    int device, stream;
    int64_t begin, end; /* as tp_clock_ns */
    uint32_t thread;    /* who launched it, and in which event of that thread; 0: outside of any */
    int64_t at;
} tp_cl_profiled;

/* Queues that are there are made anew. */
int tp_cl_profile_start(void);
/* Waits for the kernels and tells of each in the order of the launches; -1 and the error set if `tell` fails. */
int tp_cl_profile_stop(int (*tell)(const tp_cl_profiled *k, void *context), void *context);
/* Bytes in tensors on all devices. */
int64_t tp_cl_live_bytes(void);

/* A command on its way into a queue:
 *     tp_cl_command c = tp_cl_command_begin();
 *     status = clEnqueue...(..., tp_cl_command_event(&c));
 *     tp_cl_command_end(d, &c, "Memset", status);            with the device's lock, or tp_cl_command_end_unlocked */
typedef struct {
    cl_event event;
    int64_t now; /* 0: no profile wants the event */
} tp_cl_command;
TP_INLINE tp_cl_command tp_cl_command_begin(void) {
    return (tp_cl_command){NULL, tp_unlikely(tp_cl_profiling) ? tp_clock_ns() : 0};
}
TP_INLINE cl_event *tp_cl_command_event(tp_cl_command *c) { return c->now ? &c->event : NULL; }
void tp_cl_profile_keep_steal(tp_cl_device *d, const char *name, const tp_cl_command *c);
TP_INLINE void tp_cl_command_end(tp_cl_device *d, const tp_cl_command *c, const char *name, cl_int status) {
    if (tp_unlikely(c->now != 0) && status == CL_SUCCESS) tp_cl_profile_keep_steal(d, name, c);
}
TP_INLINE void tp_cl_command_end_unlocked(tp_cl_device *d, const tp_cl_command *c, const char *name, cl_int status) {
    if (tp_likely(!c->now)) return;
    tp_cl_lock(d);
    tp_cl_command_end(d, c, name, status);
    tp_cl_unlock(d);
}
