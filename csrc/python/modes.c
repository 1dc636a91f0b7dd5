/* modes.c: see modes.h. */
#include "python/modes.h"

PyObject *tp_py_modes(const char *name) {
    PyObject *dict = PyThreadState_GetDict(); /* borrowed */
    if (!dict) return PyErr_NoMemory();
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *list = key ? PyDict_GetItemWithError(dict, key) : NULL;
    if (key && !list && !PyErr_Occurred()) {
        list = PyList_New(0);
        if (list && PyDict_SetItem(dict, key, list) < 0) Py_CLEAR(list);
        Py_XDECREF(list); /* the dictionary's */
    }
    Py_XDECREF(key);
    return list;
}

PyObject *tp_py_modes_pop(PyObject *modes, const char *what) {
    Py_ssize_t n = PyList_GET_SIZE(modes);
    if (n == 0) return PyErr_Format(PyExc_RuntimeError, "no %s is on in this thread", what);
    PyObject *mode = Py_NewRef(PyList_GET_ITEM(modes, n - 1));
    if (PyList_SetSlice(modes, n - 1, n, NULL) < 0) Py_CLEAR(mode);
    return mode;
}

PyObject *tp_py_types_of(PyObject *list) {
    PyObject *types = PyTuple_New(PyList_GET_SIZE(list));
    for (Py_ssize_t i = 0; types && i < PyList_GET_SIZE(list); i++)
        PyTuple_SET_ITEM(types, i, Py_NewRef((PyObject *)Py_TYPE(PyList_GET_ITEM(list, i))));
    return types;
}
