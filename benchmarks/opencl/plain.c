/* plain.c: what an OpenCL program without any library reaches: the yardstick of `make bench DEVICE=opencl`.
 *
 * benchmarks/opencl/plain.py compiles and calls it. One device, one in-order queue; a program's kernel gets its buffers
 * and nothing else, and its arguments are set once. Functions give 0, or the OpenCL error. */
#define _GNU_SOURCE
#include "opencl/runtime/cl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

#define MAX_ARGUMENTS 8

static tp_cl_functions cl;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;

typedef struct {
    cl_kernel kernel;
    cl_mem buffers[MAX_ARGUMENTS];
    int n;
} plain_program;

static bool find_device(const char *wanted) {
    cl_platform_id platforms[16];
    cl_uint found = 0;
    if (cl.clGetPlatformIDs(16, platforms, &found) != CL_SUCCESS) return false;
    for (cl_uint p = 0; p < found; p++) {
        cl_device_id ids[16];
        cl_uint n = 0;
        if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, ids, &n) != CL_SUCCESS) continue;
        for (cl_uint i = 0; i < n; i++) {
            char name[256] = "";
            cl.clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof name - 1, name, NULL);
            device = ids[i];
            if (strncmp(name, wanted, strlen(wanted)) == 0) return true;
        }
    }
    return false;
}

int plain_open(const char *library, const char *device_name) {
    cl_int status;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return 1;
#define LOAD(result, name, parameters)                                \
    if (!(*(void **)&cl.name = dlsym(handle, #name))) return 1;
    TP_FORALL_CL(LOAD)
#undef LOAD
    if (!find_device(device_name)) return 1;
    context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &status);
    if (context) queue = cl.clCreateCommandQueue(context, device, 0, &status);
    return status;
}

cl_mem plain_buffer(size_t nbytes) {
    cl_int status;
    const float one = 1;
    cl_mem buffer = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, nbytes, NULL, &status);
    if (buffer) cl.clEnqueueFillBuffer(queue, buffer, &one, sizeof one, 0, nbytes, 0, NULL, NULL);
    return buffer;
}

void plain_release(cl_mem buffer) { cl.clReleaseMemObject(buffer); }

int plain_program_make(plain_program *p, const char *source, const char *name, cl_mem *buffers, int n) {
    cl_int status;
    cl_program program = cl.clCreateProgramWithSource(context, 1, &source, NULL, &status);
    if (program) status = cl.clBuildProgram(program, 1, &device, "", NULL, NULL);
    if (status != CL_SUCCESS) return status;
    p->kernel = cl.clCreateKernel(program, name, &status);
    for (p->n = 0; status == CL_SUCCESS && p->n < n; p->n++)
        status = cl.clSetKernelArg(p->kernel, (cl_uint)p->n, sizeof(cl_mem), &buffers[p->n]);
    return status;
}

/* Puts the kernel into the queue so many times and waits once. local 0: as the driver likes. */
int plain_run(plain_program *p, size_t items, size_t local, int times) {
    int status = CL_SUCCESS;
    for (int i = 0; i < times && status == CL_SUCCESS; i++)
        status = cl.clEnqueueNDRangeKernel(queue, p->kernel, 1, NULL, &items, local ? &local : NULL, 0, NULL, NULL);
    return status == CL_SUCCESS ? cl.clFinish(queue) : status;
}

int plain_copy(cl_mem to, cl_mem from, size_t nbytes) {
    int status = cl.clEnqueueCopyBuffer(queue, from, to, 0, 0, nbytes, 0, NULL, NULL);
    return status == CL_SUCCESS ? cl.clFinish(queue) : status;
}

/* CLBlast's product of square matrices (row-major), or 1 without the library. */
int plain_clblast_sgemm(const char *library, cl_mem a, cl_mem b, cl_mem c, size_t n) {
    static int (*sgemm)(int, int, int, size_t, size_t, size_t, float, cl_mem, size_t, size_t, cl_mem, size_t, size_t,
                        float, cl_mem, size_t, size_t, cl_command_queue *, cl_event *);
    if (!sgemm) {
        void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!handle || !(*(void **)&sgemm = dlsym(handle, "CLBlastSgemm"))) return 1;
    }
    int status = sgemm(101, 111, 111, n, n, n, 1, a, 0, n, b, 0, n, 0, c, 0, n, &queue, NULL);
    return status == CL_SUCCESS ? cl.clFinish(queue) : status;
}
