/* forward.h: the layer of forward mode, which computes the tangents of what operators give: Note [Tangents] in
 * autograd/tangent.h. */
#pragma once

/* Registers what runs at ForwardAD for every operator; called once at load. */
int tp_forward_load(void);
