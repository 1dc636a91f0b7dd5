/* distributed.c: what tensorpy.distributed (the Python package) asks of csrc/distributed: the world, its groups, works.
 *
 * A work is a capsule. The tensors that come here lie on the host and are contiguous: the package packs and unpacks. */
#include "python/distributed.h"

#include "core/memory.h"
#include "distributed/groups.h"
#include "distributed/pmi.h"
#include "distributed/recorder.h"
#include "distributed/server.h"
#include "distributed/work.h"
#include "distributed/world.h"
#include "python/returns.h"

#include <limits.h>

#define FUNCTION(name) static PyObject *name(PyObject *self TP_UNUSED, PyObject *arg TP_UNUSED)
#define FUNCTION_OF(name) static PyObject *name(PyObject *self TP_UNUSED, PyObject *args)

/* ---- the world ---- */

FUNCTION(load) {
    const char *paths[32];
    Py_ssize_t n = PyTuple_Check(arg) ? PyTuple_GET_SIZE(arg) : -1;
    if (n < 0 || n > TP_COUNTOF(paths)) return PyErr_Format(PyExc_TypeError, "load: a tuple of at most 32 paths");
    for (Py_ssize_t i = 0; i < n; i++)
        if (!(paths[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(arg, i)))) return NULL;
    int status = tp_world_load(paths, (int)n);
    return status < 0 ? tp_py_raise_backend() : PyBool_FromLong(status == 0);
}

FUNCTION(library) { return PyUnicode_FromString(tp_world_library()); }

FUNCTION(is_launched) { return PyBool_FromLong(tp_world_is_launched()); }

FUNCTION_OF(serve) {
    const char *address, *token;
    int size;
    if (!PyArg_ParseTuple(args, "sis", &address, &size, &token)) return NULL;
    int port = tp_server_start(address, size, token);
    return port < 0 ? tp_py_raise_backend() : PyLong_FromLong(port);
}

FUNCTION(serve_end) {
    Py_BEGIN_ALLOW_THREADS tp_server_stop();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

FUNCTION_OF(open_pmi) {
    int size;
    const char *token, *mapping;
    if (!PyArg_ParseTuple(args, "iss", &size, &token, &mapping)) return NULL;
    int fd = tp_world_open_pmi(size, token, mapping);
    return fd < 0 ? tp_py_raise_backend() : PyLong_FromLong(fd);
}

FUNCTION(pmi_lines) { return PyLong_FromLongLong(tp_pmi_lines()); }

static int take_start(PyObject *args, tp_world_start *w) {
    return PyArg_ParseTuple(args, "sissiid", &w->address, &w->port, &w->token, &w->host, &w->rank, &w->size,
                            &w->seconds)
               ? 0
               : -1;
}

FUNCTION_OF(begin_world) {
    tp_world_start w;
    if (take_start(args, &w) < 0) return NULL;
    return tp_world_begin(&w) < 0 ? tp_py_raise_backend() : Py_BuildValue("ii", w.rank, w.size);
}

FUNCTION_OF(watch) {
    tp_world_start w;
    if (take_start(args, &w) < 0) return NULL;
    if (tp_world_watch(&w) < 0) return tp_py_raise_backend();
    Py_RETURN_NONE;
}

FUNCTION(end_world) {
    double seconds = PyFloat_AsDouble(arg);
    if (PyErr_Occurred()) return NULL;
    if (tp_world_end(seconds) < 0) return tp_py_raise_backend();
    Py_RETURN_NONE;
}

FUNCTION(leave_world) {
    tp_world_leave();
    Py_RETURN_NONE;
}

/* Why a world that has begun is over; fault(rank, ...) asks whether one of these has left, too. */
FUNCTION_OF(fault) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        long rank = PyLong_AsLong(PyTuple_GET_ITEM(args, i));
        if (rank == -1 && PyErr_Occurred()) return NULL;
        tp_world_look_for((int)rank);
    }
    const char *text = tp_world_fault();
    if (!text) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

