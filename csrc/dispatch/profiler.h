/* profiler.h: what is called when, and for how long: a recorder under the key Profiler.
 *
 * A profile collects one buffer of events per thread: operators as they are entered, backward nodes, and ranges that
 * the host names. While one runs the key is in every thread's include set; without one no call spends an instruction
 * on it. Profiles nest, and the innermost one records.
 *
 * Invariant: buffers are written and read with the host lock, which every call of an operator holds but inside kernels.
 * An event that is open when its profile ends stays without an end; who leaves it later finds another profile, or none,
 * and writes nothing. */
#pragma once

#include "core/clock.h"
#include "dispatch/op.h"

typedef enum { TP_PROFILED_OPERATOR, TP_PROFILED_BACKWARD, TP_PROFILED_RANGE } tp_profiled_kind;

typedef struct {
    const tp_op *op;      /* NULL unless an operator */
    char *name;           /* of what is no operator; owned */
    int64_t begin, end;   /* as tp_clock_ns; end 0: still open */
    int64_t sequence;     /* of the backward node that the call recorded, or that ran; -1: none */
    int64_t bytes;        /* by how much live memory grew, the host's */
    int64_t device_bytes; /* and that of all devices */
    int64_t shapes;       /* where the arguments' description starts in `words`, a range's after a list's word with
                             their number; -1: there is none */
    void *stack;          /* what the profile's `stack` gave */
    int32_t parent;       /* the event that encloses it, or -1 */
    uint8_t kind;         /* tp_profiled_kind */
    uint8_t backend;      /* tp_key of the kernel below all layers; 0 where it is not known */
    bool failed;
} tp_profile_event;

typedef struct tp_profile_thread {
    struct tp_profile_thread *next;
    uint32_t number; /* 1, 2, ... in the order of their first events */
    int64_t id;      /* the system's */
    tp_profile_event *events;
    int64_t count, capacity;
    int64_t *words;
    int64_t nwords, words_capacity;
    int32_t open; /* the innermost open event, or -1 */
} tp_profile_thread;

typedef struct tp_profile {
    bool shapes, memory;             /* what is noted beside times */
    uint64_t (*next_sequence)(void); /* autograd's, as is the next one; NULL: calls are not tied to backward nodes */
    int64_t (*sequence_of)(const tp_tensor *t);
    int64_t (*device_memory)(void);     /* bytes live on devices; NULL: there are none */
    void *(*stack)(void);               /* the host's: where the program is; NULL: not asked */
    void (*free_stack)(void *stack);    /* of each event */
    void (*ended)(tp_profile_thread *); /* an outermost event has ended, after which its thread starts anew; or NULL */
    /* The recorder's own. */
    tp_profile_thread *threads;
    struct tp_profile *outer;
    uint64_t number;
    uint32_t nthreads;
} tp_profile;

/* `p` records from now on, until it stops; -1 and the error set if the key has another fallback. */
int tp_profile_start(tp_profile *p);
/* Also a profile that is not the innermost one. */
void tp_profile_stop(tp_profile *p);
/* Frees what was recorded. */
void tp_profile_clear(tp_profile *p);

/* One event, entered and left by the same thread. Without a profile both do nothing. */
typedef struct {
    uint64_t profile;
    int64_t at;
} tp_profile_mark;
tp_profile_mark tp_profile_enter(tp_profiled_kind kind, const char *name, int64_t sequence);
void tp_profile_leave(tp_profile_mark mark, int status);
/* Notes what a range that is open was given, where the profile notes shapes. */
void tp_profile_describe(tp_profile_mark mark, const tp_value *args, int count);
/* What an event is made up of that is still open: ranges in it, one after the other, that fill the time since its begin
 * by their shares. Without shares there are none. */
typedef struct {
    const char *name;
    int64_t share;
} tp_profile_part;
void tp_profile_divide(tp_profile_mark mark, const tp_profile_part *parts, int64_t count);
/* This thread's innermost open event: the thread's number and the event's place; false if there is none. */
bool tp_profile_open(uint32_t *thread, int64_t *at);

/* How `words` describe an operator's arguments: one word_of each, a tensor's followed by its sizes, a list's by its
 * elements, that of one or more integers by their values. */
typedef enum { TP_WORD_OTHER, TP_WORD_TENSOR, TP_WORD_LIST, TP_WORD_INTS } tp_word_kind;
TP_INLINE int64_t tp_word(tp_word_kind kind, int64_t dtype, int64_t count) {
    return (int64_t)kind | dtype << 8 | count << 16;
}
TP_INLINE tp_word_kind tp_word_kind_of(int64_t word) { return (tp_word_kind)(word & 0xff); }
TP_INLINE tp_dtype tp_word_dtype(int64_t word) { return (tp_dtype)(word >> 8 & 0xff); }
TP_INLINE int64_t tp_word_count(int64_t word) { return word >> 16; }

/* Writes each call to a file ("1": to standard error), one line each, until the process ends: what the environment
 * variable TENSORPY_TRACE asks for. */
int tp_profile_log(const char *path);
