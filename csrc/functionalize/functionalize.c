/* functionalize.c: levels, memories and stand-ins. */
#include "Functions.h"
#include "batched/batched.h"
#include "core/alloc.h"
#include "core/lock.h"
#include "functionalize/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- levels ---- */

static _Atomic uint32_t last_number;

/* Keys above the layer that are for who called the function: they are told of values. */
#define OUTSIDE_ONLY (TP_BIT(Tracer) | TP_BIT(PythonMode))

static void enter(tp_functional_level *l) {
    l->batches = tp_batch_count();
    l->include = tp_tls.include;
    l->exclude = tp_tls.exclude;
    l->outer = tp_tls.functional;
    tp_tls.functional = l;
    tp_tls.include = (tp_tls.include & ~OUTSIDE_ONLY) | TP_BIT(Functionalize);
}

static void leave(const tp_functional_level *l) {
    tp_keyset own = OUTSIDE_ONLY | TP_BIT(Functionalize);
    tp_tls.include = (tp_tls.include & ~own) | (l->include & own);
    tp_tls.functional = l->outer;
}

uint32_t tp_functional_open(bool copies_views, uint32_t number) {
    tp_functional_level *l = calloc(1, sizeof *l);
    if (!l) return tp_fail_memory(sizeof *l), 0;
    l->number = number ? number : atomic_fetch_add(&last_number, 1) + 1;
    l->copies_views = copies_views;
    enter(l);
    return l->number;
}

int tp_functional_close(uint32_t number) {
    tp_functional_level *l = tp_tls.functional;
    if (!l || l->number != number)
        return tp_fail(TP_RuntimeError, "functionalize: level %u is not the innermost", number);
    leave(l);
    free(l);
    return 0;
}

tp_functional_level *tp_functional_level_of(uint32_t number) {
    tp_functional_level *l = tp_tls.functional;
    while (l && l->number != number) l = l->outer;
    return l;
}

/* Modes below the layer may have come and gone since the level was opened; what stands above it is as it was. */
tp_functional_outside tp_functional_step_out(tp_functional_level *level) {
    if (!level) return (tp_functional_outside){0};
    tp_functional_outside s = {tp_tls.functional, tp_tls.include, tp_tls.exclude, tp_batch_show(level->batches)};
    tp_keyset below = TP_BIT(Functionalize) - 1;
    tp_tls.include = (s.include & below) | (level->include & ~below);
    tp_tls.exclude = (s.exclude & below) | (level->exclude & ~below);
    tp_tls.functional = level->outer;
    return s;
}

void tp_functional_step_in(tp_functional_outside *s) {
    if (!s->level) return;
    tp_batch_show(s->batches);
    tp_tls.functional = s->level;
    tp_tls.include = s->include;
    tp_tls.exclude = s->exclude;
}

/* ---- memories ---- */

static void lie_as(tp_functional_memory *m, const tp_tensor *value) {
    m->ndim = value->ndim;
    m->byte_offset = value->byte_offset;
    memcpy(m->strides, value->strides, sizeof(int64_t) * value->ndim);
}

static tp_functional_memory *new_memory(uint32_t level, tp_tensor *value) {
    tp_functional_memory *m = tp_alloc(sizeof *m);
    if (!m) return NULL;
    const tp_functional_level *l = tp_functional_level_of(level);
    *m = (tp_functional_memory){
        .refcount = 1, .level = level, .value = tp_retain(value), .copies_views = l && l->copies_views};
    lie_as(m, value);
    return m;
}

static void release_memory(tp_functional_memory *m) {
    if (atomic_fetch_sub_explicit(&m->refcount, 1, memory_order_acq_rel) != 1) return;
    tp_release(m->value);
    tp_free(m, sizeof *m);
}

static bool lies_as_first(const tp_functional_memory *m, const tp_tensor *t) {
    if (t->ndim != m->ndim || t->byte_offset != m->byte_offset) return false;
    for (int i = 0; i < m->ndim; i++)
        if (t->sizes[i] != 1 && t->strides[i] != m->strides[i]) return false;
    return true;
}

bool tp_memory_lies_as_first(const tp_functional_memory *m) { return lies_as_first(m, m->value); }

int tp_refuse_target(const char *op) {
    return tp_fail(TP_RuntimeError,
                   "functionalize: %s writes to a tensor that is neither an argument of the function nor made in it",
                   op);
}

