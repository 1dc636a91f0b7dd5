/* saved.c: tapes are written to bytes and read from them; see saved.h. */
#include "plan/saved.h"

#include "Primitives.h"
#include "core/alloc.h"
#include "core/device.h"
#include "plan/tape_parts.h"
#include "prim/pointwise.h"
#include "prim/transfer.h"

#include <stdio.h>
#include <string.h>

static const char magic[8] = "tpplan1";
enum { MADE, ARGUMENT, CONSTANT }; /* kinds of slots */
enum { HEAD = 24, ALIGNMENT = 64, NOBODYS = -1 };
#define MOST_BYTES (INT64_C(1) << 40) /* of a slot */

static uint64_t checksum(const unsigned char *bytes, size_t size) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

int64_t tp_saved_bytes(const tp_saved_tensor *t) {
    int64_t bytes = tp_itemsize((tp_dtype)t->dtype);
    for (int64_t d = 0; d < t->ndim; d++) bytes *= t->sizes[d];
    return bytes;
}

/* ---- names ---- */

/* The name of the program that an argument is, without its choice of words; NULL: the argument is no program. */
static const char *program_name(const tp_op *op, int argument, int64_t program) {
    if (strcmp(op->info->args[argument].name, "program") != 0) return NULL;
    if (op == &tp_prims[TP_PRIM_reduce_program]) {
        const tp_reduction_op *r = tp_reduction_of(program);
        return r ? r->name : "";
    }
    const tp_pointwise *p = tp_pointwise_at(program & 0xffff);
    return p ? p->name : "";
}

/* -1: there is none of that name. */
static int64_t program_named(const tp_op *op, const char *name) {
    bool reduces = op == &tp_prims[TP_PRIM_reduce_program];
    for (int64_t i = 0;; i++) {
        const char *have;
        if (reduces) {
            const tp_reduction_op *r = tp_reduction_of(i);
            have = r ? r->name : NULL;
        } else {
            const tp_pointwise *p = tp_pointwise_at(i);
            have = p ? p->name : NULL;
        }
        if (!have) return -1;
        if (strcmp(have, name) == 0) return i;
    }
}

static bool is_primitive(const tp_op *op) { return op >= tp_prims && op < tp_prims + TP_PRIM_COUNT; }

static const tp_op *primitive_named(const char *name) {
    char buffer[128];
    for (int i = 0; i < TP_PRIM_COUNT; i++)
        if (strcmp(tp_op_name(&tp_prims[i], buffer), name) == 0) return &tp_prims[i];
    return NULL;
}

/* ---- what may be saved ---- */

static const char *why_not_call(const tp_tape *t, int64_t i) {
    static char text[256];
    char name[128];
    const tp_note *note = t->notes.calls[i];
    tp_op_name(note->op, name);
    if (t->calls[i].below || !is_primitive(note->op)) {
        snprintf(text, sizeof text, "%s is not made of primitives", name);
        return text;
    }
    for (int k = 0; k < note->op->info->nargs; k++) {
        const char *program = note->args[k].tag == TP_INT ? program_name(note->op, k, note->args[k].i) : NULL;
        if (program && !*program) {
            snprintf(text, sizeof text, "%s has a program without a name", name);
            return text;
        }
        tp_tensors list = tp_value_tensors(&note->args[k]);
        for (int64_t j = 0; j < list.size && note->op->info->args[k].is_write; j++)
            if (list.data[j] && !t->slots[list.data[j]->storage->slot].born) {
                snprintf(text, sizeof text, "%s writes to a tensor that it has not made (is the module in eval mode?)",
                         note->from ? tp_op_name(note->from, name) : name);
                return text;
            }
    }
    return NULL;
}

