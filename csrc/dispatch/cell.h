/* cell.h: boxed kernels with a context, which may be taken out while a call is inside.
 *
 * Note [Registration lifetime]
 * A dispatch table holds plain functions and is read without a lock. Native code is never unmapped, so an unboxed
 * kernel may be called after its registration is gone: a call that began before ends as it began. A boxed kernel has a
 * context that somebody frees, so it stands in a cell, which counts the calls that are inside. Taking a kernel out
 * means: the table gets its new entry, then the place of the cell its new cell or NULL, then the cell is retired, and
 * whoever leaves it last (or the one who retires it) frees the context. A call reads the place, counts itself in, and
 * reads the place again: if it has changed, it leaves and dispatches anew. A kernel may take itself out.
 *
 * Table entry, place and `live` set are three words, which a call may see at different moments. Every mixture leads to
 * the old kernel, to the new one, or to another look; a layer that is taken out leaves its entry behind for those who
 * have seen its live bit.
 *
 * `free_context` runs in the thread that happens to be last, with no lock held and whatever the host lock is.
 *
 * Invariant: cells are never given back to the C library, only used again, so a cell may be counted up by a call that
 * comes too late. */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_iter)
#error "the core and the iterator do not know the dispatcher"
#endif

#include "dispatch/op.h"

#include <stdatomic.h>

struct tp_cell {
    tp_boxed_fn boxed;
    void *context;
    void (*free_context)(void *); /* NULL: nothing to free */
    _Atomic uint64_t state; /* calls inside, whether it is retired, and above it how often the cell has been freed */
    struct tp_cell *next;   /* of those that may be used again */
};

/* Under the lock Operators. NULL and a MemoryError on failure. */
tp_cell *tp_cell_new(tp_boxed_fn boxed, void *context, void (*free_context)(void *));
/* A cell that was never published goes back; its context is still the caller's. Under the lock. */
void tp_cell_drop(tp_cell *c);
/* No place holds the cell any more. Without the lock. */
void tp_cell_retire(tp_cell *c);

/* The cell in a place, with this call counted in; NULL if there is none (any more). */
tp_cell *tp_cell_enter(tp_cell *_Atomic *place);
void tp_cell_leave(tp_cell *c);
