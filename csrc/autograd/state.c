/* state.c: what a tensor knows about its gradient: requires_grad, grad, grad_fn. */
#include "autograd/node.h"

#include "Functions.h"
#include "autograd/engine.h"
#include "autograd/internal.h"
#include "autograd/level.h"
#include "autograd/parts.h"
#include "core/alloc.h"
#include "core/lock.h"
#include "dispatch/key.h"

#include <string.h>

tp_autograd_meta *tp_autograd_meta_ensure(tp_tensor *t) {
    tp_autograd_meta *there = __atomic_load_n(&t->autograd, __ATOMIC_ACQUIRE);
    if (there) return there;
    tp_autograd_meta *m = tp_alloc(sizeof *m);
    if (!m) return NULL;
    memset(m, 0, sizeof *m);
    if (__atomic_compare_exchange_n(&t->autograd, &there, m, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return m;
    tp_free(m, sizeof *m); /* another thread was faster */
    return there;
}

static void free_meta(tp_tensor *t) {
    tp_autograd_meta *m = t->autograd;
    t->autograd = NULL;
    if (t->flags & TP_FLAG_RETAINS_GRAD && m->grad_fn) tp_forget_keeper(m->grad_fn, t);
    tp_release(m->grad);
    tp_release(m->shown_base);
    tp_tangents_release(m->tangents);
    tp_node_release(m->grad_fn);
    if (m->hooks) tp_autograd_host.free_hooks(m->hooks);
    tp_free(m, sizeof *m);
}

__attribute__((constructor)) static void install(void) { tp_core_hooks.free_autograd = free_meta; }

static bool base_was_recorded(const tp_tensor *view) {
    if (!(view->base->flags & TP_FLAG_REQUIRES_GRAD) || !view->base->autograd->grad_fn) return false;
    return view->view_version != tp_version_seen(view) && tp_views_base(view);
}

bool tp_view_gained_grad(const tp_tensor *view) {
    if (!(view->flags & TP_FLAG_VIEW_NO_GRAD)) return base_was_recorded(view);
    return view->base->flags & TP_FLAG_REQUIRES_GRAD && (tp_is_floating(view) || tp_is_complex(view));
}

/* A view whose base was recorded since has a grad_fn as soon as someone asks for it, so it is no leaf before that. */
bool tp_is_leaf(const tp_tensor *t) {
    if (!tp_requires_grad(t)) return true;
    if (t->autograd && t->autograd->grad_fn) return false;
    return !t->base || t->flags & TP_FLAG_VIEW_NO_GRAD || !base_was_recorded(t);
}

int tp_set_requires_grad(tp_tensor *t, bool value) {
    if (value == tp_requires_grad(t)) return 0;
    if (value && !tp_is_floating(t) && !tp_is_complex(t))
        return tp_fail(TP_RuntimeError,
                       "only Tensors of floating point dtype can require gradients, as complex ones can, not %s",
                       tp_dtype_names[t->dtype]);
    if (!value && !tp_is_leaf(t))
        return tp_fail(
            TP_RuntimeError,
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
            "a subgraph that doesn't require differentiation use var_no_grad = var.detach()");
    if (value && t->flags & TP_FLAG_INFERENCE && !tp_tls.inference_mode)
        return tp_fail(TP_RuntimeError,
                       "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed");
    tp_autograd_meta *m = tp_autograd_meta_ensure(t);
    if (!m) return -1;
    m->requires_grad = value;
    t->flags = (uint16_t)(value ? t->flags | TP_FLAG_REQUIRES_GRAD : t->flags & ~TP_FLAG_REQUIRES_GRAD);
    return 0;
}

int tp_inference_write(const char *op) {
    return tp_fail(TP_RuntimeError,
                   "Inplace update to inference tensor outside InferenceMode is not allowed (%s). A clone made outside "
                   "is a normal tensor and can be written",
                   op);
}

tp_tensor *tp_grad(const tp_tensor *t) {
    if (!t->autograd || !__atomic_load_n(&t->autograd->grad, __ATOMIC_RELAXED)) return NULL;
    tp_lock(TP_LOCK_Autograd);
    tp_tensor *grad = tp_retain(t->autograd->grad);
    tp_unlock(TP_LOCK_Autograd);
    return grad;
}

void tp_put_grad_steal(tp_tensor *t, tp_tensor *grad) {
    tp_lock(TP_LOCK_Autograd);
    tp_tensor *old = t->autograd->grad;
    __atomic_store_n(&t->autograd->grad, grad, __ATOMIC_RELAXED);
    tp_unlock(TP_LOCK_Autograd);
    tp_release(old);
}

int tp_set_grad(tp_tensor *t, tp_tensor *grad) {
    if (grad == t) return tp_fail(TP_RuntimeError, "can't assign Variable as its own grad");
    if (!tp_same_sizes(t, grad)) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(grad));
        tp_text_ints(&b, tp_sizes(t));
        return tp_fail(TP_RuntimeError, "attempting to assign a gradient of size '%s' to a tensor of size '%s'", a.text,
                       b.text);
    }
    if (grad->dtype != t->dtype)
        return tp_fail(TP_RuntimeError, "attempting to assign a gradient with dtype '%s' to a tensor with dtype '%s'",
                       tp_dtype_names[grad->dtype], tp_dtype_names[t->dtype]);
    if (grad->device.type != t->device.type || grad->device.index != t->device.index)
        return tp_fail(TP_RuntimeError, "attempting to assign a gradient located on another device than its tensor");
    if (!tp_autograd_meta_ensure(t)) return -1;
    tp_put_grad_steal(t, tp_retain(grad));
    return 0;
}

