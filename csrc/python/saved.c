/* saved.c: a function's calls are written down twice, compared, and saved; a saved plan is run (saved.h). */
#include "python/saved.h"

#include "python/region.h"

#include "core/alloc.h"
#include "core/memory.h"
#include "core/tls.h"
#include "dispatch/key.h"
#include "plan/saved.h"

/* ---- writing down ---- */

/* Borrowed tensors of a tuple of tensors; NULL raised. */
static tp_tensor **tensors_of(PyObject *args) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    tp_tensor **list = PyMem_Malloc(sizeof *list * (size_t)(n + 1));
    if (!list) return (void)PyErr_NoMemory(), NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GET_ITEM(args, i);
        if (tp_py_is_tensor(o)) {
            list[i] = tp_py_tensor_borrow(o);
            continue;
        }
        PyMem_Free(list);
        PyErr_Format(PyExc_TypeError, "save_plan(): argument %zd of the function must be a Tensor, not %.100s", i,
                     Py_TYPE(o)->tp_name);
        return NULL;
    }
    return list;
}

/* What the function gives: a tensor, or a tuple or list of them. */
static int add_results(tp_tape *tape, PyObject *result) {
    if (tp_py_is_tensor(result)) return tp_py_check(tp_tape_result(tape, tp_py_tensor_borrow(result)));
    if (!PyTuple_Check(result) && !PyList_Check(result)) {
        PyErr_Format(PyExc_TypeError,
                     "save_plan(): the function must give a Tensor, or a tuple or list of them, not %.100s",
                     Py_TYPE(result)->tp_name);
        return -1;
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); i++) {
        PyObject *o = PySequence_Fast_GET_ITEM(result, i);
        if (PyTuple_Check(o) || PyList_Check(o) || !tp_py_is_tensor(o)) {
            PyErr_Format(PyExc_TypeError, "save_plan(): result %zd of the function must be a Tensor, not %.100s", i,
                         Py_TYPE(o)->tp_name);
            return -1;
        }
        if (tp_py_check(tp_tape_result(tape, tp_py_tensor_borrow(o))) < 0) return -1;
    }
    return 0;
}

/* A call of the function, in a region, with what it gives; NULL raised. */
static PyObject *call_written(PyObject *function, PyObject *args, tp_tape *tape) {
    tp_region_options options = {.fuses = true, .tape = tape};
    tp_region_report report;
    if (tp_region_enter(&options) < 0) return tp_py_raise();
    return tp_py_close_region(&report, PyObject_Call(function, args, NULL));
}

/* The tape of a call; NULL raised. `result` keeps what it has made. */
static tp_tape *write_down(PyObject *function, PyObject *args, tp_tensor *const *given, PyObject **result) {
    tp_device device = PyTuple_GET_SIZE(args) ? given[0]->device : TP_CPU;
    tp_tape *tape = tp_tape_new(device);
    if (!tape) return (void)tp_py_raise(), NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++)
        if (tp_tape_argument(tape, given[i]) < 0) {
            tp_tape_free(tape);
            return (void)tp_py_raise(), NULL;
        }
    *result = call_written(function, args, tape);
    if (*result && add_results(tape, *result) == 0) return tape;
    tp_tape_free(tape);
    return NULL;
}

static PyObject *refuse(const char *why) {
    return PyErr_Format(PyExc_RuntimeError, "save_plan(): the function cannot be saved: %s", why);
}

/* Whether all are on one device, whose calls are primitives that wait. */
static bool are_on_one(tp_tensor *const *given, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (!tp_device_equal(given[i]->device, given[0]->device)) return false;
    return !n || given[0]->device.type == TP_DEVICE_CPU || given[0]->device.type == TP_DEVICE_OPENCL;
}

/* The second of two calls, if it went the way of the first and depends on its arguments alone. */
static PyObject *save(tp_tape *tape, const tp_tape *before, tp_tensor *const *given) {
    char what[256] = "";
    int differing = 0;
    const char *why = tp_tape_spoiled(tape);
    if (why) return refuse(why);
    if (!tp_tape_follows(tape, before, NULL, 0, &differing, what, sizeof what)) return refuse(what);
    if ((why = tp_tape_why_not_saved(tape, given))) return refuse(why);
    size_t size;
    unsigned char *bytes = tp_tape_save(tape, given, &size);
    if (!bytes) return tp_py_raise();
    PyObject *made = PyBytes_FromStringAndSize((const char *)bytes, (Py_ssize_t)size);
    tp_free(bytes, size);
    return made;
}

/* _save_plan(function, args) -> bytes */
static PyObject *save_plan(PyObject *self TP_UNUSED, PyObject *given) {
    PyObject *function, *args;
    if (!PyArg_ParseTuple(given, "OO!", &function, &PyTuple_Type, &args)) return NULL;
    if (tp_tls.region)
        return PyErr_Format(PyExc_RuntimeError, "save_plan(): not inside of a compiled function, whose calls wait");
    tp_tensor **tensors = tensors_of(args);
    if (!tensors) return NULL;
    if (!are_on_one(tensors, PyTuple_GET_SIZE(args))) {
        PyMem_Free(tensors);
        return refuse("its arguments are not on one device, the CPU or an OpenCL device");
    }
    PyObject *first = NULL, *second = NULL, *bytes = NULL;
    tp_tape *before = write_down(function, args, tensors, &first);
    tp_tape *tape = before ? write_down(function, args, tensors, &second) : NULL;
    if (tape) bytes = save(tape, before, tensors);
    tp_tape_free(tape);
    tp_tape_free(before);
    Py_XDECREF(first);
    Py_XDECREF(second);
    PyMem_Free(tensors);
    return bytes;
}

