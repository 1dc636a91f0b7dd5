/* lift.h: the arguments of a call before a rule batches it: Note [Batched tangents] in batched.h. */
#pragma once

#include "dispatch/key.h"

/* Tensors that were lifted; zeroed at first. */
typedef struct {
    tp_tensor **owned;
    int64_t n;
} tp_batch_lifted;
void tp_batch_lifted_free(tp_batch_lifted *l);
#define tp_autolifted TP_CLEANUP(tp_batch_lifted_free) tp_batch_lifted
int tp_batch_lift_slow(tp_batch_lifted *l, tp_tensor **tensors, int64_t n);
/* Puts a batched tensor in the place of each (NULL passes) whose tangents have a batch at the highest level among all
 * of them and their tangents; *l owns these, and is given to one call. -1 and the error set on failure. */
TP_INLINE int tp_batch_lift(tp_batch_lifted *l, tp_tensor **tensors, int64_t n) {
    return tp_likely(!tp_tls.forward) ? 0 : tp_batch_lift_slow(l, tensors, n);
}
