/* launch.h: passing arguments to a kernel and putting it into the queue.
 *
 *     tp_cl_call c = tp_cl_begin(d, kernel);     takes the device's lock; a NULL kernel is an error already set
 *     tp_cl_pass_tensor(&c, out);                buffer and offset, in elements
 *     tp_cl_pass_long(&c, n);
 *     return tp_cl_run(&c, n, 0);                enqueues, gives the lock back, reports what failed on the way
 *
 * Invariant: kernels' arguments are only set under the device's lock, which every tp_cl_begin's tp_cl_run gives back.
 * A struct that is passed by value has no padding, at its end neither, and no arrays of arrays: Mesa's rusticl takes
 * the size of the one without its padding, and one dimension of the other. */
#pragma once

#include "core/scalar.h"
#include "core/scalar_math.h"
#include "opencl/runtime/memory.h"
#include "opencl/runtime/plan.h"
#include "opencl/runtime/stream.h"
#include "core/memory.h"

#include <string.h>

typedef struct {
    tp_cl_device *device;
    tp_cl_built *kernel;
    cl_uint next;
    cl_int status;  /* of the first argument that failed, */
    cl_uint failed; /* and its place */
} tp_cl_call;

TP_INLINE tp_cl_call tp_cl_begin(tp_cl_device *d, tp_cl_built *kernel) {
    if (kernel) {
        tp_cl_lock(d);
        uint32_t epoch = tp_cl_released;
        if (tp_unlikely(kernel->epoch != epoch)) memset(kernel->sizes, 0, sizeof kernel->sizes);
        kernel->epoch = epoch;
    }
    return (tp_cl_call){d, kernel, 0, CL_SUCCESS, 0};
}

/* Whether the kernel has this argument already; if not, it is noted that it has it from now on. */
TP_INLINE bool tp_cl_has_argument(tp_cl_built *k, cl_uint i, size_t size, const void *value) {
    uint64_t word = 0;
    if (i >= TP_CL_KEPT_ARGUMENTS) return false;
    if (size > sizeof word) return k->sizes[i] = 0, false;
    memcpy(&word, value, size < sizeof word ? size : sizeof word); /* compilers overlook the line above */
    if (k->sizes[i] == size && k->values[i] == word) return true;
    k->sizes[i] = (uint8_t)size;
    k->values[i] = word;
    return false;
}

TP_INLINE void tp_cl_pass(tp_cl_call *c, size_t size, const void *value) {
    if (!c->kernel) return;
    cl_uint i = c->next++;
    if (tp_cl_has_argument(c->kernel, i, size, value)) return;
    cl_int status = tp_cl.clSetKernelArg(c->kernel->id, i, size, value);
    if (tp_likely(status == CL_SUCCESS)) return;
    if (i < TP_CL_KEPT_ARGUMENTS) c->kernel->sizes[i] = 0;
    if (c->status == CL_SUCCESS) c->status = status, c->failed = i;
}
TP_INLINE void tp_cl_pass_long(tp_cl_call *c, int64_t value) { tp_cl_pass(c, sizeof value, &value); }
TP_INLINE void tp_cl_pass_int(tp_cl_call *c, int32_t value) { tp_cl_pass(c, sizeof value, &value); }
TP_INLINE void tp_cl_pass_float(tp_cl_call *c, float value) { tp_cl_pass(c, sizeof value, &value); }
/* A buffer and an offset in bytes. */
TP_INLINE void tp_cl_pass_place(tp_cl_call *c, tp_cl_place p) {
    tp_cl_pass(c, sizeof p.buffer, &p.buffer);
    tp_cl_pass_long(c, p.offset);
}
/* A tensor: its buffer and, in elements, the offset of its first element. It has elements. */
TP_INLINE void tp_cl_pass_tensor(tp_cl_call *c, const tp_tensor *t) {
    tp_cl_place p = tp_cl_place_of(t, tp_data(t));
    p.offset /= tp_itemsize((tp_dtype)t->dtype);
    tp_cl_pass_place(c, p);
}

/* A number in the dtype that the kernel computes in; a bool as an int. */
void tp_cl_pass_number(tp_cl_call *c, const tp_scalar *value, tp_dtype d);

/* `items` work-items, rounded up to whole groups of `group` (0: the device's own for elementwise kernels). */
int tp_cl_run(tp_cl_call *c, int64_t items, size_t group);
/* The same over two or three dimensions, sizes given in whole groups. */
int tp_cl_run_groups(tp_cl_call *c, const size_t *groups, const size_t *group, int ndim);

/* The device of a tensor, with the check that it has the dtypes of `n` tensors (NULL among them is skipped). */
tp_cl_device *tp_cl_device_of(tp_tensor *const *tensors, int n);

/* Passes `volatile __global int *fault, int kind` for a fault by its number (fault.h). */
void tp_cl_pass_fault(tp_cl_call *c, int fault);
/* tp_cl_run for a kernel that was passed a fault. */
int tp_cl_run_checked(tp_cl_call *c, int64_t items, size_t group);
