/* plan.h: compiled functions: regions in which calls are noted and run together.
 *
 * Note [Regions]
 * While a compiled function runs, its thread has a region open, and the key Deferred is in the thread's include set.
 * The key stands above everything that computes and below views, versions and gradients, so Python runs as ever and an
 * operator's call arrives here when all that remains is to compute it. There
 *   - a call that is too small to be worth waiting runs at once, if nothing pending is among its tensors;
 *   - an operator that is made of primitives (tp_op.shared_keys) runs its checks and makes its outputs, whose memory
 *     comes later (Note [Pending memory] in core/storage.h); the primitives that it calls are noted;
 *   - anything else (a kernel that reads and writes memory itself, another device, a function from outside) has what is
 *     noted run first, as far as it may see it, and then runs at once.
 * What is noted is run, in its order, when the function ends, when somebody needs a value or an address, and when there
 * is too much of it: a flush. Only primitives that cannot fail because of values wait (tp_can_wait), so an error of the
 * program's comes from the line that made it. Outside of regions no storage is pending, but for
 * saved values that are computed again (again.c).
 *
 * Backward may come later, outside of the function: autograd nodes that are made in a region carry the number of its
 * options, and a backward run that meets one is in a region of its own from its beginning to its end (engine.c).
 *
 * A region belongs to its thread. Another thread that meets a pending storage flushes the region that it is in: all of
 * this happens with the host lock, and a region's turn is taken while its calls run, which may give that lock up. */
#pragma once

#if defined(TP_FOLDER_native) || defined(TP_FOLDER_cpu) || defined(TP_FOLDER_opencl) || defined(TP_FOLDER_iter)
#error "kernels do not know who runs them"
#endif

#include "core/base.h"
#include "core/key_list.h"

#include <stdbool.h>

typedef struct tp_region tp_region;

/* What is told of a region to who asks for it: how its calls ran. */
#define TP_PLAN_REASONS(X)                                                           \
    X(NONE, "")                                                                      \
    X(LAST, "nothing follows")                                                       \
    X(WHOLE, "the next call stays whole")                                            \
    X(SHAPE, "the next call has other elements")                                     \
    X(LAYOUT, "the next call reads a tensor that lies in another way")               \
    X(MEMORY, "the next call shares memory in another way than element for element") \
    X(FULL, "there is no room for another call")                                     \
    X(DEVICE, "the next call is on another device")                                  \
    X(DECLINED, "the device has no kernel for the calls together yet")               \
    X(SINGLE, "calls run one by one")                                                \
    X(SMALL, "its tensors are too small to be worth waiting")                        \
    X(KERNEL, "it is not made of primitives that can wait")                          \
    X(OUTSIDE, "its kernel may see more than its arguments")                         \
    X(LENT, "an address has been lent")
typedef enum {
#define TP_PLAN_REASON(name, text) TP_PLAN_##name,
    TP_PLAN_REASONS(TP_PLAN_REASON)
#undef TP_PLAN_REASON
} tp_plan_reason;

typedef enum { TP_PLAN_CALL, TP_PLAN_GROUP, TP_PLAN_TILES, TP_PLAN_AT_ONCE, TP_PLAN_FLUSH } tp_plan_kind;

typedef struct {
    tp_plan_kind kind;
    const struct tp_op *const *operators; /* that made the calls, in their order */
    int64_t count;
    const struct tp_tensor *like; /* what the last call writes; NULL: not known */
    int64_t moved, alone;         /* bytes that were read and written; that would have been, one by one */
    int64_t unstored, peak;       /* of a flush: bytes of what never got memory; the most of what got it for a while; */
    int64_t again;                /* bytes that were given back, to be computed again in backward */
    const char *why; /* what ended the unit, kept the call from waiting or asked for the flush; NULL: the end */
} tp_plan_event;

/* How a compiled function wants to be run. */
typedef struct {
    bool fuses;                         /* calls are joined where that moves less memory */
    bool whole;                         /* what the program sees before the end is an error (fullgraph=True), */
    int (*refuse)(const char *message); /* which this sets, with the host lock, and gives -1; NULL: a RuntimeError */
    int64_t smallest;                   /* bytes of the largest tensor of a call that is worth waiting, */
    int64_t tile;                       /* and of each thread's part of a tile of rows (tile.c) */
    bool recomputes;                    /* Note [Values computed again] */
    void (*tell)(void *context, const tp_plan_event *event); /* with the host lock; NULL: nobody asks */
    void *context;
    char *(*line)(void); /* where the program is, with the host lock, to be freed; NULL, also the function: not known */
    struct tp_tape *tape; /* what the calls are written down in: every one waits (plan/tape.h); NULL: they are not */
} tp_region_options;

/* What became of a region. */
typedef struct {
    int64_t calls, groups,
        fused;          /* primitives that were noted; groups of them that ran as one; how many were in these */
    int64_t flushes;    /* before the end */
    const char *why;    /* the reason of the first of them, or NULL */
    char operator[128]; /* the operator that asked for it; empty where it was none */
} tp_region_report;

/* Who sees all calls of a thread, and wants to replace some: a mode, a recorder, a trace. No region is opened then. */
#define TP_PLAN_WATCHERS (TP_BIT(PythonMode) | TP_BIT(Tracer) | TP_BIT(Trace) | TP_BIT(Functionalize))
extern bool tp_regions_off; /* none is opened */

/* Opens a region for this thread, which has none. -1 and the error set on failure. */
int tp_region_enter(const tp_region_options *options);
/* Runs what is noted and closes the region. -1 and the error set if a call failed; the region is closed then, too. */
int tp_region_leave(tp_region_report *report);
/* Runs what is noted in this thread's region, if one is open. */
int tp_region_break(const char *why);
/* The calls of this thread's region, if one is open, cannot be replayed. */
void tp_region_spoil(const char *why);
/* Registers the fallback, and what core/storage.h asks. */
int tp_plan_load(void);
