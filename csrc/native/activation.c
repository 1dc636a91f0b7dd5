/* activation.c: activations with shapes to check; those of one element each are expressions in the YAML. */
#include "NativeFunctions.h"
#include "native/variants.h"

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
