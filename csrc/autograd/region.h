/* region.h: where a view lies in its base, and the same view of what is laid out as the base. */
#pragma once

#include "autograd/node.h"

/* A real view of a complex base (or the other way round) is described in real elements,
 * the complex side with a last dimension of two. */
typedef struct {
    tp_ints base_sizes, base_strides, sizes, strides;
    int64_t offset; /* of the view from the base, in elements */
    bool complex_base, complex_view;
    bool conjugated, negated; /* the view's elements with respect to the base's */
} tp_region;

/* r is freed by tp_region_free, after a failure too. */
int tp_region_save(tp_region *r, const tp_tensor *base, const tp_tensor *view);
void tp_region_free(tp_region *r);
/* A tensor read as the view reads the base. New; NULL stays NULL. */
tp_tensor *tp_read_as_view(const tp_region *r, tp_tensor *t);
/* The view's region of a tensor that is laid out as the base (in real elements, if complex_base). New. */
tp_tensor *tp_region_of(const tp_region *r, tp_tensor *base);
