/* unset.h: what stands in memory that nobody has written, where the program wants the same from run to run. */
#pragma once

#include "core/determinism.h"
#include "core/tensor.h"

int tp_fill_unset_elements(tp_tensor *t) TP_COLD;
int tp_fill_unset_from(tp_tensor *t, size_t nbytes) TP_COLD;

/* A new tensor, filled if that is wanted. Takes t. */
TP_INLINE tp_tensor *tp_unset_steal(tp_tensor *t) {
    if (tp_likely(!tp_fills_unset()) || !t) return t;
    tp_autoref *owned = t;
    return tp_fill_unset_elements(owned) < 0 ? NULL : tp_take(owned);
}
