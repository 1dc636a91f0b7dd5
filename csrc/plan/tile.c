/* tile.c: stretches of notes that keep rows apart run on a few rows at a time, which stay in the L2 cache.
 *
 * softmax written by hand is a largest value, a difference, an exponential, a sum and a quotient: each of them reads
 * and writes a whole tensor, or each of them a tile of it. A stretch is notes that follow each other and have the same
 * leading dimensions, the rows, in all that they compute: maps, copies, folds and softmax of the last dimensions, norms
 * of rows. What broadcasts along the rows is passed whole. The stretch is noted once more, on tensors of one tile's
 * rows, in which maps are joined as in any list, and this list runs once for each tile, its tensors moved on. A tensor
 * that nobody needs after the stretch has a tile's memory only.
 *
 * Threads take tiles, not parts of each call: each has a list and passing tensors of its own, and takes the next tile
 * when it is done with one. They meet once for the stretch and not at every call of every tile, where all would wait
 * for one that the system has stopped.
 *
 * An element's bits do not depend on how many rows there are: lines are folded in one piece (TP_REDUCE_LEAF), and a
 * tile has as many rows that the driver of reductions does not take another way for few of them (LEAST_ROWS). */
#include "Primitives.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "core/tls.h"
#include "iter/iter.h"
#include "plan/region.h"
#include "prim/fused.h"
#include "prim/norm.h"

#include <stdlib.h>
#include <string.h>

#define MOST_NOTES 64
#define MOST_TENSORS 48
#define LEAST_ROWS 16
#define FEW_TILES 4                 /* of one thread: a tensor of fewer stays in the cache as it is */
#define MOST_STEPS (MOST_NOTES * 8) /* tensors of all notes */

/* The leading dimensions of a stretch. */
typedef struct {
    int64_t sizes[TP_MAX_DIMS];
    int n;
    int64_t rows; /* their product */
} lead;

/* How a primitive's tensors lie to its rows. */
typedef enum { NO_ROWS, MAP, COPY, FOLD, LINE, NORM } kind;
typedef struct {
    kind kind;
    int number; /* of the argument that names dimensions, or holds the words of a norm's walk */
} family;

/* Only a backend that begins calls at once, which its shortcut says, gains by many small ones. */
static family family_of(const tp_note *note) {
    static const struct {
        int primitive;
        family family;
    } known[] = {{TP_PRIM_map, {MAP, 0}},
                 {TP_PRIM_copy, {COPY, 0}},
                 {TP_PRIM_softmax_forward, {LINE, 1}},
                 {TP_PRIM_softmax_log, {LINE, 1}},
                 {TP_PRIM_softmax_backward, {LINE, 2}},
                 {TP_PRIM_softmax_log_backward, {LINE, 2}},
                 {TP_PRIM_norm_forward, {NORM, 3}},
                 {TP_PRIM_norm_backward, {NORM, 5}}};
    if (!tp_shortcut_at(&tp_prims[TP_PRIM_map], note->key)) return (family){NO_ROWS, 0};
    for (size_t i = 0; i < TP_COUNTOF(known); i++)
        if (note->op == &tp_prims[known[i].primitive]) return known[i].family;
    tp_fold_call call;
    return tp_note_folds(note, &call) ? (family){FOLD, call.fold == TP_FOLD_PROGRAM ? 2 : 1} : (family){NO_ROWS, 0};
}

/* ---- which rows ---- */

/* What a fold, a line or a norm reads. */
static const tp_tensor *read_by(const tp_note *note) {
    tp_fold_call call;
    return tp_note_folds(note, &call) ? call.x : note->args[0].tensor;
}

/* The dimensions in front of those that a fold, a line or a norm goes along; false: these are not the last ones, or too
 * long to be folded in one piece. */