/* The dimensions by falling strides. */
static void order_of(const tp_functional_memory *m, int64_t *order, int64_t *back) {
    for (int i = 0; i < m->ndim; i++) {
        int k = i;
        for (; k > 0 && m->strides[order[k - 1]] < m->strides[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    for (int i = 0; i < m->ndim; i++) back[order[i]] = i;
}

tp_tensor *tp_memory_laid_out(tp_functional_memory *m) {
    if (lies_as_first(m, m->value)) return tp_retain(m->value);
    int64_t order[TP_MAX_DIMS], back[TP_MAX_DIMS];
    order_of(m, order, back);
    if (m->ndim == m->value->ndim) {
        tp_autoref *turned = tp_permute(m->value, (tp_ints){order, m->ndim});
        tp_autoref *dense = turned ? tp_clone(turned, TP_CONTIGUOUS_FORMAT) : NULL;
        tp_autoref *laid = dense ? tp_permute(dense, (tp_ints){back, m->ndim}) : NULL;
        if (!laid) return NULL;
        if (lies_as_first(m, laid)) return tp_take(laid);
    }
    return tp_fail_null(TP_RuntimeError,
                        "functionalize: as_strided on memory that is written and not contiguous is not possible");
}

static int replace_value(tp_functional_memory *m, tp_tensor *value) {
    tp_tensor *old = m->value;
    m->value = tp_retain(value);
    tp_autoref *laid = m->by_places ? tp_memory_laid_out(m) : tp_retain(value);
    if (!laid) {
        m->value = old;
        tp_release(value);
        return -1;
    }
    tp_release(m->value);
    m->value = tp_retain(laid);
    m->generation++;
    tp_release(old);
    return 0;
}

/* ---- stand-ins ---- */

/* With the version that the others have. */
static void enlist(tp_stand_in *p) {
    tp_lock(TP_LOCK_Functional);
    p->next = p->memory->members;
    if (p->next) {
        p->next->previous = p;
        atomic_store(&p->storage->version, atomic_load(&p->next->storage->version));
    }
    p->memory->members = p;
    tp_unlock(TP_LOCK_Functional);
}

static void free_stand_in(void *context, void *data TP_UNUSED) {
    tp_stand_in *p = context;
    tp_lock(TP_LOCK_Functional);
    if (p->next) p->next->previous = p->previous;
    if (p->previous) p->previous->next = p->next;
    else p->memory->members = p->next;
    tp_unlock(TP_LOCK_Functional);
    tp_step_release(p->steps);
    tp_step_release(p->own);
    tp_release(p->value);
    release_memory(p->memory);
    tp_free(p, sizeof *p);
}

/* Raises the versions of the others: the layer of views and versions raises the target's. */
static void raise_versions(const tp_stand_in *target) {
    tp_lock(TP_LOCK_Functional);
    for (tp_stand_in *p = target->memory->members; p; p = p->next)
        if (p != target) atomic_fetch_add_explicit(&p->storage->version, 1, memory_order_relaxed);
    tp_unlock(TP_LOCK_Functional);
}

static tp_storage *storage_of(tp_functional_memory *m, tp_step *steps, tp_tensor *value) {
    tp_stand_in *p = tp_alloc(sizeof *p);
    if (!p) return NULL;
    *p = (tp_stand_in){
        .memory = m, .steps = tp_step_retain(steps), .value = tp_retain(value), .generation = m->generation};
    tp_storage *s = tp_storage_from_blob(value->device, NULL, 0, free_stand_in, p);
    if (!s) {
        tp_step_release(p->steps);
        tp_release(p->value);
        tp_free(p, sizeof *p);
        return NULL;
    }
    p->storage = s;
    atomic_fetch_add_explicit(&m->refcount, 1, memory_order_relaxed);
    enlist(p);
    return s;
}

static void show_pending(tp_tensor *t, const tp_tensor *value) {
    t->flags &= (uint16_t)~(TP_FLAG_AS_CONJ | TP_FLAG_AS_NEG);
    t->flags |= (uint16_t)((tp_reads_conj(value) ? TP_FLAG_AS_CONJ : 0) | (tp_reads_neg(value) ? TP_FLAG_AS_NEG : 0));
}

tp_tensor *tp_stand_in_new(tp_functional_memory *m, tp_step *steps, tp_tensor *value, const tp_tensor *shown) {
    tp_storage *s = storage_of(m, steps, value);
    if (!s) return NULL;
    tp_tensor *t = tp_new_on_storage(s, tp_sizes(shown), tp_strides(shown), shown->byte_offset, tp_dtype_of(value));
    tp_storage_release(s);
    if (!t) return NULL;
    t->keys = (t->keys & ~(TP_BACKEND_KEYS | TP_LAYOUT_KEYS)) | TP_BIT(Functionalize);
    t->flags |= value->flags & TP_FLAG_WRAPPED_NUMBER;
    show_pending(t, value);
    return t;
}

tp_tensor *tp_functional_wrap(tp_tensor *value) {
    tp_functional_memory *m = new_memory(tp_tls.functional ? tp_tls.functional->number : 0, value);
    tp_tensor *t = m ? tp_stand_in_new(m, NULL, value, value) : NULL;
    if (m) release_memory(m);
    return t;
}

bool tp_functional_is_of(const tp_tensor *t, uint32_t number) {
    return tp_is_functional(t) && tp_stand_in_of(t)->memory->level == number;
}

static void keep_value(tp_stand_in *p, tp_tensor *value) {
    tp_tensor *old = p->value;
    p->value = tp_retain(value);
    p->generation = p->memory->generation;
    tp_release(old);
}

tp_tensor *tp_stand_in_value(const tp_tensor *t) {
    tp_stand_in *p = tp_stand_in_of(t);
    if (p->generation != p->memory->generation) {
        tp_autoref *value = tp_steps_follow(p->steps, NULL, p->memory->value);
        if (!value) return NULL;
        keep_value(p, value);
    }
    return tp_retain(p->value);
}

tp_tensor *tp_functional_value(const tp_tensor *t) {
    tp_auto_outside outside = tp_functional_step_out(tp_functional_level_of(tp_stand_in_of(t)->memory->level));
    return tp_stand_in_value(t);
}

/* The memory's value with `value` in place of what all steps show. New. */
static tp_tensor *put(const tp_stand_in *p, tp_tensor *value) {
    if (!p->memory->copies_views) return tp_steps_put(p->steps, p->memory->value, value);
    tp_functional_level bare = {.bare = true};
    enter(&bare);
    tp_tensor *whole = tp_steps_put(p->steps, p->memory->value, value);
    leave(&bare);
    return whole;
}

int tp_stand_in_write(tp_tensor *t, tp_tensor *value) {
    tp_stand_in *p = tp_stand_in_of(t);
    tp_autoref *whole = put(p, value);
    if (!whole || replace_value(p->memory, whole) < 0) return -1;
    raise_versions(p);
    /* What was written is read through its steps at once, as whoever records the values expects. */
    tp_autoref *shown = p->steps ? tp_stand_in_value(t) : NULL;
    return p->steps && !shown ? -1 : 0;
}

int tp_stand_in_turn(tp_tensor *t, tp_step *steps, tp_tensor *value, const tp_tensor *shown) {
    if (tp_tensor_set_geometry(t, tp_sizes(shown), tp_strides(shown)) < 0) return -1;
    t->byte_offset = shown->byte_offset;
    show_pending(t, value);
    tp_stand_in *p = tp_stand_in_of(t);
    tp_step *old = p->steps;
    p->steps = tp_step_retain(steps);
    tp_step_release(old);
    keep_value(p, value);
    return 0;
}

int tp_stand_in_renew(tp_tensor *t, tp_tensor *value) {
    if (tp_tensor_set_geometry(t, tp_sizes(value), tp_strides(value)) < 0) return -1;
    t->byte_offset = value->byte_offset;
    tp_stand_in *p = tp_stand_in_of(t);
    lie_as(p->memory, value);
    if (replace_value(p->memory, value) < 0) return -1;
    keep_value(p, value);
    return 0;
}

int tp_stand_in_assign(tp_tensor *t, tp_tensor *source) {
    const tp_stand_in *from = tp_stand_in_of(source);
    tp_autoref *value = tp_functional_value(source);
    tp_autoref *made = value ? tp_stand_in_new(from->memory, from->steps, value, source) : NULL;
    if (!made || tp_tensor_assign(t, made) < 0) return -1;
    tp_stand_in_of(t)->assigned = true;
    show_pending(t, value);
    return 0;
}

/* ---- arguments of the function ---- */

void tp_functional_mark(const tp_tensor *t) {
    tp_stand_in *p = tp_stand_in_of(t);
    tp_step_release(p->own);
    p->own = tp_step_retain(p->steps);
}

/* The views that the stand-in was turned into, on the argument. */
static int turn_argument(tp_tensor *argument, const tp_step *s, const tp_step *own) {
    if (!s || s == own || !s->inplace) return 0;
    if (turn_argument(argument, s->before, own) < 0) return -1;
    tp_value args[s->view->info->nargs + 1], made[1] = {{TP_NONE}};
    memcpy(args, s->args, (size_t)s->view->info->nargs * sizeof *args);
    args[s->viewed] = (tp_value){.tag = TP_TENSOR, .tensor = argument};
    if (tp_call_boxed(s->inplace, args, made) < 0) return -1;
    tp_value_release(&made[0]);
    return 0;
}

int tp_functional_write_back(tp_tensor *argument, const tp_tensor *t) {
    const tp_stand_in *p = tp_stand_in_of(t);
    if (p->assigned) {
        tp_autoref *value = tp_stand_in_value(t);
        return value ? tp_set__source_Tensor(argument, value) : -1;
    }
    if (p->memory->generation) {
        tp_autoref *value = tp_steps_follow(p->own, NULL, p->memory->value);
        if (!value) return -1;
        if (!tp_same_sizes(argument, value) && tp_resize_(argument, tp_sizes(value), TP_NO_FORMAT) < 0) return -1;
        if (value != argument && tp_copy_(argument, value, false) < 0) return -1;
    }
    return turn_argument(argument, p->steps, p->own);
}

tp_tensor *tp_functional_as_view(tp_tensor *argument, const tp_tensor *t, const tp_tensor *result) {
    const tp_stand_in *p = tp_stand_in_of(t), *r = tp_stand_in_of(result);
    if (p->memory != r->memory) return NULL;
    const tp_step *s = r->steps;
    while (s && s != p->own) s = s->before;
    return s == p->own ? tp_steps_follow(r->steps, p->own, argument) : NULL;
}
