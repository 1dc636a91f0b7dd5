/* arguments.h: the arguments of hand-written functions, sorted by name. */
#pragma once

#include "python/common.h"

typedef struct {
    const char *function;     /* for messages */
    const char *const *names; /* NULL-terminated */
    int npositional;          /* how many of them may be given by position */
    int nrequired;
} tp_py_arguments;

/* Puts each argument into its slot (borrowed; NULL if absent). 0, or -1 with a TypeError. */
int tp_py_take_arguments(const tp_py_arguments *a, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                         PyObject **slots);
/* Values of slots, where absent and None leave *out as it is. 0, or -1 with a TypeError that names the argument. */
int tp_py_take_dtype(const char *function, PyObject *o, tp_dtype *out);
int tp_py_take_device(const char *function, PyObject *o, tp_device *out);
int tp_py_take_bool(PyObject *o, bool *out);
int tp_py_take_int(const char *function, const char *name, PyObject *o, int64_t *out);

#define TP_PY_FASTCALL(fn) (PyCFunction)(void (*)(void))(fn), METH_FASTCALL | METH_KEYWORDS
