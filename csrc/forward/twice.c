/* twice.c: the tangent as the gradient of a gradient, for operators that have a differentiable backward and no forward
 * formula.
 *
 * The arguments' gradient is a linear function of the results' gradient. Its own gradient therefore does not depend on
 * where it is taken; with the arguments' tangents put in, it is the results' tangent. */
#include "Functions.h"
#include "autograd/engine.h"
#include "forward/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    tp_value args[TP_FORWARD_ARGUMENTS];
    tp_value *results;
    tp_tensor **leaves;     /* aliases of the arguments, in the order of the tangents; owned, NULL: a constant */
    tp_tensor **by, **with; /* those that are not NULL, and their tangents; borrowed */
    tp_tensor **roots, **cotangents; /* the results that hang on them (borrowed), and gradients of these (owned) */
    tp_tensor **gradients, **moved;  /* of the leaves, and of the cotangents; owned */
    int nleaves, nroots, nby, nresults;
} passes;

static void free_passes(passes *p) {
    for (int i = 0; p->leaves && i < p->nleaves; i++) tp_release(p->leaves[i]);
    for (int i = 0; p->cotangents && i < p->nroots; i++) tp_release(p->cotangents[i]);
    for (int i = 0; p->gradients && i < p->nby; i++) tp_release(p->gradients[i]);
    for (int i = 0; p->moved && i < p->nroots; i++) tp_release(p->moved[i]);
    if (p->results) tp_release_values(p->results, p->nresults);
    void *all[] = {p->results, p->leaves, p->by, p->with, p->roots, p->cotangents, p->gradients, p->moved};
    for (int i = 0; i < TP_COUNTOF(all); i++) free(all[i]);
}
#define tp_autopasses TP_CLEANUP(free_passes) passes

static void *zeroed(int n, size_t size) {
    void *memory = calloc((size_t)n + 1, size);
    if (!memory) tp_fail_memory((int64_t)size * n);
    return memory;
}

static void restore_grad_mode(const bool *disabled) { tp_tls.grad_disabled = *disabled; }

/* A leaf that a gradient is taken by, over the same elements; the graph that t has outside stays t's. */
static tp_tensor *as_leaf(tp_tensor *t) {
    tp_autoref *alias = tp_requires_grad(t) ? tp_alias(t) : tp_detached_dual(t);
    if (!alias || (!tp_requires_grad(alias) && tp_set_requires_grad(alias, true) < 0)) return NULL;
    return tp_take(alias);
}

static int make_leaves(const tp_forward_call *c, passes *p) {
    const tp_tangent_list *l = c->tangents;
    memcpy(p->args, c->args, sizeof(tp_value) * c->op->info->nargs);
    for (int i = 0; i < c->op->info->nargs; i++) {
        tp_tensors list = tp_tensors_in(&c->args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            int at = l->first[i] + (int)k;
            p->leaves[at] = l->all[at] ? as_leaf(list.data[k]) : tp_retain(list.data[k]);
            if (list.data[k] && !p->leaves[at]) return -1;
            if (!l->all[at]) continue;
            p->by[p->nby] = p->leaves[at];
            p->with[p->nby++] = l->all[at];
        }
        if (c->args[i].tag == TP_TENSORS) p->args[i].tensors = (tp_tensors){p->leaves + l->first[i], list.size};
        else if (c->args[i].tag == TP_TENSOR) p->args[i].tensor = p->leaves[l->first[i]];
    }
    return 0;
}

/* Any would do that the formula takes: one that goes over logarithms would not have zeros, and where results have a
 * phase that is free (singular vectors, eigenvectors), only gradients that do not depend on it. The results themselves
 * do not: what they multiply is their length. */
