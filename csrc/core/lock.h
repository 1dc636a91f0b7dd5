/* lock.h: leaf locks, one of the two ways in which a thread waits for another (turn.h is the other).
 *
 * They guard a few words for a short time (Messages: for as long as an engine moves a piece of a message). All of them
 * are listed here, in the order in which they may be held together. While one is held, no operator is called and the
 * host lock is not asked for, so a thread may wait for a leaf lock with the host lock held. Debug builds assert both.
 *
 * At a fork the locks that the child will use are taken in order, so that it finds what they guard consistent, and it
 * starts with fresh ones; those of a driver that does not work in a child are not waited for. */
#pragma once

#include "core/base.h"

#include <pthread.h>

#define TP_LOCK_PER_DEVICE 16
/* Name, how many there are, whether a fork waits for it. */
#define TP_FORALL_LOCKS(X)                                                                   \
    X(Operators, 1, true)                  /* the operator list, registrations and tables */ \
    X(Autograd, 1, true)                   /* accumulators and gradients of leaves */        \
    X(Generators, 1, true)                 /* seeds and offsets */                           \
    X(ClRuntime, 1, false)                 /* opening OpenCL, starting a device */           \
    X(ClPlans, 1, false)                   /* launch plans */                                \
    X(ClPrograms, 1, false)                /* the table of kernels */                        \
    X(ClDevice, TP_LOCK_PER_DEVICE, false) /* kernel arguments and enqueueing */             \
    X(ClPool, TP_LOCK_PER_DEVICE, false)   /* device memory */                               \
    X(Messages, 1, false)                  /* the engine of messages, what is under way */   \
    X(Functional, 1, true)                 /* the stand-ins of a memory */                   \
    X(HostCalls, 1, true)                  /* counts of calls on the host */                 \
    X(Faults, 1, true)                     /* the numbers of faults */                       \
    X(Turns, 1, true)                      /* who waits for a turn */                        \
    X(Threads, 1, true)                    /* the registry of threads */                     \
    X(Memory, 1, true)                     /* the cache of large blocks */

typedef enum {
#define TP_LOCK_ID(name, n, waits) TP_LOCK_##name, TP_LOCK_LAST_##name = TP_LOCK_##name + (n) - 1,
    TP_FORALL_LOCKS(TP_LOCK_ID)
#undef TP_LOCK_ID
        TP_NUM_LOCKS
} tp_lock_id;
_Static_assert(TP_NUM_LOCKS <= 64, "the held locks of a thread are bits of a word");

void tp_lock(tp_lock_id id);
void tp_unlock(tp_lock_id id);
pthread_mutex_t *tp_lock_mutex(tp_lock_id id); /* to wait for a condition with; the lock is held */

#ifdef TENSORPY_DEBUG
void tp_assert_no_lock(void);
#else
TP_INLINE void tp_assert_no_lock(void) {}
#endif
