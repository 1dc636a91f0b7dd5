/* tls.c: the per-thread state, the registry of threads that hold any, and what happens to it at exit and at a fork.
 *
 * Invariant: the registry lists exactly the registered threads that are alive in this process; `ended` holds the
 * counters of all others. */
#include "core/tls.h"

#include "core/lock.h"
#include "core/small.h"
#include "core/threads.h"

#include <pthread.h>

/* The first operator of a thread meets Deferred: what compiled functions of others have noted while they were alone
 * runs before it (plan/record.c). */
__thread tp_thread_state tp_tls __attribute__((tls_model("initial-exec"))) = {.include = TP_BIT(Deferred)};

static struct {
    tp_thread_state *first;
    int64_t ended_blocks, ended_bytes;
    uint64_t included; /* by tp_thread_include */
    int callers;       /* threads that are no workers of tp_parallel_for */
} registry;

static __thread bool is_caller;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool exit_key_made;

static void fold_counters(tp_thread_state *t) {
    int64_t blocks, bytes;
    tp_small_live(t, &blocks, &bytes);
    registry.ended_blocks += blocks;
    registry.ended_bytes += bytes;
    atomic_store_explicit(&t->small_blocks, 0, memory_order_relaxed);
    atomic_store_explicit(&t->small_bytes, 0, memory_order_relaxed);
}

static void unlink_thread(tp_thread_state *t) {
    if (t->previous) t->previous->next = t->next;
    if (t->next) t->next->previous = t->previous;
    if (registry.first == t) registry.first = t->next;
    t->next = t->previous = NULL;
}

#define MAX_ENDS 4
static void (*ends[MAX_ENDS])(void);
static int nends;

void tp_thread_at_end(void (*end)(void)) {
    TP_ASSERT(nends < MAX_ENDS);
    ends[nends++] = end;
}

/* Runs at a thread's exit. A later destructor of the same thread may free blocks and so register it once more; then
 * this runs again. */
static void thread_exit(void *state) {
    tp_thread_state *t = state;
    for (int i = 0; i < nends; i++) ends[i]();
    tp_small_exit(t);
    tp_text_free(&t->error_text);
    t->error_class = TP_NoError;
    tp_lock(TP_LOCK_Threads);
    fold_counters(t);
    unlink_thread(t);
    t->registered = false;
    registry.callers -= is_caller;
    for (int c = 0; c < TP_SIZE_CLASSES; c++) tp_set_free_room(t, c, 0);
    tp_unlock(TP_LOCK_Threads);
}

/* Only the forking thread lives on; the memory of the others' states will be used again, so they leave the registry.
 * The blocks in their lists are lost to the child. */
static void after_fork_in_child(void) {
    for (tp_thread_state *t = registry.first, *next; t; t = next) {
        next = t->next;
        if (t == &tp_tls) continue;
        fold_counters(t);
        unlink_thread(t);
    }
    registry.callers = is_caller;
}

static void set_up(void) {
    exit_key_made = pthread_key_create(&exit_key, thread_exit) == 0;
    pthread_atfork(NULL, NULL, after_fork_in_child); /* the fork itself waited for the registry: lock.c */
}

bool tp_thread_register(void) {
    if (tp_tls.registered) return true;
    pthread_once(&once, set_up);
    if (!exit_key_made || pthread_setspecific(exit_key, &tp_tls) != 0) return false;
    tp_lock(TP_LOCK_Threads);
    tp_tls.previous = NULL;
    tp_tls.next = registry.first;
    if (registry.first) registry.first->previous = &tp_tls;
    registry.first = &tp_tls;
    tp_tls.registered = true;
    tp_tls.include |= registry.included;
    is_caller = !tp_tls.in_parallel;
    registry.callers += is_caller;
    tp_small_start(&tp_tls);
    tp_unlock(TP_LOCK_Threads);
    return true;
}

bool tp_thread_has_company(void) {
    tp_lock(TP_LOCK_Threads);
    bool others = registry.callers > is_caller;
    tp_unlock(TP_LOCK_Threads);
    return others;
}

void tp_thread_include(uint64_t keys, bool on) {
    tp_lock(TP_LOCK_Threads);
    registry.included = on ? registry.included | keys : registry.included & ~keys;
    for (tp_thread_state *t = registry.first; t; t = t->next) t->include = on ? t->include | keys : t->include & ~keys;
    tp_unlock(TP_LOCK_Threads);
}

void tp_thread_sum_live(int64_t *blocks, int64_t *bytes) {
    tp_lock(TP_LOCK_Threads);
    *blocks = registry.ended_blocks;
    *bytes = registry.ended_bytes;
    for (tp_thread_state *t = registry.first; t; t = t->next) {
        int64_t thread_blocks, thread_bytes;
        tp_small_live(t, &thread_blocks, &thread_bytes);
        *blocks += thread_blocks;
        *bytes += thread_bytes;
    }
    tp_unlock(TP_LOCK_Threads);
}

void tp_thread_count_unregistered(int64_t blocks, int64_t bytes) {
    tp_lock(TP_LOCK_Threads);
    registry.ended_blocks += blocks;
    registry.ended_bytes += bytes;
    tp_unlock(TP_LOCK_Threads);
}
