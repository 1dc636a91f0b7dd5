/* work.c: see work.h. */
#include "distributed/work.h"

#include "core/error.h"
#include "core/host.h"
#include "distributed/lines.h"
#include "distributed/peers.h"
#include "distributed/recorder.h"
#include "distributed/state.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define PIECE ((int64_t)4 << 20) /* bytes; smaller ones were slower, and whole messages far slower on few cores */

/* "all_reduce #412 of group 0" */
static void describe(const tp_work *w, char *out, size_t room) {
    if (w->number >= 0) snprintf(out, room, "%s #%lld of group %d", w->name, (long long)w->number, w->group);
    else if (w->peer >= 0) snprintf(out, room, "%s with rank %d in group %d", w->name, w->peer, w->group);
    else snprintf(out, room, "%s from any rank in group %d", w->name, w->group);
}

static int fail_of(const tp_work *w) {
    char what[200];
    describe(w, what, sizeof what);
    if (w->failure) return tp_fail(TP_RuntimeError, "%s: %s", what, w->failure);
    return tp_fail(TP_RuntimeError, "%s: %s", what, tp_world.fault);
}

/* ---- what is under way ---- */

static void unlist(tp_work *w) {
    if (!w->listed) return;
    if (w->previous) w->previous->next = w->next;
    else tp_world.first = w->next;
    if (w->next) w->next->previous = w->previous;
    w->next = w->previous = NULL;
    w->listed = false;
}

static void list(tp_work *w) {
    w->next = tp_world.first;
    if (tp_world.first) tp_world.first->previous = w;
    tp_world.first = w;
    w->listed = true;
}

/* With the lock. An error of the engine is a fault, but for a message that is too long. */
static void move(tp_work *w) {
    if (atomic_load(&w->state) || tp_world.busy || atomic_load(&tp_world.faulty)) return;
    int done = tp_world.engine->test(w->requests, w->n, &w->arrival);
    if (done == 0) return;
    if (done < 0) {
        w->failure = strdup(tp_error_message());
        tp_error_clear();
        if (w->number >= 0) tp_world_set_fault(w->failure ? w->failure : "out of memory");
    }
    unlist(w);
    if (done > 0) tp_recorder_end(w);
    atomic_store_explicit(&w->state, done < 0 ? -1 : 1, memory_order_release);
}

/* Sleeps that grow, the longer nothing came: the first are short, as most messages are. */
static int64_t nap(int64_t waited_us) {
    if (waited_us < 2000) return 10;
    if (waited_us < 1000000) return 50;
    return 1000;
}

static void *run_engine(void *unused TP_UNUSED) {
    pthread_mutex_t *mutex = tp_lock_mutex(TP_LOCK_Messages);
#ifdef __linux__
    prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0); /* else a sleep of 50 us takes 100 */
#endif
    tp_world_lock();
    while (!tp_world.quit) {
        if (!tp_world.first || tp_world.waiters || atomic_load(&tp_world.faulty)) {
            pthread_cond_wait(&tp_world.wake, mutex);
            continue;
        }
        int64_t youngest = 0;
        for (tp_work *w = tp_world.first, *next; w; w = next) {
            next = w->next;
            if (w->begun_at > youngest) youngest = w->begun_at;
            move(w);
        }
        tp_world_unlock();
        tp_sleep_us(nap(tp_now_us() - youngest));
        tp_world_lock();
    }
    tp_world_unlock();
    return NULL;
}

int tp_works_start(void) {
    if (pthread_create(&tp_world.thread, NULL, run_engine, NULL))
        return tp_fail(TP_RuntimeError, "no thread for messages");
    tp_world.thread_runs = true;
    return 0;
}

void tp_works_stop(void) {
    if (!tp_world.thread_runs) return;
    tp_world_lock();
    tp_world.quit = true;
    pthread_cond_broadcast(&tp_world.wake);
    tp_world_unlock();
    pthread_join(tp_world.thread, NULL);
    tp_world.thread_runs = false;
}

