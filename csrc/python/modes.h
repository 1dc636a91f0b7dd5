/* modes.h: stacks of modes, objects of Python that are asked about the calls of a thread (overrides.c, python_key.c).
 *
 * A stack is a list in the thread's state dictionary, which frees it with the thread. A mode is off while its own
 * handler runs: who asks it pops it and pushes it again. */
#pragma once

#include "python/common.h"

/* The thread's stack of a name (borrowed), made at first use; NULL raises. */
PyObject *tp_py_modes(const char *name);
/* The innermost mode, new, off its stack; NULL raises: `what` has none on in this thread. */
PyObject *tp_py_modes_pop(PyObject *modes, const char *what);

/* The classes of the objects of a list, as a tuple: new. */
PyObject *tp_py_types_of(PyObject *list);
