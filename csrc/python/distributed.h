/* distributed.h: what the files about worlds of several processes share. */
#pragma once

#include "python/common.h"

/* A failure of an engine, a process or a wait is a DistBackendError; another one is raised as it is. Returns NULL. */
PyObject *tp_py_raise_backend(void);
/* The class Reducer (reducer.c). */
int tp_py_init_reducer(PyObject *module);
