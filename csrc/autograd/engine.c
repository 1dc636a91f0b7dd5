/* engine.c: one run of the backward graph.
 *
 * A run keeps a table from node to entry (how many gradients are still to come, and those that came), so nothing of it
 * is in the nodes themselves. Ready nodes wait in a heap ordered by sequence number. */
#include "autograd/engine.h"

#include "Functions.h"
#include "autograd/internal.h"
#include "core/host.h"
#include "dispatch/profiler.h"

#include <stdlib.h>
#include <string.h>

#define NODES_PER_LOOK 8 /* for signals; a node that takes long looks itself */

typedef struct {
    tp_node *node;     /* owned */
    tp_tensor **grads; /* one per input of the node */
    int32_t waiting;   /* edges that have not delivered yet */
    bool runs;         /* leads to a gradient that was asked for, so its apply is called */
    bool captured;     /* the gradients that arrive here were asked for */
    bool seen;
    bool reached; /* a gradient can come here from a root */
} entry;

typedef struct {
    tp_node *node;
    uint32_t input_nr;
    tp_tensor **slot; /* where autograd.grad wants the gradient */
} capture;

typedef struct {
    entry **table; /* open addressing by node */
    int64_t count, capacity;
    tp_node **heap;
    int64_t ready, heap_capacity;
    capture *captures;
    int64_t ncaptures;
    bool restricted, retain_graph, create_graph;
    bool planned; /* a region is open for it */
    int64_t number;
    tp_node *at; /* the node that runs; the entry owns it */
} run;

static _Thread_local const run *current; /* the innermost one of this thread */
static _Atomic int64_t runs;

/* ---- the table ---- */

static uint64_t hash_node(const tp_node *n) { return ((uintptr_t)n >> 5) * 0x9E3779B97F4A7C15u; }

static entry **find_slot(const run *r, const tp_node *n) {
    uint64_t mask = (uint64_t)r->capacity - 1, i = hash_node(n) >> 20 & mask;
    while (r->table[i] && r->table[i]->node != n) i = (i + 1) & mask;
    return &r->table[i];
}

static int grow_table(run *r) {
    run bigger = *r;
    bigger.capacity = r->capacity ? r->capacity * 2 : 64;
    bigger.table = calloc((size_t)bigger.capacity, sizeof *bigger.table);
    if (!bigger.table) return tp_fail_memory(bigger.capacity * (int64_t)sizeof *bigger.table);
    for (int64_t i = 0; i < r->capacity; i++)
        if (r->table[i]) *find_slot(&bigger, r->table[i]->node) = r->table[i];
    free(r->table);
    *r = bigger;
    return 0;
}

static entry *entry_of(const run *r, const tp_node *n) { return r->capacity ? *find_slot(r, n) : NULL; }

static entry *ensure_entry(run *r, tp_node *n) {
    if (r->count * 2 >= r->capacity && grow_table(r) < 0) return NULL;
    entry **slot = find_slot(r, n);
    if (*slot) return *slot;
    entry *e = calloc(1, sizeof *e + n->ninputs * sizeof *e->grads);
    if (!e) return tp_fail_memory(sizeof *e), NULL;
    e->node = tp_node_retain(n);
    e->grads = (tp_tensor **)(e + 1);
    r->count++;
    return *slot = e;
}

static void free_run(run *r) {
    for (int64_t i = 0; i < r->capacity; i++) {
        entry *e = r->table[i];
        if (!e) continue;
        for (uint32_t k = 0; k < e->node->ninputs; k++) tp_release(e->grads[k]);
        tp_node_release(e->node);
        free(e);
    }
    free(r->table);
    free(r->heap);
    free(r->captures);
}

/* ---- the heap of ready nodes: latest call first ---- */

static bool later(const tp_node *a, const tp_node *b) { return a->sequence > b->sequence; }

static int push_ready(run *r, tp_node *n) {
    if (r->ready == r->heap_capacity) {
        int64_t capacity = r->heap_capacity ? r->heap_capacity * 2 : 64;
        tp_node **grown = realloc(r->heap, (size_t)capacity * sizeof *grown);
        if (!grown) return tp_fail_memory(capacity * (int64_t)sizeof *grown);
        r->heap = grown;
        r->heap_capacity = capacity;
    }
    int64_t i = r->ready++;
    for (; i > 0 && later(n, r->heap[(i - 1) / 2]); i = (i - 1) / 2) r->heap[i] = r->heap[(i - 1) / 2];
    r->heap[i] = n;
    return 0;
}

