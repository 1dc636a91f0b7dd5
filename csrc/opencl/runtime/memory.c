/* memory.c: the caching allocator of each device.
 *
 * Memory is taken from the driver in segments: SMALL_SEGMENT for small blocks, MIDDLE_SEGMENT for middle ones, and one
 * of its own, rounded to LARGE_STEP, for each large one. Blocks are cut from segments; a released block is merged with
 * its free neighbours and waits in the free list of its size class (a power of two). An allocation takes the smallest
 * free block of its class that fits, or any of a higher class. When the driver has no memory left, or the limit is
 * reached, segments that are free as a whole are given back and the allocation is tried once more.
 *
 * Commands that are enqueued may use a block after its release: a segment belongs to a stream, blocks go to that
 * stream's commands only, and the next owner's come after. Where other streams used the block as well, the segment's
 * stream is made to wait for them at the release.
 *
 * Invariants: neighbouring blocks are never both free; segments are sorted by address; addresses are never used twice,
 * so that a stale one is found in no segment. */
#include "opencl/runtime/memory.h"

#include "opencl/runtime/fault.h"
#include "core/alloc.h"
#include "core/lock.h"
#include "opencl/runtime/program.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ADDRESS ((uintptr_t)1 << 46)
#define GUARD ((uintptr_t)1 << 16) /* between two segments */
#define STEP ((size_t)512)
#define SMALL ((size_t)1 << 20)
#define MIDDLE ((size_t)10 << 20)
#define SMALL_SEGMENT ((size_t)2 << 20)
#define MIDDLE_SEGMENT ((size_t)20 << 20)
#define LARGE_STEP ((size_t)2 << 20)
#define CLASSES 48

typedef struct {
    tp_cl_segment **segments;
    int64_t capacity;
    tp_cl_block *free[TP_CL_MAX_STREAMS][2][CLASSES]; /* small blocks, which keep to their own segments, and others */
    tp_cl_memory_stats stats;
} pool;

_Atomic uint32_t tp_cl_released;

static pool pools[TP_CL_MAX_DEVICES];
static _Atomic uintptr_t next_address = FIRST_ADDRESS;

static void lock_pool(const pool *p) { tp_lock((tp_lock_id)(TP_LOCK_ClPool + (p - pools))); }
static void unlock_pool(const pool *p) { tp_unlock((tp_lock_id)(TP_LOCK_ClPool + (p - pools))); }

/* ---- free lists ---- */

static int class_of(size_t size) { return 63 - __builtin_clzll((unsigned long long)size); }
static bool is_large(const tp_cl_block *b) { return b->segment->size > SMALL_SEGMENT; }

static tp_cl_block **free_list(pool *p, const tp_cl_block *b) {
    return &p->free[b->segment->stream][is_large(b)][class_of(b->size)];
}

static void add_free(pool *p, tp_cl_block *b) {
    tp_cl_block **head = free_list(p, b);
    b->used = false;
    b->free_before = NULL;
    b->free_after = *head;
    if (*head) (*head)->free_before = b;
    *head = b;
}

static void take_free(pool *p, tp_cl_block *b) {
    if (b->free_before) b->free_before->free_after = b->free_after;
    else *free_list(p, b) = b->free_after;
    if (b->free_after) b->free_after->free_before = b->free_before;
}

static tp_cl_block *find_free(const pool *p, int stream, size_t size) {
    bool large = size > SMALL;
    for (int c = class_of(size); c < CLASSES; c++) {
        tp_cl_block *best = NULL;
        for (tp_cl_block *b = p->free[stream][large][c]; b; b = b->free_after)
            if (b->size >= size && (!best || b->size < best->size)) best = b;
        /* A large tensor does not sit in a segment of twice its size and keep the rest from being given back. */
        if (best && (size <= MIDDLE || best->size - size < MIDDLE)) return best;
    }
    return NULL;
}

/* ---- segments ---- */

static int add_segment(pool *p, tp_cl_segment *s) {
    if (p->stats.segments == p->capacity) {
        int64_t capacity = p->capacity ? 2 * p->capacity : 16;
        tp_cl_segment **grown = realloc(p->segments, (size_t)capacity * sizeof *grown);
        if (!grown) return tp_fail_memory(capacity * (int64_t)sizeof *grown);
        p->segments = grown;
        p->capacity = capacity;
    }
    s->base = atomic_fetch_add(&next_address, (s->size + GUARD) / GUARD * GUARD + GUARD);
    int64_t at = p->stats.segments++;
    for (; at > 0 && p->segments[at - 1]->base > s->base; at--) p->segments[at] = p->segments[at - 1];
    p->segments[at] = s;
    p->stats.reserved += (int64_t)s->size;
    if (p->stats.reserved > p->stats.peak_reserved) p->stats.peak_reserved = p->stats.reserved;
    return 0;
}

