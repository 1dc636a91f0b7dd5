/* state.c: see state.h. */
#include "distributed/state.h"

#include "core/clock.h"
#include "core/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

tp_world_state tp_world = {.engine = &tp_mpi_engine, .wake = PTHREAD_COND_INITIALIZER};

void tp_sleep_us(int64_t us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

int64_t tp_now_us(void) { return tp_clock_ns() / 1000; }

int64_t tp_later(int64_t now, double time) {
    if (!(time > 0)) return now;
    return time < 0x1p62 ? now + (int64_t)time : INT64_MAX;
}

void tp_append(char *out, size_t room, const char *text) {
    size_t n = strlen(out);
    snprintf(out + n, room - n, "%s", text);
}

void tp_world_set_fault(const char *text) {
    if (atomic_load(&tp_world.faulty)) return;
    snprintf(tp_world.fault, sizeof tp_world.fault, "%s", text);
    atomic_store(&tp_world.faulty, true);
}

int tp_world_check(const char *name) {
    if (!tp_world.started)
        return tp_fail(TP_RuntimeError, "%s: the world of processes has not begun, or is over", name);
    if (tp_world.pid != getpid())
        return tp_fail(TP_RuntimeError,
                       "%s: this process was forked after init_process_group; only its parent may send and receive",
                       name);
    if (atomic_load(&tp_world.faulty)) return tp_fail(TP_RuntimeError, "%s: %s", name, tp_world.fault);
    return 0;
}