const char *tp_tape_why_not_saved(tp_tape *t, tp_tensor *const *arguments) {
    const char *why = tp_tape_spoiled(t);
    for (int64_t i = 0; i < t->ncalls && !why; i++) why = why_not_call(t, i);
    for (int64_t i = 0; i < t->nresults && !why; i++)
        if (!t->slots[t->results[i].like->storage->slot].born) why = "it gives a tensor that was there before";
    for (int64_t i = 0; i < t->narguments && !why; i++) {
        if (!tp_is_contiguous(arguments[i])) why = "an argument is not contiguous";
        for (int64_t k = 0; k < i; k++)
            if (t->arguments[i].slot == t->arguments[k].slot) why = "two arguments share their memory";
    }
    for (int64_t i = 0; i < t->notes.nslots && !why; i++) {
        const tape_slot *slot = &t->slots[i];
        if (!slot->born && !slot->is_argument && !slot->actual->data && slot->actual->nbytes)
            why = "a tensor that it reads has no memory";
    }
    return why;
}

/* ---- writing ---- */

/* Counts first (`bytes` NULL), then writes. */
typedef struct {
    unsigned char *bytes;
    size_t at;
} writer;

static void put(writer *w, const void *from, size_t size) {
    if (w->bytes && size) memcpy(w->bytes + w->at, from, size);
    w->at += size;
}
static void put_int(writer *w, int64_t n) { put(w, &n, sizeof n); }
static void align(writer *w, size_t to) {
    while (w->at % to) put(w, "", 1);
}
static void put_text(writer *w, const char *text) {
    put_int(w, (int64_t)strlen(text));
    put(w, text, strlen(text) + 1);
    align(w, 8);
}
static void put_scalar(writer *w, const tp_scalar *s) {
    put_int(w, s->kind);
    if (s->kind == TP_SCALAR_BOOL) return put_int(w, s->b);
    put(w, &s->i, s->kind == TP_SCALAR_COMPLEX ? sizeof s->c : sizeof s->i);
}

/* `slot` -1: the tensor's storage is a place, which knows it. */
static void put_tensor(writer *w, const tp_tensor *t, int64_t slot) {
    put_int(w, slot < 0 ? t->storage->slot : slot);
    put_int(w, t->dtype);
    put_int(w, (t->flags & TP_FLAG_WRAPPED_NUMBER) != 0);
    put_int(w, t->ndim);
    put_int(w, t->byte_offset);
    put(w, t->sizes, sizeof *t->sizes * t->ndim);
    put(w, t->strides, sizeof *t->strides * t->ndim);
}

static void put_value(writer *w, const tp_value *v, const char *program) {
    put_int(w, v->tag);
    switch (v->tag) {
    case TP_NONE: break;
    case TP_TENSOR: put_tensor(w, v->tensor, -1); break;
    case TP_TENSORS:
        put_int(w, v->tensors.size);
        for (int64_t i = 0; i < v->tensors.size; i++) {
            put_int(w, v->tensors.data[i] != NULL);
            if (v->tensors.data[i]) put_tensor(w, v->tensors.data[i], -1);
        }
        break;
    case TP_SCALAR: put_scalar(w, v->scalar); break;
    case TP_SCALARS:
        put_int(w, v->scalars.size);
        for (int64_t i = 0; i < v->scalars.size; i++) put_scalar(w, &v->scalars.data[i]);
        break;
    case TP_INTS_:
        put_int(w, v->ints.size);
        for (int64_t i = 0; i < v->ints.size; i++) put_int(w, v->ints.data[i]);
        break;
    case TP_FLOATS:
        put_int(w, v->floats.size);
        for (int64_t i = 0; i < v->floats.size; i++) put(w, &v->floats.data[i], 8);
        break;
    case TP_BOOLS:
        put_int(w, v->bools.size);
        for (int64_t i = 0; i < v->bools.size; i++) put_int(w, v->bools.data[i]);
        break;
    case TP_STR: put_text(w, v->str); break;
    case TP_FLOAT: put(w, &v->f, 8); break;
    case TP_BOOL_: put_int(w, v->b); break;
    case TP_DEVICE: break; /* that of the tape */
    default:
        put_int(w, program ? v->i & ~INT64_C(0xffff) : v->i);
        if (program) put_text(w, program);
    }
}

