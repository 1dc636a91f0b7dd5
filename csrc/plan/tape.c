/* tape.c: tapes: what a call is written down as, and how two calls are compared (Note [Replay]). */
#include "plan/tape_parts.h"

#include "core/alloc.h"
#include "dispatch/key.h"

#include <stdio.h>
#include <string.h>

const char tp_tape_no_memory[] = "there is no memory to write it down";

#define MOST_BYTES (INT64_C(64) << 20) /* that the call makes: what it keeps while it is written down, and after */

tp_tape *tp_tape_new(tp_device device) {
    tp_tape *t = tp_alloc(sizeof *t);
    if (t) *t = (tp_tape){.device = device, .key = tp_backend_key((tp_device_type)device.type), .parted = -1};
    return t;
}

void tp_tape_tell(tp_tape *t, void (*wrote)(void *context, int64_t call), void *context) {
    t->wrote = wrote;
    t->context = context;
}

static void forget_storages(tp_tape *t) {
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        tp_storage_release(t->slots[i].actual);
        t->slots[i].actual = NULL;
    }
    tp_free(t->buckets, (size_t)t->nbuckets * sizeof *t->buckets);
    t->buckets = NULL;
    t->nbuckets = 0;
}

void tp_tape_free(tp_tape *t) {
    if (!t) return;
    forget_storages(t);
    for (int64_t i = 0; i < t->nresults; i++) tp_release(t->results[i].like);
    for (int64_t i = 0; i < t->notes.ncalls; i++) tp_note_free(&t->notes, t->notes.calls[i]);
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        tp_free(t->slots[i].users, (size_t)t->slots[i].user_room * sizeof *t->slots[i].users);
        tp_storage_release(t->notes.slots[i].storage);
    }
    tp_free(t->notes.calls, (size_t)t->notes.call_room * sizeof *t->notes.calls);
    tp_free(t->notes.slots, (size_t)t->notes.slot_room * sizeof *t->notes.slots);
    tp_free(t->slots, (size_t)t->slot_room * sizeof *t->slots);
    tp_free(t->calls, (size_t)t->call_room * sizeof *t->calls);
    tp_free(t->arguments, (size_t)t->argument_room * sizeof *t->arguments);
    tp_free(t->results, (size_t)t->result_room * sizeof *t->results);
    tp_free(t->made, (size_t)t->made_room * sizeof *t->made);
    size_t n = (size_t)t->notes.nslots + 1;
    tp_free(t->bound, n * sizeof *t->bound);
    tp_free(t->begins, n * sizeof *t->begins);
    tp_free(t->shifts, n * sizeof *t->shifts);
    tp_free(t->moving, n * sizeof *t->moving);
    for (int64_t i = 0; i < t->nsteps; i++) tp_free(t->steps[i].flat, sizeof *t->steps[i].flat);
    tp_free(t->steps, (size_t)t->step_room * sizeof *t->steps);
    tp_storage_release(t->memory);
    tp_free(t, sizeof *t);
}

void tp_tape_spoil(tp_tape *t, const char *why) {
    if (!t->why) t->why = why;
    for (int64_t i = 0; i < t->notes.nslots; i++) { /* the call goes on, and needs its memory */
        tp_storage_release(t->slots[i].actual);
        t->slots[i].actual = NULL;
    }
}

const char *tp_tape_spoiled(const tp_tape *t) { return t->why; }
int64_t tp_tape_calls(const tp_tape *t) { return t->ncalls; }

/* ---- slots ---- */

static int64_t hashed(const tp_tape *t, const tp_storage *s) {
    return (int64_t)(((uintptr_t)s >> 6) * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (t->nbuckets - 1);
}

static int rehash(tp_tape *t) {
    int64_t more = t->nbuckets ? 4 * t->nbuckets : 256;
    int32_t *fresh = tp_alloc((size_t)more * sizeof *fresh);
    if (!fresh) return -1;
    memset(fresh, 0, (size_t)more * sizeof *fresh);
    tp_free(t->buckets, (size_t)t->nbuckets * sizeof *t->buckets);
    t->buckets = fresh;
    t->nbuckets = more;
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        int64_t at = hashed(t, t->slots[i].actual);
        while (fresh[at]) at = (at + 1) & (more - 1);
        fresh[at] = (int32_t)i + 1;
    }
    return 0;
}

