/* saved.c: values that a node keeps for its backward. */
#include "autograd/node.h"

#include "Functions.h"
#include "autograd/engine.h"
#include "autograd/internal.h"
#include "autograd/parts.h"
#include "autograd/tangent.h"
#include "core/alloc.h"
#include "dispatch/key.h"

#include <stdlib.h>
#include <string.h>

static uint32_t version_of(const tp_tensor *t) {
    return tp_likely(!tp_is_in_parts(t)) ? tp_version(t) : tp_contents_version(t);
}

static void *refuse_written(void *packed) {
    tp_autograd_host.free_packed(packed);
    return tp_fail_null(TP_RuntimeError,
                        "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
                        "hook cannot be modified by in-place operations: others have them too");
}

/* What the thread's hook makes of t; NULL and the error set, too, where the hook writes it. */
static void *packed_of(tp_tensor *t) {
    uint32_t version = tp_version(t);
    void *packed = tp_autograd_host.pack(t);
    return packed && tp_version(t) != version ? refuse_written(packed) : packed;
}

/* The thread's saved-tensor hooks, if there are any, take the tensor's place; t is stolen. */
static int keep_steal(tp_saved *s, tp_tensor *t) {
    if (tp_likely(!tp_tls.saves)) {
        s->tensor = t;
        return 0;
    }
    if (!tp_tls.saved_hooks) {
        s->tensor = t;
        s->packed = tp_pending_hooks.saved(t);
        return 0;
    }
    s->packed = packed_of(t);
    tp_release(t);
    return s->packed ? 0 : -1;
}

int tp_save(tp_saved *s, tp_tensor *t) {
    *s = (tp_saved){0};
    if (!t) return 0;
    if (tp_unlikely(t->flags & TP_FLAG_INFERENCE))
        return tp_fail(TP_RuntimeError,
                       "Inference tensors cannot be saved for backward: they count no writes. A clone made outside "
                       "inference_mode can, or use no_grad instead of inference_mode");
    s->version = version_of(t);
    t->storage->traits |= TP_STORAGE_SAVED;
    if (tp_unlikely(tp_is_in_parts(t))) {
        tp_autoref *values = tp_strided_part(t);
        values->storage->traits |= TP_STORAGE_SAVED;
    }
    return keep_steal(s, tp_retain(t));
}

int tp_save_pattern(tp_saved *s, tp_tensor *t, int output_nr) {
    *s = (tp_saved){0};
    if (!t || !tp_is_in_parts(t)) return output_nr < 0 ? tp_save(s, t) : tp_save_output(s, t, output_nr);
    tp_tensor *pattern = tp_pattern_of(t);
    if (!pattern) return -1;
    s->version = version_of(pattern);
    return keep_steal(s, pattern);
}

int tp_save_before_write(tp_saved *s, tp_tensor *t) {
    tp_exclude_guard guard = tp_exclude(0);
    tp_tls.exclude &= ~TP_BIT(Tracer); /* a graph of the call and its gradient has the copy too */
    tp_autoref *original = tp_clone(t, TP_NO_FORMAT);
    return original ? tp_save(s, original) : -1;
}

/* An output is kept as a bare alias, since the output owns the node. */
int tp_save_output(tp_saved *s, tp_tensor *t, int output_nr) {
    *s = (tp_saved){0};
    if (!t) return 0;
    tp_tensor *alias = tp_detached_alias(t);
    if (!alias) return -1;
    s->version = version_of(alias);
    if (tp_unlikely(tp_tls.forward != NULL) && tp_share_tangents(alias, t) < 0) return tp_release(alias), -1;
    s->is_output = true;
    s->output_nr = (uint32_t)output_nr;
    return keep_steal(s, alias);
}

static int released(const tp_node *owner) {
    return tp_fail(
        TP_RuntimeError,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(): those of %s are. Specify retain_graph=True if you need to go backward once more",
        owner->type->name);
}

static int changed(const tp_saved *s, const tp_node *owner) {
    tp_autotext text = {0};
    tp_text_tensor(&text, s->tensor);
    return tp_fail(
        TP_RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[%s], which %s (%s) has saved as %s, is at version %u; expected version %u instead. Hint: %s wrote to it "
        "after %s had saved it; autograd.detect_anomaly() shows where that was",
        text.text ? text.text : "", owner->type->name, owner->type->op, s->is_output ? "its output" : "an input",
        version_of(s->tensor), s->version, s->tensor->storage->writer ? s->tensor->storage->writer : "an operator",
        owner->type->op);
}

/* An output comes back with its history, for double backward. */
static tp_tensor *with_history(const tp_saved *s, tp_tensor *t, tp_node *owner) {
    tp_autoref *alias = tp_detached_alias(t);
    tp_autograd_meta *m = alias ? tp_autograd_meta_ensure(alias) : NULL;
    if (!m) return NULL;
    m->grad_fn = tp_node_retain(owner);
    m->output_nr = s->output_nr;
    alias->flags |= TP_FLAG_REQUIRES_GRAD;
    if (tp_unlikely(tp_tls.forward != NULL) && tp_share_tangents(alias, t) < 0) return NULL;
    return tp_take(alias);
}

