/* join.c: batched tensors one after another. */
#include "NativeFunctions.h"
#include "batched/batched.h"

/* cat(Tensor[] tensors, int dim=0) -> Tensor. What joins any stays without a batch: with one it would be a matrix. */
tp_tensor *cat_batched(tp_tensors tensors, int64_t dim) {
    tp_autobatch s;
    tp_tensor *first = NULL;
    for (int64_t i = 0; i < tensors.size && !first; i++)
        if (!tp_joins_any(tensors.data[i])) first = tensors.data[i];
    if (tp_batch_enter(&s, tensors) < 0) return NULL;
    int64_t d = tp_wrap_dim(dim, first ? first->ndim : 1);
    tp_autoseq *all = d < 0 ? NULL : tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; all && i < all->size; i++) {
        tp_tensor *t = tensors.data[i];
        all->items[i] =
            first && tp_joins_any(t) ? tp_new_empty(TP_INTS(0), (tp_dtype)t->dtype, t->device) : tp_batch_all(&s, t);
        if (!all->items[i]) return NULL;
    }
    return all ? tp_batch_wrap_steal(tp_cat((tp_tensors){all->items, all->size}, d + 1), s.number) : NULL;
}
