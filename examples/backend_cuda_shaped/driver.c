/* driver.c: opens libOpenCL, finds the devices that have shared virtual memory, builds kernels. */
#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

driver_functions cl;

static gpu gpus[MOST_DEVICES];
static int count;

int gpu_fail(int status, const char *call) {
    return status == 0 ? 0 : tp_fail(TP_RuntimeError, "ocl: %s failed: %d", call, status);
}

/* ---- devices ---- */

static bool open_library(void) {
    const char *given = getenv("OCL_LIBRARY");
    void *library = dlopen(given ? given : "libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
#define LOAD(result, name, parameters) \
    if (!(*(void **)&cl.name = dlsym(library, #name))) return false;
    DRIVER_FUNCTIONS(LOAD)
#undef LOAD
    return true;
}

/* Takes the device if it can share addresses with kernels, as cudaMalloc's are. */
static void take(cl_device id) {
    uint64_t svm = 0;
    char extensions[8192] = "";
    int status = 0;
    gpu *g = &gpus[count];
    if (cl.clGetDeviceInfo(id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, NULL) != 0 || !(svm & 1)) return;
    cl.clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL);
    g->id = id;
    g->has_double = strstr(extensions, "cl_khr_fp64") != NULL;
    g->context = cl.clCreateContext(NULL, 1, &id, NULL, NULL, &status);
    if (g->context) g->queue = cl.clCreateCommandQueueWithProperties(g->context, id, NULL, &status);
    if (g->queue && pthread_mutex_init(&g->lock, NULL) == 0) count++;
}

static void find_devices(void) {
    cl_platform platforms[MOST_DEVICES];
    cl_device ids[MOST_DEVICES];
    uint32_t nplatforms = 0, n = 0;
    if (!open_library() || cl.clGetPlatformIDs(MOST_DEVICES, platforms, &nplatforms) != 0) return;
    for (uint32_t p = 0; p < nplatforms && p < MOST_DEVICES; p++) {
        if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, ids, &n) != 0) continue;
        for (uint32_t i = 0; i < n && i < MOST_DEVICES && count < MOST_DEVICES; i++) take(ids[i]);
    }
}

int gpu_count(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_devices);
    return count;
}

gpu *gpu_at(int device) { return &gpus[device]; }

/* ---- kernels ---- */

static cl_program build(gpu *g, const char *source, const char *type) {
    char options[96], log[2048] = "";
    int status = 0;
    bool is_double = strcmp(type, "double") == 0, floating = is_double || strcmp(type, "float") == 0;
    snprintf(options, sizeof options, "-DT=%s%s%s", type, floating ? " -DFLOATING" : "", is_double ? " -DDOUBLE" : "");
    cl_program program = cl.clCreateProgramWithSource(g->context, 1, &source, NULL, &status);
    if (!program || (status = cl.clBuildProgram(program, 1, &g->id, options, NULL, NULL)) != 0) {
        if (program) cl.clGetProgramBuildInfo(program, g->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
        tp_fail(TP_RuntimeError, "ocl: a kernel does not build (%d):\n%s", status, log);
        return NULL;
    }
    return program;
}

cl_kernel gpu_kernel(gpu *g, const char *source, const char *name, const char *type) {
    char key[64];
    int status = 0, i = 0;
    snprintf(key, sizeof key, "%s %s", name, type);
    while (i < MOST_KERNELS && g->kernels[i].kernel && strcmp(g->kernels[i].key, key) != 0) i++;
    if (i == MOST_KERNELS) return (cl_kernel)tp_fail_null(TP_RuntimeError, "ocl: there are %d kernels already", i);
    if (g->kernels[i].kernel) return g->kernels[i].kernel;
    cl_program program = build(g, source, type);
    cl_kernel kernel = program ? cl.clCreateKernel(program, name, &status) : NULL;
    if (!kernel) return program ? (gpu_fail(status, "clCreateKernel"), (cl_kernel)NULL) : NULL;
    memcpy(g->kernels[i].key, key, sizeof key);
    return g->kernels[i].kernel = kernel;
}