static tp_tensor *new_cotangent(tp_tensor *root) {
    tp_autoref *made = NULL;
    if (tp_is_complex(root)) {
        tp_autoref *values = tp_detach(root), *none = values ? tp_eq_Scalar(values, TP_SCALAR_I(0)) : NULL;
        made = none ? tp_masked_fill_Scalar(values, none, TP_SCALAR_I(1)) : NULL;
    } else {
        made = tp_ones_like(root, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    }
    return made && tp_set_requires_grad(made, true) == 0 ? tp_take(made) : NULL;
}

/* One that stands for an operator without a gradient. */
static bool is_missing(tp_tensor *root) {
    const tp_node *node = tp_grad_fn_borrow(root);
    return node && strcmp(node->type->name, "NotImplemented") == 0;
}

static int find_roots(const tp_forward_call *c, passes *p) {
    for (int i = 0; i < c->op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&p->results[i]);
        for (int64_t k = 0; k < list.size; k++) {
            if (!tp_requires_grad(list.data[k])) continue;
            if (is_missing(list.data[k])) return tp_fail_no_forward(c->op);
            p->roots[p->nroots] = list.data[k];
            if (!(p->cotangents[p->nroots++] = new_cotangent(list.data[k]))) return -1;
        }
    }
    return 0;
}

static int there_and_back(passes *p, bool create_graph) {
    tp_tensors roots = {p->roots, p->nroots}, cotangents = {p->cotangents, p->nroots};
    if (tp_backward(roots, cotangents, true, true, (tp_tensors){p->by, p->nby}, p->gradients) < 0) return -1;
    tp_tensor *back[p->nby + 1], *along[p->nby + 1];
    int n = 0;
    for (int i = 0; i < p->nby; i++)
        if (tp_requires_grad(p->gradients[i])) {
            back[n] = p->gradients[i];
            along[n++] = p->with[i];
        }
    if (n == 0) return 0;
    return tp_backward((tp_tensors){back, n}, (tp_tensors){along, n}, true, create_graph, cotangents, p->moved);
}

static void take_moved(const tp_forward_call *c, passes *p, tp_tensor **out) {
    int root = 0, at = 0;
    for (int i = 0; i < c->op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&p->results[i]);
        for (int64_t k = 0; k < list.size; k++, at++)
            if (root < p->nroots && list.data[k] == p->roots[root]) {
                out[at] = tp_take(p->moved[root]);
                root++;
            }
    }
}

/* Whether the tangents hang on tensors besides the leaves that are made here. */
static bool hangs_on_others(const tp_forward_call *c) {
    const tp_tangent_list *l = c->tangents;
    for (int i = 0; i < c->op->info->nargs; i++)
        if (tp_wants_grad_list(tp_tensors_in(&c->args[i]))) return true;
    return tp_wants_grad_list((tp_tensors){l->all, l->first[TP_FORWARD_ARGUMENTS]});
}

int tp_forward_twice(const tp_forward_call *c, tp_tensor **out) {
    TP_CLEANUP(restore_grad_mode) bool disabled = tp_tls.grad_disabled;
    int n = c->tangents->first[TP_FORWARD_ARGUMENTS];
    tp_autopasses p = {.nleaves = n, .nresults = c->op->info->nreturns};
    if (!(p.results = zeroed(p.nresults, sizeof *p.results)) || !(p.leaves = zeroed(n, sizeof *p.leaves)) ||
        !(p.by = zeroed(n, sizeof *p.by)) || !(p.with = zeroed(n, sizeof *p.with)))
        return -1;
    tp_tls.grad_disabled = false;
    if (make_leaves(c, &p) < 0 || tp_call_boxed(c->op, p.args, p.results) < 0) return -1;
    int most = (int)tp_count_tensors(p.results, p.nresults);
    if (!(p.roots = zeroed(most, sizeof *p.roots)) || !(p.cotangents = zeroed(most, sizeof *p.cotangents)) ||
        !(p.moved = zeroed(most, sizeof *p.moved)) || !(p.gradients = zeroed(p.nby, sizeof *p.gradients)))
        return -1;
    if (find_roots(c, &p) < 0) return -1;
    if (p.nroots && there_and_back(&p, !disabled && hangs_on_others(c)) < 0) return -1;
    take_moved(c, &p, out);
    return 0;
}
