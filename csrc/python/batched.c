/* batched.c: levels and batched tensors for tensorpy/func/. */
#include "python/common.h"

#include "autograd/node.h"
#include "batched/batched.h"
#include "batched/lift.h"

#include <string.h>

static const char *const modes[] = {
    [TP_RANDOM_ERROR] = "error", [TP_RANDOM_DIFFERENT] = "different", [TP_RANDOM_SAME] = "same"};

/* _vmap_open(size, randomness): the level's number; the levels are closed in the opposite order. */
static PyObject *vmap_open(PyObject *self TP_UNUSED, PyObject *args) {
    long long size;
    const char *mode;
    if (!PyArg_ParseTuple(args, "Ls", &size, &mode)) return NULL;
    if (size < 0) return PyErr_Format(PyExc_ValueError, "_vmap_open(): %lld samples", size);
    for (int i = 0; i < TP_COUNTOF(modes); i++)
        if (strcmp(mode, modes[i]) == 0) {
            uint32_t number = tp_batch_open(size, (tp_randomness)i);
            return number ? PyLong_FromUnsignedLong(number) : tp_py_raise();
        }
    return PyErr_Format(PyExc_RuntimeError,
                        "Only allowed values for randomness are 'error', 'different', or 'same'. Got %s", mode);
}

static PyObject *vmap_close(PyObject *self TP_UNUSED, PyObject *number) {
    unsigned long n = PyLong_AsUnsignedLong(number);
    if (PyErr_Occurred() || tp_py_check(tp_batch_close((uint32_t)n)) < 0) return NULL;
    Py_RETURN_NONE;
}

/* _vmap_levels(): (number, size, randomness) of those that are open, the outermost first. */
static PyObject *vmap_levels(PyObject *self TP_UNUSED, PyObject *unused TP_UNUSED) {
    int n = tp_batch_count();
    PyObject *levels = PyTuple_New(n);
    for (int i = 0; levels && i < n; i++) {
        const tp_batch_level *level = tp_batch_level_at(i);
        PyObject *pair =
            Py_BuildValue("(kLs)", (unsigned long)level->number, (long long)level->size, modes[level->randomness]);
        if (pair) PyTuple_SET_ITEM(levels, i, pair);
        else Py_CLEAR(levels);
    }
    return levels;
}

/* _vmap_show(n): the outermost n levels are in sight; how many there were. */
static PyObject *vmap_show(PyObject *self TP_UNUSED, PyObject *arg) {
    long n = PyLong_AsLong(arg);
    if (PyErr_Occurred()) return NULL;
    if (n < 0 || n > tp_batch_count()) return PyErr_Format(PyExc_ValueError, "there are no %ld levels", n);
    return PyLong_FromLong(tp_batch_show((int)n));
}

/* Tensors of a list, with what became of those that had only a batched tangent. */
static PyObject *lifted_list(PyObject *list, tp_tensor **tensors, Py_ssize_t n) {
    PyObject *result = PyList_New(n);
    for (Py_ssize_t i = 0; result && i < n; i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        bool same = !tensors[i] || tp_py_tensor_borrow(o) == tensors[i];
        PyObject *item = same ? Py_NewRef(o) : tp_py_wrap_steal(tp_retain(tensors[i]));
        if (item) PyList_SET_ITEM(result, i, item);
        else Py_CLEAR(result);
    }
    return result;
}

/* _vmap_lift(list): with the tensors among its items lifted (Note [Batched tangents] in batched/batched.h). */
static PyObject *vmap_lift(PyObject *self TP_UNUSED, PyObject *list) {
    if (!PyList_Check(list)) return PyErr_Format(PyExc_TypeError, "_vmap_lift() takes a list"), NULL;
    Py_ssize_t n = PyList_GET_SIZE(list);
    tp_tensor **tensors = PyMem_Calloc((size_t)n + 1, sizeof *tensors);
    if (!tensors) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyList_GET_ITEM(list, i);
        tensors[i] = tp_py_is_tensor(o) ? tp_py_tensor_borrow(o) : NULL;
    }
    tp_autolifted lifted = {0};
    PyObject *result = tp_py_check(tp_batch_lift(&lifted, tensors, n)) < 0 ? NULL : lifted_list(list, tensors, n);
    PyMem_Free(tensors);
    return result;
}

