/* replay.c: closing a tape and running it (Note [Replay] in tape.h). */
#include "Primitives.h"
#include "plan/tape_parts.h"

#include "core/alloc.h"
#include "core/memory.h"
#include "core/tls.h"
#include "prim/fused.h"

#include <string.h>

/* ---- closing ---- */

static int note_users(tp_tape *t, const tp_note *note) {
    for (int k = 0; k < note->op->info->nargs; k++) {
        tp_tensors list = tp_value_tensors(&note->args[k]);
        for (int64_t j = 0; j < list.size; j++) {
            if (!list.data[j]) continue;
            tape_slot *slot = &t->slots[list.data[j]->storage->slot];
            if (tp_plan_reserve((void **)&slot->users, slot->nusers, &slot->user_room, sizeof *slot->users) < 0)
                return -1;
            slot->users[slot->nusers++] = list.data[j];
        }
    }
    return 0;
}

/* A group computes block by block: what one of its calls needs has its place from the first to the last of them. */
static void stretch_lives(tp_tape *t, int64_t at, int64_t count) {
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        tape_slot *slot = &t->slots[i];
        if (slot->first >= at && slot->first < at + count) slot->first = at;
        if (slot->last >= at && slot->last < at + count) slot->last = at + count - 1;
    }
}

#define MOST_FLAT 8192 /* elements: no threads are wanted, and less than a signal waits for */

/* What a map of few elements is called with, made once. 0 without one: it is called as others are. */
static int make_flat(const tp_note *note, tape_step *step) {
    const tp_value *a = note->args; /* map(int program, Tensor?[] inputs, Scalar[] numbers, ScalarType compute, out) */
    if (note->op != &tp_prims[TP_PRIM_map] || a[4].tensor->numel > MOST_FLAT) return 0;
    if (note->key != TP_KEY_CPU || !tp_shortcut_at(note->op, TP_KEY_CPU)) return 0; /* another kernel is registered */
    tape_flat *flat = tp_alloc(sizeof *flat);
    if (!flat) return -1;
    char *data[TP_MAP_INPUTS + 1];
    if (tp_map_begin(&flat->job, a[0].i, a[1].tensors, a[2].scalars, (tp_dtype)a[3].i, a[4].tensor) < 0) {
        tp_error_clear();
    } else if (flat->job.call.p->loops[a[3].i] && tp_map_lies_flat(&flat->job, data, flat->strides)) {
        flat->loop = flat->job.call.p->loops[a[3].i];
        flat->params = flat->job.call.params;
        flat->count = flat->job.call.p->ninputs + 1;
        flat->numel = a[4].tensor->numel;
        return step->flat = flat, 0;
    }
    tp_free(flat, sizeof *flat);
    return 0;
}

static bool needs_memory(const tape_slot *slot) { return slot->born && !slot->made && !slot->is_result; }

/* Where the operands lie: once the tape's memory is there. */
static void place_operands(const tp_tape *t, tape_flat *flat) {
    for (int i = 0; i < flat->count; i++) {
        const tp_tensor *x = flat->job.tensors[i];
        if (x && !needs_memory(&t->slots[x->storage->slot]))
            flat->operands[i] = (tape_operand){(uintptr_t)x->byte_offset, x->storage->slot};
        else
            flat->operands[i] =
                (tape_operand){(uintptr_t)(x ? tp_data(x) : &flat->job.call.numbers[i - 1]), t->notes.nslots};
    }
}

static int run_flat(const tp_tape *t, const tape_flat *flat) {
    char *data[TP_MAP_INPUTS + 1];
    for (int i = 0; i < flat->count; i++)
        data[i] = (char *)(t->begins[flat->operands[i].slot] + flat->operands[i].offset);
    flat->loop(data, flat->strides, flat->numel, flat->params);
    return tp_status_of_thread();
}

static int note_users_of_step(tp_tape *t, const tape_step *step) {
    for (int64_t k = step->first; step->count > 1 && t->key != TP_KEY_CPU && k < step->first + step->count; k++)
        if (note_users(t, t->notes.calls[k]) < 0) return -1;
    return note_users(t, step->note);
}

