/* level.h: the levels of forward mode (Note [Tangents] in tangent.h) and the cells in which tensors have tangents.
 *
 * A tensor's tangents are a cell, which a saved alias of it shares. The cell's entries are linked into their levels
 * too, so that the end of a level finds them; links change under the leaf lock Autograd. */
#pragma once

#include "autograd/node.h"

#include <stdatomic.h>

#define TP_MAX_FORWARD_LEVELS 16

/* ---- levels of this thread ---- */
/* Opens a level; its number, or 0 and the error set. The levels are closed in the opposite order. */
uint32_t tp_forward_open(void);
int tp_forward_close(uint32_t number);
/* Those that are open, and the number of one, the outermost first. */
int tp_forward_count(void);
uint32_t tp_forward_number(int i);
/* Only the outermost n are in sight from now on; how many were. */
int tp_forward_show(int n);
/* Whether tangents are computed at all; what was said before. */
bool tp_forward_enable(bool on);

/* ---- as tangent.c sees them ---- */
typedef struct tp_tangent_entry {
    uint32_t number;
    tp_tensor *tangent;             /* owned; NULL: a constant, or the level has ended */
    struct tp_tangent_entry *next;  /* of the cell */
    struct tp_tangent_entry **slot; /* of the level: what points here; NULL: the level has ended */
    struct tp_tangent_entry *after; /* of the level: who comes next */
} tp_tangent_entry;

struct tp_tangents {
    _Atomic int32_t refcount;
    tp_tangent_entry *first;
};

typedef struct {
    uint32_t number;
    tp_tangent_entry *first;
} tp_level;

typedef struct tp_forward_state {
    int depth, visible;
    tp_level at[TP_MAX_FORWARD_LEVELS];
} tp_forward_state;

/* How many levels a call is differentiated at. */
TP_INLINE int tp_forward_visible(void) { return tp_tls.forward ? tp_tls.forward->visible : 0; }
/* This thread's open level of the number, or NULL. */
tp_level *tp_find_level(uint32_t number);
/* Drops one reference to a cell; NULL is none. */
void tp_tangents_release(struct tp_tangents *cell);
