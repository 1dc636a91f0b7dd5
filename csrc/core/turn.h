/* turn.h: turns, for what has to be done by one thread at a time and may take long or call anything: opening a library,
 * building a program, adding to a leaf's gradient. A turn has an owner, who may take it again. Who waits for it has
 * given up the host lock and looks for signals. A turn of an older process is free. */
#pragma once

#include "core/base.h"

#include <stdatomic.h>

/* Zeroed memory is a free turn. */
typedef struct {
    _Atomic uint64_t owner; /* process and thread; 0: nobody */
    int depth;              /* how often the owner has taken it again */
} tp_turn;

/* Waits for the turn; -1 and the error set if a signal's handler raises meanwhile. */
int tp_turn_take(tp_turn *t);
void tp_turn_pass(tp_turn *t);