static int kind_of(const tape_slot *slot) { return slot->is_argument ? ARGUMENT : slot->born ? MADE : CONSTANT; }

static int put_memory(writer *w, const tp_storage *s) {
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)s->device.type);
    size_t at = w->at;
    w->at += s->nbytes;
    return w->bytes && s->nbytes ? ops->copy_to_host(s->device, w->bytes + at, s->data, s->nbytes) : 0;
}

static int write_all(writer *w, const tp_tape *t, tp_tensor *const *arguments) {
    char name[128];
    put(w, magic, sizeof magic);
    put_int(w, 0);
    put_int(w, 0);
    put_int(w, t->notes.nslots);
    put_int(w, t->narguments);
    put_int(w, t->nresults);
    put_int(w, t->ncalls);
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        put_int(w, (int64_t)t->notes.slots[i].storage->nbytes);
        put_int(w, kind_of(&t->slots[i]));
    }
    for (int64_t i = 0; i < t->narguments; i++) put_tensor(w, arguments[i], t->arguments[i].slot);
    for (int64_t i = 0; i < t->nresults; i++) put_tensor(w, t->results[i].like, -1);
    for (int64_t i = 0; i < t->ncalls; i++) {
        const tp_note *note = t->notes.calls[i];
        put_text(w, tp_op_name(note->op, name));
        for (int k = 0; k < note->op->info->nargs; k++)
            put_value(w, &note->args[k],
                      note->args[k].tag == TP_INT ? program_name(note->op, k, note->args[k].i) : NULL);
    }
    for (int64_t i = 0; i < t->notes.nslots; i++) {
        if (kind_of(&t->slots[i]) != CONSTANT) continue;
        align(w, ALIGNMENT);
        if (put_memory(w, t->slots[i].actual) < 0) return -1;
    }
    return 0;
}

unsigned char *tp_tape_save(const tp_tape *t, tp_tensor *const *arguments, size_t *size) {
    writer w = {NULL, 0};
    write_all(&w, t, arguments);
    *size = w.at;
    w = (writer){tp_alloc(w.at), 0};
    if (!w.bytes) return NULL;
    if (write_all(&w, t, arguments) < 0) return tp_free(w.bytes, *size), NULL;
    uint64_t total = *size, sum = checksum(w.bytes + HEAD, *size - HEAD);
    memcpy(w.bytes + 8, &total, 8);
    memcpy(w.bytes + 16, &sum, 8);
    return w.bytes;
}

/* ---- reading ---- */

typedef struct {
    const unsigned char *bytes;
    size_t at, size;
    bool bad;
    tp_device device;
    tp_storage **storages; /* by slot; owned */
    int64_t *kinds, nslots;
    int64_t (*ranges)[2]; /* of each slot: the bytes that tensors may lie in, from the first to that after the last */
} reader;

static const void *take(reader *r, size_t size) {
    if (r->bad || size > r->size - r->at) return r->bad = true, NULL;
    const void *from = r->bytes + r->at;
    r->at += size;
    return from;
}
static int64_t take_int(reader *r) {
    int64_t n = 0;
    const void *from = take(r, sizeof n);
    if (from) memcpy(&n, from, sizeof n);
    return n;
}
static double take_float(reader *r) {
    double f = 0;
    const void *from = take(r, sizeof f);
    if (from) memcpy(&f, from, sizeof f);
    return f;
}
/* A count of things, each of which takes some bytes of what is left. */
static int64_t take_count(reader *r, size_t each) {
    int64_t n = take_int(r);
    if (n < 0 || (uint64_t)n > (r->size - r->at) / each) r->bad = true;
    return r->bad ? 0 : n;
}
static const char *take_text(reader *r) {
    int64_t length = take_count(r, 1);
    const char *text = take(r, (size_t)length + 1);
    while (r->at % 8 && !r->bad) take(r, 1);
    for (int64_t i = 0; i < length && !r->bad; i++) r->bad = text[i] < ' ' || text[i] > '~';
    if (r->bad || text[length]) return r->bad = true, "";
    return text;
}
static tp_scalar take_scalar(reader *r) {
    tp_scalar s = *TP_SCALAR_I(0);
    int64_t kind = take_int(r);
    if (kind < 0 || kind > TP_SCALAR_COMPLEX) r->bad = true;
    if (r->bad) return s;
    s.kind = (tp_scalar_kind)kind;
    if (s.kind == TP_SCALAR_BOOL) return s.b = take_int(r) != 0, s;
    size_t size = s.kind == TP_SCALAR_COMPLEX ? sizeof s.c : sizeof s.i;
    const void *from = take(r, size);
    if (from) memcpy(&s.i, from, size);
    return s;
}

