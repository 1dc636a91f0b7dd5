/* complain.h: what is said of arguments that do not fit: which element, which keyword, and what was meant. */
#pragma once

#include "python/parse.h"

/* "argument 'size' (position 1) must be tuple of ints, but found element of type str at pos 0"; `why` may be NULL.
 * The position counts from 1, and is 0 of an argument by keyword. */
void tp_py_complain_type(tp_text *why, const tp_py_param *p, Py_ssize_t position, PyObject *o) TP_COLD;
/* The same of n arguments that are one list: view(2, "a"). */
void tp_py_complain_spread(tp_text *why, const tp_py_param *p, Py_ssize_t position, PyObject *const *items,
                           Py_ssize_t n) TP_COLD;
/* "(Tensor self, int dim, *, dtype dtype=None)" */
void tp_py_describe_signature(tp_text *text, const tp_py_signature *s) TP_COLD;
/* A name among `n` (some of them NULL) that `text` may be a slip of the pen for, or NULL. */
const char *tp_py_meant(const char *text, const char *const *names, int n) TP_COLD;
/* TypeError: an unexpected keyword; NULL. */
PyObject *tp_py_unexpected(const char *function, PyObject *keyword, const char *const *names, int n) TP_COLD;
