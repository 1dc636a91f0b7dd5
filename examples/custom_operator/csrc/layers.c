/* layers.c: what the layers above the backends do with scale: its gradient, and its dtype under autocast. */
#include "tensorpy/library.h"

TENSORPY_HANDLE(tp_tensor *, scale, "myops::scale", (tp_tensor *, self), (double, by))

/* d(by * x)/dx = by. Calling the operator itself, the gradient can be differentiated again. */
static int scale_backward(tp_record *record, tp_tensor *const *grads, tp_tensor **out) {
    const double *by = tp_record_data(record);
    if (!grads[0] || !tp_wants(record, 0)) return 0;
    out[0] = scale(grads[0], *by);
    return out[0] ? 0 : -1;
}

TENSORPY_KERNEL(tp_tensor *, scale_autograd, (tp_keyset, ks), (tp_tensor *, self), (double, by)) {
    tp_tensors inputs = {&self, 1};
    tp_record *record = tp_record_new("ScaleBackward", scale_backward, inputs, &by, sizeof by);
    if (!record && tp_error_pending()) return NULL;
    tp_tensor *out = scale_below(ks & TP_BELOW_AUTOGRAD, self, by);
    if (out && record && tp_record_output(record, out) < 0) {
        tp_release(out);
        out = NULL;
    }
    tp_record_release(record);
    return out;
}

/* scale computes in float32, whatever autocast's dtype is. */
TENSORPY_KERNEL(tp_tensor *, scale_autocast, (tp_keyset, ks), (tp_tensor *, self), (double, by)) {
    tp_tensor *cast = tp_cached_cast(self, TP_FLOAT32, TP_DEVICE_CPU);
    if (!cast) return NULL;
    tp_tensor *out = scale_below(ks & TP_BELOW_AUTOCAST, cast, by);
    tp_release(cast);
    return out;
}

TENSORPY_LIBRARY_IMPL(myops, Autograd, m) { return tp_impl(m, "scale", scale_autograd); }
TENSORPY_LIBRARY_IMPL(myops, AutocastCPU, m) { return tp_impl(m, "scale", scale_autocast); }
