/* lock.c: see lock.h.
 *
 * Invariant: a thread takes locks in the order of their numbers, and so does a fork. */
#include "core/lock.h"

static pthread_mutex_t mutexes[TP_NUM_LOCKS] = {[0 ... TP_NUM_LOCKS - 1] = PTHREAD_MUTEX_INITIALIZER};

static const bool fork_waits[TP_NUM_LOCKS] = {
#define WAITS(name, n, waits) [TP_LOCK_##name... TP_LOCK_LAST_##name] = waits,
    TP_FORALL_LOCKS(WAITS)
#undef WAITS
};

#ifdef TENSORPY_DEBUG
static __thread uint64_t held; /* bits: the locks of this thread */

static void note_lock(tp_lock_id id) {
    TP_ASSERT(held >> id == 0); /* this one or one of a higher number is held */
    held |= (uint64_t)1 << id;
}
static void note_unlock(tp_lock_id id) {
    TP_ASSERT(held >> id & 1);
    held &= ~((uint64_t)1 << id);
}
void tp_assert_no_lock(void) { TP_ASSERT(held == 0); }
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

pthread_mutex_t *tp_lock_mutex(tp_lock_id id) { return &mutexes[id]; }

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
}

static void __attribute__((constructor)) watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
