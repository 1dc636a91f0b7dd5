/* tile.c: stretches of notes that keep rows apart run on a few rows at a time, which stay in the L2 cache.
 *
 * softmax written by hand is a largest value, a difference, an exponential, a sum and a quotient: each of them reads
 * and writes a whole tensor, or each of them a tile of it. A stretch is notes that follow each other and have the same
 * leading dimensions, the rows, in all that they compute: maps, copies, folds and softmax of the last dimensions, norms
 * of rows. What broadcasts along the rows is passed whole. The stretch is noted once more, on tensors of one tile's
 * rows, and this list runs once for each tile, the tensors moved on; maps are joined in it as in any list. A tensor
 * that nobody needs behind the stretch has a tile's memory only.
 *
 * An element's bits do not depend on how many rows there are: lines are folded in one piece (TP_REDUCE_LEAF), and a
 * tile has as many rows that the driver of reductions does not take another way for few of them (LEAST_ROWS). */
#include "Primitives.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "plan/region.h"
#include "prim/norm.h"

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
        if (walk.runs != 1 || walk.per_run != 1) return false;
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
    bool fresh; /* its first use writes it */
} cell;

typedef struct {
    tp_notes *notes;
    lead lead;
    int64_t begin, count;
    cell cells[MOST_TENSORS];
    int ncells;
} stretch;

/* Exact, too, if the same elements are there by other sizes: (rows, 1) and (rows). */
static tp_overlap overlap_of(const tp_tensor *a, const tp_tensor *b) {
    return tp_same_elements(a, b) ? TP_OVERLAP_EXACT : tp_overlap_of(a, b);
}

static cell *cell_of(stretch *s, const tp_tensor *t) {
    for (int i = 0; i < s->ncells; i++)
        if (overlap_of(s->cells[i].tensor, t) == TP_OVERLAP_EXACT) return &s->cells[i];
    return NULL;
}

/* Notes that a tensor is used. False where it lies across another one that is written. */
static bool use(stretch *s, tp_tensor *t, bool cut, bool written) {
    for (int i = 0; i < s->ncells; i++) {
        const cell *c = &s->cells[i];
        tp_overlap how = overlap_of(c->tensor, t);
        if (how == TP_OVERLAP_EXACT ? c->cut != cut : how != TP_OVERLAP_NONE && (written || c->written)) return false;
    }
    if (written && !cut) return false;
    cell *c = cell_of(s, t);
    if (!c && s->ncells == MOST_TENSORS) return false;
    if (!c) {
        c = &s->cells[s->ncells++];
        *c = (cell){t, cut, false, written};
    }
    c->written |= written;
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
    if (f.kind == NORM && !is_cut(l, t)) {
        const char *name = note->op->info->args[arg].name;
        return strcmp(name, "weight") == 0 || strcmp(name, "bias") == 0 ? 0 : -1;
    }
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

/* Of the tensor that a fold, a line or a norm reads. */
static int64_t bytes_of(const tp_note *note) {
    const tp_tensor *x = read_by(note);
    return x->numel * tp_itemsize((tp_dtype)x->dtype);
}

static int64_t row_bytes(const stretch *s, const tp_tensor *t) {
    return t->numel / s->lead.rows * tp_itemsize((tp_dtype)t->dtype);
}

/* The stretch from a place of the list on; false: there is none that it pays to cut. */
static bool find(stretch *s, int64_t tile_bytes, int64_t *tiles) {
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
    int64_t most = 1;
    for (int i = 0; i < s->ncells; i++)
        if (s->cells[i].cut && row_bytes(s, s->cells[i].tensor) > most) most = row_bytes(s, s->cells[i].tensor);
    int64_t rows = tile_bytes * tp_get_num_threads() / most;
    *tiles = s->lead.rows / (rows < LEAST_ROWS ? LEAST_ROWS : rows);
    return *tiles > 1;
}

/* ---- the list of a tile ---- */

/* A tensor that moves on from tile to tile. */
typedef struct {
    tp_tensor *tensor; /* of the tile's note */
    int64_t bytes;     /* of a row; 0: its memory is one tile's */
} moved;

typedef struct {
    stretch *s;
    tp_notes notes;
    tp_storage *made[MOST_TENSORS]; /* by cell, borrowed: of one tile; NULL: the cell's own */
    moved moved[MOST_STEPS];
    int nmoved;
    int64_t rows; /* of a tile at most */
} tile;

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
    if (!c->cut || !c->fresh || storage->data || !slot->born || tp_slot_is_held(slot)) return false;
    for (int i = 0; i < s->ncells; i++)
        if (s->cells[i].tensor->storage == storage && &s->cells[i] != c) return false;
    return slot->uses == uses_in_stretch(s, storage);
}

