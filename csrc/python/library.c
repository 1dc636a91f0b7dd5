/* library.c: operators and kernels from Python: what tensorpy/_library is made of.
 *
 * A kernel is a callable in a cell (Note [Registration lifetime]): its context is freed by whoever leaves it last, with
 * the host lock taken for it. */
#include "python/values.h"

#include "autograd/undifferentiated.h"
#include "dispatch/schema.h"
#include "outside/backend.h"
#include "outside/library.h"
#include "python/arguments.h"
#include "python/ops.h"

#include <stdlib.h>
#include <string.h>

/* ---- a kernel in Python ---- */

typedef struct {
    PyObject *callable;
    bool with_op;   /* a fallback's: it is given the operator first */
    bool with_keys; /* and the key set, before the arguments */
    bool records;   /* an autograd kernel: it is passed by where nothing wants a gradient */
    char where[];   /* file:line of the registration */
} py_kernel;

static void free_kernel(void *context) {
    py_kernel *k = context;
    PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF(k->callable);
    PyGILState_Release(gil);
    free(k);
}

/* The tensor among the arguments that a result is, though the schema says that it is new: -1 and the error set. */
static int check_aliases(const tp_op *op, const tp_value *args, const tp_value *results, const char *where) {
    char name[128];
    for (int i = 0; i < op->info->nreturns; i++) {
        if (results[i].tag != TP_TENSOR || op->info->returns[i].is_write) continue;
        for (int k = 0; k < op->info->nargs; k++)
            if (args[k].tag == TP_TENSOR && args[k].tensor == results[i].tensor && !strchr(op->info->schema, '!'))
                return tp_fail(TP_RuntimeError,
                               "%s: its kernel from %s returned its argument '%s', where the schema says that the "
                               "result is new; return a clone: %s",
                               tp_op_name(op, name), where, op->info->args[k].name, op->info->schema);
    }
    return 0;
}

/* The arguments as a vector: operator, key set, positional ones, keyword ones; new references. */
static int collect(const tp_op *op, tp_keyset ks, const tp_value *args, const py_kernel *k, PyObject **vector,
                   PyObject **names) {
    int n = 0, keywords = 0;
    if (k->with_op && !(vector[n++] = tp_py_overload_object(op))) return -1;
    if (k->with_keys && !(vector[n++] = PyLong_FromUnsignedLongLong(ks))) return -1;
    for (int i = 0; i < op->info->nargs; i++) {
        vector[n] = tp_py_from_argument(&args[i]);
        if (!vector[n]) return -1;
        n++;
        keywords += op->info->args[i].kwarg_only;
    }
    if (!keywords) return n;
    *names = PyTuple_New(keywords);
    for (int i = op->info->nargs - keywords, at = 0; *names && at < keywords; i++, at++) {
        PyObject *name = PyUnicode_InternFromString(op->info->args[i].name);
        if (!name) return -1;
        PyTuple_SET_ITEM(*names, at, name);
    }
    return *names ? n - keywords : -1;
}

static int run_kernel(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const py_kernel *k = context;
    if (k->records && !tp_is_recorded(op, args)) return tp_redispatch_boxed(op, ks & TP_BELOW_AUTOGRAD, args, results);
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *vector[TP_MOST_ARGUMENTS + 3] = {NULL}, *names = NULL, *returned = NULL;
    int n = collect(op, ks, args, k, vector, &names), status = -1;
    if (n >= 0) returned = PyObject_Vectorcall(k->callable, vector, (size_t)n, names);
    for (int i = 0; i < TP_MOST_ARGUMENTS + 2 && vector[i]; i++) Py_DECREF(vector[i]);
    Py_XDECREF(names);
    if (!returned) tp_py_error_to_core();
    else status = tp_py_to_results(op, returned, k->where, results);
    if (status == 0 && !k->with_op && (status = check_aliases(op, args, results, k->where)) < 0)
        for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]);
    Py_XDECREF(returned);
    PyGILState_Release(gil);
    return status;
}

static py_kernel *new_kernel(PyObject *callable, bool with_op, bool with_keys, bool records, const char *where) {
    py_kernel *k = malloc(sizeof *k + strlen(where) + 1);
    if (!k) return PyErr_NoMemory(), NULL;
    k->callable = Py_NewRef(callable);
    k->with_op = with_op;
    k->with_keys = with_keys;
    k->records = records;
    strcpy(k->where, where);
    return k;
}

/* ---- functions ---- */

static tp_op *find(const char *name) {
    tp_op *op = tp_find_op_qualified(name);
    if (!op) PyErr_Format(PyExc_RuntimeError, "there is no operator '%s': declare it first", name);
    return op;
}

/* _define(schema, source): the full name of the operator: "myops::scale". */
static PyObject *define(PyObject *module TP_UNUSED, PyObject *args) {
    const char *schema, *source;
    char name[128];
    if (!PyArg_ParseTuple(args, "ss", &schema, &source)) return NULL;
    const tp_op *op = tp_define(schema, source);
    return op ? PyUnicode_FromString(tp_op_name(op, name)) : tp_py_raise();
}

