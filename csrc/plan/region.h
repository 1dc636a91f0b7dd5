/* region.h: what the files of csrc/plan/ share: an open region, its notes and its storages (Note [Regions]).
 *
 * A note is a call of a primitive with arguments of its own: aliases of the tensors, whose geometry nobody else
 * changes, and copies of numbers and lists. A storage that notes concern, or that was made without memory, has a slot,
 * which keeps it until the notes have run. `uses` counts the aliases of all notes, so a storage with more references
 * than these and the slot's own is one that somebody else still holds: it is live. */
#pragma once

#include "core/turn.h"
#include "dispatch/exchange.h"
#include "dispatch/op.h"
#include "dispatch/profiler.h"
#include "plan/plan.h"
#include "prim/fused.h"
#include "prim/reduce.h"

typedef struct {
    const tp_op *op;
    const tp_op *from; /* the operator that called it; NULL: none is known */
    tp_key key;        /* of the backend that runs it */
    size_t size;       /* of this block */
    char *line;        /* where the program called it, owned, if its kernel is not the library's own; or NULL */
    tp_value args[];
} tp_note;

/* A call that gives a storage its contents once more: again.c. */
typedef struct tp_recipe tp_recipe;

/* A tensor that nodes have saved, so many times. */
typedef struct {
    tp_tensor *tensor; /* alive while count is not 0 */
    int32_t count;
    int32_t next; /* of the same slot: a number, from 1 on; 0: it is the last */
} tp_kept;

typedef struct {
    tp_storage *storage; /* owned */
    int64_t uses;
    tp_recipe *recipe;  /* owned; NULL: none */
    int64_t recipes;    /* tensors of other storages' recipes */
    int32_t kept;       /* the first of its saved tensors; 0: it has none */
    int32_t last_write; /* number of the last note that writes it, from 1 on; 0: none does */
    bool born;          /* made in the region: nobody has seen other contents of it */
} tp_plan_slot;

/* A list of notes: the one that grows, or one that runs. */
typedef struct tp_notes {
    tp_note **calls;
    tp_plan_slot *slots;
    int64_t ncalls, nslots, call_room, slot_room;
    const tp_note *now;     /* of lists that run: the first note of the unit that does, */
    struct tp_notes *outer; /* and the list that was running before */
    int64_t declined;       /* notes before this place run one by one: the backend cannot join them yet */
    tp_kept *kept;          /* what nodes have saved of the slots, by their numbers less 1 */
    int64_t nkept, kept_room;
    bool shares; /* its notes keep the tensors that they are given, which belong to nobody else */
} tp_notes;

/* What is known of a unit while it runs, for who asks. */
typedef struct {
    int64_t moved; /* -1: as much as one by one */
    tp_plan_kind kind;
    tp_plan_reason ends;
    int64_t unstored, peak, again;
} tp_told;

struct tp_region {
    tp_region *next; /* in the list of open regions */
    int users;       /* its own thread, and those that wait for what it runs; with the host lock */
    tp_region_options options;
    tp_region_report report;
    tp_notes notes;
    tp_notes *running;
    tp_turn turn;         /* whose calls run */
    int64_t bytes;        /* that the notes write */
    bool lent;            /* an address has left: from then on everything runs at once */
    bool settles;         /* what a call at once needs is run: nobody reads it to decide something */
    const tp_op *current; /* the operator whose call is being looked at, for reports */
    tp_told told;         /* of what runs */
};

#define TP_MOST_NOTES 4096
#define TP_MOST_SLOTS 60000 /* a slot's number has 16 bits */

/* Whether the storage has a slot of the list's. */
TP_INLINE bool tp_notes_have(const tp_notes *n, const tp_storage *s) {
    return s->later && s->slot < n->nslots && n->slots[s->slot].storage == s;
}
/* Whether the storage is one of the region's. */
TP_INLINE bool tp_region_has(const tp_region *r, const tp_storage *s) { return tp_notes_have(&r->notes, s); }

/* notes.c */
/* Room for one more of a list's items. -1 and the error set on failure. */
int tp_plan_reserve(void **items, int64_t count, int64_t *room, size_t size);
int tp_notes_add_storage(tp_notes *n, tp_storage *s, bool born);
/* Adds a call of a primitive, all of whose storages are the list's or nobody's. NULL and the error set on failure. */
tp_note *tp_notes_add(tp_notes *n, const tp_op *op, tp_key key, const tp_value *args);
int tp_note_run(tp_note *note);
/* Frees a note, whose storages keep their slots. */
void tp_note_free(tp_notes *n, tp_note *note);

/* map(int program, Tensor?[] inputs, Scalar[] numbers, ScalarType compute, *, Tensor(a!) out)
 * copy(Tensor src, *, Tensor(a!) out) */