static int make_passing(tile *t) {
    stretch *s = t->s;
    for (int i = 0; i < s->ncells; i++) {
        if (!is_passing(s, &s->cells[i])) continue;
        size_t bytes = (size_t)(row_bytes(s, s->cells[i].tensor) * t->rows);
        tp_storage *made = tp_storage_new(s->cells[i].tensor->device, bytes);
        int status = made ? tp_notes_add_storage(&t->notes, made, true) : -1;
        tp_storage_release(made); /* the slot has it */
        if (status < 0) return -1;
        t->made[i] = made;
    }
    return 0;
}

/* The tensor of a tile's note for that of a note; `cut` as role_of says. */
static tp_tensor *tensor_of_tile(tile *t, tp_tensor *of, int cut, int ndim) {
    const lead *l = &t->s->lead;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int from = cut ? l->n : l->n - (ndim - of->ndim), count = 0;
    if (cut) sizes[count++] = t->rows;
    for (int d = from < 0 ? 0 : from; d < of->ndim; d++) sizes[count++] = of->sizes[d];
    int64_t step = 1;
    for (int d = count - 1; d >= 0; step *= sizes[d--]) strides[d] = step;
    tp_ints shape = {sizes, count}, steps = {strides, count};
    const cell *c = cell_of(t->s, of);
    tp_storage *made = t->made[c - t->s->cells];
    return made ? tp_new_on_storage(made, shape, steps, 0, (tp_dtype)of->dtype)
                : tp_new_alias(of, shape, steps, of->byte_offset);
}

/* A note's numbers, of a tensor whose leading dimensions are one: `words` has room. */
static tp_value number_of_tile(const tile *t, tp_value given, family f, int64_t *words) {
    int shift = t->s->lead.n - 1;
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
static int note_tile(tile *t, const tp_note *note) {
    family f = family_of(note);
    tp_value args[MOST_ARGS];
    tp_tensor *listed[MOST_LISTED];
    int64_t words[TP_MAX_DIMS + TP_NORM_WORDS];
    int nargs = note->op->info->nargs, count = 0, status = -1, ndim = 0;
    if (f.kind == MAP) ndim = note->args[nargs - 1].tensor->ndim;
    memcpy(args, note->args, (size_t)nargs * sizeof *args);
    if (f.kind != MAP && f.kind != COPY) args[f.number] = number_of_tile(t, args[f.number], f, words);
    for (int a = 0; a < nargs; a++) {
        tp_tensors list = tp_value_tensors(&note->args[a]);
        if (count + list.size > MOST_LISTED) goto done;
        tp_tensor **first = &listed[count];
        for (int64_t k = 0; k < list.size; k++) {
            tp_tensor *of = list.data[k];
            int cut = of ? role_of(t->s, note, f, a, of) : 0;
            tp_tensor *made = of ? tensor_of_tile(t, of, cut, cut || ndim ? ndim : t->s->lead.n + of->ndim) : NULL;
            if (of && !made) goto done;
            listed[count++] = made;
        }
        if (args[a].tag == TP_TENSOR) args[a].tensor = *first;
        if (args[a].tag == TP_TENSORS) args[a].tensors.data = first;
    }
    tp_note *added = tp_notes_add(&t->notes, note->op, note->key, args);
    if (added) added->from = note->from;
    for (int a = 0; added && a < nargs; a++) {
        tp_tensors from = tp_value_tensors(&note->args[a]), to = tp_value_tensors(&added->args[a]);
        for (int64_t k = 0; k < from.size; k++) {
            if (!from.data[k] || role_of(t->s, note, f, a, from.data[k]) != 1) continue;
            bool passes = t->made[cell_of(t->s, from.data[k]) - t->s->cells] != NULL;
            t->moved[t->nmoved++] = (moved){to.data[k], passes ? 0 : row_bytes(t->s, from.data[k])};
        }
    }
    status = added ? 0 : -1;
done:
    for (int i = 0; i < count; i++) tp_release(listed[i]);
    return status;
}

/* ---- running ---- */

static int set_rows(tile *t, int64_t rows) {
    for (int i = 0; i < t->nmoved; i++) {
        tp_tensor *of = t->moved[i].tensor;
        int64_t sizes[TP_MAX_DIMS];
        memcpy(sizes, of->sizes, (size_t)of->ndim * sizeof *sizes);
        sizes[0] = rows;
        if (tp_tensor_set_geometry(of, (tp_ints){sizes, of->ndim}, tp_strides(of)) < 0) return -1;
    }
    const stretch *s = t->s;
    for (int64_t i = 0; i < t->notes.ncalls; i++) {
        family f = family_of(s->notes->calls[s->begin + i]);
        if (f.kind != NORM) continue;
        int64_t all = s->notes->calls[s->begin + i]->args[f.number].ints.data[0]; /* the walk's rows come first */
        ((int64_t *)t->notes.calls[i]->args[f.number].ints.data)[0] = all / s->lead.rows * rows;
    }
    return 0;
}

static int run_tiles(tp_region *r, tile *t, int64_t tiles) {
    int64_t rows = t->s->lead.rows / tiles, more = t->s->lead.rows % tiles;
    for (int64_t i = 0; i < tiles; i++) {
        int64_t here = rows + (i < more);
        if ((i == 0 || i == more) && set_rows(t, here) < 0) return -1;
        for (int64_t at = 0, count; at < t->notes.ncalls; at += count)
            if (tp_run_fused(r, &t->notes, at, &count) < 0) return -1;
        for (int k = 0; k < t->nmoved; k++) t->moved[k].tensor->byte_offset += here * t->moved[k].bytes;
    }
    return 0;
}

/* What the outer list says of its storages, which the tile's list takes over for a while. */
typedef struct {
    uint16_t slot;
    uint8_t later;
} saved;

static void end(tile *t, const saved *before) {
    for (int64_t i = 0; i < t->notes.ncalls; i++) tp_note_free(&t->notes, t->notes.calls[i]);
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        t->notes.slots[i].storage->later = 0;
        tp_storage_release(t->notes.slots[i].storage);
    }
    for (int i = 0; i < t->s->ncells; i++) {
        tp_storage *s = t->s->cells[i].tensor->storage;
        s->slot = before[i].slot;
        s->later = before[i].later;
    }
    tp_free(t->notes.calls, (size_t)t->notes.call_room * sizeof *t->notes.calls);
    tp_free(t->notes.slots, (size_t)t->notes.slot_room * sizeof *t->notes.slots);
}

