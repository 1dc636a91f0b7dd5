/* opaque.c: devices from outside that show no memory (Note [Opaque tensors] in core/storage.h).
 *
 * Their operators are taken whole: a kernel of the backend's, or the host's on copies. The parts of a composite run one
 * by one only where a gradient is recorded, which is then the parts' gradient; a part that is a view is an error there.
 * */
#include "outside/backend.h"

#include "autograd/undifferentiated.h"
#include "core/error.h"

/* What moves handles, and computes nothing. */
static const char *const moves[] = {"copy_", "set_.source_Tensor", "set_.source_Tensor_storage_offset"};

/* The CPU's kernel is that of every device. */
static int by_core(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    return tp_call_kernel_at(op, TP_KEY_CPU, ks, args, results);
}

/* A composite's parts would have counted what they wrote. */
static bool writes(const tp_op *op) {
    for (int i = 0; i < op->info->nargs; i++)
        if (op->info->args[i].is_write) return true;
    return false;
}

static int in_autograd(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    bool composite = tp_has_kernel(op, (tp_key)TP_ALIAS_KEY(CompositeImplicitAutograd));
    if (composite && tp_is_recorded(op, args)) return by_core(op, ks, args, results, context);
    if (composite && writes(op)) return tp_count_writes(op, ks, args, results, context);
    return tp_redispatch_boxed(op, ks & TP_BELOW_AUTOGRAD, args, results);
}

int tp_make_opaque(tp_device_type type) {
    tp_key key = tp_backend_key(type), autograd = tp_autograd_key(type);
    for (size_t i = 0; i < TP_COUNTOF(moves); i++) {
        tp_op *op = tp_find_op_qualified(moves[i]);
        if (tp_register_default(op, key, by_core, "outside/opaque.c: moves handles") < 0) return -1;
    }
    if (tp_register_fallback(autograd, in_autograd, NULL, NULL, "outside/opaque.c: whole operators") < 0) return -1;
    tp_device_opaque[type] = true;
    tp_take_whole((tp_keyset)1 << key | (tp_keyset)1 << autograd);
    return 0;
}
