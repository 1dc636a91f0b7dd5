/* test_alloc.c: alignment, reuse, counts across threads, the large-block cache, failing allocations, forks. */
#include "check.h"

#include "core/tls.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)

static void test_classes(void) {
    int previous = 0;
    for (size_t size = 0; size <= TP_SMALL_MAX; size++) {
        int c = tp_size_class(size);
        CHECK(c == previous || c == previous + 1);
        previous = c;
    }
    CHECK_INT(previous, TP_SIZE_CLASSES - 1);
    CHECK_INT(tp_size_class(64), 0);
    CHECK_INT(tp_size_class(65), 1);
    CHECK_INT(tp_size_class(512), 7);
    CHECK_INT(tp_size_class(513), 8);
}

static void test_sizes(void) {
    tp_memory_stats before = tp_alloc_stats();
    static const size_t sizes[] = {0,    1,    64,   65,     511,    512, 513,    640,    1000,
                                   4095, 4096, 4097, 100000, MB - 1, MB,  MB + 1, 2 * MB, 5 * MB + 3};
    enum { N = sizeof sizes / sizeof *sizes };
    void *blocks[N];
    int64_t bytes = 0;
    for (int i = 0; i < N; i++) {
        blocks[i] = tp_alloc(sizes[i]);
        CHECK(blocks[i] && (uintptr_t)blocks[i] % TP_ALIGNMENT == 0);
        memset(blocks[i], 0xA5 ^ i, sizes[i]);
        bytes += (int64_t)sizes[i];
    }
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks + N);
    CHECK(tp_alloc_stats().live_bytes >= before.live_bytes + bytes); /* small blocks count by class */
    CHECK(tp_alloc_stats().live_bytes <= before.live_bytes + bytes + 13 * 512);
    for (int i = 0; i < N; i++) {
        unsigned char *p = blocks[i];
        CHECK(sizes[i] == 0 || (p[0] == (0xA5 ^ i) && p[sizes[i] - 1] == (0xA5 ^ i)));
        tp_free(blocks[i], sizes[i]);
    }
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks);
    CHECK_INT(tp_alloc_stats().live_bytes, before.live_bytes);
    tp_free(NULL, 100);
    tp_free(NULL, 10 * MB);
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks);
}

/* Every size of every class, filled to its end: a class too small for its sizes would corrupt a neighbour (or be seen
 * by AddressSanitizer). */
static void test_class_capacity(void) {
    enum { N = 64 };
    for (size_t size = 1; size <= TP_SMALL_MAX; size += 7) {
        unsigned char *blocks[N];
        for (int i = 0; i < N; i++) memset(blocks[i] = tp_alloc(size), i, size);
        bool intact = true;
        for (int i = 0; i < N; i++) intact &= blocks[i][0] == i && blocks[i][size - 1] == i;
        CHECK(intact);
        for (int i = 0; i < N; i++) tp_free(blocks[i], size);
    }
}

static void test_reuse(void) {
    if (!TP_ALLOC_CACHING) return;
    void *p = tp_alloc(100);
    tp_free(p, 100);
    CHECK(tp_alloc(128) == p);
    tp_free(p, 128);
    tp_alloc_empty_cache();
    p = tp_alloc(10 * MB);
    CHECK((uintptr_t)p % (2 * MB) == 0);
    tp_free(p, 10 * MB);
    CHECK_INT(tp_alloc_stats().cached_bytes, 10 * MB);
    void *q = tp_alloc(9 * MB); /* 10 MB of capacity as well */
    CHECK(q == p);
    CHECK_INT(tp_alloc_stats().cached_bytes, 0);
    tp_free(q, 9 * MB);
    q = tp_alloc(8 * MB); /* 1.25 times as large is close enough */
    CHECK(q == p);
    tp_free(q, 8 * MB);
    CHECK_INT(tp_alloc_stats().cached_bytes, 10 * MB); /* the whole block is back */
    q = tp_alloc(6 * MB);
    CHECK(q != p);
    CHECK_INT(tp_alloc_stats().cached_bytes, 10 * MB);
    tp_free(q, 6 * MB);
    CHECK_INT(tp_alloc_stats().cached_bytes, 16 * MB);
    tp_alloc_empty_cache();
    CHECK_INT(tp_alloc_stats().cached_bytes, 0);
}

/* The cache stays bounded, in bytes and in blocks. */
static void test_cache_bound(void) {
    if (!TP_ALLOC_CACHING) return;
    enum { N = 300 };
    static void *blocks[N];
    for (int i = 0; i < N; i++) blocks[i] = tp_alloc(2 * MB);
    for (int i = 0; i < N; i++) tp_free(blocks[i], 2 * MB);
    CHECK(tp_alloc_stats().cached_bytes <= (int64_t)(512 * MB));
    CHECK(tp_alloc_stats().cached_bytes > 0);
    void *huge = tp_alloc(600 * MB); /* untouched, so it costs nothing */
    tp_free(huge, 600 * MB);
    CHECK(tp_alloc_stats().cached_bytes <= (int64_t)(512 * MB));
    tp_alloc_empty_cache();
    CHECK_INT(tp_alloc_stats().cached_bytes, 0);
}

