/* rule.h: what the layer Functionalize knows of an operator beside its schema, as data: codegen/functional.py makes it
 * of the YAML. */
#pragma once

#include "dispatch/op.h"

typedef struct tp_functional_rule {
    /* For an operator that writes, the one that gives as results what it writes, after the results that it has. For
     * one that changes a geometry, the view that it becomes. For a view, the one that copies. NULL: there is none. */
    const char *other; /* its name: it may be of another family */
    /* For a view, its base with `view` in place of what the view shows; which: of a list of views. NULL: not said. */
    tp_tensor *(*inverse)(const tp_value *args, tp_tensor *base, tp_tensor *view, int64_t which);
    bool by_places; /* a view of the storage, not of the tensor: it goes by strides */
} tp_functional_rule;
