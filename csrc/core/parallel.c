/* parallel.c: tp_parallel_for on OpenMP. The only file that knows OpenMP.
 *
 * Invariant: after a fork the child never enters an OpenMP region, since libgomp would wait there for threads that
 * exist in the parent only. */
#include "core/parallel.h"

#include "core/error.h"
#include "core/host.h"
#include "core/room.h"
#include "core/tls.h"

#include <pthread.h>
#include <stdatomic.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#define CACHE_LINE_ELEMENTS                                                                  \
    64 /* long chunks start at multiples of this, so that two do not write to one cache line \
        */
#define LONG_CHUNK 4096
#define PIECE_GRAINS 64 /* between two looks for signals */

static int64_t round_up(int64_t n) {
    if (n > INT64_MAX - CACHE_LINE_ELEMENTS) return n;
    return (n + CACHE_LINE_ELEMENTS - 1) / CACHE_LINE_ELEMENTS * CACHE_LINE_ELEMENTS;
}

static _Atomic int num_threads; /* 0: not yet asked for */
static _Atomic bool forked;

static void after_fork_in_child(void) { atomic_store_explicit(&forked, true, memory_order_relaxed); }

static void __attribute__((constructor)) watch_forks(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

static int default_num_threads(void) {
#ifdef _OPENMP
    int allowed = omp_get_max_threads(), cpus = omp_get_num_procs();
    return allowed < cpus ? allowed : cpus;
#else
    return 1;
#endif
}

int tp_get_num_threads(void) {
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return 1;
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed);
    if (tp_likely(n > 0)) return n;
    n = default_num_threads();
    atomic_store_explicit(&num_threads, n, memory_order_relaxed);
    return n;
}

int tp_set_num_threads(int n) {
    if (n < 1) return tp_fail(TP_ValueError, "set_num_threads expects a positive integer, got %d", n);
    atomic_store_explicit(&num_threads, n, memory_order_relaxed);
    return 0;
}

bool tp_in_parallel(void) { return tp_tls.in_parallel; }

/* No error is pending at the beginning. A long range is worked off in pieces, so that a signal is heard between two. */
static void run_pieces(int64_t begin, int64_t end, int64_t grain, tp_range_fn fn, void *context) {
    int64_t piece = grain < INT64_MAX / PIECE_GRAINS ? grain * PIECE_GRAINS : INT64_MAX;
    if (piece >= LONG_CHUNK) piece = round_up(piece);
    for (; end - begin > piece; begin += piece) {
        fn(begin, begin + piece, context);
        if (tp_error_pending() != TP_NoError || tp_host_look() < 0) return;
    }
    fn(begin, end, context);
}

/* An error that was pending before is not this loop's. */
static int run_serial(int64_t n, int64_t grain, tp_range_fn fn, void *context) {
    tp_saved_error before = tp_error_take();
    run_pieces(0, n, grain, fn, context);
    if (tp_unlikely(tp_error_pending() != TP_NoError)) return tp_text_free(&before.message), -1;
    if (tp_unlikely(before.cls != TP_NoError)) tp_error_restore_steal(&before);
    return 0;
}

#ifdef _OPENMP
typedef struct {
    int64_t n, grain, size, count; /* chunks of `size` elements, the last one shorter */
    tp_range_fn fn;
    void *context;
    int64_t failed; /* the lowest chunk that failed, or count */
    tp_saved_error error;
    _Atomic bool stop; /* a signal's handler has raised */
} chunks;

static void keep_error(chunks *c, int64_t chunk) {
    tp_saved_error error = tp_error_take();
#pragma omp critical(tp_parallel_error)
    if (chunk < c->failed) {
        tp_saved_error other = c->error;
        c->error = error;
        error = other;
        c->failed = chunk;
    }
    tp_text_free(&error.message);
}

static void run_chunk(chunks *c, int64_t chunk) {
    int64_t begin = chunk * c->size, end = begin + c->size;
    tp_tls.in_parallel = true;
    tp_tls.stop = &c->stop;
    run_pieces(begin, end < c->n ? end : c->n, c->grain, c->fn, c->context);
    tp_tls.stop = NULL;
    tp_tls.in_parallel = false;
    if (tp_unlikely(tp_error_pending() != TP_NoError)) keep_error(c, chunk);
}

/* Whether the threads that libgomp would have to start beside those of the thread's last loop get their memory; if not,
 * the loop runs in the calling thread. */
static bool has_team(int64_t count) {
    static _Atomic size_t room;
    size_t each = atomic_load_explicit(&room, memory_order_relaxed);
    if (each == 0) atomic_store_explicit(&room, each = tp_thread_room(), memory_order_relaxed);
    int64_t more = count - (tp_tls.team ? tp_tls.team : 1);
    if (more > 0 && !tp_has_room((size_t)more * each)) return false;
    tp_tls.team = (uint16_t)(count < UINT16_MAX ? count : UINT16_MAX);
    return true;
}

static int run_parallel(chunks *c) {
    tp_saved_error before = tp_error_take();
#pragma omp parallel for num_threads((int)c->count) schedule(static, 1)
    for (int64_t chunk = 0; chunk < c->count; chunk++) run_chunk(c, chunk);
    if (c->failed < c->count) {
        tp_text_free(&before.message);
        tp_error_restore_steal(&c->error);
        return -1;
    }
    if (before.cls != TP_NoError) tp_error_restore_steal(&before);
    return 0;
}
#endif

int tp_parallel_for(int64_t n, int64_t grain, tp_range_fn fn, void *context) {
    if (n <= 0) return 0;
    if (grain < 1) grain = 1;
#ifdef _OPENMP
    int threads = n > grain && !tp_tls.in_parallel ? tp_get_num_threads() : 1;
    if (threads > 1) {
        int64_t count = n / grain < threads ? n / grain : threads; /* so that each has at least `grain` */
        int64_t size = (n + count - 1) / count;
        if (size >= LONG_CHUNK) size = round_up(size);
        count = (n + size - 1) / size;
        chunks c = {
            .n = n, .grain = grain, .size = size, .count = count, .fn = fn, .context = context, .failed = count};
        if (count > 1 && has_team(count)) return run_parallel(&c);
    }
#endif
    return run_serial(n, grain, fn, context);
}

int tp_parallel_unlocked(bool is_long, int64_t n, int64_t grain, tp_range_fn fn, void *context) {
    void *host = is_long ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(n, grain, fn, context);
    tp_host_lock_acquire(host);
    return status;
}
