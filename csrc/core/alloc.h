/* alloc.h: host memory.
 *
 * Small blocks come from per-thread free lists by size class, without a lock. Large blocks are backed by 2 MB pages
 * (madvise) and kept in a bounded cache when released, since first touching fresh pages costs more than most kernels.
 * Everything is 64-byte aligned. tp_alloc_stats counts what is live, for the leak tests; tp_alloc_fail_after makes the
 * n-th allocation from now fail, for the tests that fail each allocation in turn.
 *
 * Under AddressSanitizer nothing is kept for reuse, so that it sees every block's end of life. */
#pragma once

#include "core/base.h"
#include "core/small.h"
#include "core/tls.h"

#define TP_ALIGNMENT 64

/* Blocks; `size` given back must be the size asked for. NULL and a MemoryError on failure. A block may be freed on
 * another thread than the one that asked for it. tp_free(NULL, n) does nothing. */
void *tp_alloc(size_t size);
void tp_free(void *p, size_t size);

typedef struct {
    /* Handed out and not yet freed; exact while no other thread allocates. Bytes of small blocks by size class. */
    int64_t live_blocks, live_bytes;
    int64_t peak_bytes;   /* of the blocks above TP_SMALL_MAX */
    int64_t cached_bytes; /* kept in the large-block cache */
} tp_memory_stats;
tp_memory_stats tp_alloc_stats(void);
void tp_alloc_reset_peak(void);
void tp_alloc_empty_cache(void);
/* 0 makes the next allocation fail, 1 the one after; once, in whichever thread it falls. -1 switches it off. */
void tp_alloc_fail_after(int64_t n);

/* ---- the short paths, for callers that know the size ---- */
extern _Atomic int64_t tp_alloc_countdown; /* tp_alloc_fail_after's; negative: off */
void *tp_alloc_slow(size_t size);
void tp_free_slow(void *p, size_t size);

/* tp_alloc, inlined. A block in a free list implies that the thread is registered. */
TP_INLINE void *tp_alloc_inline(size_t size) {
    if (tp_likely(size <= TP_SMALL_MAX)) {
        int c = tp_size_class(size);
        void *p = tp_tls.free_lists[c];
        if (tp_likely(p && atomic_load_explicit(&tp_alloc_countdown, memory_order_relaxed) < 0)) {
            tp_tls.free_lists[c] = *(void **)p;
            tp_set_free_room(&tp_tls, c, tp_free_room(&tp_tls, c) + 1);
            return p;
        }
    }
    return tp_alloc_slow(size);
}

TP_INLINE void tp_free_inline(void *p, size_t size) {
    if (tp_likely(p && size <= TP_SMALL_MAX)) {
        int c = tp_size_class(size);
        unsigned room = tp_free_room(&tp_tls, c);
        if (tp_likely(room != 0)) {
            *(void **)p = tp_tls.free_lists[c];
            tp_tls.free_lists[c] = p;
            tp_set_free_room(&tp_tls, c, room - 1);
            return;
        }
    }
    tp_free_slow(p, size);
}
