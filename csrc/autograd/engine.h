/* engine.h: runs the backward graph.
 *
 * Nodes run in the order of their sequence numbers, latest first, as soon as all their gradients have arrived; the walk
 * is iterative. Each run has its own bookkeeping, so runs may nest (a hook that calls backward) and several threads may
 * run at once. */
#pragma once

#include "autograd/node.h"

/* backward(): gradients of roots flow to the leaves. root_grads may hold NULL for a one-element root (a one is made).
 * With `inputs` (size >= 0), gradients are collected for these tensors into out (new, or NULL where none arrived), or,
 * if out is NULL, accumulated into only their .grad. */
int tp_backward(tp_tensors roots, tp_tensors root_grads, bool retain_graph, bool create_graph, tp_tensors inputs,
                tp_tensor **out);

/* One node by itself, with its hooks: gradients of its outputs (one per input of the node, borrowed, NULL where there
 * is none) to those of its edges (new, or NULL). The saved values stay. */
int tp_apply_node(tp_node *node, tp_tensors grads, tp_tensor **out);

/* The run that this thread is in (a hook asks), by number; -1: none. */
int64_t tp_current_backward(void);
/* Whether it keeps the graph for another one. */
bool tp_backward_keeps_graph(void);
/* The node that it is at; NULL outside. */
tp_node *tp_running_node_borrow(void);
/* Whether it gives a leaf's gradient to who asks for it (autograd.grad), and its accumulator does not run. */
bool tp_backward_captures_leaf(const tp_node *n);
/* Whether that run computes the gradient of a node's outputs, now, before or later. */
bool tp_backward_will_reach(const tp_node *n);

/* Which of n nodes, that the caller holds, a backward pass from the roots would come to. */
int tp_find_reached(tp_tensors roots, tp_node *const *nodes, int n, bool *reached);

/* The functions that the Python layer installs. A hook may put another gradient into a slot (releasing the old one);
 * each returns 0, or -1 with the error set. */
typedef struct {
    /* Hooks on the gradients, and, if the node is to run, on the node. */
    int (*before)(struct tp_py_hooks *hooks, tp_tensor **grads, int count, bool runs);
    int (*after)(struct tp_py_hooks *hooks, tp_tensor **out, int nout, tp_tensor **grads, int ngrads);
    int (*accumulated)(struct tp_py_hooks *hooks, tp_tensor *leaf); /* the leaf's .grad has been added to */
    void (*arrived)(tp_tensor *leaf, bool in_place);                /* the same, of every leaf; NULL: nobody asks */
    void (*free_hooks)(struct tp_py_hooks *hooks);
    void (*forget_node)(void *pyobj); /* the node behind a Python object goes */
    char *(*where)(void);             /* the Python traceback, for anomaly mode; malloc'd */
    /* Saved-tensor hooks: what stands for a tensor (owned), the tensor again (new), and the end. */
    void *(*pack)(tp_tensor *t);
    tp_tensor *(*unpack)(void *packed);
    void (*free_packed)(void *packed);
    int (*anomaly)(const tp_node *n); /* shows where the forward call of a failing node was */
} tp_autograd_host_hooks;
extern tp_autograd_host_hooks tp_autograd_host;

/* Has the thread's saved-tensor hooks take the place of a value that was saved without any. */
int tp_saved_hook(tp_saved *s, tp_node *owner);
