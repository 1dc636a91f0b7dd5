/* met.h: a walk along a graph's edges that comes to each node once. Zeroed memory is a walk that has met nobody.
 *
 * Owns a table of the nodes that were met, with open addressing, and those among them that are still to be followed;
 * the nodes are borrowed. */
#pragma once

#include "autograd/node.h"

typedef struct {
    tp_node **table, **waiting;
    int64_t capacity, count, depth;
} tp_met;

/* Meets a node, if it is new; NULL is none. -1 and the error set if memory is out. */
int tp_met_add(tp_met *m, tp_node *n);
bool tp_met_has(const tp_met *m, const tp_node *n);
/* One of those that nobody has followed; NULL: all are. */
TP_INLINE tp_node *tp_met_next(tp_met *m) { return m->depth > 0 ? m->waiting[--m->depth] : NULL; }
void tp_met_free(tp_met *m);
#define tp_autowalk TP_CLEANUP(tp_met_free) tp_met
