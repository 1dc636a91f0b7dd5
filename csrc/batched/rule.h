/* rule.h: how an operator is batched, as data: what codegen/batching.py makes of the YAML for each operator, of the
 * tree and of libraries from outside. tensorpy/batching.h says what the kinds and the characters mean. */
#pragma once

#include "dispatch/op.h"
#include "tensorpy/batching.h"

typedef struct tp_batch_rule {
    uint8_t kind; /* tp_batch_kind */
    bool random;
    const char *roles;
    struct tp_op *other;
} tp_batch_rule;
