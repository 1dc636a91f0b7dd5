/* checks.h: what operators of several families ask of their arguments. */
#pragma once

#include "core/tensor.h"

/* Whether a tensor's one element is not zero, for a check of the library's own. What a program asks, and decides
 * something by, is tp_is_nonzero. */
int tp_holds(tp_tensor *t, bool *holds);

/* tp_wrap_dim, and an IndexError for a tensor that has no dimension. */
int64_t tp_wrap_own_dim(int64_t dim, const tp_tensor *t);

/* RuntimeError unless t, the argument `name` of op, is NULL or of this dtype. */
int tp_check_dtype(const char *op, const char *name, const tp_tensor *t, tp_dtype wanted);
/* The weights of a normalisation: all of one dtype, which is the input's, or float32 beside 16-bit floats. */
int tp_check_norm_dtypes(const char *op, const tp_tensor *input, tp_tensor *const *params, const char *const *names,
                         int n);
/* RuntimeError where two factors differ in dtype; names: "m1 and m2", what they are called. */
int tp_check_same_dtype(const char *names, const tp_tensor *a, const tp_tensor *b);