/* Whether all elements lie in these bytes, and it would not be too large if it had gaps closed. */
static bool lies_within(const tp_saved_tensor *t, const int64_t *range) {
    int64_t low = t->byte_offset, high = t->byte_offset, item = tp_itemsize((tp_dtype)t->dtype), count = 1;
    for (int64_t d = 0; d < t->ndim; d++)
        if (t->sizes[d] == 0) count = 0;
    for (int64_t d = 0; d < t->ndim && count; d++) {
        int64_t way;
        if (t->sizes[d] < 0 || __builtin_mul_overflow(t->strides[d], t->sizes[d] - 1, &way) ||
            __builtin_mul_overflow(way, item, &way) || __builtin_mul_overflow(count, t->sizes[d], &count))
            return false;
        if (way < 0 ? __builtin_add_overflow(low, way, &low) : __builtin_add_overflow(high, way, &high)) return false;
    }
    return low >= range[0] && low <= range[1] && (!count || (high <= range[1] - item && count <= MOST_BYTES / item));
}

static tp_saved_tensor take_saved(reader *r) {
    tp_saved_tensor t = {.slot = take_int(r)};
    t.dtype = take_int(r);
    t.is_number = take_int(r);
    t.ndim = take_int(r);
    t.byte_offset = take_int(r);
    if (t.slot < 0 || t.slot >= r->nslots || t.dtype < 0 || t.dtype >= TP_NUM_DTYPES || t.ndim < 0 ||
        t.ndim > TP_MAX_DIMS)
        r->bad = true;
    for (int64_t d = 0; d < t.ndim && !r->bad; d++) t.sizes[d] = take_int(r);
    for (int64_t d = 0; d < t.ndim && !r->bad; d++) t.strides[d] = take_int(r);
    if (!r->bad && !lies_within(&t, r->ranges[t.slot])) r->bad = true;
    return r->bad ? (tp_saved_tensor){0} : t;
}

static tp_tensor *make_tensor(reader *r, const tp_saved_tensor *t) {
    tp_tensor *made = r->bad ? NULL
                             : tp_new_on_storage(r->storages[t->slot], (tp_ints){t->sizes, t->ndim},
                                                 (tp_ints){t->strides, t->ndim}, t->byte_offset, (tp_dtype)t->dtype);
    if (made && t->is_number) made->flags |= TP_FLAG_WRAPPED_NUMBER;
    return made;
}
static tp_tensor *take_tensor(reader *r) {
    tp_saved_tensor t = take_saved(r);
    tp_tensor *made = make_tensor(r, &t);
    if (!made) r->bad = true;
    return made;
}

/* A list of some bytes for each item, owned; of none: one byte. */
static void *make_list(reader *r, int64_t *count, size_t in_file, size_t in_memory) {
    *count = take_count(r, in_file);
    void *list = r->bad ? NULL : tp_alloc((size_t)*count * in_memory + 1);
    if (!list) return r->bad = true, *count = 0, NULL;
    memset(list, 0, (size_t)*count * in_memory + 1);
    return list;
}