/* The last segment that begins at or before the address, or -1. */
static int64_t find_segment(const pool *p, uintptr_t address) {
    int64_t low = 0, high = p->stats.segments;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p->segments[middle]->base <= address) low = middle + 1;
        else high = middle;
    }
    return low - 1;
}

/* Nothing enqueued uses it any more. */
static void free_buffer(cl_mem buffer, void *host, size_t size) {
    tp_cl.clReleaseMemObject(buffer);
    tp_free(host, size);
}

static void free_segments(pool *p) {
    int64_t kept = 0;
    for (int64_t i = 0; i < p->stats.segments; i++) {
        tp_cl_segment *s = p->segments[i];
        if (s->first->used || s->first->after) {
            p->segments[kept++] = s;
            continue;
        }
        take_free(p, s->first);
        free_buffer(s->buffer, s->host, s->size);
        tp_cl_released++;
        p->stats.reserved -= (int64_t)s->size;
        free(s->first);
        free(s);
    }
    p->stats.segments = kept;
}

/* A CPU device's memory is the host's, where tp_alloc's large blocks lie in large pages: *host. */
static cl_mem new_buffer(tp_cl_device *d, const pool *p, size_t size, void **host) {
    cl_int status = CL_SUCCESS;
    *host = NULL;
    if (size > d->max_allocation) return NULL;
    if (p->stats.limit && p->stats.reserved + (int64_t)size > p->stats.limit) return NULL;
    if ((uint64_t)p->stats.reserved + size > d->global_memory) return NULL;
    if (!d->is_cpu) return tp_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE, size, NULL, &status);
    if (!(*host = tp_alloc(size))) return NULL;
    cl_mem made = tp_cl.clCreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, *host, &status);
    if (!made) tp_free(*host, size);
    return made;
}

static int fail_full(const tp_cl_device *d, const pool *p, size_t size) {
    const tp_cl_memory_stats *s = &p->stats;
    tp_autotext limit = {0};
    if (s->limit) tp_text_add(&limit, ", a limit of %lld set", (long long)s->limit);
    return tp_fail(TP_RuntimeError,
                   "OpenCL out of memory: opencl:%d (%s) cannot allocate %zu bytes: %lld in %lld tensors, %lld taken "
                   "from the driver, %llu on the device, at most %llu at once%s\n"
                   "  next step: smaller batches, tensorpy.opencl.memory_summary() for what is held",
                   d->index, d->name, size, (long long)s->allocated, (long long)s->blocks, (long long)s->reserved,
                   (unsigned long long)d->global_memory, (unsigned long long)d->max_allocation,
                   limit.text ? limit.text : "");
}

static tp_cl_block *new_segment(tp_cl_device *d, pool *p, size_t size) {
    size_t whole = size <= SMALL ? SMALL_SEGMENT : size <= MIDDLE ? MIDDLE_SEGMENT : size;
    if (whole == size) whole = (size + LARGE_STEP - 1) / LARGE_STEP * LARGE_STEP;
    void *host;
    cl_mem buffer = new_buffer(d, p, whole, &host);
    if (!buffer && p->stats.segments) {
        tp_cl_finish_locked(d); /* with the host lock: another thread may hold it and wait for the pool's */
        free_segments(p);
        p->stats.retries++;
        buffer = new_buffer(d, p, whole, &host);
    }
    if (!buffer) return fail_full(d, p, size), NULL;
    tp_cl_segment *s = calloc(1, sizeof *s);
    tp_cl_block *b = calloc(1, sizeof *b);
    if (s && b) {
        s->buffer = buffer;
        s->host = host;
        s->size = b->size = whole;
        s->stream = tp_cl_stream(d);
        s->first = b;
        b->segment = s;
        if (add_segment(p, s) == 0) return b;
    } else {
        tp_fail_memory((int64_t)(sizeof *s + sizeof *b));
    }
    free_buffer(buffer, host, whole);
    free(s);
    free(b);
    return NULL;
}

/* ---- blocks ---- */

