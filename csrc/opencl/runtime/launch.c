/* launch.c: see launch.h. */
#include "opencl/runtime/launch.h"

#include "opencl/runtime/fault.h"
#include "opencl/runtime/profile.h"

void tp_cl_pass_number(tp_cl_call *c, const tp_scalar *value, tp_dtype d) {
    union {
        tp_complex128 c;
        cl_int truth;
    } element;
    if (d == TP_BOOL) element.truth = tp_scalar_bool(value);
    else tp_scalar_store(value, d, &element);
    tp_cl_pass(c, d == TP_BOOL ? sizeof(cl_int) : (size_t)tp_itemsize(d), &element);
}

/* Under the device's lock. */
static cl_int enqueue(tp_cl_call *c, cl_uint ndim, const size_t *global, const size_t *local) {
    tp_cl_command command = tp_cl_command_begin();
    cl_int status = tp_cl.clEnqueueNDRangeKernel(tp_cl_queue(c->device), c->kernel->id, ndim, NULL, global, local, 0,
                                                 NULL, tp_cl_command_event(&command));
    tp_cl_command_end(c->device, &command, c->kernel->name, status);
    return status;
}

static int finish(tp_cl_call *c, cl_int status) {
    tp_cl_unlock(c->device);
    if (c->status != CL_SUCCESS)
        return tp_fail(TP_RuntimeError,
                       "OpenCL: clSetKernelArg failed: %s (%d), for argument %u of the kernel %s on %s",
                       tp_cl_error_name(c->status), (int)c->status, c->failed, c->kernel->name, c->device->name);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueNDRangeKernel");
}

int tp_cl_run(tp_cl_call *c, int64_t items, size_t group) {
    if (!c->kernel) return -1;
    size_t local = group ? group : c->device->group, global = ((size_t)items + local - 1) / local * local;
    if (c->status != CL_SUCCESS || items == 0) return finish(c, CL_SUCCESS);
    return finish(c, enqueue(c, 1, &global, &local));
}

int tp_cl_run_groups(tp_cl_call *c, const size_t *groups, const size_t *group, int ndim) {
    size_t global[3];
    if (!c->kernel) return -1;
    for (int i = 0; i < ndim; i++) global[i] = groups[i] * group[i];
    if (c->status != CL_SUCCESS) return finish(c, CL_SUCCESS);
    return finish(c, enqueue(c, (cl_uint)ndim, global, group));
}

tp_cl_device *tp_cl_device_of(tp_tensor *const *tensors, int n) {
    tp_cl_device *d = tp_cl_get(tensors[0]->device.index);
    for (int i = 0; d && i < n; i++)
        if (tensors[i] && tp_cl_check_dtype(d, tensors[i]->dtype) < 0) return NULL;
    return d;
}

/* ---- kernels that find faults ---- */

void tp_cl_pass_fault(tp_cl_call *c, int fault) {
    cl_mem *words = NULL;
    if (!c->kernel) return;
    cl_int status = tp_cl_fault_words(c->device, &words);
    if (status != CL_SUCCESS) {
        if (c->status == CL_SUCCESS) c->status = status;
        return;
    }
    tp_cl_pass(c, sizeof(cl_mem), words);
    tp_cl_pass_int(c, fault + 1); /* 0: nothing was noted */
}

int tp_cl_run_checked(tp_cl_call *c, int64_t items, size_t group) {
    tp_cl_device *d = c->device;
    return tp_cl_run(c, items, group) < 0 ? -1 : tp_cl_checks_wait() ? tp_cl_look_now(d) : 0;
}
