/* tracer.c: the fallback under the key Tracer: tells a recorder of Python's each operator that a thread calls.
 *
 * Composites that are made of differentiated operators are not recorded: their parts are. Below an operator that is,
 * the key is excluded, so nothing that its kernel calls is seen. */
#include "python/common.h"

#include "python/ops.h"
#include "python/python_key.h"
#include "python/returns.h"
#include "python/values.h"

/* Each with enter(operator's name, arguments), which may refuse, and leave(what enter gave, result). A function that
 * enter gives runs in the operator's place, and what it calls is recorded; where it gives NotImplemented, enter is
 * asked again. */
static __thread PyObject *recorder;
static __thread bool asks_whole; /* the recorder has keeps_whole(name, arguments): whether a composite is one call */
static int recorders;            /* in all threads, under the host lock */
static int64_t registration;

/* ---- a call ---- */

static bool is_composite(const tp_op *op, tp_keyset below) {
    tp_origin o;
    tp_key key = tp_live_key(op, below & ~TP_BIT(Profiler));
    return tp_find_origin(op, key, &o) && o.key == TP_ALIAS_KEY(CompositeImplicitAutograd);
}

static PyObject *arguments_of(const tp_op *op, const tp_value *args) {
    PyObject *tuple = PyTuple_New(op->info->nargs);
    for (int i = 0; tuple && i < op->info->nargs; i++) {
        PyObject *item = tp_py_from_argument(&args[i]);
        if (item) PyTuple_SET_ITEM(tuple, i, item);
        else Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *result_of(const tp_value *v) {
    if (v->tag == TP_TENSOR_SEQ)
        return tp_py_from_argument(&(tp_value){.tag = TP_TENSORS, .tensors = tp_tensor_seq_borrow(v->seq)});
    return v->tag == TP_NUMBER ? tp_py_from_scalar(&v->number) : tp_py_from_argument(v);
}

/* The results stay the caller's. A call that gives arguments back has none of its own. */
static PyObject *results_of(const tp_op *op, const tp_value *args, const tp_value *results) {
    int n = op->info->nreturns;
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        const tp_value *written = tp_py_written_argument(op, args, i);
        PyObject *item = result_of(results[i].tag == TP_NONE && written ? written : &results[i]);
        if (item) PyList_SET_ITEM(list, i, item);
        else Py_CLEAR(list);
    }
    return list;
}

static PyObject *call_enter(PyObject *to, const tp_op *op, const tp_value *args) {
    char name[128];
    PyObject *arguments = arguments_of(op, args);
    return arguments ? PyObject_CallMethod(to, "enter", "sN", tp_op_name(tp_py_asked_operator(op), name), arguments)
                     : NULL;
}

static int call_leave(PyObject *to, PyObject *token, const tp_op *op, const tp_value *args, const tp_value *results) {
    PyObject *list = results_of(op, args, results);
    PyObject *done = list ? PyObject_CallMethod(to, "leave", "ON", token, list) : NULL;
    Py_XDECREF(done);
    return done ? 0 : tp_py_error_to_core();
}

/* 1: the function that is the token has run in the operator's place; 0: it declines. */
static int run_instead(PyObject *token, const tp_op *op, tp_value *results) {
    PyObject *returned = PyObject_CallNoArgs(token);
    if (!returned) return tp_py_error_to_core();
    int status = returned == Py_NotImplemented ? 0 : 1;
    if (status && tp_py_to_results(op, returned, "a decomposition", results) < 0) status = tp_py_error_to_core();
    Py_DECREF(returned);
    return status;
}

static PyObject *enter_untold(PyObject *to, const tp_op *op, const tp_value *args) {
    tp_exclude_guard guard = tp_exclude(TP_BIT(Tracer));
    return call_enter(to, op, args);
}

static int record(PyObject *to, const tp_op *op, tp_keyset below, tp_value *args, tp_value *results) {
    PyObject *token = enter_untold(to, op, args);
    while (token && PyCallable_Check(token)) {
        int done = run_instead(token, op, results);
        Py_DECREF(token);
        if (done) return done < 0 ? -1 : 0;
        token = enter_untold(to, op, args);
    }
    if (!token) return tp_py_error_to_core();
    tp_exclude_guard guard = tp_exclude(TP_BIT(Tracer));
    int status = tp_redispatch_boxed(op, below, args, results);
    if (status == 0 && (status = call_leave(to, token, op, args, results)) < 0)
        for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]);
    Py_DECREF(token);
    return status;
}

/* 1: the recorder keeps a composite as it is. It may try the composite with another recorder in its place. */
static int keeps_whole(const tp_op *op, const tp_value *args) {
    if (!asks_whole) return 0;
    PyGILState_STATE gil = PyGILState_Ensure();
    char name[128];
    PyObject *to = Py_NewRef(recorder), *list = arguments_of(op, args);
    PyObject *answer =
        list ? PyObject_CallMethod(to, "keeps_whole", "sN", tp_op_name(tp_py_asked_operator(op), name), list) : NULL;
    int keeps = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    Py_DECREF(to);
    if (keeps < 0) tp_py_error_to_core();
    PyGILState_Release(gil);
    return keeps;
}

