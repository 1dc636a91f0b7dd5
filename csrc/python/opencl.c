/* opencl.c: what tensorpy.opencl (the Python module) asks of the OpenCL runtime: devices, memory, caches.
 * Streams and events are those of every device (stream.c). */
#include "python/common.h"

#include "core/generator.h"
#include "opencl/runtime/custom.h"
#include "opencl/runtime/fallback.h"
#include "opencl/runtime/fault.h"
#include "opencl/runtime/later.h"
#include "opencl/runtime/memory.h"
#include "opencl/runtime/pinned.h"
#include "opencl/runtime/plan.h"
#include "opencl/runtime/program.h"
#include "prim/transfer.h"
#include "python/returns.h"

#define FUNCTION(name) static PyObject *name(PyObject *self TP_UNUSED, PyObject *arg TP_UNUSED)

/* A device's index from a Python int; -1 is the current device. -1 with the exception set on failure. */
static int index_of(PyObject *o) {
    long index = PyLong_AsLong(o);
    if (index == -1 && PyErr_Occurred()) return -1;
    if (index < 0) index = tp_cl_current();
    if (index > INT32_MAX) index = INT32_MAX;
    return tp_cl_describe((int)index) ? (int)index : (tp_py_raise(), -1);
}

FUNCTION(device_count) { return PyLong_FromLong(tp_cl_available()); }

#define MOST_ARGUMENTS 48 /* of a kernel from outside */

static int take_sizes(PyObject *tuple, int64_t *sizes, tp_ints *out) {
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    if (n > 3) return PyErr_Format(PyExc_ValueError, "an OpenCL kernel runs over one to three dimensions"), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        sizes[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
        if (sizes[i] == -1 && PyErr_Occurred()) return -1;
    }
    *out = (tp_ints){sizes, n ? n : -1};
    return 0;
}

static int take_argument(PyObject *o, tp_value *v) {
    if (tp_py_is_tensor(o)) *v = (tp_value){.tag = TP_TENSOR, .tensor = tp_py_tensor_borrow(o)};
    else if (PyBool_Check(o)) *v = (tp_value){.tag = TP_BOOL_, .b = o == Py_True};
    else if (PyFloat_Check(o)) *v = (tp_value){.tag = TP_FLOAT, .f = PyFloat_AS_DOUBLE(o)};
    else if (PyIndex_Check(o)) *v = (tp_value){.tag = TP_INT, .i = PyNumber_AsSsize_t(o, PyExc_OverflowError)};
    else
        return PyErr_Format(PyExc_TypeError, "an OpenCL kernel takes tensors, ints, floats and bools, not %.80s",
                            Py_TYPE(o)->tp_name),
               -1;
    return v->tag == TP_INT && PyErr_Occurred() ? -1 : 0;
}

/* run_source(name, source, items, group, arguments): opencl/runtime/custom.h, on the device of the first tensor. */
static PyObject *run_source(PyObject *self TP_UNUSED, PyObject *args) {
    const char *name, *source;
    PyObject *items_given, *group_given, *given;
    int64_t item_sizes[3], group_sizes[3];
    tp_ints items, group;
    tp_value values[MOST_ARGUMENTS];
    tp_tensor *on = NULL;
    if (!PyArg_ParseTuple(args, "ssO!O!O!", &name, &source, &PyTuple_Type, &items_given, &PyTuple_Type, &group_given,
                          &PyTuple_Type, &given))
        return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(given);
    if (take_sizes(items_given, item_sizes, &items) < 0 || take_sizes(group_given, group_sizes, &group) < 0)
        return NULL;
    if (n > MOST_ARGUMENTS)
        return PyErr_Format(PyExc_ValueError, "an OpenCL kernel has at most %d arguments", MOST_ARGUMENTS);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (take_argument(PyTuple_GET_ITEM(given, i), &values[i]) < 0) return NULL;
        if (values[i].tag != TP_TENSOR) continue;
        if (!on) on = values[i].tensor;
        if (tp_py_check(tp_settle_to_read(values[i].tensor->storage)) < 0) return NULL;
    }
    if (!on) return PyErr_Format(PyExc_TypeError, "the OpenCL kernel %s was given no tensor", name);
    if (tp_py_check(tp_cl_run_source(name, source, on, items, group, values, (int)n)) < 0) return NULL;
    Py_RETURN_NONE;
}

