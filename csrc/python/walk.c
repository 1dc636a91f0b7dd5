/* walk.c: what the garbage collector sees of a graph. */
#include "python/autograd.h"

#define WALK_ROOM 128    /* nodes that wait */
#define WALK_STEPS 65536 /* and nodes in all, so that a collection does not take long */

PyObject *tp_py_kept_object(const tp_tensor *t) {
    return t && atomic_load(&t->refcount) == (TP_KEEPS_PYOBJ | 2) ? t->pyobj : NULL;
}

static int traverse_hooks(const tp_py_hooks *hooks, visitproc visit, void *arg) {
    if (!hooks) return 0;
    Py_VISIT(hooks->tensor);
    Py_VISIT(hooks->before);
    Py_VISIT(hooks->after);
    Py_VISIT(hooks->accumulated);
    Py_VISIT(hooks->metadata);
    return 0;
}

/* A walk over the part of the graph that lives only as long as its first node does: a node or a saved tensor belongs to
 * it when all of its references have been met. Every object in it is visited once for each reference, as the collector
 * counts them. What is held from elsewhere, or lies beyond the room, counts as in use, which is on the safe side. */
typedef struct {
    const tp_node *ready[WALK_ROOM];
    struct {
        const void *thing;
        int32_t met;
    } partly[WALK_ROOM];
    int nready, npartly;
    visitproc visit;
    void *arg;
} graph_walk;

/* Whether that was the last of its references. */
static bool met_all(graph_walk *w, const void *thing, int32_t references) {
    int at = 0;
    if (references < 2) return references == 1;
    while (at < w->npartly && w->partly[at].thing != thing) at++;
    if (at == WALK_ROOM) return false;
    if (at == w->npartly) w->partly[w->npartly++].thing = thing, w->partly[at].met = 0;
    if (++w->partly[at].met < references) return false;
    w->partly[at] = w->partly[--w->npartly];
    return true;
}

static void meet_node(graph_walk *w, const tp_node *n) {
    if (n && met_all(w, n, atomic_load(&n->refcount)) && w->nready < WALK_ROOM) w->ready[w->nready++] = n;
}

/* A tensor that only the graph holds: with an object that it keeps, or else what holds the node that it came from. */
static int meet_tensor(graph_walk *w, const tp_tensor *t) {
    int32_t count = t ? atomic_load(&t->refcount) : 0;
    bool keeps = count & TP_KEEPS_PYOBJ;
    if (keeps) count = (count & ~TP_KEEPS_PYOBJ) - 1; /* the object's own is not C's */
    if (!t || !met_all(w, t, count)) return 0;
    if (keeps) return w->visit(t->pyobj, w->arg);
    if (!t->pyobj && t->autograd) meet_node(w, t->autograd->grad_fn);
    return 0;
}

static int meet_saved(graph_walk *w, const tp_saved *saved, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        int status = meet_tensor(w, saved[i].tensor);
        void *packed = tp_packed(&saved[i]);
        if (status == 0 && packed) status = w->visit(packed, w->arg);
        if (status) return status;
    }
    return 0;
}

static int meet_list(graph_walk *w, const tp_saved_list *list) {
    return list ? meet_saved(w, list->items, list->size) : 0;
}

/* What a node of an operator keeps: tp_node_type says where. */
static int meet_kept(graph_walk *w, const tp_node *n) {
    const tp_saved *saved = (const tp_saved *)(n + 1);
    tp_saved_list *const *lists = (tp_saved_list *const *)(saved + n->type->nsaved);
    int status = meet_saved(w, saved, n->type->nsaved);
    for (int i = 0; status == 0 && i < n->type->nlists; i++) status = meet_list(w, lists[i]);
    return status;
}

int tp_py_traverse_graph(const tp_node *first, visitproc visit, void *arg) {
    graph_walk w;
    w.nready = w.npartly = 0;
    w.visit = visit;
    w.arg = arg;
    meet_node(&w, first);
    for (int64_t steps = 0; w.nready && steps < WALK_STEPS; steps++) {
        const tp_node *n = w.ready[--w.nready];
        int status = traverse_hooks(n->hooks, visit, arg);
        if (status == 0) status = tp_py_traverse_function(n, visit, arg);
        if (status == 0) status = meet_kept(&w, n);
        if (status == 0) status = meet_tensor(&w, tp_accumulator_variable_borrow(n));
        if (status) return status;
        for (uint32_t i = 0; i < n->nedges; i++) meet_node(&w, n->edges[i].node);
    }
    return 0;
}

int tp_py_traverse_autograd(tp_autograd_meta *m, visitproc visit, void *arg) {
    int status = traverse_hooks(m->hooks, visit, arg);
    if (status) return status;
    Py_VISIT(tp_py_kept_object(m->grad));
    return m->grad_fn ? tp_py_traverse_graph(m->grad_fn, visit, arg) : 0;
}
void tp_py_clear_hooks(tp_py_hooks *hooks) {
    if (!hooks) return;
    Py_CLEAR(hooks->tensor);
    Py_CLEAR(hooks->before);
    Py_CLEAR(hooks->after);
    Py_CLEAR(hooks->accumulated);
    Py_CLEAR(hooks->metadata);
}
