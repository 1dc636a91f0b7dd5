/* registrations.h: what op.c, which keeps operators and their registrations, shares with precedence.c, which computes
 * tables from them, and call.c. Nobody else includes it. All of it is read and written under the lock Operators, but
 * for what Note [Registration lifetime] in cell.h says of calls. */
#pragma once

#include "dispatch/cell.h"
#include "dispatch/op.h"

#define TP_ALL_KEYS (((tp_keyset)1 << TP_NUM_KEYS) - 1)
_Static_assert(TP_NUM_KEYS + TP_NUM_ALIAS <= 64, "a set of slots is one word");

/* A registration in its slot (runtime key or alias). An operator's list leads over `next` to the newest of each slot.
 */
typedef struct tp_registration_node {
    tp_registration r;
    tp_op *op; /* NULL: a fallback */
    struct tp_registration_node *older, *next;
} tp_registration_node;

extern tp_keyset tp_whole_keys; /* of devices that show no memory, and their autograd keys */
extern tp_registration_node *tp_fallbacks[TP_NUM_KEYS];
extern tp_cell *_Atomic tp_fallback_cells[TP_NUM_KEYS]; /* the boxed ones among these */

/* The newest registration of a slot. */
TP_INLINE tp_registration_node *tp_slot_of(const tp_op *op, tp_key slot) {
    tp_registration_node *r = op->registrations;
    while (r && r->r.key != slot) r = r->next;
    return r;
}

/* What serves a key of an operator; NULL: nothing. */
tp_registration_node *tp_resolve(const tp_op *op, tp_key key);
/* The same without the kernel that declined, an unboxed one or the boxed one of this context, and those before it. */
tp_registration_node *tp_resolve_after(const tp_op *op, tp_key key, tp_fn fn, const void *context);
/* Computes the operator's entries of these keys. */
void tp_compute_entries(tp_op *op, tp_keyset keys);
