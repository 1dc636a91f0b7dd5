/* lock.c: see lock.h.
 *
 * Invariant: a thread takes leaf locks in the order of their numbers, and so does a fork. Turns share one condition
 * variable: they are seldom waited for, and a fork has nothing to mend in each. */
#include "core/lock.h"

#include "core/host.h"
#include "core/tls.h"

#include <pthread.h>
#include <time.h>

static pthread_mutex_t mutexes[TP_NUM_LOCKS] = {[0 ... TP_NUM_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static const bool fork_waits[TP_NUM_LOCKS] = {
#define WAITS(name, n, waits) [TP_LOCK_##name... TP_LOCK_LAST_##name] = waits,
    TP_FORALL_LOCKS(WAITS)
#undef WAITS
};

/* ---- leaf locks ---- */

#ifdef TENSORPY_DEBUG
static void note_lock(tp_lock_id id) {
    TP_ASSERT(tp_tls.held_locks >> id == 0); /* this one or one of a higher number is held */
    tp_tls.held_locks |= (uint64_t)1 << id;
}
static void note_unlock(tp_lock_id id) {
    TP_ASSERT(tp_tls.held_locks >> id & 1);
    tp_tls.held_locks &= ~((uint64_t)1 << id);
}
void tp_assert_no_lock(void) { TP_ASSERT(tp_tls.held_locks == 0); }
#else
static inline void note_lock(tp_lock_id id TP_UNUSED) {}
static inline void note_unlock(tp_lock_id id TP_UNUSED) {}
#endif

void tp_lock(tp_lock_id id) {
    note_lock(id);
    pthread_mutex_lock(&mutexes[id]);
}

void tp_unlock(tp_lock_id id) {
    pthread_mutex_unlock(&mutexes[id]);
    note_unlock(id);
}

/* ---- turns ---- */

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
        pthread_cond_timedwait(&passed, &mutexes[TP_LOCK_Turns], &until);
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

/* ---- forks ---- */

static void before_fork(void) {
    for (int id = 0; id < TP_NUM_LOCKS; id++)
        if (fork_waits[id]) pthread_mutex_lock(&mutexes[id]);
}

static void after_fork_in_parent(void) {
    for (int id = TP_NUM_LOCKS - 1; id >= 0; id--)
        if (fork_waits[id]) pthread_mutex_unlock(&mutexes[id]);
}

static void after_fork_in_child(void) {
    for (int id = 0; id < TP_NUM_LOCKS; id++) pthread_mutex_init(&mutexes[id], NULL);
    pthread_cond_init(&passed, NULL);
    atomic_store(&waiting, 0);
    process++;
}

static void __attribute__((constructor)) watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
