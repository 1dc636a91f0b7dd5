/* hooks.c: what Python is asked while the graph is made and run: hooks on gradients and on saved tensors, anomaly mode.
 *
 * Hooks on gradients are Python dicts that hang on the node, for a leaf on its autograd state. */
#include "python/autograd.h"
#include "python/returns.h"
#include "python/values.h"

#include "autograd/engine.h"
#include "plan/plan.h"

#include <string.h>

/* ---- dicts of hooks ---- */

tp_py_hooks *tp_py_hooks_ensure(tp_py_hooks **slot) {
    if (tp_py_tell_recorder("a hook is registered") < 0) return NULL;
    if (!*slot) *slot = PyMem_Calloc(1, sizeof **slot);
    if (!*slot) PyErr_NoMemory();
    return *slot;
}

PyObject *tp_py_dict_ensure(PyObject **slot) {
    if (!*slot) *slot = PyDict_New();
    return *slot;
}

/* _tensor_hooks(t): the dict of hooks on t's gradient. */
static PyObject *tensor_hooks(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_tensor_hooks() takes a Tensor");
    tp_tensor *t = tp_py_tensor_borrow(arg);
    tp_node *fn = tp_grad_fn_borrow(t);
    tp_autograd_meta *m = tp_autograd_meta_ensure(t);
    tp_py_hooks *hooks = m ? tp_py_hooks_ensure(fn ? &fn->hooks : &m->hooks) : NULL;
    PyObject *all = hooks ? tp_py_dict_ensure(&hooks->tensor) : NULL;
    if (!fn && !PyObject_GC_IsTracked(arg)) PyObject_GC_Track(arg); /* a hook may refer to its tensor */
    PyObject *number = all ? PyLong_FromLong(fn ? (long)m->output_nr : 0) : NULL;
    PyObject *dict = number ? PyDict_GetItemWithError(all, number) : NULL;
    if (number && !dict && !PyErr_Occurred()) {
        PyObject *fresh = PyDict_New();
        if (fresh && PyDict_SetItem(all, number, fresh) == 0) dict = fresh;
        Py_XDECREF(fresh);
    }
    Py_XDECREF(number);
    return Py_XNewRef(dict);
}

/* _accumulate_hooks(t): the dict of hooks that run when t's .grad has been added to. */
static PyObject *accumulate_hooks(PyObject *self, PyObject *arg) {
    (void)self;
    if (!tp_py_is_tensor(arg)) return PyErr_Format(PyExc_TypeError, "_accumulate_hooks() takes a Tensor");
    tp_autograd_meta *m = tp_autograd_meta_ensure(tp_py_tensor_borrow(arg));
    tp_py_hooks *hooks = m ? tp_py_hooks_ensure(&m->hooks) : NULL;
    if (hooks && !PyObject_GC_IsTracked(arg)) PyObject_GC_Track(arg);
    return hooks ? Py_XNewRef(tp_py_dict_ensure(&hooks->accumulated)) : NULL;
}

/* ---- running hooks ---- */

static const char *kind_of(const tp_tensor *t, tp_text *text) {
    char device[40];
    tp_text_add(text, "%s on %s of sizes ", tp_dtype_names[t->dtype], tp_device_print(t->device, device));
    tp_text_ints(text, tp_sizes(t));
    return text->text ? text->text : "";
}

/* What a hook puts in a gradient's place has its sizes, dtype and device. */
static int check_hooked(PyObject *hook, const tp_tensor *grad, PyObject *result) {
    if (!tp_py_is_tensor(result)) {
        PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%s': a hook returns a Tensor or None",
                     Py_TYPE(result)->tp_name);
        return -1;
    }
    const tp_tensor *t = tp_py_tensor_borrow(result);
    if (!grad || (tp_same_sizes(grad, t) && grad->dtype == t->dtype && tp_device_equal(grad->device, t->device)))
        return 0;
    tp_autotext was = {0}, is = {0};
    PyObject *name = PyObject_GetAttrString(hook, "__name__");
    if (!name) {
        PyErr_Clear();
        name = PyObject_Repr(hook);
    }
    PyErr_Format(PyExc_RuntimeError, "hook '%S' has changed the %s of value: from %s to %s", name,
                 tp_same_sizes(grad, t) ? "type" : "size", kind_of(grad, &was), kind_of(t, &is));
    Py_XDECREF(name);
    return -1;
}