static int take_tensor(PyObject *o, const char *function, tp_tensor **out) {
    if (!tp_py_is_tensor(o)) return PyErr_Format(PyExc_TypeError, "%s() takes a Tensor", function), -1;
    *out = tp_py_tensor_borrow(o);
    return 0;
}

static bool is_open(unsigned long number) {
    for (int i = 0; i < tp_batch_count(); i++)
        if (tp_batch_level_at(i)->number == number) return true;
    return false;
}

/* _vmap_add(tensor, dim, number) */
static PyObject *vmap_add(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *o;
    tp_tensor *t;
    long long dim;
    unsigned long number;
    if (!PyArg_ParseTuple(args, "OLk", &o, &dim, &number) || take_tensor(o, "_vmap_add", &t) < 0) return NULL;
    if (!is_open(number)) return PyErr_Format(PyExc_ValueError, "_vmap_add(): level %lu is not open", number);
    return tp_py_wrap_steal(tp_batch_add(t, dim, (uint32_t)number));
}

/* _vmap_remove(tensor, number, size): with the batch in dimension 0. */
static PyObject *vmap_remove(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *o;
    tp_tensor *t;
    long long size;
    unsigned long number;
    if (!PyArg_ParseTuple(args, "OkL", &o, &number, &size) || take_tensor(o, "_vmap_remove", &t) < 0) return NULL;
    return tp_py_wrap_steal(tp_batch_remove(t, (uint32_t)number, size));
}

/* _batch_number(tensor): the level of its outermost batch; 0 for none. */
static PyObject *batch_number(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t;
    return take_tensor(o, "_batch_number", &t) < 0 ? NULL : PyLong_FromUnsignedLong(tp_batch_number(t));
}

static PyObject *is_batched(PyObject *self TP_UNUSED, PyObject *o) {
    tp_tensor *t;
    return take_tensor(o, "_is_batched", &t) < 0 ? NULL : PyBool_FromLong(tp_is_batched(t));
}

/* ---- what a graph hangs on ---- */

static bool all_tensors(const char *function, PyObject *tuple) {
    tp_tensor *unused;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (take_tensor(PyTuple_GET_ITEM(tuple, i), function, &unused) < 0) return false;
    return true;
}

/* 1 for an address that is new in the set. */
static int note(PyObject *seen, const void *address) {
    PyObject *key = PyLong_FromVoidPtr((void *)address);
    int known = key ? PySet_Contains(seen, key) : -1;
    if (known == 0 && PySet_Add(seen, key) < 0) known = -1;
    Py_XDECREF(key);
    return known < 0 ? -1 : !known;
}

typedef struct {
    tp_node **items;
    Py_ssize_t n, capacity;
} node_stack;

static int push(node_stack *s, tp_node *node) {
    if (s->n == s->capacity) {
        Py_ssize_t capacity = s->capacity ? 2 * s->capacity : 64;
        tp_node **grown = PyMem_Realloc(s->items, (size_t)capacity * sizeof *grown);
        if (!grown) return PyErr_NoMemory(), -1;
        s->items = grown;
        s->capacity = capacity;
    }
    s->items[s->n++] = node;
    return 0;
}

typedef struct {
    node_stack next; /* borrowed: the graph of the outputs holds them, or `held` */
    node_stack held; /* owned: of leaves, which know their node weakly; an address in `seen` stays one node's */
    PyObject *seen;
} node_walk;

/* The node of a leaf, borrowed; NULL and an error. */
static tp_node *hold_accumulator(node_walk *w, tp_tensor *leaf) {
    tp_autonode *own = tp_accumulator(leaf);
    if (!own) return tp_py_raise(), NULL;
    return push(&w->held, own) < 0 ? NULL : tp_take(own);
}

