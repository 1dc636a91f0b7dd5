/* work.c: see work.h. */
#include "distributed/work.h"

#include "core/error.h"
#include "core/host.h"
#include "core/lock.h"
#include "distributed/lines.h"
#include "distributed/pmi.h"
#include "distributed/watch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#define PIECE ((int64_t)4 << 20) /* bytes; smaller ones were slower, and whole messages far slower on few cores */
#define LEFT_GRACE 1000          /* ms in which what a process sent before it left has to come */
#define WHERE_PATIENCE 1000      /* ms for the others to say where they are */

typedef struct {
    char *name;
    int *ranks, n;
    void *of_engine;
    int64_t begun; /* messages of all in the group so far */
    const char *last;
    bool used;
} group;

struct tp_work {
    tp_work *next, *previous; /* in the list of those under way */
    int group, peer;
    int64_t number, nbytes; /* number -1: of two processes, not of all */
    const char *name;
    tp_request *requests, one;
    int n;
    int64_t *counts;   /* of all_to_all: a copy */
    _Atomic int state; /* 0: under way, 1: done, -1: failed */
    tp_arrival arrival;
    int64_t begun_at;
    bool listed;
    tp_work *next_orphan; /* of those that nobody waits for any more */
    char *failure;
    tp_storage *send, *recv;
};

typedef struct {
    bool gone, left;
    int64_t when;
    char who[300];
    int64_t asked_number; /* its answer in the last round of questions; -2: none */
    char asked_name[64];
} peer;

static struct {
    const tp_engine *engine;
    bool loaded, started, thread_runs, quit;
    pid_t pid;
    int rank, size;
    peer *peers;
    group *groups;
    int group_count;
    tp_work *first, *orphans;
    int waiters;
    pthread_cond_t wake;
    pthread_t thread;
    _Atomic bool faulty;
    bool lost;         /* the server */
    bool watched;      /* there is a watch that answers */
    bool busy;         /* with an errand */
    _Atomic int leave; /* 1: all leave, 2: somebody has gone before */
    char fault[1200];
} world = {.engine = &tp_mpi_engine, .wake = PTHREAD_COND_INITIALIZER};

static void lock(void) { tp_lock(TP_LOCK_Messages); }
static void unlock(void) { tp_unlock(TP_LOCK_Messages); }

static void sleep_us(int64_t us) {
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- faults ---- */

/* The first one stays. With the lock. */
static void set_fault(const char *text) {
    if (atomic_load(&world.faulty)) return;
    snprintf(world.fault, sizeof world.fault, "%s", text);
    atomic_store(&world.faulty, true);
}

const char *tp_world_fault(void) { return atomic_load(&world.faulty) ? world.fault : NULL; }

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
    return tp_fail(TP_RuntimeError, "%s: %s", what, world.fault);
}

static int check_usable(const char *name) {
    if (!world.started) return tp_fail(TP_RuntimeError, "%s: the world of processes has not begun, or is over", name);
    if (world.pid != getpid())
        return tp_fail(TP_RuntimeError,
                       "%s: this process was forked after init_process_group; only its parent may send and receive",
                       name);
    if (atomic_load(&world.faulty)) return tp_fail(TP_RuntimeError, "%s: %s", name, world.fault);
    return 0;
}

/* ---- what the watch tells ---- */

static void split_who(const char *who, char *out, size_t room) {
    char host[256] = "?";
    int pid = 0;
    sscanf(who, "%255s %d", host, &pid);
    snprintf(out, room, "host %s, pid %d", host, pid);
}

/* All have done what they had to: whoever goes first is not missing. */
static bool ends_together(void) { return atomic_load(&world.leave) == 1; }

static void on_gone(int rank, const char *who, bool left) {
    if (rank < 0 || rank >= world.size || ends_together()) return;
    char text[500], about[300];
    split_who(who, about, sizeof about);
    snprintf(text, sizeof text, "rank %d (%s) ended", rank, about);
    lock();
    peer *p = &world.peers[rank];
    if (!p->gone) {
        p->gone = true;
        p->left = left;
        p->when = tp_now_ms();
        snprintf(p->who, sizeof p->who, "%s", about);
    }
    if (!left) set_fault(text);
    unlock();
    if (!left) tp_pmi_fail(true);
}

