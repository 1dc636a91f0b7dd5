/* cl.h: the part of OpenCL 1.2 that tensorpy calls: types, constants, and a table of the functions, which are looked up
 * in libOpenCL at first use. Names and numbers are those of the Khronos specification. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef intptr_t cl_properties;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

enum {
    CL_SUCCESS = 0,
    CL_MEM_OBJECT_ALLOCATION_FAILURE = -4,
    CL_OUT_OF_RESOURCES = -5,
    CL_OUT_OF_HOST_MEMORY = -6,
    CL_BUILD_PROGRAM_FAILURE = -11,

    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,

    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_NAME = 0x102B,
    CL_DEVICE_VENDOR = 0x102C,
    CL_DRIVER_VERSION = 0x102D,
    CL_DEVICE_VERSION = 0x102F,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,

    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,

    CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11D3,

    CL_PROFILING_COMMAND_QUEUED = 0x1280,
    CL_PROFILING_COMMAND_START = 0x1282,
    CL_PROFILING_COMMAND_END = 0x1283,
};
#define CL_DEVICE_TYPE_ALL ((cl_bitfield)0xFFFFFFFF)
#define CL_DEVICE_TYPE_CPU ((cl_bitfield)2)
#define CL_DEVICE_TYPE_GPU ((cl_bitfield)4)
#define CL_MEM_READ_WRITE ((cl_bitfield)1)
#define CL_MEM_USE_HOST_PTR ((cl_bitfield)8)
#define CL_MEM_ALLOC_HOST_PTR ((cl_bitfield)16)
#define CL_MAP_READ ((cl_bitfield)1)
#define CL_MAP_WRITE ((cl_bitfield)2)
#define CL_QUEUE_PROFILING_ENABLE ((cl_bitfield)2)

/* X(result, name, parameters) */
#define TP_FORALL_CL(X)                                                                                            \
    X(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                                            \
    X(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))                              \
    X(cl_int, clGetDeviceIDs, (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                   \
    X(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))                                  \
    X(cl_context, clCreateContext,                                                                                 \
      (const cl_properties *, cl_uint, const cl_device_id *, void (*)(const char *, const void *, size_t, void *), \
       void *, cl_int *))                                                                                          \
    X(cl_command_queue, clCreateCommandQueue, (cl_context, cl_device_id, cl_bitfield, cl_int *))                   \
    X(cl_int, clReleaseCommandQueue, (cl_command_queue))                                                           \
    X(cl_int, clReleaseContext, (cl_context))                                                                      \
    X(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))                                 \
    X(cl_int, clReleaseMemObject, (cl_mem))                                                                        \
    X(cl_program, clCreateProgramWithSource, (cl_context, cl_uint, const char **, const size_t *, cl_int *))       \
    X(cl_program, clCreateProgramWithBinary,                                                                       \
      (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **, cl_int *, cl_int *))     \
    X(cl_int, clBuildProgram,                                                                                      \
      (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *), void *))             \
    X(cl_int, clGetProgramBuildInfo, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                \
    X(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                                   \
    X(cl_int, clRetainProgram, (cl_program))                                                                       \
    X(cl_int, clReleaseProgram, (cl_program))                                                                      \
    X(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                                             \
    X(cl_int, clReleaseKernel, (cl_kernel))                                                                        \
    X(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                                          \
    X(cl_int, clEnqueueNDRangeKernel,                                                                              \
      (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *, cl_uint,              \
       const cl_event *, cl_event *))                                                                              \
    X(cl_int, clEnqueueReadBuffer,                                                                                 \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *, cl_event *))          \
    X(cl_int, clEnqueueWriteBuffer,                                                                                \
      (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint, const cl_event *, cl_event *))    \
    X(cl_int, clEnqueueCopyBuffer,                                                                                 \
      (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))           \
    X(cl_int, clEnqueueFillBuffer,                                                                                 \
      (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint, const cl_event *, cl_event *))     \
    X(cl_int, clEnqueueMarkerWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))              \
    X(cl_int, clEnqueueBarrierWithWaitList, (cl_command_queue, cl_uint, const cl_event *, cl_event *))             \
    X(void *, clEnqueueMapBuffer,                                                                                  \
      (cl_command_queue, cl_mem, cl_uint, cl_bitfield, size_t, size_t, cl_uint, const cl_event *, cl_event *,      \
       cl_int *))                                                                                                  \
    X(cl_int, clEnqueueUnmapMemObject, (cl_command_queue, cl_mem, void *, cl_uint, const cl_event *, cl_event *))  \
    X(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                                        \
    X(cl_int, clGetEventInfo, (cl_event, cl_uint, size_t, void *, size_t *))                                       \
    X(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))                              \
    X(cl_int, clFlush, (cl_command_queue))                                                                         \
    X(cl_int, clFinish, (cl_command_queue))                                                                        \
    X(cl_int, clRetainEvent, (cl_event))                                                                           \
    X(cl_int, clReleaseEvent, (cl_event))

typedef struct {
#define TP_CL_MEMBER(result, name, parameters) result(*name) parameters;
    TP_FORALL_CL(TP_CL_MEMBER)
#undef TP_CL_MEMBER
} tp_cl_functions;
