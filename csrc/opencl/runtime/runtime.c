/* runtime.c: opening libOpenCL, listing its devices, starting them, and what the core asks of a device type.
 *
 * Invariant: once `opened`, devices and count do not change but for a device's context and queues, which are
 * written under a lock. */
#define _GNU_SOURCE /* strcasestr */
#include "opencl/runtime/runtime.h"

#include "core/dtype.h"
#include "core/lock.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

tp_cl_functions tp_cl;
bool tp_cl_profiling;
int (*tp_cl_check_first)(tp_cl_device *d);

static tp_cl_device devices[TP_CL_MAX_DEVICES];
static int count;
static bool opened;
static volatile bool forked;
static _Thread_local int current;

/* ---- errors ---- */

const char *tp_cl_error_name(cl_int status) {
    static const struct {
        cl_int status;
        const char *name;
    } names[] = {
        {-1, "CL_DEVICE_NOT_FOUND"},          {-2, "CL_DEVICE_NOT_AVAILABLE"},
        {-3, "CL_COMPILER_NOT_AVAILABLE"},    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {-5, "CL_OUT_OF_RESOURCES"},          {-6, "CL_OUT_OF_HOST_MEMORY"},
        {-11, "CL_BUILD_PROGRAM_FAILURE"},    {-30, "CL_INVALID_VALUE"},
        {-36, "CL_INVALID_COMMAND_QUEUE"},    {-38, "CL_INVALID_MEM_OBJECT"},
        {-42, "CL_INVALID_BINARY"},           {-46, "CL_INVALID_KERNEL_NAME"},
        {-51, "CL_INVALID_ARG_SIZE"},         {-52, "CL_INVALID_KERNEL_ARGS"},
        {-54, "CL_INVALID_WORK_GROUP_SIZE"},  {-61, "CL_INVALID_BUFFER_SIZE"},
        {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].status == status) return names[i].name;
    return "an OpenCL error";
}

int tp_cl_fail(cl_int status, const char *call) {
    return tp_fail(TP_RuntimeError, "OpenCL: %s failed: %s (%d)", call, tp_cl_error_name(status), (int)status);
}

/* ---- the library ---- */

static int open_library(void) {
    const char *wanted = getenv("TENSORPY_OPENCL_LIBRARY");
    const char *path = wanted && *wanted ? wanted : "libOpenCL.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return tp_fail(TP_RuntimeError,
                       "OpenCL is not available: %s cannot be opened (%s)\n"
                       "  next step: install a driver; for the CPU, Debian's pocl-opencl-icd",
                       path, dlerror());