/* Rank 0 may leave as others do, and takes the server with it: then nobody watches any more. */
static void on_lost(const char *why) {
    char text[200];
    if (ends_together()) {
        tp_pmi_fail(true);
        return;
    }
    snprintf(text, sizeof text, "rank 0, whose server watches the others, %s", why);
    lock();
    world.lost = true;
    if (!world.peers[0].left) set_fault(text);
    unlock();
    tp_pmi_fail(true);
}

static void on_where(int number, char *out, size_t room) {
    lock();
    if (number >= 0 && number < world.group_count && world.groups[number].used)
        snprintf(out, room, "%lld %s", (long long)world.groups[number].begun - 1,
                 world.groups[number].last ? world.groups[number].last : "none");
    else snprintf(out, room, "-1 none");
    unlock();
}

static void on_at(int rank, int number TP_UNUSED, const char *said) {
    long long begun;
    char name[64];
    if (rank < 0 || rank >= world.size || sscanf(said, "%lld %63s", &begun, name) != 2) return;
    lock();
    world.peers[rank].asked_number = begun;
    snprintf(world.peers[rank].asked_name, sizeof world.peers[rank].asked_name, "%s", name);
    unlock();
}

static void on_leave(bool all) { atomic_store(&world.leave, all ? 1 : 2); }

static const tp_watch_events events = {on_gone, on_lost, on_where, on_at, tp_pmi_reply, on_leave};

/* ---- what is under way ---- */

static void unlist(tp_work *w) {
    if (!w->listed) return;
    if (w->previous) w->previous->next = w->next;
    else world.first = w->next;
    if (w->next) w->next->previous = w->previous;
    w->next = w->previous = NULL;
    w->listed = false;
}

static void list(tp_work *w) {
    w->next = world.first;
    if (world.first) world.first->previous = w;
    world.first = w;
    w->listed = true;
}

/* With the lock. An error of the engine is a fault, but for a message that is too long. */
static void move(tp_work *w) {
    if (atomic_load(&w->state) || world.busy || atomic_load(&world.faulty)) return;
    int done = world.engine->test(w->requests, w->n, &w->arrival);
    if (done == 0) return;
    if (done < 0) {
        w->failure = strdup(tp_error_message());
        tp_error_clear();
        if (w->number >= 0) set_fault(w->failure ? w->failure : "out of memory");
    }
    unlist(w);
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
    lock();
    while (!world.quit) {
        if (!world.first || world.waiters || atomic_load(&world.faulty)) {
            pthread_cond_wait(&world.wake, mutex);
            continue;
        }
        int64_t youngest = 0;
        for (tp_work *w = world.first, *next; w; w = next) {
            next = w->next;
            if (w->begun_at > youngest) youngest = w->begun_at;
            move(w);
        }
        unlock();
        sleep_us(nap(now_us() - youngest));
        lock();
    }
    unlock();
    return NULL;
}

/* ---- questions ---- */

/* Appends to a text that ends where the room does. */
static void add(char *out, size_t room, const char *text) {
    size_t n = strlen(out);
    snprintf(out + n, room - n, "%s", text);
}

/* Whether a process is in a group of this number; all are in -1. */
static bool is_meant(int number, int rank) {
    if (number < 0) return true;
    const group *g = &world.groups[number];
    for (int i = 0; i < g->n; i++)
        if (g->ranks[i] == rank) return true;
    return false;
}

/* Asks the others where they are in a group, and gives them a while to say so. Without the lock. */
static void ask_where(int number) {
    bool all = false;
    lock();
    for (int r = 0; r < world.size; r++) world.peers[r].asked_number = -2;
    unlock();
    tp_watch_ask(number);
    for (int64_t end = tp_now_ms() + WHERE_PATIENCE; !all && tp_now_ms() < end; sleep_us(1000)) {
        lock();
        all = true;
        for (int r = 0; r < world.size; r++) {
            const peer *p = &world.peers[r];
            all = all && (r == world.rank || p->asked_number > -2 || p->left || world.lost || !is_meant(number, r));
        }
        unlock();
    }
}

