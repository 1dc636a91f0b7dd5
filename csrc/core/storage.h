/* storage.h: a reference-counted block of memory on a device, shared by all tensors that view it.
 *
 * Note [Storage]
 * A tensor is a geometry (sizes, strides, offset) over a storage; views, `detach` and `.data` share one, and it lives
 * as long as the last of them. What belongs to the memory stands here and not in a tensor:
 *   - the version: every in-place operator on any view raises it and leaves its name as the writer, and autograd
 *     compares it with the version that it saw when it saved a tensor;
 *   - `writes`: whether it may be written to. Memory that a read-only array, buffer or mapped file lent may not; a late
 *     copy is made first. Every generated wrapper of a kernel that writes asks tp_check_writable before anything is
 *     computed;
 *   - how it ends: `deleter` for memory from outside, else `context` says to the device's allocator what to free.
 * Bytes are not trusted: a bool's may be anything (dtype.h). Only what computes on a device, copies, or lends memory
 * out reads `data`; native/ does not even see core/memory.h. A geometry that came from outside is checked against
 * nbytes (tp_check_in_storage) before a tensor is made of it; one that an operator made of a checked one needs no
 * check.
 *
 * Note [Opaque tensors]
 * A device from outside may have no memory that it can show: `data` is then a handle. Such a storage is one tensor:
 * all of its bytes, contiguous, from the first on. It is made and copied whole, to and from the host as to and from
 * tensors of the device, where its backend converts. No geometry but that one is made over it, so
 * there are no views but aliases; the strides of its tensors follow from the sizes. Operators that others would make
 * of views and primitives the host computes whole (whole_keys in dispatch/precedence.c, outside/opaque.c).
 *
 * Note [Late copies]
 * A lazy clone and its source share their memory until one of the two is written to, or shows its address to somebody
 * who may write there. Until then both say TP_WRITES_COPY, and their `context` is a third storage, which no tensor has:
 * it owns what they share. tp_storage_own ends that for one of them: with a copy, or, if the others are gone, without.
 * Only memory of the CPU that has not been lent is shared so; of other memory a lazy clone is a clone.
 *
 * Note [Pending memory]
 * Inside a compiled function (csrc/plan/) primitives are noted instead of run, and run together later. A storage that
 * such a call concerns says so in `later`: its contents come later, its contents are still to be read, or what should
 * have been its contents has failed. A larger storage that was made meanwhile has no memory at all until then, so
 * nobody can read what is not there. Its tensors carry the key Deferred, which stands above everything that computes.
 * What reads, lends or moves memory by hand asks tp_settle first, which runs what was noted. Outside of compiled
 * functions no storage is pending but those of the next note. `slot` is the region's own number of the storage.
 *
 * Note [Values computed again]
 * Between a forward and its backward the values that autograd's nodes have saved are most of a program's memory. Where
 * nobody but saved values holds a storage that a compiled function has computed element for element from values that
 * are saved too, the storage gives its memory back and keeps the call instead (TP_LATER_AGAIN, plan/again.c). A node
 * that hands the saved value out has the call made again first: the same call on the same elements, so the same bits.
 */
#pragma once

#include "core/device.h"

#include <stdatomic.h>

struct tp_storage {
    _Atomic int32_t refcount;
    _Atomic uint32_t version;
    const char *writer; /* the operator that raised the version last, or NULL */
    void *data;         /* on `device`; NULL for Meta and for zero bytes */
    size_t nbytes;
    size_t block; /* bytes of the block that begins with this struct; small data lies in the same block */
    tp_device device;
    uint8_t traits;    /* TP_STORAGE_... */
    uint8_t writes;    /* TP_WRITES_...: see tp_check_writable */
    _Atomic bool lent; /* its address is, or was, outside: see tp_storage_lend */
    uint8_t later;     /* Note [Pending memory] */
    uint16_t slot;
    void *context;                              /* the device's, or the deleter's */
    void (*deleter)(void *context, void *data); /* for memory from outside; NULL otherwise */
};

enum {
    TP_STORAGE_RESIZABLE = 1,
    TP_STORAGE_SAVED = 2, /* a node of autograd has kept a tensor of it as an input */
};

/* What a write to the memory does. */
enum {
    TP_WRITES_GO = 0,
    TP_WRITES_FAIL, /* the memory is read-only */
    TP_WRITES_COPY, /* Note [Late copies] */
};

/* Note [Pending memory]: what `later` says. */
enum {
    TP_LATER_WRITTEN = 1, /* its contents come later */
    TP_LATER_READ = 2,    /* noted calls still read it */
    TP_LATER_FAILED = 4,  /* its contents could not be computed */
    TP_LATER_AGAIN = 8,   /* Note [Values computed again]: it has no memory, and `context` is the call */
};

