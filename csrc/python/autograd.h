/* autograd.h: the Python side of the graph: Node objects (node.c), hooks (hooks.c), what the garbage collector sees of
 * it (walk.c), backward (autograd.c), and Functions that Python defines (function.c). */
#pragma once

#include "autograd/node.h"
#include "python/common.h"

/* Hooks of a tensor or node: dicts that Python fills in, id -> callable. Owned references; NULL until used. */
typedef struct tp_py_hooks {
    PyObject *tensor;      /* dict: output number -> dict of hooks on that output's gradient */
    PyObject *before;      /* node pre-hooks: hook(grad_outputs) */
    PyObject *after;       /* node hooks: hook(grad_inputs, grad_outputs) */
    PyObject *accumulated; /* of a leaf: hook(leaf), when its .grad has been added to */
    PyObject *metadata;    /* a dict for whoever holds the node */
} tp_py_hooks;

/* What a slot has, made where it has nothing (borrowed); NULL with the exception set. */
tp_py_hooks *tp_py_hooks_ensure(tp_py_hooks **slot);
PyObject *tp_py_dict_ensure(PyObject **slot);

/* gradients.c: a tuple of n gradients (new), None for those that are NULL. */
PyObject *tp_py_gradients(tp_tensor *const *grads, int n);
/* A Python sequence of tensors (None allowed if `optional`) into an array of PyMem that owns them; size -1 for None
 * itself. What it took is freed whatever it returns. */
int tp_py_take_tensors(PyObject *o, bool optional, const char *what, tp_tensors *out);
void tp_py_free_tensors(tp_tensors list);

int tp_py_init_node(PyObject *m);
int tp_py_init_hooks(PyObject *m);

/* grad_fn as a Python object (new), None for a leaf; NULL with the exception set. */
PyObject *tp_py_grad_fn(tp_tensor *t);
PyObject *tp_py_node(tp_node *n);

/* autograd.Function (function.c): the context behind a node that one made (borrowed), or NULL. */
PyObject *tp_py_function_ctx_borrow(const tp_node *n);
int tp_py_init_function(PyObject *m);

/* For the garbage collector: the Python objects that live only as long as a tensor's autograd state: hooks of the
 * tensor and of the graph behind it, contexts of Functions, tensors with an object of their own. */
int tp_py_traverse_autograd(tp_autograd_meta *m, visitproc visit, void *arg);
int tp_py_traverse_graph(const tp_node *first, visitproc visit, void *arg);
void tp_py_clear_hooks(tp_py_hooks *hooks);
/* The context of a node of a Function (function.c); nothing for another node. */
int tp_py_traverse_function(const tp_node *n, visitproc visit, void *arg);
/* The object of a tensor that C holds once and that keeps it (Note [Identity]), or NULL; borrowed. */
PyObject *tp_py_kept_object(const tp_tensor *t);
