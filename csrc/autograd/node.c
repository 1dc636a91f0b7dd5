/* node.c: nodes of the backward graph: their memory, edges and inputs.
 *
 * A node and its edges are one block. Releasing the last reference to a long chain must not recurse: a thread that is
 * already inside tp_node_free puts further nodes on a list, and the outermost call works the list off. */
#include "autograd/node.h"

#include "Functions.h"
#include "autograd/engine.h"
#include "autograd/internal.h"
#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

tp_autograd_host_hooks tp_autograd_host;
static _Atomic uint64_t next_sequence;

static size_t edges_offset(const tp_node_type *type) { return (type->size + 15) & ~(size_t)15; }
static size_t block_size(const tp_node_type *type, int nedges) {
    return edges_offset(type) + (size_t)nedges * sizeof(tp_edge);
}

atomic_bool tp_has_planned_nodes; /* some compiled function has made one */

_Atomic uint8_t tp_anomaly;

static TP_COLD void mark(tp_node *n, uint8_t how) {
    bool traced = tp_anomaly_mode() && !(how & TP_NODES_UNTRACED);
    if (traced && (n->trace = malloc(sizeof *n->trace)))
        *n->trace =
            (tp_node_trace){tp_autograd_host.where ? tp_autograd_host.where() : NULL, tp_node_retain(tp_tls.running)};
    n->plan = how / TP_NODES_PLANNED;
    if (n->plan) atomic_store_explicit(&tp_has_planned_nodes, true, memory_order_relaxed);
}

tp_node *tp_node_new(const tp_node_type *type, int nedges) {
    tp_node *n = tp_alloc(block_size(type, nedges));
    if (!n) return NULL;
    memset(n, 0, block_size(type, nedges));
    atomic_init(&n->refcount, 1);
    n->type = type;
    n->nedges = (uint32_t)nedges;
    n->edges = (tp_edge *)((char *)n + edges_offset(type));
    n->inputs = &n->first_input;
    n->sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
    if (tp_unlikely(tp_tls.new_nodes || tp_anomaly_mode())) mark(n, tp_tls.new_nodes);
    return n;
}

uint64_t tp_next_sequence(void) { return atomic_load_explicit(&next_sequence, memory_order_relaxed); }

int64_t tp_sequence_of(const tp_tensor *t) {
    const tp_node *n = t->autograd ? t->autograd->grad_fn : NULL;
    return n ? (int64_t)n->sequence : -1;
}

/* ---- the end of a node ---- */

static void free_input_meta(tp_input_meta *m) {
    if (m->sizes != m->inline_sizes) free(m->sizes);
}

static void forget_keepers(tp_node *n);

static void free_trace(tp_node_trace *trace) {
    if (!trace) return;
    free(trace->where);
    tp_node_release(trace->parent);
    free(trace);
}

static void free_one(tp_node *n) {
    if (n->pyobj) tp_autograd_host.forget_node(n->pyobj);
    n->type->release(n);
    if (n->type->free_copies) n->type->free_copies(n);
    if (n->hooks) tp_autograd_host.free_hooks(n->hooks);
    forget_keepers(n);
    for (uint32_t i = 0; i < n->nedges; i++) tp_node_release(n->edges[i].node);
    for (uint32_t i = 0; i < n->ninputs; i++) free_input_meta(&n->inputs[i]);
    if (n->inputs != &n->first_input) free(n->inputs);
    free_trace(n->trace);
    tp_free(n, block_size(n->type, n->nedges));
}

void tp_node_free(tp_node *n) {
    static __thread tp_node *waiting; /* linked through `pyobj`, which free_one has no further use for */
    static __thread bool busy;
    if (busy) {
        if (n->pyobj) tp_autograd_host.forget_node(n->pyobj);
        n->pyobj = waiting;
        waiting = n;
        return;
    }
    busy = true;
    free_one(n);
    while (waiting) {
        tp_node *next = waiting;
        waiting = next->pyobj;
        next->pyobj = NULL;
        free_one(next);
    }
    busy = false;
}

/* ---- edges ---- */

bool tp_node_wants_any(const tp_node *n, int first, int count) {
    for (int i = first; i < first + count; i++)
        if (tp_node_wants(n, i)) return true;
    return false;
}

/* ---- inputs ---- */

/* Room for one more input; input metas that point into themselves are mended after a move. */
static tp_input_meta *add_input(tp_node *n) {
    if (n->ninputs == 0) {
        n->ninputs = 1;
        return &n->first_input;
    }
    if ((n->ninputs & (n->ninputs - 1)) == 0) { /* the room doubles at each power of two */
        tp_input_meta *grown = malloc(2 * (size_t)n->ninputs * sizeof *grown);
        if (!grown) return tp_fail_memory(2 * (int64_t)n->ninputs * (int64_t)sizeof *grown), NULL;
        for (uint32_t i = 0; i < n->ninputs; i++) {
            grown[i] = n->inputs[i];
            if (n->inputs[i].sizes == n->inputs[i].inline_sizes) grown[i].sizes = grown[i].inline_sizes;
        }
        if (n->inputs != &n->first_input) free(n->inputs);
        n->inputs = grown;
    }
    n->inputs[n->ninputs] = (tp_input_meta){0};
    return &n->inputs[n->ninputs++];
}

int tp_node_add_input(tp_node *n, const tp_tensor *t) {
    tp_input_meta *m = add_input(n);
    if (!m) return -1;
    m->sizes = m->inline_sizes;
    if (t->ndim > TP_INLINE_DIMS) {
        m->sizes = malloc(t->ndim * sizeof *m->sizes);
        if (!m->sizes) {
            m->sizes = m->inline_sizes;
            return tp_fail_memory(t->ndim * (int64_t)sizeof *m->sizes);
        }
    }
    memcpy(m->sizes, t->sizes, t->ndim * sizeof *m->sizes);
    m->dtype = t->dtype;
    m->ndim = t->ndim;
    m->device = t->device;
    m->defined = true;
    return (int)n->ninputs - 1;
}

int tp_node_skip_output(tp_node *n) {
    tp_input_meta *m = add_input(n);
    if (!m) return -1;
    m->sizes = m->inline_sizes;
    return 0;
}

tp_tensor *tp_zeros_for_input(const tp_node *n, int i) {
    const tp_input_meta *m = &n->inputs[i];
    return tp_zeros((tp_ints){m->sizes, m->ndim}, (tp_dtype)m->dtype, TP_STRIDED, m->device, -1);
}

/* ---- outputs that keep their gradient ---- */

int tp_node_keep(tp_node *n, tp_tensor *t) {
    tp_grad_keeper *k = malloc(sizeof *k);
    if (!k) return tp_fail_memory(sizeof *k);
    *k = (tp_grad_keeper){t, n->keepers};
    n->keepers = k;
    return 0;
}

static void forget_keepers(tp_node *n) {
    for (tp_grad_keeper *k = n->keepers, *next; k; k = next) {
        next = k->next;
        free(k);
    }
}

void tp_forget_keeper(tp_node *n, const tp_tensor *t) {
    for (tp_grad_keeper **k = &n->keepers; *k; k = &(*k)->next)
        if ((*k)->tensor == t) {
            tp_grad_keeper *gone = *k;
            *k = gone->next;
            free(gone);
            return;
        }
}
