/* region.c: regions from their beginning to their end, and what others ask of pending storages. */
#include "plan/region.h"
#include "plan/tape_parts.h"

#include "core/alloc.h"
#include "core/tls.h"

#include <string.h>

static tp_region *open_regions; /* of all threads; with the host lock */
bool tp_regions_off;

/* Options by their numbers, from 1 on: what autograd's nodes are marked with. */
#define MOST_OPTIONS (UINT8_MAX / TP_NODES_PLANNED)
static tp_region_options numbered[MOST_OPTIONS + 1];
static int count_of_numbers;

/* 0: there is no number left. */
static int number_of(const tp_region_options *o) {
    for (int i = 1; i <= count_of_numbers; i++) {
        const tp_region_options *known = &numbered[i];
        if (known->fuses == o->fuses && known->smallest == o->smallest && known->tile == o->tile) return i;
    }
    if (count_of_numbers == MOST_OPTIONS) return 0;
    numbered[++count_of_numbers] = (tp_region_options){.fuses = o->fuses, .smallest = o->smallest, .tile = o->tile};
    return count_of_numbers;
}

static void mark_nodes(int number) {
    tp_tls.new_nodes = (uint8_t)((tp_tls.new_nodes & TP_NODES_UNTRACED) | number * TP_NODES_PLANNED);
}

int tp_region_enter(const tp_region_options *options) {
    tp_region *r = tp_alloc(sizeof *r);
    if (!r) return -1;
    memset(r, 0, sizeof *r);
    r->options = *options;
    r->users = 1;
    r->next = open_regions;
    open_regions = r;
    tp_tls.region = r;
    mark_nodes(number_of(options));
    tp_tls.include |= TP_BIT(Deferred);
    tp_tls.observe |= TP_BIT(Deferred);
    if (options->recomputes && !options->tape) tp_tls.saves |= TP_SAVES_NOTED;
    return 0;
}

/* Who waits for a region's turn gives the host lock up: the region's thread may have left it by then. */
static void let_go(tp_region *r) {
    if (--r->users == 0) tp_free(r, sizeof *r);
}

static void unlink_region(tp_region *r) {
    tp_region **at = &open_regions;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
}

int tp_region_leave(tp_region_report *report) {
    tp_region *r = tp_tls.region;
    int status = tp_region_flush(r, NULL);
    tp_tls.include &= ~TP_BIT(Deferred);
    tp_tls.observe &= ~TP_BIT(Deferred);
    tp_tls.saves &= (uint8_t)~TP_SAVES_NOTED;
    tp_tls.region = NULL;
    mark_nodes(0);
    unlink_region(r);
    *report = r->report;
    let_go(r);
    return status;
}

void tp_region_spoil(const char *why) {
    if (tp_unlikely(tp_tls.region != NULL) && tp_tls.region->options.tape)
        tp_tape_spoil(tp_tls.region->options.tape, why);
}

int tp_region_break(const char *why) {
    tp_region *r = tp_tls.region;
    return !r ? 0 : tp_region_check_whole(r, why) < 0 ? -1 : tp_region_flush(r, why);
}

static int decides(const tp_storage *s) {
    tp_region *r = tp_tls.region;
    return r->current || !s->later ? 0 : tp_region_check_whole(r, "a value decides what the program does");
}

/* ---- what core/storage.h asks ---- */

static tp_region *region_of(const tp_storage *s, bool *runs) {
    for (tp_region *r = open_regions; r; r = r->next) {
        *runs = false;
        if (tp_notes_have(&r->notes, s)) return r;
        *runs = true;
        for (tp_notes *n = r->running; n; n = n->outer)
            if (tp_notes_have(n, s)) return r;
    }
    return NULL;
}

static tp_region *busy_region(void) {
    tp_region *r = open_regions;
    while (r && (r == tp_tls.region || (!r->notes.nslots && !r->running))) r = r->next;
    return r;
}

static int settle_all(void) {
    for (tp_region *r; (r = busy_region());) {
        r->users++;
        int status = tp_region_flush(r, "another thread begins");
        if (status == 0 && r->running && (status = tp_turn_take(&r->turn)) == 0) {
            r->running = NULL; /* if there still is any: its thread did not live on after a fork */
            tp_turn_pass(&r->turn);
        }
        let_go(r);
        if (status < 0) return -1;
    }
    return 0;
}

/* Whether the call that runs was given the storage: what the notes before it have written is there. */
static bool is_argument(const tp_notes *n, const tp_storage *s) {
    const tp_note *now = n->now;
    for (int i = 0; now && i < now->op->info->nargs; i++) {
        tp_tensors list = tp_value_tensors(&now->args[i]);
        for (int64_t k = 0; k < list.size; k++)
            if (list.data[k] && list.data[k]->storage == s) return true;
    }
    return false;
}

