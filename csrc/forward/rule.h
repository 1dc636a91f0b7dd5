/* rule.h: how an operator's tangent is computed, as data: what codegen/forward.py makes of the YAML for each operator.
 *
 * A rule is a kind, a role for each argument ('t': its tangent counts, '.': it is a constant), and terms. */
#pragma once

#include "dispatch/op.h"

typedef enum {
    TP_FORWARD_NONE,        /* nothing depends on the arguments smoothly */
    TP_FORWARD_LINEAR,      /* the operator of the tangents; an absent one is zeros */
    TP_FORWARD_MULTILINEAR, /* the sum over the arguments: the operator with the tangent in the argument's place */
    TP_FORWARD_TERMS,       /* the sum of the terms */
    TP_FORWARD_INPLACE,     /* by the rule of `other`, and self's tangent is overwritten */
    TP_FORWARD_GEOMETRY,    /* the operator gives the tangent the same new geometry */
    TP_FORWARD_TWICE,       /* the gradient of the gradient: exact, and slower */
} tp_forward_kind;

/* A part of a result's tangent. Tangents that a term uses and that are absent are zeros, unless all are: then it is
 * left out. One that is `pointwise` is a backward formula: the gradient is the tangent's conjugate, as is what comes.
 */
typedef struct {
    uint8_t output;
    bool pointwise;
    uint64_t uses; /* the arguments whose tangents it uses, bit by bit */
    tp_tensor *(*compute)(const tp_value *args, const tp_value *results, tp_tensor *const *tangents);
} tp_forward_term;

typedef struct tp_forward_rule {
    uint8_t kind;
    uint8_t nterms;
    const char *roles;
    const tp_forward_term *terms;
    struct tp_op *other;
} tp_forward_rule;