/* Puts what a hook returned into a slot. */
static int replace_grad(PyObject *hook, tp_tensor **slot, PyObject *value) {
    if (value != Py_None && check_hooked(hook, *slot, value) < 0) return -1;
    tp_tensor *old = *slot;
    *slot = value == Py_None ? NULL : tp_retain(tp_py_tensor_borrow(value));
    tp_release(old);
    return 0;
}

/* None for all changes nothing; None for one takes that gradient away. */
static int replace_grads(PyObject *hook, tp_tensor **slots, int n, PyObject *value) {
    if (value == Py_None) return 0;
    PyObject *all = PyTuple_Check(value) ? Py_NewRef(value) : PyTuple_Pack(1, value);
    int status = all && PyTuple_GET_SIZE(all) == n ? 0 : -1;
    if (all && status < 0)
        PyErr_Format(PyExc_RuntimeError,
                     "hook %R has returned an incorrect number of values (got %zd, but expected %d)", hook,
                     PyTuple_GET_SIZE(all), n);
    for (int i = 0; status == 0 && i < n; i++) status = replace_grad(hook, &slots[i], PyTuple_GET_ITEM(all, i));
    Py_XDECREF(all);
    return status;
}

/* The callables of a dict, as they are now: a hook may remove itself. */
static PyObject *callables(PyObject *dict) { return dict ? PyDict_Values(dict) : PyList_New(0); }

static int run_tensor_hooks(PyObject *all, tp_tensor **grads, int count) {
    PyObject *items = all ? PyDict_Items(all) : PyList_New(0); /* a hook may add others */
    if (!items) return -1;
    if (PyList_GET_SIZE(items)) tp_region_spoil("a hook of a tensor runs");
    for (Py_ssize_t k = 0; k < PyList_GET_SIZE(items); k++) {
        long nr = PyLong_AsLong(PyTuple_GET_ITEM(PyList_GET_ITEM(items, k), 0));
        PyObject *list = callables(PyTuple_GET_ITEM(PyList_GET_ITEM(items, k), 1));
        for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
            if (nr >= count) continue; /* None for a gradient that has not arrived: others of the node have */
            PyObject *grad = grads[nr] ? tp_py_wrap(grads[nr]) : Py_NewRef(Py_None), *hook = PyList_GET_ITEM(list, i);
            PyObject *result = grad ? PyObject_CallOneArg(hook, grad) : NULL;
            if (!result || (result != Py_None && replace_grad(hook, &grads[nr], result) < 0)) Py_CLEAR(list);
            Py_XDECREF(grad);
            Py_XDECREF(result);
        }
        if (!list) {
            Py_DECREF(items);
            return -1;
        }
        Py_DECREF(list);
    }
    Py_DECREF(items);
    return 0;
}

static int hooks_before(tp_py_hooks *hooks, tp_tensor **grads, int count, bool runs) {
    PyGILState_STATE gil = PyGILState_Ensure();
    int status = run_tensor_hooks(hooks->tensor, grads, count);
    PyObject *list = status == 0 ? callables(runs ? hooks->before : NULL) : NULL;
    if (list && PyList_GET_SIZE(list)) tp_region_spoil("a hook of a node runs");
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *tuple = tp_py_gradients(grads, count), *hook = PyList_GET_ITEM(list, i);
        PyObject *result = tuple ? PyObject_CallOneArg(hook, tuple) : NULL;
        Py_XDECREF(tuple);
        if (!result || replace_grads(hook, grads, count, result) < 0) Py_CLEAR(list);
        Py_XDECREF(result);
    }
    if (!list) tp_py_error_to_core();
    status = list ? 0 : -1;
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static int hooks_after(tp_py_hooks *hooks, tp_tensor **out, int nout, tp_tensor **grads, int ngrads) {
    if (!hooks->after) return 0;
    tp_region_spoil("a hook of a node runs");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = callables(hooks->after);
    for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(list); i++) {
        PyObject *inputs = tp_py_gradients(out, nout), *outputs = tp_py_gradients(grads, ngrads);
        PyObject *hook = PyList_GET_ITEM(list, i),
                 *result = inputs && outputs ? PyObject_CallFunctionObjArgs(hook, inputs, outputs, NULL) : NULL;
        Py_XDECREF(inputs);
        Py_XDECREF(outputs);
        if (!result || replace_grads(hook, out, nout, result) < 0) Py_CLEAR(list);
        Py_XDECREF(result);
    }
    if (!list) tp_py_error_to_core();
    int status = list ? 0 : -1;
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static int hooks_accumulated(tp_py_hooks *hooks, tp_tensor *leaf) {
    if (!hooks->accumulated) return 0;
    tp_region_spoil("a hook of a gradient runs");
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *list = callables(hooks->accumulated), *object = list ? tp_py_wrap(leaf) : NULL;
    for (Py_ssize_t i = 0; object && list && i < PyList_GET_SIZE(list); i++) {
        PyObject *result = PyObject_CallOneArg(PyList_GET_ITEM(list, i), object);
        if (result && result != Py_None)
            PyErr_Format(tp_py_is_tensor(result) ? PyExc_RuntimeError : PyExc_TypeError,
                         "Tensor post accumulate grad hooks should return None. Got %s", Py_TYPE(result)->tp_name);
        if (!result || result != Py_None) Py_CLEAR(object);
        Py_XDECREF(result);
    }
    int status = object ? 0 : tp_py_error_to_core();
    Py_XDECREF(object);
    Py_XDECREF(list);
    PyGILState_Release(gil);
    return status;
}