static tp_node *pop_ready(run *r) {
    tp_node *top = r->heap[0], *last = r->heap[--r->ready];
    int64_t i = 0;
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= r->ready) break;
        if (child + 1 < r->ready && later(r->heap[child + 1], r->heap[child])) child++;
        if (!later(r->heap[child], last)) break;
        r->heap[i] = r->heap[child];
        i = child;
    }
    r->heap[i] = last;
    return top;
}

/* ---- before the run: count what each node waits for ---- */

/* Walks the graph below the roots depth first with a stack of its own. Nodes are listed in the order in which they are
 * finished, so that `needed` can be passed up from the leaves. */
static int count_dependencies(run *r, tp_node *const *roots, int64_t nroots, tp_node ***finished, int64_t *nfinished) {
    typedef struct {
        tp_node *node;
        uint32_t next;
    } frame;
    frame *stack = NULL;
    int64_t depth = 0, capacity = 0, order_capacity = 0;
    tp_node **order = NULL;
    *nfinished = 0;
    int status = 0;
    for (int64_t i = 0; status == 0 && i <= nroots; i++) {
        tp_node *next = i < nroots ? roots[i] : NULL;
        for (;;) {
            entry *e = next ? ensure_entry(r, next) : NULL;
            if (next && !e) {
                status = -1;
                break;
            }
            if (e && !e->seen) {
                e->seen = e->reached = true;
                if (depth == capacity) {
                    capacity = capacity ? capacity * 2 : 256;
                    frame *grown = realloc(stack, (size_t)capacity * sizeof *grown);
                    if (!grown) {
                        status = tp_fail_memory(capacity * (int64_t)sizeof *grown);
                        break;
                    }
                    stack = grown;
                }
                stack[depth++] = (frame){next, 0};
            }
            if (depth == 0) break;
            frame *f = &stack[depth - 1];
            next = NULL;
            if (f->next < f->node->nedges) {
                next = f->node->edges[f->next++].node;
                if (next) {
                    entry *below = ensure_entry(r, next);
                    if (!below) {
                        status = -1;
                        break;
                    }
                    below->waiting++;
                }
                continue;
            }
            if (*nfinished == order_capacity) {
                order_capacity = order_capacity ? order_capacity * 2 : 256;
                tp_node **grown = realloc(order, (size_t)order_capacity * sizeof *grown);
                if (!grown) {
                    status = tp_fail_memory(order_capacity * (int64_t)sizeof *grown);
                    break;
                }
                order = grown;
            }
            order[(*nfinished)++] = f->node;
            depth--;
        }
    }
    free(stack);
    *finished = order;
    return status;
}

static bool wants_gradient(const entry *e) { return e->runs || e->captured; }

/* Children come before their parents in `finished`. An accumulator that add_captures has marked runs already. */
static void mark_needed(run *r, tp_node *const *finished, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        entry *e = entry_of(r, finished[i]);
        e->runs |= !r->restricted;
        for (uint32_t k = 0; !e->runs && k < finished[i]->nedges; k++)
            if (finished[i]->edges[k].node) e->runs = wants_gradient(entry_of(r, finished[i]->edges[k].node));
    }
}

/* ---- one gradient ---- */

static int wrong_gradient(const tp_node *from, int index, const tp_input_meta *m, const tp_tensor *grad) {
    tp_autotext expected = {0}, got = {0};
    tp_text_ints(&expected, (tp_ints){m->sizes, m->ndim});
    tp_text_ints(&got, tp_sizes(grad));
    return tp_fail(
        TP_RuntimeError,
        "Function %s returned an invalid gradient at index %d - got %s but expected shape compatible with %s",
        from->type->name, index, got.text, expected.text);
}

static bool has_no_elements(tp_ints sizes) {
    for (int64_t i = 0; i < sizes.size; i++)
        if (sizes.data[i] == 0) return true;
    return false;
}

static bool can_sum_to(tp_ints from, tp_ints to) {
    if (to.size > from.size) return false;
    for (int64_t i = 1; i <= to.size; i++)
        if (to.data[to.size - i] != from.data[from.size - i] && to.data[to.size - i] != 1) return false;
    return true;
}

