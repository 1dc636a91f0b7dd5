/* plan.h: saved plans: what a function of tensors computes, run by a C program without Python. Since 1.9.
 *
 * tensorpy.compiler.save_plan(function, arguments, path) writes one: the calls of primitives, and the memory that they
 * read (weights). The program links with libtensorpy.a and -fopenmp -lm -lpthread -ldl. A plan is a program: a damaged
 * file is refused, but who wrote it is trusted, as with a shared library.
 *
 *     tp_plan *plan = tp_plan_open("digits.plan");
 *     if (!plan || tp_plan_run(plan, inputs, outputs) < 0) puts(tp_plan_error());
 */
#ifndef TENSORPY_PLAN_H
#define TENSORPY_PLAN_H

#include "tensorpy/types.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plan that was read, with memory of its own for what it computes on the way. */
typedef struct tp_plan tp_plan;

/* How an input or output lies in memory: contiguous, the last dimension closest. */
typedef struct {
    tp_dtype dtype;       /* of the elements */
    int ndim;             /* dimensions; 0: one number */
    const int64_t *sizes; /* of each dimension; borrowed from the plan */
    size_t nbytes;        /* of all elements */
} tp_plan_tensor;

/* Reads a plan from a file. New; NULL on failure: the file cannot be read, is damaged, or calls what this library
 * lacks. The first one loads the library's kernels: not from two threads at once. */
tp_plan *tp_plan_open(const char *path);
/* The same from memory, which may go afterwards. */
tp_plan *tp_plan_read(const void *bytes, size_t size);
/* As tp_plan_open, for a device by its name: "cpu", "opencl" (the one that TENSORPY_OPENCL_DEVICE names, else the
 * first), "opencl:1". NULL, too, where there is none, or where it has not what the plan calls. Since 1.10. */
tp_plan *tp_plan_open_on(const char *path, const char *device);
/* As tp_plan_read, for a device. Since 1.10. */
tp_plan *tp_plan_read_on(const void *bytes, size_t size, const char *device);
/* Frees a plan; NULL is allowed. */
void tp_plan_close(tp_plan *plan);

/* How many inputs a run is given. */
int tp_plan_inputs(const tp_plan *plan);
/* How many outputs it fills. */
int tp_plan_outputs(const tp_plan *plan);
/* How input i lies in memory, 0 <= i < tp_plan_inputs(plan). */
tp_plan_tensor tp_plan_input(const tp_plan *plan, int i);
/* How output i does, 0 <= i < tp_plan_outputs(plan). */
tp_plan_tensor tp_plan_output(const tp_plan *plan, int i);

/* Computes the outputs, each memory of its nbytes, from the inputs, which are read only. 0, or -1 on failure: then what
 * the outputs hold is not defined. One thread at a time for one plan; plans are independent of each other. */
int tp_plan_run(tp_plan *plan, const void *const *inputs, void *const *outputs);

/* Why this thread's last call failed; "" before one has. Valid until its next call. */
const char *tp_plan_error(void);

#ifdef __cplusplus
}
#endif

#endif