static bool lead_of(const tp_note *note, family f, lead *l) {
    const tp_tensor *x = read_by(note);
    int64_t along = 1;
    l->n = x->ndim;
    if (f.kind == NORM) {
        tp_norm_rows walk = tp_norm_rows_of(note->args[f.number].ints);
        if (walk.runs != 1 || !walk.each) return false; /* weights by the row would begin anew in each tile */
        while (l->n > 0 && along < walk.length) along *= x->sizes[--l->n];
        if (along != walk.length) return false;
    } else if (f.kind == LINE) {
        if (note->args[f.number].i != x->ndim - 1) return false;
        l->n--;
    } else {
        uint64_t mask = 0;
        tp_ints dims = note->args[f.number].ints;
        for (int64_t i = 0; i < dims.size; i++) mask |= UINT64_C(1) << dims.data[i];
        while (l->n > 0 && mask >> (l->n - 1) & 1) along *= x->sizes[--l->n];
        if (mask & ((UINT64_C(1) << l->n) - 1) || along < 2 || along > TP_REDUCE_LEAF) return false;
    }
    l->rows = 1;
    for (int d = 0; d < l->n; d++) l->rows *= l->sizes[d] = x->sizes[d];
    return l->n > 0;
}

static bool is_cut(const lead *l, const tp_tensor *t) {
    if (!tp_is_contiguous(t) || t->ndim < l->n) return false;
    for (int d = 0; d < l->n; d++)
        if (t->sizes[d] != l->sizes[d]) return false;
    return true;
}

/* Whether t, beside a tensor of `ndim` dimensions, is the same for all rows. */
static bool is_same_for_rows(const lead *l, const tp_tensor *t, int ndim) {
    int shift = ndim - t->ndim;
    if (!tp_is_contiguous(t) || shift < 0) return false;
    for (int d = 0; d < t->ndim && d + shift < l->n; d++)
        if (t->sizes[d] != 1) return false;
    return true;
}

/* A tensor of the stretch's. */
typedef struct {
    tp_tensor *tensor; /* of a note's */
    bool cut, written;
    bool fresh;  /* its first use writes it */
    bool passes; /* it has a tile's memory */
} cell;

typedef struct {
    tp_notes *notes;
    lead lead;
    int64_t begin, count;
    cell cells[MOST_TENSORS];
    int ncells;
    int64_t tiles, workers;
    tp_fused_times *times; /* of each unit, where a profile wants to know; or NULL */
} stretch;

/* Exact, too, if the same elements are there by other sizes: (rows, 1) and (rows). */
static tp_overlap overlap_of(const tp_tensor *a, const tp_tensor *b) {
    return tp_same_elements(a, b) ? TP_OVERLAP_EXACT : tp_overlap_of(a, b);
}

/* The number of the tensor's cell; -1: it has none yet. */
static int number_of(const stretch *s, const tp_tensor *t) {
    for (int i = 0; i < s->ncells; i++)
        if (overlap_of(s->cells[i].tensor, t) == TP_OVERLAP_EXACT) return i;
    return -1;
}

/* Notes that a tensor is used. False where it lies across another one that is written. */
static bool use(stretch *s, tp_tensor *t, bool cut, bool written) {
    for (int i = 0; i < s->ncells; i++) {
        const cell *c = &s->cells[i];
        tp_overlap how = overlap_of(c->tensor, t);
        if (how == TP_OVERLAP_EXACT ? c->cut != cut : how != TP_OVERLAP_NONE && (written || c->written)) return false;
    }
    if (written && !cut) return false;
    int number = number_of(s, t);
    if (number < 0 && s->ncells == MOST_TENSORS) return false;
    if (number < 0) s->cells[number = s->ncells++] = (cell){t, cut, false, written, false};
    s->cells[number].written |= written;
    return true;
}