/* ---- grad_fn ---- */

/* An output that keeps its gradient was changed in place: it keeps the gradient of what it is now. */
static int move_keeper(tp_node *from, tp_node *to, tp_tensor *t) {
    tp_forget_keeper(from, t);
    return tp_node_keep(to, t);
}

static bool has_gradient(const tp_tensor *t) { return tp_is_floating(t) || tp_is_complex(t); }

/* A view of a tensor of inference mode is one itself, with no autograd, wherever it is made. */
static bool has_history(const tp_tensor *t) { return has_gradient(t) && !(t->flags & TP_FLAG_INFERENCE); }

int tp_node_set_output(tp_node *n, tp_tensor *out) {
    if (!out || !has_history(out)) return tp_node_skip_output(n);
    int nr = tp_node_add_input(n, out);
    tp_autograd_meta *m = nr < 0 ? NULL : tp_autograd_meta_ensure(out);
    if (!m) return -1;
    tp_node *old = m->grad_fn;
    if (tp_unlikely(out->flags & TP_FLAG_RETAINS_GRAD) && old && move_keeper(old, n, out) < 0) return -1;
    m->grad_fn = tp_node_retain(n);
    m->output_nr = (uint32_t)nr;
    m->requires_grad = false;
    out->flags |= TP_FLAG_REQUIRES_GRAD;
    if (out->base) out->view_version = tp_version_seen(out);
    tp_node_release(old);
    return 0;
}

int tp_put_history(tp_tensor *self, const tp_tensor *made) {
    tp_node *node = made->autograd->grad_fn;
    tp_autograd_meta *m = tp_autograd_meta_ensure(self);
    if (!m) return -1;
    tp_node *old = m->grad_fn;
    if (self->flags & TP_FLAG_RETAINS_GRAD && old && move_keeper(old, node, self) < 0) return -1;
    m->grad_fn = tp_node_retain(node);
    m->output_nr = made->autograd->output_nr;
    m->requires_grad = false;
    self->flags |= TP_FLAG_REQUIRES_GRAD;
    tp_node_release(old);
    return 0;
}

/* ---- detaching ---- */

/* A class that answers for its tensors (the key Python) is asked by the operator, which gives one of that class. */
static tp_tensor *TP_COLD detached_by_host(tp_tensor *t) {
    tp_exclude_guard guard = tp_exclude(TP_AUTOGRAD_KEYS | TP_BIT(ADInplaceOrView));
    return tp_detach(t);
}

tp_tensor *tp_detached_alias(tp_tensor *t) {
    if (tp_unlikely(t->keys & TP_BIT(Python))) return detached_by_host(t);
    tp_tensor *alias = tp_new_alias(t, tp_sizes(t), tp_strides(t), t->byte_offset);
    if (alias) alias->flags |= t->flags & (TP_FLAG_UNVERSIONED | TP_FLAG_INFERENCE | TP_FLAG_WRAPPED_NUMBER);
    return alias;
}
