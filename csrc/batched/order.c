/* order.c: batched searches: each sample has a sorted sequence of its own, or all share one. */
#include "NativeFunctions.h"
#include "batched/batched.h"

#include <string.h>

/* Values that one sequence is for, as the last dimension; else those that belong to each line of the sequences. */
static tp_tensor *values_of(const tp_batch_scope *s, tp_tensor *values, bool one_line) {
    tp_autoref *all = tp_batch_all(s, values);
    return all && one_line ? tp_reshape(all, TP_INTS(s->size, values->numel)) : tp_take(all);
}

/* searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None,
 * Tensor? sorter=None) -> Tensor */
tp_tensor *searchsorted_Tensor_batched(tp_tensor *sorted_sequence, tp_tensor *self, bool out_int32, bool right,
                                       const char *side, tp_tensor *sorter) {
    tp_autobatch s;
    tp_tensor *given[] = {sorted_sequence, self, sorter};
    int64_t sizes[TP_MAX_DIMS + 1];
    if (tp_batch_enter(&s, (tp_tensors){given, 3}) < 0) return NULL;
    bool one_line = sorted_sequence->ndim == 1,
         shared = !tp_batch_has(&s, sorted_sequence) && !tp_batch_has(&s, sorter);
    if (one_line && shared)
        return tp_batch_wrap_steal(
            tp_searchsorted_Tensor(sorted_sequence, tp_batch_inner_borrow(self), out_int32, right, side, sorter),
            s.number);
    tp_autoref *sequences = tp_batch_all(&s, sorted_sequence), *values = values_of(&s, self, one_line);
    tp_autoref *sorters = sorter ? tp_batch_all(&s, sorter) : NULL;
    if (!sequences || !values || (sorter && !sorters)) return NULL;
    tp_autoref *found = tp_searchsorted_Tensor(sequences, values, out_int32, right, side, sorters);
    sizes[0] = s.size;
    if (self->ndim) memcpy(sizes + 1, self->sizes, sizeof(int64_t) * self->ndim);
    return found ? tp_batch_wrap_steal(tp_reshape(found, (tp_ints){sizes, self->ndim + 1}), s.number) : NULL;
}