/* Whether a note's tensor is cut into rows: 1, is the same for all: 0, or neither: -1. */
static int role_of(const stretch *s, const tp_note *note, family f, int arg, const tp_tensor *t) {
    const lead *l = &s->lead;
    if (f.kind == MAP && !note->op->info->args[arg].is_write) {
        int ndim = note->args[note->op->info->nargs - 1].tensor->ndim;
        if (t->ndim == ndim && is_cut(l, t)) return 1;
        return is_same_for_rows(l, t, ndim) ? 0 : -1;
    }
    const char *name = note->op->info->args[arg].name;
    if (f.kind == NORM && (strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0)) return 0; /* of any size */
    return is_cut(l, t) ? 1 : -1;
}

static bool is_of_rows(const stretch *s, const tp_note *note, family f) {
    lead own;
    if (f.kind == NO_ROWS) return false;
    if (f.kind == MAP || f.kind == COPY) return true;
    if (!lead_of(note, f, &own) || own.n != s->lead.n) return false;
    return memcmp(own.sizes, s->lead.sizes, (size_t)own.n * sizeof *own.sizes) == 0;
}

/* Takes a note into the stretch: inputs before outputs, so that what is read before it is written is not fresh. */
static bool extend(stretch *s, const tp_note *note) {
    family f = family_of(note);
    int ncells = s->ncells;
    bool fits = s->count < MOST_NOTES && is_of_rows(s, note, f);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; fits && i < note->op->info->nargs; i++) {
            bool written = note->op->info->args[i].is_write;
            tp_tensors list = written == (pass == 1) ? tp_value_tensors(&note->args[i]) : (tp_tensors){NULL, 0};
            for (int64_t k = 0; fits && k < list.size; k++) {
                tp_tensor *t = list.data[k];
                int role = t ? role_of(s, note, f, i, t) : 0;
                fits = !t || (role >= 0 && use(s, t, role, written));
            }
        }
    if (!fits) s->ncells = ncells;
    else s->count++;
    return fits;
}

/* The bytes of the tensor that a fold, a line or a norm reads. */
static int64_t bytes_of(const tp_note *note) {
    const tp_tensor *x = read_by(note);
    return x->numel * tp_itemsize((tp_dtype)x->dtype);
}

static int64_t row_bytes(const stretch *s, const tp_tensor *t) {
    return t->numel / s->lead.rows * tp_itemsize((tp_dtype)t->dtype);
}

/* How many threads can take tiles: kernels from outside are called with the host lock, one after the other. */
static int64_t most_workers(const stretch *s) {
    for (int64_t i = 0; i < s->count; i++) {
        const tp_note *note = s->notes->calls[s->begin + i];
        if (note->key != TP_KEY_CPU || tp_is_boxed_at(note->op, note->key)) return 1;
    }
    return tp_get_num_threads();
}

/* Into how many tiles the rows are cut; no thread is without one. 0: it does not pay. */
static int64_t count_tiles(stretch *s, int64_t tile_bytes) {
    int64_t most = 1, fewest = s->lead.rows / LEAST_ROWS;
    for (int i = 0; i < s->ncells; i++)
        if (s->cells[i].cut && row_bytes(s, s->cells[i].tensor) > most) most = row_bytes(s, s->cells[i].tensor);
    int64_t tiles = s->lead.rows / (tile_bytes / most > LEAST_ROWS ? tile_bytes / most : LEAST_ROWS);
    s->workers = most_workers(s);
    if (tiles > 1 && s->workers > 1) tiles = tp_divide_up(tiles, s->workers) * s->workers;
    while (tiles > fewest) tiles -= s->workers;
    return tiles;
}

/* The stretch from a place of the list on; false: there is none that it pays to cut. */
static bool find(stretch *s, int64_t tile_bytes) {
    const tp_notes *n = s->notes;
    int64_t at = s->begin;
    for (family f; at < n->ncalls && at - s->begin < MOST_NOTES; at++) {
        f = family_of(n->calls[at]);
        if (f.kind == NO_ROWS) return false;
        if (f.kind == MAP || f.kind == COPY) continue;
        if (!lead_of(n->calls[at], f, &s->lead) || s->lead.rows < 2 * LEAST_ROWS) return false;
        if (bytes_of(n->calls[at]) < FEW_TILES * tile_bytes) return false;
        break;
    }
    if (at == n->ncalls || at - s->begin == MOST_NOTES) return false;
    for (int64_t i = s->begin; i < n->ncalls && extend(s, n->calls[i]); i++) {
    }
    if (s->count < 2 || s->begin + s->count <= at) return false;
    s->tiles = count_tiles(s, tile_bytes);
    return s->tiles > 1;
}

