/* again.c: values that are given up after a forward and computed again in backward (Note [Values computed again] in
 * core/storage.h).
 *
 * While a region is open, nodes tell of the tensors that they save. When a flush has run the last call that needs a
 * storage of the region's, and every reference to it is that of a saved tensor (or of the tensor that one is a view
 * of), nobody but backward can read it. It is given up if a call of map or copy wrote all of it, from storages that
 * again only saved tensors hold and that are kept: nobody can write them but a program that asks a node for its saved
 * values, which their versions tell. The call, which the storage keeps meanwhile, is the recipe. What it reads is never
 * given up for itself: a value is computed again from values that are there. */
#include "Primitives.h"
#include "plan/region.h"
#include "plan/tape.h"

#include "core/alloc.h"
#include "core/tls.h"

#include <string.h>

#define MOST_HOLDERS 16

struct tp_recipe {
    tp_note *note;              /* owned, but for its output, which is gone: */
    int64_t sizes[TP_MAX_DIMS]; /* how that lay */
    int64_t strides[TP_MAX_DIMS];
    int ndim;
    tp_dtype dtype;
    uint32_t versions[TP_MAP_INPUTS]; /* of what the note reads */
};

static tp_turn turn; /* of who has a call made again */

/* ---- what nodes save ---- */

static void *saved(tp_tensor *t) {
    tp_region *r = tp_tls.region;
    tp_notes *n = &r->notes;
    tp_storage *s = t->storage;
    if (!tp_region_has(r, s) || (int64_t)s->nbytes < r->options.smallest) return NULL;
    tp_plan_slot *slot = &n->slots[s->slot];
    int32_t number = slot->kept;
    while (number && n->kept[number - 1].tensor != t) number = n->kept[number - 1].next;
    if (!number) {
        if (tp_plan_reserve((void **)&n->kept, n->nkept, &n->kept_room, sizeof *n->kept) < 0) {
            tp_error_clear(); /* the value stays */
            return NULL;
        }
        n->kept[n->nkept] = (tp_kept){.tensor = t, .next = slot->kept};
        number = slot->kept = (int32_t)++n->nkept;
    }
    n->kept[number - 1].count++;
    return (void *)((uintptr_t)number << 1 | 1);
}

bool tp_notes_unsave(const tp_notes *n, const void *number, const tp_tensor *t) {
    int64_t i = (int64_t)((uintptr_t)number >> 1);
    if (i > n->nkept || n->kept[i - 1].tensor != t || n->kept[i - 1].count == 0) return false;
    n->kept[i - 1].count--;
    return true;
}

/* ---- whether nobody else holds a storage ---- */

typedef struct {
    const tp_tensor *tensor;
    int32_t references;
} holder;

/* Counts one more reference to t; the number of holders, or one more than there is room for. */
static int count_holder(holder *holders, int count, const tp_tensor *t, int32_t references) {
    for (int i = 0; i < count; i++)
        if (holders[i].tensor == t) {
            holders[i].references += references;
            return count;
        }
    if (count < MOST_HOLDERS) holders[count] = (holder){t, references};
    return count + 1;
}

static bool is_only_saved(const tp_notes *n, const tp_plan_slot *slot) {
    holder holders[MOST_HOLDERS];
    const tp_storage *s = slot->storage;
    int count = 0;
    for (int32_t i = slot->kept; i && count <= MOST_HOLDERS; i = n->kept[i - 1].next) {
        const tp_kept *kept = &n->kept[i - 1];
        if (kept->count && kept->tensor->storage == s) count = count_holder(holders, count, kept->tensor, kept->count);
    }
    for (int i = 0, views = count; i < views && count <= MOST_HOLDERS; i++) {
        const tp_tensor *base = holders[i].tensor->base;
        if (base && base->storage == s) count = count_holder(holders, count, base, 1);
    }
    if (!count || count > MOST_HOLDERS) return false;
    for (int i = 0; i < count; i++)
        if (atomic_load_explicit(&holders[i].tensor->refcount, memory_order_acquire) != holders[i].references)
            return false;
    return atomic_load_explicit(&s->refcount, memory_order_acquire) == 1 + slot->uses + slot->recipes + count;
}

