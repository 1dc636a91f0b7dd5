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

/* Whether a signal's handler has raised the exception that the core's error stands for. */
static _Thread_local bool is_of_handler;

/* The error lies with the interpreter now. */
static void hand_over(void) {
    tp_saved_error gone = tp_error_take();
    tp_text_free(&gone.message);
    is_of_handler = false;
}

PyObject *tp_py_raise(void) {
    tp_error_class cls = tp_error_pending();
    if (cls == TP_PythonError && PyErr_Occurred()) {
        hand_over();
        return NULL;
    }
    if (cls == TP_NoError) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "tensorpy: a call failed without an error");
        return NULL;
    }
    PyErr_SetString(exception_class(cls), tp_error_message());
    hand_over();
    return NULL;
}

PyObject *tp_py_raise_backend(void) {
    static PyObject *backend_error;
    if (tp_error_pending() != TP_RuntimeError) return tp_py_raise();
    if (!backend_error) {
        PyObject *module = PyImport_ImportModule("tensorpy.distributed.errors");
        backend_error = module ? PyObject_GetAttrString(module, "DistBackendError") : NULL;
        Py_XDECREF(module);
        if (!backend_error) return NULL;
    }
    PyErr_SetString(backend_error, tp_error_message());
    tp_error_clear();
    return NULL;
}

int tp_py_check(int status) {
    if (status < 0) tp_py_raise();
    return status;
}

int tp_py_error_to_core(void) { return tp_fail(TP_PythonError, "a Python exception is pending"); }

int tp_py_run_handlers(void) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback); /* of a call that has failed */
    if (PyErr_CheckSignals() == 0) {
        PyErr_Restore(type, value, traceback);
        return 0;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    is_of_handler = true;
    return tp_py_error_to_core();
}

static int raise_again(void *exception) {
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    Py_DECREF((PyObject *)exception);
    return -1;
}

/* What a handler has raised is no answer to the call at hand: it comes again at the interpreter's next instruction. */
void tp_py_forget_error(void) {
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (is_of_handler && type) {
        PyErr_NormalizeException(&type, &value, &traceback);
        if (traceback) PyException_SetTraceback(value, traceback);
        if (Py_AddPendingCall(raise_again, Py_NewRef(value)) < 0) Py_DECREF(value);
    }
    is_of_handler = false;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    PyGILState_Release(gil);
}