static int settle(tp_storage *s) {
    if (tp_in_tile && s->data) return 0;  /* else a signal's handler asks for another tensor */
    const tp_region *own = tp_tls.region; /* NULL: somebody has included the key */
    if (own && tp_tls.include & TP_BIT(Deferred) && !own->settles) tp_region_spoil("a value is read");
    if (s->later & TP_LATER_AGAIN && tp_compute_again(s) < 0) return -1;
    while (s->later && s->later != TP_LATER_FAILED) {
        bool runs;
        tp_region *r = region_of(s, &runs);
        if (!r) break;
        r->users++;
        int status = 0;
        bool stuck = false;
        if (!runs) {
            const char *why = r == own ? "memory is read or lent" : "another thread reads it";
            if (r == own && !r->settles && !r->current) status = tp_region_check_whole(r, why);
            if (status == 0) status = tp_region_flush(r, why);
        } else { /* Another thread runs it: its turn is over when it is done. Nobody waits for himself. */
            tp_notes *before = r->running;
            status = tp_turn_take(&r->turn);
            if (status == 0) tp_turn_pass(&r->turn);
            stuck = s->later && r->running == before;
        }
        let_go(r);
        if (status < 0) return -1;
        if (stuck && is_argument(r->running, s)) return 0;
        if (stuck) break;
    }
    if (!s->later || s->later == TP_LATER_READ) return 0;
    return tp_fail(TP_RuntimeError, s->later & TP_LATER_FAILED
                                        ? "a tensor has no values: the call that should have computed them in a "
                                          "compiled function has failed"
                                        : "a tensor is needed while it is being computed");
}

static int settle_unseen(tp_storage *s) {
    tp_region *r = tp_tls.region;
    bool before = r && r->settles;
    if (r && tp_tls.include & TP_BIT(Deferred)) tp_region_spoil("a value is read");
    if (r) r->settles = true;
    int status = settle(s);
    if (r) r->settles = before;
    return status;
}

static int make(tp_storage *s) {
    tp_region *r = tp_tls.region;
    return tp_notes_add_storage(&r->notes, s, true);
}

static int lend(void) {
    tp_region *r = tp_tls.region;
    if (r->lent) return 0;
    r->lent = true;
    tp_region_spoil("an address is lent");
    return tp_region_check_whole(r, "an address is lent") < 0 ? -1 : tp_region_flush(r, "an address is lent");
}

static bool is_sole(const tp_storage *s) {
    bool runs;
    const tp_region *noted = region_of(s, &runs), *r = noted ? noted : tp_tls.region;
    if (!r || (noted && runs)) return false;
    bool taped = r->options.tape && tp_tape_has(r->options.tape, s);
    int64_t uses = noted ? r->notes.slots[s->slot].uses + 1 : 0;
    return atomic_load_explicit(&s->refcount, memory_order_acquire) == uses + 1 + taped;
}

/* What the region has made is as it is at the end; of all else a tape would have to know, also where a view begins: an
 * argument may lie elsewhere in its memory the next time. */
static void reshaped(const tp_storage *s, const char *how) {
    const tp_region *r = tp_tls.region;
    if (!r->options.tape || !s->nbytes) return;
    if (!tp_region_has(r, s) || !r->notes.slots[s->slot].born) tp_tape_spoil(r->options.tape, how);
}

static void unsaved(const void *number, const tp_tensor *t) {
    for (tp_region *r = open_regions; r; r = r->next) {
        if (tp_notes_unsave(&r->notes, number, t)) return;
        for (tp_notes *n = r->running; n; n = n->outer)
            if (tp_notes_unsave(n, number, t)) return;
    }
}

static int open_for_backward(uint8_t options) {
    if (tp_regions_off || tp_tls.include & TP_PLAN_WATCHERS) return 0;
    return tp_region_enter(&numbered[options]) < 0 ? -1 : 1;
}

static int close_after_backward(void) {
    tp_region_report report;
    return tp_region_leave(&report);
}

int tp_defer_load(void);

int tp_plan_load(void) {
    tp_pending_hooks.settle = settle;
    tp_pending_hooks.settle_unseen = settle_unseen;
    tp_pending_hooks.decides = decides;
    tp_pending_hooks.settle_all = settle_all;
    tp_pending_hooks.make = make;
    tp_pending_hooks.lend = lend;
    tp_pending_hooks.is_sole = is_sole;
    tp_pending_hooks.reshaped = reshaped;
    tp_pending_hooks.open = open_for_backward;
    tp_pending_hooks.close = close_after_backward;
    tp_pending_hooks.unsaved = unsaved;
    tp_again_load();
    return tp_defer_load();
}
