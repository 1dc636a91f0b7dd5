/* tangent.h: tangents of tensors, and the levels that they belong to.
 *
 * Note [Tangents]
 * Forward mode carries a tangent beside each tensor: its derivative along one direction of the inputs. The tangent is a
 * part of the tensor's autograd state, not a wrapper around it: a tensor stays the object that it is when something
 * with a tangent is written into it, the graph for reverse mode saves it as it is, and so a backward pass meets the
 * tangents of what was saved and has tangents itself (forward over reverse).
 *
 * What runs is a boxed fallback at the key ForwardAD (forward/call.c), above autograd: what arrives there is
 * physical (no batch, Note [Batched tensors]) and of its final dtype (autocast); its tangents may have a batch of their
 * own (Note [Batched tangents]). No tensor has the key: it is in the thread's include set while a level is visible, so
 * that a program without levels spends nothing on it. Whatever runs without autograd runs without it too
 * (TP_AUTOGRAD_KEYS). The fallback calls the operator below, then computes the tangents of the results by operators
 * from the top of the dispatcher, which autograd records, and lower levels differentiate.
 *
 * Levels are numbered through the whole program (level_number.h), so what is left of a level that has ended is never
 * taken for a later one's. Several may be open: a rule works for one and sees those below it only, which keeps the
 * directions of nested derivatives apart. Where a level ends its tangents are let go: one that hangs on a graph may own
 * its own tensor.
 *
 * A tangent has the sizes, dtype and strides of its tensor, where that is dense: so each view of the tensor has the
 * same view of the tangent as its own, and a write through any of them reaches all. A view that was made before its
 * base got a tangent finds it there. A tensor without one beside others that have one is a constant; `detach` makes a
 * constant of a view too, which is noted down, as its base would say otherwise. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || \
    defined(TP_FOLDER_cpu)
#error "forward mode stands above the dispatcher and the kernels"
#endif

#include "autograd/level.h"

/* ---- tangents ---- */
typedef struct tp_tangent_of {
    tp_tensor *tangent; /* owned; NULL: none */
    bool known;         /* the tensor is noted down as one with a tangent, or as a constant */
} tp_tangent_of;
/* The tangent of t at a level; -1 and the error set, should a view of the base's fail. */
int tp_find_tangent(tp_tensor *t, uint32_t number, tp_tangent_of *found);
/* t (fresh) has this tangent (NULL: it is a constant) from now on. */
int tp_put_tangent(tp_tensor *t, uint32_t number, tp_tensor *tangent);
/* t was written: its tangent is overwritten, or it gets one, as a view its base too. */
int tp_write_tangent(tp_tensor *t, uint32_t number, tp_tensor *tangent);
/* The tangent in the dtype, sizes and strides of t. New. */
tp_tensor *tp_fit_tangent(const tp_tensor *t, tp_tensor *tangent);
/* Zeros of t's geometry and dtype, to write tangents like `kind` into: batched where that is. New. */
tp_tensor *tp_zeros_for_tangent(const tp_tensor *t, tp_tensor *kind);
/* A bare alias of an output has what tangents the output has, and will have. */
int tp_share_tangents(tp_tensor *alias, tp_tensor *output);
/* t without history, but with its tangents. New. */
tp_tensor *tp_detached_dual(tp_tensor *t);