static void take_list(reader *r, tp_value *v) {
    int64_t n;
    switch (v->tag) {
    case TP_TENSORS: {
        tp_tensor **items = make_list(r, &n, 8, sizeof *items);
        v->tensors = (tp_tensors){items, n};
        for (int64_t i = 0; i < n && !r->bad; i++) items[i] = take_int(r) ? take_tensor(r) : NULL;
        return;
    }
    case TP_SCALARS: {
        tp_scalar *items = make_list(r, &n, 16, sizeof *items);
        v->scalars = (tp_scalars){items, n};
        for (int64_t i = 0; i < n; i++) items[i] = take_scalar(r);
        return;
    }
    case TP_INTS_: {
        int64_t *items = make_list(r, &n, 8, sizeof *items);
        v->ints = (tp_ints){items, n};
        for (int64_t i = 0; i < n; i++) items[i] = take_int(r);
        return;
    }
    case TP_FLOATS: {
        double *items = make_list(r, &n, 8, sizeof *items);
        v->floats = (tp_floats){items, n};
        for (int64_t i = 0; i < n; i++) items[i] = take_float(r);
        return;
    }
    default: {
        bool *items = make_list(r, &n, 8, sizeof *items);
        v->bools = (tp_bools){items, n};
        for (int64_t i = 0; i < n; i++) items[i] = take_int(r) != 0;
    }
    }
}

static void free_value(tp_value *v) {
    switch (v->tag) {
    case TP_TENSOR: tp_release(v->tensor); break;
    case TP_TENSORS:
        for (int64_t i = 0; i < v->tensors.size; i++) tp_release(v->tensors.data[i]);
        tp_free((void *)v->tensors.data, (size_t)v->tensors.size * sizeof *v->tensors.data + 1);
        break;
    case TP_SCALARS: tp_free((void *)v->scalars.data, (size_t)v->scalars.size * sizeof(tp_scalar) + 1); break;
    case TP_INTS_: tp_free((void *)v->ints.data, (size_t)v->ints.size * 8 + 1); break;
    case TP_FLOATS: tp_free((void *)v->floats.data, (size_t)v->floats.size * 8 + 1); break;
    case TP_BOOLS: tp_free((void *)v->bools.data, (size_t)v->bools.size + 1); break;
    default: break;
    }
}

/* `number`: room for a scalar. False: this build lacks the program. */
static bool take_value(reader *r, const tp_op *op, int argument, tp_value *v, tp_scalar *number) {
    const tp_argument *a = &op->info->args[argument];
    v->tag = (tp_tag)take_int(r);
    bool absent = v->tag == TP_NONE;
    if (r->bad || (absent ? !a->optional : v->tag != (tp_tag)a->tag)) {
        r->bad = true;
        v->tag = TP_NONE;
        return true;
    }
    switch (v->tag) {
    case TP_NONE: return true;
    case TP_TENSOR:
        if (!(v->tensor = take_tensor(r))) v->tag = TP_NONE;
        return true;
    case TP_SCALAR: return *number = take_scalar(r), v->scalar = number, true;
    case TP_FLOAT: return v->f = take_float(r), true;
    case TP_BOOL_: return v->b = take_int(r) != 0, true;
    case TP_STR: return v->str = take_text(r), true;
    case TP_DEVICE: return v->device = r->device, true;
    case TP_TENSORS:
    case TP_SCALARS:
    case TP_INTS_:
    case TP_FLOATS:
    case TP_BOOLS: return take_list(r, v), true;
    default: break;
    }
    v->i = take_int(r);
    if (v->tag == TP_DTYPE && (v->i < 0 || v->i >= TP_NUM_DTYPES)) r->bad = true;
    if (v->tag != TP_INT || strcmp(a->name, "program") != 0) return true;
    const char *name = take_text(r);
    if (v->i < 0 || v->i & 0xffff) r->bad = true; /* the choice of words, beside which the program's number goes */
    int64_t program = r->bad ? 0 : program_named(op, name);
    if (program > 0) v->i |= program;
    if (program < 0) tp_fail(TP_RuntimeError, "a saved plan computes %.100s, which is not in this build", name);
    return program >= 0;
}

