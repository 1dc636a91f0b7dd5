/* activation.c: activations with shapes to check; those of one element each are expressions in the YAML. */
#include "NativeFunctions.h"
#include "native/common/variants.h"

#include <math.h>

/* glu(Tensor self, int dim=-1) -> Tensor: the first half times the sigmoid of the second. */
tp_tensor *glu_composite(tp_tensor *self, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "glu does not support 0-dimensional tensors");
    if (d < 0) return NULL;
    int64_t n = self->sizes[d];
    if (n % 2)
        return tp_fail_null(TP_RuntimeError, "Halving dimension must be even, but dimension %lld is size %lld",
                            (long long)d, (long long)n);
    tp_autoref *a = tp_narrow(self, d, 0, n / 2), *b = tp_narrow(self, d, n / 2, n / 2);
    tp_autoref *gate = a && b ? tp_sigmoid(b) : NULL;
    return gate ? tp_mul_Tensor(a, gate) : NULL;
}

/* glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor */
tp_tensor *glu_backward_composite(tp_tensor *grad_output, tp_tensor *self, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    int64_t n = self->ndim ? self->sizes[d] : 0;
    tp_autoref *a = tp_narrow(self, d, 0, n / 2), *b = tp_narrow(self, d, n / 2, n / 2);
    tp_autoref *gate = a && b ? tp_sigmoid(b) : NULL, *product = gate ? tp_mul_Tensor(grad_output, a) : NULL;
    tp_autoref *first = product ? tp_mul_Tensor(grad_output, gate) : NULL,
               *second = first ? tp_sigmoid_backward(product, gate) : NULL;
    return second ? tp_cat((tp_tensors){(tp_tensor *const[]){first, second}, 2}, d) : NULL;
}

/* prelu(Tensor self, Tensor weight) -> Tensor: a slope for all negative elements, or for each channel. */
tp_tensor *prelu_composite(tp_tensor *self, tp_tensor *weight) {
    int64_t sizes[TP_MAX_DIMS];
    if (weight->dtype != self->dtype)
        return tp_fail_null(TP_RuntimeError, "prelu: Type promoting not supported. Got %s and %s",
                            tp_dtype_names[self->dtype], tp_dtype_names[weight->dtype]);
    if (weight->ndim > 1)
        return tp_fail_null(TP_RuntimeError, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                            weight->ndim);
    if (weight->numel != 1) {
        int64_t channels = self->ndim > 1 ? self->sizes[1] : 1;
        if (self->ndim == 0)
            return tp_fail_null(TP_RuntimeError, "prelu: Not allow zero-dim input tensor with a weight per channel.");
        if (channels != weight->numel)
            return tp_fail_null(TP_RuntimeError,
                                "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers "
                                "= %lld and channel size = %lld.",
                                (long long)weight->numel, (long long)channels);
    }
    for (int i = 0; i < self->ndim; i++) sizes[i] = i == 1 && weight->numel != 1 ? weight->numel : 1;
    tp_autoref *w = tp_reshape(weight, (tp_ints){sizes, self->ndim});
    return w ? tp__prelu_kernel(self, w) : NULL;
}

/* log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), Tensor(b!)) */
int log_sigmoid_forward_output_composite(tp_tensor *self, tp_tensor *output, tp_tensor *buffer) {
    tp_tensor2 made = tp_log_sigmoid_forward(self);
    return made.v[0] ? tp_copy_into_outs_steal((tp_tensor *const[]){output, buffer}, made.v, 2) : -1;
}

/* ---- rrelu: negative elements times slopes that are drawn, or their mean ---- */

static int read_slopes(const tp_scalar *lower, const tp_scalar *upper, double *low, double *high) {
    if (tp_scalar_check_fits(lower, TP_FLOAT64) < 0 || tp_scalar_check_fits(upper, TP_FLOAT64) < 0) return -1;
    *low = tp_scalar_double(lower);
    *high = tp_scalar_double(upper);
    if (!isfinite(*low) || !isfinite(*high))
        return tp_fail(TP_RuntimeError, "rrelu: the bounds must be finite, got %g and %g", *low, *high);
    if (*low <= *high) return 0;
    return tp_fail(TP_RuntimeError, "Lower bound should be less than or equal to the upper bound: %g is above %g", *low,
                   *high);
}
static tp_tensor *drawn_slopes(tp_tensor *self, double low, double high, tp_generator *generator) {
    tp_autoref *slope = tp_empty_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return slope && tp_uniform_(slope, low, high, generator) == 0 ? tp_take(slope) : NULL;
}
/* rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator?
 * generator=None) -> Tensor */
tp_tensor *rrelu_composite(tp_tensor *self, const tp_scalar *lower, const tp_scalar *upper, bool training,
                           tp_generator *generator) {
    double low, high;
    if (read_slopes(lower, upper, &low, &high) < 0) return NULL;
    if (!training) return tp_leaky_relu(self, TP_SCALAR_F((low + high) / 2));
    tp_autoref *slope = drawn_slopes(self, low, high, generator), *steep = slope ? tp_mul_Tensor(self, slope) : NULL,
               *positive = steep ? tp_gt_Scalar(self, TP_SCALAR_I(0)) : NULL;
    return positive ? tp_where_self(positive, self, steep) : NULL;
}
/* rrelu_(Tensor(a!) self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator?
 * generator=None) -> Tensor(a!) */
int rrelu__composite(tp_tensor *self, const tp_scalar *lower, const tp_scalar *upper, bool training,
                     tp_generator *generator) {
    double low, high;
    if (read_slopes(lower, upper, &low, &high) < 0) return -1;
    if (!training) return tp_leaky_relu_(self, TP_SCALAR_F((low + high) / 2));
    tp_autoref *slope = drawn_slopes(self, low, high, generator),
               *positive = slope ? tp_gt_Scalar(self, TP_SCALAR_I(0)) : NULL;
    tp_autoref *factor = positive ? tp_where_ScalarSelf(positive, TP_SCALAR_I(1), slope) : NULL;
    return factor ? tp_mul__Tensor(self, factor) : -1;
}
