/* call.c: boxed calls, of an operator from the top, of the kernel at a key, and of the one after it. */
#include "dispatch/registrations.h"

#include "core/lock.h"

void tp_value_release(tp_value *v) {
    if (v->tag == TP_TENSOR) tp_release(v->tensor);
    if (v->tag == TP_TENSOR_SEQ) tp_tensor_seq_free(v->seq);
    v->tag = TP_NONE;
}

tp_keyset tp_keys_of_values(const tp_value *args, int n) {
    tp_keyset ks = 0;
    bool any = false;
    for (int i = 0; i < n; i++) {
        if (args[i].tag == TP_TENSOR) {
            ks |= args[i].tensor->keys;
            any = true;
        } else if (args[i].tag == TP_TENSORS) {
            for (int64_t j = 0; j < args[i].tensors.size; j++)
                if (args[i].tensors.data[j]) ks |= args[i].tensors.data[j]->keys, any = true;
        }
    }
    return any ? ks : TP_BIT(BackendSelect);
}

/* The boxed kernel that the operator has at a key, counted in; NULL if it has none any more. */
static tp_cell *enter_at(const tp_op *op, tp_key key) {
    tp_cell *_Atomic *cells = __atomic_load_n(&op->cells, __ATOMIC_ACQUIRE);
    tp_cell *own = cells ? tp_cell_enter(&cells[key]) : NULL;
    return own ? own : tp_cell_enter(&tp_fallback_cells[key]);
}

int tp_call_kernel_at(const tp_op *op, tp_key key, tp_keyset ks, const tp_value *args, tp_value *results) {
    tp_cell *cell = tp_is_boxed_at(op, key) ? enter_at(op, key) : NULL;
    if (cell) {
        int status = cell->boxed(op, ks, (tp_value *)args, results, cell->context);
        tp_cell_leave(cell);
        return status;
    }
    tp_fn kernel = tp_kernel_at(op, key);
    if (!kernel) return tp_missing_kernel(op, ks, args);
    if (kernel == op->info->box) return tp_redispatch_boxed(op, ks, args, results); /* it is being taken out */
    return op->info->signature->call(kernel, ks, args, results);
}

bool tp_hold_kernel(const tp_op *op, tp_key key, tp_held_kernel *held) {
    *held = (tp_held_kernel){.cell = tp_is_boxed_at(op, key) ? enter_at(op, key) : NULL};
    tp_fn kernel = held->cell ? NULL : tp_kernel_at(op, key);
    if (kernel != op->info->box) held->fn = kernel;
    return held->fn || held->cell;
}

void tp_let_go(const tp_held_kernel *held) {
    if (held->cell) tp_cell_leave(held->cell);
}

int tp_call_held(const tp_op *op, const tp_held_kernel *held, tp_keyset ks, const tp_value *args, tp_value *results) {
    if (held->cell) return held->cell->boxed(op, ks, (tp_value *)args, results, held->cell->context);
    return op->info->signature->call(held->fn, ks, args, results);
}

int tp_redispatch_boxed(const tp_op *op, tp_keyset ks, const tp_value *args, tp_value *results) {
    return tp_call_kernel_at(op, tp_live_key(op, ks), ks, args, results);
}

static int call_after(const tp_op *op, tp_fn fn, const void *context, tp_keyset ks, const tp_value *args,
                      tp_value *results) {
    tp_lock(TP_LOCK_Operators);
    const tp_registration_node *next = tp_resolve_after(op, tp_live_key(op, ks & ~TP_BIT(Trace)), fn, context);
    tp_fn kernel = next ? next->r.fn : NULL;
    tp_cell *_Atomic place = next ? next->r.cell : NULL; /* not retired yet: that needs the lock */
    tp_cell *cell = tp_cell_enter(&place);
    tp_unlock(TP_LOCK_Operators);
    if (cell) {
        int status = cell->boxed(op, ks, (tp_value *)args, results, cell->context);
        tp_cell_leave(cell);
        return status;
    }
    return kernel ? op->info->signature->call(kernel, ks, args, results) : tp_missing_kernel(op, ks, args);
}

int tp_call_next(const tp_op *op, tp_fn declined, tp_keyset ks, const tp_value *args, tp_value *results) {
    return call_after(op, declined, NULL, ks, args, results);
}

int tp_call_next_boxed(const tp_op *op, const void *declined, tp_keyset ks, const tp_value *args, tp_value *results) {
    return call_after(op, NULL, declined, ks, args, results);
}

/* The tensor by which a primitive is entered; NULL and the error set if the others are not beside it. */
static const tp_tensor *guide_of(const tp_op *op, const tp_value *args) {
    const tp_value *v = &args[op->info->guide];
    const tp_tensor *guide = v->tag == TP_TENSOR                           ? v->tensor
                             : v->tag == TP_TENSORS && v->tensors.size > 0 ? v->tensors.data[0]
                                                                           : NULL;
    char name[128];
    if (!guide)
        return tp_fail_null(TP_RuntimeError, "%s: %s is missing", tp_op_name(op, name),
                            op->info->args[op->info->guide].name);
    for (int i = 0; i < op->info->nargs; i++) {
        bool list = args[i].tag == TP_TENSORS;
        int64_t n = list ? args[i].tensors.size : args[i].tag == TP_TENSOR;
        for (int64_t k = 0; k < n; k++) {
            const tp_tensor *t = list ? args[i].tensors.data[k] : args[i].tensor;
            if (t && !tp_device_equal(t->device, guide->device))
                return tp_fail_null(TP_RuntimeError, "%s: %s is on another device", tp_op_name(op, name),
                                    op->info->args[i].name);
        }
    }
    return guide;
}

int tp_call_boxed(const tp_op *op, const tp_value *args, tp_value *results) {
    if (op->info->is_primitive) {
        const tp_tensor *guide = guide_of(op, args);
        return guide ? tp_redispatch_boxed(op, tp_primitive_keys(guide), args, results) : -1;
    }
    return tp_redispatch_boxed(op, tp_effective_keys(tp_keys_of_values(args, op->info->nargs)), args, results);
}
