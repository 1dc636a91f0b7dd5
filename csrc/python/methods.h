/* methods.h: conversions of a tensor to a Python number, for the type's number slots. */
#pragma once

#include "python/common.h"

int tp_py_tensor_bool(PyObject *o);
PyObject *tp_py_tensor_int(PyObject *o);
PyObject *tp_py_tensor_float(PyObject *o);
PyObject *tp_py_tensor_index(PyObject *o);
PyObject *tp_py_tensor_repr(PyObject *o);