/* ---- errands: calls of the engine that wait for other processes ---- */

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
    if (world.watched) {
        ask_where(-1);
        lock();
        for (int r = 0; r < world.size; r++) {
            const peer *p = &world.peers[r];
            if (r == world.rank || p->left || world.lost || p->asked_number > -2) continue;
            snprintf(piece, sizeof piece, "; rank %d does not answer", r);
            add(text, sizeof text, piece);
        }
        unlock();
    }
    lock();
    set_fault(text);
    unlock();
    tp_fail(TP_RuntimeError, "%s: %s", name, world.fault);
}

static int end_of_errand(errand *e, const char *name, int64_t end) {
    for (int64_t began = now_us(); !atomic_load(&e->done);) {
        if (atomic_load(&world.faulty)) return tp_fail(TP_RuntimeError, "%s: %s", name, world.fault);
        if (tp_now_ms() >= end) return fail_errand(name), -1;
        if (tp_host_look() < 0) return -1;
        sleep_us(now_us() - began < 100000 ? 50 : 1000);
    }
    if (e->status < 0) tp_error_restore_steal(&e->error);
    return e->status;
}

/* Runs it; nothing else calls the engine meanwhile. An errand that is interrupted is the end of the world, too. */
static int send_errand(int (*run)(void *), void *context, const char *name, double seconds) {
    errand *e = calloc(1, sizeof *e);
    pthread_t thread;
    if (!e) return tp_fail_memory(sizeof *e);
    *e = (errand){.run = run, .context = context};
    lock();
    world.busy = true;
    unlock();
    void *state = tp_host_lock_release();
    int status = -1;
    if (pthread_create(&thread, NULL, do_errand, e)) tp_fail(TP_RuntimeError, "%s: no thread", name);
    else {
        pthread_detach(thread);
        status = end_of_errand(e, name, tp_now_ms() + (int64_t)(seconds * 1000));
    }
    lock();
    if (atomic_load(&e->done)) world.busy = false;
    else set_fault("the start of a group was interrupted");
    unlock();
    tp_host_lock_acquire(state);
    if (atomic_load(&e->done)) free(e);
    return status;
}

/* ---- the world ---- */

int tp_world_load(const char *const *paths, int n) {
    if (world.loaded) return 0;
    int status = 1;
    for (int i = 0; i < n && status == 1; i++) status = world.engine->load(paths[i]);
    world.loaded = status == 0;
    return status;
}

const char *tp_world_library(void) { return world.loaded ? world.engine->version() : ""; }

static int allocate_peers(int size) {
    free(world.peers);
    world.size = size;
    world.peers = calloc((size_t)size, sizeof *world.peers);
    return world.peers ? 0 : tp_fail_memory(size);
}

int tp_world_watch(const tp_world_start *w) {
    int status = tp_watch_start(w->address, w->port, w->token, w->rank, w->host, &events);
    world.watched = status == 0;
    return status;
}

static int run_start(void *context) {
    int *found = context;
    return world.engine->start(&found[0], &found[1]);
}

static int start_engine(tp_world_start *w) {
    int *found = malloc(2 * sizeof *found);
    if (!found) return tp_fail_memory(sizeof *found);
    if (send_errand(run_start, found, "init_process_group", w->seconds) < 0) return -1;
    int rank = found[0], size = found[1];
    free(found);
    if ((w->rank >= 0 && rank != w->rank) || (w->size >= 0 && size != w->size))
        return tp_fail(TP_RuntimeError, "MPI has this process as rank %d of %d, not %d of %d", rank, size, w->rank,
                       w->size);
    w->rank = world.rank = rank;
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
    if (world.started) return tp_fail(TP_RuntimeError, "the world of processes has begun already");
    if (atomic_load(&world.faulty))
        return tp_fail(TP_RuntimeError, "%s; another world needs another process", world.fault);
    atomic_store(&world.leave, 0);
    tp_pmi_fail(false);
    world.lost = world.quit = false;
    if (w->size > 0 && allocate_peers(w->size) < 0) return -1;
    world.watched = false;
    world.rank = w->rank;
    if (w->port && tp_world_watch(w) < 0) return -1;
    if (start_engine(w) < 0 || (!w->port && allocate_peers(w->size) < 0)) {
        tp_saved_error why = tp_error_take();
        tp_watch_stop();
        lock();
        set_fault(why.cls == TP_NoError ? "the world did not begin" : "the world did not begin once");
        unlock();
        tp_error_restore_steal(&why);
        return -1;
    }
    world.pid = getpid();
    if (pthread_create(&world.thread, NULL, run_engine, NULL))
        return tp_fail(TP_RuntimeError, "no thread for messages");
    world.thread_runs = true;
    world.started = true;
    return 0;
}

