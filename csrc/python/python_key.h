/* python_key.h: __torch_dispatch__: operators that classes and modes answer, below autograd.
 *
 * Note [Wrappers]
 * A class with a __torch_dispatch__ marks its objects' tensors with the key Python. One that _make_wrapper_subclass
 * made has sizes, a dtype and a device, and no elements: its key set has no backend's bit, so no kernel that computes
 * can be reached with it, and its storage has no memory. What reads memory by hand asks tp_is_wrapper. Layers above
 * (autograd, autocast, versions, views) treat it as any tensor: they look at its geometry only. */
#pragma once

#include "python/common.h"

#include "dispatch/key.h"

/* 0, or -1 raised: `what` needs the elements. */
int tp_py_refuse_wrapper(const tp_tensor *t, const char *what);

/* Whether a class of tensors has a __torch_dispatch__ of its own. */
bool tp_py_has_dispatch(PyTypeObject *type);
/* The overload as which Python is told of an operator: the same arguments fit. */
const tp_op *tp_py_asked_operator(const tp_op *op);
/* Whether this thread's modes are asked about operators. */
bool tp_py_has_dispatch_mode(void);
/* A tensor (stolen; NULL stays NULL) that was just made of a program's data, as the thread's modes want it: they are
 * asked about `lift_fresh`. NULL with the exception set. */
tp_tensor *tp_py_lift_steal(tp_tensor *t);

PyObject *tp_py_make_wrapper(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);
int tp_py_init_python_key(PyObject *m);
