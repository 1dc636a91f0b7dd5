/* explain.c: what is told of a region to who asks: each unit as it has run, each flush, each call that did not wait. */
#include "plan/region.h"

#include "core/alloc.h"
#include "core/tls.h"

#include <stdio.h>

static const char *const reasons[] = {
#define TP_PLAN_REASON(name, text) text,
    TP_PLAN_REASONS(TP_PLAN_REASON)
#undef TP_PLAN_REASON
};

int64_t tp_bytes_of(const tp_tensor *t) { return t->numel * tp_itemsize((tp_dtype)t->dtype); }

/* What a note reads and writes by itself, and the last tensor that it writes. */
static int64_t bytes_alone(const tp_note *note, const tp_tensor **like) {
    int64_t bytes = 0;
    for (int i = 0; i < note->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&note->args[i]);
        for (int64_t k = 0; k < list.size; k++) {
            if (!list.data[k]) continue;
            bytes += tp_bytes_of(list.data[k]);
            if (note->op->info->args[i].is_write) *like = list.data[k];
        }
    }
    return bytes;
}

/* The most memory at a time of what the program does not hold. */
static void look_at_memory(tp_told *told, const tp_notes *n) {
    int64_t live = 0;
    for (int64_t i = 0; i < n->nslots; i++) {
        const tp_plan_slot *slot = &n->slots[i];
        if (slot->storage && slot->born && slot->storage->data && !tp_slot_is_held(slot))
            live += (int64_t)slot->storage->nbytes;
    }
    if (live > told->peak) told->peak = live;
}

void tp_tell_unit(tp_region *r, const tp_notes *n, int64_t at, int64_t count) {
    const tp_op **operators = tp_alloc((size_t)count * sizeof *operators);
    if (!operators) {
        tp_error_clear(); /* it goes untold */
        return;
    }
    tp_plan_event e = {.kind = count > 1 ? r->told.kind : TP_PLAN_CALL, .operators = operators, .count = count};
    for (int64_t i = 0; i < count; i++) {
        const tp_note *note = n->calls[at + i];
        operators[i] = note->from ? note->from : note->op;
        e.alone += bytes_alone(note, &e.like);
    }
    tp_plan_reason ends = at + count == n->ncalls ? TP_PLAN_LAST : r->told.ends;
    e.moved = r->told.moved < 0 ? e.alone : r->told.moved;
    e.why = reasons[r->options.fuses ? ends : TP_PLAN_SINGLE];
    look_at_memory(&r->told, n);
    r->options.tell(r->options.context, &e);
    tp_free(operators, (size_t)count * sizeof *operators);
}

void tp_tell_flush(tp_region *r, const char *why) {
    tp_plan_event e = {
        .kind = TP_PLAN_FLUSH, .why = why, .unstored = r->told.unstored, .peak = r->told.peak, .again = r->told.again};
    if (why && r->current) {
        e.operators = &r->current;
        e.count = 1;
    }
    r->options.tell(r->options.context, &e);
}

void tp_tell_at_once(tp_region *r, const tp_op *op, tp_plan_reason why) {
    r->options.tell(r->options.context,
                    &(tp_plan_event){.kind = TP_PLAN_AT_ONCE, .operators = &op, .count = 1, .why = reasons[why]});
}

static const char *operators_of(tp_note *const *calls, int64_t count, char *text, size_t room) {
    char name[128];
    size_t used = 0;
    for (int64_t i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "",
                                 tp_op_name(calls[i]->from ? calls[i]->from : calls[i]->op, name));
    return text;
}

tp_profile_mark tp_mark_unit(const tp_notes *n, int64_t at, int64_t count, const char *kind) {
    if (tp_likely(!(tp_tls.include & TP_BIT(Profiler)))) return (tp_profile_mark){0};
    char text[256], names[224];
    snprintf(text, sizeof text, "%s of %lld calls: %s", kind, (long long)count,
             operators_of(&n->calls[at], count, names, sizeof names));
    return tp_profile_enter(TP_PROFILED_RANGE, text, -1);
}

int tp_timed_parts(tp_note *const *notes, int64_t count, const tp_fused *f, const tp_fused_times *times,
                   tp_profile_part *parts, tp_part_name *names) {
    int n = 0;
    int64_t rest = times->whole;
    if (!times->timed || (f && f->ncalls != count && f->ncalls + 1 != count)) f = NULL;
    for (; f && n < f->ncalls; n++) {
        int64_t share = times->spent[n] * times->blocks / times->timed;
        parts[n] = (tp_profile_part){operators_of(&notes[n], 1, names[n], sizeof *names), share};
        rest -= share;
    }
    if (n == count) return n;
    parts[n] = (tp_profile_part){operators_of(&notes[n], count - n, names[n], sizeof *names), rest > 0 ? rest : 0};
    return n + 1;
}
