/* server.h: the process that others start by, and that knows who is still there.
 *
 * One process of a world (rank 0) runs it in a thread of its own. The others' watches (watch.h) join it: each says the
 * world's token, its rank and its name, then that it is alive, and is told who has ended. It also keeps the words that
 * MPI libraries put under keys while they start (pmi.h), and lets them wait for each other. A connection that ends
 * without a word of leaving, or is silent for TP_WATCH_SILENCE ms, is that of a process that has ended. Who has not
 * said the token within that time, or says anything else, is sent away. */
#pragma once

#include "distributed/engine.h"

#define TP_WATCH_BEAT 5000
#define TP_WATCH_SILENCE 15000

/* Listens at an address of this machine for `size` processes; the port, or -1. */
int tp_server_start(const char *address, int size, const char *token);
void tp_server_stop(void);
