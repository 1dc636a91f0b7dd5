/* values.h: boxed values as Python objects, for kernels that are written in Python and calls of operators that have no
 * generated glue. */
#pragma once

#include "python/common.h"

/* An argument: new, or NULL with the exception set. Lists are lists; None is one that is absent. */
PyObject *tp_py_from_argument(const tp_value *v);
/* A call's results, taken over: None, the result, or a tuple of them. The one of `((Tensor))` is a tuple too. */
PyObject *tp_py_from_results_steal(const tp_op *op, tp_value *results);
/* A result of an operator that is called by its full name: a tuple of tensors as a list, anything else as it is. */
PyObject *tp_py_list_steal(PyObject *result);
/* Whether argument k is written and given back: all that are written, or with out= those alone (batch_norm's running
 * statistics are written beside them). */
bool tp_py_is_given_back(const tp_op_info *info, int k);
/* The argument that result i of a call is, where the operator gives back what it writes: such a call has no results of
 * its own (tp_boxed_fn). NULL where a result is new. */
const tp_value *tp_py_written_argument(const tp_op *op, const tp_value *args, int i);
/* What a Python kernel returned, as the operator's results; -1 and the core's error set, with `where` (the kernel's
 * registration) in the message, if it is not what the schema says. */
int tp_py_to_results(const tp_op *op, PyObject *returned, const char *where, tp_value *results);
