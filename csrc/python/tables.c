/* tables.c: tables of numbers that Python has and an operator asks for (tp_host_table):
 * tensorpy._package.tables.<name>(rows) gives a tensor of the CPU. */
#include "core/host.h"
#include "python/common.h"

static tp_tensor *table_of(const char *name, int64_t rows) {
    PyObject *module = PyImport_ImportModule("tensorpy._package.tables");
    PyObject *table = module ? PyObject_CallMethod(module, name, "L", (long long)rows) : NULL;
    tp_tensor *t = table && tp_py_is_tensor(table) ? tp_retain(tp_py_tensor_borrow(table)) : NULL;
    if (table && !t)
        PyErr_Format(PyExc_TypeError, "the table '%s' is a %s, not a tensor", name, Py_TYPE(table)->tp_name);
    Py_XDECREF(table);
    Py_XDECREF(module);
    if (!t) tp_py_error_to_core();
    return t;
}

static tp_tensor *host_table(const char *name, int64_t rows) {
    PyGILState_STATE state = PyGILState_Ensure();
    tp_tensor *t = table_of(name, rows);
    PyGILState_Release(state);
    return t;
}

int tp_py_init_tables(PyObject *m TP_UNUSED) {
    tp_set_host_tables(host_table);
    return 0;
}
