/* alloc.c: host memory: small blocks by class, medium ones from the C library, large ones from a cache.
 *
 * Invariants: small blocks live = got from the C library - given back - lying in free lists, so the short paths, which
 * move blocks between the program and a list, count nothing but the list. A block's kind follows from its size alone,
 * so tp_free needs no header in front of it. A large block's capacity is its size rounded up, to 2 MB (huge pages) from
 * 1 MB on, to 64 KB below, except for those in `large.odd`, which came out of the cache a little larger than asked for.
 * Blocks in the cache count as cached, not as live. */
#include "core/alloc.h"

#include "core/error.h"
#include "core/lock.h"
#include "core/small.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_MIN ((size_t)128 << 10)
#define HUGE_MIN ((size_t)1 << 20) /* from here on, huge pages */
#define STEP ((size_t)64 << 10)    /* of the capacities below */
#define HUGE_PAGE ((size_t)2 << 20)
#define MAX_CACHED_BYTES ((int64_t)512 << 20)
#define MAX_KEPT 256 /* MAX_CACHED_BYTES in blocks of the smallest capacity */
#define MAX_ODD 64

_Atomic int64_t tp_alloc_countdown = -1;

/* Blocks above TP_SMALL_MAX; there a locked instruction does not matter. */
static _Atomic int64_t big_blocks, big_bytes, big_peak;

typedef struct {
    void *data;
    size_t capacity;
} large_block;

static struct {
    int64_t limit, bytes; /* bytes of all that is kept; limit 0: not yet computed */
    int kept_count, odd_count;
    large_block kept[MAX_KEPT]; /* oldest first */
    large_block odd[MAX_ODD];
} large;

static size_t round_up(size_t n, size_t to) { return (n + to - 1) & ~(to - 1); }

/* ---- small ---- */

static void *alloc_small(size_t size) {
    if (!tp_thread_register()) return NULL;
    int c = tp_size_class(size);
    void *p = tp_tls.free_lists[c];
    if (p) {
        tp_tls.free_lists[c] = *(void **)p;
        tp_set_free_room(&tp_tls, c, tp_free_room(&tp_tls, c) + 1);
        return p;
    }
    p = aligned_alloc(TP_ALIGNMENT, tp_class_bytes(c));
    if (p) tp_count_small(&tp_tls, 1, c);
    return p;
}

static void free_small(void *p, size_t size) {
    int c = tp_size_class(size);
    if (!tp_tls.registered && tp_thread_register() && TP_ALLOC_CACHING) {
        tp_free_inline(p, size); /* the lists have room now */
        return;
    }
    free(p);
    if (tp_tls.registered) tp_count_small(&tp_tls, -1, c);
    else tp_thread_count_unregistered(-1, -(int64_t)tp_class_bytes(c));
}

/* ---- large ---- */

static size_t capacity_of(size_t size) { return round_up(size, size < HUGE_MIN ? STEP : HUGE_PAGE); }

static int64_t cache_limit(void) {
    int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    int64_t quarter = pages > 0 && page > 0 ? pages / 4 * page : MAX_CACHED_BYTES;
    return quarter < MAX_CACHED_BYTES ? quarter : MAX_CACHED_BYTES;
}

