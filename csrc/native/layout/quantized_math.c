/* quantized_math.c: what is computed with quantized tensors: on centered integers, or on the numbers that they stand
 * for, and rounded once (Note [Quantized kernels]). */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "iter/iter.h"

/* _requantized(Tensor self, Tensor numbers) -> Tensor: numbers as integers that are read as self's are. */
tp_tensor *requantized_of(tp_tensor *self, tp_tensor *numbers) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    return q.channels ? tp_quantize_per_channel(numbers, q.scales, q.zero_points, q.axis, q.dtype)
                      : tp_quantize_per_tensor(numbers, q.scale, q.zero_point, q.dtype);
}

/* ---- joining ---- */

/* cat(Tensor[] tensors, int dim=0) -> Tensor: read as the first is. */
tp_tensor *cat_quantized(tp_tensors tensors, int64_t dim) {
    const tp_tensor *first = tensors.data[0];
    tp_autoseq *numbers = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; numbers && i < tensors.size; i++) {
        tp_tensor *t = tensors.data[i];
        if (tp_layout_of(t) == TP_QUANTIZED_CHANNELS)
            return tp_fail_null(TP_RuntimeError, "Only per-tensor quantization is supported in 'cat'!");
        if (!tp_is_quantized(t) || t->dtype != first->dtype)
            return tp_fail_null(TP_RuntimeError, "cat: tensors of %s and of %s", tp_dtype_names[first->dtype],
                                tp_dtype_names[t->dtype]);
        if (!(numbers->items[i] = tp_dequantize_self(t))) return NULL;
    }
    tp_autoref *all = numbers ? tp_cat(tp_tensor_seq_borrow(numbers), dim) : NULL;
    return all ? tp__requantized(tensors.data[0], all) : NULL;
}

/* stack(Tensor[] tensors, int dim=0) -> Tensor */
tp_tensor *stack_quantized(tp_tensors tensors, int64_t dim) {
    const tp_tensor *first = tensors.data[0];
    tp_autoseq *wider = tp_tensor_seq_new(tensors.size);
    int64_t at = tp_wrap_dim(dim, first->ndim + 1);
    if (at < 0) return NULL;
    for (int64_t i = 0; wider && i < tensors.size; i++) {
        if (!tp_same_sizes(first, tensors.data[i]))
            return tp_fail_null(TP_RuntimeError, "stack expects each tensor to be equal size");
        if (!(wider->items[i] = tp_unsqueeze(tensors.data[i], at))) return NULL;
    }
    return wider ? tp_cat(tp_tensor_seq_borrow(wider), at) : NULL;
}

/* split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *split_with_sizes_quantized(tp_tensor *self, tp_ints split_sizes, int64_t dim) {
    tp_autoref *integers = tp_memory_of(self);
    tp_autoseq *whole = integers ? tp_split_with_sizes(integers, split_sizes, dim) : NULL; /* checks the sizes */
    tp_autoseq *made = whole ? tp_tensor_seq_new(split_sizes.size) : NULL;
    for (int64_t i = 0, start = 0; made && i < split_sizes.size; start += split_sizes.data[i++]) {
        tp_opt_int from = {true, start}, to = {true, start + split_sizes.data[i]};
        if (!(made->items[i] = tp_slice_Tensor(self, dim, from, to, 1))) return NULL;
    }
    tp_tensor_seq *result = made;
    made = NULL;
    return result;
}

/* ---- averages: of centered integers, whose sums are exact ---- */

static tp_tensor *centered(const tp_quantized *q) {
    if (q->channels) return tp_fail_null(TP_RuntimeError, "averages are of tensors that are quantized per tensor");
    return tp__dequantize_affine(q->integers, 1, q->zero_point);
}

