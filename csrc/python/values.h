/* values.h: boxed values as Python objects, for kernels that are written in Python and calls of operators that have no
 * generated glue. */
#pragma once

#include "python/common.h"

/* An argument: new, or NULL with the exception set. Lists are lists; None is one that is absent. */
PyObject *tp_py_from_argument(const tp_value *v);
/* A call's results, taken over: None, the result, or a tuple of them. */
PyObject *tp_py_from_results_steal(const tp_op *op, tp_value *results);
/* What a Python kernel returned, as the operator's results; -1 and the core's error set, with `where` (the kernel's
 * registration) in the message, if it is not what the schema says. */
int tp_py_to_results(const tp_op *op, PyObject *returned, const char *where, tp_value *results);