FUNCTION_OF(new_group) {
    const char *name;
    PyObject *ranks;
    double seconds;
    if (!PyArg_ParseTuple(args, "sO!d", &name, &PyTuple_Type, &ranks, &seconds)) return NULL;
    Py_ssize_t n = PyTuple_GET_SIZE(ranks);
    int *list = PyMem_New(int, n + 1);
    if (!list) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) list[i] = (int)PyLong_AsLong(PyTuple_GET_ITEM(ranks, i));
    int made = PyErr_Occurred() ? -2 : tp_world_group(name, list, (int)n, seconds);
    PyMem_Free(list);
    if (made == -2) return NULL;
    return made < 0 ? tp_py_raise_backend() : PyLong_FromLong(made);
}

FUNCTION(free_group) {
    long number = PyLong_AsLong(arg);
    if (PyErr_Occurred()) return NULL;
    tp_world_group_free((int)number);
    Py_RETURN_NONE;
}

FUNCTION_OF(reduces) {
    PyObject *dtype;
    int op;
    if (!PyArg_ParseTuple(args, "O!i", &tp_py_dtype_type, &dtype, &op)) return NULL;
    if (op < 0 || op >= TP_NUM_OPS) return PyErr_Format(PyExc_ValueError, "there is no reduction %d", op);
    return PyBool_FromLong(tp_world_reduces(((tp_py_dtype *)dtype)->dtype, (tp_reduce_op)op));
}

/* ---- works ---- */

#define WORK "tensorpy.work"

static void end_work(PyObject *capsule) { tp_work_free(PyCapsule_GetPointer(capsule, WORK)); }

/* Names of messages for errors: they live for ever. */
static const char *keep_name(PyObject *name) {
    static PyObject *names;
    if (!names && !(names = PyDict_New())) return NULL;
    PyObject *kept = PyDict_SetDefault(names, name, name);
    return kept ? PyUnicode_AsUTF8(kept) : NULL;
}

static int take_tensor(PyObject *o, tp_tensor **t) {
    *t = NULL;
    if (o == Py_None) return 0;
    if (!tp_py_is_tensor(o))
        return PyErr_Format(PyExc_TypeError, "expected a tensor, not %.80s", Py_TYPE(o)->tp_name), -1;
    *t = tp_py_tensor_borrow(o);
    if ((*t)->device.type != TP_DEVICE_CPU || !tp_is_contiguous(*t))
        return PyErr_Format(PyExc_ValueError, "a message goes from and to contiguous memory of the host"), -1;
    return 0;
}

static int64_t *take_counts(PyObject *tuple, int64_t *out, Py_ssize_t most, int64_t item) {
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > most) {
        PyErr_SetString(PyExc_TypeError, "counts are a tuple, one for each process");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        out[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)) * item;
    return PyErr_Occurred() ? NULL : out;
}

static void *address_of(const tp_tensor *t) { return t ? tp_data(t) : NULL; }

/* (group, kind, name, send, recv, count, op, peer, tag, counts): a count is of elements; counts is None, or what goes
 * to and comes from each process and where it begins, four tuples. */
enum { GROUP, KIND, NAME, SEND, RECV, COUNT, OP, PEER, TAG, COUNTS, NUM_ARGS };

