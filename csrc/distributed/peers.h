/* peers.h: what this process knows of the others of its world: who has gone, and where they are.
 *
 * The watch tells it, in its own thread. A process that went without a word is a fault: Note [Faults]. */
#pragma once

#include "distributed/watch.h"

extern const tp_watch_events tp_peer_events;

/* Asks the others where they are in a group (-1: whether they are there), and gives them a while to say so. Without the
 * lock. */
void tp_peers_ask(int group);
