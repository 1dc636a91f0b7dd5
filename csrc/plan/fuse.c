/* fuse.c: which notes run as one: a run of calls of map and copy on the same elements becomes one call of fused.map, or
 * of fused.reduce where a reduction of the last of them follows.
 *
 * A group is a stretch of the list of notes, in its order. A note joins if its output lies as the group's outputs do,
 * its inputs can be walked along with them, and no two of all these tensors, one of which is written, share memory in
 * another way than element for element: then it does not matter that the group computes block by block. What a call
 * gives is a value; a tensor that is written several times has the value of the last. A value that nobody needs behind
 * the group, since its storage was made in the region and neither the program nor a later note holds it, never gets
 * memory, and is not computed at all unless another value of the group is made of it.
 *
 * A group that ends in a reduction often has to keep what was reduced for the calls after it: exp(x - max), whose sum
 * divides it. Where keeping costs more than to read the group's inputs once more, the calls after it begin with the
 * group's own, again, and nothing is kept. On a CPU tiles do better (tile.c). */
#include "Primitives.h"
#include "core/parallel.h"
#include "iter/iter.h"
#include "plan/region.h"
#include "prim/fused.h"

#include <string.h>

typedef struct {
    tp_tensor *tensor; /* borrowed from a note */
    int value;         /* what it holds now */
    bool written;
    int input; /* its number among the inputs; -1: it is written before it is read */
} memory;

typedef struct {
    tp_notes *notes;
    int64_t begin, count; /* of the notes */
    const tp_tensor *shape;
    memory mem[TP_FUSED_TENSORS];
    int nmem, ninputs, nnumbers;
    tp_fused_call calls[TP_FUSED_CALLS]; /* values are numbered: inputs as INPUT + i until the group is complete */
    const tp_note *from[TP_FUSED_CALLS];
    bool reduces; /* the last call's value, by */
    tp_fold_call reduction;
    tp_notes *into;             /* the call is noted there instead of made; NULL */
    bool forgets;               /* its values are computed again after it */
    const tp_fold_call *passed; /* the reduction among its own notes, which has been made */
} group;

#define INPUT 1000
#define MOST_NUMBERS 255
#define MOST_AGAIN 4            /* calls that are computed twice */
#define LEAST_JOINED (64 << 10) /* bytes: smaller ones stay in a CPU's cache between two calls */

bool tp_backend_joins(tp_key key) {
    const tp_op *map = &tp_prims[TP_PRIM_fused_map];
    return key < TP_NUM_KEYS && TP_BACKEND_KEYS >> key & 1 && tp_has_kernel(map, key) && !tp_is_boxed_at(map, key);
}

/* Whether another kernel than the backend's own runs the note, which the fused ones know nothing of. */
static bool is_others(const tp_note *note) { return tp_is_boxed_at(note->op, note->key); }

static tp_tensor *output_of(const tp_note *note) { return tp_note_output(note)->tensor; }

/* ---- whether a note joins ---- */

static memory *memory_of(group *g, const tp_tensor *t) {
    for (int i = 0; i < g->nmem; i++)
        if (tp_overlap_of(g->mem[i].tensor, t) == TP_OVERLAP_EXACT) return &g->mem[i];
    return NULL;
}

/* Whether t shares memory with the group's tensors only as it may: those that are written, or all if t is. */
static bool is_apart(const group *g, const tp_tensor *t, bool written) {
    for (int i = 0; i < g->nmem; i++) {
        if (!written && !g->mem[i].written) continue;
        tp_overlap how = tp_overlap_of(g->mem[i].tensor, t);
        if (how != TP_OVERLAP_NONE && how != TP_OVERLAP_EXACT) return false;
    }
    return true;
}

static bool takes_shape(const group *g, const tp_tensor *out) {
    tp_fused_walk walk;
    if (!g->shape) return tp_is_dense(out);
    return tp_same_sizes(g->shape, out) && tp_fused_walk_of(out, g->shape, &walk) && walk.run == 1 &&
           walk.period == out->numel;
}

static bool takes_input(const group *g, const tp_note *note, const tp_tensor *t, const tp_tensor *out) {
    const tp_tensor *shape = g->shape ? g->shape : out;
    tp_fused_walk walk;
    tp_fused_lines lines;
    bool walks = tp_fused_walk_of(t, shape, &walk);
    if (!walks && !tp_fused_lines_of(t, shape, &lines)) return false;
    bool whole = walks ? walk.run == 1 && walk.period == shape->numel : lines.strides[0] == 1;
    if (tp_note_copies(note) && !whole) return false; /* bytes are moved where both lie alike, else converted */
    return is_apart(g, t, false);
}

