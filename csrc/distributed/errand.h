/* errand.h: calls of the engine that wait for other processes (its start, its end, a new group).
 *
 * Each runs in a thread of its own, and nothing else calls the engine meanwhile. One that fails to come back, or whose
 * caller was interrupted, is the end of the world: Note [Faults]. */
#pragma once

#include "core/base.h"

/* Whom it takes: n ranks, or the first n where there is no list. */
typedef struct {
    const int *ranks;
    int n;
} tp_errand_of;

/* Runs it and waits at most so long, and no longer than those whom it takes are there; its status, or -1 with the error
 * set. The context is malloc'd: it outlives the caller where the errand does. */
int tp_errand_send(int (*run)(void *), void *context, const char *name, tp_errand_of whom, double seconds);