static tp_work *begin_work(PyObject *const *a, bool waits_at_once) {
    tp_tensor *send, *recv;
    int64_t *counts = NULL;
    tp_sweep();
    const char *name = keep_name(a[NAME]);
    if (!name || take_tensor(a[SEND], &send) < 0 || take_tensor(a[RECV], &recv) < 0) return NULL;
    long number = PyLong_AsLong(a[GROUP]), kind = PyLong_AsLong(a[KIND]), op = PyLong_AsLong(a[OP]);
    long peer = PyLong_AsLong(a[PEER]), tag = PyLong_AsLong(a[TAG]);
    int64_t count = PyLong_AsLongLong(a[COUNT]);
    if (PyErr_Occurred()) return NULL;
    if (kind < 0 || kind >= TP_NUM_MESSAGES || op < 0 || op >= TP_NUM_OPS || count < 0)
        return PyErr_SetString(PyExc_ValueError, "no such message"), NULL;
    if (tag < 0 || tag > INT_MAX)
        return PyErr_Format(PyExc_ValueError, "%s: Tag must be nonnegative, and of 31 bits: not %ld", name, tag), NULL;
    if (recv && (tp_check_writable(recv, name) < 0)) return tp_py_raise(), NULL;
    bool reduces = kind == TP_MSG_all_reduce || kind == TP_MSG_reduce || kind == TP_MSG_reduce_scatter;
    const tp_tensor *typed = recv ? recv : send;
    tp_dtype dtype = typed ? tp_dtype_of(typed) : TP_UINT8;
    int64_t item = tp_itemsize(dtype);
    tp_message m = {.kind = (tp_message_kind)kind,
                    .send = address_of(send),
                    .recv = address_of(recv),
                    .count = reduces ? count : count * item,
                    .dtype = dtype,
                    .op = (tp_reduce_op)op,
                    .peer = (int)peer,
                    .tag = (int)tag};
    if (a[COUNTS] != Py_None) {
        Py_ssize_t n = PyTuple_Size(PyTuple_GetItem(a[COUNTS], 0));
        if (PyErr_Occurred() || !(counts = PyMem_New(int64_t, 4 * n + 1))) return NULL;
        for (Py_ssize_t i = 0; i < 4; i++)
            if (!take_counts(PyTuple_GetItem(a[COUNTS], i), counts + i * n, n, item)) return PyMem_Free(counts), NULL;
        m.send_counts = counts;
        m.send_offsets = counts + n;
        m.recv_counts = counts + 2 * n;
        m.recv_offsets = counts + 3 * n;
    }
    tp_work *w =
        tp_work_begin((int)number, name, &m, send ? send->storage : NULL, recv ? recv->storage : NULL, waits_at_once);
    PyMem_Free(counts);
    if (!w) tp_py_raise_backend();
    else if (recv) tp_bump_version(recv);
    return w;
}

static int expect(Py_ssize_t n, Py_ssize_t wanted) {
    if (n == wanted) return 0;
    return PyErr_Format(PyExc_TypeError, "expected %zd arguments, got %zd", wanted, n), -1;
}

static PyObject *begin(PyObject *self TP_UNUSED, PyObject *const *args, Py_ssize_t n) {
    tp_work *w = expect(n, NUM_ARGS) < 0 ? NULL : begin_work(args, false);
    if (!w) return NULL;
    PyObject *capsule = PyCapsule_New(w, WORK, end_work);
    if (!capsule) tp_work_free(w);
    return capsule;
}

/* begin(...) and wait(work, seconds) in one: what it found, (source, bytes). */
static PyObject *run(PyObject *self TP_UNUSED, PyObject *const *args, Py_ssize_t n) {
    double seconds = expect(n, NUM_ARGS + 1) < 0 ? -1 : PyFloat_AsDouble(args[NUM_ARGS]);
    if (PyErr_Occurred()) return NULL;
    tp_work *w = begin_work(args, true);
    if (!w) return NULL;
    int status = tp_work_wait(w, seconds);
    tp_arrival arrival = tp_work_arrival(w);
    if (status < 0) tp_py_raise_backend();
    tp_work_free(w);
    return status < 0 ? NULL : Py_BuildValue("iL", arrival.source, (long long)arrival.bytes);
}

FUNCTION(done) {
    tp_work *w = PyCapsule_GetPointer(arg, WORK);
    int state = w ? tp_work_done(w) : -2;
    if (state == -2) return NULL;
    return state < 0 ? tp_py_raise_backend() : PyBool_FromLong(state);
}