/* TP_PLAN_NONE: the note can join. */
static tp_plan_reason why_not(group *g, const tp_note *note) {
    if ((!tp_note_maps(note) && !tp_note_copies(note)) || is_others(note)) return TP_PLAN_WHOLE;
    if (!tp_fusion_has(TP_FUSION_COPIES) && tp_note_copies(note)) return TP_PLAN_WHOLE;
    if (g->shape && !tp_device_equal(g->shape->device, output_of(note)->device)) return TP_PLAN_DEVICE;
    tp_tensor *out = output_of(note);
    tp_tensors inputs = tp_note_inputs(note);
    if (g->count == (tp_fusion_has(TP_FUSION_MAPS) ? TP_FUSED_CALLS : 1) || inputs.size > TP_MAP_INPUTS)
        return TP_PLAN_FULL;
    if (!takes_shape(g, out)) return TP_PLAN_SHAPE;
    if (tp_note_maps(note) && g->nnumbers + note->args[TP_MAP_NUMBERS].scalars.size > MOST_NUMBERS) return TP_PLAN_FULL;
    int fresh = !memory_of(g, out);
    for (int64_t i = 0; i < inputs.size; i++) {
        const tp_tensor *t = inputs.data[i];
        if (!t) continue;
        if (!takes_input(g, note, t, out)) return is_apart(g, t, false) ? TP_PLAN_LAYOUT : TP_PLAN_MEMORY;
        tp_overlap how = tp_overlap_of(t, out);
        if (how != TP_OVERLAP_NONE && how != TP_OVERLAP_EXACT) return TP_PLAN_MEMORY;
        fresh += !memory_of(g, t);
    }
    if (g->nmem + fresh > TP_FUSED_TENSORS) return TP_PLAN_FULL;
    return is_apart(g, out, true) ? TP_PLAN_NONE : TP_PLAN_MEMORY;
}

static memory *add_memory(group *g, tp_tensor *t, int input) {
    g->mem[g->nmem] = (memory){.tensor = t, .input = input};
    return &g->mem[g->nmem++];
}

static void join(group *g, const tp_note *note) {
    tp_tensors inputs = tp_note_inputs(note);
    tp_tensor *out = output_of(note);
    tp_fused_call *call = &g->calls[g->count];
    memset(call, 0, sizeof *call);
    call->program = tp_note_maps(note) ? note->args[TP_MAP_PROGRAM].i : -1;
    call->compute = tp_note_maps(note) ? (int8_t)note->args[TP_MAP_COMPUTE].i : 0;
    call->dtype = (int8_t)out->dtype;
    call->ninputs = (uint8_t)inputs.size;
    call->nnumbers = tp_note_maps(note) ? (uint8_t)note->args[TP_MAP_NUMBERS].scalars.size : 0;
    g->nnumbers += call->nnumbers;
    if (!g->shape) g->shape = out;
    for (int64_t i = 0; i < inputs.size; i++) {
        call->in[i] = -1;
        if (!inputs.data[i]) continue;
        memory *m = memory_of(g, inputs.data[i]);
        if (!m) {
            m = add_memory(g, inputs.data[i], g->ninputs);
            m->value = INPUT + g->ninputs++;
        }
        call->in[i] = (int16_t)m->value;
    }
    memory *m = memory_of(g, out);
    if (!m) m = add_memory(g, out, -1);
    m->tensor = out; /* of the group's sizes, which those of an input before may differ from */
    m->value = (int)g->count;
    m->written = true;
    g->from[g->count++] = note;
}

/* ---- a reduction ---- */

/* Takes the reduction that follows a group, if it is one of the last call's value: by other sizes, perhaps, but in the
 * same order, and of more elements than a leaf, which is folded from memory without ado. */
static void join_reduction(group *g, const tp_note *note) {
    tp_fold_call call;
    if (!tp_fusion_has(TP_FUSION_REDUCTIONS) || !g->count || !tp_note_folds(note, &call) || !call.out || call.at ||
        is_others(note))
        return;
    if (!tp_has_kernel(&tp_prims[TP_PRIM_fused_reduce], note->key)) return;
    if (!tp_same_elements(call.x, output_of(g->from[g->count - 1])) || call.x->numel <= TP_REDUCE_LEAF) return;
    if (tp_overlap_of(call.out, call.x) != TP_OVERLAP_NONE) return;
    for (int i = 0; i < g->nmem; i++)
        if (tp_overlap_of(g->mem[i].tensor, call.out) != TP_OVERLAP_NONE) return;
    g->reduces = true;
    g->reduction = call;
}

