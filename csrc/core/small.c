/* small.c: see small.h. */
#include "core/small.h"

#include <stdlib.h>

/* Blocks kept in one thread's list. */
#define ROOM_TO_512 128
#define ROOM_ABOVE_512 16

size_t tp_class_bytes(int c) {
    if (c < 8) return (size_t)(c + 1) << 6;
    int doubling = (c - 8) / 4, quarter = (c - 8) % 4;
    return (size_t)(5 + quarter) << (7 + doubling);
}

static unsigned full_room(int c) { return c < 8 ? ROOM_TO_512 : ROOM_ABOVE_512; }

void tp_count_small(tp_thread_state *t, int64_t blocks, int c) {
    int64_t bytes = blocks * (int64_t)tp_class_bytes(c);
    atomic_store_explicit(&t->small_blocks, atomic_load_explicit(&t->small_blocks, memory_order_relaxed) + blocks,
                          memory_order_relaxed);
    atomic_store_explicit(&t->small_bytes, atomic_load_explicit(&t->small_bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

void tp_small_start(tp_thread_state *t) {
    for (int c = 0; c < TP_SIZE_CLASSES; c++) tp_set_free_room(t, c, TP_ALLOC_CACHING ? full_room(c) : 0);
}

void tp_small_live(const tp_thread_state *t, int64_t *blocks, int64_t *bytes) {
    *blocks = atomic_load_explicit(&t->small_blocks, memory_order_relaxed);
    *bytes = atomic_load_explicit(&t->small_bytes, memory_order_relaxed);
    for (int c = 0; TP_ALLOC_CACHING && c < TP_SIZE_CLASSES; c++) {
        int64_t in_list = (int64_t)full_room(c) - (int64_t)tp_free_room(t, c);
        *blocks -= in_list;
        *bytes -= in_list * (int64_t)tp_class_bytes(c);
    }
}

void tp_small_exit(tp_thread_state *t) {
    for (int c = 0; c < TP_SIZE_CLASSES; c++) {
        for (void *p = t->free_lists[c], *next; p; p = next) {
            next = *(void **)p;
            free(p);
            tp_count_small(t, -1, c);
        }
        t->free_lists[c] = NULL;
        tp_set_free_room(t, c, TP_ALLOC_CACHING ? full_room(c) : 0);
    }
}
