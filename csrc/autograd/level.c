/* level.c: the levels of a thread, and the end of cells (level.h). */
#include "autograd/level.h"

#include "core/alloc.h"
#include "core/lock.h"
#include "dispatch/key.h"
#include "dispatch/level_number.h"

#include <stdlib.h>

/* ---- levels ---- */

static void show(tp_forward_state *s, int visible) {
    s->visible = visible;
    if (visible && !tp_tls.forward_disabled) tp_tls.include |= TP_BIT(ForwardAD);
    else tp_tls.include &= ~TP_BIT(ForwardAD);
}

uint32_t tp_forward_open(void) {
    tp_forward_state *s = tp_tls.forward;
    if (!s && !(s = tp_tls.forward = calloc(1, sizeof *s))) return tp_fail_memory(sizeof *s), 0;
    if (s->depth == TP_MAX_FORWARD_LEVELS)
        return tp_fail(TP_RuntimeError, "forward mode: more than %d levels are nested", TP_MAX_FORWARD_LEVELS), 0;
    uint32_t number = tp_next_level_number();
    s->at[s->depth++] = (tp_level){.number = number};
    show(s, s->depth);
    return number;
}

static void unlink_entry(tp_tangent_entry *e) {
    if (!e->slot) return;
    *e->slot = e->after;
    if (e->after) e->after->slot = e->slot;
    e->slot = NULL;
    e->after = NULL;
}

/* Releases the tangent of one entry at a time: the release may free tensors, whose cells are released here again. */
static void let_tangents_go(tp_level *l) {
    for (;;) {
        tp_lock(TP_LOCK_Autograd);
        tp_tangent_entry *e = l->first;
        tp_tensor *tangent = e ? tp_take(e->tangent) : NULL;
        if (e) unlink_entry(e);
        tp_unlock(TP_LOCK_Autograd);
        if (!e) return;
        tp_release(tangent);
    }
}

int tp_forward_close(uint32_t number) {
    tp_forward_state *s = tp_tls.forward;
    if (!s || s->at[s->depth - 1].number != number)
        return tp_fail(TP_RuntimeError,
                       "Exiting a forward AD level that is not the last one that was entered, or by another thread");
    let_tangents_go(&s->at[s->depth - 1]);
    show(s, --s->depth);
    if (s->depth == 0) free(tp_take(tp_tls.forward));
    return 0;
}

int tp_forward_count(void) { return tp_tls.forward ? tp_tls.forward->depth : 0; }
uint32_t tp_forward_number(int i) { return tp_tls.forward->at[i].number; }

int tp_forward_show(int n) {
    tp_forward_state *s = tp_tls.forward;
    int before = s ? s->visible : 0;
    if (s) show(s, n);
    return before;
}

bool tp_forward_enable(bool on) {
    bool before = !tp_tls.forward_disabled;
    tp_tls.forward_disabled = !on;
    if (tp_tls.forward) show(tp_tls.forward, tp_tls.forward->visible);
    return before;
}

tp_level *tp_find_level(uint32_t number) {
    tp_forward_state *s = tp_tls.forward;
    for (int i = 0; s && i < s->depth; i++)
        if (s->at[i].number == number) return &s->at[i];
    return NULL;
}

void tp_tangents_release(struct tp_tangents *cell) {
    if (!cell || atomic_fetch_sub_explicit(&cell->refcount, 1, memory_order_acq_rel) != 1) return;
    while (cell->first) {
        tp_tangent_entry *e = cell->first;
        cell->first = e->next;
        tp_lock(TP_LOCK_Autograd);
        unlink_entry(e);
        tp_unlock(TP_LOCK_Autograd);
        tp_release(e->tangent);
        tp_free(e, sizeof *e);
    }
    tp_free(cell, sizeof *cell);
}
