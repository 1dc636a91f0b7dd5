/* small.h: a thread's free lists of small blocks: their classes, their room, and what is counted of them. The short
 * paths over them are in alloc.h. */
#pragma once

#include "core/tls.h"

#define TP_SMALL_MAX 4096 /* the largest block that a free list holds */

#if defined(__SANITIZE_ADDRESS__)
#define TP_ALLOC_CACHING 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TP_ALLOC_CACHING 0
#endif
#endif
#ifndef TP_ALLOC_CACHING
#define TP_ALLOC_CACHING 1
#endif

/* Multiples of 64 up to 512, then four classes for each doubling up to TP_SMALL_MAX. */
TP_INLINE int tp_size_class(size_t size) {
    if (size <= 512) return (int)((size - (size != 0)) >> 6);
    int b = 63 - __builtin_clzll((unsigned long long)size - 1);
    return 8 + (b - 9) * 4 + (int)(((size - 1) >> (b - 2)) & 3);
}

/* A list's room has one writer, so plain arithmetic does; atomic, because tp_alloc_stats reads it. */
TP_INLINE unsigned tp_free_room(const tp_thread_state *t, int c) {
    return atomic_load_explicit(&t->free_room[c], memory_order_relaxed);
}
TP_INLINE void tp_set_free_room(tp_thread_state *t, int c, unsigned room) {
    atomic_store_explicit(&t->free_room[c], (uint16_t)room, memory_order_relaxed);
}

size_t tp_class_bytes(int c); /* of a block of the class */
/* Blocks from (positive) or to the C library; the thread is the only writer. */
void tp_count_small(tp_thread_state *t, int64_t blocks, int c);
/* What tls.c asks for: the room of a fresh thread's lists, a thread's part in the live blocks (negative if it freed
 * what others allocated), and giving the blocks in its lists back to the C library. */
void tp_small_start(tp_thread_state *t);
void tp_small_live(const tp_thread_state *t, int64_t *blocks, int64_t *bytes);
void tp_small_exit(tp_thread_state *t);
