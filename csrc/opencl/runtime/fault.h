/* fault.h: how a kernel tells what it finds wrong with the values that it is given (prim/fault.h).
 *
 * A kernel does not read or write what a bad value leads to. It leaves a note in a few words of device memory, if there
 * is none yet, and goes on (report() in common.cl). The host looks there where it waits anyway: when something is
 * copied to it, or in synchronize. The operator that waits fails with the error of the one that is at fault, which the
 * note names. With tensorpy.opencl.check_indices = "sync" every checked launch waits and looks.
 *
 * Invariants: a queue is in order, so a stream's first note is that of its first operator at fault; it stays until it
 * was raised. A look on one stream sees what that stream, and what it was made to wait for, has noted; a wait for the
 * device sees all. A look that finds nothing to look at (nothing checked was enqueued since the last one) costs
 * nothing. Where several threads see one note, the first raises it. */
#pragma once

#include "opencl/runtime/stream.h"
#include "prim/fault.h"

/* The words of the device, which what is enqueued next on the thread's stream may write; under the device's lock. */
cl_int tp_cl_fault_words(tp_cl_device *d, cl_mem **words);

/* A look around a wait: begin enqueues it, end, after the wait, raises what was found. */
typedef struct {
    bool looks;
    uint32_t raised;  /* how many notes of the device had been raised when the look began */
    int64_t words[4]; /* kind, value, dimension, size */
} tp_cl_look;
int tp_cl_look_begin(tp_cl_device *d, tp_cl_look *look);
int tp_cl_look_end(tp_cl_device *d, const tp_cl_look *look);
/* In place of the end where the wait failed: nothing is written to the look any more. */
void tp_cl_look_drop(tp_cl_device *d, const tp_cl_look *look);
/* A look after a wait for all streams. */
int tp_cl_look_idle(tp_cl_device *d);
/* Waits for the thread's stream and looks. */
int tp_cl_look_now(tp_cl_device *d);

/* Waits for all streams of a device, as tp_cl_await does, and looks. */
int tp_cl_finish(tp_cl_device *d);
/* Waits for every device before the process's own clean-up, in which the driver takes down its compiler while a kernel
 * may still need it. */
void tp_cl_shut_down(void);

/* Whether checked launches wait. The first value is TENSORPY_OPENCL_CHECK_INDICES's: "deferred" (the default), "sync".
 */
bool tp_cl_checks_wait(void);
void tp_cl_set_checks_wait(bool wait);