/* ---- the list of a tile ---- */

/* A tensor that moves on from tile to tile. */
typedef struct {
    tp_tensor *tensor; /* of the tile's note */
    int64_t begin;     /* its byte_offset for the first row */
    int64_t bytes;     /* of a row; 0: its memory is one tile's */
} moved;

/* A call of a tile: a note of the list, or one that its notes from `first` on were joined to. */
typedef struct {
    tp_note *note;
    int64_t first, count;
} unit;

/* What a thread has. */
typedef struct {
    const stretch *s;
    tp_notes notes;
    tp_storage *made[MOST_TENSORS]; /* by cell, borrowed: of one tile; NULL: the cell's own */
    moved moved[MOST_STEPS];
    unit units[MOST_NOTES];
    int nmoved, nunits;
    int64_t rows; /* of the tile that the tensors show */
} worker;

static int64_t uses_in_stretch(const stretch *s, const tp_storage *storage) {
    int64_t uses = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const tp_note *note = s->notes->calls[s->begin + i];
        for (int a = 0; a < note->op->info->nargs; a++) {
            tp_tensors list = tp_value_tensors(&note->args[a]);
            for (int64_t k = 0; k < list.size; k++) uses += list.data[k] && list.data[k]->storage == storage;
        }
    }
    return uses;
}

/* Whether a cell's values are made and used up in the stretch, and all that is there of its storage. */
static bool is_passing(const stretch *s, const cell *c) {
    tp_storage *storage = c->tensor->storage;
    const tp_plan_slot *slot = &s->notes->slots[storage->slot];
    if (!tp_fusion_has(TP_FUSION_UNSTORED) || !c->cut || !c->fresh || storage->data || !slot->born ||
        tp_slot_is_held(slot))
        return false;
    for (int i = 0; i < s->ncells; i++)
        if (s->cells[i].tensor->storage == storage && &s->cells[i] != c) return false;
    return slot->uses == uses_in_stretch(s, storage);
}

static int make_passing(worker *w) {
    const stretch *s = w->s;
    for (int i = 0; i < s->ncells; i++) {
        if (!s->cells[i].passes) continue;
        size_t bytes = (size_t)(row_bytes(s, s->cells[i].tensor) * w->rows);
        tp_storage *made = tp_storage_new(s->cells[i].tensor->device, bytes);
        int status = made ? tp_notes_add_storage(&w->notes, made, true) : -1;
        tp_storage_release(made); /* the slot has it */
        if (status < 0) return -1;
        w->made[i] = made;
    }
    return 0;
}

/* The tensor of a tile's note for that of a note; `cut` as role_of says. */
static tp_tensor *tensor_of_tile(const worker *w, tp_tensor *of, int cut, int ndim) {
    const lead *l = &w->s->lead;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int from = cut ? l->n : l->n - (ndim - of->ndim), count = 0;
    if (cut) sizes[count++] = w->rows;
    for (int d = from < 0 ? 0 : from; d < of->ndim; d++) sizes[count++] = of->sizes[d];
    int64_t step = 1;
    for (int d = count - 1; d >= 0; step *= sizes[d--]) strides[d] = step;
    tp_ints shape = {sizes, count}, steps = {strides, count};
    tp_storage *made = w->made[number_of(w->s, of)];
    return made ? tp_new_on_storage(made, shape, steps, 0, (tp_dtype)of->dtype)
                : tp_new_alias(of, shape, steps, of->byte_offset);
}

