/* host.c: see host.h.
 *
 * Parked objects wait in two lists. Threads that give up the lock are counted in the current generation; a list that
 * was filled up to the last change of generation is freed when all threads of the older one are back. Invariant: the
 * counts and lists are touched with the lock held only, and so need none of their own. */
#include "core/host.h"

#include "core/error.h"
#include "core/lock.h"
#include "core/tls.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static tp_host_lock host; /* no functions: nothing to do */

void tp_set_host_lock(tp_host_lock lock) { host = lock; }

static tp_host_tables host_tables;
void tp_set_host_tables(tp_host_tables tables) { host_tables = tables; }
struct tp_tensor *tp_host_table(const char *name, int64_t rows) {
    tp_at_once_guard guard = tp_at_once();
    if (host_tables) return host_tables(name, rows);
    return tp_fail_null(TP_RuntimeError, "nobody here has the table '%s'", name);
}

/* ---- the lock ---- */

typedef struct parked {
    struct parked *next;
    void (*end)(void *what, size_t size);
    void *what;
    size_t size;
} parked;

static struct {
    int64_t away[2]; /* threads without the lock, by the generation in which they gave it up */
    int generation;
    parked *fresh, *aging; /* parked in this generation, and before */
} parking;

static void free_parked(parked *p) {
    while (p) {
        parked *next = p->next;
        p->end(p->what, p->size);
        free(p);
        p = next;
    }
}

/* Freeing may run anything, so it comes last. */
static void turn_generation(void) {
    parked *done = parking.aging;
    parking.aging = parking.fresh;
    parking.fresh = NULL;
    parking.generation ^= 1;
    free_parked(done);
}

static void settle(void) {
    while ((parking.fresh || parking.aging) && parking.away[!parking.generation] == 0) turn_generation();
}

void tp_host_park(void (*end)(void *what, size_t size), void *what, size_t size) {
    if (parking.away[0] + parking.away[1] == 0 && !parking.fresh && !parking.aging) {
        end(what, size);
        return;
    }
    parked *p = malloc(sizeof *p);
    if (!p) return; /* rather lost than freed under a reader */
    *p = (parked){parking.fresh, end, what, size};
    parking.fresh = p;
    settle();
}

void *tp_host_lock_release(void) {
    tp_assert_no_lock();
    if (!host.release || tp_tls.in_parallel || (host.held && !host.held())) return NULL;
    int generation = parking.generation;
    parking.away[generation]++;
    tp_tls.away_since = (uint8_t)generation;
    return host.release();
}

void tp_host_lock_acquire(void *state) {
    tp_assert_no_lock();
    if (!state || !host.acquire) return;
    host.acquire(state);
    parking.away[tp_tls.away_since]--;
    if (tp_unlikely(parking.fresh || parking.aging)) settle();
}

/* Threads that were away in the parent do not come back here. */
static void after_fork_in_child(void) { parking.away[0] = parking.away[1] = 0; }

static void __attribute__((constructor)) watch_forks(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

/* ---- signals ---- */

#define LOOK_MS 20

static int64_t milliseconds(void) {
    struct timespec t;
#ifdef CLOCK_MONOTONIC_COARSE
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
#else
    clock_gettime(CLOCK_MONOTONIC, &t);
#endif
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* A handler may call operators: it gets a thread's state as at the start, not that of the call that it comes into. */
static int run_handlers(void) {
    tp_at_once_guard guard = tp_at_once();
    uint64_t include = tp_tls.include, exclude = tp_tls.exclude;
    tp_saved_error before = tp_error_take();
    tp_tls.include = tp_tls.exclude = 0;
    int status = host.interrupted();
    tp_tls.include = include;
    tp_tls.exclude = exclude;
    if (status == 0 && before.cls != TP_NoError) tp_error_restore_steal(&before);
    tp_text_free(&before.message);
    return status;
}

int tp_host_look(void) {
    if (!host.interrupted) return 0;
    if (tp_tls.stop && atomic_load_explicit(tp_tls.stop, memory_order_relaxed))
        return tp_fail(TP_PythonError, "interrupted");
    int64_t now = milliseconds();
    if (now - tp_tls.looked < LOOK_MS) return 0;
    tp_assert_no_lock();
    tp_tls.looked = now;
    if (run_handlers() == 0) return 0;
    if (tp_tls.stop) atomic_store_explicit(tp_tls.stop, true, memory_order_relaxed);
    return -1;
}

bool tp_work_ended(void) { return tp_error_pending() != TP_NoError || tp_host_look() < 0; }