static int fail_damaged(void) {
    tp_error_clear(); /* what was tried with it */
    return tp_fail(TP_RuntimeError, "a saved plan is damaged, or is no saved plan");
}

/* What a run is given, and constants, are only read. */
static bool writes_what_it_makes(const reader *r, const tp_op *op, const tp_value *args) {
    for (int k = 0; k < op->info->nargs; k++) {
        tp_tensors list = op->info->args[k].is_write ? tp_value_tensors(&args[k]) : (tp_tensors){NULL, 0};
        for (int64_t i = 0; i < list.size; i++)
            if (list.data[i] && r->kinds[list.data[i]->storage->slot] != MADE) return false;
    }
    return true;
}

static int take_call(reader *r, tp_tape *t) {
    const char *name = take_text(r);
    if (r->bad) return fail_damaged();
    const tp_op *op = primitive_named(name);
    if (!op) return tp_fail(TP_RuntimeError, "a saved plan calls %.100s, which is not in this build", name);
    const char *device = tp_device_type_name((tp_device_type)r->device.type);
    if (!tp_has_kernel(op, tp_backend_key((tp_device_type)r->device.type)))
        return tp_fail(TP_RuntimeError, "a saved plan calls %.100s, which this build has not for %s", name, device);
    int nargs = op->info->nargs, read = 0;
    tp_value args[nargs + 1];
    tp_scalar numbers[nargs + 1];
    bool known = true;
    for (; read < nargs && known && !r->bad; read++) known = take_value(r, op, read, &args[read], &numbers[read]);
    int status = r->bad ? fail_damaged() : known ? 0 : -1;
    if (status == 0 && !writes_what_it_makes(r, op, args)) status = fail_damaged();
    if (status == 0 && !tp_tape_call(t, op, 0, args))
        status = tp_fail(TP_RuntimeError, "a saved plan cannot be run: %s", tp_tape_spoiled(t));
    while (read--) free_value(&args[read]);
    return status;
}

static int take_slots(reader *r) {
    size_t room = (size_t)r->nslots * sizeof(tp_storage *) + 1;
    r->storages = tp_alloc(room);
    r->ranges = tp_alloc((size_t)r->nslots * sizeof *r->ranges + 1);
    r->kinds = tp_alloc((size_t)r->nslots * sizeof *r->kinds + 1);
    if (r->storages) memset(r->storages, 0, room);
    if (!r->storages || !r->kinds || !r->ranges) return -1;
    for (int64_t i = 0; i < r->nslots; i++) {
        int64_t bytes = take_int(r), kind = r->kinds[i] = take_int(r);
        if (r->bad || bytes < 0 || bytes > MOST_BYTES || kind < MADE || kind > CONSTANT) return fail_damaged();
        if (kind == CONSTANT && (uint64_t)bytes > r->size) return fail_damaged();
        r->storages[i] = kind == CONSTANT ? tp_storage_new(r->device, (size_t)bytes)
                                          : tp_storage_from_blob(r->device, NULL, (size_t)bytes, NULL, NULL);
        if (!r->storages[i]) return -1;
        r->storages[i]->nbytes = (size_t)bytes;
        r->storages[i]->slot = (uint16_t)i;
        r->ranges[i][0] = 0;
        r->ranges[i][1] = bytes;
    }
    return 0;
}

static int take_constants(reader *r) {
    const tp_device_ops *ops = tp_device_get_ops((tp_device_type)r->device.type);
    for (int64_t i = 0; i < r->nslots; i++) {
        if (r->kinds[i] != CONSTANT) continue;
        while (r->at % ALIGNMENT && !r->bad) take(r, 1);
        const void *from = take(r, r->storages[i]->nbytes);
        if (r->bad) return fail_damaged();
        size_t bytes = r->storages[i]->nbytes;
        if (bytes && ops->copy_from_host(r->device, r->storages[i]->data, from, bytes) < 0) return -1;
    }
    return r->at == r->size ? 0 : fail_damaged();
}

