/* submodule.c: functions of the extension module, in it or in a module of their own. */
#include "python/common.h"
#include "python/help.h"
#include "python/returns.h"

int tp_py_add_functions(PyObject *m, const char *name, PyMethodDef *const *tables) {
    char qualified[64];
    snprintf(qualified, sizeof qualified, "tensorpy._C.%s", name ? name : "");
    PyObject *target = name ? PyModule_New(qualified) : Py_NewRef(m);
    int status = target ? 0 : -1;
    if (!name) tp_py_help_tables("", tables);
    for (; status == 0 && *tables; tables++) status = PyModule_AddFunctions(target, *tables);
    if (status == 0 && name) status = PyModule_AddObjectRef(m, name, target);
    Py_XDECREF(target);
    return status;
}

int tp_py_add_submodule(PyObject *m, const char *name, PyMethodDef *functions) {
    return tp_py_add_functions(m, name, (PyMethodDef *const[]){functions, NULL});
}