/* A note's numbers, of a tensor whose leading dimensions are one: `words` has room. */
static tp_value number_of_tile(const worker *w, tp_value given, family f, int64_t *words) {
    int shift = w->s->lead.n - 1;
    if (f.kind == LINE) given.i -= shift;
    else {
        int64_t n = given.ints.size;
        for (int64_t i = 0; i < n; i++) words[i] = given.ints.data[i] - (f.kind == FOLD ? shift : 0);
        given.ints.data = words;
    }
    return given;
}

#define MOST_ARGS 16
#define MOST_LISTED 32 /* tensors of a note */

/* Notes a note's call for a tile. */
static int note_tile(worker *w, const tp_note *note) {
    family f = family_of(note);
    tp_value args[MOST_ARGS];
    tp_tensor *listed[MOST_LISTED];
    int64_t words[TP_MAX_DIMS + TP_NORM_WORDS];
    int nargs = note->op->info->nargs, count = 0, status = -1, ndim = 0;
    if (f.kind == MAP) ndim = note->args[nargs - 1].tensor->ndim;
    memcpy(args, note->args, (size_t)nargs * sizeof *args);
    if (f.kind != MAP && f.kind != COPY) args[f.number] = number_of_tile(w, args[f.number], f, words);
    for (int a = 0; a < nargs; a++) {
        tp_tensors list = tp_value_tensors(&note->args[a]);
        if (count + list.size > MOST_LISTED) goto done;
        tp_tensor **first = &listed[count];
        for (int64_t k = 0; k < list.size; k++) {
            tp_tensor *of = list.data[k];
            int cut = of ? role_of(w->s, note, f, a, of) : 0;
            tp_tensor *made = of ? tensor_of_tile(w, of, cut, cut || ndim ? ndim : w->s->lead.n + of->ndim) : NULL;
            if (of && !made) goto done;
            listed[count++] = made;
        }
        if (args[a].tag == TP_TENSOR) args[a].tensor = *first;
        if (args[a].tag == TP_TENSORS) args[a].tensors.data = first;
    }
    tp_note *added = tp_notes_add(&w->notes, note->op, note->key, args);
    if (added) added->from = note->from;
    for (int a = 0; added && a < nargs; a++) {
        tp_tensors from = tp_value_tensors(&note->args[a]), to = tp_value_tensors(&added->args[a]);
        for (int64_t k = 0; k < from.size; k++) {
            if (!from.data[k] || role_of(w->s, note, f, a, from.data[k]) != 1) continue;
            bool passes = w->made[number_of(w->s, from.data[k])] != NULL;
            int64_t bytes = passes ? 0 : row_bytes(w->s, from.data[k]);
            w->moved[w->nmoved++] = (moved){to.data[k], to.data[k]->byte_offset, bytes};
        }
    }
    status = added ? 0 : -1;
done:
    for (int i = 0; i < count; i++) tp_release(listed[i]);
    return status;
}

/* Has the tensors, and walks of norms, show so many rows. */
static int set_rows(worker *w, int64_t rows) {
    const stretch *s = w->s;
    for (int i = 0; i < w->nmoved; i++) {
        tp_tensor *of = w->moved[i].tensor;
        int64_t sizes[TP_MAX_DIMS];
        memcpy(sizes, of->sizes, (size_t)of->ndim * sizeof *sizes);
        sizes[0] = rows;
        if (tp_tensor_set_geometry(of, (tp_ints){sizes, of->ndim}, tp_strides(of)) < 0) return -1;
    }
    for (int64_t i = 0; i < s->count; i++) {
        const tp_note *note = s->notes->calls[s->begin + i];
        family f = family_of(note);
        if (f.kind != NORM) continue;
        int64_t all = note->args[f.number].ints.data[0]; /* the walk's rows come first */
        ((int64_t *)w->notes.calls[i]->args[f.number].ints.data)[0] = all / s->lead.rows * rows;
    }
    w->rows = rows;
    return 0;
}