bool tp_tape_has(const tp_tape *t, const tp_storage *s) {
    for (int64_t at = t->nbuckets && !t->why ? hashed(t, s) : 0; t->nbuckets && !t->why && t->buckets[at];
         at = (at + 1) & (t->nbuckets - 1))
        if (t->slots[t->buckets[at] - 1].actual == s) return true;
    return false;
}

static int add_slot(tp_tape *t, tp_storage *s) {
    tp_notes *n = &t->notes;
    if (tp_plan_reserve((void **)&t->slots, n->nslots, &t->slot_room, sizeof *t->slots) < 0) return -1;
    tp_storage *place = tp_storage_from_blob(s->device, NULL, s->nbytes, NULL, NULL);
    if (!place) return -1;
    int status = tp_notes_add_storage(n, place, false);
    tp_storage_release(place);
    if (status < 0) return -1;
    t->slots[n->nslots - 1] =
        (tape_slot){.actual = tp_storage_retain(s), .version = tp_storage_version(s), .first = -1};
    return 0;
}

/* The storage's slot, a new one if it has none; -1 and the error set. */
static int64_t slot_of(tp_tape *t, tp_storage *s) {
    if (2 * (t->notes.nslots + 1) > t->nbuckets && rehash(t) < 0) return -1;
    int64_t at = hashed(t, s);
    for (; t->buckets[at]; at = (at + 1) & (t->nbuckets - 1))
        if (t->slots[t->buckets[at] - 1].actual == s) return t->buckets[at] - 1;
    if (add_slot(t, s) < 0) return -1;
    t->buckets[at] = (int32_t)t->notes.nslots;
    return t->notes.nslots - 1;
}

/* The tensor over its slot's place in the tape. */
static tp_tensor *over_place(tp_tape *t, const tp_tensor *of) {
    int64_t slot = slot_of(t, of->storage);
    tp_tensor *own = slot < 0 ? NULL : tp_still(of);
    if (!own) return NULL;
    t->slots[slot].is_number |= (of->flags & TP_FLAG_WRAPPED_NUMBER) != 0;
    tp_storage_release(own->storage);
    own->storage = tp_storage_retain(t->notes.slots[slot].storage);
    own->keys &= ~TP_BIT(Deferred);
    return own;
}

/* ---- calls ---- */

static void free_copies(tp_value *args, int nargs) {
    for (int i = 0; i < nargs; i++) {
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) tp_release(list.data[k]);
        if (args[i].tag == TP_TENSORS) tp_free((void *)list.data, (size_t)list.size * sizeof *list.data);
    }
}

static int copy_argument(tp_tape *t, const tp_value *given, tp_value *own) {
    *own = *given;
    if (given->tag == TP_TENSOR) return (own->tensor = over_place(t, given->tensor)) ? 0 : (own->tag = TP_NONE, -1);
    if (given->tag != TP_TENSORS) return 0;
    int64_t size = given->tensors.size > 0 ? given->tensors.size : 0;
    tp_tensor **items = tp_alloc((size_t)size * sizeof *items + 1);
    if (!items) return own->tag = TP_NONE, -1;
    memset(items, 0, (size_t)size * sizeof *items);
    own->tensors = (tp_tensors){items, size};
    for (int64_t k = 0; k < size; k++)
        if (given->tensors.data[k] && !(items[k] = over_place(t, given->tensors.data[k]))) return -1;
    return 0;
}

/* Whether the argument is where a primitive's result goes, and nothing else: by its name, what is written in its place
 * has another one (tests/dispatch/test_primitives.py). */
