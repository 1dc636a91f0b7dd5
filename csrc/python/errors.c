/* errors.c: the core's pending error becomes a Python exception, and the other way round. */
#include "python/common.h"

static PyObject *lin_alg_error; /* made when the module is */

int tp_py_init_errors(PyObject *m) {
    lin_alg_error = PyErr_NewExceptionWithDoc("tensorpy.linalg.LinAlgError",
                                              "A matrix has not the factorization or solution that was asked for.",
                                              PyExc_RuntimeError, NULL);
    return lin_alg_error ? PyModule_AddObjectRef(m, "_LinAlgError", lin_alg_error) : -1;
}

static PyObject *exception_class(tp_error_class cls) {
    switch (cls) {
    case TP_LinAlgError: return lin_alg_error ? lin_alg_error : PyExc_RuntimeError;
#define CASE(name) \
    case TP_##name: return PyExc_##name;
        CASE(TypeError)
        CASE(ValueError)
        CASE(IndexError)
        CASE(NotImplementedError)
        CASE(MemoryError)
        CASE(OverflowError)
        CASE(AssertionError)
        CASE(BufferError)
#undef CASE
    default: return PyExc_RuntimeError;
    }
}

PyObject *tp_py_raise(void) {
    tp_error_class cls = tp_error_pending();
    if (cls == TP_PythonError && PyErr_Occurred()) {
        tp_error_clear();
        return NULL;
    }
    if (cls == TP_NoError) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "tensorpy: a call failed without an error");
        return NULL;
    }
    PyErr_SetString(exception_class(cls), tp_error_message());
    tp_error_clear();
    return NULL;
}

int tp_py_check(int status) {
    if (status < 0) tp_py_raise();
    return status;
}

int tp_py_error_to_core(void) { return tp_fail(TP_PythonError, "a Python exception is pending"); }
