/* complain.h: what is said of arguments that do not fit: which element, which keyword, and what was meant. */
#pragma once

#include "python/parse.h"

/* "argument 'tensors' must be tuple of Tensors, but element 1 is int"; `why` may be NULL. */
void tp_py_complain_type(tp_text *why, const tp_py_param *p, PyObject *o) TP_COLD;
/* The same of n arguments that are one list: view(2, "a"). */
void tp_py_complain_spread(tp_text *why, const tp_py_param *p, PyObject *const *items, Py_ssize_t n) TP_COLD;
/* A name among `n` (some of them NULL) that `text` may be a slip of the pen for, or NULL. */
const char *tp_py_meant(const char *text, const char *const *names, int n) TP_COLD;
/* TypeError: an unexpected keyword; NULL. */
PyObject *tp_py_unexpected(const char *function, PyObject *keyword, const char *const *names, int n) TP_COLD;