static tp_tensor *unchanged(const tp_saved *s, tp_node *owner, bool whole) {
    if (version_of(s->tensor) != s->version) return changed(s, owner), NULL;
    return whole && s->is_output ? with_history(s, s->tensor, owner) : tp_retain(s->tensor);
}

/* A hook, or a call that is made again, may let another backward run, which lets go of what `s` points to. */
static tp_tensor *unpacked_slowly(const tp_saved *s, tp_node *owner, bool whole) {
    tp_saved copy = *s;
    void *packed = tp_packed(s);
    tp_autoref *t = packed ? tp_autograd_host.unpack(packed) : tp_retain(s->tensor);
    if (!t) return NULL;
    if (packed) return whole && copy.is_output ? with_history(&copy, t, owner) : tp_take(t);
    return tp_pending_hooks.again(t) == 0 ? unchanged(&copy, owner, whole) : NULL;
}

static tp_tensor *unpacked(const tp_saved *s, tp_node *owner, bool whole) {
    if (owner->released) return released(owner), NULL;
    if (tp_unlikely(s->packed != NULL)) return unpacked_slowly(s, owner, whole);
    return s->tensor ? unchanged(s, owner, whole) : NULL;
}

tp_tensor *tp_saved_get(const tp_saved *s, tp_node *owner) { return unpacked(s, owner, tp_grad_enabled()); }
tp_tensor *tp_saved_get_whole(const tp_saved *s, tp_node *owner) { return unpacked(s, owner, true); }

int tp_saved_hook(tp_saved *s, tp_node *owner) {
    if (owner->released)
        return tp_fail(
            TP_RuntimeError,
            "Calling register_hooks on a saved tensor after it has been freed is forbidden: a backward has let "
            "go of what %s had saved",
            owner->type->name);
    if (tp_packed(s))
        return tp_fail(TP_RuntimeError,
                       "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one "
                       "pair of hooks is allowed at a time.");
    if (!s->tensor)
        return tp_fail(TP_RuntimeError, "Calling register_hooks on a saved tensor with value None is forbidden");
    if (s->packed && tp_pending_hooks.again(s->tensor) < 0) return -1;
    tp_autoref *seen = s->is_output ? tp_detached_alias(s->tensor) : tp_retain(s->tensor);
    void *packed = seen ? packed_of(seen) : NULL;
    if (packed && (tp_packed(s) || !s->tensor)) packed = refuse_written(packed);
    if (!packed) return -1;
    tp_saved before = *s;
    *s = (tp_saved){.version = s->version, .is_output = s->is_output, .output_nr = s->output_nr, .packed = packed};
    tp_saved_free(&before);
    return 0;
}

void tp_saved_free(tp_saved *s) {
    tp_saved gone = *s;
    s->tensor = NULL;
    s->packed = NULL;
    if (tp_unlikely(gone.packed != NULL)) {
        if (tp_packed(&gone)) tp_autograd_host.free_packed(gone.packed);
        else tp_pending_hooks.unsaved(gone.packed, gone.tensor);
    }
    tp_release(gone.tensor);
}

tp_saved_list *tp_saved_list_new(int64_t size) {
    tp_saved_list *s = tp_alloc(sizeof *s + (size_t)size * sizeof *s->items);
    if (!s) return NULL;
    s->size = size;
    memset(s->items, 0, (size_t)size * sizeof *s->items);
    return s;
}

tp_saved_list *tp_save_list(tp_tensors list) {
    tp_saved_list *s = tp_saved_list_new(list.size);
    for (int64_t i = 0; s && i < list.size; i++)
        if (tp_save(&s->items[i], list.data[i]) < 0) tp_saved_list_free(&s);
    return s;
}

int tp_saved_list_get(const tp_saved_list *s, tp_node *owner, tp_tensor_seq **out) {
    if (owner->released) return released(owner);
    tp_tensor_seq *seq = tp_tensor_seq_new(s->size);
    if (!seq) return -1;
    for (int64_t i = 0; i < s->size; i++) {
        seq->items[i] = tp_saved_get(&s->items[i], owner);
        if (!seq->items[i] && (s->items[i].tensor || s->items[i].packed)) {
            tp_tensor_seq_free(seq);
            return -1;
        }
    }
    *out = seq;
    return 0;
}

void tp_saved_list_free(tp_saved_list **s) {
    tp_saved_list *list = tp_take(*s);
    if (!list) return;
    for (int64_t i = 0; i < list->size; i++) tp_saved_free(&list->items[i]);
    tp_free(list, sizeof *list + (size_t)list->size * sizeof *list->items);
}
