/* peers.h: what this process knows of the others of its world: who has gone, and where they are.
 *
 * The watch tells it, in its own thread. A process that went without a word is a fault: Note [Faults]. */
#pragma once

#include "distributed/watch.h"

extern const tp_watch_events tp_peer_events;

/* Asks the others where they are in a group (-1: whether they are there), and gives them a while to say so. Without the
 * lock. */
void tp_peers_ask(int group);

/* Which of some ranks (NULL: of the first n) left, so long ago that all it sent has come; -1: none. With the lock. */
int tp_peers_missing(const int *ranks, int n);
/* Is a fault where one of them has. Without the lock. */
void tp_peers_look_for(const int *ranks, int n);
/* The fault that a rank has ended. With the lock. */
void tp_peers_ended(int rank);