static tp_saved_tensor *take_ends(reader *r, int64_t count) {
    tp_saved_tensor *ends = tp_alloc((size_t)count * sizeof *ends + 1);
    for (int64_t i = 0; i < count && ends; i++) ends[i] = take_saved(r);
    return ends;
}

/* What only a comparison of two calls tells a tape that is written down. */
static void tell_kinds(reader *r, tp_tape *t) {
    for (int64_t i = 0; i < t->notes.nslots; i++) t->slots[i].born = r->kinds[t->slots[i].actual->slot] == MADE;
}

static int add_results(reader *r, tp_saved_tape *s) {
    for (int64_t i = 0; i < s->nresults; i++) {
        tp_autoref *t = make_tensor(r, &s->results[i]);
        if (!t || tp_tape_result(s->tape, t) < 0) return -1;
    }
    return 0;
}

/* An argument has a slot of its own, of which calls may read what a run will be given. */
static int add_arguments(reader *r, tp_saved_tape *s) {
    for (int64_t i = 0; i < r->nslots; i++)
        if (r->kinds[i] == ARGUMENT) r->ranges[i][1] = NOBODYS;
    for (int64_t i = 0; i < s->narguments; i++) {
        const tp_saved_tensor *a = &s->arguments[i];
        int64_t *range = r->ranges[a->slot];
        if (range[1] != NOBODYS) return fail_damaged();
        range[0] = a->byte_offset;
        range[1] = a->byte_offset + tp_saved_bytes(a);
        tp_autoref *t = make_tensor(r, a);
        if (t && !tp_is_contiguous(t)) return fail_damaged();
        if (!t || tp_tape_argument(s->tape, t) < 0) return -1;
    }
    for (int64_t i = 0; i < r->nslots; i++)
        if (r->ranges[i][1] == NOBODYS) return fail_damaged();
    return 0;
}

static int fail_spoiled(const tp_saved_tape *s) {
    return tp_fail(TP_RuntimeError, "a saved plan cannot be run: %s", tp_tape_spoiled(s->tape));
}

static int close_loaded(reader *r, tp_saved_tape *s) {
    if (tp_tape_spoiled(s->tape)) return fail_spoiled(s); /* a result that no call computes */
    size_t room = (size_t)tp_tape_calls(s->tape) + 1;
    bool *alone = tp_alloc(room);
    if (!alone) return -1;
    memset(alone, 0, room);
    tell_kinds(r, s->tape);
    bool closed = tp_tape_close(s->tape, alone);
    tp_free(alone, room);
    return closed ? 0 : fail_spoiled(s);
}

static int read_all(reader *r, tp_saved_tape *s) {
    r->nslots = take_count(r, 16);
    s->narguments = take_count(r, 40);
    s->nresults = take_count(r, 40);
    int64_t ncalls = take_count(r, 16);
    if (r->bad || r->nslots > TP_MOST_SLOTS) return fail_damaged();
    if (take_slots(r) < 0 || !(s->tape = tp_tape_new(r->device))) return -1;
    s->arguments = take_ends(r, s->narguments);
    s->results = take_ends(r, s->nresults);
    if (!s->arguments || !s->results) return -1;
    if (r->bad) return fail_damaged();
    if (add_arguments(r, s) < 0) return -1;
    for (int64_t i = 0; i < ncalls; i++)
        if (take_call(r, s->tape) < 0) return -1;
    if (take_constants(r) < 0 || add_results(r, s) < 0) return -1;
    return close_loaded(r, s);
}

