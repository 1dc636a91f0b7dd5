/* ops.h: operators by their full names, for tensorpy.ops. */
#pragma once

#include "python/parse.h"

/* Generated: one entry per operator; its name is "add.Tensor". */
extern const tp_py_function tp_py_overloads[];
extern const int64_t tp_py_overload_count;

int tp_py_init_ops(PyObject *m);
int tp_py_init_resolve(PyObject *m);
