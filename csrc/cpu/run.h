/* run.h: running inner loops over a plan of the iterator. */
#pragma once

#include "iter/iter.h"

/* The loop that copies operand 1 to operand 0 with conversion (cpu/cast.c). */
tp_loop_fn tp_cast_loop(tp_dtype from, tp_dtype to);
/* Runs a loop over the plan: splits over threads at `grain`, gives up the interpreter lock for long runs, converts
 * operands whose dtype differs from loop_dtype through blocks that stay in the L1 cache. */
int tp_iter_run(const tp_iter *it, tp_loop_fn loop, const void *params, int64_t grain);