#define LOAD(result, name, parameters)             \
    *(void **)&tp_cl.name = dlsym(library, #name); \
    if (!tp_cl.name) return tp_fail(TP_RuntimeError, "OpenCL is not available: %s has no %s", path, #name);
    TP_FORALL_CL(LOAD)
#undef LOAD
    return 0;
}

static void read_text(cl_device_id id, cl_uint what, char *text, size_t size) {
    char whole[4096] = "";
    if (tp_cl.clGetDeviceInfo(id, what, sizeof whole - 1, whole, NULL) != CL_SUCCESS) whole[0] = 0;
    snprintf(text, size, "%s", whole);
}

static uint64_t read_number(cl_device_id id, cl_uint what, size_t size) {
    uint64_t value = 0;
    return tp_cl.clGetDeviceInfo(id, what, size, &value, NULL) == CL_SUCCESS ? value : 0;
}

static void describe(tp_cl_device *d, cl_platform_id platform, cl_device_id id) {
    char extensions[8192];
    memset(d, 0, sizeof *d);
    d->platform = platform;
    d->id = id;
    read_text(id, CL_DEVICE_NAME, d->name, sizeof d->name);
    read_text(id, CL_DEVICE_VENDOR, d->vendor, sizeof d->vendor);
    read_text(id, CL_DRIVER_VERSION, d->driver, sizeof d->driver);
    read_text(id, CL_DEVICE_VERSION, d->version, sizeof d->version);
    tp_cl.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof d->platform_name - 1, d->platform_name, NULL);
    d->global_memory = read_number(id, CL_DEVICE_GLOBAL_MEM_SIZE, 8);
    d->max_allocation = read_number(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8);
    d->local_memory = read_number(id, CL_DEVICE_LOCAL_MEM_SIZE, 8);
    d->compute_units = (uint32_t)read_number(id, CL_DEVICE_MAX_COMPUTE_UNITS, 4);
    d->max_group = (size_t)read_number(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    if (d->max_group == 0) d->max_group = 1; /* the least that there can be, where the driver does not tell */
    d->is_host = read_number(id, CL_DEVICE_TYPE, 8) & CL_DEVICE_TYPE_CPU;
    /* Where a vector is one number, work-items are the elements of the CPU's vectors, as on a GPU. */
    d->is_cpu = d->is_host && read_number(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 4) > 1;
    read_text(id, CL_DEVICE_EXTENSIONS, extensions, sizeof extensions);
    d->has_fp64 = strstr(extensions, "cl_khr_fp64") != NULL;
    d->has_fp16 = strstr(extensions, "cl_khr_fp16") != NULL;
    d->has_subgroups = strstr(extensions, "cl_khr_subgroups") != NULL;
    const char *tuning = getenv("TENSORPY_OPENCL_TUNING"); /* for tests of the one kind on the other */
    d->is_doubtful = d->is_host && !d->is_cpu && !tuning;
    if (tuning && strcmp(tuning, "gpu") == 0) d->is_cpu = d->is_host = false;
    if (tuning && strcmp(tuning, "cpu") == 0) d->is_cpu = d->is_host = true;
    d->group = d->is_cpu ? 1024 : 256;
    while (d->group > d->max_group) d->group /= 2;
}

/* The smaller comes first. */
static int rank(const tp_cl_device *d, int place) {
    const char *wanted = getenv("TENSORPY_OPENCL_DEVICE");
    if (wanted && *wanted) {
        char *end;
        long number = strtol(wanted, &end, 10);
        if (*end ? strcasestr(d->name, wanted) || strcasestr(d->platform_name, wanted) : number == place) return 0;
    }
    return d->is_host ? 2 : 1;
}

static void sort_devices(void) {
    int ranks[TP_CL_MAX_DEVICES];
    for (int i = 0; i < count; i++) {
        ranks[i] = rank(&devices[i], i);
        if (ranks[i] == 0) devices[i].is_doubtful = false; /* who names it wants it */
    }
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && ranks[k - 1] > ranks[k]; k--) {
            tp_cl_device d = devices[k];
            int r = ranks[k];
            devices[k] = devices[k - 1];
            ranks[k] = ranks[k - 1];
            devices[k - 1] = d;
            ranks[k - 1] = r;
        }
}

static int list_devices(void) {
    cl_platform_id platforms[TP_CL_MAX_DEVICES];
    cl_uint found = 0;
    cl_int status = tp_cl.clGetPlatformIDs(TP_CL_MAX_DEVICES, platforms, &found);
    if (status != CL_SUCCESS && status != -1001) return tp_cl_fail(status, "clGetPlatformIDs");
    if (found > TP_CL_MAX_DEVICES) found = TP_CL_MAX_DEVICES;
    for (cl_uint p = 0; status == CL_SUCCESS && p < found; p++) {
        cl_device_id ids[TP_CL_MAX_DEVICES];
        cl_uint n = 0;
        if (tp_cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, TP_CL_MAX_DEVICES, ids, &n) != CL_SUCCESS) continue;
        for (cl_uint i = 0; i < n && i < TP_CL_MAX_DEVICES && count < TP_CL_MAX_DEVICES; i++)
            describe(&devices[count++], platforms[p], ids[i]);
    }
    sort_devices();
    for (int i = 0; i < count; i++) devices[i].index = i;
    return 0;
}

static void after_fork(void) { forked = true; }