/* Maps of the list that follow each other are joined. */
static int lay_units(worker *w) {
    const bool alone[MOST_NOTES] = {false};
    for (int64_t at = 0, count; at < w->s->count; at += count) {
        int64_t joined = tp_join_notes(&w->notes, at, w->s->count, alone, &count);
        if (joined == TP_JOIN_FAILED) return -1;
        if (joined == TP_JOINED_TO_NOTHING) continue;
        w->units[w->nunits++] = (unit){w->notes.calls[joined == TP_NOT_JOINED ? at : joined], at, count};
    }
    return 0;
}

/* The list, with tensors of the most rows that a tile has. */
static int begin_worker(worker *w, const stretch *s) {
    w->s = s;
    w->rows = tp_divide_up(s->lead.rows, s->tiles);
    w->notes.shares = true;
    if (make_passing(w) < 0) return -1;
    for (int64_t i = 0; i < s->count; i++)
        if (note_tile(w, s->notes->calls[s->begin + i]) < 0) return -1;
    return lay_units(w) < 0 ? -1 : set_rows(w, w->rows);
}

static void end_worker(worker *w) {
    for (int64_t i = 0; i < w->notes.ncalls; i++) tp_note_free(&w->notes, w->notes.calls[i]);
    for (int64_t i = 0; i < w->notes.nslots; i++) {
        w->notes.slots[i].storage->later = 0;
        tp_storage_release(w->notes.slots[i].storage);
    }
    tp_free(w->notes.calls, (size_t)w->notes.call_room * sizeof *w->notes.calls);
    tp_free(w->notes.slots, (size_t)w->notes.slot_room * sizeof *w->notes.slots);
}

/* ---- running ---- */

/* What a backend does not join after all runs one by one. */
static int run_unit(worker *w, const unit *u) {
    int status = tp_note_run(u->note);
    if (tp_likely(status == 0) || !tp_take_decline()) return status;
    status = 0;
    for (int64_t i = u->first; i < u->first + u->count && status == 0; i++) status = tp_note_run(w->notes.calls[i]);
    return status;
}

static int time_unit(worker *w, int i) {
    tp_fused_times *times = &w->s->times[i];
    int64_t begin = tp_clock_ns();
    tp_fused_timed = times;
    int status = run_unit(w, &w->units[i]);
    tp_fused_timed = NULL;
    atomic_fetch_add(&times->whole, tp_clock_ns() - begin);
    return status;
}

static int run_tile(worker *w, int64_t number) {
    const stretch *s = w->s;
    int64_t rows = s->lead.rows / s->tiles, more = s->lead.rows % s->tiles;
    int64_t first = number * rows + (number < more ? number : more);
    rows += number < more;
    if (tp_host_look() < 0 || (rows != w->rows && set_rows(w, rows) < 0)) return -1;
    for (int i = 0; i < w->nmoved; i++) w->moved[i].tensor->byte_offset = w->moved[i].begin + first * w->moved[i].bytes;
    for (int i = 0; i < w->nunits; i++)
        if ((tp_likely(!s->times) ? run_unit(w, &w->units[i]) : time_unit(w, i)) < 0) return -1;
    return 0;
}

typedef struct {
    worker *workers;
    _Atomic int64_t next; /* the first tile that nobody has taken */
} job;

__thread bool tp_in_tile;

/* Nobody is asked for the tiles' tensors. */
static void run_tiles(int64_t begin, int64_t end, void *context) {
    job *j = context;
    uint64_t exclude = tp_tls.exclude;
    tp_tls.exclude |= TP_BIT(Deferred);
    tp_in_tile = true;
    for (int64_t i = begin; i < end; i++) {
        worker *w = &j->workers[i];
        for (int64_t tile; (tile = atomic_fetch_add(&j->next, 1)) < w->s->tiles;)
            if (run_tile(w, tile) < 0) atomic_store(&j->next, w->s->tiles);
    }
    tp_in_tile = false;
    tp_tls.exclude = exclude;
}

