/* world.h: the world of this process: how it begins, how it ends, and why it is over.
 *
 * There is one at a time, and none after a fault.
 *
 * Note [World's lock]
 * The leaf lock Messages guards the engine, the groups and the list of works. Who holds it calls the engine, and
 * neither an operator nor the host. Memory that a message uses is retained by its work, and let go by tp_work_free or
 * tp_sweep, which the owner of the host lock calls: the engine's thread frees nothing.
 *
 * Note [Faults]
 * A process that has ended, a message that is late and an error of the engine are the end of the world: no function of
 * the engine is called any more, every work says why, and memory under way stays where it is until this process ends.
 */
#pragma once

#include "distributed/engine.h"

typedef struct {
    const char *address, *token, *host; /* of the server; who this machine is, for messages */
    int port;                           /* 0: no watch yet */
    int rank, size;
    double seconds;
} tp_world_start;

/* Opens the first library of the list that is there; 1: none is. */
int tp_world_load(const char *const *paths, int n);
const char *tp_world_library(void); /* its version and its file; "" before */
/* Whether its own launcher alone starts it. */
bool tp_world_is_launched(void);
/* Lets the engine start without a launcher: pmi.h. */
int tp_world_open_pmi(int size, const char *token, const char *mapping);
/* Makes the world: joins the watch, then starts the engine. -1 with the error set. `rank` and `size` are filled in
 * where they are -1. */
int tp_world_begin(tp_world_start *w);
/* Joins the watch later, where a launcher started the engine. */
int tp_world_watch(const tp_world_start *w);
/* Ends it. Waits at most so long for the others to end theirs; the engine is ended where all do. */
int tp_world_end(double seconds);
/* Tells the others that this process ends now, whatever is under way. */
void tp_world_leave(void);
/* NULL, or why the world is over. */
const char *tp_world_fault(void);
/* Is a fault where this rank, which others wait for, has left. */
void tp_world_look_for(int rank);