/* The steps of the tape: maps that follow each other become one, but for those whose numbers are inputs. */
static int lay_steps(tp_tape *t, const bool *alone) {
    for (int64_t i = 0; i < t->notes.nslots; i++) t->notes.slots[i].born = t->slots[i].born;
    for (int64_t i = 0, count; i < t->ncalls; i += count) {
        bool at_once = t->calls[i].below;
        int64_t joined = at_once ? (count = 1, TP_NOT_JOINED) : tp_join_notes(&t->notes, i, t->ncalls, alone, &count);
        if (joined == TP_JOIN_FAILED) return -1;
        if (count > 1) stretch_lives(t, i, count);
        if (joined == TP_JOINED_TO_NOTHING) continue;
        tp_note *note = t->notes.calls[joined == TP_NOT_JOINED ? i : joined];
        if (tp_plan_reserve((void **)&t->steps, t->nsteps, &t->step_room, sizeof *t->steps) < 0) return -1;
        tape_step *step = &t->steps[t->nsteps++];
        *step = (tape_step){.note = note, .call = at_once ? &t->calls[i] : NULL, .first = i, .count = count};
        if (note_users_of_step(t, step) < 0 || (!at_once && !alone[i] && make_flat(note, step) < 0)) return -1;
    }
    return 0;
}

/* A place of the tape's memory, which is another slot's until that is dead. */
typedef struct {
    size_t offset, size;
    int64_t until; /* the last call that uses it */
} chunk;

/* Offsets by first fit in the order of the calls. */
static int lay_out(tp_tape *t, size_t *offsets) {
    int64_t room = t->notes.nslots + 1, count = 0;
    chunk *places = tp_alloc((size_t)room * sizeof *places);
    if (!places) return -1;
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        const tape_slot *slot = &t->slots[i];
        if (!needs_memory(slot)) continue;
        size_t size = (t->notes.slots[i].storage->nbytes + TP_ALIGNMENT - 1) & ~(size_t)(TP_ALIGNMENT - 1);
        int64_t k = tp_fusion_has(TP_FUSION_PLACES) ? 0 : count;
        while (k < count && (places[k].until >= slot->first || places[k].size != size)) k++;
        if (k == count) {
            places[count++] = (chunk){t->memory_size, size, 0};
            t->memory_size += size;
        }
        places[k].until = slot->last;
        offsets[i] = places[k].offset;
    }
    tp_free(places, (size_t)room * sizeof *places);
    return 0;
}

static int give_memory(tp_tape *t) {
    size_t bytes = (size_t)(t->notes.nslots + 1) * sizeof(size_t), *offsets = tp_alloc(bytes);
    int status = offsets ? lay_out(t, offsets) : -1;
    if (status == 0 && t->memory_size && !(t->memory = tp_storage_new(t->device, t->memory_size))) status = -1;
    for (int64_t i = 0; i < t->notes.nslots && status == 0; i++) {
        tp_storage *s = t->notes.slots[i].storage;
        if (!needs_memory(&t->slots[i]) || !s->nbytes) continue;
        s->data = (char *)t->memory->data + offsets[i];
        s->context = t->memory->context;
    }
    tp_free(offsets, bytes);
    return status;
}

static int give_bindings(tp_tape *t) {
    size_t n = (size_t)t->notes.nslots + 1;
    t->bound = tp_alloc(n * sizeof *t->bound);
    t->begins = tp_alloc(n * sizeof *t->begins);
    t->shifts = tp_alloc(n * sizeof *t->shifts);
    t->moving = tp_alloc(n * sizeof *t->moving);
    if (!t->bound || !t->begins || !t->shifts || !t->moving) return -1;
    memset(t->bound, 0, n * sizeof *t->bound);
    memset(t->begins, 0, n * sizeof *t->begins);
    memset(t->shifts, 0, n * sizeof *t->shifts);
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        const tape_slot *slot = &t->slots[i];
        if (!slot->born && !slot->is_argument) t->bound[i] = slot->actual;
        if (!needs_memory(slot)) t->moving[t->nmoving++] = (int32_t)i;
    }
    return 0;
}

