/* record.c: a recorded call of a kernel from outside: a node whose backward is the library's function. */
#include "outside/library.h"

#include "autograd/node.h"
#include "core/alloc.h"
#include "core/error.h"
#include "core/lock.h"

#include <stdlib.h>
#include <string.h>

/* One per name and backward; they stay, since nodes know them. */
typedef struct record_type {
    tp_node_type base; /* first */
    tp_backward backward;
    struct record_type *next;
} record_type;
static record_type *types; /* under the lock Operators */

typedef struct {
    tp_node base;
    tp_saved_list *saved; /* NULL: nothing */
    void *data;
    size_t nbytes;
} record_node;

static int apply(tp_node *node, tp_tensor *const *grads, tp_tensor **out) {
    const record_type *type = (const record_type *)node->type;
    if (type->backward(node, grads, out) == 0) return 0;
    for (uint32_t i = 0; i < node->nedges; i++) tp_release(tp_take(out[i]));
    return tp_error_pending() ? -1
                              : tp_fail(TP_RuntimeError, "the backward of %s failed and set no error", type->base.name);
}
static void release_saved(tp_node *node) { tp_saved_list_free(&((record_node *)node)->saved); }
static void free_data(tp_node *node) {
    record_node *r = (record_node *)node;
    tp_free(r->data, r->nbytes);
}

static const tp_node_type *type_for(const char *name, tp_backward backward) {
    tp_lock(TP_LOCK_Operators);
    record_type *t = types;
    while (t && (t->backward != backward || strcmp(t->base.name, name) != 0)) t = t->next;
    char *kept = t ? NULL : strdup(name);
    if (!t && kept && (t = malloc(sizeof *t))) {
        tp_node_type base = {.name = kept,
                             .op = kept,
                             .size = sizeof(record_node),
                             .apply = apply,
                             .release = release_saved,
                             .free_copies = free_data,
                             .nsaved = 0,
                             .nlists = 1};
        record_type fresh = {base, backward, types};
        memcpy(t, &fresh, sizeof fresh);
        types = t;
    } else if (!t) {
        free(kept);
        tp_fail_memory((int64_t)sizeof *t);
    }
    tp_unlock(TP_LOCK_Operators);
    return t ? &t->base : NULL;
}

tp_record *tp_record_new(const char *name, tp_backward backward, tp_tensors inputs, const void *data, size_t nbytes) {
    if (!tp_grad_enabled() || !tp_wants_grad_list(inputs)) return NULL;
    const tp_node_type *type = type_for(name, backward);
    tp_autonode *node = type ? tp_node_new(type, (int)inputs.size) : NULL;
    if (!node || tp_node_set_edges(node, 0, inputs) < 0) return NULL;
    record_node *r = (record_node *)node;
    if (nbytes && !(r->data = tp_alloc(nbytes))) return NULL;
    if (nbytes) memcpy(r->data, data, nbytes);
    r->nbytes = nbytes;
    return tp_take(node);
}

int tp_record_save(tp_record *node, tp_tensor *t, int output) {
    record_node *r = (record_node *)node;
    int64_t n = r->saved ? r->saved->size : 0;
    tp_saved_list *more = tp_saved_list_new(n + 1);
    if (!more) return -1;
    if ((output < 0 ? tp_save(&more->items[n], t) : tp_save_output(&more->items[n], t, output)) < 0) {
        tp_saved_list_free(&more);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        tp_saved none = more->items[i];
        more->items[i] = r->saved->items[i];
        r->saved->items[i] = none;
    }
    tp_saved_list_free(&r->saved);
    r->saved = more;
    return 0;
}

int tp_record_output(tp_record *node, tp_tensor *t) {
    return t ? tp_node_set_output(node, t) : tp_node_skip_output(node);
}

void *tp_record_data(tp_record *node) { return ((record_node *)node)->data; }

tp_tensor *tp_record_saved(tp_record *node, int i) {
    const record_node *r = (const record_node *)node;
    if (!r->saved || node->released)
        return tp_fail_null(TP_RuntimeError,
                            "%s: what it saved is gone: backward ran before; retain_graph=True keeps it",
                            node->type->name);
    if (i < 0 || i >= r->saved->size)
        return tp_fail_null(TP_IndexError, "%s: there is no saved tensor %d, but %lld", node->type->name, i,
                            (long long)r->saved->size);
    return tp_saved_get_whole(&r->saved->items[i], node);
}
