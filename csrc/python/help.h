/* help.h: the docstrings of functions and methods, which lie in a file beside the module. */
#pragma once

#include "python/common.h"

/* Generated: the tables of functions and methods in the order of the file's docstrings, the names of those that are
 * bound by hand and whose docstrings follow, in order, and the digest of all names. */
extern PyMethodDef *const tp_py_documented[];
extern const char *const tp_py_help_by_hand[];
extern const char tp_py_help_digest[];

/* Maps the file and has the rows of the generated tables point into it. Without the file, or with another build's, the
 * functions have no docstrings. */
void tp_py_help_open(void);

/* The same for tables that are bound by hand; `prefix` is "" or "Tensor.". */
void tp_py_help_tables(const char *prefix, PyMethodDef *const *tables);

/* The same for a type, before it is ready. */
void tp_py_help_type(PyTypeObject *type);
