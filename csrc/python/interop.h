/* interop.h: other libraries' arrays as tensors, without copies; NumPy is never imported for it. */
#pragma once

#include "python/common.h"

/* Whether o is a numpy.ndarray; false without NumPy in the process. */
bool tp_py_is_ndarray(PyObject *o);
/* Whether o is a NumPy scalar (numpy.float32(1)) or an array without dimensions. */
bool tp_py_is_numpy_scalar(PyObject *o);
/* The dtype and value of a scalar; false (without an exception) for a type that has no dtype here. */
bool tp_py_numpy_scalar(PyObject *o, tp_dtype *dtype, tp_scalar *value);
/* A NumPy scalar's type: its dtype, and where in the object the number is. NULL for any other object. */
typedef struct {
    PyTypeObject *type;
    tp_dtype dtype;
    Py_ssize_t offset;
} tp_py_scalar_type;
const tp_py_scalar_type *tp_py_scalar_type_of(PyObject *o);
/* A CPU tensor over the array's memory, which it keeps alive; new, or NULL and the exception set. */
tp_tensor *tp_py_alias_ndarray(PyObject *array, bool warn_readonly);
/* The same for any object with the buffer protocol. */
tp_tensor *tp_py_alias_buffer(PyObject *o, bool warn_readonly);
/* The array's buffer, to be released with PyBuffer_Release, and its dtype; -1 and the exception set if it has none
 * here. */
int tp_py_read_ndarray(PyObject *array, Py_buffer *view, tp_dtype *dtype);
int tp_py_warn_readonly(const char *what);

/* ---- interop_dlpack.c ---- */
/* The tensor of an object with __dlpack__, or of a capsule; `device` and `copy` as from_dlpack has them, or None. */
tp_tensor *tp_py_from_dlpack(PyObject *o, PyObject *device, PyObject *copy);
PyObject *tp_py_dlpack_import(PyObject *module, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *tp_py_dlpack_export(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
PyObject *tp_py_dlpack_device(PyObject *self, PyObject *unused);
