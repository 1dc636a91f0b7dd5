/* tangents.h: how an operator's tangent is computed in forward mode, as data. Since 1.3.
 *
 * The generator writes it (python -m tensorpy.codegen), for tensorpy and for libraries from outside. A rule is a kind,
 * a role for each argument ('t': its tangent counts, '.': it is a constant, 'x': it may have no tangent), and terms. */
#ifndef TENSORPY_TANGENTS_H
#define TENSORPY_TANGENTS_H

#include "tensorpy/types.h"

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

/* The rule of an operator of a library from outside. */
typedef struct {
    const char *roles;
    const tp_forward_term *terms;
    int32_t nterms;
    int32_t kind; /* NONE, LINEAR, MULTILINEAR or TERMS */
} tensorpy_tangents;

#endif
