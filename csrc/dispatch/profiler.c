/* profiler.c: the fallback under the key Profiler, and the buffers that it writes; see profiler.h. */
#include "dispatch/profiler.h"

#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static tp_profile *current; /* the innermost */
static uint64_t last_number;
static int64_t registration;

/* This thread's buffer in the profile of that number; in any other it has none yet. */
static __thread struct {
    tp_profile_thread *buffer;
    uint64_t profile;
} mine;

static int64_t thread_id(void) {
#ifdef __linux__
    return (int64_t)syscall(SYS_gettid);
#else
    return (int64_t)(intptr_t)&mine;
#endif
}

/* ---- buffers ---- */

static tp_profile_thread *use_buffer(const tp_profile *p, tp_profile_thread *b) {
    mine.buffer = b;
    mine.profile = p->number;
    return b;
}

/* The one of before an inner profile, or a fresh one. NULL where there is no memory: the event is not recorded, and the
 * call goes on. */
static tp_profile_thread *find_buffer(tp_profile *p) {
    int64_t id = thread_id();
    for (tp_profile_thread *b = p->threads; b; b = b->next)
        if (b->id == id) return use_buffer(p, b);
    tp_profile_thread *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->number = ++p->nthreads;
    b->id = id;
    b->open = -1;
    b->next = p->threads;
    p->threads = b;
    return use_buffer(p, b);
}

static tp_profile_thread *buffer_of(tp_profile *p) {
    return tp_likely(mine.profile == p->number) ? mine.buffer : find_buffer(p);
}

static bool grow(void **items, int64_t *capacity, int64_t needed, size_t size) {
    if (tp_likely(needed <= *capacity)) return true;
    int64_t larger = *capacity * 2 > needed ? *capacity * 2 : needed + 255;
    void *grown = realloc(*items, (size_t)larger * size);
    if (!grown) return false;
    *items = grown;
    *capacity = larger;
    return true;
}

static void clear_thread(const tp_profile *p, tp_profile_thread *t) {
    for (int64_t i = 0; i < t->count; i++) {
        free(t->events[i].name);
        if (t->events[i].stack) p->free_stack(t->events[i].stack);
    }
    t->count = t->nwords = 0;
}

void tp_profile_clear(tp_profile *p) {
    for (tp_profile_thread *t = p->threads, *next; t; t = next) {
        next = t->next;
        clear_thread(p, t);
        free(t->events);
        free(t->words);
        free(t);
    }
    p->threads = NULL;
}

/* ---- events ---- */

/* What is live at the end, less what was at the beginning. */
static void add_memory(const tp_profile *p, tp_profile_event *e, int sign) {
    e->bytes += sign * tp_alloc_stats().live_bytes;
    if (p->device_memory) e->device_bytes += sign * p->device_memory();
}

/* The place of a fresh event, or -1. */
static int64_t open_event(tp_profile *p, tp_profile_thread *t, const tp_op *op, tp_profiled_kind kind) {
    if (!grow((void **)&t->events, &t->capacity, t->count + 1, sizeof *t->events) || t->count >= INT32_MAX) return -1;
    int64_t at = t->count++;
    t->events[at] =
        (tp_profile_event){.op = op, .parent = t->open, .kind = (uint8_t)kind, .sequence = -1, .shapes = -1};
    t->open = (int32_t)at;
    if (p->memory) add_memory(p, &t->events[at], -1);
    if (p->stack) {
        void *stack = p->stack(); /* the host may come back here meanwhile */
        t->events[at].stack = stack;
    }
    return at;
}

tp_profile_mark tp_profile_enter(tp_profiled_kind kind, const char *name, int64_t sequence) {
    tp_profile *p = current;
    tp_profile_thread *t = p ? buffer_of(p) : NULL;
    int64_t at = t ? open_event(p, t, NULL, kind) : -1;
    if (at < 0) return (tp_profile_mark){0, -1};
    t->events[at].name = strdup(name);
    t->events[at].sequence = sequence;
    t->events[at].begin = tp_clock_ns();
    return (tp_profile_mark){p->number, at};
}

/* The profile of a mark and this thread's buffer; NULL where it is over. */
static tp_profile_thread *buffer_of_mark(tp_profile_mark mark, tp_profile **of) {
    tp_profile *p = current;
    while (p && p->number != mark.profile) p = p->outer;
    *of = p;
    return p && mark.at >= 0 ? buffer_of(p) : NULL;
}