FUNCTION(why_not) {
    if (tp_cl_device_count() > 0) Py_RETURN_NONE;
    if (!tp_error_pending()) tp_cl_describe(0);
    PyObject *text = PyUnicode_FromString(tp_error_message());
    tp_error_clear();
    return text;
}

FUNCTION(current_device) { return PyLong_FromLong(tp_cl_current()); }

FUNCTION(set_device) {
    int index = index_of(arg);
    if (index < 0 || tp_py_check(tp_cl_set_current(index)) < 0) return NULL;
    Py_RETURN_NONE;
}

FUNCTION(properties) {
    int index = index_of(arg);
    const tp_cl_device *d = index < 0 ? NULL : tp_cl_describe(index);
    if (!d) return NULL;
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:K,s:K,s:K,s:I,s:n,s:O,s:O,s:O,s:O}", "name", d->name, "platform",
                         d->platform_name, "vendor", d->vendor, "driver_version", d->driver, "version", d->version,
                         "total_memory", (unsigned long long)d->global_memory, "max_allocation",
                         (unsigned long long)d->max_allocation, "local_memory", (unsigned long long)d->local_memory,
                         "multi_processor_count", d->compute_units, "max_work_group_size", (Py_ssize_t)d->max_group,
                         "is_cpu", d->is_host ? Py_True : Py_False, "has_fp16", d->has_fp16 ? Py_True : Py_False,
                         "has_fp64", d->has_fp64 ? Py_True : Py_False, "has_subgroups",
                         d->has_subgroups ? Py_True : Py_False);
}

FUNCTION(synchronize) {
    int index = index_of(arg);
    tp_cl_device *d = index < 0 ? NULL : tp_cl_get(index);
    if (index < 0) return NULL;
    if (!d || tp_cl_finish(d) < 0) return tp_py_raise();
    tp_cl_settle(index);
    Py_RETURN_NONE;
}

FUNCTION(fall_back_for) {
    const char *name = PyUnicode_AsUTF8(arg);
    tp_op *op = name ? tp_find_op_qualified(name) : NULL;
    if (!op) return name ? PyErr_Format(PyExc_RuntimeError, "there is no operator %s", name) : NULL;
    int64_t handle = tp_cl_fall_back_for(op);
    return handle < 0 ? tp_py_raise() : PyLong_FromLongLong(handle);
}

