/* test_parallel.c: the split, errors of chunks, nesting, forks, and the host's lock. */
#include "check.h"

#include "core/host.h"
#include "core/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_N 100000
static _Atomic uint8_t visited[MAX_N];
static _Atomic int calls, short_calls, nested_parallel;

static void visit(int64_t begin, int64_t end, void *grain) {
    calls++;
    if (end - begin < *(int64_t *)grain) short_calls++;
    for (int64_t i = begin; i < end; i++) visited[i]++;
}

static void check_cover(int64_t n, int64_t grain) {
    for (int64_t i = 0; i < n; i++) visited[i] = 0;
    calls = short_calls = 0;
    CHECK_INT(tp_parallel_for(n, grain, visit, &grain), 0);
    bool once = true;
    for (int64_t i = 0; i < n; i++) once &= visited[i] == 1;
    CHECK(once);
    CHECK(calls >= (n > 0) && calls <= tp_get_num_threads() + n / (64 * grain));
    CHECK(calls == 1 || short_calls <= tp_get_num_threads());
    if (n <= grain) CHECK_INT(calls, n > 0);
}

static void test_split(void) {
    static const int64_t ns[] = {0, 1, 2, 3, 7, 63, 64, 65, 1000, 4096, 9999, 32768, 99999};
    for (int threads = 1; threads <= 5; threads++) {
        tp_set_num_threads(threads);
        CHECK_INT(tp_get_num_threads(), threads);
        for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
            check_cover(ns[i], 1);
            check_cover(ns[i], 1000);
            check_cover(ns[i], TP_GRAIN);
        }
    }
    tp_set_num_threads(2);
    CHECK_INT(tp_set_num_threads(0), -1);
    CHECK_ERROR(ValueError, "positive integer");
    CHECK_INT(tp_get_num_threads(), 2);
}

static void fail_late(int64_t begin, int64_t end, void *unused) {
    (void)unused;
    if (end > 500) tp_fail(TP_IndexError, "chunk %s 500 failed", begin >= 500 ? "above" : "around");
}

static void test_largest_grain(void) {
    int64_t grain = INT64_MAX;
    calls = 0;
    CHECK_INT(tp_parallel_for(MAX_N, grain, visit, &grain), 0);
    CHECK_INT(calls, 1);
}

static void test_errors(void) {
#ifdef _OPENMP
    bool parallel = true;
#else
    bool parallel = false;
#endif
    for (int threads = 1; threads <= 4; threads++) {
        tp_set_num_threads(threads);
        CHECK_INT(tp_parallel_for(1000, 1, fail_late, NULL), -1);
        CHECK_ERROR(IndexError, parallel && threads % 2 == 0 ? "above" : "around"); /* the lowest that failed */
        CHECK_INT(tp_parallel_for(100, 1, fail_late, NULL), 0);
        CHECK(tp_error_pending() == TP_NoError);
        tp_fail(TP_ValueError, "from before");
        CHECK_INT(tp_parallel_for(100, 1, fail_late, NULL), 0);
        CHECK_ERROR(ValueError, "from before");
    }
}

static void inner(int64_t begin, int64_t end, void *unused) {
    (void)unused;
    nested_parallel += end - begin == 10;
}
static void outer(int64_t begin, int64_t end, void *unused) {
    for (int64_t i = begin; i < end; i++) tp_parallel_for(10, 1, inner, unused);
    if (tp_get_num_threads() > 1) CHECK(tp_in_parallel() == (end - begin < 8));
}
static void test_nesting(void) {
    tp_set_num_threads(2);
    nested_parallel = 0;
    tp_parallel_for(8, 1, outer, NULL);
    if (tp_in_parallel()) CHECK(false);
#ifdef _OPENMP
    CHECK_INT(nested_parallel, 8);
#endif
}

static void test_fork(void) {
    tp_set_num_threads(4);
    check_cover(1000, 1); /* the parent has used threads */
    pid_t pid = fork();
    if (pid == 0) {
        alarm(20);
        CHECK_INT(tp_get_num_threads(), 1);
        check_cover(99999, 99999);
        CHECK_INT(calls, 1);
        _exit(check_failed ? 1 : 0);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_INT(status, 0);
    check_cover(1000, 1);
}

/* The host's thread is interrupted; the others hear of it. */
static pthread_t first_thread;
static _Atomic int looks;
static int interrupted(void) {
    if (!pthread_equal(pthread_self(), first_thread)) return 0;
    looks++;
    return tp_fail(TP_ValueError, "interrupted");
}
static void run_until_stopped(int64_t begin, int64_t end, void *unused) {
    (void)end, (void)unused;
    if (begin > 0) /* not the first thread's: only a signal ends it */
        while (tp_host_look() == 0) usleep(1000);
    else usleep(200000); /* longer than the time between two looks */
}

static void test_interruption(void) {
    first_thread = pthread_self();
    tp_set_host_lock((tp_host_lock){.interrupted = interrupted});
    for (int threads = 1; threads <= 3; threads++) {
        looks = 0;
        tp_set_num_threads(threads);
        CHECK_INT(tp_parallel_for(1000, 1, run_until_stopped, NULL), -1);
        CHECK(strstr(tp_error_message(), "interrupted") != NULL);
        tp_error_clear();
        CHECK(looks > 0);
        usleep(200000);
        tp_fail(TP_ValueError, "from before");
        CHECK_INT(tp_parallel_for(1000, 1, run_until_stopped, NULL), -1);
        tp_error_clear();
    }
    tp_set_host_lock((tp_host_lock){.release = NULL});
}

static int held = 1;
static void *release(void) {
    held = 0;
    return &held;
}
static void acquire(void *state) {
    CHECK(state == &held);
    held = 1;
}
static void ask_inside(int64_t begin, int64_t end, void *unused) {
    (void)unused;
    if (end - begin < 8) CHECK(tp_host_lock_release() == NULL);
}

static void test_host_lock(void) {
    CHECK(tp_host_lock_release() == NULL);
    tp_host_lock_acquire(NULL);
    tp_set_host_lock((tp_host_lock){.release = release, .acquire = acquire});
    void *state = tp_host_lock_release();
    CHECK(state == &held && held == 0);
    tp_host_lock_acquire(state);
    CHECK_INT(held, 1);
    tp_host_lock_acquire(NULL);
    tp_set_num_threads(2);
    tp_parallel_for(8, 1, ask_inside, NULL);
    tp_set_host_lock((tp_host_lock){.release = NULL});
}

int main(void) {
    CHECK(tp_get_num_threads() >= 1);
    test_split();
    test_largest_grain();
    test_errors();
    test_nesting();
    test_fork();
    test_host_lock();
    test_interruption();
    return check_report();
}
