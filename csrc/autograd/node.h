/* node.h: the backward graph: nodes, edges, saved values, and a tensor's autograd state.
 *
 * A node stands for one recorded call. It has one input per output of the call (gradients arrive there) and one edge
 * per differentiable argument (gradients leave there). Edges own their nodes; tensors own their grad_fn; a leaf's
 * AccumulateGrad node owns the leaf, and the leaf knows it weakly. So the graph is a tree of ownership without cycles,
 * as long as a node never owns its own output: an output is saved as a bare alias (tp_save_output).
 *
 * The generator makes one struct per formula, with tp_node first and the saved values after it. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || \
    defined(TP_FOLDER_cpu)
#error "autograd stands above the dispatcher and the kernels"
#endif

#include "core/tensor.h"
#include "core/tls.h"

struct tp_node;
struct tp_py_hooks;
struct tp_grad_keeper;
struct tp_tangents;

typedef struct {
    struct tp_node *node; /* NULL: no gradient wanted */
    uint32_t input_nr;    /* which output of the call that `node` stands for */
} tp_edge;

/* What the engine checks a gradient against, one per output of the call. */
typedef struct {
    uint8_t dtype, ndim;
    bool defined;
    tp_device device;
    int64_t *sizes; /* inline_sizes, or on the heap */
    int64_t inline_sizes[TP_INLINE_DIMS];
} tp_input_meta;

typedef struct {
    tp_tensor *tensor; /* owned; an output: a bare alias without history */
    uint32_t version;
    bool is_output;
    uint32_t output_nr;
    void *packed; /* what saved-tensor hooks made of it instead, owned, the host's; or a number: tp_packed */
} tp_saved;
/* What saved-tensor hooks made of a value, or NULL. A compiled function's number for the value, beside the tensor, is
 * odd: Note [Values computed again] in core/storage.h. */
TP_INLINE void *tp_packed(const tp_saved *s) { return (uintptr_t)s->packed & 1 ? NULL : s->packed; }

typedef struct {
    const char *name; /* "AddBackward0" */
    bool of_engine;   /* not of an operator: name() says where it is from, as programs compare it */
    const char *op;   /* "add.Tensor" */
    size_t size;      /* of the struct */
    /* The gradients of the edges: grads has one entry per input (borrowed, NULL if none arrived), out one per edge
     * (new, or NULL). Only edges for which tp_node_wants is true need to be filled in. */
    int (*apply)(struct tp_node *node, tp_tensor *const *grads, tp_tensor **out);
    /* Lets go of saved tensors; may be called twice. */
    void (*release)(struct tp_node *node);
    /* Frees the copies of other arguments, once, at the node's end; NULL if it has none. They outlive `release`, so
     * that a node without saved tensors can run again. */
    void (*free_copies)(struct tp_node *node);
    /* Behind `base` the struct has so many tp_saved, then so many tp_saved_list *, for who looks for cycles. */
    uint16_t nsaved, nlists;
    /* Another node that this one stands for, whose saved tensors it has; borrowed. NULL: it stands for itself. */
    struct tp_node *(*inner)(const struct tp_node *node);
    const char *saved; /* their names, with spaces between; NULL: they have none */
    /* The names of what is saved beside tensors, and the i-th of it, as an argument: borrowed from the node. */
    const char *numbers;
    tp_value (*number)(const struct tp_node *node, int i);
} tp_node_type;

typedef struct tp_node {
    _Atomic int32_t refcount;
    uint32_t nedges, ninputs;
    const tp_node_type *type;
    uint64_t sequence; /* later calls have larger numbers: the engine runs them first */
    tp_edge *edges;
    tp_input_meta *inputs;
    tp_input_meta first_input;      /* inputs points here while ninputs is 1 */
    struct tp_py_hooks *hooks;      /* hooks of the node and of its outputs; python/hooks.c */
    struct tp_grad_keeper *keepers; /* outputs that keep their gradient (retain_grad) */
    void *pyobj;                    /* the Python object that stands for the node (weak) */
    struct tp_node_trace *trace;    /* where the forward call was, under detect_anomaly, or NULL */
    bool released;                  /* saved values are gone */
    uint8_t plan;                   /* of a compiled function that made it: Note [Pending memory]; 0: none */
} tp_node;

/* What detect_anomaly notes when a node is made. */
typedef struct tp_node_trace {
    char *where;     /* the host's traceback; owned, NULL: it has none */
    tp_node *parent; /* the node whose formula made this one; owned, NULL: none did */
} tp_node_trace;

typedef struct tp_autograd_meta {
    tp_tensor *grad; /* through tp_grad and tp_put_grad_steal only: another thread may put one there */
    tp_node *grad_fn;
    tp_node *accumulator; /* weak: of a leaf */
    uint32_t output_nr;
    bool requires_grad;           /* of a leaf */
    struct tp_py_hooks *hooks;    /* of a leaf */
    struct tp_tangents *tangents; /* forward/forward.h; owned, shared with saved aliases; NULL: none */
    tp_tensor *shown_base;        /* owned: tp_show_base */
} tp_autograd_meta;