/* What csrc/plan/ does for storages; NULL until it is loaded. */
struct tp_pending_hooks {
    int (*settle)(tp_storage *s);         /* runs what was noted about s */
    int (*settle_unseen)(tp_storage *s);  /* the same for what shows the program nothing: a generator's state */
    int (*decides)(const tp_storage *s);  /* -1 and the error set: the program must not see a value of s */
    int (*settle_all)(void);              /* runs what other threads have noted */
    int (*make)(tp_storage *s);           /* takes a storage without memory into this thread's region */
    int (*lend)(void);                    /* an address leaves a compiled function of this thread */
    bool (*is_sole)(const tp_storage *s); /* beside what is noted, one reference is there */
    /* A tensor over s, which this thread's region may not have made, changes otherwise than by what kernels write. */
    void (*reshaped)(const tp_storage *s, const char *how);
    /* A backward run of what a compiled function with these options has made: 1: a region is open; 0: none is wanted.
     */
    int (*open)(uint8_t options);
    int (*close)(void); /* runs what is noted */
    /* Note [Values computed again]. A node saves t: an odd number that stands for that, or NULL where it does not
     * matter; what was saved under a number goes; t, which was, is about to be handed out. */
    void *(*saved)(tp_tensor *t);
    void (*unsaved)(const void *number, const tp_tensor *t);
    int (*again)(tp_tensor *t);
};
extern struct tp_pending_hooks tp_pending_hooks;

/* After it the memory is what the program so far says; -1 and the error set where that could not be computed. */
TP_INLINE int tp_settle(tp_storage *s) { return tp_likely(!s->later) ? 0 : tp_pending_hooks.settle(s); }
TP_INLINE int tp_settle_unseen(tp_storage *s) { return tp_likely(!s->later) ? 0 : tp_pending_hooks.settle_unseen(s); }
/* Gives a storage its memory, if it has none yet; takes it away again from one that nobody reads. */
int tp_storage_fill(tp_storage *s);
void tp_storage_empty(tp_storage *s);

/* Note [Opaque tensors] */
TP_INLINE bool tp_is_opaque(const tp_storage *s) { return tp_is_opaque_device(s->device); }

tp_storage *tp_storage_new(tp_device device, size_t nbytes);
/* Wraps memory from outside, which is never resized; `deleter` runs when the last tensor goes. After a failure the
 * memory is still the caller's. */
tp_storage *tp_storage_from_blob(tp_device device, void *data, size_t nbytes, void (*deleter)(void *, void *),
                                 void *context);
/* The deleter that leaves the memory alone; what a NULL deleter stands for. */
void tp_storage_keep_blob(void *context, void *data);
/* Note [Late copies]: whether s can share its memory with a lazy clone, and the storage of such a clone. */
bool tp_storage_can_share(const tp_storage *s);
tp_storage *tp_storage_share(tp_storage *s);
/* Memory of its own for a storage that says TP_WRITES_COPY; the caller has the host lock. After a failure it is as it
 * was. */
int tp_storage_own(tp_storage *s);
/* RuntimeError of `what` ("data_ptr()") for a storage that shows no address. */
int tp_check_address(tp_storage *s, const char *what); /* ends a late copy */
/* Grows to at least nbytes, keeping the content; used by resize_ and out=. Does nothing for a storage that is large
 * enough; after a failure it is as it was. */
int tp_storage_resize(tp_storage *s, size_t nbytes);
/* Retains s for an array, a buffer or a capsule that gets its address. The memory is not resized from then on, and
 * stays where it is for as long as s lives, even if s's tensors move to other memory. NULL and the error set where the
 * contents could not be computed (Note [Pending memory]). */
tp_storage *tp_storage_lend(tp_storage *s);
/* Copies s's content into lender's memory, which is its own from then on, for all its tensors: lender is kept. Both on
 * the CPU, lender at least as large; the caller has the host lock. Memory that was lent is kept, and no longer that of
 * the tensors. After a failure s is as it was. */
int tp_storage_adopt(tp_storage *s, tp_storage *lender);
void tp_storage_free(tp_storage *s);

TP_INLINE tp_storage *tp_storage_retain(tp_storage *s) {
    atomic_fetch_add_explicit(&s->refcount, 1, memory_order_relaxed);
    return s;
}
/* A count of one can only be ours, so the locked decrement is skipped. */
TP_INLINE void tp_storage_release(tp_storage *s) {
    if (!s) return;
    if (atomic_load_explicit(&s->refcount, memory_order_acquire) == 1 ||
        atomic_fetch_sub_explicit(&s->refcount, 1, memory_order_acq_rel) == 1)
        tp_storage_free(s);
}
/* Whether the caller's reference is the only one to the memory. */
TP_INLINE bool tp_storage_is_sole(const tp_storage *s) {
    return (atomic_load_explicit(&s->refcount, memory_order_acquire) == 1 ||
            (tp_unlikely(s->later != 0) && tp_pending_hooks.is_sole(s))) &&
           tp_likely(s->writes == TP_WRITES_GO);
}
