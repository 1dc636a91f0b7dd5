/* batched.h: batched tensors and the levels that they belong to.
 *
 * Note [Batched tensors]
 * Inside vmap a tensor stands for one sample and is computed for all. It is a tensor whose storage is no memory but a
 * payload: another tensor, whose dimension 0 counts the samples, and the level, the number of the vmap that it belongs
 * to. It shows the sizes, strides and offset of the first sample and has one dispatch key, Batched, so that no backend
 * can be met with it. The kernels at that key take the batch off, call operators from the top of the dispatcher, and
 * put it on again.
 *
 * Levels are numbered through the whole program, so a batched tensor that left its vmap is found out. Where several
 * vmaps are nested the inner one has the higher number, and is the outer wrapper: `inner` may be batched itself, at a
 * lower level. A rule takes off the highest level among its arguments and sees only those below it: what it calls
 * comes back to this key for the next one. While a level is visible, Batched is in the thread's include set, so that
 * random operators without any batched argument are met too.
 *
 * Autograd stands below: it records what happens to the physical tensors, each a plain call on plain tensors with the
 * versions, views and saved values that these have. So backward through a vmap needs nothing, and a gradient inside of
 * one is taken of physical tensors: samples do not meet, so the gradient of the sum over the batch is that of each
 * sample, if the tensor that it is for has a batch of its own. What func.grad differentiates is therefore expanded to
 * every level that is active (tensorpy/func/). A backward pass may itself be given batched gradients: its formulas call
 * operators.
 *
 * Note [Batched tangents]
 * Forward mode stands below too, so a batched tensor's tangents are those of its physical one. But a level of tangents
 * that was opened inside of a vmap may be given another direction for each sample at a value that all share (a Jacobian
 * by columns). Such a tensor stays as it is, and its tangent is batched: what is done to the value alone is done once,
 * and may be written. Where it meets a batched tensor its batch is that of the tangent: before a rule runs the tensor
 * is lifted, that is expanded to the samples, with the physical tangents of these (lift.h). */
#pragma once

#if defined(TP_FOLDER_core) || defined(TP_FOLDER_dispatch) || defined(TP_FOLDER_iter) || defined(TP_FOLDER_native) || \
    defined(TP_FOLDER_cpu)
#error "the batched layer stands above the dispatcher and the kernels"
#endif

#include "dispatch/op.h"

#define TP_MAX_BATCH_LEVELS 32

typedef enum { TP_RANDOM_ERROR, TP_RANDOM_DIFFERENT, TP_RANDOM_SAME } tp_randomness;

typedef struct {
    uint32_t number;
    int64_t size; /* how many samples */
    tp_randomness randomness;
    uint16_t depth; /* TP_FLAG_DEPTH of what is made outside of it */
} tp_batch_level;

/* ---- levels of this thread ---- */
/* Opens a vmap; its number, or 0 and the error set. The levels are closed in the opposite order. */
uint32_t tp_batch_open(int64_t size, tp_randomness randomness);
int tp_batch_close(uint32_t number);
/* Those that are open, the outermost first. */
int tp_batch_count(void);
const tp_batch_level *tp_batch_level_at(int i);
/* The open one of a number; NULL: it has ended, or is another thread's. */
const tp_batch_level *tp_batch_find_level(int64_t number);
/* Only the outermost n are in sight from now on; how many were. */
int tp_batch_show(int n);

/* ---- tensors ---- */
TP_INLINE bool tp_is_batched(const tp_tensor *t) { return t->keys & TP_BIT(Batched); }
/* 0 for a tensor that is not batched. */
uint32_t tp_batch_number(const tp_tensor *t);
tp_tensor *tp_batch_inner_borrow(const tp_tensor *t);
/* The physical tensor below all levels; t itself if it is not batched. */
tp_tensor *tp_batch_innermost_borrow(const tp_tensor *t);
/* Whether a transform within its vmap differentiates by a batched tensor, or by what it came of: one outside, or none,
 * is not seen there. */
bool tp_batch_requires_grad(const tp_tensor *t);
/* A tensor (stolen, NULL passes) whose dimension 0 counts the samples as one that is batched. It is batched at lower
 * levels only. */
tp_tensor *tp_batch_wrap_steal(tp_tensor *inner, uint32_t number);
/* t becomes the batched tensor of another inner one: another geometry over the same elements. */
int tp_batch_assign(tp_tensor *t, tp_tensor *inner);
/* Dimension `dim` becomes the batch of a level. New. Higher levels stay on the outside. */
tp_tensor *tp_batch_add(tp_tensor *t, int64_t dim, uint32_t number);
/* The batch of a level becomes dimension 0; a tensor that has none is expanded to `size`. New. */
tp_tensor *tp_batch_remove(tp_tensor *t, uint32_t number, int64_t size);

/* RuntimeError for something that asks for one value (`what`: "item()") if t is batched. */
int tp_batch_refuse(const tp_tensor *t, const char *what) TP_COLD;
TP_INLINE int tp_check_unbatched(const tp_tensor *t, const char *what) {
    return tp_unlikely(tp_is_batched(t)) ? tp_batch_refuse(t, what) : 0;
}

/* ---- inside a rule ---- */
/* The level that a rule takes off. Until the end of the scope only the levels below are visible. */
typedef struct {
    uint32_t number;
    int64_t size;
    tp_randomness randomness;
    int visible; /* what was visible before; -1: nothing to restore */
    tp_keyset include;
} tp_batch_scope;
/* The highest level among the tensors (NULL among them too), or the innermost visible one if none is batched. Fails
 * for a tensor that has left its vmap. */
int tp_batch_enter(tp_batch_scope *s, tp_tensors tensors);
void tp_batch_leave(tp_batch_scope *s);
#define tp_autobatch TP_CLEANUP(tp_batch_leave) tp_batch_scope
/* Whether t has a batch at the scope's level. */
TP_INLINE bool tp_batch_has(const tp_batch_scope *s, const tp_tensor *t) {
    return t && tp_is_batched(t) && tp_batch_number(t) == s->number;
}
/* With the batch in dimension 0: of size 1 if t has none (one), or expanded to all samples (all). New. */
tp_tensor *tp_batch_one(const tp_batch_scope *s, tp_tensor *t);
tp_tensor *tp_batch_all(const tp_batch_scope *s, tp_tensor *t);

/* Registers what runs at Batched for every operator without a kernel there; called once at load. */
int tp_batch_load(void);
