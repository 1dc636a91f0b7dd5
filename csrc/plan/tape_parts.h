/* tape_parts.h: what a tape consists of, for tape.c, which writes and compares it, and replay.c, which runs it. */
#pragma once

#include "plan/region.h"
#include "plan/tape.h"
#include "prim/pointwise.h"

typedef struct {
    tp_storage *actual;  /* that it stood for when it was written; owned, until the tape is closed or spoiled */
    uint32_t version;    /* at first; of a closed tape: by how much it rises, or of one that is made, what it is */
    int64_t first, last; /* calls that use it; -1: none */
    int64_t results;     /* that lie in it */
    bool is_argument, is_result;
    bool is_number;    /* a Python number stands in it */
    bool made;         /* an operator has given it */
    bool reads_first;  /* the first call reads it */
    bool born;         /* the call makes it */
    tp_tensor **users; /* of a closed tape: the tensors of its calls that lie in it, but for those of flat steps */
    int64_t nusers, user_room;
    bool stays; /* of an argument's: calls reach more of its storage than the argument does */
} tape_slot;

typedef struct {
    tp_keyset below;     /* of an operator that runs at once; of a primitive: 0 */
    int32_t made, nmade; /* what it gives: slots, from a place of `made` on */
} tape_call;

#define TP_TAPE_RETURNS 16 /* of an operator, at most */

/* Where an operand begins: `offset` bytes after what the slot is bound to; one that is always at the same place has
 * the slot after the last, which is bound to address 0. */
typedef struct {
    uintptr_t offset;
    int64_t slot;
} tape_operand;

/* A map of few elements, whose loop is called on the memory as it is. */
typedef struct {
    tp_loop_fn loop;
    const void *params; /* of the job, */
    int64_t numel, strides[TP_MAP_INPUTS + 1];
    tape_operand operands[TP_MAP_INPUTS + 1];
    int count;      /* operands: the result and the inputs */
    tp_map_job job; /* whose numbers and parameters the loop reads */
} tape_flat;

/* What is run: a call, or one that several are joined to. */
typedef struct {
    tp_note *note;         /* of the tape's list */
    const tape_call *call; /* where it gives something: of an operator that runs at once; else NULL */
    tape_flat *flat;       /* owned; NULL: it is called as others are */
    int64_t first, count;  /* the calls that are joined to it: a device may have no kernel for them yet */
} tape_step;

typedef struct {
    int32_t slot;
    int64_t byte_offset;
    int64_t low, high; /* bytes of its storage that it reaches */
} tape_argument;

typedef struct {
    tp_tensor *like; /* over the slot's place; owned */
} tape_result;

struct tp_tape {
    tp_device device; /* of all calls, */
    tp_key key;       /* whose kernels they are */
    tp_notes notes;   /* the calls, over places: storages that stand for slots, and are number `slot` of them */
    tape_call *calls; /* behind the last one that was written down, the list has notes that others are joined to */
    int64_t ncalls;
    tape_step *steps; /* of a closed tape */
    int64_t nsteps, step_room;
    tape_slot *slots;
    tape_argument *arguments;
    tape_result *results;
    int32_t *made;
    int64_t call_room, slot_room, narguments, argument_room, nresults, result_room, nmade, made_room;
    int32_t *buckets; /* slots by the address of their storage, plus 1 */
    int64_t nbuckets;
    void (*wrote)(void *context, int64_t call); /* tp_tape_tell; NULL: nobody asks */
    void *context;
    int64_t parted;    /* tp_tape_parted */
    int64_t bytes;     /* of what it makes, as far as that is known */
    const char *why;   /* it cannot be run; NULL: it can */
    char text[192];    /* where `why` says more than a word */
    bool runs, writes; /* writes: to what was there before, or to arguments */
    /* What a closed tape has while it runs: the storage that each slot stands for (of what was there before: always),
     * where its operands begin, by how much an argument's tensors lie elsewhere, and the slots whose tensors move,
     * arguments and what was there first. */
    tp_storage **bound;
    uintptr_t *begins;
    int64_t *shifts, nmoving;
    int32_t *moving;
    int64_t changes;    /* tp_kernel_changes, when its calls were joined */
    tp_storage *memory; /* of what a closed tape makes for itself; NULL: nothing */
    size_t memory_size;
};

/* The bytes of its storage that a tensor reaches: from `low` up to `high`. */
void tp_tape_extent(const tp_tensor *t, int64_t *low, int64_t *high);
/* The number at a place of an argument, where it is a float; NULL: it is something else. */
double *tp_tape_float_at(const tp_value *v, int64_t place);
TP_INLINE uint32_t tp_storage_version(const tp_storage *s) {
    return atomic_load_explicit(&s->version, memory_order_relaxed);
}
/* Whether the tape keeps the storage. */
bool tp_tape_has(const tp_tape *t, const tp_storage *s);

/* ---- for record.c ---- */
/* A call that is about to be noted or run: a primitive (`below` 0), or an operator that runs at once. Whether it is
 * written down. */
bool tp_tape_call(tp_tape *t, const tp_op *op, tp_keyset below, const tp_value *args);
/* What the operator has given, which was written down last. */
void tp_tape_gave(tp_tape *t, const tp_op *op, const tp_value *args, const tp_value *results);
