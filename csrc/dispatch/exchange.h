/* exchange.h: the tensors of a call, and others in their place: for fallbacks that call an operator again. */
#pragma once

#include "dispatch/op.h"

/* What stands for a tensor of a call; new, NULL and the error set on failure. */
typedef tp_tensor *(*tp_exchange_fn)(void *context, tp_tensor *t);

/* The tensors of an argument or result; none for another kind of value. */
TP_INLINE tp_tensors tp_tensors_in(const tp_value *v) {
    return v->tag == TP_TENSOR_SEQ ? tp_tensor_seq_borrow(v->seq) : tp_value_tensors(v);
}
/* How many tensors n values hold, absent ones of lists among them. */
int64_t tp_count_tensors(const tp_value *values, int n);
/* Puts what `exchange` gives for each tensor of `args` into `given`, a copy of them: it lies in `owned`, which has room
 * for all tensors, from *n on, which rises. What is absent stays so. -1 and the error set on failure; the caller
 * releases what is owned by then. */
int tp_exchange_tensors(const tp_op *op, const tp_value *args, tp_value *given, tp_tensor **owned, int64_t *n,
                        tp_exchange_fn exchange, void *context);
/* Releases results, which are none then. */
void tp_release_values(tp_value *values, int n);