static bool is_output(const tp_argument *a) {
    static const char *const read_too[] = {"a", "b", "c", "state", "running_mean", "running_var"};
    for (size_t i = 0; i < TP_COUNTOF(read_too); i++)
        if (strcmp(a->name, read_too[i]) == 0) return false;
    return a->is_write && a->kwarg_only;
}

/* What a note reads and writes: the slots' first call, and whether that reads. */
static void look_at_slots(tp_tape *t, const tp_note *note, int64_t at) {
    for (int writes = 0; writes < 2; writes++)
        for (int i = 0; i < note->op->info->nargs; i++) {
            const tp_argument *a = &note->op->info->args[i];
            tp_tensors list = tp_value_tensors(&note->args[i]);
            for (int64_t k = 0; k < list.size && is_output(a) == writes; k++) {
                if (!list.data[k]) continue;
                tape_slot *slot = &t->slots[list.data[k]->storage->slot];
                if (slot->first < 0) {
                    slot->reads_first = !writes && !slot->made;
                    slot->first = at;
                    if (writes) t->bytes += (int64_t)list.data[k]->storage->nbytes;
                }
                slot->last = at;
            }
        }
}

static bool is_plain(const tp_tape *t, const tp_tensor *x) {
    return !(x->keys & (TP_NO_MEMORY | TP_PENDING_MATH)) && tp_device_equal(x->device, t->device);
}

static const char *why_not(const tp_tape *t, const tp_op *op, const tp_value *args) {
    if (op->info->tag_bits & (TP_TAG_DATA_DEPENDENT_OUTPUT | TP_TAG_DYNAMIC_OUTPUT_SHAPE))
        return "a value is read, or a shape depends on one";
    for (const char *const *tag = op->info->tags; tag && *tag; tag++)
        if (strcmp(*tag, "nondeterministic_seeded") == 0) return "random numbers are drawn";
    if (op->info->nreturns > TP_TAPE_RETURNS) return "an operator gives very many results";
    for (int i = 0; i < op->info->nargs; i++) {
        if (args[i].tag == TP_GENERATOR || args[i].tag == TP_STORAGE || args[i].tag == TP_STREAM)
            return "an operator takes a generator, a storage or a stream";
        tp_tensors list = tp_value_tensors(&args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            if (list.data[k] && !is_plain(t, list.data[k])) return "a tensor is of another layout or device";
        }
    }
    return NULL;
}

static void spoil_at(tp_tape *t, const tp_op *op, const char *why) {
    char name[128];
    snprintf(t->text, sizeof t->text, "%s: %s", tp_op_name(op, name), why);
    tp_tape_spoil(t, t->text);
}

/* Whether all tensors are Meta: a shape is looked at, and nothing computed. */
static bool is_of_meta(const tp_value *values, int count) {
    int64_t tensors = 0;
    for (int i = 0; i < count; i++) {
        const tp_value *v = &values[i];
        tp_tensors list = tp_tensors_in(v);
        for (int64_t k = 0; k < list.size; k++) {
            if (!list.data[k]) continue;
            if (list.data[k]->device.type != TP_DEVICE_META) return false;
            tensors++;
        }
    }
    return tensors > 0;
}

