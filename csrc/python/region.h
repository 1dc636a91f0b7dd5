/* region.h: what compiled and saved functions share: the end of a region, and the line of the program that runs. */
#pragma once

#include "python/common.h"

#include "plan/plan.h"

/* Closes this thread's region after a call that gave `result`, which is stolen and given back, or NULL raised: an
 * exception of the call's stays the exception. */
PyObject *tp_py_close_region(tp_region_report *report, PyObject *result);

/* The line of the program that runs, its innermost one outside of the package: (file, line). None: there is none. A new
 * reference; NULL raised. */
PyObject *tp_py_place_of_program(void);
/* The same in words: "file:line", or None. A new reference; NULL raised. */
PyObject *tp_py_said_place(PyObject *place);
