/* record.c: the fallback of the key Deferred: which calls wait, and how they are noted (Note [Regions]). */
#include "plan/region.h"
#include "plan/tape_parts.h"

#include "core/threads.h"
#include "core/tls.h"

#include <unistd.h>

/* ---- noting ---- */

static int64_t most_bytes(void) {
    static int64_t most;
    if (!most) {
        long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
        most = pages > 0 && size > 0 ? (int64_t)pages * size / 4 : INT64_C(1) << 30;
    }
    return most;
}

static int note(tp_region *r, const tp_op *op, tp_key key, const tp_value *args) {
    tp_notes *n = &r->notes;
    tp_note *made = tp_notes_add(n, op, key, args);
    if (!made) return -1;
    made->from = r->current;
    if (tp_unlikely(tp_is_boxed_at(op, key)) && r->options.line) made->line = r->options.line();
    for (int i = 0; i < op->info->nargs; i++) {
        if (!op->info->args[i].is_write) continue;
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            if (!list.data[k]) continue;
            list.data[k]->keys |= TP_BIT(Deferred);
            r->bytes += tp_bytes_of(list.data[k]);
        }
    }
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
    return tp_bytes_of(t) >= r->options.smallest || is_in_the_way(t, written);
}

static int is_pending(tp_tensor *t, bool written, void *unused TP_UNUSED) { return is_in_the_way(t, written); }

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

/* 1: a tensor from outside is written, which another thread may read through another view of its storage, whose keys
 * say nothing of what is noted. A thread that comes later has it run first (begin_thread). Where the tensor is all that
 * there is of its storage, its own keys say it: a small result, say, which has had its memory from the beginning. */
static int may_be_seen(tp_tensor *t, bool written, void *region) {
    const tp_region *r = region;
    tp_storage *s = t->storage;
    if (!written || (tp_region_has(r, s) && r->notes.slots[s->slot].born)) return 0;
    if (tp_storage_is_sole(s) && !atomic_load_explicit(&s->lent, memory_order_relaxed)) return 0;
    return tp_thread_has_company();
}

/* A tensor of which nothing is pending any more is as all others. */
static int forget_key(tp_tensor *t, bool written TP_UNUSED, void *unused TP_UNUSED) {
    if (!t->storage->later) t->keys &= ~TP_BIT(Deferred);
    return 0;
}

static int settle_each(tp_region *r, const tp_op *op, const tp_value *args,
                       int (*look)(tp_tensor *t, bool written, void *region)) {
    r->settles = true;
    int status = each_tensor(op, args, look, r);
    r->settles = false;
    return status < 0 ? -1 : 0;
}

static int run_now(const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    tp_at_once_guard guard = tp_at_once();
    return tp_redispatch_boxed(op, below, args, results);
}

/* A call of values, which the program may go on without. */
static int spoil_if_failed(const tp_region *r, int status) {
    if (tp_unlikely(status < 0) && r->options.tape) tp_tape_spoil(r->options.tape, "a call has failed");
    return status;
}

/* The same for an operator of the region's, which its tape writes down. */
static int run_whole(tp_region *r, const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    tp_tape *tape = r->options.tape;
    bool written = tp_unlikely(tape != NULL) && tp_tape_call(tape, op, below, args);
    int status = run_now(op, below, args, results);
    if (tp_unlikely(written) && status == 0) tp_tape_gave(tape, op, args, results);
    return spoil_if_failed(r, status);
}

static int defer_primitive(tp_region *r, const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    if (tp_unlikely(r->options.tape != NULL)) tp_tape_call(r->options.tape, op, 0, args);
    if (settle_each(r, op, args, settle_foreign) < 0) return -1;
    tp_key key = tp_live_key(op, below);
    if (tp_backend_joins(key) && tp_can_wait(op) && !each_tensor(op, args, may_be_seen, r)) {
        for (int i = 0; i < op->info->nreturns; i++) results[i].tag = TP_NONE;
        return note(r, op, key, args);
    }
    if (settle_each(r, op, args, settle_tensor) < 0) return -1;
    return spoil_if_failed(r, run_now(op, below, args, results));
}

static int is_on(tp_tensor *t, bool written TP_UNUSED, void *storage) { return t->storage == storage; }

/* A result in memory that is no argument's is new. A larger one's slot says so since it was made; a small one has its
 * memory, of which nobody has seen the contents either. */
static void note_births(tp_region *r, const tp_op *op, const tp_value *args, const tp_value *results) {
    for (int i = 0; i < op->info->nreturns; i++) {
        tp_tensors list = tp_tensors_in(&results[i]);
        for (int64_t k = 0; k < list.size; k++) {
            tp_storage *s = list.data[k] ? list.data[k]->storage : NULL;
            if (!s || !tp_region_has(r, s) || r->notes.slots[s->slot].born) continue;
            r->notes.slots[s->slot].born = !each_tensor(op, args, is_on, s);
        }
    }
}

/* Checks, shapes and outputs now; elements later. `key`: of the backend, whose storages wait. */
static int run_noting(tp_region *r, const tp_op *op, tp_key key, tp_keyset below, const tp_value *args,
                      tp_value *results) {
    uint8_t later = tp_tls.later;
    tp_tls.later = (uint8_t)(key - TP_KEY_CPU + 1);
    int status = tp_redispatch_boxed(op, below, args, results);
    tp_tls.later = later;
    if (status == 0) note_births(r, op, args, results);
    return status;
}

/* This thread's first operator: others may have written to tensors from outside, since they had no company. They have
 * from here on. */
static int begin_thread(void) {
    tp_thread_register();
    tp_tls.include &= ~TP_BIT(Deferred);
    return tp_pending_hooks.settle_all();
}

/* A bool that the program asks an operator for is what it goes one way or the other by. */
static int check_decision(tp_region *r, const tp_op *op, const tp_value *args) {
    if (!tp_reads_bool(op) || !each_tensor(op, args, is_pending, NULL)) return 0;
    r->current = op;
    int status = tp_region_check_whole(r, "a value decides what the program does");
    r->current = NULL;
    return status;
}

/* An operator that is no primitive, in a region that takes calls. */
static int defer_operator(tp_region *r, const tp_op *op, tp_keyset below, const tp_value *args, tp_value *results) {
    tp_key key = tp_live_key(op, below & ~TP_BIT(Trace));
    bool shared = tp_backend_joins(key) && op->shared_keys >> key & 1;
    if (shared && (tp_unlikely(r->options.tape != NULL) || each_tensor(op, args, wants_note, r)))
        return run_noting(r, op, key, below, args, results);
    bool sees_arguments_only = key < TP_NUM_KEYS && TP_BACKEND_KEYS >> key & 1 && !tp_is_boxed_at(op, key);
    if (tp_unlikely(r->options.tell != NULL))
        tp_tell_at_once(r, op, shared ? TP_PLAN_SMALL : sees_arguments_only ? TP_PLAN_KERNEL : TP_PLAN_OUTSIDE);
    if (shared) return run_now(op, below, args, results);
    if (tp_unlikely(r->options.whole) && op->info->tag_bits & TP_TAG_DATA_DEPENDENT_OUTPUT &&
        each_tensor(op, args, is_pending, NULL) && tp_region_check_whole(r, "a value is read") < 0)
        return -1;
    if (!sees_arguments_only && r->options.tape) tp_tape_spoil(r->options.tape, "an operator from outside runs");
    if (sees_arguments_only ? settle_each(r, op, args, settle_tensor) < 0
                            : tp_region_flush(r, "an operator from outside runs") < 0)
        return -1;
    return run_whole(r, op, below, args, results);
}

static int defer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context TP_UNUSED) {
    tp_keyset below = ks & TP_BELOW(Deferred);
    tp_region *r = tp_tls.region;
    if (tp_unlikely(r && r->lent && r->options.tell) && !op->info->is_primitive) tp_tell_at_once(r, op, TP_PLAN_LENT);
    if (tp_unlikely(!r && tp_tls.include & TP_BIT(Deferred)) && begin_thread() < 0) return -1;
    if (!r || r->lent || !(tp_tls.include & TP_BIT(Deferred))) {
        if (each_tensor(op, args, settle_any, NULL) < 0) return -1;
        each_tensor(op, args, forget_key, NULL);
        return run_now(op, below, args, results);
    }
    if (op->info->is_primitive) return defer_primitive(r, op, below, args, results);
    const tp_op *outer = r->current;
    if (tp_unlikely(r->options.whole) && !outer && check_decision(r, op, args) < 0) return -1;
    r->current = op;
    int status = defer_operator(r, op, below, args, results);
    r->current = outer;
    return status;
}

int tp_defer_load(void) {
    return tp_register_fallback(TP_KEY_Deferred, defer, NULL, NULL, "plan/record.c") > 0 ? 0 : -1;
}
