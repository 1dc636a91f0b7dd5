/* edges.c: where the gradients of a call's arguments go, and whose results keep theirs (retain_grad). */
#include "Functions.h"
#include "autograd/internal.h"

int tp_node_set_edge(tp_node *n, int i, tp_tensor *t) {
    if (!tp_requires_grad(t)) return 0;
    if (!tp_grad_fn_borrow(t) && tp_status_of_thread() < 0) return -1; /* the history of a view could not be renewed */
    return tp_node_point_to(n, i, t);
}

int tp_node_set_edges(tp_node *n, int first, tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++)
        if (list.data[i] && tp_node_set_edge(n, first + (int)i, list.data[i]) < 0) return -1;
    return 0;
}

bool tp_wants_grad_list(tp_tensors list) {
    for (int64_t i = 0; i < list.size; i++)
        if (tp_requires_grad(list.data[i])) return true;
    return false;
}

/* ---- retain_grad ---- */

int tp_retain_grad(tp_tensor *t) {
    if (!tp_requires_grad(t))
        return tp_fail(TP_RuntimeError, "can't retain_grad on Tensor that has requires_grad=False");
    tp_node *fn = tp_grad_fn_borrow(t);
    if (!fn || t->flags & TP_FLAG_RETAINS_GRAD) return 0;
    if (tp_node_keep(fn, t) < 0) return -1;
    t->flags |= TP_FLAG_RETAINS_GRAD;
    return 0;
}

static int keep_grad(tp_tensor *t, tp_tensor *grad) {
    tp_autoref *old = tp_grad(t);
    tp_tensor *kept = old ? tp_sum_of_grads(old, grad) : tp_clone(grad, TP_NO_FORMAT);
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
