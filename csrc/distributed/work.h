/* work.h: messages that are under way.
 *
 * A message is begun in the caller's thread, so that the order within a group is the order of calls; whoever waits for
 * it moves it along, and a thread of the engine does so while nobody waits. A large message goes in pieces that are all
 * under way. */
#pragma once

#include "core/storage.h"
#include "distributed/engine.h"

typedef struct tp_work tp_work;

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
