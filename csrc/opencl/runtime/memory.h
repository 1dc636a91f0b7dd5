/* memory.h: device memory with addresses.
 *
 * A buffer has no address that the host may use, and the core thinks of storages as memory that begins somewhere. Each
 * segment (one buffer of the driver) therefore gets a range of addresses that nothing else has and nobody can read:
 * offsets, overlaps and views work as on the CPU. A storage's context is its block, from which a launch has buffer and
 * offset without a search; tp_cl_find leads back from a bare address. */
#pragma once

#include "core/tensor.h"
#include "opencl/runtime/runtime.h"
#include "opencl/runtime/stream.h"

typedef struct {
    cl_mem buffer;
    int64_t offset; /* bytes */
} tp_cl_place;

typedef struct tp_cl_segment {
    cl_mem buffer;
    void *host; /* what the buffer lies in, or NULL: memory of the driver's own */
    uintptr_t base;
    size_t size;
    int stream;                /* whose commands its blocks are in order with */
    struct tp_cl_block *first; /* in order of address */
} tp_cl_segment;

typedef struct tp_cl_block {
    tp_cl_segment *segment;
    size_t offset, size;
    struct tp_cl_block *before, *after;           /* neighbours in the segment */
    struct tp_cl_block *free_before, *free_after; /* in the list of free blocks */
    uint32_t other_streams;                       /* bits: which ones use it besides the segment's */
    bool used;
} tp_cl_block;

/* ---- tp_device_ops ---- */
void *tp_cl_allocate(tp_device device, size_t nbytes, void **context);
void tp_cl_release(tp_device device, void *data, size_t nbytes, void *context);

/* Where an address lies; fails for one that is in no segment of the device. */
int tp_cl_find(int device, const void *address, tp_cl_place *place);
/* Where an address inside a tensor's storage lies. */
TP_INLINE tp_cl_place tp_cl_place_of(const tp_tensor *t, const void *address) {
    const tp_cl_block *b = t->storage->context;
    return (tp_cl_place){b->segment->buffer, (int64_t)((uintptr_t)address - b->segment->base)};
}

typedef struct {
    int64_t allocated, peak; /* bytes in tensors, and their largest sum so far */
    int64_t reserved;        /* bytes taken from the driver */
    int64_t peak_reserved;   /* the most that was */
    int64_t limit;           /* the most that is taken from the driver; 0: none */
    int64_t blocks, segments, reused, retries;
} tp_cl_memory_stats;
tp_cl_memory_stats tp_cl_memory(int device);
void tp_cl_reset_peak(int device);
void tp_cl_set_limit(int device, int64_t nbytes);
/* Another stream uses the tensor's memory too: when the tensor goes, the next owner waits for that stream. */
void tp_cl_stream_use(const tp_tensor *t, int stream);
/* Gives the segments that no tensor uses back to the driver. */
int tp_cl_empty_cache(int device);
