/* world.c: see world.h. */
#include "distributed/world.h"

#include "core/error.h"
#include "core/host.h"
#include "distributed/errand.h"
#include "distributed/lines.h"
#include "distributed/peers.h"
#include "distributed/pmi.h"
#include "distributed/state.h"
#include "distributed/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int tp_world_load(const char *const *paths, int n) {
    if (tp_world.loaded) return 0;
    int status = 1;
    for (int i = 0; i < n && status == 1; i++) status = tp_world.engine->load(paths[i]);
    tp_world.loaded = status == 0;
    return status;
}

bool tp_world_is_launched(void) { return tp_world.loaded && tp_world.engine->is_launched(); }
const char *tp_world_library(void) { return tp_world.loaded ? tp_world.engine->version() : ""; }

static int allocate_peers(int size) {
    free(tp_world.peers);
    tp_world.size = size;
    tp_world.peers = calloc((size_t)size, sizeof *tp_world.peers);
    return tp_world.peers ? 0 : tp_fail_memory(size);
}

int tp_world_watch(const tp_world_start *w) {
    int status = tp_watch_start(w->address, w->port, w->token, w->rank, w->host, &tp_peer_events);
    tp_world.watched = status == 0;
    return status;
}

static int run_start(void *context) {
    int *found = context;
    return tp_world.engine->start(found[2], &found[0], &found[1]);
}

static int start_engine(tp_world_start *w) {
    int *found = malloc(3 * sizeof *found);
    if (!found) return tp_fail_memory(sizeof *found);
    found[2] = !w->port;
    tp_errand_of all = {NULL, w->size > 0 ? w->size : 0};
    if (tp_errand_send(run_start, found, "init_process_group", all, w->seconds) < 0) return -1;
    int rank = found[0], size = found[1];
    free(found);
    if ((w->rank >= 0 && rank != w->rank) || (w->size >= 0 && size != w->size))
        return tp_fail(TP_RuntimeError, "MPI has this process as rank %d of %d, not %d of %d: %s", rank, size, w->rank,
                       w->size, tp_world.engine->version());
    w->rank = tp_world.rank = rank;
    w->size = size;
    return 0;
}

static void say_pmi(const char *line) {
    char text[TP_LINE_MAX];
    snprintf(text, sizeof text, "pmi %s", line);
    tp_watch_say(text);
}

int tp_world_open_pmi(int size, const char *token, const char *mapping) {
    return tp_pmi_open(size, token, mapping, say_pmi);
}

int tp_world_begin(tp_world_start *w) {
    if (tp_world.started) return tp_fail(TP_RuntimeError, "the world of processes has begun already");
    if (atomic_load(&tp_world.faulty))
        return tp_fail(TP_RuntimeError, "%s; another world needs another process", tp_world.fault);
    atomic_store(&tp_world.leave, 0);
    tp_pmi_fail(false);
    tp_world.lost = tp_world.quit = false;
    if (w->size > 0 && allocate_peers(w->size) < 0) return -1;
    tp_world.watched = false;
    tp_world.rank = w->rank;
    if (w->port && tp_world_watch(w) < 0) return -1;
    if (start_engine(w) < 0 || (!w->port && allocate_peers(w->size) < 0)) {
        tp_saved_error why = tp_error_take();
        tp_watch_stop();
        tp_world_lock();
        tp_world_set_fault(why.cls == TP_NoError ? "the world did not begin" : "the world did not begin once");
        tp_world_unlock();
        tp_error_restore_steal(&why);
        return -1;
    }
    tp_world.pid = getpid();
    if (tp_works_start() < 0) return -1;
    tp_world.started = true;
    return 0;
}

static int run_stop(void *context TP_UNUSED) { return tp_world.engine->stop(); }

/* Whether all others are leaving too, until a time at most; `status` is -1 with the error set where it was interrupted.
 */
static bool all_leave(int64_t end, int *status) {
    while (tp_world.first && !atomic_load(&tp_world.faulty) && tp_now_ms() < end && !(*status = tp_host_look()))
        tp_sleep_us(200);
    if (tp_world.first || *status) return false;
    tp_watch_say("leaving");
    while (!atomic_load(&tp_world.leave) && tp_now_ms() < end && !atomic_load(&tp_world.faulty) && !tp_world.lost &&
           !(*status = tp_host_look()))
        tp_sleep_us(500);
    return atomic_load(&tp_world.leave) == 1 && !atomic_load(&tp_world.faulty) && !*status;
}

int tp_world_end(double seconds) {
    if (!tp_world.started || tp_world.pid != getpid()) return 0;
    void *state = tp_host_lock_release();
    int status = 0;
    bool whole = all_leave(tp_later(tp_now_ms(), seconds * 1000), &status);
    tp_works_stop();
    tp_world_lock();
    tp_groups_forget(whole);
    if (!whole) tp_world_set_fault("the world of processes is over, and not all of them ended it together");
    tp_world_unlock();
    tp_host_lock_acquire(state);
    if (whole) status = tp_errand_send(run_stop, NULL, "destroy_process_group", (tp_errand_of){0}, seconds);
    state = tp_host_lock_release();
    tp_watch_say("left");
    tp_watch_stop();
    tp_host_lock_acquire(state);
    tp_pmi_fail(true);
    tp_world.started = false;
    tp_sweep();
    return status;
}

void tp_world_leave(void) {
    if (tp_world.pid != getpid()) return;
    if (tp_world.started && !atomic_load(&tp_world.faulty)) tp_watch_say("left");
    void *state = tp_host_lock_release();
    tp_works_stop(); /* an MPI library ends with its process, and must not be called meanwhile */
    if (!atomic_load(&tp_world.faulty) && !tp_world.first) tp_world.engine->finish();
    tp_host_lock_acquire(state);
}

void tp_world_look_for(int rank) {
    if (tp_world.started && rank >= 0 && rank < tp_world.size) tp_peers_look_for(&rank, 1);
}

const char *tp_world_fault(void) { return atomic_load(&tp_world.faulty) ? tp_world.fault : NULL; }