/* ---- what is needed behind the group ---- */

static int64_t uses_in_group(const group *g, const tp_storage *s) {
    int64_t n = 0;
    for (int64_t c = 0; c < g->count; c++) {
        tp_tensors inputs = tp_note_inputs(g->from[c]);
        for (int64_t i = 0; i < inputs.size; i++) n += inputs.data[i] && inputs.data[i]->storage == s;
        n += output_of(g->from[c])->storage == s;
    }
    return n + (g->reduces && g->reduction.x->storage == s) + (g->passed && g->passed->x->storage == s);
}

static bool is_needed(const group *g, const memory *m) {
    if (g->forgets || !tp_fusion_has(TP_FUSION_UNSTORED)) return !g->forgets;
    const tp_plan_slot *slot = &g->notes->slots[m->tensor->storage->slot];
    return !slot->born || tp_slot_is_held(slot) || slot->uses > uses_in_group(g, m->tensor->storage);
}

/* ---- the call ---- */

/* Marks the calls whose values are needed, from the last to the first. */
static void mark(const group *g, const bool *stored, bool *wanted) {
    for (int64_t c = g->count - 1; c >= 0; c--) {
        wanted[c] |= stored[c];
        for (int i = 0; wanted[c] && i < g->calls[c].ninputs; i++)
            if (g->calls[c].in[i] >= 0 && g->calls[c].in[i] < INPUT) wanted[g->calls[c].in[i]] = true;
    }
}

/* The call as a note. */
static int note_fused(const group *g, int64_t program, tp_tensors inputs, tp_scalars numbers, tp_tensors outs) {
    const tp_fold_call *call = &g->reduction;
    tp_tensor *last = output_of(g->from[g->count - 1]);
    const tp_value map[] = {{.tag = TP_INT, .i = program},
                            {.tag = TP_TENSORS, .tensors = inputs},
                            {.tag = TP_SCALARS, .scalars = numbers},
                            {.tag = TP_TENSORS, .tensors = outs}};
    const tp_value reduce[] = {map[0],
                               map[1],
                               map[2],
                               {.tag = TP_INT, .i = (int64_t)call->fold},
                               {.tag = TP_INT, .i = call->program},
                               {.tag = TP_DTYPE, .i = call->compute},
                               {.tag = TP_TENSOR, .tensor = last},
                               {.tag = TP_TENSOR, .tensor = call->x},
                               {.tag = TP_INTS_, .ints = call->dim},
                               {.tag = TP_TENSOR, .tensor = call->out},
                               map[3]};
    int primitive = g->reduces ? TP_PRIM_fused_reduce : TP_PRIM_fused_map;
    return tp_notes_add(g->into, &tp_prims[primitive], g->from[0]->key, g->reduces ? reduce : map) ? 0 : -1;
}

static int call_fused(const group *g, const tp_fused *f, tp_tensors inputs, tp_scalars numbers, tp_tensors outs) {
    int64_t program = tp_fused_intern(f);
    if (program < 0) return -1;
    if (g->into) return note_fused(g, program, inputs, numbers, outs);
    for (int64_t i = 0; i < inputs.size; i++)
        if (tp_storage_fill(inputs.data[i]->storage) < 0) return -1;
    for (int64_t i = 0; i < outs.size; i++)
        if (tp_storage_fill(outs.data[i]->storage) < 0) return -1;
    if (!g->reduces) return tp_prim_fused_map(program, inputs, numbers, outs);
    const tp_fold_call *call = &g->reduction;
    if (tp_storage_fill(call->out->storage) < 0) return -1;
    return tp_prim_fused_reduce(program, inputs, numbers, (int64_t)call->fold, call->program, call->compute,
                                output_of(g->from[g->count - 1]), call->x, call->dim, call->out, outs);
}

/* The same, and the profile is told how long each call took; `made_by` are their notes. */
static int call_timed(const group *g, const tp_fused *f, tp_tensors inputs, tp_scalars numbers, tp_tensors outs,
                      tp_note *const *made_by, tp_profile_mark mark) {
    tp_fused_times times = {0};
    tp_profile_part parts[TP_FUSED_CALLS + 1];
    tp_part_name names[TP_FUSED_CALLS + 1];
    int64_t begin = tp_clock_ns();
    tp_fused_timed = &times;
    int status = call_fused(g, f, inputs, numbers, outs);
    tp_fused_timed = NULL;
    times.whole = (tp_clock_ns() - begin) * (g->reduces ? tp_get_num_threads() : 1);
    if (status == 0 && times.timed)
        tp_profile_divide(mark, parts, tp_timed_parts(made_by, f->ncalls + g->reduces, f, &times, parts, names));
    return status;
}

