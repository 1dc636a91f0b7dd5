/* dispatch.c: looking into the dispatcher: traces, tables, explanations; operators by name. */
#include "python/common.h"

#include "dispatch/boxing.h"
#include "prim/host.h"

#include <stdio.h>
#include <string.h>

/* ---- trace ---- */

/* A tracer that appends [operator, key, arguments, seconds, depth, the tensors' keys] to a list, or prints. */
typedef struct {
    tp_tracer base;
    PyObject *events; /* NULL: print */
    int depth;
} py_tracer;

static PyObject *describe_tensor(const tp_tensor *t) {
    return Py_BuildValue("NNN", tp_py_dtype_object((tp_dtype)t->dtype), tp_py_size(tp_sizes(t)),
                         tp_py_device_object(t->device));
}

/* One entry per argument: (dtype, shape, device) of a tensor, a list of these, or None for anything else. */
static PyObject *describe_arguments(const tp_op *op, const tp_value *args) {
    PyObject *tuple = PyTuple_New(op->info->nargs);
    for (int i = 0; tuple && i < op->info->nargs; i++) {
        PyObject *item = NULL;
        if (args[i].tag == TP_TENSOR) {
            item = describe_tensor(args[i].tensor);
        } else if (args[i].tag == TP_TENSORS) {
            item = PyList_New(args[i].tensors.size);
            for (int64_t k = 0; item && k < args[i].tensors.size; k++)
                PyList_SET_ITEM(
                    item, k, args[i].tensors.data[k] ? describe_tensor(args[i].tensors.data[k]) : Py_NewRef(Py_None));
        } else {
            item = Py_NewRef(Py_None);
        }
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static void trace_enter(tp_tracer *base, const tp_op *op, tp_key key, const tp_value *args) {
    py_tracer *t = (py_tracer *)base;
    char name[128];
    tp_op_name(op, name);
    if (!t->events) {
        PySys_WriteStdout("%*s[call] op=[%s], key=[%s]\n", t->depth, "", name, tp_key_name(key));
    } else {
        PyGILState_STATE gil = PyGILState_Ensure();
        PyObject *arguments = describe_arguments(op, args);
        tp_keyset keys = op->info->is_primitive ? (tp_keyset)1 << key : tp_keys_of_values(args, op->info->nargs);
        PyObject *event = arguments ? Py_BuildValue("[s,s,N,d,i,K]", name, tp_key_name(key), arguments, 0.0, t->depth,
                                                    (unsigned long long)keys)
                                    : NULL;
        if (!event || PyList_Append(t->events, event) < 0) PyErr_Clear();
        Py_XDECREF(event);
        PyGILState_Release(gil);
    }
    t->depth++;
}

/* The list is the user's, who may have put anything there. */
static bool is_event(PyObject *o) {
    return PyList_CheckExact(o) && PyList_GET_SIZE(o) > 4 && PyLong_CheckExact(PyList_GET_ITEM(o, 4));
}

/* The time goes into the event that is open at this depth: the last one there. */
static void trace_leave(tp_tracer *base, const tp_op *op, tp_key key, double seconds, int status) {
    py_tracer *t = (py_tracer *)base;
    (void)op, (void)key, (void)status;
    if (t->depth) t->depth--; /* 0: the trace began inside this layer */
    if (!t->events) return;
    PyGILState_STATE gil = PyGILState_Ensure();
    for (Py_ssize_t i = PyList_GET_SIZE(t->events) - 1; i >= 0; i--) {
        PyObject *event = PyList_GET_ITEM(t->events, i);
        if (!is_event(event) || PyLong_AsLong(PyList_GET_ITEM(event, 4)) != t->depth) continue;
        Py_INCREF(event);
        PyList_SetItem(event, 3, PyFloat_FromDouble(seconds));
        Py_DECREF(event);
        break;
    }
    PyGILState_Release(gil);
}

static __thread py_tracer tracer; /* no pointers yet: the loader copies these before a wheel's are mended */

/* Collects into a list, prints (True), or stops (None); what there was before, as arguments of _set_trace. */
PyObject *tp_py_set_trace(PyObject *sink, bool primitives, int depth) {
    py_tracer before = tracer;
    tracer.events = PyList_Check(sink) ? Py_NewRef(sink) : NULL;
    tracer.base = (tp_tracer){trace_enter, trace_leave, .primitives = primitives};
    tracer.depth = depth;
    tp_tracer *previous = tp_set_tracer(sink == Py_None ? NULL : &tracer.base);
    PyObject *old = before.events ? before.events : Py_NewRef(previous ? Py_True : Py_None);
    if (!tp_error_pending()) return Py_BuildValue("NNi", old, PyBool_FromLong(before.base.primitives), before.depth);
    Py_DECREF(old);
    return tp_py_raise();
}

/* _set_trace(sink, primitives, depth): a trace within a trace gives back what it found. */
static PyObject *set_trace(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *sink;
    int primitives = 0, depth = 0;
    return PyArg_ParseTuple(args, "O|pi", &sink, &primitives, &depth) ? tp_py_set_trace(sink, primitives, depth) : NULL;
}

/* ---- tables ---- */

static tp_op *find_op(const char *name) {
    tp_op *op = tp_find_op_qualified(name);
    if (!op)
        PyErr_Format(PyExc_ValueError,
                     "there is no operator '%s'; tensorpy.dispatch.operators() lists all, with their overloads "
                     "(\"add.Tensor\")",
                     name);
    return op;
}

/* _dispatch_table(name): list of (key, registered as, source, kind, file) for every runtime key that has an entry; at
 * the end for Undefined, where calls without tensors go. */
static PyObject *dispatch_table(PyObject *self, PyObject *arg) {
    (void)self;
    const char *name = PyUnicode_AsUTF8(arg);
    tp_op *op = name ? find_op(name) : NULL;
    PyObject *rows = op ? PyList_New(0) : NULL;
    for (int i = 1; rows && i <= TP_NUM_KEYS; i++) {
        int k = i % TP_NUM_KEYS;
        tp_origin r;
        if (!tp_find_origin(op, (tp_key)k, &r)) continue;
        const char *kind = r.is_fallback      ? "fallback"
                           : r.is_boxed       ? "boxed"
                           : r.is_fallthrough ? "fallthrough"
                                              : "kernel";
        PyObject *row = Py_BuildValue("sssss", tp_key_name((tp_key)k), tp_slot_name(r.key), r.source, kind, r.file);
        if (!row || PyList_Append(rows, row) < 0) Py_CLEAR(rows);
        Py_XDECREF(row);
    }
    return rows;
}

static int append_text(PyObject *list, const char *text) {
    PyObject *item = PyUnicode_FromString(text);
    int status = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return status;
}

/* _operator_info(name): (schema, tags, declared at, the primitives that its Dense kernel calls, whether it is a
 * primitive that a device may lack). */
static PyObject *operator_info(PyObject *self, PyObject *arg) {
    (void)self;
    const char *name = PyUnicode_AsUTF8(arg);
    tp_op *op = name ? find_op(name) : NULL;
    PyObject *tags = op ? PyList_New(0) : NULL, *prims = tags ? PyList_New(0) : NULL;
    for (const char *const *tag = prims ? op->info->tags : NULL; tags && *tag; tag++)
        if (append_text(tags, *tag) < 0) Py_CLEAR(tags);
    for (tp_op *const *p = prims && tags ? op->info->prims : NULL; p && prims && *p; p++) {
        char primitive[128];
        if (append_text(prims, tp_op_name(*p, primitive)) < 0) Py_CLEAR(prims);
    }
    if (tags && prims)
        return Py_BuildValue("sNsNN", op->info->schema, tags, op->info->declared_at, prims,
                             PyBool_FromLong(op->info->is_optional));
    Py_XDECREF(tags);
    Py_XDECREF(prims);
    return NULL;
}

static PyObject *names_of(bool primitives) {
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list && i < tp_op_count(); i++) {
        if (tp_op_at(i)->info->is_primitive != primitives) continue;
        char name[128];
        if (append_text(list, tp_op_name(tp_op_at(i), name)) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *operators(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) { return names_of(false); }
static PyObject *primitives(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) { return names_of(true); }

static PyObject *tensor_keys(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_tensor_keys() takes a Tensor");
    return PyLong_FromUnsignedLongLong(tp_py_tensor_borrow(arg)->keys);
}

/* ---- backends ---- */

/* _host_calls(device): how often the CPU has computed each operator for want of a kernel of the device: a dict. */
static PyObject *host_calls(PyObject *self TP_UNUSED, PyObject *device) {
    tp_device d;
    char name[128];
    const char *text = PyUnicode_AsUTF8(device);
    if (!text || tp_py_check(tp_device_parse(text, &d)) < 0) return NULL;
    PyObject *counts = PyDict_New();
    for (int64_t i = 0; counts && i < tp_op_count(); i++) {
        int64_t n = tp_host_calls((tp_device_type)d.type, tp_op_at(i));
        PyObject *count = n ? PyLong_FromLongLong(n) : NULL;
        if (n && (!count || PyDict_SetItemString(counts, tp_op_name(tp_op_at(i), name), count) < 0)) Py_CLEAR(counts);
        Py_XDECREF(count);
    }
    return counts;
}

static PyMethodDef functions[] = {
    {"_set_trace", set_trace, METH_VARARGS, NULL},   {"_dispatch_table", dispatch_table, METH_O, NULL},
    {"_operator_info", operator_info, METH_O, NULL}, {"_operators", operators, METH_NOARGS, NULL},
    {"_primitives", primitives, METH_NOARGS, NULL},  {"_tensor_keys", tensor_keys, METH_O, NULL},
    {"_host_calls", host_calls, METH_O, NULL},       {NULL, NULL, 0, NULL},
};

int tp_py_init_dispatch(PyObject *m) { return PyModule_AddFunctions(m, functions); }
