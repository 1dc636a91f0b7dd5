/* level_number.h: the numbers of the levels that transforms open (Note [Batched tensors], Note [Tangents]). */
#pragma once

#include <stdint.h>

/* The next one, from 1 on. Levels of all transforms and threads are counted together: of two that are open in a thread
 * the inner one has the higher number, whatever their kinds are. */
uint32_t tp_next_level_number(void);
