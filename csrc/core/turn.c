/* turn.c: see turn.h. Turns share one condition variable: they are seldom waited for, and a fork has nothing to mend in
 * each. */
#include "core/turn.h"

#include "core/host.h"
#include "core/lock.h"
#include "core/tls.h"

#include <time.h>

#define PATIENCE_MS 50 /* between two looks for signals */

static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static _Atomic int waiting;
static _Atomic uint32_t last_thread;
static uint32_t process = 1; /* how many forks lie between the first process and this one */

static uint64_t this_thread(void) {
    if (tp_unlikely(tp_tls.number == 0)) tp_tls.number = atomic_fetch_add(&last_thread, 1) + 1;
    return (uint64_t)process << 32 | tp_tls.number;
}

static bool try_take(tp_turn *t, uint64_t self) {
    uint64_t owner = atomic_load(&t->owner);
    do
        if (owner >> 32 == process) return false;
    while (!atomic_compare_exchange_weak(&t->owner, &owner, self));
    return true;
}

/* A short wait, so that the waiting thread gets to look for signals. */
static bool wait_a_little(tp_turn *t, uint64_t self) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += PATIENCE_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) until.tv_nsec -= 1000000000L, until.tv_sec++;
    tp_lock(TP_LOCK_Turns);
    atomic_fetch_add(&waiting, 1); /* before the look at the owner: who passes looks in the other order */
    bool taken = try_take(t, self);
    if (!taken) {
        pthread_cond_timedwait(&passed, tp_lock_mutex(TP_LOCK_Turns), &until);
        taken = try_take(t, self);
    }
    atomic_fetch_sub(&waiting, 1);
    tp_unlock(TP_LOCK_Turns);
    return taken;
}

static int TP_COLD wait_for(tp_turn *t, uint64_t self) {
    bool taken;
    int status;
    void *host = tp_host_lock_release();
    do {
        taken = wait_a_little(t, self);
        status = taken ? 0 : tp_host_look();
    } while (!taken && status == 0);
    tp_host_lock_acquire(host);
    return status;
}

int tp_turn_take(tp_turn *t) {
    uint64_t self = this_thread();
    tp_assert_no_lock();
    if (atomic_load(&t->owner) == self) {
        t->depth++;
        return 0;
    }
    if (tp_unlikely(!try_take(t, self)) && wait_for(t, self) < 0) return -1;
    t->depth = 0;
    return 0;
}

void tp_turn_pass(tp_turn *t) {
    if (atomic_load(&t->owner) != this_thread()) return; /* taken before a fork, and so not this process's */
    if (t->depth-- > 0) return;
    atomic_store(&t->owner, 0);
    if (tp_likely(atomic_load(&waiting) == 0)) return;
    tp_lock(TP_LOCK_Turns);
    pthread_cond_broadcast(&passed);
    tp_unlock(TP_LOCK_Turns);
}

static void after_fork_in_child(void) {
    pthread_cond_init(&passed, NULL);
    atomic_store(&waiting, 0);
    process++;
}

static void __attribute__((constructor)) watch_forks(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }
