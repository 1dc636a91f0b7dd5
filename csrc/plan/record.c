/* record.c: the fallback of the key Deferred: which calls wait, and how they are noted (Note [Regions]). */
#include "plan/region.h"

#include "core/alloc.h"
#include "core/lock.h"
#include "core/tls.h"

#include <string.h>
#include <unistd.h>

/* ---- notes ---- */

static int64_t grown(int64_t room, int64_t least) { return room * 2 > least ? room * 2 : least; }

/* Room for one more of a list's items. */
static int reserve(void **items, int64_t count, int64_t *room, size_t size) {
    if (tp_likely(count < *room)) return 0;
    int64_t more = grown(*room, 32);
    void *fresh = tp_alloc((size_t)more * size);
    if (!fresh) return -1;
    if (count) memcpy(fresh, *items, (size_t)count * size);
    tp_free(*items, (size_t)*room * size);
    *items = fresh;
    *room = more;
    return 0;
}

int tp_notes_add_storage(tp_notes *n, tp_storage *s, bool born) {
    if (reserve((void **)&n->slots, n->nslots, &n->slot_room, sizeof *n->slots) < 0) return -1;
    s->slot = (uint16_t)n->nslots;
    s->later = born ? TP_LATER_WRITTEN : 0;
    n->slots[n->nslots++] = (tp_plan_slot){tp_storage_retain(s), 0, born};
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
    bool known = s->slot < n->nslots && n->slots[s->slot].storage == s;
    if (!known && tp_notes_add_storage(n, s, false) < 0) return NULL;
    tp_tensor *own = tp_still(t);
    if (!own) return NULL;
    n->slots[s->slot].uses++;
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

static int64_t most_bytes(void) {
    static int64_t most;
    if (!most) {
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        most = pages > 0 && size > 0 ? (int64_t)pages * size / 4 : INT64_C(1) << 30;
    }
    return most;
}

static int64_t nbytes_of(const tp_tensor *t) { return t->numel * tp_itemsize((tp_dtype)t->dtype); }

static int note(tp_region *r, const tp_op *op, const tp_value *args) {
    int nargs = op->info->nargs;
    tp_notes *n = &r->notes;
    size_t head = rounded(sizeof(tp_note) + (size_t)nargs * sizeof(tp_value)), size = head;
    for (int i = 0; i < nargs; i++) size += rounded(bytes_of_list(&args[i]));
    if (reserve((void **)&n->calls, n->ncalls, &n->call_room, sizeof *n->calls) < 0) return -1;
    tp_note *made = tp_alloc(size);
    if (!made) return -1;
    made->op = op;
    made->size = size;
    for (int i = 0; i < nargs; i++) made->args[i].tag = TP_NONE;
    char *room = (char *)made + head;
    for (int i = 0; i < nargs; i++) {
        bool written = op->info->args[i].is_write;
        int status = own_argument(n, &args[i], written, &made->args[i], room);
        if (status < 0 && args[i].tag == TP_TENSOR) made->args[i].tag = TP_NONE;
        if (status < 0) {
            tp_note_free(n, made);
            return -1;
        }
        room += rounded(bytes_of_list(&args[i]));
    }
    for (int i = 0; i < nargs; i++) {
        if (!op->info->args[i].is_write) continue;
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            if (!list.data[k]) continue;
            list.data[k]->keys |= TP_BIT(Deferred);
            r->bytes += nbytes_of(list.data[k]);
        }
    }
    n->calls[n->ncalls++] = made;
    r->report.calls++;
    if (n->ncalls < TP_MOST_NOTES && n->nslots < TP_MOST_SLOTS && r->bytes < most_bytes()) return 0;
    return tp_region_flush(r, "so much is noted that it has to run");
}

/* ---- which calls wait ---- */

/* Calls `look` for each tensor of the arguments until one gives another result than 0, which is the result. */
static int each_tensor(const tp_op *op, const tp_value *args, int (*look)(tp_tensor *t, bool written, void *context),
                       void *context) {
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            int found = list.data[k] ? look(list.data[k], op->info->args[i].is_write, context) : 0;
            if (tp_unlikely(found)) return found;
        }
    }
    return 0;
}

