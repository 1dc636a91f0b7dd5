/* parallel.h: the one way to use several threads.
 *
 * tp_parallel_for splits [0, n) into contiguous chunks of at least `grain` elements and runs them on OpenMP's threads;
 * work below one grain runs in the caller, without starting a thread. Where the chunks' borders change a result
 * (reductions), the caller makes the split itself so that it does not depend on the number of threads. In a child after
 * fork everything runs in the calling thread.
 *
 * A chunk of more than a few dozen grains is handed to `fn` in several pieces, one after the other, with a look for
 * signals in between (tp_host_look): an interrupted loop fails like one whose chunk has failed. A unit that itself
 * takes long looks as well.
 *
 * A chunk that fails calls tp_fail and returns; the other chunks still run. tp_parallel_for then returns -1 with the
 * failed chunk's error, that of the lowest chunk if there are several, in the calling thread. */
#pragma once

#include "core/base.h"

#define TP_GRAIN 32768 /* elements of a light pointwise operation worth one thread */

typedef void (*tp_range_fn)(int64_t begin, int64_t end, void *context);

int tp_parallel_for(int64_t n, int64_t grain, tp_range_fn fn, void *context);
/* The same without the host's lock, where the work is long (core/host.h). */
int tp_parallel_unlocked(bool is_long, int64_t n, int64_t grain, tp_range_fn fn, void *context);
int tp_get_num_threads(void);  /* at start: what OpenMP allows, but at most the CPUs at hand; 1 in a forked child */
int tp_set_num_threads(int n); /* ValueError unless n >= 1 */
bool tp_in_parallel(void);     /* inside a chunk that runs beside others; a tp_parallel_for in there is serial */
