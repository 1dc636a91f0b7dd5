/* notes.c: notes and the storages that they concern (region.h): making one, running one, letting it go. */
#include "Primitives.h"
#include "plan/region.h"

#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>

int tp_plan_reserve(void **items, int64_t count, int64_t *room, size_t size) {
    if (tp_likely(count < *room)) return 0;
    int64_t more = *room ? 2 * *room : 32;
    void *fresh = tp_alloc((size_t)more * size);
    if (!fresh) return -1;
    if (count) memcpy(fresh, *items, (size_t)count * size);
    tp_free(*items, (size_t)*room * size);
    *items = fresh;
    *room = more;
    return 0;
}

int tp_notes_add_storage(tp_notes *n, tp_storage *s, bool born) {
    if (tp_plan_reserve((void **)&n->slots, n->nslots, &n->slot_room, sizeof *n->slots) < 0) return -1;
    s->slot = (uint16_t)n->nslots;
    s->later = born ? TP_LATER_WRITTEN : TP_LATER_READ;
    n->slots[n->nslots++] = (tp_plan_slot){.storage = tp_storage_retain(s), .born = born};
    return 0;
}

static size_t bytes_of_list(const tp_value *v) {
    switch (v->tag) {
    case TP_TENSORS: return sizeof(tp_tensor *) * (size_t)(v->tensors.size > 0 ? v->tensors.size : 0);
    case TP_INTS_: return sizeof(int64_t) * (size_t)(v->ints.size > 0 ? v->ints.size : 0);
    case TP_FLOATS: return sizeof(double) * (size_t)(v->floats.size > 0 ? v->floats.size : 0);
    case TP_BOOLS: return sizeof(bool) * (size_t)(v->bools.size > 0 ? v->bools.size : 0);
    case TP_SCALARS: return sizeof(tp_scalar) * (size_t)(v->scalars.size > 0 ? v->scalars.size : 0);
    case TP_SCALAR: return sizeof(tp_scalar);
    case TP_STR: return strlen(v->str) + 1;
    default: return 0;
    }
}
static size_t rounded(size_t bytes) { return (bytes + 15) & ~(size_t)15; }

/* The same tensor, which nobody else changes, counted at its storage's slot. NULL and the error set on failure. */
static tp_tensor *own_tensor(tp_notes *n, tp_tensor *t, bool written) {
    tp_storage *s = t->storage;
    if (!tp_notes_have(n, s) && tp_notes_add_storage(n, s, false) < 0) return NULL;
    tp_tensor *own = n->shares ? tp_retain(t) : tp_still(t);
    if (!own) return NULL;
    n->slots[s->slot].uses++;
    if (written) n->slots[s->slot].last_write = (int32_t)n->ncalls + 1;
    s->later |= written ? TP_LATER_WRITTEN : TP_LATER_READ;
    return own;
}

/* The slot stays; run.c closes it. */
static void let_go(tp_notes *n, tp_tensor *t) {
    if (!t) return;
    tp_plan_slot *slot = &n->slots[t->storage->slot];
    slot->uses--;
    tp_release(t);
}

void tp_note_free(tp_notes *n, tp_note *note) {
    for (int i = 0; i < note->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&note->args[i]);
        for (int64_t k = 0; k < list.size; k++) let_go(n, list.data[k]);
    }
    free(note->line);
    tp_free(note, note->size);
}

/* One argument as the note's own; what a list or number points to lies at `room`. */
static int own_argument(tp_notes *n, const tp_value *given, bool written, tp_value *own, char *room) {
    size_t bytes = bytes_of_list(given);
    *own = *given;
    switch (given->tag) {
    case TP_TENSOR: return (own->tensor = own_tensor(n, given->tensor, written)) ? 0 : -1;
    case TP_TENSORS: {
        tp_tensor **items = (tp_tensor **)(void *)room;
        own->tensors = (tp_tensors){items, 0};
        for (int64_t i = 0; i < given->tensors.size; i++) {
            tp_tensor *t = given->tensors.data[i];
            items[i] = t ? own_tensor(n, t, written) : NULL;
            if (t && !items[i]) return -1;
            own->tensors.size = i + 1;
        }
        return 0;
    }
    case TP_INTS_: own->ints.data = (int64_t *)(void *)room; break;
    case TP_FLOATS: own->floats.data = (double *)(void *)room; break;
    case TP_BOOLS: own->bools.data = (bool *)room; break;
    case TP_SCALARS: own->scalars.data = (tp_scalar *)(void *)room; break;
    case TP_SCALAR: own->scalar = (tp_scalar *)(void *)room; break;
    case TP_STR: own->str = room; break;
    default: return 0;
    }
    const void *from = given->tag == TP_INTS_     ? (const void *)given->ints.data
                       : given->tag == TP_FLOATS  ? (const void *)given->floats.data
                       : given->tag == TP_BOOLS   ? (const void *)given->bools.data
                       : given->tag == TP_SCALARS ? (const void *)given->scalars.data
                       : given->tag == TP_SCALAR  ? (const void *)given->scalar
                                                  : (const void *)given->str;
    if (bytes) memcpy(room, from, bytes);
    return 0;
}