/* ---- recipes ---- */

static bool is_plain(const tp_storage *s) {
    return s->traits & TP_STORAGE_RESIZABLE && !s->deleter && s->writes == TP_WRITES_GO &&
           !atomic_load_explicit(&s->lent, memory_order_acquire);
}

/* Whether what the storage's slot has is there until the nodes that saved it let it go, as the note has read it. */
static bool stays(const tp_notes *n, const tp_storage *s, int64_t number) {
    const tp_plan_slot *slot = &n->slots[s->slot];
    return slot->born && !slot->recipe && slot->last_write < number && is_only_saved(n, slot);
}

static bool can_be_recipe(const tp_notes *n, const tp_note *note, int64_t number) {
    if (!tp_note_maps(note) && !tp_note_copies(note)) return false;
    const tp_tensor *out = tp_note_output(note)->tensor;
    const tp_plan_slot *slot = &n->slots[out->storage->slot];
    if (!slot->kept || !slot->born || slot->recipe || slot->last_write != number) return false;
    if (tp_bytes_of(out) != (int64_t)out->storage->nbytes || out->byte_offset || !tp_is_dense(out)) return false;
    if (!is_plain(out->storage) || !is_only_saved(n, slot)) return false;
    tp_tensors inputs = tp_note_inputs(note);
    for (int64_t i = 0; i < inputs.size; i++) {
        const tp_tensor *t = inputs.data[i];
        if (t && (t->storage == out->storage || !stays(n, t->storage, number))) return false;
    }
    return inputs.size <= TP_MAP_INPUTS;
}

static void free_recipe(tp_recipe *recipe) {
    tp_note *note = recipe->note;
    tp_tensors inputs = tp_note_inputs(note);
    for (int64_t i = 0; i < inputs.size; i++)
        if (inputs.data[i]) tp_release(inputs.data[i]);
    tp_free(note, note->size);
    tp_free(recipe, sizeof *recipe);
}

/* The note as a recipe, which takes it; its storages' slots count it no longer among their uses. */
static tp_recipe *recipe_of(tp_notes *n, tp_note *note) {
    tp_recipe *recipe = tp_alloc(sizeof *recipe);
    if (!recipe) return tp_error_clear(), NULL; /* the value stays */
    tp_tensor *out = tp_note_output(note)->tensor;
    *recipe = (tp_recipe){.note = note, .ndim = out->ndim, .dtype = (tp_dtype)out->dtype};
    memcpy(recipe->sizes, out->sizes, (size_t)out->ndim * sizeof *recipe->sizes);
    memcpy(recipe->strides, out->strides, (size_t)out->ndim * sizeof *recipe->strides);
    tp_tensors inputs = tp_note_inputs(note);
    for (int64_t i = 0; i < inputs.size; i++) {
        if (!inputs.data[i]) continue;
        tp_plan_slot *slot = &n->slots[inputs.data[i]->storage->slot];
        slot->uses--;
        slot->recipes++;
        recipe->versions[i] = tp_version(inputs.data[i]);
    }
    n->slots[out->storage->slot].uses--;
    tp_note_output(note)->tag = TP_NONE;
    tp_release(out);
    return recipe;
}

void tp_note_leave(tp_notes *n, int64_t number) {
    tp_note *note = n->calls[number - 1];
    if (can_be_recipe(n, note, number)) {
        tp_plan_slot *slot = &n->slots[tp_note_output(note)->tensor->storage->slot];
        if ((slot->recipe = recipe_of(n, note))) return;
    }
    tp_note_free(n, note);
}

static void release_recipe(void *recipe, void *data TP_UNUSED) { free_recipe(recipe); }