enum { TP_MAP_PROGRAM, TP_MAP_LIST, TP_MAP_NUMBERS, TP_MAP_COMPUTE };
bool tp_note_maps(const tp_note *note);
bool tp_note_copies(const tp_note *note);
/* What a call of map or copy reads, and what it writes: its last argument. */
tp_tensors tp_note_inputs(const tp_note *note);
TP_INLINE tp_value *tp_note_output(const tp_note *note) { return (tp_value *)&note->args[note->op->info->nargs - 1]; }

/* What a call of reduce.* is given, whatever the order of its arguments. */
typedef struct {
    tp_fold fold;
    tp_tensor *x, *out, *at; /* borrowed; `at` gets places, NULL: none */
    tp_ints dim;
    int64_t program; /* and `compute`: of TP_FOLD_PROGRAM */
    tp_dtype compute;
} tp_fold_call;
/* Whether the note is such a call. */
bool tp_note_folds(const tp_note *note, tp_fold_call *call);
/* Whether both are the same elements in the same order, by whatever sizes. */
TP_INLINE bool tp_same_elements(const tp_tensor *a, const tp_tensor *b) {
    return a->storage == b->storage && a->byte_offset == b->byte_offset && a->dtype == b->dtype &&
           a->numel == b->numel && tp_is_contiguous(a) && tp_is_contiguous(b);
}

/* run.c */
/* Runs what is noted. `why`: for the report; NULL at the end of the function. */
int tp_region_flush(tp_region *r, const char *why);
/* The program is about to see what is noted: -1 and the error set where the region has to run as a whole. */
int tp_region_check_whole(tp_region *r, const char *why);
/* Whether somebody beside the notes has the storage. */
TP_INLINE bool tp_slot_is_held(const tp_plan_slot *slot) {
    return atomic_load_explicit(&slot->storage->refcount, memory_order_acquire) > slot->uses + 1;
}

/* again.c: Note [Values computed again] in core/storage.h */
void tp_again_load(void);
/* What a node has saved under a number goes. False: the number is not the list's. */
bool tp_notes_unsave(const tp_notes *n, const void *number, const tp_tensor *t);
/* The list's note of this number has run, and is let go of: it becomes its output's recipe, where that may be. */
void tp_note_leave(tp_notes *n, int64_t number);
/* The slot's last note has run: its storage gives its memory back, if it has a recipe and nobody but nodes holds it.
 * The bytes. */
int64_t tp_slot_forget(tp_notes *n, tp_plan_slot *slot);
/* Has the call of a storage that says TP_LATER_AGAIN made again, now or as a note of this thread's region. */
int tp_compute_again(tp_storage *s);

/* explain.c: what is told where options.tell is set */
void tp_tell_unit(tp_region *r, const tp_notes *n, int64_t at, int64_t count);
void tp_tell_flush(tp_region *r, const char *why);
void tp_tell_at_once(tp_region *r, const tp_op *op, tp_plan_reason why);
int64_t tp_bytes_of(const tp_tensor *t);
/* Opens a range of the profile that runs, if one does, for `count` notes that run as one. */
tp_profile_mark tp_mark_unit(const tp_notes *n, int64_t at, int64_t count, const char *kind);
/* The parts of a unit for tp_profile_divide, named by the operators that made its notes: one for each where they are
 * the calls of f, which has been timed, or these and a fold of what they make, which takes the rest; else one for all.
 * How many.
 */
typedef char tp_part_name[96];
int tp_timed_parts(tp_note *const *notes, int64_t count, const tp_fused *f, const tp_fused_times *times,
                   tp_profile_part *parts, tp_part_name *names);

/* fuse.c */
/* Whether a backend joins calls: calls of others do not wait. */
bool tp_backend_joins(tp_key key);
/* Runs the note at a place of the list, together with the `count` - 1 after it that it can be joined with. */
int tp_run_fused(tp_region *r, tp_notes *n, int64_t at, int64_t *count);

/* Adds to the list, at its end, one note for that at a place and those after it, up to `end`, that it can be joined
 * with, but for those that are to stay alone. The note's place, or one of these. */
enum { TP_NOT_JOINED = -1, TP_JOIN_FAILED = -2, TP_JOINED_TO_NOTHING = -3 };
int64_t tp_join_notes(tp_notes *n, int64_t at, int64_t end, const bool *alone, int64_t *count);

/* tile.c */
/* Runs a stretch of notes from a place of the list on by tiles of rows. 1: there is none that it pays to cut, and
 * nothing has been done; else 0, or -1 and the error set. */
int tp_run_tiled(tp_region *r, tp_notes *n, int64_t at, int64_t *count);
/* This thread runs kernels of a tile: their tensors are noted, but they are there. */
extern __thread bool tp_in_tile __attribute__((tls_model("initial-exec")));