static void end_thread(void) {
    if (!world.thread_runs) return;
    lock();
    world.quit = true;
    pthread_cond_broadcast(&world.wake);
    unlock();
    pthread_join(world.thread, NULL);
    world.thread_runs = false;
}

static void forget_groups(bool free_them) {
    for (int i = 0; i < world.group_count; i++) {
        group *g = &world.groups[i];
        if (g->used && g->of_engine && free_them) world.engine->group_free(g->of_engine);
        free(g->name);
        free(g->ranks);
    }
    free(world.groups);
    world.groups = NULL;
    world.group_count = 0;
}

static int run_stop(void *context TP_UNUSED) { return world.engine->stop(); }

/* Whether all others are leaving too, after at most so many ms. */
static bool all_leave(int64_t patience) {
    int64_t end = tp_now_ms() + patience;
    tp_watch_say("leaving");
    while (!atomic_load(&world.leave) && tp_now_ms() < end && !atomic_load(&world.faulty) && !world.lost) sleep_us(500);
    return atomic_load(&world.leave) == 1 && !atomic_load(&world.faulty);
}

int tp_world_end(double seconds) {
    if (!world.started || world.pid != getpid()) return 0;
    void *state = tp_host_lock_release();
    int64_t end = tp_now_ms() + (int64_t)(seconds * 1000);
    while (world.first && !atomic_load(&world.faulty) && tp_now_ms() < end) sleep_us(200);
    bool whole = !world.first && all_leave(end - tp_now_ms());
    end_thread();
    lock();
    forget_groups(whole);
    if (!whole) set_fault("the world of processes is over, and not all of them ended it together");
    unlock();
    tp_host_lock_acquire(state);
    int status = whole ? send_errand(run_stop, NULL, "destroy_process_group", seconds) : 0;
    state = tp_host_lock_release();
    tp_watch_say("left");
    tp_watch_stop();
    tp_host_lock_acquire(state);
    tp_pmi_fail(true);
    world.started = false;
    tp_sweep();
    return status;
}

void tp_world_leave(void) {
    if (!world.started || world.pid != getpid()) return;
    if (!atomic_load(&world.faulty)) tp_watch_say("left");
    void *state = tp_host_lock_release();
    end_thread(); /* an MPI library ends with its process, and must not be called meanwhile */
    tp_host_lock_acquire(state);
}

/* ---- groups ---- */

typedef struct {
    void *made;
    int n;
    char *name;
    int ranks[];
} plan;

static int run_group(void *context) {
    plan *p = context;
    p->made = world.engine->group(p->ranks, p->n, p->name);
    return p->made ? 0 : -1;
}

/* A group's own memory; the engine's part comes later. */
static bool allocate_group(group *g, const char *name, const int *ranks, int n) {
    *g = (group){.name = strdup(name), .ranks = malloc(sizeof(int) * (size_t)n), .n = n, .used = true};
    if (g->name && g->ranks) return memcpy(g->ranks, ranks, sizeof(int) * (size_t)n), true;
    free(g->name);
    free(g->ranks);
    return false;
}

int tp_world_group(const char *name, const int *ranks, int n, double seconds) {
    group made;
    if (check_usable("new_group") < 0) return -1;
    plan *p = malloc(sizeof *p + sizeof(int) * (size_t)n);
    if (!p || !allocate_group(&made, name, ranks, n)) return free(p), tp_fail_memory(n);
    *p = (plan){.n = n, .name = made.name};
    memcpy(p->ranks, ranks, sizeof(int) * (size_t)n);
    if (send_errand(run_group, p, "new_group", seconds) < 0) return -1; /* the plan may still be used */
    made.of_engine = p->made;
    free(p);
    lock();
    group *grown = realloc(world.groups, sizeof(group) * (size_t)(world.group_count + 1));
    if (grown) (world.groups = grown)[world.group_count++] = made;
    unlock();
    return grown ? world.group_count - 1 : tp_fail_memory(n);
}

