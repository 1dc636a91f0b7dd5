/* errand.c: see errand.h. */
#include "distributed/errand.h"

#include "core/error.h"
#include "core/host.h"
#include "distributed/lines.h"
#include "distributed/peers.h"
#include "distributed/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nothing ends such a call if one of them never comes, so it has a thread of its own, which is left behind then: the
 * world is over anyway. */
typedef struct {
    int (*run)(void *context);
    void *context; /* malloc'd: it outlives the caller */
    int status;
    tp_saved_error error;
    _Atomic bool done;
} errand;

static void *do_errand(void *given) {
    errand *e = given;
    e->status = e->run(e->context);
    if (e->status < 0) e->error = tp_error_take();
    atomic_store(&e->done, true);
    return NULL;
}

/* What they were to do with each other is late: names those that do not answer, where there is a watch. */
static void fail_errand(const char *name) {
    char text[800] = "not all processes came in time", piece[64];
    if (tp_world.watched) {
        tp_peers_ask(-1);
        tp_world_lock();
        for (int r = 0; r < tp_world.size; r++) {
            const tp_peer *p = &tp_world.peers[r];
            if (r == tp_world.rank || p->left || tp_world.lost || p->asked_number > -2) continue;
            snprintf(piece, sizeof piece, "; rank %d does not answer", r);
            tp_append(text, sizeof text, piece);
        }
        tp_world_unlock();
    }
    tp_world_lock();
    tp_world_set_fault(text);
    tp_world_unlock();
    tp_fail(TP_RuntimeError, "%s: %s", name, tp_world.fault);
}

static int end_of_errand(errand *e, const char *name, tp_errand_of whom, int64_t end) {
    for (int64_t began = tp_now_us(); !atomic_load(&e->done);) {
        if (whom.n) tp_peers_look_for(whom.ranks, whom.n);
        if (atomic_load(&tp_world.faulty)) return tp_fail(TP_RuntimeError, "%s: %s", name, tp_world.fault);
        if (tp_now_ms() >= end) return fail_errand(name), -1;
        if (tp_host_look() < 0) return -1;
        tp_sleep_us(tp_now_us() - began < 100000 ? 50 : 1000);
    }
    if (e->status < 0) tp_error_restore_steal(&e->error);
    return e->status;
}

int tp_errand_send(int (*run)(void *), void *context, const char *name, tp_errand_of whom, double seconds) {
    errand *e = calloc(1, sizeof *e);
    pthread_t thread;
    if (!e) return tp_fail_memory(sizeof *e);
    *e = (errand){.run = run, .context = context};
    tp_world_lock();
    tp_world.busy = true;
    tp_world_unlock();
    void *state = tp_host_lock_release();
    int status = -1;
    if (pthread_create(&thread, NULL, do_errand, e)) tp_fail(TP_RuntimeError, "%s: no thread", name);
    else {
        pthread_detach(thread);
        status = end_of_errand(e, name, whom, tp_later(tp_now_ms(), seconds * 1000));
    }
    tp_world_lock();
    if (atomic_load(&e->done)) tp_world.busy = false;
    else tp_world_set_fault("the start of a group was interrupted");
    tp_world_unlock();
    tp_host_lock_acquire(state);
    if (atomic_load(&e->done)) free(e);
    return status;
}
