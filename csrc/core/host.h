/* host.h: the lock and the signals of the host, which is an interpreter, or nobody.
 *
 * Note [Host lock] in base.h says what the lock guards and what it does not. The Python layer installs its functions;
 * without any, all of this does nothing. */
#pragma once

#include "core/base.h"

typedef struct {
    void *(*release)(void);
    void (*acquire)(void *state);
    bool (*held)(void);       /* by this thread; NULL: always */
    int (*interrupted)(void); /* runs the handlers of signals that have come; -1 and the error set if one raises */
} tp_host_lock;
void tp_set_host_lock(tp_host_lock lock);

/* Gives the lock up, for work that is long or waits. `state` is what `release` returned; NULL, for instance inside a
 * parallel chunk, acquires nothing. */
void *tp_host_lock_release(void);
void tp_host_lock_acquire(void *state);

/* A table that the host has and this library has not, by its name, as a tensor of the CPU with `rows` rows: new, or
 * NULL and the error set. */
struct tp_tensor *tp_host_table(const char *name, int64_t rows);
typedef struct tp_tensor *(*tp_host_tables)(const char *name, int64_t rows);
void tp_set_host_tables(tp_host_tables tables);

/* Frees what threads that have given up the lock may still read (Note [Shared fields] in tensor.h): at once if there
 * are none, else when all that are away now are back. The caller holds the lock. */
void tp_host_park(void (*end)(void *what, size_t size), void *what, size_t size);

/* Every loop of more than some milliseconds asks this now and then: -1 and the error set if the work is to end early.
 * Signals are looked for ten times a second at most, by the thread that they are for; a chunk of tp_parallel_for hears
 * of it as well. With or without the lock. */
int tp_host_look(void);
/* The same for step i of a loop whose steps are short (nanoseconds): it asks once in a million. A kernel that returns
 * nothing then returns early, with the error set. */
#define TP_STRETCH 65536 /* steps of a loop that is better off without the question in its middle */
TP_INLINE bool tp_ends_at(int64_t i) { return tp_unlikely(i && !(i & ((1 << 20) - 1))) && tp_host_look() < 0; }
/* The same for an element's own steps: once it has ended, the next elements end as soon as they ask, which is every
 * some thousands of steps. */
bool tp_work_ended(void);
TP_INLINE bool tp_steps_end_at(int64_t i TP_UNUSED) { return tp_work_ended(); }
