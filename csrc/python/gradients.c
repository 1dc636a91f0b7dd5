/* gradients.c: lists of tensors of the graph, to Python and from it. */
#include "python/autograd.h"
#include "python/values.h"

PyObject *tp_py_gradients(tp_tensor *const *grads, int n) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *item = grads[i] ? tp_py_wrap(grads[i]) : Py_NewRef(Py_None);
        if (!item) Py_CLEAR(tuple);
        else PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

int tp_py_take_tensors(PyObject *o, bool optional, const char *what, tp_tensors *out) {
    *out = (tp_tensors){NULL, -1};
    if (o == Py_None) return 0;
    PyObject *fast = PySequence_Fast(o, what);
    if (!fast) return -1;
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast);
    tp_tensor **data = PyMem_Calloc((size_t)n + 1, sizeof *data);
    int status = data ? 0 : (PyErr_NoMemory(), -1);
    for (Py_ssize_t i = 0; status == 0 && i < n; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(fast, i);
        if (tp_py_is_tensor(item)) data[i] = tp_retain(tp_py_tensor_borrow(item));
        else if (optional && item == Py_None) data[i] = NULL;
        else
            status = (PyErr_Format(PyExc_TypeError, "%s: element %zd is a %s, not a Tensor", what, i,
                                   Py_TYPE(item)->tp_name),
                      -1);
    }
    Py_DECREF(fast);
    *out = (tp_tensors){data, data ? n : -1};
    return status;
}

void tp_py_free_tensors(tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++) tp_release(list.data[i]);
    PyMem_Free((void *)list.data);
}