/* One number may come from elsewhere, as it may go elsewhere in forward; nothing else. */
static int fit_device(const tp_node *from, int index, const tp_input_meta *m, tp_tensor **grad) {
    char wanted[40], found[40];
    if ((*grad)->ndim)
        return tp_fail(
            TP_RuntimeError, "Function %s returned an invalid gradient at index %d - expected device %s but got %s",
            from->type->name, index, tp_device_print(m->device, wanted), tp_device_print((*grad)->device, found));
    tp_tensor *there = tp_to_device(*grad, m->device, (tp_dtype)(*grad)->dtype, false, false, TP_NO_FORMAT);
    if (!there) return -1;
    tp_release(*grad);
    *grad = there;
    return 0;
}

/* Fits a gradient to what the receiving node expects: sums over broadcast dimensions, takes the real part for a real
 * tensor, casts. `*grad` is replaced. */
static int fit_gradient(const tp_node *from, int index, const tp_input_meta *m, tp_tensor **grad) {
    tp_tensor *g = *grad;
    if (!m->defined) return 0;
    tp_ints sizes = {m->sizes, m->ndim};
    bool same = g->ndim == m->ndim && memcmp(g->sizes, m->sizes, m->ndim * sizeof(int64_t)) == 0;
    bool here = tp_device_equal(m->device, g->device);
    if (same && here && g->dtype == m->dtype) return 0;
    if (!same) {
        bool nothing = g->numel == 0 && has_no_elements(sizes); /* cat's, for the empty vector that it leaves out */
        if (!nothing && !can_sum_to(tp_sizes(g), sizes)) return wrong_gradient(from, index, m, g);
        tp_tensor *summed = nothing ? tp_new_empty(sizes, (tp_dtype)g->dtype, g->device) : tp_sum_to_sizes(g, sizes);
        if (!summed) return -1;
        tp_release(g);
        *grad = g = summed;
    }
    if (!here && fit_device(from, index, m, grad) < 0) return -1;
    g = *grad;
    if (g->dtype == m->dtype) return 0;
    if (tp_is_complex(g) && !tp_is_complex_dtype((tp_dtype)m->dtype)) {
        tp_tensor *real = tp_real(g);
        if (!real) return -1;
        tp_release(g);
        *grad = g = real;
    }
    if (g->dtype == m->dtype) return 0;
    tp_tensor *cast = tp_to_dtype(g, (tp_dtype)m->dtype, false, false, TP_NO_FORMAT);
    if (!cast) return -1;
    tp_release(g);
    *grad = cast;
    return 0;
}

/* Adds a gradient (stolen) to a slot. */
static int add_gradient_steal(tp_tensor **slot, tp_tensor *grad) {
    if (!*slot) {
        *slot = grad;
        return 0;
    }
    int status = 0;
    bool alike = (*slot)->keys == grad->keys; /* a batched gradient is not added to one that is not, in place */
    if (!tp_grad_enabled() && alike && tp_is_ours(*slot) && tp_is_dense(*slot)) {
        status = tp_add__Tensor(*slot, grad, TP_SCALAR_I(1));
    } else {
        tp_tensor *sum = tp_sum_of_grads(*slot, grad);
        if (sum) {
            tp_release(*slot);
            *slot = sum;
        } else {
            status = -1;
        }
    }
    tp_release(grad);
    return status;
}

/* ---- one node ---- */

static int deliver(run *r, const tp_node *from, int index, const tp_edge *edge, tp_tensor *grad) {
    entry *e = entry_of(r, edge->node);
    if (grad && wants_gradient(e)) {
        if (fit_gradient(from, index, &edge->node->inputs[edge->input_nr], &grad) < 0) {
            tp_release(grad);
            return -1;
        }
        if (add_gradient_steal(&e->grads[edge->input_nr], grad) < 0) return -1;
    } else {
        tp_release(grad);
    }
    return --e->waiting == 0 ? push_ready(r, edge->node) : 0;
}

static int take_captures(run *r, const entry *e) {
    if (!e->captured) return 0;
    for (int64_t i = 0; i < r->ncaptures; i++) {
        capture *c = &r->captures[i];
        if (c->node != e->node || !c->slot) continue;
        tp_tensor *grad = e->grads[c->input_nr];
        if (!grad) continue;
        /* The engine may add to a gradient in place later on, so what is handed out is not shared. */
        *c->slot = tp_retain(grad);
    }
    return 0;
}