int tp_tape_load(tp_saved_tape *s, tp_device device, const void *bytes, size_t size) {
    *s = (tp_saved_tape){.device = device};
    uint64_t said[2];
    if (size < HEAD || memcmp(bytes, magic, sizeof magic) != 0) return fail_damaged();
    memcpy(said, (const char *)bytes + 8, sizeof said);
    if (said[0] != size || said[1] != checksum((const unsigned char *)bytes + HEAD, size - HEAD)) return fail_damaged();
    reader r = {.bytes = bytes, .at = HEAD, .size = size, .device = device};
    int status = read_all(&r, s);
    for (int64_t i = 0; i < r.nslots && r.storages; i++) tp_storage_release(r.storages[i]);
    tp_free(r.storages, (size_t)r.nslots * sizeof *r.storages + 1);
    tp_free(r.kinds, (size_t)r.nslots * sizeof *r.kinds + 1);
    tp_free(r.ranges, (size_t)r.nslots * sizeof *r.ranges + 1);
    if (status < 0) tp_saved_tape_free(s);
    return status;
}

void tp_saved_tape_free(tp_saved_tape *s) {
    tp_tape_free(s->tape);
    tp_free(s->arguments, (size_t)s->narguments * sizeof *s->arguments + 1);
    tp_free(s->results, (size_t)s->nresults * sizeof *s->results + 1);
    *s = (tp_saved_tape){0};
}

/* ---- running ---- */

/* A contiguous tensor over somebody's memory. */
static tp_tensor *over_memory(const tp_saved_tensor *like, const tp_saved_memory *m) {
    tp_storage *s = tp_storage_from_blob(m->device, (void *)m->data, (size_t)tp_saved_bytes(like), NULL, m->context);
    if (!s) return NULL;
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides((tp_ints){like->sizes, like->ndim}, strides);
    tp_tensor *t = tp_new_on_storage(s, (tp_ints){like->sizes, like->ndim}, (tp_ints){strides, like->ndim}, 0,
                                     (tp_dtype)like->dtype);
    tp_storage_release(s);
    return t;
}

/* An argument on the plan's device. */
static tp_tensor *given_argument(const tp_saved_tape *s, int64_t i, const tp_saved_memory *m) {
    tp_autoref *t = over_memory(&s->arguments[i], m);
    if (!t || tp_device_equal(t->device, s->device)) return tp_take(t);
    tp_autoref *there = tp_new_empty(tp_sizes(t), (tp_dtype)t->dtype, s->device);
    return there && tp_copy_data(there, t) == 0 ? tp_take(there) : NULL;
}

static int copy_results(const tp_saved_tape *s, tp_tensor *const *made, const tp_saved_memory *results) {
    for (int64_t i = 0; i < s->nresults; i++) {
        tp_autoref *out = over_memory(&s->results[i], &results[i]);
        if (!out || tp_copy_data(out, made[i]) < 0) return -1;
    }
    return 0;
}

int tp_saved_tape_run(const tp_saved_tape *s, const tp_saved_memory *arguments, const tp_saved_memory *results) {
    size_t room = (size_t)(s->narguments + s->nresults) * sizeof(tp_tensor *) + 1;
    if (tp_tape_renew(s->tape) < 0) return -1;
    tp_tensor **given = tp_alloc(room), **made = given + s->narguments;
    if (!given) return -1;
    memset(given, 0, room);
    int status = 0;
    for (int64_t i = 0; i < s->narguments && status == 0; i++)
        if (!(given[i] = given_argument(s, i, &arguments[i]))) status = -1;
    if (status == 0) status = tp_tape_run(s->tape, given, made);
    if (status == 1)
        status = tp_fail(TP_RuntimeError, "a saved plan is run by two threads at once, or its arguments overlap");
    else if (status == 0) {
        status = copy_results(s, made, results);
        for (int64_t i = 0; i < s->nresults; i++) tp_release(made[i]);
    }
    for (int64_t i = 0; i < s->narguments; i++) tp_release(given[i]);
    tp_free(given, room);
    return status;
}