/* Fresh pages, aligned to the huge page size: too much is mapped and both ends are given back. */
static void *map_large(size_t capacity) {
    if (capacity < HUGE_PAGE) {
        void *plain = mmap(NULL, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return plain == MAP_FAILED ? NULL : plain;
    }
    char *p = mmap(NULL, capacity + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    char *start = (char *)round_up((uintptr_t)p, HUGE_PAGE);
    if (start != p) munmap(p, (size_t)(start - p));
    size_t tail = (size_t)(p + HUGE_PAGE - start);
    if (tail) munmap(start + capacity, tail);
#ifdef MADV_HUGEPAGE
    madvise(start, capacity, MADV_HUGEPAGE);
#endif
    return start;
}

static void remove_at(large_block *blocks, int *count, int at) {
    for (int i = at + 1; i < *count; i++) blocks[i - 1] = blocks[i];
    --*count;
}

/* The smallest kept block of at least `capacity` and at most 1.25 times it; the most recent among equals, whose pages
 * are the likeliest to be in the CPU's caches. NULL if there is none. */
static void *take_kept(size_t capacity) {
    void *data = NULL;
    tp_lock(TP_LOCK_Memory);
    size_t most = large.odd_count < MAX_ODD ? capacity + capacity / 4 : capacity;
    int best = -1;
    for (int i = large.kept_count - 1; i >= 0; i--) {
        size_t c = large.kept[i].capacity;
        if (c >= capacity && c <= most && (best < 0 || c < large.kept[best].capacity)) best = i;
    }
    if (best >= 0) {
        large_block b = large.kept[best];
        remove_at(large.kept, &large.kept_count, best);
        large.bytes -= (int64_t)b.capacity;
        if (b.capacity != capacity) large.odd[large.odd_count++] = b;
        data = b.data;
    }
    tp_unlock(TP_LOCK_Memory);
    return data;
}

static void *alloc_large(size_t size) {
    if (!TP_ALLOC_CACHING) return aligned_alloc(TP_ALIGNMENT, round_up(size, TP_ALIGNMENT));
    size_t capacity = capacity_of(size);
    void *p = take_kept(capacity);
    if (!p) p = map_large(capacity);
    if (!p) {
        tp_alloc_empty_cache();
        p = map_large(capacity);
    }
    return p;
}

static size_t take_capacity(void *p, size_t size) {
    for (int i = 0; i < large.odd_count; i++) {
        if (large.odd[i].data != p) continue;
        size_t capacity = large.odd[i].capacity;
        remove_at(large.odd, &large.odd_count, i);
        return capacity;
    }
    return capacity_of(size);
}

/* Drops the oldest kept blocks until `room` more bytes and one more entry fit. The lock is held, but given up around
 * each munmap, which takes long. */
static void make_room(int64_t room) {
    while (large.kept_count > 0 && (large.bytes + room > large.limit || large.kept_count == MAX_KEPT)) {
        large_block b = large.kept[0];
        remove_at(large.kept, &large.kept_count, 0);
        large.bytes -= (int64_t)b.capacity;
        tp_unlock(TP_LOCK_Memory);
        munmap(b.data, b.capacity);
        tp_lock(TP_LOCK_Memory);
    }
}

static void free_large(void *p, size_t size) {
    if (!TP_ALLOC_CACHING) {
        free(p);
        return;
    }
    tp_lock(TP_LOCK_Memory);
    if (large.limit == 0) large.limit = cache_limit();
    size_t capacity = take_capacity(p, size);
    bool keep = (int64_t)capacity <= large.limit;
    if (keep) {
        make_room((int64_t)capacity);
        large.kept[large.kept_count++] = (large_block){p, capacity};
        large.bytes += (int64_t)capacity;
    }
    tp_unlock(TP_LOCK_Memory);
    if (!keep) munmap(p, capacity);
}

void tp_alloc_empty_cache(void) {
    tp_lock(TP_LOCK_Memory);
    make_room(INT64_MAX / 2);
    tp_unlock(TP_LOCK_Memory);
}

/* ---- all sizes ---- */

static void raise_peak(int64_t bytes) {
    int64_t peak = atomic_load_explicit(&big_peak, memory_order_relaxed);
    while (bytes > peak && !atomic_compare_exchange_weak(&big_peak, &peak, bytes)) {
    }
}

static bool fails_now(void) {
    if (tp_likely(atomic_load_explicit(&tp_alloc_countdown, memory_order_relaxed) < 0)) return false;
    return atomic_fetch_sub_explicit(&tp_alloc_countdown, 1, memory_order_relaxed) == 0;
}

void *tp_alloc_slow(size_t size) {
    void *p = NULL;
    if (!fails_now() && size <= (size_t)PTRDIFF_MAX - 2 * HUGE_PAGE) {
        if (size <= TP_SMALL_MAX) p = alloc_small(size);
        else if (size < LARGE_MIN) p = aligned_alloc(TP_ALIGNMENT, round_up(size, TP_ALIGNMENT));
        else p = alloc_large(size);
    }
    if (!p) {
        tp_fail_memory(size > INT64_MAX ? INT64_MAX : (int64_t)size);
        return NULL;
    }
    if (size > TP_SMALL_MAX) {
        atomic_fetch_add_explicit(&big_blocks, 1, memory_order_relaxed);
        raise_peak(atomic_fetch_add_explicit(&big_bytes, (int64_t)size, memory_order_relaxed) + (int64_t)size);
    }
    return p;
}

void tp_free_slow(void *p, size_t size) {
    if (!p) return;
    if (size <= TP_SMALL_MAX) {
        free_small(p, size);
        return;
    }
    atomic_fetch_sub_explicit(&big_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&big_bytes, (int64_t)size, memory_order_relaxed);
    if (size < LARGE_MIN) free(p);
    else free_large(p, size);
}

void *tp_alloc(size_t size) { return tp_alloc_inline(size); }
void tp_free(void *p, size_t size) { tp_free_inline(p, size); }

tp_memory_stats tp_alloc_stats(void) {
    tp_memory_stats s;
    tp_thread_sum_live(&s.live_blocks, &s.live_bytes);
    s.live_blocks += atomic_load_explicit(&big_blocks, memory_order_relaxed);
    s.live_bytes += atomic_load_explicit(&big_bytes, memory_order_relaxed);
    s.peak_bytes = atomic_load_explicit(&big_peak, memory_order_relaxed);
    tp_lock(TP_LOCK_Memory);
    s.cached_bytes = large.bytes;
    tp_unlock(TP_LOCK_Memory);
    return s;
}

void tp_alloc_reset_peak(void) {
    atomic_store_explicit(&big_peak, atomic_load_explicit(&big_bytes, memory_order_relaxed), memory_order_relaxed);
}

void tp_alloc_fail_after(int64_t n) { atomic_store_explicit(&tp_alloc_countdown, n, memory_order_relaxed); }