static int64_t bytes_of_all(tp_tensors list) {
    int64_t bytes = 0;
    for (int64_t i = 0; i < list.size; i++) bytes += tp_bytes_of(list.data[i]);
    return bytes;
}

/* `moved`: the bytes that it reads and writes. */
static int run_group(const group *g, int64_t *moved, tp_profile_mark mark_of_group) {
    tp_fused f;
    tp_tensor *inputs[TP_FUSED_TENSORS], *outs[TP_FUSED_TENSORS];
    tp_scalar numbers[MOST_NUMBERS];
    bool stored[TP_FUSED_CALLS] = {false}, wanted[TP_FUSED_CALLS] = {false};
    int value_of_call[TP_FUSED_CALLS], input_of[TP_FUSED_TENSORS];
    tp_note *made_by[TP_FUSED_CALLS + 1];
    int64_t nnumbers = 0;
    memset(&f, 0, sizeof f);
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].written && is_needed(g, &g->mem[i])) stored[g->mem[i].value] = true;
    if (g->reduces) wanted[g->count - 1] = true;
    mark(g, stored, wanted);
    /* Inputs that a needed call reads, in the order in which they came. */
    bool read[TP_FUSED_TENSORS] = {false};
    for (int64_t c = 0; c < g->count; c++)
        for (int i = 0; wanted[c] && i < g->calls[c].ninputs; i++)
            if (g->calls[c].in[i] >= INPUT) read[g->calls[c].in[i] - INPUT] = true;
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].input >= 0 && read[g->mem[i].input]) {
            input_of[g->mem[i].input] = f.ninputs;
            inputs[f.ninputs++] = g->mem[i].tensor;
        }
    for (int64_t c = 0; c < g->count; c++) {
        if (!wanted[c]) continue;
        tp_fused_call *call = &f.calls[f.ncalls];
        *call = g->calls[c];
        for (int i = 0; i < call->ninputs; i++) {
            int v = call->in[i];
            if (v >= 0) call->in[i] = (int16_t)(v >= INPUT ? input_of[v - INPUT] : value_of_call[v]);
        }
        if (call->nnumbers)
            memcpy(numbers + nnumbers, g->from[c]->args[TP_MAP_NUMBERS].scalars.data, call->nnumbers * sizeof *numbers);
        nnumbers += call->nnumbers;
        made_by[f.ncalls] = (tp_note *)g->from[c];
        value_of_call[c] = f.ninputs + f.ncalls++;
    }
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].written && stored[g->mem[i].value]) {
            f.outputs[f.noutputs] = (int16_t)value_of_call[g->mem[i].value];
            outs[f.noutputs++] = g->mem[i].tensor;
        }
    *moved = bytes_of_all((tp_tensors){inputs, f.ninputs}) + bytes_of_all((tp_tensors){outs, f.noutputs});
    if (g->reduces) *moved += tp_bytes_of(g->reduction.out);
    if (!f.noutputs && !g->reduces) return 0;
    tp_tensors from = {inputs, f.ninputs}, to = {outs, f.noutputs};
    tp_scalars given = {numbers, nnumbers};
    if (tp_likely(!mark_of_group.profile)) return call_fused(g, &f, from, given, to);
    if (g->reduces) made_by[f.ncalls] = g->notes->calls[g->begin + g->count + (g->passed != NULL)];
    return call_timed(g, &f, from, given, to, made_by, mark_of_group);
}

/* ---- what is computed again ---- */

static int64_t inputs_bytes(const group *g) {
    int64_t bytes = 0;
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].input >= 0) bytes += tp_bytes_of(g->mem[i].tensor);
    return bytes;
}

static int64_t needed_bytes(const group *g, int64_t ncalls) {
    int64_t bytes = 0;
    for (int i = 0; i < g->nmem; i++)
        if (g->mem[i].written && g->mem[i].value < ncalls && is_needed(g, &g->mem[i]))
            bytes += tp_bytes_of(g->mem[i].tensor);
    return bytes;
}

/* Collects in `next` the calls of g and then those after its reduction. True: this is cheaper than to keep g's values.
 */