void tp_world_group_free(int number) {
    lock();
    if (world.started && number >= 0 && number < world.group_count && world.groups[number].used) {
        world.groups[number].used = false;
        if (!atomic_load(&world.faulty)) world.engine->group_free(world.groups[number].of_engine);
    }
    unlock();
}

bool tp_world_reduces(tp_dtype dtype, tp_reduce_op op) { return world.engine->reduces(dtype, op); }

/* ---- works ---- */

static void free_work(tp_work *w) {
    tp_storage_release(w->send);
    tp_storage_release(w->recv);
    if (w->requests != &w->one) free(w->requests);
    free(w->counts);
    free(w->failure);
    free(w);
}

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
        if (world.engine->begin(of_engine, &piece, &w->requests[i]) < 0) return -1;
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

tp_work *tp_work_begin(int number, const char *name, const tp_message *given, tp_storage *send, tp_storage *recv,
                       bool waits_at_once) {
    int64_t each = 0;
    tp_message m;
    if (check_usable(name) < 0) return NULL;
    if (number < 0 || number >= world.group_count || !world.groups[number].used)
        return tp_fail_null(TP_RuntimeError, "%s: the group was destroyed", name);
    group *g = &world.groups[number];
    tp_work *w = new_work(given, g->n, &each, &m);
    if (!w) return NULL;
    bool of_two = m.kind == TP_MSG_send || m.kind == TP_MSG_recv;
    w->group = number;
    w->name = name;
    w->peer = of_two && m.peer >= 0 ? g->ranks[m.peer] : -1;
    w->nbytes = m.kind == TP_MSG_all_reduce || m.kind == TP_MSG_reduce ? m.count * tp_itemsize(m.dtype) : m.count;
    w->send = send ? tp_storage_retain(send) : NULL;
    w->recv = recv ? tp_storage_retain(recv) : NULL;
    w->begun_at = now_us();
    void *state = w->nbytes > 65536 ? tp_host_lock_release() : NULL;
    lock();
    while (world.busy && !atomic_load(&world.faulty)) { /* another thread makes a group */
        unlock();
        sleep_us(50);
        lock();
    }
    g = &world.groups[number];
    w->number = of_two ? -1 : g->begun++;
    if (!of_two) g->last = name;
    if (begin_pieces(w, g->of_engine, &m, each) < 0) {
        w->failure = strdup(tp_error_message());
        tp_error_clear();
        if (!of_two) set_fault(w->failure ? w->failure : "out of memory");
        atomic_store(&w->state, -1);
    } else {
        list(w);
        if (!waits_at_once && !world.waiters) pthread_cond_signal(&world.wake);
    }
    unlock();
    tp_host_lock_acquire(state);
    return w;
}

tp_arrival tp_work_arrival(const tp_work *w) { return w->arrival; }
int64_t tp_work_number(const tp_work *w) { return w->number; }

/* A process of the group that has left, and whose words had time to come; its rank, or -1. With the lock. */
static int missing_of(const tp_work *w, int64_t now) {
    const group *g = &world.groups[w->group];
    for (int i = 0; i < g->n; i++) {
        const peer *p = &world.peers[g->ranks[i]];
        bool meant = w->number >= 0 || w->peer < 0 || w->peer == g->ranks[i];
        if (meant && g->ranks[i] != world.rank && p->gone && now - p->when > LEFT_GRACE) return g->ranks[i];
    }
    return -1;
}

/* The state of a work whose world may be over. With the lock. */
static int state_of(tp_work *w) {
    move(w);
    int state = atomic_load(&w->state);
    if (state || !world.started || w->group >= world.group_count) return state ? state : -1;
    if (!atomic_load(&world.faulty)) {
        int rank = missing_of(w, tp_now_ms());
        char text[500];
        if (rank < 0) return 0;
        snprintf(text, sizeof text, "rank %d (%s) ended", rank, world.peers[rank].who);
        set_fault(text);
    }
    return -1;
}

int tp_work_done(tp_work *w) {
    int state = atomic_load_explicit(&w->state, memory_order_acquire);
    if (!state) {
        lock();
        state = state_of(w);
        unlock();
    }
    return state < 0 ? fail_of(w) : state;
}