void tp_profile_divide(tp_profile_mark mark, const tp_profile_part *parts, int64_t count) {
    int64_t now = tp_clock_ns();
    double all = 0, before = 0;
    tp_profile *p;
    tp_profile_thread *t = buffer_of_mark(mark, &p);
    for (int64_t i = 0; i < count; i++) all += (double)parts[i].share;
    for (int64_t i = 0; t && i < count && all > 0; i++) {
        int64_t at = open_event(p, t, NULL, TP_PROFILED_RANGE);
        if (at < 0) return;
        int64_t begin = t->events[mark.at].begin;
        tp_profile_event *e = &t->events[at];
        e->name = strdup(parts[i].name);
        e->begin = begin + (int64_t)((double)(now - begin) * before / all);
        before += (double)parts[i].share;
        e->end = begin + (int64_t)((double)(now - begin) * before / all);
        if (p->memory) add_memory(p, e, 1);
        t->open = (int32_t)mark.at;
    }
}

void tp_profile_leave(tp_profile_mark mark, int status) {
    int64_t now = tp_clock_ns();
    tp_profile *p;
    tp_profile_thread *t = buffer_of_mark(mark, &p);
    if (!t) return;
    tp_profile_event *e = &t->events[mark.at];
    e->end = now;
    e->failed = status < 0;
    if (p->memory) add_memory(p, e, 1);
    t->open = e->parent;
    if (p->ended && e->parent < 0) {
        p->ended(t);
        clear_thread(p, t);
    }
}

bool tp_profile_open(uint32_t *thread, int64_t *at) {
    tp_profile *p = current;
    if (!p || mine.profile != p->number || mine.buffer->open < 0) return false;
    *thread = mine.buffer->number;
    *at = mine.buffer->open;
    return true;
}

/* ---- operators ---- */

/* The integers of an argument that is one, or a list of them. */
static tp_ints ints_of(const tp_value *v) {
    if (v->tag == TP_INT) return (tp_ints){&v->i, 1};
    return v->tag == TP_INTS_ && v->ints.size > 0 ? v->ints : (tp_ints){0};
}

static int64_t words_of(const tp_value *v) {
    int64_t n = 1 + ints_of(v).size;
    if (v->tag == TP_TENSOR) return 1 + v->tensor->ndim;
    for (int64_t i = 0; v->tag == TP_TENSORS && i < v->tensors.size; i++)
        n += 1 + (v->tensors.data[i] ? v->tensors.data[i]->ndim : 0);
    return n;
}

static int64_t *describe_tensor(int64_t *w, const tp_tensor *t) {
    *w++ = t ? tp_word(TP_WORD_TENSOR, t->dtype, t->ndim) : tp_word(TP_WORD_OTHER, 0, 0);
    if (t) memcpy(w, t->sizes, t->ndim * sizeof *w);
    return t ? w + t->ndim : w;
}

/* Where the description starts that was added; -1 without memory. A head, where there is one, says how many they are.
 */
static int64_t describe(tp_profile_thread *t, const tp_value *args, int count, bool head) {
    int64_t start = t->nwords, n = head;
    for (int i = 0; i < count; i++) n += words_of(&args[i]);
    if (!grow((void **)&t->words, &t->words_capacity, start + n, sizeof *t->words)) return -1;
    int64_t *w = t->words + start;
    if (head) *w++ = tp_word(TP_WORD_LIST, 0, count);
    for (int i = 0; i < count; i++) {
        bool list = args[i].tag == TP_TENSORS && args[i].tensors.size >= 0;
        tp_ints ints = ints_of(&args[i]);
        if (ints.size) {
            *w++ = tp_word(TP_WORD_INTS, 0, ints.size);
            memcpy(w, ints.data, (size_t)ints.size * sizeof *w);
            w += ints.size;
            continue;
        }
        if (!list) {
            w = describe_tensor(w, args[i].tag == TP_TENSOR ? args[i].tensor : NULL);
            continue;
        }
        *w++ = tp_word(TP_WORD_LIST, 0, args[i].tensors.size);
        for (int64_t k = 0; k < args[i].tensors.size; k++) w = describe_tensor(w, args[i].tensors.data[k]);
    }
    t->nwords = start + n;
    return start;
}

