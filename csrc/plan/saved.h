/* saved.h: tapes as bytes: what a function computes, with the memory that it reads, for a program without Python.
 *
 * A saved tape is its calls before any are joined; primitives and programs are written by name, so another build reads
 * it, if it has them. It is a program: bytes that are damaged are refused, but who wrote them is trusted, as with a
 * shared library. Little-endian, all numbers 8 bytes; a float is its bits:
 *
 *     "tpplan1", 0; bytes in all; checksum of the rest (FNV-1a)
 *     slots, arguments, results, calls: how many
 *     slots: bytes, kind (saved.c)
 *     arguments, results: tensors (slot, dtype, flags, dimensions, byte offset, sizes, strides)
 *     calls: name; arguments, each a tag and what it holds
 *     the memory of each slot that is a constant, from a multiple of 64 on
 */
#pragma once

#include "plan/tape.h"

typedef struct {
    int64_t slot, dtype, is_number, ndim, byte_offset;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
} tp_saved_tensor;

/* Whether the tape, which follows another, depends on its arguments alone: NULL, or why it does not (until the next
 * call). `arguments`: those of the call that was written down. */
const char *tp_tape_why_not_saved(tp_tape *t, tp_tensor *const *arguments);
/* The bytes, owned (tp_free with *size), of a tape that may be saved. NULL and the error set on failure. */
unsigned char *tp_tape_save(const tp_tape *t, tp_tensor *const *arguments, size_t *size);

/* A tape, closed, and how its arguments and results lie. The file names no device: it runs on any that has its calls.
 */
typedef struct {
    tp_device device;
    tp_tape *tape;
    tp_saved_tensor *arguments, *results;
    int64_t narguments, nresults;
} tp_saved_tape;

/* For a device that is there. -1 and the error set: the bytes are damaged, or this build, or the device, lacks what
 * they call. */
int tp_tape_load(tp_saved_tape *saved, tp_device device, const void *bytes, size_t size);
void tp_saved_tape_free(tp_saved_tape *saved);
/* Memory of the plan's device, or of the CPU. */
typedef struct {
    tp_device device;
    const void *data;
    void *context; /* of the storage that it lies in, on another device than the CPU */
} tp_saved_memory;
/* Runs it on contiguous memory of the arguments' bytes into memory of the results' bytes. -1 and the error set. */
int tp_saved_tape_run(const tp_saved_tape *saved, const tp_saved_memory *arguments, const tp_saved_memory *results);
/* The bytes of a contiguous tensor of its sizes. */
int64_t tp_saved_bytes(const tp_saved_tensor *t);
