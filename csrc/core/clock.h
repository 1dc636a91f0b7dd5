/* clock.h: the time that goes by, for who measures and waits. */
#pragma once

#include "core/base.h"

#include <time.h>

/* Nanoseconds of a clock that nobody sets. */
TP_INLINE int64_t tp_clock_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