/* ---- running ---- */

static const char capsule_name[] = "tensorpy.plan";

static void free_plan(PyObject *capsule) {
    tp_saved_tape *s = PyCapsule_GetPointer(capsule, capsule_name);
    tp_saved_tape_free(s);
    PyMem_Free(s);
}

/* _load_plan(bytes, device=cpu) -> a capsule */
static PyObject *load_plan(PyObject *self TP_UNUSED, PyObject *given) {
    PyObject *bytes, *where = NULL;
    tp_device device = TP_CPU;
    if (!PyArg_ParseTuple(given, "O!|O", &PyBytes_Type, &bytes, &where)) return NULL;
    if (where && where != Py_None && tp_py_to_device(where, &device) < 0) return NULL;
    if (tp_py_check(tp_device_resolve(device, &device)) < 0) return NULL;
    tp_saved_tape *s = PyMem_Calloc(1, sizeof *s);
    if (!s) return PyErr_NoMemory();
    if (tp_tape_load(s, device, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)) == 0) {
        PyObject *capsule = PyCapsule_New(s, capsule_name, free_plan);
        if (capsule) return capsule;
        tp_saved_tape_free(s);
    } else tp_py_raise();
    PyMem_Free(s);
    return NULL;
}

static PyObject *describe(const tp_saved_tensor *ends, int64_t count) {
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < count; i++) {
        PyObject *sizes = tp_py_size((tp_ints){ends[i].sizes, ends[i].ndim});
        PyObject *dtype = sizes ? tp_py_dtype_object((tp_dtype)ends[i].dtype) : NULL;
        PyObject *row = dtype ? PyTuple_Pack(2, sizes, dtype) : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
        Py_XDECREF(dtype);
        Py_XDECREF(sizes);
    }
    return list;
}

/* _plan_ends(capsule) -> (inputs, outputs), each a list of (sizes, dtype) */
static PyObject *plan_ends(PyObject *self TP_UNUSED, PyObject *capsule) {
    const tp_saved_tape *s = PyCapsule_GetPointer(capsule, capsule_name);
    PyObject *inputs = s ? describe(s->arguments, s->narguments) : NULL;
    PyObject *outputs = inputs ? describe(s->results, s->nresults) : NULL;
    PyObject *both = outputs ? PyTuple_Pack(2, inputs, outputs) : NULL;
    Py_XDECREF(inputs);
    Py_XDECREF(outputs);
    return both;
}

/* The memory of a tensor of the CPU or of the plan's device that lies as the plan wants it, computed by then. */
static int take_memory(const tp_saved_tape *s, const tp_tensor *t, const tp_saved_tensor *like, tp_saved_memory *m) {
    bool here = t->device.type == TP_DEVICE_CPU || tp_device_equal(t->device, s->device);
    bool plain = here && !(t->keys & (TP_NO_MEMORY | TP_PENDING_MATH));
    bool fits = plain && t->dtype == like->dtype && t->ndim == like->ndim && tp_is_contiguous(t);
    for (int64_t d = 0; fits && d < like->ndim; d++) fits = t->sizes[d] == like->sizes[d];
    if (!fits)
        return PyErr_SetString(PyExc_RuntimeError,
                               "a saved plan takes contiguous tensors of the CPU, or of its device, of "
                               "the dtypes and sizes that it was saved with"),
               -1;
    if (tp_py_check(tp_settle(t->storage)) < 0) return -1;
    *m = (tp_saved_memory){t->device, tp_data(t), t->device.type == TP_DEVICE_CPU ? NULL : t->storage->context};
    return 0;
}

/* _run_plan(capsule, inputs, outputs): tuples of tensors; the outputs' memory is written. */
static PyObject *run_plan(PyObject *self TP_UNUSED, PyObject *given) {
    PyObject *capsule, *inputs, *outputs;
    if (!PyArg_ParseTuple(given, "OO!O!", &capsule, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs)) return NULL;
    const tp_saved_tape *s = PyCapsule_GetPointer(capsule, capsule_name);
    if (!s) return NULL;
    if (PyTuple_GET_SIZE(inputs) != s->narguments || PyTuple_GET_SIZE(outputs) != s->nresults)
        return PyErr_Format(PyExc_TypeError, "a saved plan of %lld inputs was given %zd", (long long)s->narguments,
                            PyTuple_GET_SIZE(inputs));
    tp_tensor **in = tensors_of(inputs), **out = in ? tensors_of(outputs) : NULL;
    int status = out ? 0 : -1;
    tp_saved_memory from[s->narguments + 1], to[s->nresults + 1];
    for (int64_t i = 0; i < s->narguments && status == 0; i++)
        status = take_memory(s, in[i], &s->arguments[i], &from[i]);
    for (int64_t i = 0; i < s->nresults && status == 0; i++) status = take_memory(s, out[i], &s->results[i], &to[i]);
    if (status == 0 && (status = tp_saved_tape_run(s, from, to)) < 0) tp_py_raise();
    PyMem_Free(in);
    PyMem_Free(out);
    return status < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_save_plan", save_plan, METH_VARARGS, NULL},
    {"_load_plan", load_plan, METH_VARARGS, NULL},
    {"_plan_ends", plan_ends, METH_O, NULL},
    {"_run_plan", run_plan, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_saved(PyObject *m) { return PyModule_AddFunctions(m, functions); }
