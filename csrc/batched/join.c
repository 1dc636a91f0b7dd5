/* join.c: batched tensors one after another. */
#include "NativeFunctions.h"
#include "batched/batched.h"

/* A tensor of shape (0,), which fits beside any other. */
static bool is_nothing(const tp_tensor *t) { return t->ndim == 1 && t->sizes[0] == 0; }

/* cat(Tensor[] tensors, int dim=0) -> Tensor. What is nothing stays that: with its batch it would be a matrix. */
tp_tensor *cat_batched(tp_tensors tensors, int64_t dim) {
    tp_autobatch s;
    tp_tensor *first = NULL;
    for (int64_t i = 0; i < tensors.size && !first; i++)
        if (!is_nothing(tensors.data[i])) first = tensors.data[i];
    if (tp_batch_enter(&s, tensors) < 0) return NULL;
    int64_t d = tp_wrap_dim(dim, first ? first->ndim : 1);
    tp_autoseq *all = d < 0 ? NULL : tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; all && i < all->size; i++) {
        tp_tensor *t = tensors.data[i];
        all->items[i] =
            first && is_nothing(t) ? tp_new_empty(TP_INTS(0), (tp_dtype)t->dtype, t->device) : tp_batch_all(&s, t);
        if (!all->items[i]) return NULL;
    }
    return all ? tp_batch_wrap_steal(tp_cat((tp_tensors){all->items, all->size}, d + 1), s.number) : NULL;
}
