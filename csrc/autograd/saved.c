/* saved.c: values that a node keeps for its backward. */
#include "autograd/node.h"

#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

int tp_save(tp_saved *s, tp_tensor *t) {
    *s = (tp_saved){0};
    if (!t) return 0;
    s->tensor = tp_retain(t);
    s->version = tp_version(t);
    return 0;
}

/* An output is kept as a bare alias, since the output owns the node. */
int tp_save_output(tp_saved *s, tp_tensor *t, int output_nr) {
    *s = (tp_saved){0};
    if (!t) return 0;
    s->tensor = tp_detached_alias(t);
    if (!s->tensor) return -1;
    s->version = tp_version(t);
    s->is_output = true;
    s->output_nr = (uint8_t)output_nr;
    return 0;
}

static int released(const tp_node *owner) {
    return tp_fail(TP_RuntimeError,
                   "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                   "already been freed): %s has let its saved values go. Specify retain_graph=True in the first call of "
                   "backward() or autograd.grad()",
                   owner->type->name);
}

static int changed(const tp_saved *s, const tp_node *owner) {
    tp_autotext text = {0};
    tp_text_tensor(&text, s->tensor);
    return tp_fail(TP_RuntimeError,
                   "one of the variables needed for gradient computation has been modified by an inplace operation: "
                   "[%s], which is %s %s of %s (%s), is at version %u; expected version %u instead. Hint: the tensor was "
                   "written to after %s had saved it; autograd.detect_anomaly() shows where that was",
                   text.text ? text.text : "", s->is_output ? "output" : "an input", s->is_output ? "0" : "", owner->type->name,
                   owner->type->op, tp_version(s->tensor), s->version, owner->type->op);
}

/* An output comes back with its history, for double backward. */
static tp_tensor *with_history(const tp_saved *s, tp_node *owner) {
    if (!tp_grad_enabled()) return tp_retain(s->tensor);
    tp_autoref *alias = tp_detached_alias(s->tensor);
    tp_autograd_meta *m = alias ? tp_autograd_meta_ensure(alias) : NULL;
    if (!m) return NULL;
    m->grad_fn = tp_node_retain(owner);
    m->output_nr = s->output_nr;
    alias->flags |= TP_FLAG_REQUIRES_GRAD;
    return tp_take(alias);
}

tp_tensor *tp_saved_get(const tp_saved *s, tp_node *owner) {
    if (owner->released) return released(owner), NULL;
    if (!s->tensor) return NULL;
    if (tp_version(s->tensor) != s->version) return changed(s, owner), NULL;
    return s->is_output ? with_history(s, owner) : tp_retain(s->tensor);
}

void tp_saved_free(tp_saved *s) {
    tp_tensor *t = tp_take(s->tensor);
    tp_release(t);
}

tp_saved_list *tp_save_list(tp_tensors list) {
    tp_saved_list *s = tp_alloc(sizeof *s + (size_t)list.size * sizeof *s->items);
    if (!s) return NULL;
    s->size = list.size;
    for (int64_t i = 0; i < list.size; i++) tp_save(&s->items[i], list.data[i]);
    return s;
}

int tp_saved_list_get(const tp_saved_list *s, tp_node *owner, tp_tensor_seq **out) {
    if (owner->released) return released(owner);
    tp_tensor_seq *seq = tp_tensor_seq_new(s->size);
    if (!seq) return -1;
    for (int64_t i = 0; i < s->size; i++) {
        seq->items[i] = tp_saved_get(&s->items[i], owner);
        if (!seq->items[i] && s->items[i].tensor) {
            tp_tensor_seq_free(seq);
            return -1;
        }
    }
    *out = seq;
    return 0;
}

void tp_saved_list_free(tp_saved_list **s) {
    tp_saved_list *list = tp_take(*s);
    if (!list) return;
    for (int64_t i = 0; i < list->size; i++) tp_saved_free(&list->items[i]);
    tp_free(list, sizeof *list + (size_t)list->size * sizeof *list->items);
}

tp_ints tp_save_ints(tp_ints v) {
    if (v.size <= 0) return (tp_ints){NULL, v.size};
    int64_t *copy = malloc((size_t)v.size * sizeof *copy);
    if (!copy) return tp_fail_memory(v.size * (int64_t)sizeof *copy), TP_NO_INTS;
    memcpy(copy, v.data, (size_t)v.size * sizeof *copy);
    return (tp_ints){copy, v.size};
}

void tp_saved_ints_free(tp_ints *v) {
    free((void *)v->data);
    *v = TP_NO_INTS;
}

char *tp_save_str(const char *s) { return s ? strdup(s) : NULL; }

tp_scalar *tp_save_scalar(const tp_scalar *s) {
    tp_scalar *copy = s ? malloc(sizeof *copy) : NULL;
    if (copy) *copy = *s;
    return copy;
}