static int run_workers(const stretch *s, worker *workers) {
    job j = {.workers = workers};
    if (s->workers > 1) return tp_parallel_unlocked(true, s->workers, 1, run_tiles, &j);
    run_tiles(0, 1, &j);
    return tp_status_of_thread();
}

/* What the outer list says of its storages, which the tile's lists take over for a while. */
typedef struct {
    uint16_t slot;
    uint8_t later;
} saved;

static void remember(const stretch *s, saved *before) {
    for (int i = 0; i < s->ncells; i++)
        before[i] = (saved){s->cells[i].tensor->storage->slot, s->cells[i].tensor->storage->later};
}

static void give_back(const stretch *s, const saved *before) {
    for (int i = 0; i < s->ncells; i++) {
        s->cells[i].tensor->storage->slot = before[i].slot;
        s->cells[i].tensor->storage->later = before[i].later;
    }
}

/* What does not pass has memory: so many bytes. */
static int fill(stretch *s, int64_t *bytes) {
    for (int i = 0; i < s->ncells; i++) {
        cell *c = &s->cells[i];
        if ((c->passes = is_passing(s, c))) continue;
        if (tp_storage_fill(c->tensor->storage) < 0) return -1;
        *bytes += tp_bytes_of(c->tensor);
    }
    return 0;
}

static const tp_fused *program_of(const tp_note *note) {
    bool is_fused = note->op == &tp_prims[TP_PRIM_fused_map] || note->op == &tp_prims[TP_PRIM_fused_reduce];
    return is_fused ? tp_fused_at(note->args[0].i) : NULL;
}

/* Tells the profile how long the calls took, of all workers together. */
static void tell_times(const stretch *s, const worker *w, tp_profile_mark mark) {
    tp_profile_part parts[MOST_NOTES];
    tp_part_name names[MOST_NOTES];
    int n = 0;
    for (int i = 0; i < w->nunits; i++) {
        const unit *u = &w->units[i];
        n += tp_timed_parts(&s->notes->calls[s->begin + u->first], u->count, program_of(u->note), &s->times[i],
                            &parts[n], &names[n]);
    }
    tp_profile_divide(mark, parts, n);
}

static int run_stretch(tp_region *r, stretch *s, tp_profile_mark mark) {
    saved before[MOST_TENSORS];
    int64_t bytes = 0, begun = 0;
    size_t room = (size_t)s->workers * sizeof(worker);
    if (fill(s, &bytes) < 0) return -1;
    worker *workers = tp_alloc(room);
    if (!workers) return -1;
    memset(workers, 0, room);
    remember(s, before);
    workers[0].notes.outer = r->running;
    r->running = &workers[0].notes;
    int status = 0;
    while (begun < s->workers && status == 0) status = begin_worker(&workers[begun++], s);
    s->times = tp_unlikely(mark.profile) ? calloc(MOST_NOTES, sizeof *s->times) : NULL;
    if (status == 0) status = run_workers(s, workers);
    if (tp_unlikely(s->times != NULL) && status == 0) tell_times(s, workers, mark);
    free(s->times);
    r->told.kind = TP_PLAN_TILES;
    r->told.moved = bytes;
    r->told.ends = TP_PLAN_SHAPE;
    r->running = workers[0].notes.outer;
    while (begun) end_worker(&workers[--begun]);
    give_back(s, before);
    tp_free(workers, room);
    return status;
}

int tp_run_tiled(tp_region *r, tp_notes *n, int64_t at, int64_t *count) {
    if (!tp_fusion_has(TP_FUSION_TILES) || family_of(n->calls[at]).kind == NO_ROWS) return 1;
    stretch s;
    s.notes = n;
    s.begin = at;
    s.count = s.ncells = 0;
    if (!find(&s, r->options.tile)) return 1;
    *count = s.count;
    r->report.groups++;
    r->report.fused += s.count;
    tp_profile_mark mark = tp_mark_unit(n, at, s.count, "tiles");
    int status = run_stretch(r, &s, mark);
    tp_profile_leave(mark, status);
    return status;
}
