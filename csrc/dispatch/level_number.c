/* level_number.c: see level_number.h. */
#include "dispatch/level_number.h"

#include <stdatomic.h>

static _Atomic uint32_t last;

uint32_t tp_next_level_number(void) { return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1; }
