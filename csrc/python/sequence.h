/* sequence.h: nested Python sequences as tensors, and what an object is to them. */
#pragma once

#include "python/common.h"

bool tp_py_is_text(PyObject *o);
bool tp_py_is_plain_number(PyObject *o); /* an exact float, int, bool or complex */
bool tp_py_is_sequence(PyObject *o);     /* whatever has items that could be elements: no text, tensor, dict */

/* A new CPU tensor of a number or of nested sequences of numbers, arrays and tensors; TP_NO_DTYPE: the dtype is found
 * from the elements. NULL with an exception set. */
tp_tensor *tp_py_from_sequence(PyObject *data, tp_dtype dtype);
