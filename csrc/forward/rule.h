/* rule.h: how an operator's tangent is computed, as data: what codegen/forward.py makes of the YAML for each operator,
 * of the tree and of libraries from outside. tensorpy/tangents.h says what the kinds mean. */
#pragma once

#include "dispatch/op.h"
#include "tensorpy/tangents.h"

typedef struct tp_forward_rule {
    uint8_t kind;
    uint8_t nterms;
    const char *roles;
    const tp_forward_term *terms;
    struct tp_op *other;
} tp_forward_rule;