/* Leaves `size` bytes in b and the rest in a block after it. Without memory for its struct the rest stays in b. */
static void split(pool *p, tp_cl_block *b, size_t size) {
    if (b->size - size < (is_large(b) ? SMALL : STEP)) return;
    tp_cl_block *rest = calloc(1, sizeof *rest);
    if (!rest) return;
    rest->segment = b->segment;
    rest->offset = b->offset + size;
    rest->size = b->size - size;
    rest->before = b;
    rest->after = b->after;
    if (b->after) b->after->before = rest;
    b->after = rest;
    b->size = size;
    add_free(p, rest);
}

static void absorb_next(tp_cl_block *b) {
    tp_cl_block *next = b->after;
    b->size += next->size;
    b->after = next->after;
    if (b->after) b->after->before = b;
    free(next);
}

static tp_cl_block *allocate_locked(tp_cl_device *d, pool *p, size_t size) {
    tp_cl_block *b = find_free(p, tp_cl_stream(d), size);
    if (b) {
        take_free(p, b);
        p->stats.reused++;
    } else if (!(b = new_segment(d, p, size))) {
        return NULL;
    }
    b->used = true;
    b->other_streams = 0;
    split(p, b, size);
    p->stats.allocated += (int64_t)b->size;
    p->stats.blocks++;
    if (p->stats.allocated > p->stats.peak) p->stats.peak = p->stats.allocated;
    return b;
}

void *tp_cl_allocate(tp_device device, size_t nbytes, void **context) {
    tp_cl_device *d = tp_cl_get(device.index);
    if (!d) return NULL;
    pool *p = &pools[device.index];
    if (nbytes > SIZE_MAX / 2) return tp_fail_memory((int64_t)nbytes), NULL;
    size_t size = (nbytes + STEP - 1) / STEP * STEP;
    lock_pool(p);
    tp_cl_block *b = allocate_locked(d, p, size ? size : STEP);
    unlock_pool(p);
    *context = b;
    return b ? (void *)(b->segment->base + b->offset) : NULL;
}

void tp_cl_release(tp_device device, void *data TP_UNUSED, size_t nbytes TP_UNUSED, void *context) {
    pool *p = &pools[device.index];
    tp_cl_block *b = context;
    if (tp_cl_forked()) return; /* the lock may be held by a thread that is not here */
    if (tp_unlikely(b->other_streams)) tp_cl_hold_for(tp_cl_get(device.index), b->segment->stream, b->other_streams);
    lock_pool(p);
    p->stats.allocated -= (int64_t)b->size;
    p->stats.blocks--;
    if (b->after && !b->after->used) {
        take_free(p, b->after);
        absorb_next(b);
    }
    if (b->before && !b->before->used) {
        b = b->before;
        take_free(p, b);
        absorb_next(b);
    }
    add_free(p, b);
    unlock_pool(p);
}

void tp_cl_stream_use(const tp_tensor *t, int stream) {
    tp_cl_block *b = t->storage->context;
    if (stream != b->segment->stream) __atomic_fetch_or(&b->other_streams, 1u << stream, __ATOMIC_RELAXED);
}

int tp_cl_find(int device, const void *address, tp_cl_place *place) {
    pool *p = &pools[device];
    lock_pool(p);
    int64_t at = find_segment(p, (uintptr_t)address);
    tp_cl_segment *s = at < 0 ? NULL : p->segments[at];
    bool inside = s && (uintptr_t)address - s->base <= s->size;
    if (inside) *place = (tp_cl_place){s->buffer, (int64_t)((uintptr_t)address - s->base)};
    unlock_pool(p);
    return inside ? 0 : tp_fail(TP_RuntimeError, "OpenCL: an address that is in no memory of opencl:%d", device);
}

/* ---- looking ---- */

tp_cl_memory_stats tp_cl_memory(int device) {
    pool *p = &pools[device];
    lock_pool(p);
    tp_cl_memory_stats stats = p->stats;
    unlock_pool(p);
    return stats;
}

void tp_cl_reset_peak(int device) {
    pool *p = &pools[device];
    lock_pool(p);
    p->stats.peak = p->stats.allocated;
    p->stats.peak_reserved = p->stats.reserved;
    unlock_pool(p);
}

void tp_cl_set_limit(int device, int64_t nbytes) {
    pool *p = &pools[device];
    lock_pool(p);
    p->stats.limit = nbytes;
    unlock_pool(p);
}

int tp_cl_empty_cache(int device) {
    tp_cl_device *d = tp_cl_get(device);
    if (!d || tp_cl_finish(d) < 0) return -1;
    pool *p = &pools[device];
    lock_pool(p);
    free_segments(p);
    unlock_pool(p);
    return 0;
}