static bool stays(const tp_tape *t, const tape_argument *a) {
    const tape_slot *slot = &t->slots[a->slot];
    for (int64_t k = 0; k < slot->nusers; k++) {
        int64_t low, high;
        tp_tape_extent(slot->users[k], &low, &high);
        if (low < a->low || high > a->high) return true;
    }
    return false;
}

/* Flat steps find their operands by themselves, and no tensor has to move for them. */
static void settle_flat_steps(tp_tape *t) {
    for (int64_t i = 0; i < t->notes.nslots; i++) t->slots[i].nusers = 0;
    for (int64_t i = 0; i < t->nsteps; i++) {
        if (t->steps[i].flat) place_operands(t, t->steps[i].flat);
        else note_users_of_step(t, &t->steps[i]); /* for which there is room */
    }
}

/* Whether a call writes to what the function has not made. */
static bool writes_there(const tp_tape *t) {
    for (int64_t i = 0; i < t->nsteps; i++) {
        const tp_note *note = t->steps[i].note;
        for (int k = 0; k < note->op->info->nargs; k++) {
            tp_tensors list = tp_value_tensors(&note->args[k]);
            for (int64_t j = 0; j < list.size && note->op->info->args[k].is_write; j++)
                if (list.data[j] && !t->slots[list.data[j]->storage->slot].born) return true;
        }
    }
    return false;
}

static const char *cannot_close(const tp_tape *t) {
    for (int64_t i = 0; i < t->nresults; i++)
        if (!t->slots[t->results[i].like->storage->slot].born) return "it gives a tensor that was there before";
    return NULL;
}

bool tp_tape_close(tp_tape *t, const bool *alone) {
    t->changes = tp_kernel_changes();
    const char *why = t->why ? t->why : cannot_close(t);
    if (!why && (lay_steps(t, alone) < 0 || give_memory(t) < 0 || give_bindings(t) < 0)) {
        tp_error_clear();
        why = tp_tape_no_memory;
    }
    for (int64_t i = 0; i < t->notes.nslots && !why; i++) {
        tape_slot *slot = &t->slots[i];
        slot->version = tp_storage_version(slot->actual) - (slot->born ? 0 : slot->version);
        t->notes.slots[i].storage->later = 0;
        if (!slot->born && !slot->is_argument) continue;
        tp_storage_release(slot->actual);
        slot->actual = NULL;
    }
    t->writes = !why && writes_there(t);
    for (int64_t i = 0; i < t->narguments && !why; i++)
        t->slots[t->arguments[i].slot].stays |= stays(t, &t->arguments[i]);
    if (!why) settle_flat_steps(t);
    if (why) tp_tape_spoil(t, why);
    return !why;
}

/* The steps go, and the notes that calls were joined to. */
static void undo_steps(tp_tape *t) {
    for (int64_t i = 0; i < t->nsteps; i++) tp_free(t->steps[i].flat, sizeof *t->steps[i].flat);
    t->nsteps = 0;
    while (t->notes.ncalls > t->ncalls) tp_note_free(&t->notes, t->notes.calls[--t->notes.ncalls]);
    for (int64_t i = 0; i < t->notes.nslots; i++) t->slots[i].nusers = 0;
    tp_storage_release(t->memory);
    t->memory = NULL;
    t->memory_size = 0;
}

static int join_anew(tp_tape *t) {
    size_t room = (size_t)t->ncalls + 1;
    bool *alone = tp_alloc(room);
    if (!alone) return -1;
    memset(alone, 0, room);
    undo_steps(t);
    for (int64_t i = 0; i < t->notes.nslots; i++) t->notes.slots[i].storage->later = TP_LATER_READ | TP_LATER_WRITTEN;
    int status = lay_steps(t, alone);
    for (int64_t i = 0; i < t->notes.nslots; i++) t->notes.slots[i].storage->later = 0;
    tp_free(alone, room);
    if (status < 0 || give_memory(t) < 0) {
        t->why = tp_tape_no_memory;
        return -1;
    }
    for (int64_t i = 0; i < t->narguments; i++) t->slots[t->arguments[i].slot].stays |= stays(t, &t->arguments[i]);
    settle_flat_steps(t);
    return 0;
}