static void test_peak(void) {
    tp_alloc_reset_peak();
    int64_t start = tp_alloc_stats().peak_bytes;
    void *p = tp_alloc(3 * MB), *q = tp_alloc(10000);
    tp_free(p, 3 * MB);
    CHECK_INT(tp_alloc_stats().peak_bytes, start + (int64_t)(3 * MB) + 10000);
    tp_alloc_reset_peak();
    CHECK_INT(tp_alloc_stats().peak_bytes, start + 10000);
    tp_free(q, 10000);
}

static void test_failures(void) {
    CHECK(tp_alloc(SIZE_MAX) == NULL);
    CHECK_ERROR(MemoryError, "can't allocate memory");
    CHECK(tp_alloc((size_t)PTRDIFF_MAX + 1) == NULL);
    CHECK_ERROR(MemoryError, "can't allocate memory");
    if (TP_ALLOC_CACHING) { /* AddressSanitizer ends the program on such a size */
        CHECK(tp_alloc((size_t)1 << 60) == NULL);
        CHECK_ERROR(MemoryError, "1152921504606846976 bytes");
    }
    static const size_t sizes[] = {100, 5000, 3 * MB};
    for (int i = 0; i < 3; i++) {
        size_t size = sizes[i];
        tp_alloc_fail_after(1);
        void *first = tp_alloc(size);
        CHECK(first != NULL);
        CHECK(tp_alloc(size) == NULL);
        CHECK_ERROR(MemoryError, "can't allocate memory");
        void *third = tp_alloc(size);
        CHECK(third != NULL);
        tp_free(first, size);
        tp_free(third, size);
    }
}

/* ---- threads ---- */

#define HANDED 2000
static void *handed[HANDED];

static void *take_and_keep(void *unused) {
    for (int i = 0; i < HANDED; i++) handed[i] = tp_alloc((size_t)(i % 700));
    return unused;
}
static void *give_back(void *unused) {
    for (int i = 0; i < HANDED; i++) tp_free(handed[i], (size_t)(i % 700));
    return unused;
}
static void run_thread(void *(*fn)(void *)) {
    pthread_t thread;
    pthread_create(&thread, NULL, fn, NULL);
    pthread_join(thread, NULL);
}

/* Allocated in a thread that has ended, freed here or in a third one. */
static void test_ended_threads(void) {
    tp_memory_stats before = tp_alloc_stats();
    run_thread(take_and_keep);
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks + HANDED);
    run_thread(give_back);
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks);
    run_thread(take_and_keep);
    give_back(NULL);
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks);
    CHECK_INT(tp_alloc_stats().live_bytes, before.live_bytes);
}

static _Atomic(void *) mailbox[64];

/* Blocks wander between threads through the mailbox. */
static void *exchange(void *seed) {
    uint32_t x = (uint32_t)(uintptr_t)seed;
    for (int i = 0; i < 30000; i++) {
        x = x * 1664525u + 1013904223u;
        size_t slot = x >> 26, size = slot < 60 ? slot * 70 + 8 : slot * 40000;
        size_t *block = tp_alloc(size);
        *block = size;
        size_t *old = atomic_exchange(&mailbox[slot], block);
        if (old) tp_free(old, *old);
    }
    return NULL;
}

static void test_concurrent(void) {
    tp_memory_stats before = tp_alloc_stats();
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, exchange, (void *)(i + 1));
    for (int i = 0; i < 100; i++) tp_alloc_stats();
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 64; i++) {
        size_t *old = atomic_exchange(&mailbox[i], NULL);
        if (old) tp_free(old, *old);
    }
    CHECK_INT(tp_alloc_stats().live_blocks, before.live_blocks);
    CHECK_INT(tp_alloc_stats().live_bytes, before.live_bytes);
}

/* ---- fork ---- */

/* Left out under the sanitizers: ThreadSanitizer does not support threads in a forked child, and AddressSanitizer's own
 * allocator (of GCC before 14) may be locked in it for ever. */
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
static _Atomic int keep_going = 1;
static void *churn(void *unused) {
    while (atomic_load(&keep_going)) {
        void *p = tp_alloc(200), *q = tp_alloc(3 * MB);
        tp_free(p, 200);
        tp_free(q, 3 * MB);
    }
    return unused;
}

/* A child forked while another thread allocates finds the locks free and starts threads of its own. */
static void test_fork(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, churn, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20);
            run_thread(take_and_keep);
            give_back(NULL);
            void *p = tp_alloc(3 * MB);
            tp_alloc_stats();
            tp_free(p, 3 * MB);
            _exit(p ? 0 : 1);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        CHECK_INT(status, 0);
    }
    atomic_store(&keep_going, 0);
    pthread_join(thread, NULL);
}
#else
static void test_fork(void) {}
#endif

int main(void) {
    test_classes();
    test_sizes();
    test_class_capacity();
    test_reuse();
    test_cache_bound();
    test_peak();
    test_failures();
    test_ended_threads();
    test_concurrent();
    test_fork();
    return check_report();
}
