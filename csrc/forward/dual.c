/* dual.c: the operators that give a tensor a tangent or make it a constant; they count the levels of their thread from
 * 0. See Note [Tangents]. */
#include "NativeFunctions.h"
#include "core/text.h"
#include "forward/forward.h"
#include "forward/internal.h"

static int check_tangent(const tp_tensor *primal, const tp_tensor *tangent) {
    if (!tp_same_sizes(primal, tangent)) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(primal));
        tp_text_ints(&b, tp_sizes(tangent));
        return tp_fail(
            TP_RuntimeError,
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this "
            "is not supported. Tensor is of size %s while the given forward gradient is of size %s.",
            a.text, b.text);
    }
    if (tp_is_complex(tangent) && !tp_is_complex(primal)) /* of any other dtype it becomes one of the tensor's */
        return tp_fail(TP_RuntimeError,
                       "Trying to set a complex forward gradient for a real tensor: its real part alone "
                       "would be used");
    if (!tp_device_equal(primal->device, tangent->device))
        return tp_fail(TP_RuntimeError, "Trying to set a forward gradient on another device than its tensor's");
    return 0;
}

static int is_dual(tp_tensor *t, uint32_t number) {
    tp_tangent_of found;
    if (tp_find_tangent(t, number, &found) < 0) return -1;
    bool there = found.tangent != NULL;
    tp_release(found.tangent);
    return there;
}

tp_tensor *tp_make_dual(tp_tensor *primal, tp_tensor *tangent, uint32_t number) {
    if (check_tangent(primal, tangent) < 0) return NULL;
    int dual = is_dual(primal, number);
    if (dual)
        return dual < 0 ? NULL
                        : tp_fail_null(TP_RuntimeError,
                                       "Making a dual Tensor based on a Tensor that already has a forward gradient at "
                                       "the same level %u is not supported",
                                       number);
    tp_autoref *alias = tp_alias(primal), *fit = alias ? tp_fit_tangent(primal, tangent) : NULL;
    if (fit && tp_physical_storage(fit) == tp_physical_storage(primal)) {
        tp_autoref *shared = fit;
        fit = tp_clone(shared, TP_NO_FORMAT);
    }
    return fit && tp_put_tangent(alias, number, fit) == 0 ? tp_take(alias) : NULL;
}

tp_tensor *tp_primal(tp_tensor *t, uint32_t number) {
    tp_autoref *alias = tp_alias(t);
    return alias && tp_put_tangent(alias, number, NULL) == 0 ? tp_take(alias) : NULL;
}

static int check_level(int64_t level) {
    if (level >= 0 && level < tp_forward_count()) return 0;
    return tp_fail(TP_RuntimeError,
                   "Trying to access a forward AD level with an invalid index. This index was either not created or is "
                   "already deleted.");
}

/* _fw_primal(Tensor(a) self, int level) -> Tensor(a) */
tp_tensor *_fw_primal_composite(tp_tensor *self, int64_t level) {
    if (level < 0 || level >= tp_forward_count()) return tp_alias(self);
    int before = tp_forward_show((int)level);
    tp_tensor *primal = tp_primal(self, tp_forward_number((int)level));
    tp_forward_show(before);
    return primal;
}
/* _make_dual(Tensor(a) primal, Tensor tangent, int level) -> Tensor(a) */
tp_tensor *_make_dual_composite(tp_tensor *primal, tp_tensor *tangent, int64_t level) {
    if (check_level(level) < 0) return NULL;
    int before = tp_forward_show((int)level);
    tp_tensor *dual = tp_make_dual(primal, tangent, tp_forward_number((int)level));
    tp_forward_show(before);
    return dual;
}
/* _unpack_dual(Tensor(a) dual, int level) -> (Tensor(a) primal, Tensor tangent): a constant has no tangent */
tp_tensor2 _unpack_dual_composite(tp_tensor *dual, int64_t level) {
    tp_tensor2 r = {{NULL}};
    tp_tangent_of found = {0};
    if (level >= 0 && level < tp_forward_count()) {
        int before = tp_forward_show((int)level), status = tp_find_tangent(dual, tp_forward_number((int)level), &found);
        tp_forward_show(before);
        if (status < 0) return r;
    }
    tp_autoref *tangent = found.tangent, *primal = _fw_primal_composite(dual, level);
    return primal ? (tp_tensor2){{tp_take(primal), tp_take(tangent)}} : r;
}
