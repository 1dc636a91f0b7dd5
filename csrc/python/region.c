/* region.c: how a call leaves its region (plan/plan.h), and which line of the program made it. */
#include "python/region.h"

#include <frameobject.h>
#include <string.h>

PyObject *tp_py_close_region(tp_region_report *report, PyObject *result) {
    PyObject *type = NULL, *value = NULL, *traceback = NULL;
    if (!result) PyErr_Fetch(&type, &value, &traceback);
    int status = tp_region_leave(report);
    if (!result) {
        if (status < 0) {
            tp_error_clear();
            PyErr_Clear();
        }
        PyErr_Restore(type, value, traceback);
        return NULL;
    }
    if (status == 0) return result;
    Py_DECREF(result);
    return tp_py_raise();
}

static PyObject *globals_of(PyFrameObject *frame) {
#if PY_VERSION_HEX >= 0x030b0000
    return PyFrame_GetGlobals(frame);
#else
    return PyObject_GetAttrString((PyObject *)frame, "f_globals");
#endif
}

static bool is_of(const char *module, const char *package) {
    const size_t n = strlen(package);
    return strncmp(module, package, n) == 0 && (module[n] == '.' || !module[n]);
}

/* In a process that runs as PyTorch's the library's modules have PyTorch's names. */
static bool is_program(PyFrameObject *frame) {
    static PyObject *key;
    if (!key && !(key = PyUnicode_InternFromString("__name__"))) return false;
    PyObject *globals = globals_of(frame), *name = globals ? PyDict_GetItemWithError(globals, key) : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
    Py_XDECREF(globals);
    return !text || (!is_of(text, "tensorpy") && !is_of(text, "torch"));
}

PyObject *tp_py_place_of_program(void) {
    PyFrameObject *frame = (PyFrameObject *)Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame && !is_program(frame) && !PyErr_Occurred()) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
    }
    if (!frame) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    PyCodeObject *code = PyFrame_GetCode(frame);
    PyObject *place = PyErr_Occurred() ? NULL : Py_BuildValue("(Oi)", code->co_filename, PyFrame_GetLineNumber(frame));
    Py_DECREF(code);
    Py_DECREF(frame);
    return place;
}

PyObject *tp_py_said_place(PyObject *place) {
    if (place == Py_None) return Py_NewRef(Py_None);
    return PyUnicode_FromFormat("%U:%S", PyTuple_GET_ITEM(place, 0), PyTuple_GET_ITEM(place, 1));
}
