/* arguments.c: the arguments of hand-written functions, sorted by name. */
#include "python/arguments.h"

#include "python/complain.h"

static int find_name(const tp_py_arguments *a, PyObject *keyword) {
    for (int i = 0; a->names[i]; i++)
        if (PyUnicode_CompareWithASCIIString(keyword, a->names[i]) == 0) return i;
    return -1;
}

static int take_keyword(const tp_py_arguments *a, PyObject *keyword, PyObject *value, PyObject **slots) {
    int i = find_name(a, keyword);
    if (i < 0) {
        int n = 0;
        while (a->names[n]) n++;
        tp_py_unexpected(a->function, keyword, a->names, n);
        return -1;
    }
    if (slots[i]) {
        PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", a->function, a->names[i]);
        return -1;
    }
    slots[i] = value;
    return 0;
}

int tp_py_take_arguments(const tp_py_arguments *a, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                         PyObject **slots) {
    nargs = PyVectorcall_NARGS(nargs);
    if (nargs > a->npositional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given", a->function,
                     a->npositional, a->npositional == 1 ? "" : "s", nargs);
        return -1;
    }
    for (int i = 0; a->names[i]; i++) slots[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t k = 0; kwnames && k < PyTuple_GET_SIZE(kwnames); k++)
        if (take_keyword(a, PyTuple_GET_ITEM(kwnames, k), args[nargs + k], slots) < 0) return -1;
    for (int i = 0; i < a->nrequired; i++)
        if (!slots[i]) {
            PyErr_Format(PyExc_TypeError, "%s() missing the required argument '%s'", a->function, a->names[i]);
            return -1;
        }
    return 0;
}

static int wrong_type(const char *function, const char *name, const char *wanted, PyObject *o) {
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", function, name, wanted,
                 Py_TYPE(o)->tp_name);
    return -1;
}

int tp_py_take_dtype(const char *function, PyObject *o, tp_dtype *out) {
    if (!o || o == Py_None) return 0;
    int ok = tp_py_to_dtype(o, out);
    return ok > 0 ? 0 : ok < 0 ? -1 : wrong_type(function, "dtype", "a tensorpy.dtype", o);
}

int tp_py_take_device(const char *function, PyObject *o, tp_device *out) {
    if (!o || o == Py_None) return 0;
    int ok = tp_py_to_device(o, out);
    return ok > 0 ? 0 : ok < 0 ? -1 : wrong_type(function, "device", "a device or its name", o);
}

int tp_py_take_bool(PyObject *o, bool *out) {
    if (!o) return 0;
    int truth = PyObject_IsTrue(o);
    if (truth >= 0) *out = truth;
    return truth < 0 ? -1 : 0;
}

int tp_py_take_int(const char *function, const char *name, PyObject *o, int64_t *out) {
    if (!o) return 0;
    int ok = tp_py_to_int(o, out);
    return ok > 0 ? 0 : ok < 0 ? -1 : wrong_type(function, name, "int", o);
}
