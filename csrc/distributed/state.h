/* state.h: what the files of csrc/distributed/ that make up a world share: its one value, and what stands in it.
 *
 * world.c begins and ends it, groups.c has its groups, work.c its messages, recorder.c the last of them, errand.c what
 * the engine is asked that takes long, peers.c who has gone. Nothing outside of these six includes this. */
#pragma once

#include "core/lock.h"
#include "distributed/groups.h"
#include "distributed/work.h"
#include "distributed/world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

typedef struct {
    char *name;
    int *ranks, n;
    void *of_engine;
    int64_t begun, begun_of_two; /* messages of all in the group so far, and of two */
    const char *last;
    bool used;
} tp_group;

struct tp_work {
    tp_work *next, *previous; /* in the list of those under way */
    int group, peer;
    int64_t number, nbytes; /* number -1: of two processes, not of all */
    int64_t record;         /* of the recorder */
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
} tp_peer;

/* Who holds which lock to touch it: Note [World's lock]. */
typedef struct {
    const tp_engine *engine;
    bool loaded, started, thread_runs, quit;
    pid_t pid;
    int rank, size;
    tp_peer *peers;
    tp_group *groups;
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
} tp_world_state;

extern tp_world_state tp_world;

static inline void tp_world_lock(void) { tp_lock(TP_LOCK_Messages); }
static inline void tp_world_unlock(void) { tp_unlock(TP_LOCK_Messages); }

void tp_sleep_us(int64_t us);
int64_t tp_now_us(void); /* of a clock that only goes on */
/* When so much time has passed after now, in its units: never, where no int64 counts it. */
int64_t tp_later(int64_t now, double time);
/* Appends to a text that ends where the room does. */
void tp_append(char *out, size_t room, const char *text);

/* The first fault stays. With the lock. */
void tp_world_set_fault(const char *text);
/* -1 where this process may send nothing, with an error that begins with a name. */
int tp_world_check(const char *name);

/* All groups end; those of the engine too where it is whole. With the lock. */
void tp_groups_forget(bool free_them);

/* The thread that moves messages along while nobody waits. */
int tp_works_start(void);
void tp_works_stop(void);