static int before_node(entry *e) {
    tp_node *n = e->node;
    const tp_tensor *variable = tp_accumulator_variable_borrow(n);
    if (variable && variable->autograd->hooks &&
        tp_autograd_host.before(variable->autograd->hooks, e->grads, 1, false) < 0)
        return -1;
    if (n->hooks && tp_autograd_host.before(n->hooks, e->grads, (int)n->ninputs, e->runs) < 0) return -1;
    return n->keepers ? tp_keep_grads(n, e->grads) : 0;
}

static int check_nan(const tp_node *n, tp_tensor *const *out) {
    for (uint32_t i = 0; i < n->nedges; i++) {
        if (!out[i]) continue;
        tp_autoref *nan = tp_isnan(out[i]);
        tp_autoref *any = nan ? tp_any(nan) : NULL;
        bool found;
        if (!any || tp_is_nonzero(any, &found) < 0) return -1;
        if (found)
            return tp_fail(TP_RuntimeError, "Function '%s' returned nan values in its %uth output.", n->type->name, i);
    }
    return 0;
}

/* Under detect_anomaly the nodes that a formula makes know which node they come from. */
static TP_COLD int run_traced(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    tp_node *outer = tp_tls.running;
    tp_tls.running = n;
    int status = n->type->apply(n, grads, out);
    tp_tls.running = outer;
    return status;
}

static int run_formula(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    if (tp_unlikely(tp_anomaly_mode())) return run_traced(n, grads, out);
    if (tp_likely(!(tp_tls.include & TP_BIT(Profiler)))) return n->type->apply(n, grads, out);
    tp_profile_mark mark = tp_profile_enter(TP_PROFILED_BACKWARD, n->type->name, (int64_t)n->sequence);
    int status = n->type->apply(n, grads, out);
    tp_profile_leave(mark, status);
    return status;
}

int tp_apply_node(tp_node *n, tp_tensors grads, tp_tensor **out) {
    if (run_formula(n, grads.data, out) < 0) return -1;
    return n->hooks ? tp_autograd_host.after(n->hooks, out, (int)n->nedges, (tp_tensor **)grads.data, (int)grads.size)
                    : 0;
}

static int apply_node(run *r, entry *e, tp_tensor **out) {
    tp_node *n = e->node;
    bool any = false;
    for (uint32_t i = 0; i < n->ninputs; i++) any |= e->grads[i] != NULL;
    if (any && run_formula(n, e->grads, out) < 0) return -1;
    if (n->hooks && tp_autograd_host.after(n->hooks, out, (int)n->nedges, e->grads, (int)n->ninputs) < 0) return -1;
    if (tp_unlikely(tp_anomaly_mode() & TP_ANOMALY_NAN) && check_nan(n, out) < 0) return -1;
    if (!r->retain_graph && !tp_accumulator_variable_borrow(n)) { /* an accumulator is shared, and keeps nothing */
        n->type->release(n);
        n->released = true;
    }
    return 0;
}

static int finish_node(run *r, entry *e) {
    tp_node *n = e->node;
    uint32_t nedges = n->nedges;
    tp_tensor *few[8] = {0}, **out = few;
    if (nedges > TP_COUNTOF(few) && !(out = calloc(nedges, sizeof *out)))
        return tp_fail_memory(nedges * (int64_t)sizeof *out);
    int status = 0;
    r->at = n;
    if (wants_gradient(e)) status = before_node(e);
    if (status == 0) status = take_captures(r, e);
    if (status == 0 && e->runs) {
        status = apply_node(r, e, out);
        if (status < 0 && tp_unlikely(tp_anomaly_mode()) && tp_autograd_host.anomaly) tp_autograd_host.anomaly(n);
    }
    for (uint32_t i = 0; i < n->ninputs; i++) tp_release(tp_take(e->grads[i]));
    for (uint32_t i = 0; i < nedges; i++) {
        if (status < 0 || !n->edges[i].node) tp_release(out[i]);
        else status = deliver(r, n, (int)i, &n->edges[i], out[i]);
    }
    if (out != few) free(out);
    return status;
}

/* ---- roots and inputs ---- */

static tp_edge edge_of(tp_tensor *t) {
    tp_edge e = {0};
    tp_node *fn = tp_grad_fn_borrow(t);
    if (fn) e = (tp_edge){tp_node_retain(fn), t->autograd->output_nr};
    else e.node = tp_accumulator(t);
    return e;
}

