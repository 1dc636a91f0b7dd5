/* sound.c: what a driver has to get right before a device is used at all.
 *
 * Mesa's llvmpipe (22.3) ends a kernel's loops after 65,535 turns in all, and says nothing: results over many elements
 * are wrong there. A CPU device that computes as a GPU does (runtime.h) is therefore tried with one long loop before
 * its first use; one that does not end it is refused, unless TENSORPY_OPENCL_DEVICE names it. What came out is kept
 * with the programs (disk.h). runtime.c asks through tp_cl_check_first. */
#include "opencl/runtime/program.h"
#include "opencl/runtime/runtime.h"

#include <stdlib.h>

#define TURNS 100000 /* of the loop that is tried */

enum { UNKNOWN, COMPLETE, CUT_SHORT }; /* what is known of a device's loops */

static const char *const source = "__kernel void count(__global long *out, long n) {\n"
                                  "    long sum = 0;\n"
                                  "    for (long i = 0; i < n; i++) sum += (sum ^ i) & 1 ? 1 : 3;\n"
                                  "    out[get_global_id(0)] = sum;\n"
                                  "}\n";

static int64_t expected(void) {
    int64_t sum = 0;
    for (int64_t i = 0; i < TURNS; i++) sum += (sum ^ i) & 1 ? 1 : 3;
    return sum;
}

enum { LANES = 16 };

/* What the loop gives on the device, in `out`; a status of OpenCL. */
static cl_int run(tp_cl_device *d, cl_program program, int64_t out[LANES]) {
    const int64_t turns = TURNS;
    const size_t size = LANES * sizeof *out, lanes = LANES;
    cl_int status;
    cl_kernel kernel = NULL;
    cl_mem buffer = NULL;
    cl_command_queue queue = tp_cl.clCreateCommandQueue(d->context, d->id, 0, &status);
    if (queue && (status = tp_cl.clBuildProgram(program, 1, &d->id, "-cl-std=CL1.2 -w", NULL, NULL)) == CL_SUCCESS)
        kernel = tp_cl.clCreateKernel(program, "count", &status);
    if (kernel) buffer = tp_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, size, NULL, &status);
    if (buffer && (status = tp_cl.clSetKernelArg(kernel, 0, sizeof buffer, &buffer)) == CL_SUCCESS &&
        (status = tp_cl.clSetKernelArg(kernel, 1, sizeof turns, &turns)) == CL_SUCCESS &&
        (status = tp_cl.clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &lanes, &lanes, 0, NULL, NULL)) == CL_SUCCESS)
        status = tp_cl.clEnqueueReadBuffer(queue, buffer, 1, 0, size, out, 0, NULL, NULL);
    if (buffer) tp_cl.clReleaseMemObject(buffer);
    if (kernel) tp_cl.clReleaseKernel(kernel);
    if (queue) tp_cl.clReleaseCommandQueue(queue);
    return status;
}

/* A driver that cannot run the trial at all says more of itself in the first kernel. */
static unsigned char try_out(tp_cl_device *d) {
    int64_t out[LANES] = {0};
    cl_int status;
    const char *text = source;
    cl_program program = tp_cl.clCreateProgramWithSource(d->context, 1, &text, NULL, &status);
    if (!program) return UNKNOWN;
    status = run(d, program, out);
    tp_cl.clReleaseProgram(program);
    if (status != CL_SUCCESS) return UNKNOWN;
    for (int i = 0; i < LANES; i++)
        if (out[i] != expected()) return CUT_SHORT;
    return COMPLETE;
}

static unsigned char known_of(tp_cl_device *d) {
    size_t size = 0;
    tp_cl_hash key = tp_cl_hash_text(tp_cl_hash_device(d), "whether loops end early");
    unsigned char *kept = tp_cl_disk_read(key, &size), known = kept && size == 1 ? *kept : UNKNOWN;
    free(kept);
    if (known != UNKNOWN) return known;
    known = try_out(d);
    if (known != UNKNOWN) tp_cl_disk_write(key, &known, 1);
    return known;
}

static int check_sound(tp_cl_device *d) {
    if (!d->is_doubtful || known_of(d) != CUT_SHORT) return 0;
    return tp_fail(TP_RuntimeError,
                   "%s ends the loops of a kernel before their end, so results over many elements would be wrong "
                   "(tried on opencl:%d, driver %s, with a loop of %d turns)\n"
                   "  next step: use another driver, for the CPU Debian's pocl-opencl-icd; "
                   "TENSORPY_OPENCL_DEVICE=llvmpipe, or another part of the device's name, takes it all the same",
                   d->name, d->index, d->driver, TURNS);
}

__attribute__((constructor)) static void install(void) { tp_cl_check_first = check_sound; }
