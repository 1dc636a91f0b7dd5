/* state.c: what a tensor knows about its gradient: requires_grad, grad_fn, accumulators; detaching. */
#include "autograd/node.h"

#include "Functions.h"
#include "autograd/engine.h"
#include "autograd/internal.h"
#include "autograd/tangent.h"
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
    tp_tangents_release(m->tangents);
    tp_node_release(m->grad_fn);
    if (m->hooks) tp_autograd_host.free_hooks(m->hooks);
    tp_free(m, sizeof *m);
}

__attribute__((constructor)) static void install(void) { tp_core_hooks.free_autograd = free_meta; }

bool tp_is_leaf(const tp_tensor *t) { return !tp_requires_grad(t) || !(t->autograd && t->autograd->grad_fn); }

int tp_set_requires_grad(tp_tensor *t, bool value) {
    if (value == tp_requires_grad(t)) return 0;
    if (value && !tp_is_floating(t) && !tp_is_complex(t))
        return tp_fail(TP_RuntimeError,
                       "only Tensors of floating point dtype can require gradients (and of complex dtype), not %s",
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
    if (grad == t) return tp_fail(TP_RuntimeError, "can't assign a tensor as its own grad");
    if (!tp_same_sizes(t, grad)) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(grad));
        tp_text_ints(&b, tp_sizes(t));
        return tp_fail(TP_RuntimeError, "assigned grad has data of a different size: %s for a tensor of %s", a.text,
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

static int forget_tangents(tp_tensor *t) {
    for (int i = 0; i < tp_forward_count(); i++)
        if (tp_put_tangent(t, tp_forward_number(i), NULL) < 0) return -1;
    return 0;
}

int tp_detach_in_place(tp_tensor *t) {
    if (t->base && (tp_requires_grad(t) || tp_requires_grad(t->base)))
        return tp_fail(TP_RuntimeError,
                       "Can't detach views in-place. Use detach() instead: the tensor shares the history of its base");
    if (forget_tangents(t) < 0) return -1;
    if (!t->autograd) return 0;
    tp_node *node = t->autograd->grad_fn;
    t->autograd->grad_fn = NULL;
    t->autograd->output_nr = 0;
    t->autograd->requires_grad = false;
    t->flags = (uint16_t)(t->flags & ~(TP_FLAG_REQUIRES_GRAD | TP_FLAG_RETAINS_GRAD));
    tp_node_release(node);
    return 0;
}

tp_tensor *tp_detached_data(tp_tensor *t) {
    tp_tensor *alias = tp_detached_alias(t);
    if (alias) alias->flags |= TP_FLAG_UNVERSIONED;
    return alias;
}

/* ---- accumulators ---- */

typedef struct {
    tp_node base;
    tp_tensor *variable; /* owned */
    tp_turn adding;      /* kernels give up the host lock, so two threads may come to add at once */
} accumulate_grad;

static bool laid_out_as(const tp_tensor *grad, const tp_tensor *variable) {
    for (int i = 0; i < variable->ndim; i++)
        if (variable->sizes[i] > 1 && grad->strides[i] != variable->strides[i]) return false;
    return true;
}

/* A first gradient becomes .grad itself if nothing else holds it. Where the leaf is dense it gets the leaf's strides,
 * so that an optimiser's steps run along memory. */
static tp_tensor *first_grad(tp_tensor *grad, const tp_tensor *variable) {
    bool by_host = (grad->keys | variable->keys) & TP_ANSWERED; /* classes have memory of their own, or none */
    if (!by_host && !tp_grad_enabled() && tp_is_dense(variable) && !laid_out_as(grad, variable)) {
        tp_exclude_guard guard = tp_exclude((TP_AUTOGRAD_KEYS & ~TP_BIT(ForwardAD)) | TP_BIT(ADInplaceOrView));
        tp_autoref *own = tp_new_empty_like(variable, (tp_dtype)grad->dtype);
        return own && tp_copy_(own, grad, false) == 0 ? tp_take(own) : NULL;
    }
    bool ours = atomic_load_explicit(&grad->refcount, memory_order_relaxed) == 1 && !grad->base &&
                atomic_load_explicit(&grad->storage->refcount, memory_order_relaxed) == 1 && tp_is_dense(grad);
    if (tp_grad_enabled()) return ours ? tp_retain(grad) : tp_clone(grad, TP_NO_FORMAT);
    return ours ? tp_detached_dual(grad) : tp_clone(grad, TP_NO_FORMAT);
}

/* In the accumulator's turn. Who sets .grad meanwhile takes no turn: the sum is added to, or replaces, what was there
 * at the beginning. */
static int add_to_grad(tp_tensor *variable, tp_tensor *grad) {
    tp_autoref *old = tp_grad(variable);
    if (old && !tp_grad_enabled()) return tp_add__Tensor(old, grad, TP_SCALAR_I(1));
    tp_tensor *sum = old ? tp_add_Tensor(old, grad, TP_SCALAR_I(1)) : first_grad(grad, variable);
    if (!sum) return -1;
    tp_put_grad_steal(variable, sum);
    return 0;
}

static int accumulate_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    (void)out;
    accumulate_grad *self = (accumulate_grad *)n;
    if (!grads[0]) return 0;
    if (tp_turn_take(&self->adding) < 0) return -1;
    int status = add_to_grad(self->variable, grads[0]);
    tp_turn_pass(&self->adding);
    struct tp_py_hooks *hooks = self->variable->autograd->hooks;
    return status == 0 && hooks ? tp_autograd_host.accumulated(hooks, self->variable) : status;
}

static void accumulate_release(tp_node *n) { (void)n; }

/* It lives as long as the graph points to it; the leaf has known it weakly. */
static void accumulate_end(tp_node *n) {
    accumulate_grad *self = (accumulate_grad *)n;
    if (!self->variable) return; /* it could not be finished */
    tp_lock(TP_LOCK_Autograd);
    if (self->variable->autograd && self->variable->autograd->accumulator == n)
        self->variable->autograd->accumulator = NULL;
    tp_unlock(TP_LOCK_Autograd);
    tp_release(self->variable);
}

static const tp_node_type accumulate_type = {
    .name = "AccumulateGrad",
    .op = "accumulate",
    .size = sizeof(accumulate_grad),
    .apply = accumulate_apply,
    .release = accumulate_release,
    .free_copies = accumulate_end,
};

/* A node whose count has reached zero is on its way out and may not be taken up again. */
static bool retain_if_alive(tp_node *n) {
    int32_t count = atomic_load(&n->refcount);
    while (count > 0)
        if (atomic_compare_exchange_weak(&n->refcount, &count, count + 1)) return true;
    return false;
}

tp_node *tp_accumulator(tp_tensor *leaf) {
    tp_lock(TP_LOCK_Autograd);
    tp_node *n = leaf->autograd->accumulator;
    if (!n || !retain_if_alive(n)) {
        bool anomaly = tp_tls.anomaly_mode; /* a trace would run Python code under the lock */
        tp_tls.anomaly_mode = false;
        n = tp_node_new(&accumulate_type, 0);
        tp_tls.anomaly_mode = anomaly;
        if (n && tp_node_add_input(n, leaf) < 0) {
            tp_node_release(tp_take(n));
        } else if (n) {
            accumulate_grad *self = (accumulate_grad *)n;
            n->sequence = UINT64_MAX; /* as soon as it is ready */
            self->variable = tp_retain(leaf);
            leaf->autograd->accumulator = n;
        }
    }
    tp_unlock(TP_LOCK_Autograd);
    return n;
}

tp_tensor *tp_accumulator_variable_borrow(const tp_node *n) {
    return n->type == &accumulate_type ? ((const accumulate_grad *)n)->variable : NULL;
}