static void free_hooks(tp_py_hooks *hooks) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(hooks->tensor);
    Py_XDECREF(hooks->before);
    Py_XDECREF(hooks->after);
    Py_XDECREF(hooks->accumulated);
    Py_XDECREF(hooks->metadata);
    PyMem_Free(hooks);
    PyGILState_Release(gil);
}

static void forget_node(void *pyobj) { (void)pyobj; /* cannot happen: the object owns the node */ }

/* ---- anomaly mode ---- */

/* The Python stack as text, malloc'd: where the forward call is. */
static char *where(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *module = PyImport_ImportModule("traceback");
    PyObject *list = module ? PyObject_CallMethod(module, "format_stack", NULL) : NULL;
    PyObject *empty = PyUnicode_FromString("");
    PyObject *text = list && empty ? PyUnicode_Join(empty, list) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    char *copy = utf8 ? strdup(utf8) : NULL;
    PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(list);
    Py_XDECREF(empty);
    Py_XDECREF(text);
    PyGILState_Release(gil);
    return copy;
}

/* A warning that is an error is shown: the call's own error is what is raised. */
static void warn_of_trace(const char *what, const tp_node *n, const char *traceback) {
    const char *where = n->trace ? n->trace->where : NULL;
    if (!where)
        traceback = "No forward pass information available: detect_anomaly was off when the call was made. Switch it "
                    "on for the forward pass, too.";
    if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%s %s. %s%s", what, n->type->name, traceback, where ? where : "") < 0)
        PyErr_Print();
}

/* The failing node's forward call, then those of the nodes whose formulas made it, one after another. */
static int show_anomaly(const tp_node *n) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    warn_of_trace("Error detected in", n, "Traceback of forward call that caused the error:\n");
    while ((n = n->trace ? n->trace->parent : NULL))
        warn_of_trace("Previous calculation was induced by", n,
                      "Traceback of forward call that induced the previous calculation:\n");
    PyErr_Restore(type, value, traceback);
    PyGILState_Release(gil);
    return 0;
}

static PyObject *set_anomaly(PyObject *self, PyObject *args) {
    (void)self;
    int enabled, check_nan;
    if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return NULL;
    uint8_t mode = (uint8_t)((enabled ? TP_ANOMALY_ON : 0) | (check_nan ? TP_ANOMALY_NAN : 0));
    atomic_store_explicit(&tp_anomaly, mode, memory_order_relaxed);
    Py_RETURN_NONE;
}
static PyObject *get_anomaly(PyObject *self, PyObject *unused) {
    (void)self, (void)unused;
    uint8_t mode = atomic_load_explicit(&tp_anomaly, memory_order_relaxed);
    return Py_BuildValue("NN", PyBool_FromLong(mode & TP_ANOMALY_ON), PyBool_FromLong(mode & TP_ANOMALY_NAN));
}

/* ---- saved-tensor hooks ---- */

/* A tensor that stands packed in a node: a pair (unpack hook, what pack made). The hooks of a thread are a tuple (pack,
 * unpack, the outer ones or None), which the thread owns: a context that is entered by hand may be forgotten. */
