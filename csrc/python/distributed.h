/* distributed.h: what the files about worlds of several processes share. */
#pragma once

#include "python/common.h"

/* The class Reducer (reducer.c). */
int tp_py_init_reducer(PyObject *module);
