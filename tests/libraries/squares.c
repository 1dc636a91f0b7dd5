/* squares.c: a product with a gradient of its own, and one whose backward fails. */
#include "tensorpy/library.h"

TENSORPY_HANDLE(tp_tensor *, mul, "aten::mul.Tensor", (tp_tensor *, a), (tp_tensor *, b))
TENSORPY_HANDLE(tp_tensor *, product, "squares::product", (tp_tensor *, a), (tp_tensor *, b))
static int backward(tp_record *r, tp_tensor *const *grads, tp_tensor **out) {
    for (int i = 0; i < 2; i++) {
        if (!tp_wants(r, i)) continue;
        tp_tensor *other = tp_saved(r, 1 - i);
        out[i] = other ? mul(grads[0], other) : NULL;
        tp_release(other);
        if (!out[i]) return -1;
    }
    return *(int *)tp_record_data(r) ? -1 : 0;
}
static tp_tensor *record(tp_keyset ks, tp_tensor *a, tp_tensor *b, int fails) {
    tp_tensor *both[] = {a, b};
    tp_tensors inputs = {both, 2};
    tp_record *r = tp_record_new("ProductBackward", backward, inputs, &fails, sizeof fails);
    if (!r && tp_error_pending()) return NULL;
    tp_tensor *out = product_below(ks & TP_BELOW_AUTOGRAD, a, b);
    int ok = !r || (tp_record_save(r, a) == 0 && tp_record_save(r, b) == 0 && tp_record_output(r, out) == 0);
    tp_record_release(r);
    if (ok) return out;
    tp_release(out);
    return NULL;
}
TENSORPY_KERNEL(tp_tensor *, of_dense, (tp_tensor *, a), (tp_tensor *, b)) { return mul(a, b); }
TENSORPY_KERNEL(tp_tensor *, recorded, (tp_keyset, ks), (tp_tensor *, a), (tp_tensor *, b)) {
    return record(ks, a, b, 0);
}
TENSORPY_KERNEL(tp_tensor *, failing, (tp_keyset, ks), (tp_tensor *, a), (tp_tensor *, b)) {
    return record(ks, a, b, 1);
}
TENSORPY_LIBRARY(squares, m) {
    if (tp_def(m, "product(Tensor a, Tensor b) -> Tensor") < 0) return -1;
    return tp_def(m, "failing(Tensor a, Tensor b) -> Tensor");
}
TENSORPY_LIBRARY_IMPL(squares, CompositeExplicitAutograd, m) {
    return tp_impl(m, "product", of_dense) < 0 ? -1 : tp_impl(m, "failing", of_dense);
}
TENSORPY_LIBRARY_IMPL(squares, Autograd, m) {
    return tp_impl(m, "product", recorded) < 0 ? -1 : tp_impl(m, "failing", failing);
}