int tp_tape_renew(tp_tape *t) {
    int64_t changes = tp_kernel_changes();
    if (tp_likely(t->changes == changes) || t->runs) return 0;
    if (t->why) return tp_fail(TP_RuntimeError, "a saved plan cannot be run: %s", t->why);
    if (join_anew(t) < 0) return -1;
    t->changes = changes;
    return 0;
}

/* ---- running ---- */

/* The slot's tensors lie in the storage, which others keep, until they are back. */
static void move_users(tape_slot *slot, tp_storage *to, int64_t shift) {
    for (int64_t k = 0; k < slot->nusers; k++) {
        slot->users[k]->storage = to;
        slot->users[k]->byte_offset += shift;
    }
}

/* The slot's operands, too, lie in what it is bound to. */
static void move_to_bound(tp_tape *t, int32_t slot) {
    t->begins[slot] = (uintptr_t)t->bound[slot]->data + (uintptr_t)t->shifts[slot];
    move_users(&t->slots[slot], t->bound[slot], t->shifts[slot]);
}

/* What was apart is apart: two arguments, and one and what was there before. */
static bool are_apart(const tp_tape *t, tp_tensor *const *arguments) {
    for (int64_t i = 0; i < t->narguments; i++) {
        const tp_storage *s = arguments[i]->storage;
        for (int64_t k = 0; k < i; k++)
            if (t->arguments[i].slot != t->arguments[k].slot && s == arguments[k]->storage) return false;
        for (int64_t k = 0; t->writes && k < t->nmoving; k++)
            if (!t->slots[t->moving[k]].is_argument && t->bound[t->moving[k]] == s) return false;
    }
    return true;
}

/* What was there before the calls is written to without their wrappers, which would refuse or copy first. */
static bool may_be_written(const tp_tape *t) {
    for (int64_t k = 0; t->writes && k < t->nmoving; k++) {
        const tp_storage *s = t->bound[t->moving[k]];
        if (s && s->writes != TP_WRITES_GO) return false;
    }
    return true;
}

/* 1: the arguments do not lie as they did. */
static int bind_arguments(tp_tape *t, tp_tensor *const *arguments) {
    for (int64_t i = 0; i < t->narguments; i++) {
        const tape_argument *a = &t->arguments[i];
        tp_storage *s = arguments[i]->storage;
        int64_t shift = arguments[i]->byte_offset - a->byte_offset;
        if (tp_settle(s) < 0) return -1;
        if (t->bound[a->slot] ? t->bound[a->slot] != s || t->shifts[a->slot] != shift
                              : t->slots[a->slot].stays && shift)
            return 1;
        t->bound[a->slot] = s;
        t->shifts[a->slot] = shift;
    }
    return are_apart(t, arguments) && may_be_written(t) ? 0 : 1;
}

static int bind_results(tp_tape *t) {
    for (int64_t i = 0; i < t->nmoving; i++) {
        int32_t at = t->moving[i];
        const tape_slot *slot = &t->slots[at];
        if (!slot->born || slot->made) continue;
        t->bound[at] = tp_storage_new(t->device, t->notes.slots[at].storage->nbytes);
        if (!t->bound[at]) return -1;
    }
    return 0;
}

/* What an operator has given is where the next calls look for it. */
static void bind_made(tp_tape *t, const tape_call *call, const tp_op *op, tp_value *results) {
    int64_t at = call->made;
    for (int i = 0; i < op->info->nreturns; i++) {
        tp_value *v = &results[i];
        tp_tensors list = tp_tensors_in(v);
        for (int64_t k = 0; k < list.size; k++) {
            if (!list.data[k] || at >= call->made + call->nmade) continue;
            int32_t slot = t->made[at++];
            if (!t->slots[slot].made || t->bound[slot]) continue;
            t->bound[slot] = tp_storage_retain(list.data[k]->storage);
            move_to_bound(t, slot);
        }
        tp_value_release(v);
    }
}