/* Means of centered integers, as integers again: those nearest to the means of the integers themselves. */
static tp_tensor *rounded(const tp_quantized *q, tp_tensor *means) {
    tp_autoref *moved = means ? tp_add_Scalar(means, TP_SCALAR_I(q->zero_point), TP_SCALAR_I(1)) : NULL;
    tp_autoref *like = moved ? tp_quantize_per_tensor(moved, 1, 0, q->dtype) : NULL;
    tp_autoref *integers = like ? tp_memory_of(like) : NULL;
    return integers ? tp__quantized(integers, q->dtype, q->scale, q->zero_point) : NULL;
}

typedef tp_tensor *(*average)(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                              bool count_include_pad, tp_opt_int divisor_override);
typedef tp_tensor *(*adaptive_average)(tp_tensor *self, tp_ints output_size);

static tp_tensor *averaged(average f, tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                           bool ceil_mode, bool count_include_pad, tp_opt_int divisor_override) {
    tp_autoquantized q = {0};
    tp_autoref *steps = tp_quantized_of(self, &q) < 0 ? NULL : centered(&q);
    tp_autoref *means =
        steps ? f(steps, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override) : NULL;
    return rounded(&q, means);
}
static tp_tensor *averaged_to(adaptive_average f, tp_tensor *self, tp_ints output_size) {
    tp_autoquantized q = {0};
    tp_autoref *steps = tp_quantized_of(self, &q) < 0 ? NULL : centered(&q);
    tp_autoref *means = steps ? f(steps, output_size) : NULL;
    return rounded(&q, means);
}

/* avg_pool2d(Tensor self, int[2] kernel_size, ...) -> Tensor */
tp_tensor *avg_pool2d_quantized(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                                bool count_include_pad, tp_opt_int divisor_override) {
    return averaged(tp_avg_pool2d, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}
/* avg_pool3d(Tensor self, int[3] kernel_size, ...) -> Tensor */
tp_tensor *avg_pool3d_quantized(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding, bool ceil_mode,
                                bool count_include_pad, tp_opt_int divisor_override) {
    return averaged(tp_avg_pool3d, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override);
}

/* _adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor */
tp_tensor *_adaptive_avg_pool2d_quantized(tp_tensor *self, tp_ints output_size) {
    return averaged_to(tp__adaptive_avg_pool2d, self, output_size);
}
/* _adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor */
tp_tensor *_adaptive_avg_pool3d_quantized(tp_tensor *self, tp_ints output_size) {
    return averaged_to(tp__adaptive_avg_pool3d, self, output_size);
}

/* ---- results in a range that is known ---- */

/* Numbers from low on, in as many integers as the dtype has: those of a sigmoid (0 to 1), of a tanh (-1 to 1). */
static tp_tensor *in_range(const tp_tensor *self, tp_tensor *numbers, double width, bool both_signs) {
    if (!numbers) return NULL;
    int64_t bits = self->dtype == TP_QINT32 ? 32 : 8, steps = INT64_C(1) << bits;
    bool is_signed = self->dtype == TP_QINT8 || self->dtype == TP_QINT32;
    int64_t zero_point = (both_signs ? steps / 2 : 0) - (is_signed ? steps / 2 : 0);
    return tp_quantize_per_tensor(numbers, width / (double)steps, zero_point, (tp_dtype)self->dtype);
}

/* sigmoid(Tensor self) -> Tensor */
tp_tensor *sigmoid_quantized(tp_tensor *self) {
    tp_autoref *x = tp_dequantize_self(self), *y = x ? tp_sigmoid(x) : NULL;
    return in_range(self, y, 1, false);
}

/* hardsigmoid(Tensor self) -> Tensor */
tp_tensor *hardsigmoid_quantized(tp_tensor *self) {
    tp_autoref *x = tp_dequantize_self(self), *y = x ? tp_hardsigmoid(x) : NULL;
    return in_range(self, y, 1, false);
}

/* tanh(Tensor self) -> Tensor */
tp_tensor *tanh_quantized(tp_tensor *self) {
    tp_autoref *x = tp_dequantize_self(self), *y = x ? tp_tanh(x) : NULL;
    return in_range(self, y, 2, true);
}

/* ---- under names of their own, as PyTorch has them ---- */

/* quantized_max_pool1d(Tensor self, int[1] kernel_size, ...) -> Tensor */
tp_tensor *quantized_max_pool1d_of(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                                   tp_ints dilation, bool ceil_mode) {
    return tp_max_pool1d(self, kernel_size, stride, padding, dilation, ceil_mode);
}
/* quantized_max_pool2d(Tensor self, int[2] kernel_size, ...) -> Tensor */
tp_tensor *quantized_max_pool2d_of(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                                   tp_ints dilation, bool ceil_mode) {
    return tp_max_pool2d(self, kernel_size, stride, padding, dilation, ceil_mode);
}
/* quantized_max_pool3d(Tensor self, int[3] kernel_size, ...) -> Tensor */
tp_tensor *quantized_max_pool3d_of(tp_tensor *self, tp_ints kernel_size, tp_ints stride, tp_ints padding,
                                   tp_ints dilation, bool ceil_mode) {
    return tp_max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode);
}