tp_tensor *tp_tensor_of_edge(tp_node *n, uint32_t nr) {
    tp_tensor *leaf = tp_accumulator_variable_borrow(n);
    if (leaf) return tp_retain(leaf);
    if (nr >= n->ninputs)
        return tp_fail_null(TP_RuntimeError, "%s has no output %u: it has %u", n->type->name, nr, n->ninputs);
    const tp_input_meta *m = &n->inputs[nr];
    tp_autoref *t = tp_new_empty((tp_ints){m->sizes, m->ndim}, (tp_dtype)m->dtype, m->device);
    tp_autograd_meta *own = t ? tp_autograd_meta_ensure(t) : NULL;
    if (!own) return NULL;
    own->grad_fn = tp_node_retain(n);
    own->output_nr = nr;
    own->requires_grad = true;
    t->flags = (uint16_t)(t->flags | TP_FLAG_REQUIRES_GRAD);
    return tp_take(t);
}

static tp_tensor *root_gradient(int64_t i, tp_tensor *root, tp_tensor *given) {
    if (given) {
        char wanted[40], found[40];
        if (!tp_device_equal(root->device, given->device))
            return tp_fail_null(TP_RuntimeError, "invalid gradient: expected device %s but got %s",
                                tp_device_print(root->device, wanted), tp_device_print(given->device, found));
        if (!tp_same_sizes(root, given)) {
            tp_autotext a = {0}, b = {0};
            tp_text_ints(&a, tp_sizes(given));
            tp_text_ints(&b, tp_sizes(root));
            return tp_fail_null(
                TP_RuntimeError,
                "Mismatch in shape: grad_output[%lld] has a shape of torch.Size(%s) and output[%lld] has a "
                "shape of torch.Size(%s).",
                (long long)i, a.text, (long long)i, b.text);
        }
        if (given->dtype != root->dtype && (tp_is_complex(given) || tp_is_complex(root)))
            return tp_fail_null(TP_RuntimeError,
                                "For complex Tensors, both grad_output and output are required to have the same dtype. "
                                "Mismatch in dtype: grad_output[%lld] has a dtype of torch.%s and output[%lld] has a "
                                "dtype of torch.%s.",
                                (long long)i, tp_dtype_names[given->dtype], (long long)i, tp_dtype_names[root->dtype]);
        return tp_retain(given);
    }
    if (root->numel != 1)
        return tp_fail_null(TP_RuntimeError, "grad can be implicitly created only for scalar outputs");
    if (tp_is_complex(root))
        return tp_fail_null(TP_RuntimeError,
                            "grad can be implicitly created only for real scalar outputs but got torch.%s",
                            tp_dtype_names[root->dtype]);
    return tp_ones_like(root, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_PRESERVE_FORMAT);
}

static int add_root(run *r, int64_t i, tp_tensor *root, tp_tensor *given, tp_node **node) {
    if (!tp_requires_grad(root))
        return tp_fail(TP_RuntimeError, "element %lld of tensors does not require grad and does not have a grad_fn",
                       (long long)i);
    tp_edge edge = edge_of(root);
    tp_autonode *owner = edge.node;
    if (!owner) return -1;
    tp_tensor *grad = root_gradient(i, root, given);
    if (!grad) return -1;
    entry *e = ensure_entry(r, owner);
    *node = owner; /* the entry owns it */
    if (!e || fit_gradient(owner, (int)i, &owner->inputs[edge.input_nr], &grad) < 0) return tp_release(grad), -1;
    return add_gradient_steal(&e->grads[edge.input_nr], grad);
}

static int add_captures(run *r, tp_tensors inputs, tp_tensor **out, tp_node **owners) {
    if (inputs.size < 0) return 0;
    r->restricted = true;
    r->captures = calloc((size_t)inputs.size + 1, sizeof *r->captures);
    if (!r->captures) return tp_fail_memory(inputs.size * (int64_t)sizeof *r->captures);
    for (int64_t i = 0; i < inputs.size; i++) {
        if (!tp_requires_grad(inputs.data[i]))
            return tp_fail(TP_RuntimeError, "One of the differentiated Tensors does not require grad");
        tp_edge edge = edge_of(inputs.data[i]);
        if (!edge.node) return -1;
        owners[i] = edge.node;
        entry *e = ensure_entry(r, edge.node);
        if (!e || (!out && tp_retain_grad(inputs.data[i]) < 0)) return -1;
        e->captured = true;
        e->runs |= !out && tp_accumulator_variable_borrow(edge.node); /* backward(inputs=...) */
        r->captures[r->ncaptures++] = (capture){edge.node, edge.input_nr, out ? &out[i] : NULL};
    }
    return 0;
}