bool tp_tape_call(tp_tape *t, const tp_op *op, tp_keyset below, const tp_value *args) {
    if (t->why || is_of_meta(args, op->info->nargs)) return false;
    const char *why = why_not(t, op, args);
    if (why) return spoil_at(t, op, why), false;
    int nargs = op->info->nargs;
    tp_value own[nargs + 1];
    memset(own, 0, sizeof own); /* TP_NONE */
    int status = 0;
    for (int i = 0; status == 0 && i < nargs; i++) status = copy_argument(t, &args[i], &own[i]);
    if (status == 0) status = tp_plan_reserve((void **)&t->calls, t->notes.ncalls, &t->call_room, sizeof *t->calls);
    if (status == 0 && !tp_notes_add(&t->notes, op, t->key, own)) status = -1;
    free_copies(own, nargs);
    if (status < 0) {
        tp_error_clear(); /* the call itself goes on */
        tp_tape_spoil(t, tp_tape_no_memory);
        return false;
    }
    int64_t at = t->notes.ncalls - 1;
    t->calls[at] = (tape_call){.below = below, .made = (int32_t)t->nmade};
    t->ncalls = at + 1;
    if (t->wrote) t->wrote(t->context, at);
    look_at_slots(t, t->notes.calls[at], at);
    if (t->bytes > MOST_BYTES || t->notes.ncalls >= TP_MOST_NOTES || t->notes.nslots >= TP_MOST_SLOTS)
        tp_tape_spoil(t, "it makes so much that it is better followed");
    return !t->why;
}

static int write_result(tp_tape *t, const tp_tensor *result) {
    int64_t before = t->notes.nslots, slot = slot_of(t, result->storage);
    if (slot < 0 || tp_plan_reserve((void **)&t->made, t->nmade, &t->made_room, sizeof *t->made) < 0) return -1;
    if (t->notes.nslots > before)
        t->slots[slot] = (tape_slot){
            .actual = t->slots[slot].actual, .made = true, .first = t->notes.ncalls - 1, .last = t->notes.ncalls - 1};
    if (t->notes.nslots > before) t->bytes += (int64_t)result->storage->nbytes;
    t->made[t->nmade++] = (int32_t)slot;
    return 0;
}

void tp_tape_extent(const tp_tensor *t, int64_t *low, int64_t *high) {
    int64_t item = tp_itemsize((tp_dtype)t->dtype);
    *low = *high = t->byte_offset;
    if (t->numel == 0) return;
    for (int d = 0; d < t->ndim; d++) {
        int64_t way = t->strides[d] * (t->sizes[d] - 1) * item;
        *(way < 0 ? low : high) += way;
    }
    *high += item;
}

static bool is_as_before(const tp_tensor *t, const tp_tensor *noted) {
    return t->ndim == noted->ndim && t->byte_offset == noted->byte_offset &&
           memcmp(t->sizes, noted->sizes, sizeof *t->sizes * t->ndim) == 0 &&
           memcmp(t->strides, noted->strides, sizeof *t->strides * t->ndim) == 0;
}

/* Whether the operator has left its arguments the sizes and memory that they had. */
static bool leaves_geometry(const tp_tape *t, const tp_op *op, const tp_value *args) {
    const tp_note *note = t->notes.calls[t->notes.ncalls - 1];
    for (int i = 0; i < op->info->nargs; i++) {
        tp_tensors given = tp_value_tensors(&args[i]), noted = tp_value_tensors(&note->args[i]);
        for (int64_t k = 0; k < given.size; k++) {
            if (!given.data[k]) continue;
            const tape_slot *slot = &t->slots[noted.data[k]->storage->slot];
            if (given.data[k]->storage != slot->actual || !is_as_before(given.data[k], noted.data[k])) return false;
            if (given.data[k]->storage->nbytes != noted.data[k]->storage->nbytes) return false;
        }
    }
    return true;
}

void tp_tape_gave(tp_tape *t, const tp_op *op, const tp_value *args, const tp_value *results) {
    if (is_of_meta(results, op->info->nreturns)) { /* a factory's: it is as if it had not been called */
        tp_note_free(&t->notes, t->notes.calls[t->ncalls - 1]);
        t->notes.ncalls = --t->ncalls;
        return;
    }
    if (!t->why && !leaves_geometry(t, op, args)) spoil_at(t, op, "an operator gives a tensor another size or memory");
    for (int i = 0; i < op->info->nreturns && !t->why; i++) {
        const tp_value *v = &results[i];
        if (v->tag == TP_NONE) continue;
        if (v->tag != TP_TENSOR && v->tag != TP_TENSOR_SEQ) {
            spoil_at(t, op, "a value is read");
            return;
        }
        tp_tensors list = tp_tensors_in(v);
        for (int64_t k = 0; k < list.size && !t->why; k++) {
            if (list.data[k] && !is_plain(t, list.data[k])) spoil_at(t, op, "a tensor is of another layout or device");
            else if (list.data[k] && write_result(t, list.data[k]) < 0)
                tp_error_clear(), tp_tape_spoil(t, tp_tape_no_memory);
        }
    }
    if (!t->why) t->calls[t->notes.ncalls - 1].nmade = (int32_t)t->nmade - t->calls[t->notes.ncalls - 1].made;
}

