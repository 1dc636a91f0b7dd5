/* methods.h: conversions of a tensor to a Python number, and other functions for the type's slots. */
#pragma once

#include "python/common.h"

int tp_py_tensor_bool(PyObject *o);
PyObject *tp_py_tensor_int(PyObject *o);
PyObject *tp_py_tensor_float(PyObject *o);
PyObject *tp_py_tensor_index(PyObject *o);
PyObject *tp_py_tensor_repr(PyObject *o);
PyObject *tp_py_tensor_iter(PyObject *o); /* tp_iter: over the first dimension */

PyObject *tp_py_nested_size_steal(PyObject *self, PyObject *dim);

/* ---- pickle.c ---- */
PyObject *tp_py_tensor_reduce_ex(PyObject *self, PyObject *protocol);
PyObject *tp_py_tensor_deepcopy(PyObject *self, PyObject *memo);
PyObject *tp_py_tensor_storage(PyObject *self, PyObject *unused);
int tp_py_init_pickle(PyObject *m);