static void end_walk(node_walk *w) {
    for (Py_ssize_t i = 0; i < w->held.n; i++) tp_node_release(w->held.items[i]);
    PyMem_Free(w->held.items);
    PyMem_Free(w->next.items);
    Py_XDECREF(w->seen);
}

/* 1 if a leaf of the graph is not in `seen`, which has the leaves that do not count. */
static int walk(node_walk *w) {
    node_stack *s = &w->next;
    while (s->n > 0) {
        tp_node *node = s->items[--s->n];
        int fresh = note(w->seen, node);
        if (fresh < 0) return -1;
        if (!fresh) continue;
        const tp_tensor *leaf = tp_accumulator_variable_borrow(node);
        if (leaf && !(leaf->flags & TP_FLAG_SETTLED)) return 1;
        for (uint32_t i = 0; i < node->nedges; i++)
            if (node->edges[i].node && push(s, node->edges[i].node) < 0) return -1;
    }
    return 0;
}

/* The node that a tensor's gradient goes to counts as seen; 1 if that is not a leaf's own. */
static int leave_out(node_walk *w, tp_tensor *t) {
    if (tp_grad_fn_borrow(t)) return 1;
    if (!tp_requires_grad(t)) return 0;
    const tp_node *own = hold_accumulator(w, t);
    return own && note(w->seen, own) >= 0 ? 0 : -1;
}

static int hangs(PyObject *outputs, PyObject *leaves, node_walk *w) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); i++) {
        int more = leave_out(w, tp_py_tensor_borrow(PyTuple_GET_ITEM(leaves, i)));
        if (more) return more;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(outputs); i++) {
        tp_tensor *t = tp_py_tensor_borrow(PyTuple_GET_ITEM(outputs, i));
        if (!tp_requires_grad(t)) continue;
        tp_node *node = tp_grad_fn_borrow(t);
        if (!node) node = hold_accumulator(w, t); /* a leaf that is returned as it is */
        if (!node || push(&w->next, node) < 0) return -1;
    }
    return walk(w);
}

/* _hangs_on_others(outputs, leaves): whether anything but the leaves would get a gradient from the outputs, or the
 * leaves are none and have a graph of their own. */
static PyObject *hangs_on_others(PyObject *self TP_UNUSED, PyObject *args) {
    PyObject *outputs, *leaves;
    node_walk w = {.seen = PySet_New(NULL)};
    int found = -1;
    if (w.seen && PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &outputs, &PyTuple_Type, &leaves) &&
        all_tensors("_hangs_on_others", outputs) && all_tensors("_hangs_on_others", leaves))
        found = hangs(outputs, leaves, &w);
    end_walk(&w);
    return found < 0 ? (PyErr_Occurred() ? NULL : tp_py_raise()) : PyBool_FromLong(found);
}

/* _settle(leaves): the function that they were made for is done. */
static PyObject *settle(PyObject *self TP_UNUSED, PyObject *leaves) {
    if (!PyTuple_Check(leaves)) return PyErr_Format(PyExc_TypeError, "_settle() takes a tuple");
    if (!all_tensors("_settle", leaves)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(leaves); i++)
        tp_py_tensor_borrow(PyTuple_GET_ITEM(leaves, i))->flags |= TP_FLAG_SETTLED;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_settle", settle, METH_O, NULL},
    {"_batch_number", batch_number, METH_O, NULL},
    {"_hangs_on_others", hangs_on_others, METH_VARARGS, NULL},
    {"_vmap_open", vmap_open, METH_VARARGS, NULL},
    {"_vmap_close", vmap_close, METH_O, NULL},
    {"_vmap_levels", vmap_levels, METH_NOARGS, NULL},
    {"_vmap_lift", vmap_lift, METH_O, NULL},
    {"_vmap_show", vmap_show, METH_O, NULL},
    {"_vmap_add", vmap_add, METH_VARARGS, NULL},
    {"_vmap_remove", vmap_remove, METH_VARARGS, NULL},
    {"_is_batched", is_batched, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tp_py_init_batched(PyObject *m) { return PyModule_AddFunctions(m, functions); }