int tp_tape_argument(tp_tape *t, const tp_tensor *argument) {
    int64_t slot = slot_of(t, argument->storage);
    if (slot < 0 || tp_plan_reserve((void **)&t->arguments, t->narguments, &t->argument_room, sizeof *t->arguments) < 0)
        return -1;
    t->slots[slot].is_argument = true;
    tape_argument *a = &t->arguments[t->narguments++];
    *a = (tape_argument){.slot = (int32_t)slot, .byte_offset = argument->byte_offset};
    tp_tape_extent(argument, &a->low, &a->high);
    return 0;
}

int tp_tape_result(tp_tape *t, const tp_tensor *result) {
    if (t->why) return 0;
    if (result->keys & (TP_NO_MEMORY | TP_PENDING_MATH) || !tp_tape_has(t, result->storage)) {
        tp_tape_spoil(t, "a result was not computed by its calls");
        return 0;
    }
    if (tp_plan_reserve((void **)&t->results, t->nresults, &t->result_room, sizeof *t->results) < 0) return -1;
    tp_tensor *like = over_place(t, result);
    if (!like) return -1;
    tape_slot *slot = &t->slots[like->storage->slot];
    slot->is_result = true;
    slot->results++;
    t->results[t->nresults++] = (tape_result){like};
    return 0;
}

/* ---- comparing ---- */

/* By how much the tensors of an argument's storage lie elsewhere than in the other tape: where it is another view. */
static int64_t shift_of(const tp_tape *t, const tp_storage *place) {
    const tape_slot *slot = &t->slots[place->slot];
    for (int64_t i = 0; slot->is_argument && i < t->narguments; i++)
        if (t->arguments[i].slot == place->slot) return t->arguments[i].byte_offset;
    return 0;
}

static bool same_tensor(const tp_tape *t, const tp_tensor *a, const tp_tape *before, const tp_tensor *b) {
    if (!a || !b) return a == b;
    return a->storage->slot == b->storage->slot && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->sizes, b->sizes, sizeof *a->sizes * a->ndim) == 0 &&
           memcmp(a->strides, b->strides, sizeof *a->strides * a->ndim) == 0 &&
           a->byte_offset - shift_of(t, a->storage) == b->byte_offset - shift_of(before, b->storage);
}

static bool same_scalar(const tp_scalar *a, const tp_scalar *b) {
    if (a->kind != b->kind) return false;
    if (a->kind == TP_SCALAR_BOOL) return a->b == b->b;
    return memcmp(&a->i, &b->i, a->kind == TP_SCALAR_COMPLEX ? sizeof a->c : sizeof a->i) == 0;
}

/* The number at a place of a value, where it is a float; NULL: it is something else. */
double *tp_tape_float_at(const tp_value *v, int64_t place) {
    switch (v->tag) {
    case TP_FLOAT: return (double *)&v->f;
    case TP_FLOATS: return (double *)&v->floats.data[place];
    case TP_SCALAR: return v->scalar->kind == TP_SCALAR_FLOAT ? (double *)&v->scalar->f : NULL;
    case TP_SCALARS: return v->scalars.data[place].kind == TP_SCALAR_FLOAT ? (double *)&v->scalars.data[place].f : NULL;
    default: return NULL;
    }
}

