/* undifferentiated.h: what autograd does for an operator that was declared at run time and says nothing of its own. */
#pragma once

#include "dispatch/op.h"

/* Whether a call with these arguments is to be recorded: a tensor of them wants a gradient, and gradients are on. */
bool tp_is_recorded(const tp_op *op, const tp_value *args);
/* For the alias key Autograd: computes below, and gives what wants a gradient a node whose backward says that there is
 * no derivative, with the operator's name and where it was declared. */
int tp_undifferentiated(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context);
/* For ADInplaceOrView, of an operator that writes: counts the versions of what it wrote. */
int tp_count_writes(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context);
/* Gives an operator that was just declared the two above (the second only if it writes), until it gets its own. */
int tp_register_defaults(tp_op *op);