void tp_profile_describe(tp_profile_mark mark, const tp_value *args, int count) {
    tp_profile *p;
    tp_profile_thread *t = buffer_of_mark(mark, &p);
    if (!t || !p->shapes) return;
    int64_t shapes = describe(t, args, count, true);
    t->events[mark.at].shapes = shapes;
}

static tp_tensors tensors_of(const tp_value *v) {
    if (v->tag == TP_TENSOR_SEQ) return (tp_tensors){v->seq->items, v->seq->size};
    return v->tag == TP_TENSOR ? (tp_tensors){(tp_tensor *const *)&v->tensor, 1} : (tp_tensors){0};
}

/* A factory's backend is its result's. */
static tp_key backend_of(const tp_op *op, tp_keyset ks, const tp_value *results) {
    ks &= TP_BACKEND_KEYS | TP_LAYOUT_KEYS;
    if (!ks && results && op->info->nreturns && results[0].tag == TP_TENSOR && results[0].tensor)
        ks = results[0].tensor->keys & (TP_BACKEND_KEYS | TP_LAYOUT_KEYS);
    return tp_live_key(op, ks);
}

/* The number of the node that the call has recorded, if one was recorded since `first`. */
static int64_t recorded_node(const tp_profile *p, const tp_op *op, const tp_value *args, const tp_value *results,
                             uint64_t first) {
    if (p->next_sequence() == first) return -1;
    for (int i = 0; i < op->info->nreturns; i++) {
        tp_tensors found = tensors_of(&results[i]);
        for (int64_t k = 0; k < found.size; k++) {
            int64_t sequence = found.data[k] ? p->sequence_of(found.data[k]) : -1;
            if (sequence >= (int64_t)first) return sequence;
        }
    }
    for (int i = 0; i < op->info->nargs; i++) {
        if (!op->info->args[i].is_write || args[i].tag != TP_TENSOR) continue;
        int64_t sequence = p->sequence_of(args[i].tensor);
        if (sequence >= (int64_t)first) return sequence;
    }
    return -1;
}

static int profile_operator(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    tp_profile *p = current;
    tp_profile_thread *t = p ? buffer_of(p) : NULL;
    int64_t at = t ? open_event(p, t, op, TP_PROFILED_OPERATOR) : -1;
    if (at < 0) return tp_redispatch_boxed(op, ks & TP_BELOW(Profiler), args, results);
    tp_profile_mark mark = {p->number, at};
    if (p->shapes) {
        int64_t shapes = describe(t, args, op->info->nargs, false);
        t->events[at].shapes = shapes;
    }
    uint64_t first = p->next_sequence ? p->next_sequence() : 0;
    t->events[at].begin = tp_clock_ns();
    int status = tp_redispatch_boxed(op, ks & TP_BELOW(Profiler), args, results);
    if (current && current->number == mark.profile) { /* else it has ended, and may be gone */
        tp_profile_event *e = &t->events[at];
        e->backend = (uint8_t)backend_of(op, ks, status < 0 ? NULL : results);
        if (p->next_sequence && status == 0) e->sequence = recorded_node(p, op, args, results, first);
    }
    tp_profile_leave(mark, status);
    return status;
}

/* ---- profiles ---- */

int tp_profile_start(tp_profile *p) {
    if (!current) {
        registration = tp_register_fallback(TP_KEY_Profiler, profile_operator, NULL, NULL, "dispatch/profiler.c");
        if (registration < 0) return -1;
    }
    tp_profile_clear(p);
    p->number = ++last_number;
    p->nthreads = 0;
    p->outer = current;
    current = p;
    if (!p->outer) tp_thread_include(TP_BIT(Profiler), true);
    if (!tp_thread_register()) tp_tls.include |= TP_BIT(Profiler);
    return 0;
}

void tp_profile_stop(tp_profile *p) {
    tp_profile **place = &current;
    while (*place && *place != p) place = &(*place)->outer;
    if (!*place) return;
    *place = p->outer;
    if (current) return;
    tp_thread_include(TP_BIT(Profiler), false);
    tp_tls.include &= ~TP_BIT(Profiler);
    tp_deregister(registration);
}