/* What a compiled function has made runs backward as the function has run: in a region of its own, unless one is open.
 */
static int open_region(run *r) {
    for (int64_t i = 0; i < r->capacity && !tp_tls.region; i++) {
        if (!r->table[i] || !r->table[i]->node->plan) continue;
        int status = tp_pending_hooks.open(r->table[i]->node->plan);
        r->planned = status == 1;
        return status < 0 ? -1 : 0;
    }
    return 0;
}

/* The region's calls run in any case: what has come before an error stays, and the first error is told. */
static int close_region(int status) {
    tp_saved_error error = {0};
    if (status < 0) error = tp_error_take();
    int closed = tp_pending_hooks.close();
    if (status == 0) return closed;
    tp_error_clear();
    tp_error_restore_steal(&error);
    return -1;
}

static int run_graph(run *r, tp_tensors roots, tp_tensors root_grads) {
    tp_node *few[16], **nodes = few, **finished = NULL;
    int64_t nfinished = 0;
    if (roots.size > 16 && !(nodes = calloc((size_t)roots.size, sizeof *nodes)))
        return tp_fail_memory(roots.size * (int64_t)sizeof *nodes);
    int status = 0;
    for (int64_t i = 0; status == 0 && i < roots.size; i++)
        status = add_root(r, i, roots.data[i], root_grads.size > i ? root_grads.data[i] : NULL, &nodes[i]);
    if (status == 0) status = count_dependencies(r, nodes, roots.size, &finished, &nfinished);
    if (status == 0) mark_needed(r, finished, nfinished);
    free(finished);
    if (status == 0 && tp_unlikely(atomic_load_explicit(&tp_has_planned_nodes, memory_order_relaxed)))
        status = open_region(r);
    for (int64_t i = 0; status == 0 && i < roots.size; i++) {
        entry *e = entry_of(r, nodes[i]);
        if (e->waiting == 0 && e->seen) {
            e->seen = false; /* a node that is a root twice starts once */
            status = push_ready(r, nodes[i]);
        }
    }
    for (int64_t count = 1; status == 0 && r->ready > 0; count++) {
        status = finish_node(r, entry_of(r, pop_ready(r)));
        if (status == 0 && count % NODES_PER_LOOK == 0) status = tp_host_look();
    }
    if (nodes != few) free(nodes);
    return status;
}

int tp_backward(tp_tensors roots, tp_tensors root_grads, bool retain_graph, bool create_graph, tp_tensors inputs,
                tp_tensor **out) {
    run r = {.retain_graph = retain_graph, .create_graph = create_graph, .number = runs++};
    const run *outer = current;
    bool grad_was_disabled = tp_tls.grad_disabled;
    tp_node **owners = inputs.size > 0 ? calloc((size_t)inputs.size, sizeof *owners) : NULL;
    if (inputs.size > 0 && !owners) return tp_fail_memory(inputs.size * (int64_t)sizeof *owners);
    tp_tls.grad_disabled = !create_graph;
    tp_tls.backward_depth++;
    current = &r;
    int status = add_captures(&r, inputs, out, owners);
    if (status == 0) status = run_graph(&r, roots, root_grads);
    current = outer;
    free_run(&r);
    if (tp_unlikely(r.planned)) status = close_region(status);
    tp_tls.backward_depth--;
    tp_tls.grad_disabled = grad_was_disabled;
    for (int64_t i = 0; i < inputs.size; i++) {
        tp_node_release(owners[i]);
        if (status < 0 && out) tp_release(tp_take(out[i]));
    }
    free(owners);
    return status;
}

int64_t tp_current_backward(void) { return current ? current->number : -1; }
bool tp_backward_keeps_graph(void) { return current && current->retain_graph; }
tp_node *tp_running_node_borrow(void) { return current ? current->at : NULL; }

bool tp_backward_captures_leaf(const tp_node *n) {
    const entry *e = current ? entry_of(current, n) : NULL;
    return e && e->captured && !e->runs && tp_accumulator_variable_borrow(n);
}

bool tp_backward_will_reach(const tp_node *n) {
    const entry *e = current ? entry_of(current, n) : NULL;
    return e && e->reached && wants_gradient(e);
}
