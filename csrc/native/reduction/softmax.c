/* softmax.c: softmax and log_softmax as operators. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/plain.h"
#include "iter/iter.h"

#include <math.h>

static int declare(tp_meta *m, const tp_tensor *self, tp_dtype dtype) {
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides(tp_sizes(self), strides);
    return tp_meta_output(m, 0, tp_sizes(self), (tp_ints){strides, self->ndim}, dtype, self->device);
}

static int forward_meta(tp_meta *m, const char *op, tp_tensor *self, int64_t dim, bool half_to_float) {
    if (half_to_float) return tp_fail(TP_RuntimeError, "%s with half to float conversion is not supported on CPU", op);
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return tp_wrap_dim(dim, self->ndim) < 0 ? -1 : declare(m, self, (tp_dtype)self->dtype);
}

static tp_tensor *contiguous(tp_tensor *t) { return tp_plain(t, (tp_dtype)t->dtype); }

static int forward(int (*softmax)(tp_tensor *x, int64_t dim, tp_tensor *out), tp_tensor *self, int64_t dim,
                   tp_tensor *out) {
    if (out->numel == 0) return 0;
    tp_autoref *x = contiguous(self), *made = x ? tp_target(out, (tp_dtype)out->dtype) : NULL;
    return made && softmax(x, tp_wrap_dim(dim, self->ndim), made) == 0 ? tp_finish(made, out) : -1;
}

static int backward(int (*softmax)(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out), tp_tensor *grad,
                    tp_tensor *output, int64_t dim, tp_tensor *out) {
    if (out->numel == 0) return 0;
    tp_autoref *g = contiguous(grad), *y = g ? contiguous(output) : NULL,
               *made = y ? tp_target(out, (tp_dtype)out->dtype) : NULL;
    return made && softmax(g, y, tp_wrap_dim(dim, grad->ndim), made) == 0 ? tp_finish(made, out) : -1;
}

/* _softmax(Tensor self, int dim, bool half_to_float) -> Tensor */
int _softmax_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool half_to_float) {
    return forward_meta(m, "softmax", self, dim, half_to_float);
}
int _softmax_dense(tp_tensor *self, int64_t dim, bool half_to_float TP_UNUSED, tp_tensor *out) {
    return forward(tp_prim_softmax_forward, self, dim, out);
}
int _log_softmax_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool half_to_float) {
    return forward_meta(m, "log_softmax", self, dim, half_to_float);
}
int _log_softmax_dense(tp_tensor *self, int64_t dim, bool half_to_float TP_UNUSED, tp_tensor *out) {
    return forward(tp_prim_softmax_log, self, dim, out);
}

/* ---- gradients ---- */

static int backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim, tp_dtype input_dtype) {
    if (!tp_same_sizes(grad_output, output))
        return tp_fail(TP_RuntimeError, "softmax_backward: grad_output and output differ in size");
    if (!tp_is_floating(grad_output) || !tp_is_floating(output))
        return tp_fail(TP_RuntimeError, "softmax_backward: expected floating tensors");
    return tp_wrap_dim(dim, output->ndim) < 0
               ? -1
               : declare(m, output, input_dtype == TP_NO_DTYPE ? (tp_dtype)grad_output->dtype : input_dtype);
}
int _softmax_backward_data_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                tp_dtype input_dtype) {
    return backward_meta(m, grad_output, output, dim, input_dtype);
}
int _softmax_backward_data_dense(tp_tensor *grad_output, tp_tensor *output, int64_t dim, tp_dtype input_dtype TP_UNUSED,
                                 tp_tensor *grad_input) {
    return backward(tp_prim_softmax_backward, grad_output, output, dim, grad_input);
}
int _log_softmax_backward_data_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                    tp_dtype input_dtype) {
    return backward_meta(m, grad_output, output, dim, input_dtype);
}
int _log_softmax_backward_data_dense(tp_tensor *grad_output, tp_tensor *output, int64_t dim,
                                     tp_dtype input_dtype TP_UNUSED, tp_tensor *out) {
    return backward(tp_prim_softmax_log_backward, grad_output, output, dim, out);
}

/* ---- the user's forms ---- */

static tp_tensor *in_dtype(tp_tensor *self, tp_dtype dtype) {
    return dtype == TP_NO_DTYPE ? tp_retain(self) : tp_to_dtype(self, dtype, false, false, TP_NO_FORMAT);
}

/* softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *t = in_dtype(self, dtype);
    return t ? tp__softmax(t, dim, false) : NULL;
}

/* log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *log_softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *t = in_dtype(self, dtype);
    return t ? tp__log_softmax(t, dim, false) : NULL;
}

/* _safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor: zeros where all of a row is -inf. */
tp_tensor *_safe_softmax_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    tp_autoref *out = tp_softmax_int(self, dim, dtype);
    if (!out || !out->numel) return tp_take(out);
    tp_autoref *highest = tp_amax(self, TP_INTS(dim), true),
               *rows = highest ? tp_eq_Scalar(highest, TP_SCALAR_F(-INFINITY)) : NULL;
    return rows ? tp_masked_fill_Scalar(out, rows, TP_SCALAR_I(0)) : NULL;
}
