/* saved.h: saved plans for Python: _save_plan, _load_plan, _run_plan (plan/saved.h). */
#pragma once

#include "python/common.h"

#include "plan/plan.h"

int tp_py_init_saved(PyObject *m);

/* compile.c */
/* Closes this thread's region after a call that gave `result`, which is stolen and given back, or NULL raised: an
 * exception of the call's stays the exception. */
PyObject *tp_py_close_region(tp_region_report *report, PyObject *result);
