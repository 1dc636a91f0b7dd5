/* accumulate.c: accumulators: the nodes of leaves, which add what arrives to .grad. */
#include "Functions.h"
#include "autograd/engine.h"
#include "autograd/internal.h"
#include "autograd/tangent.h"
#include "core/lock.h"
#include "core/turn.h"
#include "dispatch/key.h"

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

bool tp_is_ours(const tp_tensor *grad) {
    const tp_storage *s = grad->storage;
    if (grad->keys & (TP_BIT(Batched) | TP_ANSWERED)) return false; /* what it wraps may be another's too */
    if (atomic_load_explicit(&grad->refcount, memory_order_relaxed) != 1 || grad->base) return false;
    if (tp_storage_is_sole(s)) return true;
    return tp_unlikely(tp_tls.region != NULL) && s->writes == TP_WRITES_GO && tp_pending_hooks.is_sole(s);
}

/* A first gradient becomes .grad itself if nothing else holds it. Where the leaf is dense it gets the leaf's strides,
 * so that an optimiser's steps run along memory. */
static tp_tensor *first_grad(tp_tensor *grad, const tp_tensor *variable) {
    bool by_host = (grad->keys | variable->keys) & TP_NO_MEMORY;
    if (!by_host && !tp_grad_enabled() && tp_is_dense(variable) && !laid_out_as(grad, variable)) {
        tp_exclude_guard guard = tp_exclude((TP_AUTOGRAD_KEYS & ~TP_BIT(ForwardAD)) | TP_BIT(ADInplaceOrView));
        tp_autoref *own = tp_new_empty_like(variable, (tp_dtype)grad->dtype);
        return own && tp_copy_(own, grad, false) == 0 ? tp_take(own) : NULL;
    }
    bool ours = tp_is_ours(grad) && (tp_is_dense(grad) || grad->keys & TP_LAYOUT_KEYS);
    if (tp_grad_enabled()) return ours ? tp_retain(grad) : tp_clone(grad, TP_NO_FORMAT);
    return ours ? tp_detached_dual(grad) : tp_clone(grad, TP_NO_FORMAT);
}

/* 0: in place; 1: .grad is another tensor. In the accumulator's turn. Who sets .grad meanwhile takes no turn: the sum
 * is added to, or replaces, what was there at the beginning. */
static int add_to_grad(tp_tensor *variable, tp_tensor *grad) {
    tp_autoref *old = tp_grad(variable);
    if (old && !tp_grad_enabled() && !tp_goes_second(old, grad)) return tp_add__Tensor(old, grad, TP_SCALAR_I(1));
    tp_tensor *sum = old ? tp_sum_of_grads(old, grad) : first_grad(grad, variable);
    if (!sum) return -1;
    tp_put_grad_steal(variable, sum);
    return 1;
}

static int accumulate_apply(tp_node *n, tp_tensor *const *grads, tp_tensor **out) {
    (void)out;
    accumulate_grad *self = (accumulate_grad *)n;
    if (!grads[0] || !tp_requires_grad(self->variable)) return 0; /* a leaf that was frozen after its graph was made */
    if (tp_turn_take(&self->adding) < 0) return -1;
    int status = add_to_grad(self->variable, grads[0]);
    tp_turn_pass(&self->adding);
    if (tp_unlikely(tp_autograd_host.arrived != NULL) && status >= 0)
        tp_autograd_host.arrived(self->variable, status == 0);
    struct tp_py_hooks *hooks = self->variable->autograd->hooks;
    return status < 0 ? -1 : hooks ? tp_autograd_host.accumulated(hooks, self->variable) : 0;
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
    .of_engine = true,
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
        uint8_t before = tp_tls.new_nodes; /* a trace would run Python code under the lock; leaves are no one's plan */
        tp_tls.new_nodes = TP_NODES_UNTRACED;
        n = tp_node_new(&accumulate_type, 0);
        tp_tls.new_nodes = before;
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

int tp_node_point_to(tp_node *n, int i, tp_tensor *t) {
    tp_node *fn = t->autograd->grad_fn;
    n->edges[i].node = fn ? tp_node_retain(fn) : tp_accumulator(t);
    n->edges[i].input_nr = fn ? t->autograd->output_nr : 0;
    return n->edges[i].node ? 0 : -1;
}
