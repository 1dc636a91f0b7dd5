/* forget.c: what nodes have saved of a tensor that has been written since.
 *
 * A node keeps its inputs as they are, with their history. Where one of them is written by what is computed from the
 * node's results (a.mul_(a * b)), its new history leads to the node, which has the tensor: a circle that nobody outside
 * holds. Backward would refuse the value, whose version has changed, so the node needs no more of it than an alias
 * without history, which says the same. */
#include "autograd/internal.h"
#include "autograd/met.h"

static void forget_history(tp_saved *s, const tp_tensor *root) {
    tp_tensor *t = s->tensor;
    if (!t || s->is_output || tp_packed(s) || (t != root && t->base != root)) return;
    if (t->keys & TP_BIT(Python)) return; /* its class would be asked for the alias */
    tp_tensor *bare = tp_detached_alias(t);
    if (!bare) {
        tp_error_clear(); /* it stays as it is, which costs memory only */
        return;
    }
    tp_saved before = *s;
    s->tensor = bare;
    s->packed = NULL;
    tp_saved_free(&before);
}

static void forget_kept(tp_node *n, const tp_tensor *root) {
    tp_saved *saved = (tp_saved *)(n + 1);
    tp_saved_list *const *lists = (tp_saved_list *const *)(saved + n->type->nsaved);
    for (int i = 0; i < n->type->nsaved; i++) forget_history(&saved[i], root);
    for (int i = 0; i < n->type->nlists; i++)
        for (int64_t k = 0; lists[i] && k < lists[i]->size; k++) forget_history(&lists[i]->items[k], root);
}

void tp_forget_saved(const tp_tensor *root, tp_node *history, const tp_node *before) {
    tp_autowalk walk = {0};
    int status = tp_met_add(&walk, history);
    for (tp_node *next; status == 0 && (next = tp_met_next(&walk));) {
        tp_node *inner = next->type->inner ? next->type->inner(next) : NULL;
        forget_kept(next, root);
        if (inner) forget_kept(inner, root);
        for (uint32_t k = 0; status == 0 && k < next->nedges; k++)
            if (next->edges[k].node != before) status = tp_met_add(&walk, next->edges[k].node);
    }
    if (status < 0) tp_error_clear();
}
