/* meta.h: the primitives on Meta tensors: they do nothing, so an operator made of them needs no meta function. */
#pragma once

#include "dispatch/op.h"

/* The boxed kernel of every primitive for Meta. One that returns tensors, whose sizes follow from values, refuses. */
int tp_primitive_on_meta(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context);