static void give_up_steal(tp_storage *s, tp_recipe *recipe) {
    tp_storage_empty(s);
    s->later = TP_LATER_AGAIN;
    s->context = recipe;
    s->deleter = release_recipe;
}

int64_t tp_slot_forget(tp_notes *n, tp_plan_slot *slot) {
    tp_storage *s = slot->storage;
    tp_recipe *recipe = tp_take(slot->recipe);
    bool is_back = !slot->last_write; /* the call that should have been made again was not noted */
    if (is_back || (!s->later && s->data && is_only_saved(n, slot))) {
        give_up_steal(s, recipe);
        return is_back ? 0 : (int64_t)s->nbytes;
    }
    free_recipe(recipe);
    return 0;
}

/* ---- once more ---- */

static int check_unchanged(const tp_recipe *recipe) {
    tp_tensors inputs = tp_note_inputs(recipe->note);
    for (int64_t i = 0; i < inputs.size; i++) {
        const tp_tensor *t = inputs.data[i];
        if (!t || tp_version(t) == recipe->versions[i]) continue;
        return tp_fail(TP_RuntimeError,
                       "a value that a compiled function has saved for its gradient is computed again in backward, "
                       "and what it is computed from, a saved value of %lld elements, has been modified by an "
                       "inplace operation: %s. Hint: compile(options={\"recompute\": False}) keeps such values",
                       (long long)t->numel, t->storage->writer ? t->storage->writer : "an operator");
    }
    return 0;
}

/* The region in which the call can wait, or NULL. */
static tp_region *waiting_region(void) {
    tp_region *r = tp_tls.region;
    if (!r || r->lent || !(tp_tls.include & TP_BIT(Deferred))) return NULL;
    if (!r->options.tape) return r;
    tp_tape_spoil(r->options.tape, "a value from before the call is computed again");
    return NULL;
}

static int note_again(tp_region *r, tp_storage *s, const tp_note *note) {
    tp_value no_results[1];
    if (tp_notes_add_storage(&r->notes, s, true) < 0) return -1;
    return tp_call_boxed(note->op, note->args, no_results);
}

static int compute(tp_storage *s) {
    tp_recipe *recipe = s->context;
    tp_note *note = recipe->note;
    if (check_unchanged(recipe) < 0) return -1;
    tp_autoref *out = tp_new_on_storage(s, (tp_ints){recipe->sizes, recipe->ndim},
                                        (tp_ints){recipe->strides, recipe->ndim}, 0, recipe->dtype);
    tp_region *r = waiting_region();
    if (!out) return -1;
    s->context = NULL;
    s->deleter = NULL;
    *tp_note_output(note) = (tp_value){.tag = TP_TENSOR, .tensor = out};
    tp_at_once_guard guard = r ? (tp_deferral){tp_tls.include, tp_tls.observe, tp_tls.later} : tp_at_once();
    int status = r ? note_again(r, s, note) : tp_note_run(note);
    tp_note_output(note)->tag = TP_NONE;
    if (status == 0) {
        if (!r) s->later = 0;
        free_recipe(recipe);
    } else if (r && tp_region_has(r, s)) {
        r->notes.slots[s->slot].recipe = recipe;
    } else {
        give_up_steal(s, recipe);
    }
    return status;
}

int tp_compute_again(tp_storage *s) {
    if (tp_turn_take(&turn) < 0) return -1;
    int status = s->later & TP_LATER_AGAIN ? compute(s) : 0;
    tp_turn_pass(&turn);
    return status;
}

static int again(tp_tensor *t) {
    if (t->storage->later & TP_LATER_AGAIN && tp_compute_again(t->storage) < 0) return -1;
    if (t->storage->later) t->keys |= TP_BIT(Deferred);
    return 0;
}

void tp_again_load(void) {
    tp_pending_hooks.saved = saved;
    tp_pending_hooks.again = again;
}
