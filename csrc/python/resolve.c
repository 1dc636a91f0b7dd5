/* resolve.c: which overload the arguments of a Python call choose, without the call: what dispatch.explain shows.
 *
 * The tables and the parser are those of the calls themselves (parse.h), so that the two cannot differ. */
#include "python/ops.h"

#include "dispatch/entry.h"
#include "python/arguments.h"

#include <string.h>

typedef struct {
    const tp_py_function *function;
    bool method;
} named_function;

static const tp_py_function *find_in(const tp_py_function *const *list, const char *name) {
    for (; *list; list++)
        if (strcmp((*list)->name, name) == 0) return *list;
    return NULL;
}

/* "add" as users call it, a function before a method; "add.Tensor", and what has no Python name, by itself. */
static named_function find(const char *name) {
    const tp_py_function *f = find_in(tp_py_functions, name);
    if (f) return (named_function){f, false};
    if ((f = find_in(tp_py_methods, name))) return (named_function){f, true};
    const tp_op *op = tp_find_op_qualified(name);
    return (named_function){op ? tp_py_overload(op) : NULL, false};
}

/* The keys that the call starts with, before the thread's sets; of a factory also the backend that it selects. */
static tp_keyset keys_of(const tp_py_signature *s, const tp_py_args *a) {
    tp_keyset keys = tp_keys_of_values(a->values, s->nparams);
    for (int i = 0; keys == TP_FACTORY_KEYS && i < s->nparams; i++)
        if (s->params[i].tag == TP_DEVICE)
            keys |= tp_keys_selected(a->values[i].tag == TP_DEVICE ? a->values[i].device : TP_NO_DEVICE);
    return keys;
}

/* _resolve(name, *args, **kwargs): the overload's name and the keys of the arguments. */
static PyObject *resolve(PyObject *module TP_UNUSED, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    const char *name = nargs > 0 ? PyUnicode_AsUTF8(args[0]) : NULL;
    if (!name) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "_resolve() takes an operator's name");
    named_function found = find(name);
    if (!found.function && PyErr_Occurred()) return NULL;
    if (!found.function)
        return PyErr_Format(PyExc_ValueError, "there is no operator '%s'; tensorpy.dispatch.operators() lists all",
                            name);
    PyObject *self = found.method && nargs > 1 ? args[1] : NULL;
    Py_ssize_t skip = self ? 2 : 1;
    tp_py_args a;
    const tp_py_signature *s = tp_py_select(found.function, &a, self, args + skip, nargs - skip, kwnames);
    if (!s) return NULL;
    PyObject *result = Py_BuildValue("sK", a.out && s->out ? s->out : s->op, (unsigned long long)keys_of(s, &a));
    tp_py_args_free(&a);
    return result;
}

/* One row per parameter: (name, type, keyword-only, required). */
static PyObject *describe_parameters(const tp_py_signature *s) {
    PyObject *list = PyList_New(s->nparams);
    for (int i = 0; list && i < s->nparams; i++) {
        const tp_py_param *p = &s->params[i];
        PyObject *row = Py_BuildValue("ssNN", p->name, p->type, PyBool_FromLong(p->flags & TP_PARAM_KEYWORD),
                                      PyBool_FromLong(!(p->flags & TP_PARAM_DEFAULT)));
        if (!row) Py_CLEAR(list);
        else PyList_SET_ITEM(list, i, row);
    }
    return list;
}

/* _signatures(name, method): (overload, out= variant, spreads, parameters) for each, in the order in which they are
 * tried. */
static PyObject *signatures(PyObject *module TP_UNUSED, PyObject *args) {
    const char *name;
    int method;
    if (!PyArg_ParseTuple(args, "sp", &name, &method)) return NULL;
    const tp_py_function *f = find_in(method ? tp_py_methods : tp_py_functions, name);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && f && i < f->nsignatures; i++) {
        const tp_py_signature *s = &f->signatures[i];
        PyObject *row = Py_BuildValue("szNN", s->op, s->out, PyBool_FromLong(s->varargs), describe_parameters(s));
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef functions[] = {
    {"_resolve", TP_PY_FASTCALL(resolve), NULL},
    {"_signatures", signatures, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_resolve(PyObject *m) { return PyModule_AddFunctions(m, functions); }