/* ---- works ---- */

static void free_work(tp_work *w) {
    tp_storage_release(w->send);
    tp_storage_release(w->recv);
    if (w->requests != &w->one) free(w->requests);
    free(w->counts);
    free(w->failure);
    free(w);
}

static bool is_of_two(const tp_message *m) { return m->kind == TP_MSG_send || m->kind == TP_MSG_recv; }

/* How many elements go in a piece, and how many pieces there are: of what may be cut anywhere. */
static int pieces_of(const tp_message *m, int64_t *each) {
    bool elements = m->kind == TP_MSG_all_reduce || m->kind == TP_MSG_reduce;
    if (!elements && m->kind != TP_MSG_broadcast) return 1;
    *each = PIECE / (elements ? tp_itemsize(m->dtype) : 1);
    return m->count <= *each + *each / 2 ? 1 : (int)((m->count + *each - 1) / *each);
}

static int begin_pieces(tp_work *w, void *of_engine, const tp_message *m, int64_t each) {
    int64_t item = m->kind == TP_MSG_broadcast ? 1 : tp_itemsize(m->dtype);
    for (int i = 0; i < w->n; i++) {
        tp_message piece = *m;
        if (w->n > 1) {
            int64_t at = each * i;
            piece.count = m->count - at < each ? m->count - at : each;
            piece.send = m->send ? (const char *)m->send + at * item : NULL;
            piece.recv = m->recv ? (char *)m->recv + at * item : NULL;
        }
        if (tp_world.engine->begin(of_engine, &piece, &w->requests[i]) < 0) return -1;
    }
    return 0;
}

static int copy_counts(tp_work *w, tp_message *m, int n) {
    if (m->kind != TP_MSG_all_to_all) return 0;
    const int64_t **lists[] = {&m->send_counts, &m->send_offsets, &m->recv_counts, &m->recv_offsets};
    w->counts = malloc(sizeof(int64_t) * 4 * (size_t)n);
    if (!w->counts) return tp_fail_memory(n);
    for (int i = 0; i < 4; i++) {
        memcpy(w->counts + i * n, *lists[i], sizeof(int64_t) * (size_t)n);
        *lists[i] = w->counts + i * n;
    }
    return 0;
}

static tp_work *new_work(const tp_message *given, int n, int64_t *each, tp_message *m) {
    tp_work *w = calloc(1, sizeof *w);
    if (!w) return tp_fail_memory(sizeof *w), NULL;
    *m = *given;
    w->n = pieces_of(m, each);
    w->requests = w->n == 1 ? &w->one : calloc((size_t)w->n, sizeof(tp_request));
    if (!w->requests || copy_counts(w, m, n) < 0) return free_work(w), tp_fail_memory(w->n), NULL;
    return w;
}

/* Whether a message can begin; where the world is over, the error says which one it would have been. */
static int check_group(int number, const char *name, const tp_message *m) {
    bool known = number >= 0 && number < tp_world.group_count && tp_world.groups[number].used;
    if (known && tp_world.started && tp_world.pid == getpid() && atomic_load(&tp_world.faulty)) {
        const tp_group *g = &tp_world.groups[number];
        tp_work would = {.name = name, .group = number, .peer = -1, .number = g->begun};
        if (is_of_two(m)) would.number = -1, would.peer = m->peer >= 0 ? g->ranks[m->peer] : -1;
        return fail_of(&would);
    }
    if (tp_world_check(name) < 0) return -1;
    return known ? 0 : tp_fail(TP_RuntimeError, "%s: the group was destroyed", name);
}

