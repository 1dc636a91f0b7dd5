/* internal.h: what the files of csrc/autograd share with each other only. */
#pragma once

#include "Functions.h"
#include "autograd/node.h"
#include "dispatch/key.h"

extern atomic_bool tp_has_planned_nodes;

/* Adds an input described by t; returns its number, or -1. */
int tp_node_add_input(tp_node *n, const tp_tensor *t);
/* forget.c: root has been written and has a new history, which leads on to the one `before` (or NULL): nodes of the new
 * part forget the histories of its tensors that they have kept as inputs. What is below `before` is older than that,
 * and was looked through when it became root's history. */
void tp_forget_saved(const tp_tensor *root, tp_node *history, const tp_node *before);
/* self has the history of `made` from now on. */
int tp_put_history(tp_tensor *self, const tp_tensor *made);

/* An output whose gradient is kept; the tensor is known weakly and takes itself out when it goes. */
typedef struct tp_grad_keeper {
    tp_tensor *tensor;
    struct tp_grad_keeper *next;
} tp_grad_keeper;
/* The node keeps the gradient of its output t. */
int tp_node_keep(tp_node *n, tp_tensor *t);
/* t goes: the node stops keeping its gradient. */
void tp_forget_keeper(tp_node *n, const tp_tensor *t);
/* Points edge i to where the gradient of t goes, which is no view, or whose history is up to date. */
int tp_node_point_to(tp_node *n, int i, tp_tensor *t);

/* Whether a gradient, which the caller holds, may be written to or given away: nobody else sees its memory. What a
 * compiled function writes down, or has noted, of it does not count. */
bool tp_is_ours(const tp_tensor *grad);

/* A dense tensor takes a sparse one on its right only. */
TP_INLINE bool tp_goes_second(const tp_tensor *a, const tp_tensor *b) {
    return (a->keys & TP_NO_MEMORY) && !(b->keys & TP_NO_MEMORY);
}
/* a + b, in the order in which the two can be added. */
TP_INLINE tp_tensor *tp_sum_of_grads(tp_tensor *a, tp_tensor *b) {
    return tp_goes_second(a, b) ? tp_add_Tensor(b, a, TP_SCALAR_I(1)) : tp_add_Tensor(a, b, TP_SCALAR_I(1));
}