tp_note *tp_notes_add(tp_notes *n, const tp_op *op, tp_key key, const tp_value *args) {
    int nargs = op->info->nargs;
    size_t head = rounded(sizeof(tp_note) + (size_t)nargs * sizeof(tp_value)), size = head;
    for (int i = 0; i < nargs; i++) size += rounded(bytes_of_list(&args[i]));
    if (tp_plan_reserve((void **)&n->calls, n->ncalls, &n->call_room, sizeof *n->calls) < 0) return NULL;
    tp_note *made = tp_alloc(size);
    if (!made) return NULL;
    made->op = op;
    made->from = NULL;
    made->key = key;
    made->size = size;
    made->line = NULL;
    for (int i = 0; i < nargs; i++) made->args[i].tag = TP_NONE;
    char *room = (char *)made + head;
    for (int i = 0; i < nargs; i++) {
        int status = own_argument(n, &args[i], op->info->args[i].is_write, &made->args[i], room);
        if (status < 0 && args[i].tag == TP_TENSOR) made->args[i].tag = TP_NONE;
        if (status < 0) {
            tp_note_free(n, made);
            return NULL;
        }
        room += rounded(bytes_of_list(&args[i]));
    }
    n->calls[n->ncalls++] = made;
    return made;
}

/* ---- what a note is ---- */

bool tp_note_maps(const tp_note *note) { return note->op == &tp_prims[TP_PRIM_map]; }
bool tp_note_copies(const tp_note *note) { return note->op == &tp_prims[TP_PRIM_copy]; }

tp_tensors tp_note_inputs(const tp_note *note) {
    return tp_value_tensors(&note->args[tp_note_maps(note) ? TP_MAP_LIST : 0]);
}

bool tp_note_folds(const tp_note *note, tp_fold_call *call) {
    static const struct {
        int primitive;
        tp_fold fold;
    } folds[] = {{TP_PRIM_reduce_sum, TP_FOLD_SUM},       {TP_PRIM_reduce_mean, TP_FOLD_MEAN},
                 {TP_PRIM_reduce_nansum, TP_FOLD_NANSUM}, {TP_PRIM_reduce_any, TP_FOLD_ANY},
                 {TP_PRIM_reduce_all, TP_FOLD_ALL},       {TP_PRIM_reduce_count, TP_FOLD_COUNT},
                 {TP_PRIM_reduce_max, TP_FOLD_MAX},       {TP_PRIM_reduce_min, TP_FOLD_MIN},
                 {TP_PRIM_reduce_length, TP_FOLD_LENGTH}, {TP_PRIM_reduce_program, TP_FOLD_PROGRAM}};
    const tp_value *a = note->args;
    for (size_t i = 0; i < TP_COUNTOF(folds); i++) {
        if (note->op != &tp_prims[folds[i].primitive]) continue;
        *call = (tp_fold_call){.fold = folds[i].fold};
        if (call->fold == TP_FOLD_PROGRAM) {
            call->program = a++->i; /* it comes first, and `compute` before the output */
            call->compute = (tp_dtype)a[2].i;
        }
        call->x = a[0].tensor;
        call->dim = a[1].ints;
        const tp_value *out = &a[call->fold == TP_FOLD_PROGRAM ? 3 : 2];
        if (out->tag == TP_TENSOR) call->out = out->tensor;
        bool has_places = call->fold == TP_FOLD_MAX || call->fold == TP_FOLD_MIN;
        if (has_places && a[3].tag == TP_TENSOR) call->at = a[3].tensor;
        return true;
    }
    return false;
}

/* ---- running ---- */

/* A storage's memory is there before the call that is the first to need it. */
static int fill_storages(const tp_note *note) {
    for (int i = 0; i < note->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&note->args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && tp_storage_fill(list.data[k]->storage) < 0) return -1;
    }
    return 0;
}

int tp_note_run(tp_note *note) {
    tp_value no_results[1];
    if (fill_storages(note) < 0) return -1;
    return tp_call_kernel_at(note->op, note->key, (tp_keyset)1 << note->key, note->args, no_results);
}
