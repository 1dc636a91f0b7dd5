/* queue.c: streams and events: each stream is a queue of jobs and the thread that does them, in order.
 *
 * Streams know nothing of one another: what one does after another's work waits for a mark in it (a ticket: how many
 * jobs it had been given). A fault that a kernel finds is noted, the first one of a device, and raised where the host
 * next waits for it. Invariant: a queue's fields are read and written under its lock; a device's faults under theirs.
 */
#include "queue.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;
    int device;
    job *first, *last;
    int64_t given, done;
} queue;

static queue queues[DEVICES][STREAMS];
static int64_t next_stream[DEVICES];
static bool forked; /* the threads are the parent's */

static struct {
    bool there;
    int64_t fault, value, dim, size;
} faults[DEVICES];
static pthread_mutex_t faults_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local int works_for = -1; /* the device whose job this thread does */

static void note_fork(void) { forked = true; }
__attribute__((constructor)) static void set_up(void) {
    for (int d = 0; d < DEVICES; d++)
        for (int s = 0; s < STREAMS; s++) {
            pthread_mutex_init(&queues[d][s].lock, NULL);
            pthread_cond_init(&queues[d][s].changed, NULL);
            queues[d][s].device = d;
        }
    pthread_atfork(NULL, NULL, note_fork);
}

/* ---- the thread of a stream ---- */

static void *work(void *context) {
    queue *q = context;
    works_for = q->device;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (!q->first) pthread_cond_wait(&q->changed, &q->lock);
        job *j = q->first;
        q->first = j->next;
        if (!q->first) q->last = NULL;
        pthread_mutex_unlock(&q->lock);
        j->run(j);
        free(j);
        pthread_mutex_lock(&q->lock);
        q->done++;
        pthread_cond_broadcast(&q->changed);
    }
    return NULL;
}

static int start(queue *q) {
    pthread_t thread;
    if (q->started && !forked) return 0;
    if (forked)
        return tp_fail(TP_RuntimeError, "%s cannot be used after a fork: its threads are the parent's", DEVICE_NAME);
    if (pthread_create(&thread, NULL, work, q) != 0)
        return tp_fail(TP_RuntimeError, "%s: a stream's thread cannot be started", DEVICE_NAME);
    pthread_detach(thread);
    q->started = true;
    return 0;
}

/* Takes the job over; its ticket, or -1. */
static int64_t give(queue *q, job *j) {
    pthread_mutex_lock(&q->lock);
    int64_t ticket = start(q) < 0 ? -1 : ++q->given;
    if (ticket > 0) {
        if (q->last) q->last->next = j;
        else q->first = j;
        q->last = j;
        pthread_cond_broadcast(&q->changed);
    } else {
        free(j);
    }
    pthread_mutex_unlock(&q->lock);
    return ticket;
}

static queue *queue_of(int device, int64_t stream) { return &queues[device][stream % STREAMS]; }
static queue *here(int device) { return queue_of(device, tp_current_stream(DEVICE_NAME, device)); }

int enqueue_job(int device, job *j) { return give(here(device), j) < 0 ? -1 : 0; }

static int64_t ticket_of(queue *q) {
    pthread_mutex_lock(&q->lock);
    int64_t ticket = q->given;
    pthread_mutex_unlock(&q->lock);
    return ticket;
}
static bool is_done(queue *q, int64_t ticket) {
    pthread_mutex_lock(&q->lock);
    bool done = q->done >= ticket;
    pthread_mutex_unlock(&q->lock);
    return done;
}

/* For a stream's thread. */
static void wait_plainly(queue *q, int64_t ticket) {
    pthread_mutex_lock(&q->lock);
    while (q->done < ticket) pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

/* For the host: others run meanwhile, and a signal is heard. */
static int wait_for(queue *q, int64_t ticket) {
    int status = 0;
    if (is_done(q, ticket)) return 0;
    if (forked) return start(&(queue){.device = q->device});
    do {
        void *lock = tp_host_lock_release();
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000, until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&q->lock);
        int late = 0;
        while (q->done < ticket && !late) late = pthread_cond_timedwait(&q->changed, &q->lock, &until);
        pthread_mutex_unlock(&q->lock);
        tp_host_lock_acquire(lock);
        status = tp_look_for_signals();
    } while (status == 0 && !is_done(q, ticket));
    return status;
}

/* ---- faults ---- */

void note_fault(int64_t fault, int64_t value, int64_t dim, int64_t size) {
    if (fault < 0 || works_for < 0) return;
    pthread_mutex_lock(&faults_lock);
    if (!faults[works_for].there) {
        faults[works_for].there = true;
        faults[works_for].fault = fault, faults[works_for].value = value;
        faults[works_for].dim = dim, faults[works_for].size = size;
    }
    pthread_mutex_unlock(&faults_lock);
}

static int raise_noted(int device) {
    pthread_mutex_lock(&faults_lock);
    bool there = faults[device].there;
    int64_t fault = faults[device].fault, value = faults[device].value, dim = faults[device].dim;
    int64_t size = faults[device].size;
    faults[device].there = false;
    pthread_mutex_unlock(&faults_lock);
    return there ? tp_raise_fault(fault, value, dim, size, " (found on " DEVICE_NAME ")") : 0;
}

