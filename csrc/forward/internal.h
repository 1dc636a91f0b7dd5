/* internal.h: one call at the key ForwardAD, as the files of this folder share it. */
#pragma once

#include "autograd/tangent.h"
#include "dispatch/exchange.h"
#include "forward/rule.h"

#define TP_FORWARD_ARGUMENTS 64 /* of any operator; a term's `uses` has a bit for each */

/* The tangents of a call's arguments at one level. */
typedef struct {
    uint32_t number;
    bool known, any;                     /* some argument is noted down; some has a tangent */
    int first[TP_FORWARD_ARGUMENTS + 1]; /* where those of an argument begin in `all` */
    tp_tensor **all;                     /* owned, with the tensors in them; NULL: a constant */
} tp_tangent_list;

/* What the tangents of the results are computed from. */
typedef struct {
    const tp_op *op;         /* the functional one, for an in-place operator */
    const tp_value *args;    /* as they were before the call */
    const tp_value *results; /* of the call */
    const tp_tangent_list *tangents;
} tp_forward_call;

/* The tangents of argument i, as many as it has tensors. */
TP_INLINE tp_tensor **tp_tangents_in(const tp_tangent_list *l, int i) { return l->all + l->first[i]; }
bool tp_has_tangent(const tp_tangent_list *l, int i);

/* The tangents of the results into out (new, or NULL), one for each tensor in them in turn. */
int tp_forward_linear(const tp_forward_call *c, tp_tensor **out);
int tp_forward_multilinear(const tp_forward_call *c, tp_tensor **out);
int tp_forward_terms(const tp_forward_call *c, tp_tensor **out);
int tp_forward_twice(const tp_forward_call *c, tp_tensor **out);

/* ---- values.c ---- */
/* The storage of t, a batched one's of the physical tensor. */
const tp_storage *tp_physical_storage(const tp_tensor *t);
/* NotImplementedError: op has no forward formula. */
int tp_fail_no_forward(const tp_op *op) TP_COLD;
