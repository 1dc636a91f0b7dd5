/* work.h: the world of this process, its groups, and messages that are under way.
 *
 * A message is begun in the caller's thread, so that the order within a group is the order of calls; whoever waits for
 * it moves it along, and a thread of the engine does so while nobody waits. A large message goes in pieces that are all
 * under way.
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

#include "core/storage.h"
#include "distributed/engine.h"

typedef struct tp_work tp_work;

typedef struct {
    const char *address, *token, *host; /* of the server; who this machine is, for messages */
    int port;                           /* 0: no watch yet */
    int rank, size;
    double seconds;
} tp_world_start;

/* Opens the first library of the list that is there; 1: none is. */
int tp_world_load(const char *const *paths, int n);
const char *tp_world_library(void); /* its version; "" before */
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

/* A group of ranks of the world, in their order there; its number, or -1. All of them call this, with the same name. */
int tp_world_group(const char *name, const int *ranks, int n, double seconds);
void tp_world_group_free(int group);
bool tp_world_reduces(tp_dtype dtype, tp_reduce_op op);

/* Begins a message of a group. `name` is for errors and lives for ever; the storages are those of send and recv, or
 * NULL. A work whose caller waits at once wakes nobody. */
tp_work *tp_work_begin(int group, const char *name, const tp_message *m, tp_storage *send, tp_storage *recv,
                       bool waits_at_once);
/* 1: it is done; 0: not yet; -1: it failed, with the error set. */
int tp_work_done(tp_work *w);
/* Waits; TP_ERROR where it failed or so many seconds passed, which is a fault. Signals' handlers run meanwhile: one
 * that raises ends the wait, not the work. */
int tp_work_wait(tp_work *w, double seconds);
tp_arrival tp_work_arrival(const tp_work *w);
int64_t tp_work_number(const tp_work *w);
/* The caller forgets it; what is under way goes on, and is freed by a later call of tp_sweep. */
void tp_work_free(tp_work *w);
void tp_sweep(void);
