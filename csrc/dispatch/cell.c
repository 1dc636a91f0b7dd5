/* cell.c: see cell.h. Calls, retirement and freeing are transitions of one word, so exactly one thread frees. */
#include "dispatch/cell.h"

#include "core/lock.h"

#include <stdlib.h>

#define CHUNK 64
#define RETIRED ((uint64_t)1 << 32)
#define FREED_ONCE ((uint64_t)1 << 33) /* the count of lives */

static tp_cell *spare; /* under the lock Operators */

static bool add_chunk(void) {
    tp_cell *chunk = calloc(CHUNK, sizeof *chunk);
    for (int i = 0; chunk && i < CHUNK; i++) {
        chunk[i].next = spare;
        spare = &chunk[i];
    }
    return chunk != NULL;
}

tp_cell *tp_cell_new(tp_boxed_fn boxed, void *context, void (*free_context)(void *)) {
    if (!spare && !add_chunk()) return tp_fail_memory(CHUNK * (int64_t)sizeof(tp_cell)), NULL;
    tp_cell *c = spare;
    spare = c->next;
    c->boxed = boxed;
    c->context = context;
    c->free_context = free_context;
    return c;
}

void tp_cell_drop(tp_cell *c) {
    c->next = spare;
    spare = c;
}

/* If the cell is still what `empty` says (retired, nobody inside): this life of it ends. */
static void end_life(tp_cell *c, uint64_t empty) {
    if (!atomic_compare_exchange_strong(&c->state, &empty, (empty & ~RETIRED) + FREED_ONCE)) return;
    if (c->free_context) c->free_context(c->context);
    tp_lock(TP_LOCK_Operators);
    tp_cell_drop(c);
    tp_unlock(TP_LOCK_Operators);
}

static bool is_over(uint64_t state) { return (state & RETIRED) && (uint32_t)state == 0; }

void tp_cell_retire(tp_cell *c) {
    uint64_t state = atomic_fetch_or(&c->state, RETIRED) | RETIRED;
    if (is_over(state)) end_life(c, state);
}

tp_cell *tp_cell_enter(tp_cell *_Atomic *place) {
    for (;;) {
        tp_cell *c = atomic_load_explicit(place, memory_order_acquire);
        if (!c) return NULL;
        atomic_fetch_add(&c->state, 1);
        if (atomic_load(place) == c) return c;
        tp_cell_leave(c);
    }
}

void tp_cell_leave(tp_cell *c) {
    uint64_t state = atomic_fetch_sub(&c->state, 1) - 1;
    if (is_over(state)) end_life(c, state);
}
