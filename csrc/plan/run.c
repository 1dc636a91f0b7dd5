/* run.c: a flush: what is noted is run, in its order, and the storages get their contents. */
#include "plan/region.h"

#include "core/alloc.h"
#include "core/tls.h"

#include <stdio.h>
#include <string.h>

/* The slot's last note is done, or will never run. */
static void close_slot(tp_told *told, tp_notes *n, tp_plan_slot *slot, bool failed) {
    tp_storage *s = slot->storage;
    if (!s) return;
    if (slot->born && !s->data && !tp_slot_is_held(slot)) told->unstored += (int64_t)s->nbytes;
    s->later = failed && slot->born ? TP_LATER_FAILED : 0;
    if (tp_unlikely(slot->recipe != NULL)) told->again += tp_slot_forget(n, slot);
    slot->storage = NULL;
    tp_storage_release(s);
}

static void finish_note(tp_told *told, tp_notes *n, int64_t at, bool failed) {
    tp_note *note = n->calls[at];
    int64_t touched[64], count = 0;
    for (int i = 0; i < note->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&note->args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && count < TP_COUNTOF(touched)) touched[count++] = list.data[k]->storage->slot;
    }
    if (tp_unlikely(n->nkept) && !failed) tp_note_leave(n, at + 1);
    else tp_note_free(n, note);
    for (int64_t i = 0; i < count; i++)
        if (n->slots[touched[i]].storage && n->slots[touched[i]].uses == 0)
            close_slot(told, n, &n->slots[touched[i]], failed);
}

/* Storages that no note has written are memory without contents, as outside of regions. */
static int finish_slots(tp_told *told, tp_notes *n, int status) {
    for (int64_t i = 0; i < n->nslots; i++) {
        tp_plan_slot *slot = &n->slots[i];
        if (!slot->storage) continue;
        if (status == 0 && tp_slot_is_held(slot) && !slot->recipe) status = tp_storage_fill(slot->storage);
        close_slot(told, n, slot, status < 0);
    }
    return status;
}

static int run_joined(tp_region *r, tp_notes *n, int64_t at, int64_t *count) {
    int status = tp_run_tiled(r, n, at, count);
    return status == 1 ? tp_run_fused(r, n, at, count) : status;
}

/* The traceback is that of the line that needed a result: the message names the operator, and its line where a kernel
 * from outside has run: looking for a line takes longer than noting a call, and the library's own kernels fail only
 * where memory is out. */
static int fail_late(tp_note *const *calls, int64_t count) {
    char name[128];
    const tp_note *which = calls[0];
    for (int64_t i = count; i-- > 0;)
        if (calls[i]->line) which = calls[i];
    const char *others = count > 1 ? " and what ran with it" : "";
    const char *line = which->line ? which->line : "backend=\"eager\" shows the line";
    return tp_error_prefix("%s%s, called earlier in a compiled function (%s): ",
                           tp_op_name(which->from ? which->from : which->op, name), others, line);
}

static int run_all(tp_region *r, tp_notes *n) {
    int status = 0;
    for (int64_t i = 0, count; i < n->ncalls; i += count) {
        const bool runs = status == 0;
        count = 1;
        r->told.moved = -1;
        n->now = n->calls[i];
        if (runs) status = r->options.fuses ? run_joined(r, n, i, &count) : tp_note_run(n->calls[i]);
        if (tp_unlikely(runs && status < 0)) fail_late(&n->calls[i], count);
        if (tp_unlikely(r->options.tell != NULL) && status == 0) tp_tell_unit(r, n, i, count);
        n->now = NULL;
        for (int64_t k = 0; k < count; k++) finish_note(&r->told, n, i + k, status < 0);
    }
    status = finish_slots(&r->told, n, status);
    tp_free(n->calls, (size_t)n->call_room * sizeof *n->calls);
    tp_free(n->slots, (size_t)n->slot_room * sizeof *n->slots);
    tp_free(n->kept, (size_t)n->kept_room * sizeof *n->kept);
    return status;
}

int tp_region_check_whole(tp_region *r, const char *why) {
    char name[128], message[512];
    if (tp_likely(!r->options.whole) || !r->notes.nslots) return 0;
    /* A number may be asked for, and computed with: what is decided by one is tp_decides. */
    if (r->current && tp_reads_number(r->current)) return 0;
    r->options.whole = false; /* once: what follows looks at tensors to tell of the error */
    snprintf(message, sizeof message, "compile(fullgraph=True): the function does not run as a whole: %s%s%s", why,
             r->current ? ", at " : "", r->current ? tp_op_name(r->current, name) : "");
    return r->options.refuse ? r->options.refuse(message) : tp_fail(TP_RuntimeError, "%s", message);
}

static void report_break(tp_region *r, const char *why) {
    r->report.flushes++;
    if (r->report.why) return;
    r->report.why = why;
    if (r->current) tp_op_name(r->current, r->report.operator);
}

int tp_region_flush(tp_region *r, const char *why) {
    if (!r->notes.nslots) return 0;
    if (tp_turn_take(&r->turn) < 0) return -1;
    int status = 0;
    if (r->notes.nslots) { /* still */
        if (why) report_break(r, why);
        tp_notes n = r->notes;
        n.outer = r->running;
        r->notes = (tp_notes){0};
        r->told = (tp_told){0};
        r->bytes = 0;
        r->running = &n;
        tp_at_once_guard guard = tp_at_once();
        status = run_all(r, &n);
        if (tp_unlikely(r->options.tell != NULL)) tp_tell_flush(r, why);
        r->running = n.outer;
    }
    tp_turn_pass(&r->turn);
    return status;
}