tp_work *tp_work_begin(int number, const char *name, const tp_message *given, tp_storage *send, tp_storage *recv,
                       bool waits_at_once) {
    int64_t each = 0;
    tp_message m;
    if (check_group(number, name, given) < 0) return NULL;
    tp_group *g = &tp_world.groups[number];
    tp_work *w = new_work(given, g->n, &each, &m);
    if (!w) return NULL;
    bool of_two = is_of_two(&m);
    w->group = number;
    w->name = name;
    w->peer = of_two && m.peer >= 0 ? g->ranks[m.peer] : -1;
    w->nbytes = m.kind == TP_MSG_all_reduce || m.kind == TP_MSG_reduce ? m.count * tp_itemsize(m.dtype) : m.count;
    w->send = send ? tp_storage_retain(send) : NULL;
    w->recv = recv ? tp_storage_retain(recv) : NULL;
    w->begun_at = tp_now_us();
    void *state = w->nbytes > 65536 ? tp_host_lock_release() : NULL;
    tp_world_lock();
    while (tp_world.busy && !atomic_load(&tp_world.faulty)) { /* another thread makes a group */
        tp_world_unlock();
        tp_sleep_us(50);
        tp_world_lock();
    }
    g = &tp_world.groups[number];
    w->number = of_two ? -1 : g->begun++;
    if (!of_two) g->last = name;
    tp_recorder_begin(w, &m);
    if (begin_pieces(w, g->of_engine, &m, each) < 0) {
        w->failure = strdup(tp_error_message());
        tp_error_clear();
        if (!of_two) tp_world_set_fault(w->failure ? w->failure : "out of memory");
        atomic_store(&w->state, -1);
    } else {
        list(w);
        if (!waits_at_once && !tp_world.waiters) pthread_cond_signal(&tp_world.wake);
    }
    tp_world_unlock();
    tp_host_lock_acquire(state);
    return w;
}

tp_arrival tp_work_arrival(const tp_work *w) { return w->arrival; }
int64_t tp_work_number(const tp_work *w) { return w->number; }

/* A process that this message needs, and that has gone; its rank, or -1. With the lock. */
static int missing_of(const tp_work *w) {
    const tp_group *g = &tp_world.groups[w->group];
    return w->number >= 0 || w->peer < 0 ? tp_peers_missing(g->ranks, g->n) : tp_peers_missing(&w->peer, 1);
}

/* The state of a work whose world may be over. With the lock. */
static int state_of(tp_work *w) {
    move(w);
    int state = atomic_load(&w->state);
    if (state || !tp_world.started || w->group >= tp_world.group_count) return state ? state : -1;
    if (!atomic_load(&tp_world.faulty)) {
        int rank = missing_of(w);
        if (rank < 0) return 0;
        tp_peers_ended(rank);
    }
    return -1;
}

int tp_work_done(tp_work *w) {
    int state = atomic_load_explicit(&w->state, memory_order_acquire);
    if (!state) {
        tp_world_lock();
        state = state_of(w);
        tp_world_unlock();
    }
    return state < 0 ? fail_of(w) : state;
}

/* Which ranks are not where this one is, in words: it asks all of them. Without the lock. */
static void name_the_late(const tp_work *w, char *out, size_t room) {
    char piece[200];
    tp_peers_ask(w->group);
    tp_world_lock();
    const tp_group *g = &tp_world.groups[w->group];
    for (int i = 0; i < g->n; i++) {
        int r = g->ranks[i];
        const tp_peer *p = &tp_world.peers[r];
        if (r == tp_world.rank || (w->number < 0 && w->peer >= 0 && w->peer != r)) continue;
        piece[0] = 0;
        if (p->asked_number == -2 && (p->left || tp_world.lost)) continue; /* it has heard of the fault, and gone */
        if (p->asked_number == -2) snprintf(piece, sizeof piece, "; rank %d does not answer", r);
        else if (w->number < 0)
            snprintf(piece, sizeof piece, "; rank %d's last was %s #%lld", r, p->asked_name,
                     (long long)p->asked_number);
        else if (p->asked_number < w->number)
            snprintf(piece, sizeof piece,
                     p->asked_number < 0 ? "; rank %d has not entered it, nor any other"
                                         : "; rank %d has not entered it, its last was %s #%lld",
                     r, p->asked_name, (long long)p->asked_number);
        else if (p->asked_number == w->number && strncmp(p->asked_name, w->name, sizeof p->asked_name - 1))
            snprintf(piece, sizeof piece, "; rank %d has %s in its place", r, p->asked_name);
        tp_append(out, room, piece);
    }
    tp_world_unlock();
}