FUNCTION_OF(wait_for) {
    PyObject *capsule;
    double seconds;
    if (!PyArg_ParseTuple(args, "Od", &capsule, &seconds)) return NULL;
    tp_work *w = PyCapsule_GetPointer(capsule, WORK);
    if (!w) return NULL;
    if (tp_work_wait(w, seconds) < 0) return tp_py_raise_backend();
    Py_RETURN_NONE;
}

FUNCTION(arrival_of) {
    tp_work *w = PyCapsule_GetPointer(arg, WORK);
    if (!w) return NULL;
    tp_arrival arrival = tp_work_arrival(w);
    return Py_BuildValue("iL", arrival.source, (long long)arrival.bytes);
}

/* The last messages, the oldest first: (id, name, kind, group, number, peer, count, came, dtype, begun, done),
 * in us. */
FUNCTION(records) {
    tp_record *copy;
    int64_t n = tp_records(&copy);
    if (n < 0) return PyErr_NoMemory();
    PyObject *list = PyList_New(n);
    for (int64_t i = 0; list && i < n; i++) {
        const tp_record *r = &copy[i];
        PyObject *one = Py_BuildValue("LsiiLiLLsLL", (long long)r->id, r->name, (int)r->kind, r->group,
                                      (long long)r->number, r->peer, (long long)r->count, (long long)r->came,
                                      tp_dtype_names[r->dtype], (long long)r->begun_at, (long long)r->done_at);
        if (one) PyList_SET_ITEM(list, i, one);
        else Py_CLEAR(list);
    }
    free(copy);
    return list;
}

static PyMethodDef functions[] = {
    {"records", records, METH_NOARGS, NULL},
    {"load", load, METH_O, NULL},
    {"library", library, METH_NOARGS, NULL},
    {"serve", serve, METH_VARARGS, NULL},
    {"serve_end", serve_end, METH_NOARGS, NULL},
    {"open_pmi", open_pmi, METH_VARARGS, NULL},
    {"pmi_lines", pmi_lines, METH_NOARGS, NULL},
    {"begin_world", begin_world, METH_VARARGS, NULL},
    {"watch", watch, METH_VARARGS, NULL},
    {"end_world", end_world, METH_O, NULL},
    {"is_launched", is_launched, METH_NOARGS, NULL},
    {"leave_world", leave_world, METH_NOARGS, NULL},
    {"fault", fault, METH_VARARGS, NULL},
    {"new_group", new_group, METH_VARARGS, NULL},
    {"free_group", free_group, METH_O, NULL},
    {"reduces", reduces, METH_VARARGS, NULL},
    {"begin", (PyCFunction)(void (*)(void))begin, METH_FASTCALL, NULL},
    {"run", (PyCFunction)(void (*)(void))run, METH_FASTCALL, NULL},
    {"done", done, METH_O, NULL},
    {"wait", wait_for, METH_VARARGS, NULL},
    {"arrival", arrival_of, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_distributed(PyObject *m) {
    PyObject *kinds = PyDict_New();
    int status = kinds ? tp_py_add_submodule(m, "_distributed", functions) : -1;
#define KIND_OF(name)                                                      \
    if (status == 0) {                                                     \
        PyObject *number = PyLong_FromLong(TP_MSG_##name);                 \
        status = number ? PyDict_SetItemString(kinds, #name, number) : -1; \
        Py_XDECREF(number);                                                \
    }
    TP_FORALL_MESSAGES(KIND_OF)
#undef KIND_OF
    PyObject *module = status == 0 ? PyObject_GetAttrString(m, "_distributed") : NULL;
    if (status == 0) status = module ? PyModule_AddObjectRef(module, "KINDS", kinds) : -1;
    if (status == 0) status = tp_py_init_reducer(module);
    Py_XDECREF(module);
    Py_XDECREF(kinds);
    return status;
}