static void *pack_saved(tp_tensor *t) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *hooks = Py_NewRef((PyObject *)tp_tls.saved_hooks), *object = tp_py_wrap(t), *pair = NULL;
    tp_set_saved_hooks(NULL); /* what a hook computes is not packed again */
    PyObject *packed = object ? PyObject_CallOneArg(PyTuple_GET_ITEM(hooks, 0), object) : NULL;
    tp_set_saved_hooks(hooks);
    if (packed) pair = PyTuple_Pack(2, PyTuple_GET_ITEM(hooks, 1), packed);
    Py_XDECREF(packed);
    Py_XDECREF(object);
    Py_DECREF(hooks);
    if (!pair) tp_py_error_to_core();
    PyGILState_Release(gil);
    return pair;
}

static tp_tensor *unpack_saved(void *packed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *pair = Py_NewRef((PyObject *)packed); /* another thread's backward may let it go meanwhile */
    PyObject *object = PyObject_CallOneArg(PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1));
    Py_DECREF(pair);
    if (object && !tp_py_is_tensor(object)) {
        PyErr_Format(PyExc_TypeError,
                     "Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                     Py_TYPE(object)->tp_name);
        Py_CLEAR(object);
    }
    tp_tensor *t = object ? tp_retain(tp_py_tensor_borrow(object)) : NULL;
    Py_XDECREF(object);
    if (!t) tp_py_error_to_core();
    PyGILState_Release(gil);
    return t;
}

static void free_packed(void *packed) {
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)packed);
    PyGILState_Release(gil);
}

/* _set_saved_hooks(hooks) -> the previous ones: None, or what _push_saved_hooks has set. */
static PyObject *set_saved_hooks(PyObject *self TP_UNUSED, PyObject *arg) {
    if (arg != Py_None && !(PyTuple_Check(arg) && PyTuple_GET_SIZE(arg) == 3))
        return PyErr_Format(PyExc_TypeError, "_set_saved_hooks() takes hooks or None");
    PyObject *previous = tp_tls.saved_hooks ? (PyObject *)tp_tls.saved_hooks : Py_NewRef(Py_None);
    tp_set_saved_hooks(arg == Py_None ? NULL : Py_NewRef(arg));
    return previous;
}

/* _push_saved_hooks(pack, unpack) */
static PyObject *push_saved_hooks(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *pack, *unpack;
    if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return NULL;
    PyObject *outer = tp_tls.saved_hooks ? (PyObject *)tp_tls.saved_hooks : Py_NewRef(Py_None);
    PyObject *hooks = PyTuple_Pack(3, pack, unpack, outer);
    if (!hooks) return NULL;
    tp_set_saved_hooks(hooks);
    Py_DECREF(outer);
    Py_RETURN_NONE;
}

/* _pop_saved_hooks(): whatever are the innermost ones, none is fine: contexts may be left in any order. */
static PyObject *pop_saved_hooks(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    PyObject *hooks = tp_tls.saved_hooks;
    if (!hooks) Py_RETURN_NONE;
    PyObject *outer = PyTuple_GET_ITEM(hooks, 2);
    tp_set_saved_hooks(outer == Py_None ? NULL : Py_NewRef(outer));
    Py_DECREF(hooks);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_tensor_hooks", tensor_hooks, METH_O, NULL},
    {"_accumulate_hooks", accumulate_hooks, METH_O, NULL},
    {"_set_saved_hooks", set_saved_hooks, METH_O, NULL},
    {"_push_saved_hooks", push_saved_hooks, METH_VARARGS, NULL},
    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, NULL},
    {"_set_anomaly", set_anomaly, METH_VARARGS, NULL},
    {"_get_anomaly", get_anomaly, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_hooks(PyObject *m) {
    tp_autograd_host = (tp_autograd_host_hooks){
        .before = hooks_before,
        .after = hooks_after,
        .accumulated = hooks_accumulated,
        .free_hooks = free_hooks,
        .forget_node = forget_node,
        .where = where,
        .pack = pack_saved,
        .unpack = unpack_saved,
        .free_packed = free_packed,
        .anomaly = show_anomaly,
    };
    return tp_py_add_functions(m, NULL, (PyMethodDef *const[]){functions, NULL});
}
