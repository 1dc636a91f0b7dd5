/* profiler.c: what tensorpy/profiler is made of: profiles as objects, what they recorded, and the program's place. */
#include "python/common.h"

#include "autograd/node.h"
#include "dispatch/profiler.h"
#include "opencl/runtime/profile.h"
#include "python/returns.h"

#include <frameobject.h> /* Python.h has it from 3.11 on */
#include <stdlib.h>
#include <string.h>

/* ---- where the program is ---- */

#define MOST_FRAMES 64

/* ((code, line), ...) from the innermost frame outwards: names and files are looked up when they are read. NULL where
 * there is no frame, or no memory. */
static void *stack_now(void) {
    PyObject *list = PyList_New(0);
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    for (int i = 0; list && frame && i < MOST_FRAMES; i++) {
        PyObject *place = Py_BuildValue("Ni", PyFrame_GetCode(frame), PyFrame_GetLineNumber(frame));
        if (!place || PyList_Append(list, place) < 0) Py_CLEAR(list);
        Py_XDECREF(place);
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return list;
}

static void free_stack(void *stack) { Py_DECREF((PyObject *)stack); }

/* ---- profiles ---- */

static const char capsule_name[] = "tensorpy._C._profiler";

static tp_profile *profile_of(PyObject *o) { return PyCapsule_GetPointer(o, capsule_name); }

static void free_profile(PyObject *o) {
    tp_profile *p = profile_of(o);
    tp_profile_stop(p);
    tp_profile_clear(p);
    free(p);
}

/* start(shapes, memory, stack): records from now on; the profile's object. */
static PyObject *start(PyObject *self TP_UNUSED, PyObject *args) {
    int shapes, memory, stack;
    if (!PyArg_ParseTuple(args, "ppp", &shapes, &memory, &stack)) return NULL;
    tp_profile *p = calloc(1, sizeof *p);
    if (!p) return PyErr_NoMemory();
    p->shapes = shapes;
    p->memory = memory;
    p->device_memory = tp_cl_live_bytes;
    p->next_sequence = tp_next_sequence;
    p->sequence_of = tp_sequence_of;
    p->stack = stack ? stack_now : NULL;
    p->free_stack = free_stack;
    PyObject *o = PyCapsule_New(p, capsule_name, free_profile);
    if (!o) return free(p), NULL;
    if (tp_profile_start(p) == 0) return o;
    Py_DECREF(o);
    return tp_py_raise();
}

static PyObject *stop(PyObject *self TP_UNUSED, PyObject *o) {
    tp_profile *p = profile_of(o);
    if (!p) return NULL;
    tp_profile_stop(p);
    Py_RETURN_NONE;
}

/* ---- what was recorded ---- */

/* ("float32", (2, 3)) of a tensor, ("", (1, 1)) of integers, None of anything else. */
static PyObject *read_tensor(const int64_t **w) {
    int64_t word = *(*w)++, n = tp_word_count(word);
    if (tp_word_kind_of(word) == TP_WORD_OTHER) Py_RETURN_NONE;
    const char *dtype = tp_word_kind_of(word) == TP_WORD_TENSOR ? tp_dtype_names[tp_word_dtype(word)] : "";
    const int64_t *numbers = *w;
    *w += n;
    return Py_BuildValue("sN", dtype, tp_py_ints_tuple((tp_ints){numbers, n}));
}

static PyObject *read_argument(const int64_t **w) {
    if (tp_word_kind_of(**w) != TP_WORD_LIST) return read_tensor(w);
    int64_t n = tp_word_count(*(*w)++);
    PyObject *list = PyList_New(n);
    for (int64_t i = 0; list && i < n; i++) {
        PyObject *item = read_tensor(w);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *read_arguments(const tp_profile_thread *t, const tp_profile_event *e) {
    if (e->shapes < 0) Py_RETURN_NONE;
    const int64_t *w = t->words + e->shapes;
    Py_ssize_t n = e->op ? e->op->info->nargs : (Py_ssize_t)tp_word_count(*w++);
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple && i < n; i++) {
        PyObject *item = read_argument(&w);
        if (item) PyTuple_SET_ITEM(tuple, i, item);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

/* (name, kind, begin, end, parent, sequence, bytes, bytes on devices, arguments, stack, backend, failed) */
static PyObject *read_event(const tp_profile_thread *t, const tp_profile_event *e) {
    char buffer[128];
    const char *name = e->op ? tp_op_name(e->op, buffer) : e->name ? e->name : "";
    PyObject *arguments = read_arguments(t, e);
    if (!arguments) return NULL;
    return Py_BuildValue(
        "siLLiLLLNOsi", name, e->kind, (long long)e->begin, (long long)e->end, e->parent, (long long)e->sequence,
        (long long)(e->end ? e->bytes : 0), (long long)(e->end ? e->device_bytes : 0), arguments,
        e->stack ? (PyObject *)e->stack : Py_None, e->backend ? tp_key_name((tp_key)e->backend) : "", e->failed);
}

static PyObject *read_thread(const tp_profile_thread *t) {
    PyObject *events = PyList_New((Py_ssize_t)t->count);
    for (int64_t i = 0; events && i < t->count; i++) {
        PyObject *event = read_event(t, &t->events[i]);
        if (event) PyList_SET_ITEM(events, (Py_ssize_t)i, event);
        else Py_CLEAR(events);
    }
    return events ? Py_BuildValue("ILN", t->number, (long long)t->id, events) : NULL;
}

/* events(profile): [(thread's number, the system's number, [event, ...]), ...] of a profile that has stopped. */
static PyObject *events(PyObject *self TP_UNUSED, PyObject *o) {
    const tp_profile *p = profile_of(o);
    PyObject *list = p ? PyList_New(0) : NULL;
    for (const tp_profile_thread *t = p ? p->threads : NULL; list && t; t = t->next) {
        PyObject *thread = read_thread(t);
        if (!thread || PyList_Append(list, thread) < 0) Py_CLEAR(list);
        Py_XDECREF(thread);
    }
    return list;
}

/* ---- ranges, threads, devices ---- */

/* The tensors among a range's arguments are described. */
static int describe(tp_profile_mark mark, PyObject *const *given, Py_ssize_t n) {
    tp_value *args = n < INT32_MAX ? PyMem_Calloc((size_t)n, sizeof *args) : NULL;
    if (!args) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        bool is_tensor = tp_py_is_tensor(given[i]);
        args[i] = (tp_value){.tag = is_tensor ? TP_TENSOR : TP_NONE};
        if (is_tensor) args[i].tensor = tp_py_tensor_borrow(given[i]);
    }
    tp_profile_describe(mark, args, (int)n);
    PyMem_Free(args);
    return 0;
}

/* enter(name, *args): a mark for leave. */
static PyObject *enter(PyObject *self TP_UNUSED, PyObject *const *args, Py_ssize_t nargs) {
    const char *name =
        nargs ? PyUnicode_AsUTF8(args[0]) : (PyErr_SetString(PyExc_TypeError, "enter() takes a name"), NULL);
    if (!name) return NULL;
    tp_profile_mark mark = tp_profile_enter(TP_PROFILED_RANGE, name, -1);
    if (nargs > 1 && describe(mark, args + 1, nargs - 1) < 0) return NULL;
    return Py_BuildValue("KL", (unsigned long long)mark.profile, (long long)mark.at);
}

static PyObject *leave(PyObject *self TP_UNUSED, PyObject *args) {
    unsigned long long profile;
    long long at;
    if (!PyArg_ParseTuple(args, "KL", &profile, &at)) return NULL;
    tp_profile_leave((tp_profile_mark){profile, at}, 0);
    Py_RETURN_NONE;
}

/* A thread that has not called an operator yet is recorded from its first one. */
static PyObject *join(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    tp_thread_register();
    Py_RETURN_NONE;
}

static PyObject *now(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return PyLong_FromLongLong(tp_clock_ns());
}

static PyObject *start_devices(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    if (tp_py_check(tp_cl_profile_start()) < 0) return NULL;
    Py_RETURN_NONE;
}

static int add_kernel(const tp_cl_profiled *k, void *list) {
    PyObject *item = Py_BuildValue("siiLLIL", k->name, k->device, k->stream, (long long)k->begin, (long long)k->end,
                                   k->thread, (long long)k->at);
    int status = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return status;
}

/* stop_devices(): [(kernel, device, stream, begin, end, thread, the event that launched it), ...] */
static PyObject *stop_devices(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *list = PyList_New(0);
    if (!list || tp_cl_profile_stop(add_kernel, list) == 0) return list;
    Py_DECREF(list);
    return PyErr_Occurred() ? NULL : tp_py_raise();
}

static PyMethodDef functions[] = {
    {"start", start, METH_VARARGS, NULL},
    {"stop", stop, METH_O, NULL},
    {"events", events, METH_O, NULL},
    {"enter", (PyCFunction)(void (*)(void))enter, METH_FASTCALL, NULL},
    {"leave", leave, METH_VARARGS, NULL},
    {"join", join, METH_NOARGS, NULL},
    {"now", now, METH_NOARGS, NULL},
    {"start_devices", start_devices, METH_NOARGS, NULL},
    {"stop_devices", stop_devices, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_profiler(PyObject *m) {
    const char *log = getenv("TENSORPY_TRACE");
    if (log && *log && strcmp(log, "0") != 0 && tp_py_check(tp_profile_log(log)) < 0) return -1;
    return tp_py_add_submodule(m, "_profiler", functions);
}