/* _tag(name, tags): the tags of an operator that Python declared. The texts stay, for a call may read them. */
static PyObject *tag(PyObject *module TP_UNUSED, PyObject *args) {
    const char *name, *text;
    PyObject *tags;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyTuple_Type, &tags)) return NULL;
    tp_op *op = find(name);
    if (!op) return NULL;
    if (!tp_is_definition(op)) return PyErr_Format(PyExc_RuntimeError, "%s is tensorpy's own", name);
    Py_ssize_t n = PyTuple_GET_SIZE(tags), size, room = 0;
    for (Py_ssize_t i = 0; i < n; room += size + 1, i++)
        if (!PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(tags, i), &size)) return NULL;
    const char **list = malloc(((size_t)n + 1) * sizeof *list + (size_t)room);
    if (!list) return PyErr_NoMemory();
    char *at = (char *)(list + n + 1);
    for (Py_ssize_t i = 0; i < n; at += size + 1, i++) {
        text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(tags, i), &size);
        list[i] = memcpy(at, text, (size_t)size + 1);
    }
    list[n] = NULL;
    tp_describe_tags(op, list);
    Py_RETURN_NONE;
}

/* _register(name, key, callable or None, with_keys, source, override, records=False): a handle. None: the key is passed
 * by. An empty name: for every operator that has no kernel of its own. */
static PyObject *register_kernel(PyObject *module TP_UNUSED, PyObject *args) {
    const char *name, *key_name, *where;
    PyObject *callable;
    int with_keys, override, records = 0;
    if (!PyArg_ParseTuple(args, "ssOpsp|p", &name, &key_name, &callable, &with_keys, &where, &override, &records))
        return NULL;
    tp_key key = tp_find_slot(key_name);
    tp_op *op = *name ? find(name) : NULL;
    if (*name && !op) return NULL;
    if (key == TP_KEY_Undefined || (!op && key >= TP_NUM_KEYS))
        return PyErr_Format(PyExc_RuntimeError, "there is no dispatch key '%s'%s", key_name,
                            key == TP_KEY_Undefined ? "" : " that a fallback can be for");
    py_kernel *k = callable == Py_None ? NULL : new_kernel(callable, !op, with_keys, records, where);
    if (callable != Py_None && !k) return NULL;
    tp_boxed_fn boxed = k ? run_kernel : NULL;
    int64_t handle = op ? tp_register(op, key, NULL, boxed, k, k ? free_kernel : NULL, where, override)
                        : tp_register_fallback(key, boxed, k, k ? free_kernel : NULL, where);
    if (handle > 0) return PyLong_FromLongLong(handle);
    if (k) free_kernel(k);
    return tp_py_raise();
}

/* _register_defaults(name): what an operator has at Autograd and ADInplaceOrView until it gets its own. */
static PyObject *register_defaults(PyObject *module TP_UNUSED, PyObject *arg) {
    const char *name = PyUnicode_AsUTF8(arg);
    tp_op *op = name ? find(name) : NULL;
    if (!op || tp_py_check(tp_register_defaults(op)) < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *deregister(PyObject *module TP_UNUSED, PyObject *arg) {
    int64_t handle = PyLong_AsLongLong(arg);
    if (PyErr_Occurred() || tp_py_check(tp_deregister(handle)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* ---- shared objects ---- */

/* The names of the operators that a loaded library declares. */
static PyObject *names_of(const char *path) {
    char name[128];
    int64_t n;
    tp_op *const *ops = tp_library_operators(path, &n);
    PyObject *names = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; names && i < n; i++) {
        PyObject *item = PyUnicode_FromString(tp_op_name(ops[i], name));
        if (item) PyList_SET_ITEM(names, (Py_ssize_t)i, item);
        else Py_CLEAR(names);
    }
    return names;
}

/* _library_methods(path): the names of those of them that are methods of Tensor. */
static PyObject *library_methods(PyObject *module TP_UNUSED, PyObject *path) {
    const char *text = PyUnicode_AsUTF8(path);
    char name[128];
    int64_t n = 0;
    tp_op *const *ops = text ? tp_library_operators(text, &n) : NULL;
    PyObject *names = text ? PyList_New(0) : NULL;
    for (int64_t i = 0; names && i < n; i++) {
        if (!tp_is_defined_method(ops[i])) continue;
        PyObject *item = PyUnicode_FromString(tp_op_name(ops[i], name));
        if (!item || PyList_Append(names, item) < 0) Py_CLEAR(names);
        Py_XDECREF(item);
    }
    return names;
}

/* _load_library(path): the names of the operators that it declares. */
static PyObject *load_library(PyObject *module TP_UNUSED, PyObject *path) {
    const char *text = PyUnicode_AsUTF8(path);
    if (!text || tp_py_check(tp_load_library(text)) < 0) return NULL;
    return names_of(text);
}

/* _unload_library(path): the names that are free now. */
static PyObject *unload_library(PyObject *module TP_UNUSED, PyObject *path) {
    const char *text = PyUnicode_AsUTF8(path);
    PyObject *names = text ? names_of(text) : NULL;
    if (names && tp_py_check(tp_unload_library(text)) < 0) Py_CLEAR(names);
    return names;
}

/* _withdraw(name): frees the name of an operator that was declared at run time. */
static PyObject *withdraw(PyObject *module TP_UNUSED, PyObject *arg) {
    const char *name = PyUnicode_AsUTF8(arg);
    tp_op *op = name ? find(name) : NULL;
    if (!op) return NULL;
    if (!tp_is_definition(op)) return PyErr_Format(PyExc_RuntimeError, "%s is tensorpy's own", name);
    tp_undefine(op);
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_define", define, METH_VARARGS, NULL},
    {"_library_methods", library_methods, METH_O, NULL},
    {"_register", register_kernel, METH_VARARGS, NULL},
    {"_register_defaults", register_defaults, METH_O, NULL},
    {"_deregister", deregister, METH_O, NULL},
    {"_load_library", load_library, METH_O, NULL},
    {"_unload_library", unload_library, METH_O, NULL},
    {"_tag", tag, METH_VARARGS, NULL},
    {"_withdraw", withdraw, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_library(PyObject *m) { return PyModule_AddFunctions(m, functions); }