/* ---- anomalies ---- */
/* detect_anomaly, which is the process's: nodes keep where they were made, and a backward tells of it where it fails,
 * or where (with TP_ANOMALY_NAN) a gradient is NaN. */
enum { TP_ANOMALY_ON = 1, TP_ANOMALY_NAN = 2 };
extern _Atomic uint8_t tp_anomaly;
/* The bits, or 0 where it is off. */
TP_INLINE uint8_t tp_anomaly_mode(void) {
    uint8_t mode = atomic_load_explicit(&tp_anomaly, memory_order_relaxed);
    return tp_unlikely(mode & TP_ANOMALY_ON) ? mode : 0;
}

/* ---- nodes ---- */
/* A node of a type, with n edges that lead nowhere yet; NULL on failure. */
tp_node *tp_node_new(const tp_node_type *type, int nedges);
void tp_node_free(tp_node *n);
TP_INLINE tp_node *tp_node_retain(tp_node *n) {
    if (n) atomic_fetch_add_explicit(&n->refcount, 1, memory_order_relaxed);
    return n;
}
TP_INLINE void tp_node_release(tp_node *n) {
    /* Always counted down to zero, since a leaf knows its accumulator weakly. */
    if (n && atomic_fetch_sub_explicit(&n->refcount, 1, memory_order_acq_rel) == 1) tp_node_free(n);
}
TP_INLINE void tp_node_release_scope(tp_node **n) { tp_node_release(*n); }
#define tp_autonode TP_CLEANUP(tp_node_release_scope) tp_node

/* A lower bound of the next node's sequence number; and the number of a tensor's node, -1 where it has none. */
uint64_t tp_next_sequence(void);
int64_t tp_sequence_of(const tp_tensor *t);

/* Points edge i to where t's gradient goes: its grad_fn, or its accumulator; to nowhere if t wants none. */
int tp_node_set_edge(tp_node *n, int i, tp_tensor *t);
int tp_node_set_edges(tp_node *n, int first, tp_tensors list);
TP_INLINE bool tp_node_wants(const tp_node *n, int i) { return n->edges[i].node != NULL; }
bool tp_node_wants_any(const tp_node *n, int first, int count);
/* Adds an input for an output of the call and makes it the tensor's grad_fn. An output of a dtype that has no
 * gradient is left alone. */
int tp_node_set_output(tp_node *n, tp_tensor *out);
/* The same for an output that is absent: keeps the numbering. */
int tp_node_skip_output(tp_node *n);

/* ---- saved values ---- */
int tp_save(tp_saved *s, tp_tensor *t); /* t may be NULL */
/* The same for what needs a tensor of a layout for its pattern only, whose values may be written meanwhile: output
 * number output_nr, or an argument (-1). */
int tp_save_pattern(tp_saved *s, tp_tensor *t, int output_nr);
/* tp_version of what t holds: of a tensor of a layout that of its values, too, which others may write. */
uint32_t tp_contents_version(const tp_tensor *t);
/* Keeps a copy of what the call is about to write. */
int tp_save_before_write(tp_saved *s, tp_tensor *t);
int tp_save_output(tp_saved *s, tp_tensor *t, int output_nr);
/* A new reference; NULL without an error for an absent tensor. RuntimeError if it was changed in place since, or let
 * go. An output has its history where the backward is recorded; the second has it always, since code that is not ours
 * may record what it computes from it in a backward that nothing else records. */
tp_tensor *tp_saved_get(const tp_saved *s, tp_node *owner);
tp_tensor *tp_saved_get_whole(const tp_saved *s, tp_node *owner);
void tp_saved_free(tp_saved *s);
typedef struct {
    int64_t size;
    tp_saved items[];
} tp_saved_list;
tp_saved_list *tp_saved_list_new(int64_t size); /* of absent tensors */
tp_saved_list *tp_save_list(tp_tensors list);
int tp_saved_list_get(const tp_saved_list *s, tp_node *owner, tp_tensor_seq **out);
void tp_saved_list_free(tp_saved_list **s);
/* Copies of other arguments. */
tp_ints tp_save_ints(tp_ints v);
void tp_saved_ints_free(tp_ints *v);
char *tp_save_str(const char *s);
tp_scalar *tp_save_scalar(const tp_scalar *s);

/* ---- a tensor's state ---- */
/* Whether a gradient is wanted: a leaf's own wish, a grad_fn, a view whose base was changed in place by something that
 * is differentiated since the view was made, or a view made under no_grad of what wants one: a leaf. */