static int fail_forked(void) {
    return tp_fail(TP_RuntimeError, "OpenCL cannot be used in a process forked from one that has used it\n"
                                    "  next step: start the process with 'spawn' or 'forkserver'");
}

bool tp_cl_forked(void) { return forked; }
bool tp_cl_started(int index) { return !forked && index < count && devices[index].queues[0]; }

static int open_once(void) {
    if (tp_unlikely(forked)) return fail_forked();
    if (tp_likely(__atomic_load_n(&opened, __ATOMIC_ACQUIRE))) return 0;
    tp_lock(TP_LOCK_ClRuntime);
    int status = 0;
    if (!opened) {
        count = 0;
        status = open_library() < 0 || list_devices() < 0 ? -1 : 0;
        if (status == 0) {
            pthread_atfork(NULL, NULL, after_fork);
            __atomic_store_n(&opened, true, __ATOMIC_RELEASE);
        }
    }
    tp_unlock(TP_LOCK_ClRuntime);
    return status;
}

bool tp_cl_opened(void) { return __atomic_load_n(&opened, __ATOMIC_ACQUIRE) && !forked; }

int tp_cl_device_count(void) { return open_once() < 0 ? -1 : count; }

int tp_cl_available(void) {
    if (open_once() == 0) return count;
    tp_error_clear();
    return 0;
}

/* ---- devices ---- */

const tp_cl_device *tp_cl_describe(int index) {
    if (open_once() < 0) return NULL;
    if (index >= 0 && index < count) return &devices[index];
    if (count == 0)
        return tp_fail_null(TP_RuntimeError, "OpenCL is not available: no platform has a device\n"
                                             "  next step: install a driver; for the CPU, Debian's pocl-opencl-icd");
    return tp_fail_null(TP_RuntimeError, "invalid device ordinal: opencl:%d, but there are %d OpenCL devices", index,
                        count);
}

static int start_device(tp_cl_device *d) {
    cl_int status;
    d->context = tp_cl.clCreateContext(NULL, 1, &d->id, NULL, NULL, &status);
    if (!d->context) return tp_cl_fail(status, "clCreateContext");
    if (tp_cl_check_first && tp_cl_check_first(d) < 0) {
        tp_cl.clReleaseContext(d->context);
        d->context = NULL;
        return -1;
    }
    cl_bitfield properties = tp_cl_profiling ? CL_QUEUE_PROFILING_ENABLE : 0;
    cl_command_queue queue = tp_cl.clCreateCommandQueue(d->context, d->id, properties, &status);
    if (queue) {
        d->profiled = properties ? 1 : 0;
        __atomic_store_n(&d->queues[0], queue, __ATOMIC_RELEASE);
        return 0;
    }
    tp_cl.clReleaseContext(d->context);
    d->context = NULL;
    return tp_cl_fail(status, "clCreateCommandQueue");
}

tp_cl_device *tp_cl_get(int index) {
    tp_cl_device *d = (tp_cl_device *)tp_cl_describe(index);
    if (tp_unlikely(!d) || tp_likely(__atomic_load_n(&d->queues[0], __ATOMIC_ACQUIRE) != NULL)) return d;
    tp_lock(TP_LOCK_ClRuntime);
    int status = d->queues[0] ? 0 : start_device(d);
    tp_unlock(TP_LOCK_ClRuntime);
    return status == 0 ? d : NULL;
}

int tp_cl_check_dtype(const tp_cl_device *d, int dtype) {
    if (d->has_fp64 || (dtype != TP_FLOAT64 && dtype != TP_COMPLEX128)) return 0;
    return tp_fail(TP_NotImplementedError,
                   "%s has no double precision (cl_khr_fp64), so there is no %s on opencl:%d\n"
                   "  next step: use %s, or a device that has it",
                   d->name, tp_dtype_names[dtype], d->index, dtype == TP_FLOAT64 ? "float32" : "complex64");
}

int tp_cl_current(void) { return current; }

int tp_cl_set_current(int index) {
    if (!tp_cl_describe(index)) return -1;
    current = index;
    return 0;
}
