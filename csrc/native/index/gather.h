/* gather.h: index_select and its kin under a fault of the operator that stands on them (prim/fault.h). */
#pragma once

#include "Primitives.h"
#include "prim/fault.h"

/* One of the primitives put. */
typedef int (*tp_put_fn)(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap);

/* t, or a copy of it where it may share memory with what is written; new. Fails where it surely does. */
tp_tensor *tp_apart(tp_tensor *t, const tp_tensor *written);
/* Rows of self along a dimension; new. `wrap`: negative indices count from the end. */
tp_tensor *tp_index_take(int fault, tp_tensor *self, int64_t dim, tp_tensor *index, bool wrap);
/* The rows of source into those of self; both have one dtype. */
/* A warning that self, which is written, has elements that share memory; what they hold then is one of the values. */
int tp_warn_of_expanded(const char *op, const tp_tensor *self);
int tp_index_write(int fault, tp_put_fn how, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source,
                   bool wrap);
