/* memory.c: the device's memory, and what it tells of itself.
 *
 * A device has an arena of shared memory, of which the host is given addresses in another range, which nothing is
 * mapped to: taken for the host's own they fault at once. Blocks that were released stay with the stream that they were
 * made for, in whose order they are used again; empty_cache gives them back. A block that other streams used, too
 * (record_stream), makes its own wait for them first. Invariant: blocks lie side by side in the order of the list; all
 * is under the arena's lock. */
#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ARENA ((size_t)4 << 30)
#define ALIGNMENT 256
#define NOBODY (-1) /* of a block that is kept for no stream */

typedef struct block {
    size_t offset, size;
    bool used;
    int64_t stream;
    uint32_t others; /* bits: the streams that use it besides its own */
    struct block *next;
} block;

static struct {
    pthread_mutex_t lock;
    char *memory;  /* where the device finds it */
    char *address; /* what the host is given */
    block *first;
    tensorpy_memory_stats stats;
} arenas[DEVICES] = {{.lock = PTHREAD_MUTEX_INITIALIZER}, {.lock = PTHREAD_MUTEX_INITIALIZER}};

char *memory_at(int device, const void *address) {
    return arenas[device].memory + ((const char *)address - arenas[device].address);
}

static int open_arena(int device) {
    if (arenas[device].first) return 0;
    void *memory = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *address = mmap(NULL, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    block *all = calloc(1, sizeof *all);
    if (memory == MAP_FAILED || address == MAP_FAILED || !all)
        return tp_fail(TP_MemoryError, "%s: there is no memory for the device's arena", DEVICE_NAME);
    *all = (block){.size = ARENA, .stream = NOBODY};
    arenas[device].memory = memory, arenas[device].address = address, arenas[device].first = all;
    return 0;
}

/* ---- blocks ---- */

/* The smallest free block of a stream that is large enough. */
static block *find_block(int device, size_t size, int64_t stream) {
    block *best = NULL;
    for (block *b = arenas[device].first; b; b = b->next)
        if (!b->used && b->stream == stream && b->size >= size && (!best || b->size < best->size)) best = b;
    return best;
}

static void split_block(block *b, size_t size) {
    block *rest = b->size > size ? calloc(1, sizeof *rest) : NULL;
    if (!rest) return; /* without memory for the rest it stays in one piece */
    *rest = (block){.offset = b->offset + size, .size = b->size - size, .stream = b->stream, .next = b->next};
    b->size = size, b->next = rest;
}

static void join_free(int device) {
    for (block *b = arenas[device].first; b;) {
        block *after = b->next;
        if (after && !b->used && !after->used && b->stream == after->stream) {
            b->size += after->size, b->next = after->next;
            free(after);
        } else {
            b = after;
        }
    }
}

static block *take_block(int device, size_t size, int64_t stream) {
    tensorpy_memory_stats *s = &arenas[device].stats;
    block *b = find_block(device, size, stream);
    if (!b) {
        b = find_block(device, size, NOBODY);
        if (!b) return NULL;
        split_block(b, size);
        b->stream = stream, s->reserved += (int64_t)b->size;
    }
    split_block(b, size);
    b->used = true, b->others = 0;
    s->allocated += (int64_t)b->size, s->blocks++;
    if (s->allocated > s->peak_allocated) s->peak_allocated = s->allocated;
    if (s->reserved > s->peak_reserved) s->peak_reserved = s->reserved;
    return b;
}

static int empty_cache(int device) {
    if (wait_for_device(device) < 0) return -1;
    pthread_mutex_lock(&arenas[device].lock);
    for (block *b = arenas[device].first; b; b = b->next) {
        if (b->used || b->stream == NOBODY) continue;
        arenas[device].stats.reserved -= (int64_t)b->size;
        b->stream = NOBODY;
    }
    join_free(device);
    pthread_mutex_unlock(&arenas[device].lock);
    return 0;
}

static void *allocate(int device, size_t nbytes, void **context) {
    size_t size = (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    int64_t stream = tp_current_stream(DEVICE_NAME, device);
    pthread_mutex_lock(&arenas[device].lock);
    int status = open_arena(device);
    block *b = status == 0 ? take_block(device, size ? size : ALIGNMENT, stream) : NULL;
    pthread_mutex_unlock(&arenas[device].lock);
    if (status == 0 && !b && empty_cache(device) == 0) {
        pthread_mutex_lock(&arenas[device].lock);
        b = take_block(device, size, stream);
        pthread_mutex_unlock(&arenas[device].lock);
    }
    *context = b;
    return b ? arenas[device].address + b->offset : NULL;
}

static void release(int device, void *data, size_t nbytes, void *context) {
    block *b = context;
    (void)data, (void)nbytes;
    if (b->others) enqueue_wait_for(device, b->stream, b->others);
    pthread_mutex_lock(&arenas[device].lock);
    b->used = false;
    arenas[device].stats.allocated -= (int64_t)b->size, arenas[device].stats.blocks--;
    join_free(device);
    pthread_mutex_unlock(&arenas[device].lock);
}

static void record_stream(int device, void *context, int64_t stream) {
    block *b = context;
    pthread_mutex_lock(&arenas[device].lock);
    if (stream != b->stream) b->others |= 1u << stream % STREAMS;
    pthread_mutex_unlock(&arenas[device].lock);
}

static int memory_stats(int device, tensorpy_memory_stats *out) {
    pthread_mutex_lock(&arenas[device].lock);
    *out = arenas[device].stats;
    pthread_mutex_unlock(&arenas[device].lock);
    return 0;
}

static int reset_peaks(int device) {
    tensorpy_memory_stats *s = &arenas[device].stats;
    pthread_mutex_lock(&arenas[device].lock);
    s->peak_allocated = s->allocated, s->peak_reserved = s->reserved;
    pthread_mutex_unlock(&arenas[device].lock);
    return 0;
}

/* ---- copies: the host waits for what the stream was given before ---- */

static int from_host(int device, void *to, const void *from, size_t nbytes) {
    if (wait_here(device) < 0) return -1;
    memcpy(memory_at(device, to), from, nbytes);
    return 0;
}
static int to_host(int device, void *to, const void *from, size_t nbytes) {
    if (wait_here(device) < 0) return -1;
    memcpy(to, memory_at(device, from), nbytes);
    return 0;
}
static int inside(int device, void *to, const void *from, size_t nbytes) {
    if (wait_here(device) < 0) return -1;
    memmove(memory_at(device, to), memory_at(device, from), nbytes);
    return 0;
}

/* Memory of the host that copies need not wait for: any is, here. */
static void *pin(size_t nbytes) { return aligned_alloc(64, (nbytes + 64) / 64 * 64); }
static void unpin(void *data, size_t nbytes) {
    (void)nbytes;
    free(data);
}

/* ---- the device ---- */

static int count(void) { return DEVICES; }

static int properties(int device, tensorpy_device_properties *out) {
    out->name = device ? "the other simulated device" : "a simulated device";
    out->total_memory = (int64_t)ARENA;
    out->multi_processor_count = 1;
    return 0;
}

#define BACKEND(name, b) TENSORPY_BACKEND(name, b)
BACKEND(DEVICE, b) {
    b->allocate = allocate;
    b->release = release;
    b->copy_from_host = from_host;
    b->copy_to_host = to_host;
    b->copy_inside = inside;
    b->device_count = count;
    b->record_stream = record_stream;
    b->memory_stats = memory_stats;
    b->reset_peak_memory_stats = reset_peaks;
    b->empty_cache = empty_cache;
    b->pin = pin;
    b->unpin = unpin;
    b->properties = properties;
    fill_in_streams(b);
}