static int fail_late(tp_work *w, double seconds) {
    char what[200], text[800];
    describe(w, what, sizeof what);
    snprintf(text, sizeof text, "Timed out after %.3g s", seconds);
    name_the_late(w, text, sizeof text);
    tp_world_lock();
    tp_recorder_tell(w, text, sizeof text);
    move(w);
    bool done = atomic_load(&w->state) == 1;
    if (!done && !atomic_load(&tp_world.faulty)) {
        w->failure = strdup(text);
        char whole[1020];
        snprintf(whole, sizeof whole, "%s %s", what, text);
        tp_world_set_fault(whole);
    }
    tp_world_unlock();
    return done ? 0 : fail_of(w);
}

/* The loop of who waits; 1, 0 after `end`, -1 failed or interrupted (then the error is set). */
static int wait_until(tp_work *w, int64_t end) {
    int64_t began = tp_now_us(), busy = began + 100 + w->nbytes / 1024, looked = began;
    for (;;) {
        int state = atomic_load_explicit(&w->state, memory_order_acquire);
        if (!state) {
            tp_world_lock();
            state = state_of(w);
            tp_world_unlock();
        }
        if (state) return state;
        int64_t now = tp_now_us();
        if (now >= end) return 0;
        if (now < busy) sched_yield();
        else tp_sleep_us(nap(now - began));
        if (now - looked > 20000) {
            looked = now;
            if (tp_host_look() < 0) return -1;
        }
    }
}

int tp_work_wait(tp_work *w, double seconds) {
    int state = atomic_load_explicit(&w->state, memory_order_acquire);
    if (!state) { /* what is small is often done at once */
        tp_world_lock();
        move(w);
        state = atomic_load(&w->state);
        tp_world.waiters += !state;
        tp_world_unlock();
    }
    if (state) return state < 0 ? fail_of(w) : 0;
    void *unlocked = tp_host_lock_release();
    int64_t end = tp_later(tp_now_us(), seconds * 1e6);
    state = wait_until(w, end);
    tp_world_lock();
    if (--tp_world.waiters == 0 && tp_world.first) pthread_cond_signal(&tp_world.wake);
    tp_world_unlock();
    bool raised = state < 0 && tp_error_pending() != TP_NoError;
    int status = state == 1 ? 0 : -1;
    if (state == 0) status = fail_late(w, seconds);
    tp_host_lock_acquire(unlocked);
    return state < 0 && !raised ? fail_of(w) : status;
}

void tp_work_free(tp_work *w) {
    tp_world_lock();
    bool under_way = atomic_load(&w->state) == 0;
    if (under_way) {
        w->next_orphan = tp_world.orphans;
        tp_world.orphans = w;
        if (!tp_world.waiters) pthread_cond_signal(&tp_world.wake);
    }
    tp_world_unlock();
    if (!under_way) free_work(w);
}

void tp_sweep(void) {
    if (!tp_world.orphans) return;
    tp_work *over = NULL;
    tp_world_lock();
    for (tp_work **at = &tp_world.orphans; *at;) {
        tp_work *w = *at;
        if (atomic_load(&w->state)) {
            *at = w->next_orphan;
            w->next_orphan = over;
            over = w;
        } else at = &w->next_orphan;
    }
    tp_world_unlock();
    for (tp_work *next; over; over = next) {
        next = over->next_orphan;
        free_work(over);
    }
}