static int run_note(const tp_tape *t, tp_note *note, tp_value *results) {
    return tp_call_kernel_at(note->op, t->key, (tp_keyset)1 << t->key, note->args, results);
}

/* The calls of a step that the device has no kernel for. */
static int run_apart(const tp_tape *t, const tape_step *step, tp_value *results) {
    int status = 0;
    for (int64_t i = step->first; i < step->first + step->count && status == 0; i++)
        status = run_note(t, t->notes.calls[i], results);
    return status;
}

static int run_calls(tp_tape *t) {
    tp_value results[TP_TAPE_RETURNS];
    for (int64_t i = 0; i < t->nsteps; i++) {
        tp_note *note = t->steps[i].note;
        const tape_call *call = t->steps[i].call;
        int status = t->steps[i].flat ? run_flat(t, t->steps[i].flat)
                     : call           ? tp_redispatch_boxed(note->op, call->below, note->args, results)
                                      : run_note(t, note, results);
        if (tp_unlikely(status < 0) && t->steps[i].count > 1 && tp_take_decline())
            status = run_apart(t, &t->steps[i], results);
        if (tp_unlikely(status < 0)) return -1;
        if (call) bind_made(t, call, note->op, results);
    }
    return 0;
}

static void raise_version(const tape_slot *slot, tp_storage *s) {
    if (!slot->version) return;
    if (slot->born) atomic_store_explicit(&s->version, slot->version, memory_order_relaxed);
    else atomic_fetch_add_explicit(&s->version, slot->version, memory_order_relaxed);
}

static int make_results(const tp_tape *t, tp_tensor **results) {
    for (int64_t i = 0; i < t->nresults; i++) {
        const tp_tensor *like = t->results[i].like;
        tp_storage *s = t->bound[like->storage->slot];
        results[i] = tp_new_on_storage(s, tp_sizes(like), tp_strides(like), like->byte_offset, (tp_dtype)like->dtype);
        if (results[i]) continue;
        while (i--) tp_release(results[i]);
        return -1;
    }
    return 0;
}

static int run_bound(tp_tape *t, tp_tensor **results) {
    for (int64_t i = 0; i < t->nmoving; i++) {
        int32_t at = t->moving[i];
        if (t->bound[at]) move_to_bound(t, at);
    }
    int status = run_calls(t);
    for (int64_t i = 0; i < t->nmoving; i++) {
        int32_t at = t->moving[i];
        if (!t->bound[at]) continue;
        move_users(&t->slots[at], t->notes.slots[at].storage, -t->shifts[at]);
        if (status == 0) raise_version(&t->slots[at], t->bound[at]);
    }
    return status == 0 ? make_results(t, results) : -1;
}

/* What was bound for one run; what was there before stays. */
static void unbind(tp_tape *t) {
    for (int64_t i = 0; i < t->nmoving; i++) {
        int32_t at = t->moving[i];
        const tape_slot *slot = &t->slots[at];
        if (!slot->born && !slot->is_argument) continue;
        if (slot->born) tp_storage_release(t->bound[at]);
        t->bound[at] = NULL;
        t->shifts[at] = 0;
    }
}

bool tp_tape_fits(tp_tape *t, tp_tensor *const *arguments) {
    if (t->runs) return false;
    int status = bind_arguments(t, arguments);
    if (status < 0) tp_error_clear();
    unbind(t);
    return status == 0;
}

bool tp_tape_writes(const tp_tape *t) { return t->writes; }

int tp_tape_run(tp_tape *t, tp_tensor *const *arguments, tp_tensor **results) {
    if (t->runs) return 1;
    t->runs = true;
    tp_at_once_guard guard = tp_at_once();
    int status = bind_arguments(t, arguments);
    if (status == 0) status = bind_results(t);
    if (status == 0) status = run_bound(t, results);
    unbind(t);
    t->runs = false;
    return status;
}

/* ---- numbers ---- */

void tp_tape_set_number(tp_tape *t, const tp_tape_number *place, double value) {
    *tp_tape_float_at(&t->notes.calls[place->call]->args[place->argument], place->place) = value;
}