static bool is_in_the_way(const tp_tensor *t, bool written) {
    return t->storage->later & (written ? (uint8_t)~0 : (uint8_t)~TP_LATER_READ);
}

/* 1: the tensor is worth waiting for, or has to be waited for. */
static int wants_note(tp_tensor *t, bool written, void *region) {
    const tp_region *r = region;
    return nbytes_of(t) >= r->options.smallest || is_in_the_way(t, written);
}

/* What is noted of the tensor runs, where a call now would see that it has not. */
static int settle_tensor(tp_tensor *t, bool written, void *unused TP_UNUSED) {
    return is_in_the_way(t, written) ? tp_settle(t->storage) : 0;
}
static int settle_any(tp_tensor *t, bool written TP_UNUSED, void *unused TP_UNUSED) { return tp_settle(t->storage); }

/* What another region, or nobody any more, has of it. */
static int settle_foreign(tp_tensor *t, bool written TP_UNUSED, void *region) {
    tp_storage *s = t->storage;
    return s->later && !tp_region_has(region, s) ? tp_settle(s) : 0;
}

static bool has_other_threads(void) {
    tp_lock(TP_LOCK_Threads);
    bool others = tp_tls.next || tp_tls.previous;
    tp_unlock(TP_LOCK_Threads);
    return others;
}

/* 1: a tensor from outside is written, which another thread may read through another view of its storage, whose keys
 * say nothing of what is noted. */
static int may_be_seen(tp_tensor *t, bool written, void *region) {
    const tp_region *r = region;
    if (!written || (tp_region_has(r, t->storage) && r->notes.slots[t->storage->slot].born)) return 0;
    return has_other_threads();
}

/* A tensor of which nothing is pending any more is as all others. */
static int forget_key(tp_tensor *t, bool written TP_UNUSED, void *unused TP_UNUSED) {
    if (!t->storage->later) t->keys &= ~TP_BIT(Deferred);
    return 0;
}

static int run_now(const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    tp_at_once_guard guard = tp_at_once();
    return tp_redispatch_boxed(op, below, args, results);
}

static int defer_primitive(tp_region *r, const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    if (each_tensor(op, args, settle_foreign, r) < 0) return -1;
    if (tp_live_key(op, below) == TP_KEY_CPU && tp_can_wait(op) && !each_tensor(op, args, may_be_seen, r)) {
        for (int i = 0; i < op->info->nreturns; i++) results[i].tag = TP_NONE;
        return note(r, op, args);
    }
    if (each_tensor(op, args, settle_tensor, NULL) < 0) return -1;
    return run_now(op, below, args, results);
}

/* Checks, shapes and outputs now; elements later. */
static int run_noting(const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    bool later = tp_tls.later;
    tp_tls.later = true;
    int status = tp_redispatch_boxed(op, below, args, results);
    tp_tls.later = later;
    return status;
}

static int defer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_keyset below = ks & TP_BELOW(Deferred);
    tp_region *r = tp_tls.region;
    if (!r || r->lent || !(tp_tls.include & TP_BIT(Deferred))) {
        if (each_tensor(op, args, settle_any, NULL) < 0) return -1;
        each_tensor(op, args, forget_key, NULL);
        return run_now(op, below, args, results);
    }
    if (op->info->is_primitive) return defer_primitive(r, op, below, args, results);
    r->current = op;
    tp_key key = tp_live_key(op, below & ~TP_BIT(Trace));
    bool shared = key == TP_KEY_CPU && op->shared_keys & TP_BIT(CPU);
    if (shared && each_tensor(op, args, wants_note, r)) return run_noting(op, below, args, results);
    if (shared) return run_now(op, below, args, results);
    bool sees_arguments_only = key < TP_NUM_KEYS && TP_BACKEND_KEYS >> key & 1 && !tp_is_boxed_at(op, key);
    if (sees_arguments_only ? each_tensor(op, args, settle_tensor, NULL) < 0
                            : tp_region_flush(r, "an operator from outside runs") < 0)
        return -1;
    return run_now(op, below, args, results);
}

int tp_defer_load(void) {
    return tp_register_fallback(TP_KEY_Deferred, defer, NULL, NULL, "plan/record.c") > 0 ? 0 : -1;
}
