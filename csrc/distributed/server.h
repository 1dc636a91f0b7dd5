/* server.h: the process that others start by, and that knows who is still there.
 *
 * One process of a world (rank 0) runs it in a thread of its own. It speaks two languages of lines:
 *   - PMI-1, as far as an MPI library asks: each process says who it is, puts words under keys, waits for all, reads the
 *     others' words. So a world starts without a launcher;
 *   - the watch (watch.h): each process says its name and token, then that it is alive; it is told who has ended.
 * A connection that ends without a word of leaving, or is silent for TP_WATCH_SILENCE ms, is that of a process that has
 * ended. Who has not said the token within TP_WATCH_SILENCE ms, or says anything else, is sent away. */
#pragma once

#include "distributed/engine.h"

#define TP_WATCH_BEAT 5000
#define TP_WATCH_SILENCE 15000

/* Listens at an address of this machine for `size` processes; the port, or -1. `mapping` says which ranks share a
 * machine, in PMI's words; "" for a watch alone, where a launcher speaks PMI. */
int tp_server_start(const char *address, int size, const char *token, const char *mapping);
void tp_server_stop(void);
/* Keys, waits and leaves that came over PMI: for tests. */
int64_t tp_server_commands(void);