/* The numbers of the channels, from the last dimension: by is multiplied by, and at added, in steps of the result. */
static int steps_of_channels(tp_tensor *weight, tp_tensor *bias, tp_tensor *mean, tp_tensor *var, double eps,
                             double scale, tp_tensor **by, tp_tensor **at) {
    tp_autoref *above = tp_add_Scalar(var, TP_SCALAR_F(eps), TP_SCALAR_I(1));
    tp_autoref *plain = above ? tp_rsqrt(above) : NULL;
    tp_autoref *factor = !plain ? NULL : weight ? tp_mul_Tensor(plain, weight) : tp_retain(plain);
    tp_autoref *moved = factor ? tp_mul_Tensor(mean, factor) : NULL;
    tp_autoref *shift = !moved ? NULL : bias ? tp_sub_Tensor(bias, moved, TP_SCALAR_I(1)) : tp_neg(moved);
    if (shift && (*at = tp_div_Scalar(shift, TP_SCALAR_F(scale)))) *by = tp_retain(factor);
    return *by ? 0 : -1;
}

/* quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, ...) -> Tensor: of [N, C,
 * ...], rounded once. */
tp_tensor *quantized_batch_norm_of(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *mean,
                                   tp_tensor *var, double eps, double output_scale, int64_t output_zero_point) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(input, &q) < 0) return NULL;
    const tp_tensor *given[] = {mean, var, weight, bias};
    for (int i = 0; i < TP_COUNTOF(given); i++)
        if (given[i] && (input->ndim < 2 || given[i]->ndim != 1 || given[i]->sizes[0] != input->sizes[1]))
            return tp_fail_null(TP_RuntimeError, "quantized_batch_norm: statistics and weights are a number for each "
                                                 "channel of an input [N, C, ...]");
    tp_autoref *by = NULL, *at = NULL;
    if (steps_of_channels(weight, bias, mean, var, eps, output_scale, &by, &at) < 0) return NULL;
    tp_autoref *steps = centered(&q), *last = steps ? tp_movedim_int(steps, 1, -1) : NULL;
    tp_autoref *scaled = last ? tp_mul_Scalar(by, TP_SCALAR_F(q.scale / output_scale)) : NULL;
    tp_autoref *product = scaled ? tp_mul_Tensor(last, scaled) : NULL;
    tp_autoref *sum = product ? tp_add_Tensor(product, at, TP_SCALAR_I(1)) : NULL;
    tp_autoref *back = sum ? tp_movedim_int(sum, -1, 1) : NULL;
    tp_autoref *like = back ? tp_quantize_per_tensor(back, 1, output_zero_point, q.dtype) : NULL;
    tp_autoref *integers = like ? tp_memory_of(like) : NULL;
    return integers ? tp__quantized(integers, q.dtype, output_scale, output_zero_point) : NULL;
}
