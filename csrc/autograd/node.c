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
    if (tp_unlikely(tp_tls.anomaly_mode) && tp_autograd_host.where) n->trace = tp_autograd_host.where();
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

static void free_one(tp_node *n) {
    if (n->pyobj) tp_autograd_host.forget_node(n->pyobj);
    n->type->release(n);
    if (n->type->free_copies) n->type->free_copies(n);
    if (n->hooks) tp_autograd_host.free_hooks(n->hooks);
    forget_keepers(n);
    for (uint32_t i = 0; i < n->nedges; i++) tp_node_release(n->edges[i].node);
    for (uint32_t i = 0; i < n->ninputs; i++) free_input_meta(&n->inputs[i]);
    if (n->inputs != &n->first_input) free(n->inputs);
    free(n->trace);
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

int tp_node_set_edge(tp_node *n, int i, tp_tensor *t) {
    if (!tp_requires_grad(t)) return 0;
    tp_node *fn = tp_grad_fn_borrow(t);
    if (fn) {
        n->edges[i].node = tp_node_retain(fn);
        n->edges[i].input_nr = t->autograd->output_nr;
        return 0;
    }
    n->edges[i].node = tp_accumulator(t);
    n->edges[i].input_nr = 0;
    return n->edges[i].node ? 0 : -1;
}

int tp_node_set_edges(tp_node *n, int first, tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++)
        if (list.data[i] && tp_node_set_edge(n, first + (int)i, list.data[i]) < 0) return -1;
    return 0;
}

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

/* A result that keeps its gradient was changed in place: it keeps the gradient of what it is now. */
static int move_keeper(tp_node *from, tp_node *to, tp_tensor *t);

static bool has_gradient(const tp_tensor *t) { return tp_is_floating(t) || tp_is_complex(t); }

int tp_node_set_output(tp_node *n, tp_tensor *out) {
    if (!out || !has_gradient(out)) return tp_node_skip_output(n);
    int nr = tp_node_add_input(n, out);
    tp_autograd_meta *m = nr < 0 ? NULL : tp_autograd_meta_ensure(out);
    if (!m) return -1;
    tp_node *old = m->grad_fn;
    if (tp_unlikely(out->flags & TP_FLAG_RETAINS_GRAD) && old && move_keeper(old, n, out) < 0) return -1;
    m->grad_fn = tp_node_retain(n);
    m->output_nr = (uint32_t)nr;
    m->requires_grad = false;
    out->flags |= TP_FLAG_REQUIRES_GRAD;
    if (out->base) out->view_version = tp_version(out);
    tp_node_release(old);
    return 0;
}

tp_tensor *tp_zeros_for_input(const tp_node *n, int i) {
    const tp_input_meta *m = &n->inputs[i];
    return tp_zeros((tp_ints){m->sizes, m->ndim}, (tp_dtype)m->dtype, TP_STRIDED, m->device, -1);
}

/* ---- retain_grad ---- */

/* An output that keeps its gradient; the tensor is known weakly and takes itself out when it goes. */
typedef struct tp_grad_keeper {
    tp_tensor *tensor;
    struct tp_grad_keeper *next;
} tp_grad_keeper;

int tp_retain_grad(tp_tensor *t) {
    if (!tp_requires_grad(t))
        return tp_fail(TP_RuntimeError, "can't retain_grad on Tensor that has requires_grad=False");
    tp_node *fn = tp_grad_fn_borrow(t);
    if (!fn || t->flags & TP_FLAG_RETAINS_GRAD) return 0;
    tp_grad_keeper *k = malloc(sizeof *k);
    if (!k) return tp_fail_memory(sizeof *k);
    *k = (tp_grad_keeper){t, fn->keepers};
    fn->keepers = k;
    t->flags |= TP_FLAG_RETAINS_GRAD;
    return 0;
}

static int move_keeper(tp_node *from, tp_node *to, tp_tensor *t) {
    tp_grad_keeper *k = malloc(sizeof *k);
    if (!k) return tp_fail_memory(sizeof *k);
    tp_forget_keeper(from, t);
    *k = (tp_grad_keeper){t, to->keepers};
    to->keepers = k;
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

static int keep_grad(tp_tensor *t, tp_tensor *grad) {
    tp_autoref *old = tp_grad(t);
    tp_tensor *kept = old ? tp_add_Tensor(old, grad, TP_SCALAR_I(1)) : tp_clone(grad, TP_NO_FORMAT);
    if (!kept) return -1;
    tp_put_grad_steal(t, kept);
    return 0;
}

/* The list is read before anything is computed, since meanwhile another thread may let one of its tensors go. */
int tp_keep_grads(tp_node *n, tp_tensor *const *grads) {
    int64_t count = 0, i = 0;
    for (const tp_grad_keeper *k = n->keepers; k; k = k->next) count++;
    tp_autoseq *kept = tp_tensor_seq_new(count);
    if (!kept) return -1;
    for (const tp_grad_keeper *k = n->keepers; k; k = k->next) kept->items[i++] = tp_retain(k->tensor);
    for (i = 0; i < count; i++) {
        tp_tensor *grad = grads[kept->items[i]->autograd->output_nr];
        if (grad && keep_grad(kept->items[i], grad) < 0) return -1;
    }
    return 0;
}