/* Which ranks are not where this one is, in words: it asks all of them. Without the lock. */
static void name_the_late(const tp_work *w, char *out, size_t room) {
    char piece[200];
    ask_where(w->group);
    lock();
    const group *g = &world.groups[w->group];
    for (int i = 0; i < g->n; i++) {
        int r = g->ranks[i];
        const peer *p = &world.peers[r];
        if (r == world.rank || (w->number < 0 && w->peer >= 0 && w->peer != r)) continue;
        piece[0] = 0;
        if (p->asked_number == -2 && (p->left || world.lost)) continue; /* it has heard of the fault, and gone */
        if (p->asked_number == -2) snprintf(piece, sizeof piece, "; rank %d does not answer", r);
        else if (w->number < 0)
            snprintf(piece, sizeof piece, "; rank %d's last was %s #%lld", r, p->asked_name,
                     (long long)p->asked_number);
        else if (p->asked_number < w->number)
            snprintf(piece, sizeof piece,
                     p->asked_number < 0 ? "; rank %d has not entered it, nor any other"
                                         : "; rank %d has not entered it, its last was %s #%lld",
                     r, p->asked_name, (long long)p->asked_number);
        add(out, room, piece);
    }
    unlock();
}

static int fail_late(tp_work *w, double seconds) {
    char what[200], text[800];
    describe(w, what, sizeof what);
    snprintf(text, sizeof text, "timed out after %.3g s", seconds);
    name_the_late(w, text, sizeof text);
    lock();
    move(w);
    bool done = atomic_load(&w->state) == 1;
    if (!done && !atomic_load(&world.faulty)) {
        w->failure = strdup(text);
        char whole[1020];
        snprintf(whole, sizeof whole, "%s %s", what, text);
        set_fault(whole);
    }
    unlock();
    return done ? 0 : fail_of(w);
}

/* The loop of who waits; 1, 0 after `end`, -1 failed or interrupted (then the error is set). */
static int wait_until(tp_work *w, int64_t end) {
    int64_t began = now_us(), busy = began + 100 + w->nbytes / 1024, looked = began;
    for (;;) {
        int state = atomic_load_explicit(&w->state, memory_order_acquire);
        if (!state) {
            lock();
            state = state_of(w);
            unlock();
        }
        if (state) return state;
        int64_t now = now_us();
        if (now >= end) return 0;
        if (now < busy) sched_yield();
        else sleep_us(nap(now - began));
        if (now - looked > 20000) {
            looked = now;
            if (tp_host_look() < 0) return -1;
        }
    }
}

int tp_work_wait(tp_work *w, double seconds) {
    int state = atomic_load_explicit(&w->state, memory_order_acquire);
    if (!state) { /* what is small is often done at once */
        lock();
        move(w);
        state = atomic_load(&w->state);
        world.waiters += !state;
        unlock();
    }
    if (state) return state < 0 ? fail_of(w) : 0;
    void *unlocked = tp_host_lock_release();
    int64_t end = seconds > 1e11 ? INT64_MAX : now_us() + (int64_t)(seconds * 1e6);
    state = wait_until(w, end);
    lock();
    if (--world.waiters == 0 && world.first) pthread_cond_signal(&world.wake);
    unlock();
    bool raised = state < 0 && tp_error_pending() != TP_NoError;
    int status = state == 1 ? 0 : -1;
    if (state == 0) status = fail_late(w, seconds);
    tp_host_lock_acquire(unlocked);
    return state < 0 && !raised ? fail_of(w) : status;
}

void tp_work_free(tp_work *w) {
    lock();
    bool under_way = atomic_load(&w->state) == 0;
    if (under_way) {
        w->next_orphan = world.orphans;
        world.orphans = w;
        if (!world.waiters) pthread_cond_signal(&world.wake);
    }
    unlock();
    if (!under_way) free_work(w);
}

void tp_sweep(void) {
    if (!world.orphans) return;
    tp_work *over = NULL;
    lock();
    for (tp_work **at = &world.orphans; *at;) {
        tp_work *w = *at;
        if (atomic_load(&w->state)) {
            *at = w->next_orphan;
            w->next_orphan = over;
            over = w;
        } else at = &w->next_orphan;
    }
    unlock();
    for (tp_work *next; over; over = next) {
        next = over->next_orphan;
        free_work(over);
    }
}
