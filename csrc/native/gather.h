/* gather.h: index_select and its kin under the name of the operator that stands on them, which errors give. */
#pragma once

#include "cpu/gather.h"

/* Rows of self along a dimension; new. `wrap`: negative indices count from the end. */
tp_tensor *tp_index_take(const char *op, tp_tensor *self, int64_t dim, tp_tensor *index, bool wrap);
/* The rows of source into those of self; both have one dtype. */
int tp_index_write(const char *op, tp_places_op how, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source,
                   bool wrap);