static int trace_operator(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    tp_keyset below = ks & TP_BELOW(Tracer);
    int whole = recorder && is_composite(op, below) ? keeps_whole(op, args) : 1;
    if (whole < 0) return -1;
    if (!recorder || !whole) return tp_redispatch_boxed(op, below, args, results);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *to = Py_NewRef(recorder); /* the call may end the recording */
    int status = record(to, op, below, args, results);
    Py_DECREF(to);
    PyGILState_Release(gil);
    return status;
}

/* ---- functions ---- */

static int register_first(void) {
    if (recorders++ > 0) return 0;
    registration = tp_register_fallback(TP_KEY_Tracer, trace_operator, NULL, NULL, "python/tracer.c");
    if (registration > 0) return 0;
    recorders--;
    return -1;
}

/* swap(recorder or None): set() for a while inside of a recording. The thread's keys stay as they are, which inside of
 * func.functionalize do not have this one. */
static PyObject *swap(PyObject *self TP_UNUSED, PyObject *o) {
    PyObject *before = recorder ? recorder : Py_NewRef(Py_None);
    recorder = o == Py_None ? NULL : Py_NewRef(o);
    asks_whole = recorder && PyObject_HasAttrString(recorder, "keeps_whole");
    return before;
}

/* set(recorder or None): what this thread's calls are told from now on; the one of before. */
static PyObject *set(PyObject *self, PyObject *o) {
    if (o != Py_None && !recorder && register_first() < 0) return tp_py_raise();
    if (o == Py_None && recorder && --recorders == 0) tp_deregister(registration);
    PyObject *before = swap(self, o);
    tp_tls.include = recorder ? tp_tls.include | TP_BIT(Tracer) : tp_tls.include & ~TP_BIT(Tracer);
    return before;
}

/* arguments(name): (name, type, keyword-only, written, has a default, the default) for each of an operator's. */
static PyObject *arguments(PyObject *self TP_UNUSED, PyObject *arg) {
    const char *name = PyUnicode_AsUTF8(arg);
    const tp_op *op = name ? tp_find_op_qualified(name) : NULL;
    if (name && !op) return PyErr_Format(PyExc_ValueError, "there is no operator '%s'", name);
    const tp_py_function *f = op ? tp_py_overload(op) : NULL;
    PyObject *list = f ? PyList_New(0) : NULL;
    for (int i = 0; list && i < op->info->nargs; i++) {
        const tp_argument *a = &op->info->args[i];
        const tp_py_param *p = &f->signatures[0].params[i];
        PyObject *value = p->value ? tp_py_from_argument(p->value) : Py_NewRef(Py_None);
        PyObject *row = value ? Py_BuildValue("ssiiiN", a->name, a->type, a->kwarg_only, a->is_write,
                                              p->flags & TP_PARAM_DEFAULT, value)
                              : NULL;
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* memory(tensor): a number that tensors share whose elements are of one storage. */
static PyObject *memory(PyObject *self TP_UNUSED, PyObject *o) {
    if (!tp_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "memory() takes a Tensor");
    return PyLong_FromVoidPtr(tp_py_tensor_borrow(o)->storage);
}

/* set_version(tensor, version): its elements are those that it had at that version again. */
static PyObject *set_version(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *o;
    unsigned int version;
    if (!PyArg_ParseTuple(args, "OI", &o, &version)) return NULL;
    if (!tp_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "set_version() takes a Tensor");
    atomic_store_explicit(&tp_py_tensor_borrow(o)->storage->version, version, memory_order_relaxed);
    Py_RETURN_NONE;
}

bool tp_py_is_recording(void) { return recorder && !(tp_excluded_keys() & TP_BIT(Tracer)); }

int tp_py_refuse_traced(PyObject *tensor, const char *what) {
    if (!tp_py_is_recording()) return 0;
    PyObject *done = PyObject_CallMethod(recorder, "reads", "Os", tensor, what);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int tell(const char *method, const char *what) {
    if (!tp_py_is_recording()) return 0;
    PyObject *done = PyObject_CallMethod(recorder, method, "s", what);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int tp_py_tell_recorder(const char *what) { return tell("happens", what); }
int tp_py_tell_recorder_of_function(bool has_gradient) {
    return tell(has_gradient ? "happens" : "skips_gradient", "a Function with a backward of its own is applied");
}

/* current(): the recorder that this thread's calls are told; None where there is none, or below an operator. */
static PyObject *current(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    return Py_NewRef(tp_py_is_recording() ? recorder : Py_None);
}

/* happens(what): what Python does that no operator shows. */
static PyObject *happens(PyObject *self TP_UNUSED, PyObject *what) {
    const char *text = PyUnicode_AsUTF8(what);
    return !text || tp_py_tell_recorder(text) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"set", set, METH_O, NULL},
    {"swap", swap, METH_O, NULL},
    {"current", current, METH_NOARGS, NULL},
    {"arguments", arguments, METH_O, NULL},
    {"memory", memory, METH_O, NULL},
    {"set_version", set_version, METH_VARARGS, NULL},
    {"happens", happens, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_tracer(PyObject *m) { return tp_py_add_submodule(m, "_tracer", functions); }