FUNCTION(fall_back_end) {
    int64_t handle = PyLong_AsLongLong(arg);
    if (PyErr_Occurred() || tp_py_check(tp_deregister(handle)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- memory ---- */

FUNCTION(memory_stats) {
    int index = index_of(arg);
    if (index < 0) return NULL;
    tp_cl_memory_stats s = tp_cl_memory(index);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "allocated", (long long)s.allocated, "peak",
                         (long long)s.peak, "reserved", (long long)s.reserved, "limit", (long long)s.limit, "blocks",
                         (long long)s.blocks, "segments", (long long)s.segments, "reused", (long long)s.reused,
                         "retries", (long long)s.retries);
}

FUNCTION(reset_peak) {
    int index = index_of(arg);
    if (index < 0) return NULL;
    tp_cl_reset_peak(index);
    Py_RETURN_NONE;
}

FUNCTION(empty_cache) {
    int index = index_of(arg);
    if (index < 0 || tp_py_check(tp_cl_empty_cache(index)) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *set_limit(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *device;
    long long nbytes;
    if (!PyArg_ParseTuple(args, "OL", &device, &nbytes)) return NULL;
    int index = index_of(device);
    if (index < 0) return NULL;
    tp_cl_set_limit(index, nbytes);
    Py_RETURN_NONE;
}

static PyObject *manual_seed(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *device;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OK", &device, &seed)) return NULL;
    int index = index_of(device);
    tp_generator *g = index < 0 ? NULL : tp_default_generator_borrow((tp_device){TP_DEVICE_OPENCL, (int8_t)index});
    if (index < 0) return NULL;
    if (!g) return tp_py_raise();
    tp_generator_manual_seed(g, seed);
    Py_RETURN_NONE;
}

/* ---- what kernels find wrong ---- */

FUNCTION(set_checks_wait) {
    int wait = PyObject_IsTrue(arg);
    if (wait < 0) return NULL;
    tp_cl_set_checks_wait(wait);
    Py_RETURN_NONE;
}

FUNCTION(get_checks_wait) { return PyBool_FromLong(tp_cl_checks_wait()); }

/* ---- kernels of compiled functions ---- */

FUNCTION(set_builds_wait) {
    int wait = PyObject_IsTrue(arg);
    if (wait < 0) return NULL;
    tp_cl_set_builds_wait(wait);
    Py_RETURN_NONE;
}

FUNCTION(get_builds_wait) { return PyBool_FromLong(tp_cl_builds_wait()); }

FUNCTION(await_builds) {
    tp_cl_await_builds(false);
    Py_RETURN_NONE;
}

/* ---- caches, the fallback ---- */

FUNCTION(cache_stats) {
    tp_cl_program_stats p = tp_cl_programs();
    tp_cl_plan_stats l = tp_cl_plans();
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L,s:L}", "plan_hits", (long long)l.hits, "plan_misses",
                         (long long)l.misses, "kernel_hits", (long long)p.hits, "kernel_misses", (long long)p.misses,
                         "from_disk", (long long)p.from_disk, "built", (long long)p.built, "built_with_header",
                         (long long)p.with_header);
}

FUNCTION(set_fallback) {
    long mode = PyLong_AsLong(arg);
    if (mode == -1 && PyErr_Occurred()) return NULL;
    tp_cl_set_fallback((tp_cl_fallback_mode)mode);
    Py_RETURN_NONE;
}

FUNCTION(get_fallback) { return PyLong_FromLong((long)tp_cl_fallback()); }

/* call(name or None): what programs call the devices, as in csrc/core/device.h. */
FUNCTION(call) {
    const char *name = arg == Py_None ? NULL : PyUnicode_AsUTF8(arg);
    if (!name && arg != Py_None) return NULL;
    tp_call_opencl(name);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"device_count", device_count, METH_NOARGS, NULL},
    {"run_source", run_source, METH_VARARGS, NULL},
    {"why_not", why_not, METH_NOARGS, NULL},
    {"current_device", current_device, METH_NOARGS, NULL},
    {"set_device", set_device, METH_O, NULL},
    {"properties", properties, METH_O, NULL},
    {"synchronize", synchronize, METH_O, NULL},
    {"memory_stats", memory_stats, METH_O, NULL},
    {"reset_peak", reset_peak, METH_O, NULL},
    {"empty_cache", empty_cache, METH_O, NULL},
    {"set_limit", set_limit, METH_VARARGS, NULL},
    {"manual_seed", manual_seed, METH_VARARGS, NULL},
    {"cache_stats", cache_stats, METH_NOARGS, NULL},
    {"set_checks_wait", set_checks_wait, METH_O, NULL},
    {"get_checks_wait", get_checks_wait, METH_NOARGS, NULL},
    {"set_builds_wait", set_builds_wait, METH_O, NULL},
    {"get_builds_wait", get_builds_wait, METH_NOARGS, NULL},
    {"await_builds", await_builds, METH_NOARGS, NULL},
    {"call", call, METH_O, NULL},
    {"set_fallback", set_fallback, METH_O, NULL},
    {"get_fallback", get_fallback, METH_NOARGS, NULL},
    {"fall_back_for", fall_back_for, METH_O, NULL},
    {"fall_back_end", fall_back_end, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_opencl(PyObject *m) {
    if (Py_AtExit(tp_cl_shut_down) < 0) return -1;
    return tp_py_add_submodule(m, "_opencl", functions);
}
