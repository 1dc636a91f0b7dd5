/* internal.h: memories and steps, between the files of the layer. */
#pragma once

#include "functionalize/functionalize.h"
#include "functionalize/rule.h"

/* A view: a call without its first tensor. Steps are shared by what is viewed further. */
typedef struct tp_step {
    _Atomic int32_t refcount;
    struct tp_step *before; /* owned; NULL: the memory's value itself */
    const tp_op *view;      /* says how it is undone */
    const tp_op *run;       /* the view, or what copies it */
    const tp_op *inplace;   /* what turned the stand-in into the view; NULL: a new one was made */
    int viewed;             /* the argument that is the base */
    int64_t which;          /* of a list of views; -1: there is one */
    bool overlaps;          /* several elements of what it shows lie at one place */
    tp_value args[];        /* with memory of their own */
} tp_step;

typedef struct tp_functional_memory {
    _Atomic int32_t refcount;
    uint32_t level;
    tp_tensor *value; /* owned */
    uint64_t generation;
    /* How the elements lay at first. A value that replaces the first lies so from the moment on where a view went by
     * places. */
    int ndim;
    int64_t strides[TP_MAX_DIMS], byte_offset;
    bool by_places, copies_views;
    struct tp_stand_in *members; /* under the lock Functional */
} tp_functional_memory;

/* What a stand-in's storage holds. */
typedef struct tp_stand_in {
    tp_functional_memory *memory;
    tp_step *steps, *own; /* owned; `own`: those that an argument came with */
    tp_tensor *value;     /* owned; of the generation */
    uint64_t generation;
    tp_storage *storage; /* borrowed: it holds this */
    bool assigned;       /* the stand-in had another memory before */
    struct tp_stand_in *next, *previous;
} tp_stand_in;

typedef struct tp_functional_level {
    uint32_t number;
    bool copies_views;
    bool bare;   /* there are no stand-ins: operators run, with copies for views, while a view is undone */
    int batches; /* how many vmaps are outside */
    tp_keyset include, exclude;
    struct tp_functional_level *outer;
} tp_functional_level;

/* The thread as it is outside of a level, for a scope. */
typedef struct {
    tp_functional_level *level; /* NULL: nothing was changed */
    tp_keyset include, exclude;
    int batches;
} tp_functional_outside;
tp_functional_outside tp_functional_step_out(tp_functional_level *level);
void tp_functional_step_in(tp_functional_outside *s);
#define tp_auto_outside TP_CLEANUP(tp_functional_step_in) TP_UNUSED tp_functional_outside
tp_functional_level *tp_functional_level_of(uint32_t number); /* of this thread, or NULL */

TP_INLINE tp_stand_in *tp_stand_in_of(const tp_tensor *t) { return t->storage->context; }

/* ---- steps: step.c ---- */
/* Whether several elements of t lie at one place, and the error of writing to them. */
bool tp_overlaps(const tp_tensor *t);
int tp_refuse_overlap(void);
tp_step *tp_step_new(tp_step *before, const tp_op *view, const tp_op *run, const tp_value *args, int viewed);
TP_INLINE tp_step *tp_step_retain(tp_step *s) {
    if (s) atomic_fetch_add_explicit(&s->refcount, 1, memory_order_relaxed);
    return s;
}
void tp_step_release(tp_step *s);
/* What the step shows of a base. New. */
tp_tensor *tp_step_take(const tp_step *s, tp_tensor *base);
/* What the steps after `from` (NULL: all) show of a base. New. */
tp_tensor *tp_steps_follow(const tp_step *last, const tp_step *from, tp_tensor *base);
/* The base with `value` in place of what all steps show. New. */
tp_tensor *tp_steps_put(const tp_step *last, tp_tensor *base, tp_tensor *value);

/* ---- stand-ins: tensor.c ---- */
/* It lies as `shown` does. */
tp_tensor *tp_stand_in_new(tp_functional_memory *m, tp_step *steps, tp_tensor *value, const tp_tensor *shown);
/* Replaces what the stand-in shows, and with it the memory's value; called outside of the level. */
int tp_stand_in_write(tp_tensor *t, tp_tensor *value);
/* t shows another view of its memory. */
int tp_stand_in_turn(tp_tensor *t, tp_step *steps, tp_tensor *value, const tp_tensor *shown);
/* The memory has another value, of other sizes, and t shows all of it; t is the memory's only stand-in. */
int tp_stand_in_renew(tp_tensor *t, tp_tensor *value);
/* t shows what `source`, a stand-in of the same level, shows. */
int tp_stand_in_assign(tp_tensor *t, tp_tensor *source);
/* Whether the memory's value lies as the first one did. */
bool tp_memory_lies_as_first(const tp_functional_memory *m);
/* The error of a write to a tensor that the level does not know. */
int tp_refuse_target(const char *op);
/* The value where it lies as views by places expect it; NULL and the error set where that is not possible. New. */
tp_tensor *tp_memory_laid_out(tp_functional_memory *m);
/* The thread is outside of the level. */
tp_tensor *tp_stand_in_value(const tp_tensor *t);
