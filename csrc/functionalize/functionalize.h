/* functionalize.h: a function without writes, made of one that writes.
 *
 * Note [Functional tensors]
 * Inside a level (func.functionalize opens one) tensors are stand-ins. A stand-in is a wrapper with the key
 * Functionalize: its storage is no memory but says which memory it stands for, and the views that lead from there to
 * it. A memory is a value, a tensor of the outside, and a generation, how often the value was replaced. The fallback
 * at the key, which stands below autograd, does with an operator what the alias annotations of its schema say:
 *
 *   nothing is written    it runs on the values, and its results are new memories
 *   Tensor(a) -> Tensor(a)
 *                         it runs on the value, and the result is the same memory with one step more
 *   Tensor(a!)            the functional variant runs on the values (the operator itself on copies where there is
 *                         none); what it gives goes through the inverses of the steps and replaces the memory's
 *                         value. Other stand-ins of the memory take their steps again when they are next read.
 *
 * Which operator is the functional variant, and what undoes a view, are keys of the entries (rule.h).
 *
 * Values are called from the top of the dispatcher, with the thread's sets as they were outside: so autograd records
 * values, and a recorder (make_fx) that was started outside sees them and never a stand-in. Recorders and modes above
 * all layers are therefore off inside the level, until the layer calls out. Levels nest: a value may be a stand-in of
 * the level around.
 *
 * The stand-ins of one memory have a storage each, and one version: a write raises that of all. */
#pragma once

#include "dispatch/op.h"

/* Opens a level on this thread; its number, or 0 and the error set. With copies_views, views run as operators that
 * copy. Closed in the opposite order. `number` is 0, or that of a level that was closed: its stand-ins are of this
 * one. */
uint32_t tp_functional_open(bool copies_views, uint32_t number);
int tp_functional_close(uint32_t number);

TP_INLINE bool tp_is_functional(const tp_tensor *t) { return t->keys & TP_BIT(Functionalize); }
/* Whether t is a stand-in of the level. */
bool tp_functional_is_of(const tp_tensor *t, uint32_t number);
/* A stand-in of the innermost level with a memory of its own. New. */
tp_tensor *tp_functional_wrap(tp_tensor *value);
/* The value, with what was written since. New. */
tp_tensor *tp_functional_value(const tp_tensor *t);

/* ---- arguments of the function ---- */
/* What t shows from now on is an argument's: steps that follow are the function's. */
void tp_functional_mark(const tp_tensor *t);
/* Copies what was written to the argument's memory to the argument, and gives it the geometry that the stand-in got. */
int tp_functional_write_back(tp_tensor *argument, const tp_tensor *t);
/* The view of the argument that `result` is. New; NULL without an error if it is none. */
tp_tensor *tp_functional_as_view(tp_tensor *argument, const tp_tensor *t, const tp_tensor *result);

/* Registers the fallback; called once at load. */
int tp_functionalize_load(void);
