/* gather.h: reading and writing places of a tensor that an index tensor names along one dimension. */
#pragma once

#include "core/tensor.h"

typedef enum {
    TP_PLACES_GET, /* other = self[index] */
    TP_PLACES_SET, /* self[index] = other; of several, the last */
    TP_PLACES_ADD, /* self[index] += other, in the order of the index along the dimension */
    TP_PLACES_MUL,
    TP_PLACES_MIN, /* NaN wins */
    TP_PLACES_MAX,
    TP_NUM_PLACES
} tp_places_op;

/* For every element of index (int64, checked to be in range): self at that place along `dim` and else at the element's
 * own coordinates, against other at the element's coordinates. self and other have one dtype; any strides, 0 among them
 * for index and for an `other` that is only read. */
int tp_places_run(tp_places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other);
