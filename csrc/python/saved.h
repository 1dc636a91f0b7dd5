/* saved.h: saved plans for Python: _save_plan, _load_plan, _run_plan (plan/saved.h). */
#pragma once

#include "python/common.h"

#include "plan/plan.h"

int tp_py_init_saved(PyObject *m);