bool tp_view_gained_grad(const tp_tensor *view);
TP_INLINE bool tp_requires_grad(const tp_tensor *t) {
    return t && (t->flags & TP_FLAG_REQUIRES_GRAD || (tp_unlikely(t->base != NULL) && tp_view_gained_grad(t)));
}
tp_autograd_meta *tp_autograd_meta_ensure(tp_tensor *t);
void tp_autograd_meta_free(tp_autograd_meta *m);
TP_INLINE bool tp_grad_enabled(void) { return !tp_tls.grad_disabled; }
int tp_set_requires_grad(tp_tensor *t, bool value);
bool tp_is_leaf(const tp_tensor *t);
/* The node of t: grad_fn (brought up to date for a view whose base was changed), or a leaf's accumulator. */
tp_node *tp_grad_fn_borrow(tp_tensor *t);
tp_node *tp_accumulator(tp_tensor *leaf); /* new */
/* A tensor that stands where the gradient of output `nr` of a node's call goes: to start from, or to ask for. For an
 * accumulator it is the leaf; else it has the output's sizes, dtype and device, and no elements that mean anything.
 * New. */
tp_tensor *tp_tensor_of_edge(tp_node *n, uint32_t nr);
tp_tensor *tp_accumulator_variable_borrow(const tp_node *n); /* NULL if n is no accumulator */
/* .grad, new, or NULL; and another one in its place (stolen; NULL: none). */
tp_tensor *tp_grad(const tp_tensor *t);
void tp_put_grad_steal(tp_tensor *t, tp_tensor *grad);
/* Sets .grad; RuntimeError if its sizes, dtype or device do not fit. */
int tp_set_grad(tp_tensor *t, tp_tensor *grad);
/* A result keeps its gradient from now on. */
int tp_retain_grad(tp_tensor *t);
/* Stores kept gradients of a node's outputs; called by the engine. */
int tp_keep_grads(tp_node *n, tp_tensor *const *grads);

/* ---- what the generated layer calls ---- */
bool tp_wants_grad_list(tp_tensors list);
/* An in-place operator may write to self: not a leaf that requires grad, not a view that must not be. */
int tp_check_inplace(tp_tensor *self, const char *op, bool records);
/* What a function that is differentiated writes to a tensor from outside would hang on the function's arguments. */
int tp_check_not_captured(const tp_tensor *self, const char *op);
/* t was written by op (a string that stays): raises the version, and remembers who wrote for the error that a saved
 * value has changed. */
TP_INLINE void tp_note_write(tp_tensor *t, const char *op) {
    tp_bump_version(t);
    t->storage->writer = op;
}
/* A tensor made in inference mode counts no writes: outside that mode it is not written. */
int tp_inference_write(const char *op) TP_COLD;
TP_INLINE int tp_may_write(const tp_tensor *t, const char *op) {
    return tp_unlikely(t->flags & TP_FLAG_INFERENCE && !tp_tls.inference_mode) ? tp_inference_write(op) : 0;
}
/* self was changed in place by the call that node stands for. */
int tp_rebase_history(tp_tensor *self, tp_node *node);
/* The same for a call that changed self's geometry but no element (tag inplace_view). */
int tp_restride_history(tp_tensor *self, tp_node *node);
/* self was changed in place, and has the history of `made`, which was computed of it and is given up. */
int tp_take_history(tp_tensor *self, const tp_tensor *made);
/* Error for out= with arguments that require grad. */
int tp_out_no_grad(const char *op) TP_COLD;
/* Refuses an operator that writes a list of tensors where a gradient is wanted; always -1. */
int tp_list_no_grad(const char *op) TP_COLD;
/* Refuses an argument that requires grad, and has no formula; always -1. */
int tp_refuse_grad(const char *op, const char *argument) TP_COLD;
/* A node for an operator without a formula: its backward fails with the operator's name. */
tp_node *tp_not_differentiable_node(const char *op, int nedges);
/* Marks `view` (new) as a view of `base` and returns it. */
tp_tensor *tp_as_view(tp_tensor *base, tp_tensor *view);
tp_tensor_seq *tp_as_views(tp_tensor *base, tp_tensor_seq *views);
/* What a view operator gave of a sparse tensor, for who asks of which tensor it is a view: its `base` is that of the
 * values that both are made of. The view is given back; NULL after a failure, before too. */
tp_tensor *tp_show_base(tp_tensor *base, tp_tensor *view);
tp_tensor_seq *tp_show_bases(tp_tensor *base, tp_tensor_seq *views);
/* Borrowed; NULL: none is shown. */
tp_tensor *tp_shown_base(const tp_tensor *t);
/* The part of `whole`, which is laid out as the view's base, that the view is of it. New. */
tp_tensor *tp_same_view(const tp_tensor *view, tp_tensor *whole);
/* The same memory and geometry without history; writes are tracked together (detach) or not at all (data). */
tp_tensor *tp_detached_alias(tp_tensor *t);
/* Forgets the history of t itself; fails for a view that has one. */
int tp_detach_in_place(tp_tensor *t);
tp_tensor *tp_detached_data(tp_tensor *t);
/* t becomes another tensor, but for what it knows of its gradient. */
int tp_put_data(tp_tensor *t, const tp_tensor *data);
/* Zeros in the shape of output i of the call that n stands for. New. */
tp_tensor *tp_zeros_for_input(const tp_node *n, int i);

/* Gradient of broadcasting: sums grad down to sizes. New. */
tp_tensor *tp_sum_to_sizes(tp_tensor *grad, tp_ints sizes);
