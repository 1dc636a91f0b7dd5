/* copy.c: the primitives copy and fill: a command of the driver where bytes move or repeat, a pointwise kernel where
 * elements are converted or lie apart. */
#include "opencl/runtime/copy.h"

#include "PrimitiveKernels.h"
#include "iter/iter.h"
#include "opencl/kernels/pointwise.h"
#include "opencl/runtime/profile.h"

#define MANY (1 << 20) /* elements that a GPU's kernel writes faster than its driver */

/* copy(Tensor src, *, Tensor(a!) out) -> () */
int copy_opencl(tp_tensor *src, tp_tensor *out) {
    if (tp_laid_out_alike(out, src))
        return tp_cl_copy_inside(out->device, tp_data(out), tp_data(src),
                                 (size_t)(out->numel * tp_itemsize((tp_dtype)out->dtype)));
    tp_tensor *tensors[] = {out, src};
    tp_iter it;
    if (tp_iter_plan(&it, tensors, 1, 2, tp_sizes(out)) < 0) return -1;
    return tp_cl_run_copy(&it, tensors);
}

static int fill_bytes(tp_cl_device *d, tp_tensor *t, const void *element, size_t size) {
    tp_cl_place to = tp_cl_place_of(t, tp_data(t));
    tp_cl_command command = tp_cl_command_begin();
    cl_int status = tp_cl.clEnqueueFillBuffer(tp_cl_queue(d), to.buffer, element, size, (size_t)to.offset,
                                              (size_t)t->numel * size, 0, NULL, tp_cl_command_event(&command));
    tp_cl_command_end_unlocked(d, &command, "Memset", status);
    return status == CL_SUCCESS ? 0 : tp_cl_fail(status, "clEnqueueFillBuffer");
}

/* fill(Scalar value, *, Tensor(a!) out) -> () */
int fill_opencl(const tp_scalar *value, tp_tensor *out) {
    tp_complex128 element[1];
    tp_scalar_store(value, (tp_dtype)out->dtype, element);
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    if (tp_is_contiguous(out) && (d->is_cpu || out->numel < MANY))
        return fill_bytes(d, out, element, (size_t)tp_itemsize((tp_dtype)out->dtype));
    tp_tensor *tensors[] = {out, NULL};
    tp_iter it;
    if (tp_iter_plan(&it, tensors, 1, 2, tp_sizes(out)) < 0) return -1;
    it.data[1] = (char *)element;
    it.dtype[1] = it.dtype[0];
    return tp_cl_run_copy(&it, tensors);
}