static int run_stretch(tp_region *r, stretch *s, int64_t tiles) {
    tile t = {.s = s, .rows = tp_divide_up(s->lead.rows, tiles)};
    saved before[MOST_TENSORS];
    for (int i = 0; i < s->ncells; i++)
        before[i] = (saved){s->cells[i].tensor->storage->slot, s->cells[i].tensor->storage->later};
    int status = make_passing(&t);
    for (int i = 0; i < s->ncells && status == 0; i++)
        if (!t.made[i]) status = tp_storage_fill(s->cells[i].tensor->storage);
    t.notes.outer = r->running;
    r->running = &t.notes;
    for (int64_t i = 0; i < s->count && status == 0; i++) status = note_tile(&t, s->notes->calls[s->begin + i]);
    int64_t bytes = 0;
    for (int i = 0; i < s->ncells; i++) bytes += t.made[i] ? 0 : tp_bytes_of(s->cells[i].tensor);
    tp_region_report report = r->report;
    if (status == 0) status = run_tiles(r, &t, tiles);
    r->report = report;
    r->told.kind = TP_PLAN_TILES;
    r->told.moved = bytes;
    r->told.ends = TP_PLAN_SHAPE;
    r->running = t.notes.outer;
    end(&t, before);
    return status;
}

int tp_run_tiled(tp_region *r, tp_notes *n, int64_t at, int64_t *count) {
    if (family_of(n->calls[at]).kind == NO_ROWS) return 1;
    stretch s;
    s.notes = n;
    s.begin = at;
    s.count = s.ncells = 0;
    int64_t tiles;
    if (!find(&s, r->options.tile, &tiles)) return 1;
    *count = s.count;
    r->report.groups++;
    r->report.fused += s.count;
    tp_profile_mark mark = tp_mark_unit(n, at, s.count, "tiles");
    int status = run_stretch(r, &s, tiles);
    tp_profile_leave(mark, status);
    return status;
}
