/* driver.h: the part of OpenCL that this backend uses, opened at run time, and what the files of the backend share.
 *
 * Nothing of tensorpy's own OpenCL device is used: what is here a CUDA backend has from cuda.h (README.md puts the
 * names side by side). */
#ifndef DRIVER_H
#define DRIVER_H

#include "tensorpy/library.h"

#include <pthread.h>

typedef struct _cl_platform_id *cl_platform;
typedef struct _cl_device_id *cl_device;
typedef struct _cl_context *cl_context;
typedef struct _cl_queue *cl_queue;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;

#define CL_DEVICE_TYPE_ALL 0xFFFFFFFFul
#define CL_DEVICE_SVM_CAPABILITIES 0x1053
#define CL_DEVICE_EXTENSIONS 0x1030
#define CL_PROGRAM_BUILD_LOG 0x1183
#define CL_MEM_READ_WRITE 1ul

/* X(result, name, parameters): events and callbacks, which are not used, are void *. */
#define DRIVER_FUNCTIONS(X)                                                                                            \
    X(int, clGetPlatformIDs, (uint32_t, cl_platform *, uint32_t *))                                                    \
    X(int, clGetDeviceIDs, (cl_platform, uint64_t, uint32_t, cl_device *, uint32_t *))                                 \
    X(int, clGetDeviceInfo, (cl_device, uint32_t, size_t, void *, size_t *))                                           \
    X(cl_context, clCreateContext, (const intptr_t *, uint32_t, const cl_device *, void *, void *, int *))             \
    X(cl_queue, clCreateCommandQueueWithProperties, (cl_context, cl_device, const uint64_t *, int *))                  \
    X(cl_program, clCreateProgramWithSource, (cl_context, uint32_t, const char **, const size_t *, int *))             \
    X(int, clBuildProgram, (cl_program, uint32_t, const cl_device *, const char *, void *, void *))                    \
    X(int, clGetProgramBuildInfo, (cl_program, cl_device, uint32_t, size_t, void *, size_t *))                         \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, int *))                                                    \
    X(int, clSetKernelArg, (cl_kernel, uint32_t, size_t, const void *))                                                \
    X(int, clSetKernelArgSVMPointer, (cl_kernel, uint32_t, const void *))                                              \
    X(int, clEnqueueNDRangeKernel,                                                                                     \
      (cl_queue, cl_kernel, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const void *, void *)) \
    X(void *, clSVMAlloc, (cl_context, uint64_t, size_t, uint32_t))                                                    \
    X(int, clEnqueueSVMFree, (cl_queue, uint32_t, void **, void *, void *, uint32_t, const void *, void *))            \
    X(int, clEnqueueSVMMemcpy, (cl_queue, uint32_t, void *, const void *, size_t, uint32_t, const void *, void *))     \
    X(int, clEnqueueSVMMemFill, (cl_queue, void *, const void *, size_t, size_t, uint32_t, const void *, void *))      \
    X(int, clFlush, (cl_queue))                                                                                        \
    X(int, clFinish, (cl_queue))

typedef struct {
#define MEMBER(result, name, parameters) result(*name) parameters;
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
} driver_functions;

#define MOST_DEVICES 8
#define MOST_KERNELS 64

/* A device: its context, and the one queue in which everything happens in order. */
typedef struct {
    cl_device id;
    cl_context context;
    cl_queue queue;
    bool has_double;
    pthread_mutex_t lock; /* over the kernels: arguments are set and enqueued by one thread at a time */
    struct {
        char key[64]; /* name and type */
        cl_kernel kernel;
    } kernels[MOST_KERNELS];
} gpu;

extern driver_functions cl;

int gpu_count(void); /* of those with shared virtual memory; 0 without a driver */
gpu *gpu_at(int device);
int gpu_fail(int status, const char *call); /* 0, or -1 and the error set */

/* The kernel of that name, built for an element type ("float"), with `lock` held; NULL and the error set. */
cl_kernel gpu_kernel(gpu *g, const char *source, const char *name, const char *type);

#endif