static bool begins_again(const group *g, group *next) {
    tp_notes *n = g->notes;
    if (!tp_fusion_has(TP_FUSION_AGAIN) || !g->reduces || g->from[0]->key == TP_KEY_CPU || g->count > MOST_AGAIN)
        return false;
    *next = (group){.notes = n, .begin = g->begin, .passed = &g->reduction};
    for (int64_t c = 0; c < g->count; c++) {
        if (why_not(next, g->from[c])) return false;
        join(next, g->from[c]);
    }
    for (int64_t i = g->begin + g->count + 1; i < n->ncalls && !why_not(next, n->calls[i]); i++)
        join(next, n->calls[i]);
    if (next->count == g->count) return false;
    int64_t after = g->begin + next->count + 1;
    if (after < n->ncalls) join_reduction(next, n->calls[after]);
    /* What is kept is written and read. */
    return 3 * (needed_bytes(g, g->count) - needed_bytes(next, g->count)) >= 2 * inputs_bytes(g);
}

/* ---- running ---- */

static int run_alone(tp_region *r, tp_notes *n, int64_t at, int64_t *count) {
    if (at < n->declined) r->told.ends = TP_PLAN_DECLINED;
    *count = 1;
    return tp_note_run(n->calls[at]);
}

/* 1: the backend has no kernel for it. */
static int try_group(tp_region *r, const group *g) {
    int64_t count = g->count + g->reduces + (g->passed != NULL), moved = 0;
    tp_profile_mark mark = tp_mark_unit(g->notes, g->begin, count, "group");
    int status = run_group(g, &moved, mark);
    bool declined = status < 0 && tp_take_decline();
    tp_profile_leave(mark, declined ? 0 : status);
    if (declined) return 1;
    r->told.moved += moved;
    r->told.kind = TP_PLAN_GROUP;
    r->report.groups++;
    return status;
}

/* The calls of a group, one by one. */
static int run_calls(const group *g) {
    int status = 0;
    for (int64_t c = 0; c < g->count && status == 0; c++) status = tp_note_run((tp_note *)g->from[c]);
    if (g->reduces && status == 0) status = tp_note_run(g->notes->calls[g->begin + g->count + 1]);
    return status;
}

int tp_run_fused(tp_region *r, tp_notes *n, int64_t at, int64_t *count) {
    group g, next;
    if (at < n->declined) return run_alone(r, n, at, count);
    g = (group){.notes = n, .begin = at};
    r->told.ends = TP_PLAN_NONE;
    for (int64_t i = at; i < n->ncalls && !(r->told.ends = why_not(&g, n->calls[i])); i++) join(&g, n->calls[i]);
    if (g.count && at + g.count < n->ncalls) join_reduction(&g, n->calls[at + g.count]);
    *count = g.count + g.reduces;
    if (*count < 2) return run_alone(r, n, at, count);
    bool again = g.forgets = begins_again(&g, &next);
    r->told.moved = 0;
    int status = try_group(r, &g);
    if (status == 1) {
        n->declined = at + *count;
        r->told.moved = -1;
        return run_alone(r, n, at, count);
    }
    if (again) {
        *count = next.count + next.reduces + 1;
        if (status == 0 && (status = try_group(r, &next)) == 1) status = run_calls(&next);
    }
    r->report.fused += *count;
    return status;
}

int64_t tp_join_notes(tp_notes *n, int64_t at, int64_t end, const bool *alone, int64_t *count) {
    *count = 1;
    const tp_note *first = n->calls[at];
    if ((!tp_note_maps(first) && !tp_note_copies(first)) || !tp_has_kernel(&tp_prims[TP_PRIM_fused_map], first->key))
        return TP_NOT_JOINED;
    if (first->key == TP_KEY_CPU && tp_bytes_of(output_of(first)) < LEAST_JOINED) return TP_NOT_JOINED;
    group g;
    g = (group){.notes = n, .begin = at, .into = n};
    for (int64_t i = at; i < end && !alone[i] && !why_not(&g, n->calls[i]); i++) join(&g, n->calls[i]);
    if (g.count && at + g.count < end && !alone[at + g.count]) join_reduction(&g, n->calls[at + g.count]);
    *count = g.count + g.reduces;
    if (*count < 2) return *count = 1, TP_NOT_JOINED;
    int64_t place = n->ncalls, moved;
    if (run_group(&g, &moved, (tp_profile_mark){0}) < 0) return TP_JOIN_FAILED;
    return n->ncalls > place ? place : TP_JOINED_TO_NOTHING;
}
