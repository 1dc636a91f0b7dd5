/* conjugate.h: tensors whose elements are to be read as their conjugates or negatives, or are all zero.
 *
 * Note [Pending math]
 * `_conj` and `_neg_view` give a view of the same memory with the key Conjugate or Negative toggled: nothing is
 * computed, and a write to the view writes the base. Below autograd and the layer of views these two keys stand above
 * all that computes. One fallback serves every operator: what is pending on an argument is computed into a copy before
 * the call, and what was written goes back with the conjugate or the negative taken again. Operators that give views
 * pass the keys by, so that their results have them too: a view's kernel makes it of its source by tp_new_alias, which
 * keeps the keys. Whoever reads memory by hand above the kernels asks tp_is_pending.
 *
 * Note [Zero tensors]
 * `_efficientzerotensor` gives a tensor of zeros without memory: it has the key ZeroTensor in the place of a backend's.
 * The same fallback stands at that key: one zero, expanded, goes in the argument's place; views have the key again, and
 * a write is refused. Where the result is known without elements the entries have kernels (native/layout/zero.c). */
#pragma once

#include "core/tensor.h"
#include "dispatch/key.h"

/* The elements with what is pending computed, in memory of their own; without history. */
tp_tensor *tp_resolved(tp_tensor *t);
TP_INLINE bool tp_is_zero_tensor(const tp_tensor *t) { return t->keys & TP_BIT(ZeroTensor); }
/* Registers the fallbacks. */
int tp_conjugate_load(void);
