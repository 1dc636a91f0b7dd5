/* nn_module.c: reading a parameter of an nn.Module, and calling one.
 *
 * tensorpy/nn/modules/module.py says both in Python: Module.__getattr__ and Module.__call__. A class that leaves them
 * as they are gets the functions here into its slots. They do the same for what is usual, tables that are dicts and no
 * hooks, and leave the rest to the two methods. When somebody assigns one of the names to a class, CPython fills the
 * slots of that class and of those below it anew, and so takes these functions out again. */
#include "python/common.h"

enum { PARAMETERS, BUFFERS, MODULES, TABLES };
enum { FORWARD, FORWARD_PRE, BACKWARD, BACKWARD_PRE, HOOKS };
#define MOST_ARGUMENTS 8

static PyObject *table_names[TABLES], *hook_names[HOOKS], *forward_name;
static PyObject *module_getattr, *module_call; /* Module's methods */
static PyObject *all_hooks[HOOKS];             /* the tables of hooks that see every module */

/* A module's attribute, or one of its parameters, buffers and modules. */
static PyObject *get_attribute(PyObject *self, PyObject *name) {
    PyObject *found = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
    if (found || PyErr_Occurred()) return found;
    PyObject *own = PyObject_GenericGetDict(self, NULL);
    if (!own) return NULL;
    for (int i = 0; i < TABLES; i++) {
        PyObject *table = PyDict_GetItemWithError(own, table_names[i]);
        if (!table || !PyDict_CheckExact(table)) break; /* of a kind of its own, or no module yet */
        if ((found = Py_XNewRef(PyDict_GetItemWithError(table, name)))) break;
    }
    Py_DECREF(own);
    if (found || PyErr_Occurred()) return found;
    return PyObject_CallFunctionObjArgs(module_getattr, self, name, NULL);
}

/* 1 if a call of the module is a call of its `forward`; -1: an exception is set. */
static int calls_forward(PyObject *own) {
    for (int i = 0; i < HOOKS; i++) {
        PyObject *hooks = PyDict_GetItemWithError(own, hook_names[i]);
        if (!hooks) return PyErr_Occurred() ? -1 : 0;
        if (!PyDict_Check(hooks) || PyDict_GET_SIZE(hooks) || PyDict_GET_SIZE(all_hooks[i])) return 0;
    }
    return PyDict_GetItemWithError(own, forward_name) ? 0 : PyErr_Occurred() ? -1 : 1;
}

static PyObject *with_self(PyObject *function, PyObject *self, PyObject *args, PyObject *kwargs) {
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    if (!kwargs && n <= MOST_ARGUMENTS) {
        PyObject *given[MOST_ARGUMENTS + 1] = {self};
        for (Py_ssize_t i = 0; i < n; i++) given[i + 1] = PyTuple_GET_ITEM(args, i);
        return PyObject_Vectorcall(function, given, (size_t)n + 1, NULL);
    }
    PyObject *all = PyTuple_New(n + 1);
    if (!all) return NULL;
    PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < n; i++) PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
    PyObject *result = PyObject_Call(function, all, kwargs);
    Py_DECREF(all);
    return result;
}

static PyObject *call(PyObject *self, PyObject *args, PyObject *kwargs) {
    PyObject *own = PyObject_GenericGetDict(self, NULL);
    int plain = own ? calls_forward(own) : -1;
    Py_XDECREF(own);
    if (plain < 0) return NULL;
    PyObject *forward = plain ? Py_XNewRef(_PyType_Lookup(Py_TYPE(self), forward_name)) : NULL;
    bool is_method = forward && PyFunction_Check(forward);
    PyObject *result = with_self(is_method ? forward : module_call, self, args, kwargs);
    Py_XDECREF(forward);
    return result;
}

/* _nn_module(cls, attributes, calls): which of the two the class leaves as Module has them. */
static PyObject *quicken(PyObject *self, PyObject *args) {
    (void)self;
    PyTypeObject *cls;
    int attributes, calls;
    if (!PyArg_ParseTuple(args, "O!pp", &PyType_Type, &cls, &attributes, &calls)) return NULL;
    if (!module_getattr) return PyErr_Format(PyExc_RuntimeError, "_nn_module before _set_nn_module"), NULL;
    if (attributes) cls->tp_getattro = get_attribute;
    if (calls) cls->tp_call = call;
    PyType_Modified(cls);
    Py_RETURN_NONE;
}

/* _set_nn_module(__getattr__, __call__, forward, forward_pre, backward, backward_pre): once. */
static PyObject *set_module(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *given[2], *tables[HOOKS];
    if (!PyArg_ParseTuple(args, "OOO!O!O!O!", &given[0], &given[1], &PyDict_Type, &tables[0], &PyDict_Type, &tables[1],
                          &PyDict_Type, &tables[2], &PyDict_Type, &tables[3]))
        return NULL;
    Py_XSETREF(module_getattr, Py_NewRef(given[0]));
    Py_XSETREF(module_call, Py_NewRef(given[1]));
    for (int i = 0; i < HOOKS; i++) Py_XSETREF(all_hooks[i], Py_NewRef(tables[i]));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_nn_module", quicken, METH_VARARGS, NULL},
    {"_set_nn_module", set_module, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_nn_module(PyObject *m) {
    static const char *const of_tables[] = {"_parameters", "_buffers", "_modules"};
    static const char *const of_hooks[] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                           "_backward_pre_hooks"};
    for (int i = 0; i < TABLES; i++)
        if (!(table_names[i] = PyUnicode_InternFromString(of_tables[i]))) return -1;
    for (int i = 0; i < HOOKS; i++)
        if (!(hook_names[i] = PyUnicode_InternFromString(of_hooks[i]))) return -1;
    if (!(forward_name = PyUnicode_InternFromString("forward"))) return -1;
    return PyModule_AddFunctions(m, functions);
}
