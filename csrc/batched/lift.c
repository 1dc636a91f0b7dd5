/* lift.c: see lift.h. */
#include "batched/lift.h"

#include "autograd/tangent.h"
#include "batched/batched.h"

#include <stdlib.h>

/* The highest level at which a tangent of t has a batch, or a tangent of that; 0: none, -1: failed. */
static int64_t highest_in_tangents(tp_tensor *t) {
    int64_t most = 0;
    for (int i = 0; i < tp_forward_visible(); i++) {
        tp_tangent_of found;
        if (tp_find_tangent(t, tp_forward_number(i), &found) < 0) return -1;
        tp_autoref *tangent = found.tangent;
        if (!tangent) continue;
        int64_t number = tp_batch_number(tangent), below = highest_in_tangents(tp_batch_innermost_borrow(tangent));
        if (below < 0) return -1;
        if (number > most) most = number;
        if (below > most) most = below;
    }
    return most;
}

void tp_batch_lifted_free(tp_batch_lifted *l) {
    for (int64_t i = 0; i < l->n; i++) tp_release(l->owned[i]);
    free(l->owned);
}

int tp_batch_lift_slow(tp_batch_lifted *l, tp_tensor **tensors, int64_t n) {
    int64_t highest = 0, *below = calloc((size_t)n + 1, sizeof *below), status = 0;
    l->owned = calloc((size_t)n + 1, sizeof *l->owned);
    if (!below || !l->owned) status = tp_fail_memory(n * (int64_t)sizeof *below);
    for (int64_t i = 0; i < n && status == 0; i++) {
        if (!tensors[i]) continue;
        int64_t number = tp_batch_number(tensors[i]);
        if (!number && (below[i] = highest_in_tangents(tensors[i])) < 0) status = -1;
        highest = number > highest ? number : below[i] > highest ? below[i] : highest;
    }
    const tp_batch_level *level = tp_batch_find_level(highest); /* tp_batch_enter() says that one has ended */
    for (int64_t i = 0; i < n && status == 0 && level; i++) {
        if (!below[i] || below[i] < highest) continue;
        tp_tensor *all = tp_batch_wrap_steal(tp_batch_remove(tensors[i], level->number, level->size), level->number);
        if (all) tensors[i] = l->owned[l->n++] = all;
        else status = -1;
    }
    free(below);
    return (int)status;
}