typedef struct {
    tp_tape_number *numbers;
    int room, count;
} differences;

static bool differs_by_numbers(const tp_value *a, const tp_value *b, int64_t call, int argument, differences *d) {
    int64_t places = a->tag == TP_FLOATS ? a->floats.size : a->tag == TP_SCALARS ? a->scalars.size : 1;
    for (int64_t k = 0; k < places; k++) {
        bool scalars = a->tag == TP_SCALAR || a->tag == TP_SCALARS;
        const tp_scalar *x = a->tag == TP_SCALARS ? &a->scalars.data[k] : a->scalar;
        const tp_scalar *y = a->tag == TP_SCALARS ? &b->scalars.data[k] : b->scalar;
        if (scalars && same_scalar(x, y)) continue;
        const double *p = tp_tape_float_at(a, k), *q = tp_tape_float_at(b, k);
        if (p && q && memcmp(p, q, sizeof *p) == 0) continue;
        if (!p || !q || d->count == d->room) return false;
        d->numbers[d->count++] = (tp_tape_number){call, argument, (int)k, *q, *p};
    }
    return true;
}

static bool same_value(const tp_tape *t, const tp_value *a, const tp_tape *before, const tp_value *b, int64_t call,
                       int argument, differences *d) {
    if (a->tag != b->tag) return false;
    switch (a->tag) {
    case TP_NONE: return true;
    case TP_TENSOR: return same_tensor(t, a->tensor, before, b->tensor);
    case TP_TENSORS:
        for (int64_t k = 0; k < a->tensors.size && a->tensors.size == b->tensors.size; k++)
            if (!same_tensor(t, a->tensors.data[k], before, b->tensors.data[k])) return false;
        return a->tensors.size == b->tensors.size;
    case TP_FLOATS: return a->floats.size == b->floats.size && differs_by_numbers(a, b, call, argument, d);
    case TP_SCALARS: return a->scalars.size == b->scalars.size && differs_by_numbers(a, b, call, argument, d);
    case TP_FLOAT:
    case TP_SCALAR: return differs_by_numbers(a, b, call, argument, d);
    case TP_BOOL_: return a->b == b->b;
    case TP_STR: return strcmp(a->str, b->str) == 0;
    case TP_INTS_:
        return a->ints.size == b->ints.size &&
               (a->ints.size <= 0 || memcmp(a->ints.data, b->ints.data, sizeof(int64_t) * (size_t)a->ints.size) == 0);
    case TP_BOOLS:
        return a->bools.size == b->bools.size &&
               (a->bools.size <= 0 || memcmp(a->bools.data, b->bools.data, (size_t)a->bools.size) == 0);
    case TP_DEVICE: return tp_device_equal(a->device, b->device);
    default: return a->i == b->i;
    }
}

static bool same_made(const tp_tape *t, const tp_tape *before, int64_t i) {
    const tape_call *a = &t->calls[i], *b = &before->calls[i];
    return a->nmade == b->nmade &&
           (!a->nmade || memcmp(&t->made[a->made], &before->made[b->made], (size_t)a->nmade * sizeof *t->made) == 0);
}

static bool same_call(tp_tape *t, const tp_tape *before, int64_t i, differences *d, char *what, size_t size) {
    const tp_note *a = t->notes.calls[i], *b = before->notes.calls[i];
    char name[128], other[128];
    tp_op_name(a->op, name);
    t->parted = i;
    if (a->op != b->op || t->calls[i].below != before->calls[i].below || !same_made(t, before, i)) {
        snprintf(what, size, "call %lld is %s, and was %s", (long long)i, name, tp_op_name(b->op, other));
        return false;
    }
    for (int k = 0; k < a->op->info->nargs; k++) {
        if (same_value(t, &a->args[k], before, &b->args[k], i, k, d)) continue;
        snprintf(what, size, "the argument '%s' of call %lld, %s, is another one", a->op->info->args[k].name,
                 (long long)i, name);
        return false;
    }
    t->parted = -1;
    return true;
}

