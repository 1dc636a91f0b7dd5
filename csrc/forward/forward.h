/* forward.h: the layer of forward mode, which computes the tangents of what operators give: Note [Tangents] in
 * autograd/tangent.h. */
#pragma once

#include "autograd/tangent.h"

/* A view of primal, with lower levels' tangents, and this one; and one that is a constant at the level. New. */
tp_tensor *tp_make_dual(tp_tensor *primal, tp_tensor *tangent, uint32_t number);
tp_tensor *tp_primal(tp_tensor *t, uint32_t number);

/* Registers what runs at ForwardAD for every operator; called once at load. */
int tp_forward_load(void);
