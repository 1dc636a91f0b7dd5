/* ops.h: operators by their full names, for tensorpy.ops. */
#pragma once

#include "python/parse.h"

/* The overload of an operator, made of its schema at first use. Lives for ever; NULL with the exception set. */
const tp_py_function *tp_py_overload(const tp_op *op);
/* The object of tensorpy.ops; new. */
PyObject *tp_py_overload_object(const tp_op *op);
/* What it calls. */
const tp_py_function *tp_py_function_of(PyObject *overload);

int tp_py_init_ops(PyObject *m);
int tp_py_init_resolve(PyObject *m);
