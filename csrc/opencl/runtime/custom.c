/* custom.c: see custom.h. */
#include "opencl/runtime/custom.h"

#include "opencl/runtime/launch.h"
#include "opencl/runtime/program.h"

#define MOST_TENSORS 32

static void write_source(tp_text *source, const void *context) { tp_text_add(source, "%s", (const char *)context); }

static int check_sizes(const char *name, tp_ints items, tp_ints group) {
    if (items.size < 1 || items.size > 3 || (group.size > 0 && group.size != items.size))
        return tp_fail(TP_ValueError, "the kernel %s runs over one to three dimensions, in groups of as many", name);
    for (int64_t i = 0; i < items.size; i++)
        if (items.data[i] < 0 || (group.size > 0 && group.data[i] < 1))
            return tp_fail(TP_ValueError, "the kernel %s is to run over %lld items in dimension %lld", name,
                           (long long)items.data[i], (long long)i);
    return 0;
}

/* The device, with the check that all tensors are on it and have memory, whose contents are there then. */
static tp_cl_device *device_of(const char *name, tp_tensor *on, const tp_value *args, int nargs) {
    tp_tensor *tensors[MOST_TENSORS] = {on};
    int n = 1;
    for (int i = 0; i < nargs; i++) {
        if (args[i].tag != TP_TENSOR) continue;
        if (n == MOST_TENSORS) return tp_fail_null(TP_ValueError, "the kernel %s has too many tensors", name);
        tensors[n++] = args[i].tensor;
    }
    for (int i = 0; i < n; i++) {
        if (tensors[i]->device.type != TP_DEVICE_OPENCL || !tp_device_equal(tensors[i]->device, on->device))
            return tp_fail_null(TP_RuntimeError, "the kernel %s takes tensors of one OpenCL device", name);
        if (tp_settle(tensors[i]->storage) < 0) return NULL;
        if (!tensors[i]->storage->context)
            return tp_fail_null(TP_ValueError, "the kernel %s was given a tensor without elements", name);
    }
    return tp_cl_device_of(tensors, n);
}

static int pass(tp_cl_call *c, const tp_value *v) {
    switch (v->tag) {
    case TP_TENSOR: return tp_cl_pass_tensor(c, v->tensor), 0;
    case TP_INT: return tp_cl_pass_long(c, v->i), 0;
    case TP_FLOAT: return tp_cl_pass_float(c, (float)v->f), 0;
    case TP_BOOL_: return tp_cl_pass_int(c, v->b), 0;
    default: return -1;
    }
}

int tp_cl_run_source(const char *name, const char *source, tp_tensor *on, tp_ints items, tp_ints group,
                     const tp_value *args, int nargs) {
    if (!name || !source) return tp_fail(TP_ValueError, "an OpenCL kernel has a name and a source");
    if (check_sizes(name, items, group) < 0) return -1;
    for (int i = 0; i < nargs; i++)
        if (args[i].tag != TP_TENSOR && args[i].tag != TP_INT && args[i].tag != TP_FLOAT && args[i].tag != TP_BOOL_)
            return tp_fail(TP_TypeError, "argument %d of the kernel %s is no tensor, int, float or bool", i, name);
    for (int64_t i = 0; i < items.size; i++)
        if (items.data[i] == 0) return 0;
    tp_cl_device *d = device_of(name, on, args, nargs);
    tp_cl_built *kernel = d ? tp_cl_kernel(d, source, name, write_source, source) : NULL;
    if (!kernel) return -1;
    tp_cl_call c = tp_cl_begin(d, kernel);
    for (int i = 0; i < nargs; i++) pass(&c, &args[i]);
    if (items.size == 1) return tp_cl_run(&c, items.data[0], group.size > 0 ? (size_t)group.data[0] : 0);
    size_t groups[3], of[3];
    for (int64_t i = 0; i < items.size; i++) {
        of[i] = group.size > 0 ? (size_t)group.data[i] : 1;
        groups[i] = ((size_t)items.data[i] + of[i] - 1) / of[i];
    }
    return tp_cl_run_groups(&c, groups, of, (int)items.size);
}
