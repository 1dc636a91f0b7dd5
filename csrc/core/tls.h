/* tls.h: all per-thread state of the library in one struct, so that a call reads it with one address.
 *
 * Dispatch: a call's key set is (union of the tensors' keys | include) & ~exclude. Autocast keys are excluded until
 * autocast is switched on for their device.
 *
 * A thread is registered when it first has something to give back at its exit (blocks in free lists, an error text, or
 * counters to be summed). The initial-exec model reads tp_tls without a call; it also means that the struct comes out
 * of the loader's small reserve for libraries opened late, so it stays well below 1 KB. */
#pragma once

#include "core/base.h"
#include "core/error.h"
#include "core/key_list.h"

#include <stdatomic.h>

#define TP_SIZE_CLASSES 20

/* What autograd nodes get when they are made: no trace of where that was, even under detect_anomaly; the number of the
 * options of the compiled function that made them, times TP_NODES_PLANNED. */
enum { TP_NODES_UNTRACED = 1, TP_NODES_PLANNED = 2 };
/* Who wants to know what nodes save: hooks of the host; the open compiled function. */
enum { TP_SAVES_HOOKED = 1, TP_SAVES_NOTED = 2 };

typedef struct tp_thread_state {
    uint64_t include, exclude;
    uint64_t observe;   /* who wants to see primitives: the keys Trace and Deferred, or none */
    bool grad_disabled; /* inverted, so that zeroed state is the default */
    bool inference_mode;
    uint16_t new_flags; /* of tensors that the thread makes: TP_FLAG_INFERENCE, TP_FLAG_DEPTH */
    uint8_t new_nodes; /* of autograd: TP_NODES_UNTRACED, and by TP_NODES_PLANNED how the open compiled function runs */
    uint8_t later;     /* whose storages get memory later, type + 1: Note [Pending memory], storage.h */
    uint8_t saves;     /* TP_SAVES_... */
    uint8_t functions_off;            /* python/overrides.c: whose __torch_function__ is not asked */
    uint8_t dispatch_off;             /* python/python_key.c: __torch_dispatch__ is not asked */
    int8_t scoped_type, scoped_index; /* device.h: this thread's default device, type + 1; 0: the process's */
    void *asked;                      /* not NULL: modes of the host are asked before a call (python/overrides.h) */
    void *saved_hooks;                /* the innermost saved-tensor hooks of the host, or NULL */
    struct tp_node *running;          /* under detect_anomaly: the node whose formula runs, or NULL */
    int32_t backward_depth;           /* engine runs that this thread is inside of */
    bool forward_disabled;            /* forward mode computes no tangents */
    bool in_parallel;                 /* inside a chunk of tp_parallel_for */
    bool registered;                  /* the thread's exit handler is in place */
    uint8_t away_since;               /* host.c: the generation in which the host lock was given up */
    uint16_t team;                    /* parallel.c: how many threads the last loop had; memory for them is there */
    uint32_t number;                  /* turn.c: never that of another thread; 0: not yet given */
    int64_t looked;                   /* host.c: when signals were looked for last */
    _Atomic bool *stop;               /* set while a loop over threads is to end early; NULL outside one */
    /* Small blocks (alloc.h): how many more a list may take, 0 before registration; the lists; and the blocks and bytes
     * that this thread got from the C library minus those that it gave back, which changes on the slow paths only. */
    _Atomic uint16_t free_room[TP_SIZE_CLASSES];
    void *free_lists[TP_SIZE_CLASSES];
    _Atomic int64_t small_blocks, small_bytes;
    tp_error_class error_class;
    bool declined; /* the pending error is tp_decline's */
    tp_text error_text;
    struct tp_thread_state *next, *previous; /* in the registry */
    struct tp_autocast_state *autocast;
    struct tp_batch_state *batched;         /* the open vmaps, or NULL */
    struct tp_forward_state *forward;       /* the open levels of forward mode, or NULL */
    struct tp_region *region;               /* the open compiled function, or NULL: csrc/plan/ */
    struct tp_functional_level *functional; /* the innermost open level of func.functionalize, or NULL */
} tp_thread_state;
_Static_assert(sizeof(tp_thread_state) <= 512, "static TLS is scarce");

extern __thread tp_thread_state tp_tls __attribute__((tls_model("initial-exec")));

/* Calls run at once and memory is there at once, also inside a compiled function (Note [Pending memory] in storage.h):
 * for kernels, and for what may call anything.
 *     tp_at_once_guard guard = tp_at_once();   as before at the end of the scope */
typedef struct {
    uint64_t include, observe;
    uint8_t later;
} tp_deferral;
TP_INLINE tp_deferral tp_at_once(void) {
    tp_deferral old = {tp_tls.include, tp_tls.observe, tp_tls.later};
    tp_tls.include &= ~TP_BIT(Deferred);
    tp_tls.observe &= ~TP_BIT(Deferred);
    tp_tls.later = 0;
    return old;
}
/* What else has been included meanwhile stays. */
TP_INLINE void tp_defer_again(const tp_deferral *old) {
    tp_tls.include |= old->include & TP_BIT(Deferred);
    tp_tls.observe |= old->observe & TP_BIT(Deferred);
    tp_tls.later = old->later;
}
#define tp_at_once_guard TP_CLEANUP(tp_defer_again) TP_UNUSED tp_deferral

TP_INLINE void tp_set_saved_hooks(void *hooks) {
    tp_tls.saved_hooks = hooks;
    tp_tls.saves = (uint8_t)((tp_tls.saves & ~TP_SAVES_HOOKED) | (hooks ? TP_SAVES_HOOKED : 0));
}

/* What a loop returns whose caller may have been stopped by a signal: -1 if an error is pending. */
TP_INLINE int tp_status_of_thread(void) { return tp_unlikely(tp_tls.error_class != TP_NoError) ? -1 : 0; }

/* Something that a layer above keeps for a thread and frees when the thread ends, in that thread, if it is registered.
 * To be called while the library is loaded. */
void tp_thread_at_end(void (*end)(void));
/* Puts the thread into the registry; false if its exit handler cannot be installed (memory is out). */
bool tp_thread_register(void);
/* Puts keys into the include set of every registered thread, and of each that registers from now on; takes them out
 * again. With the host lock, as a thread reads its set with it. */
void tp_thread_include(uint64_t keys, bool on);
/* The small blocks that are live: the sum over all threads, those that have ended included. */
void tp_thread_sum_live(int64_t *blocks, int64_t *bytes);
/* Counts for a thread that could not be registered. */
void tp_thread_count_unregistered(int64_t blocks, int64_t bytes);
