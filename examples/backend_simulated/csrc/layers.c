/* layers.c: what a device may have besides primitives, shown on hardswish: a kernel of a whole operator, here of a
 * gradient; what autograd records; and a rule of autocast. */
#include "device.h"

/* ---- a kernel of its own: hardswish_backward(Tensor grad_output, Tensor self) -> Tensor ---- */

static void hardswish_slope(const argument *a) {
    const view *grad = a[0].tensors, *self = a[1].tensors, *out = a[2].tensors;
    for (int64_t i = 0; i < out->numel; i++) {
        double x = get(self, i).f, slope = x <= -3 ? 0 : x < 3 ? x / 3 + 0.5 : 1;
        put(out, i, (number){.f = get(grad, i).f * slope});
    }
}

TENSORPY_KERNEL(tp_tensor *, hardswish_backward, (tp_tensor *, grad_output), (tp_tensor *, self)) {
    tp_tensor *out = tp_new_empty_like(self, tp_view_of(self).dtype);
    tp_value args[] = {tensorpy_give_tensor(grad_output), tensorpy_give_tensor(self), tensorpy_give_tensor(out)};
    if (!out || tp_view_of(out).numel == 0) return out;
    if (enqueue_call(hardswish_slope, "hardswish_backward", args, 3) == 0) return out;
    tp_release(out);
    return NULL;
}

/* ---- autograd: what is recorded in place of tensorpy's own node ---- */

TENSORPY_HANDLE(tp_tensor *, call_hardswish, "aten::hardswish", (tp_tensor *, self))
TENSORPY_HANDLE(tp_tensor *, call_hardswish_backward, "aten::hardswish_backward", (tp_tensor *, grad_output),
                (tp_tensor *, self))

static int backward(tp_record *record, tp_tensor *const *grads, tp_tensor **out) {
    tp_tensor *self = grads[0] && tp_wants(record, 0) ? tp_saved(record, 0) : NULL;
    if (!self) return tp_error_pending() ? -1 : 0;
    out[0] = call_hardswish_backward(grads[0], self); /* an operator: the gradient has a gradient, too */
    tp_release(self);
    return out[0] ? 0 : -1;
}

TENSORPY_KERNEL(tp_tensor *, hardswish_autograd, (tp_keyset, ks), (tp_tensor *, self)) {
    tp_tensors inputs = {&self, 1};
    tp_record *record = tp_record_new("SimulatedHardswishBackward", backward, inputs, NULL, 0);
    if (!record && tp_error_pending()) return NULL;
    tp_tensor *out = call_hardswish_below(ks & TP_BELOW_AUTOGRAD, self);
    if (out && record && (tp_record_save(record, self) < 0 || tp_record_output(record, out) < 0)) {
        tp_release(out);
        out = NULL;
    }
    tp_record_release(record);
    return out;
}

/* ---- autocast: hardswish is computed in the dtype of a region ---- */

TENSORPY_KERNEL(tp_tensor *, hardswish_autocast, (tp_keyset, ks), (tp_tensor *, self)) {
    int type = tp_view_of(self).device.type;
    tp_tensor *cast = tp_cached_cast(self, tp_autocast_dtype(type), type);
    if (!cast) return NULL;
    tp_tensor *out = call_hardswish_below(ks & TP_BELOW_AUTOCAST, cast);
    tp_release(cast);
    return out;
}

#define LAYER_(prefix, name) prefix##name
#define LAYER(prefix, name) LAYER_(prefix, name)
IMPLEMENT(aten, DEVICE, m) { return tp_impl(m, "hardswish_backward", hardswish_backward); }
IMPLEMENT(aten, LAYER(Autograd_, DEVICE), m) { return tp_impl(m, "hardswish", hardswish_autograd); }
IMPLEMENT(aten, LAYER(Autocast_, DEVICE), m) { return tp_impl(m, "hardswish", hardswish_autocast); }