/* Whether both are the same Python number, which each call makes a tensor of. */
static bool are_one_number(const tape_slot *a, const tape_slot *b) {
    const tp_storage *s = a->actual, *other = b->actual;
    return a->is_number && b->is_number && s && other && s->nbytes == other->nbytes && s->data && other->data &&
           memcmp(s->data, other->data, s->nbytes) == 0;
}

static void reads_another(tp_tape *t, int64_t call, char *what, size_t size) {
    char name[128];
    snprintf(what, size, "a tensor that call %lld, %s, reads is another one than before", (long long)call,
             tp_op_name(t->notes.calls[call]->op, name));
    t->parted = call;
}

/* Tells what was there before from what the call has made. */
static bool same_slots(tp_tape *t, const tp_tape *before, char *what, size_t size) {
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        tape_slot *slot = &t->slots[i];
        const tape_slot *was = &before->slots[i];
        bool moved = slot->actual != was->actual && !are_one_number(slot, was);
        slot->born = !slot->is_argument && (slot->made || moved);
        bool ends_alike = slot->is_argument == was->is_argument && slot->is_result == was->is_result;
        bool as_large = t->notes.slots[i].storage->nbytes == before->notes.slots[i].storage->nbytes;
        if (!ends_alike || (!as_large && !slot->is_argument)) /* an argument may be a part of more or less */
            snprintf(what, size, "a tensor is used in another way");
        else if (slot->born && slot->reads_first && t->notes.slots[i].storage->nbytes)
            reads_another(t, slot->first, what, size);
        else continue;
        return false;
    }
    return true;
}

static bool same_arguments(const tp_tape *t, const tp_tape *before) {
    if (t->narguments != before->narguments) return false;
    for (int64_t i = 0; i < t->narguments; i++) {
        const tape_argument *a = &t->arguments[i], *b = &before->arguments[i];
        int64_t shift = shift_of(t, t->notes.slots[a->slot].storage);
        int64_t other = shift_of(before, before->notes.slots[b->slot].storage);
        if (a->slot != b->slot || a->byte_offset - shift != b->byte_offset - other) return false;
    }
    return true;
}

static bool same_results(const tp_tape *t, const tp_tape *before) {
    if (t->nresults != before->nresults) return false;
    for (int64_t i = 0; i < t->nresults; i++)
        if (!same_tensor(t, t->results[i].like, before, before->results[i].like)) return false;
    return true;
}

bool tp_tape_follows(tp_tape *t, const tp_tape *before, tp_tape_number *numbers, int room, int *differing, char *what,
                     size_t size) {
    differences d = {numbers, room, 0};
    int64_t ncalls = t->ncalls < before->ncalls ? t->ncalls : before->ncalls;
    for (int64_t i = 0; i < ncalls; i++)
        if (!same_call(t, before, i, &d, what, size)) return false;
    bool alike = false;
    if (t->ncalls != before->ncalls) {
        snprintf(what, size, "%lld calls were made, and %lld before", (long long)t->ncalls, (long long)before->ncalls);
        t->parted = t->ncalls > ncalls ? ncalls : t->ncalls - 1;
    } else if (t->notes.nslots != before->notes.nslots || !same_arguments(t, before) || !same_results(t, before))
        snprintf(what, size, "other tensors were given or came back");
    else alike = same_slots(t, before, what, size);
    *differing = d.count;
    return alike;
}

int64_t tp_tape_parted(const tp_tape *t) { return t->parted; }

const char *tp_tape_outlived(const tp_tape *t) {
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        const tape_slot *slot = &t->slots[i];
        if (slot->born && !slot->is_result && atomic_load_explicit(&slot->actual->refcount, memory_order_acquire) > 1)
            return "a tensor that it makes lives on, beside its results and gradients";
    }
    return NULL;
}
