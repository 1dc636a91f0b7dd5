/* runtime.h: libOpenCL, its devices, and a context and queues for each device in use.
 *
 * The library is opened when a device is first asked for. Devices are numbered over all platforms: first the ones that
 * TENSORPY_OPENCL_DEVICE names (a number, or a part of the device's or the platform's name), then GPUs, accelerators,
 * CPUs. A device's context and first queue are made at its first use and stay until the process ends.
 *
 * Invariant: a queue is in order, so a kernel sees what was enqueued before it; only copies to the host wait. Which
 * queue a command goes to is stream.h's. */
#pragma once

#include "core/device.h"
#include "core/error.h"
#include "core/lock.h"
#include "opencl/runtime/cl.h"

#define TP_CL_MAX_DEVICES 16
#define TP_CL_MAX_STREAMS 8

typedef struct {
    cl_platform_id platform;
    cl_device_id id;
    cl_context context;                         /* NULL until the first use, like the first queue */
    cl_command_queue queues[TP_CL_MAX_STREAMS]; /* by number of the stream; the first is the default one */
    uint32_t profiled;                          /* a bit for each queue that takes times */
    unsigned given_streams;
    int index;
    char name[128], platform_name[64], vendor[64], driver[64], version[64];
    uint64_t global_memory, max_allocation, local_memory;
    uint32_t compute_units;
    size_t max_group, group; /* work-items in a group: the most, and what elementwise kernels take */
    bool is_host;            /* a CPU by its type */
    bool is_cpu;             /* and a work-item computes with vectors: kernels as for a CPU, else as for a GPU */
    bool is_doubtful;        /* tried before the first use (sound.c) */
    bool has_fp64, has_fp16, has_subgroups;
} tp_cl_device;

extern tp_cl_functions tp_cl;
extern bool tp_cl_profiling; /* queues note when commands start and end (profile.h) */
/* Asked, where it is there (sound.c), of a device that has its context and no queue yet, under the lock ClRuntime; -1
 * and the error set: the device is refused. */
extern int (*tp_cl_check_first)(tp_cl_device *d);

/* The device's lock: of kernel arguments and enqueueing. */
TP_INLINE void tp_cl_lock(const tp_cl_device *d) { tp_lock((tp_lock_id)(TP_LOCK_ClDevice + d->index)); }
TP_INLINE void tp_cl_unlock(const tp_cl_device *d) { tp_unlock((tp_lock_id)(TP_LOCK_ClDevice + d->index)); }
_Static_assert(TP_CL_MAX_DEVICES == TP_LOCK_PER_DEVICE, "each device has its locks");

/* How many devices there are; -1 and the error set if the library cannot be opened. */
int tp_cl_device_count(void);
/* The same without an error: 0 where there is no library, no platform, no device. */
int tp_cl_available(void);
/* Whether the library has been opened, by this process. */
bool tp_cl_opened(void);
/* The device of an index, with context and default queue. NULL and the error set: out of range, after fork, driver's
 * fault. */
tp_cl_device *tp_cl_get(int index);
/* What is known of a device without using it; NULL and the error set for an index out of range. */
const tp_cl_device *tp_cl_describe(int index);
/* Whether the device has queues, of this process. */
bool tp_cl_started(int index);
/* True in a process that was forked from one that had opened the driver: its queues do not live on in a child. */
bool tp_cl_forked(void);

/* Fails with the name of an OpenCL error and of the call; always -1. */
int tp_cl_fail(cl_int status, const char *call) TP_COLD;
const char *tp_cl_error_name(cl_int status);
/* NotImplementedError where a device lacks a dtype (float64 and complex128 without fp64). */
int tp_cl_check_dtype(const tp_cl_device *d, int dtype);

/* The thread's device, where `opencl` without an index leads. */
int tp_cl_current(void);
int tp_cl_set_current(int index);