int wait_here(int device) {
    queue *q = here(device);
    return wait_for(q, ticket_of(q)) < 0 ? -1 : raise_noted(device);
}

int wait_for_device(int device) {
    for (int s = 0; s < STREAMS; s++)
        if (wait_for(&queues[device][s], ticket_of(&queues[device][s])) < 0) return -1;
    return raise_noted(device);
}

/* ---- streams and events ---- */

typedef struct {
    job base;
    queue *of;
    int64_t ticket;
} waiting;
static void run_waiting(job *j) { wait_plainly(((waiting *)j)->of, ((waiting *)j)->ticket); }

static int enqueue_wait(queue *q, queue *of, int64_t ticket) {
    if (q == of || is_done(of, ticket)) return 0;
    waiting *w = calloc(1, sizeof *w);
    if (!w) return tp_fail(TP_MemoryError, "%s: a wait cannot be kept", DEVICE_NAME);
    w->base.run = run_waiting, w->of = of, w->ticket = ticket;
    return give(q, &w->base) < 0 ? -1 : 0;
}

int64_t enqueue_wait_for(int device, int64_t stream, uint32_t others) {
    for (int s = 0; s < STREAMS; s++)
        if (others >> s & 1) enqueue_wait(queue_of(device, stream), &queues[device][s], ticket_of(&queues[device][s]));
    return 0;
}

static int64_t stream_new(int device, int priority) {
    (void)priority;
    return 1 + __atomic_fetch_add(&next_stream[device], 1, __ATOMIC_RELAXED) % (STREAMS - 1);
}
static int stream_query(int device, int64_t stream) {
    queue *q = queue_of(device, stream);
    return is_done(q, ticket_of(q));
}
static int stream_synchronize(int device, int64_t stream) {
    queue *q = queue_of(device, stream);
    return wait_for(q, ticket_of(q)) < 0 ? -1 : raise_noted(device);
}

typedef struct {
    queue *of;
    int64_t ticket;
    double when;    /* milliseconds; taken by the stream when it gets there */
    int references; /* the event's own, and the job's that takes the time */
} event;

typedef struct {
    job base;
    event *e;
} stamping;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}
static void let_go(event *e) {
    if (__atomic_sub_fetch(&e->references, 1, __ATOMIC_ACQ_REL) == 0) free(e);
}
static void run_stamping(job *j) {
    event *e = ((stamping *)j)->e;
    e->when = now();
    let_go(e);
}

static void *event_record(int device, int64_t stream, bool timing) {
    event *e = calloc(1, sizeof *e);
    stamping *s = calloc(1, sizeof *s);
    (void)timing;
    if (e && s) {
        e->of = queue_of(device, stream), e->references = 2;
        s->base.run = run_stamping, s->e = e;
        e->ticket = give(e->of, &s->base);
        if (e->ticket > 0) return e;
        free(e);
        return NULL;
    }
    free(e), free(s);
    tp_fail(TP_MemoryError, "%s: an event cannot be kept", DEVICE_NAME);
    return NULL;
}
static void event_release(void *e) { let_go(e); }
static int event_query(void *e) { return is_done(((event *)e)->of, ((event *)e)->ticket); }
static int event_synchronize(void *e) {
    event *of = e;
    return wait_for(of->of, of->ticket) < 0 ? -1 : raise_noted(of->of->device);
}
static int event_wait(void *e, int device, int64_t stream) {
    return enqueue_wait(queue_of(device, stream), ((event *)e)->of, ((event *)e)->ticket);
}
static int event_elapsed(void *from, void *to, double *milliseconds) {
    *milliseconds = ((event *)to)->when - ((event *)from)->when;
    return 0;
}

/* ---- copies that nobody waits for ---- */

typedef struct {
    job base;
    void *to;
    const void *from;
    size_t nbytes;
    void (*done)(void *context);
    void *context;
} transfer;
static void run_transfer(job *j) {
    transfer *t = (transfer *)j;
    memcpy(t->to, t->from, t->nbytes);
    t->done(t->context);
}
static int copy_async(int device, void *to, const void *from, size_t nbytes, bool to_device, void (*done)(void *),
                      void *context) {
    transfer *t = calloc(1, sizeof *t);
    if (!t) return tp_fail(TP_MemoryError, "%s: a copy cannot be kept", DEVICE_NAME);
    t->base.run = run_transfer, t->nbytes = nbytes, t->done = done, t->context = context;
    t->to = to_device ? memory_at(device, to) : to;
    t->from = to_device ? from : memory_at(device, from);
    return enqueue_job(device, &t->base);
}

void fill_in_streams(tensorpy_backend *b) {
    b->synchronize = wait_for_device;
    b->stream_new = stream_new;
    b->stream_query = stream_query;
    b->stream_synchronize = stream_synchronize;
    b->event_record = event_record;
    b->event_release = event_release;
    b->event_query = event_query;
    b->event_synchronize = event_synchronize;
    b->event_wait = event_wait;
    b->event_elapsed = event_elapsed;
    b->copy_async = copy_async;
}
