/* generator.h: the Python object of a random number generator. */
#pragma once

#include "core/generator.h"
#include "python/common.h"

typedef struct {
    PyObject_HEAD tp_generator *generator; /* owned */
} tp_py_generator;

extern PyTypeObject tp_py_generator_type;
PyObject *tp_py_generator_object(tp_generator *g); /* new, on a generator that it retains */
