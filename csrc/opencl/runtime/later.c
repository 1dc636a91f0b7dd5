/* later.c: see later.h. */
#include "opencl/runtime/later.h"

#include "core/host.h"
#include "core/tls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static _Atomic(tp_cl_later *) asked; /* the last one first */
static _Atomic int count;            /* asked for and not done; who makes it 1 starts the thread */
static _Atomic bool ending;

static void build(tp_cl_later *l) {
    l->kernel = ending ? NULL : l->build(l);
    tp_error_clear();
    atomic_store(&l->state, l->kernel ? TP_CL_BUILT : TP_CL_NOT_TO_BE_HAD);
}

static tp_cl_later *take_all(void) {
    tp_cl_later *l = atomic_exchange(&asked, NULL), *first = NULL;
    while (l) {
        tp_cl_later *next = l->next;
        l->next = first;
        first = l;
        l = next;
    }
    return first;
}

/* A thread of the driver's kind: it has no part in the host's lock, also when the host is gone. */
static void *work(void *unused TP_UNUSED) {
    int done;
    tp_tls.in_parallel = true;
    do {
        done = 0;
        for (tp_cl_later *l = take_all(), *next; l; l = next, done++) {
            next = l->next;
            build(l);
        }
    } while (atomic_fetch_sub(&count, done) != done);
    return NULL;
}

static bool start_thread(void) {
    pthread_t thread;
    pthread_attr_t how;
    if (pthread_attr_init(&how)) return false;
    pthread_attr_setdetachstate(&how, PTHREAD_CREATE_DETACHED);
    bool started = pthread_create(&thread, &how, work, NULL) == 0;
    pthread_attr_destroy(&how);
    return started;
}

void tp_cl_build_later(tp_cl_later *l) {
    atomic_store(&l->state, TP_CL_UNDER_WAY);
    if (tp_cl_builds_wait()) {
        build(l);
        return;
    }
    l->next = atomic_load(&asked);
    while (!atomic_compare_exchange_weak(&asked, &l->next, l)) {
    }
    if (atomic_fetch_add(&count, 1) > 0 || start_thread()) return;
    bool in_parallel = tp_tls.in_parallel;
    work(NULL);
    tp_tls.in_parallel = in_parallel;
}

static _Atomic int wait_for_builds = -1;

bool tp_cl_builds_wait(void) {
    if (tp_unlikely(wait_for_builds < 0)) {
        const char *how = getenv("TENSORPY_OPENCL_FUSED_KERNELS");
        wait_for_builds = how && strcmp(how, "wait") == 0;
    }
    return wait_for_builds > 0;
}
void tp_cl_set_builds_wait(bool wait) { wait_for_builds = wait; }

void tp_cl_await_builds(bool ends) {
    if (ends) ending = true;
    if (!count || tp_cl_forked()) return;
    void *host = ends ? NULL : tp_host_lock_release(); /* at its end a process has none */
    while (count) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    tp_host_lock_acquire(host);
}
