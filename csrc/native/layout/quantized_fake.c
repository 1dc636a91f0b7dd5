/* quantized_fake.c: numbers as they are after they were quantized and read again, in floating point: what training
 * that knows of quantization computes with. */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "iter/iter.h"

/* 16-bit floats are a format of memory. */
static tp_tensor *computable(tp_tensor *self) {
    return tp_is_half_dtype((tp_dtype)self->dtype) ? tp_to_dtype(self, TP_FLOAT32, false, false, TP_NO_FORMAT)
                                                   : tp_retain(self);
}

static tp_tensor *between(tp_tensor *steps, int64_t low, int64_t high) {
    tp_autoref *least = tp_ge_Scalar(steps, TP_SCALAR_I(low)), *most = tp_le_Scalar(steps, TP_SCALAR_I(high));
    return least && most ? tp_logical_and(least, most) : NULL;
}

/* The output and the mask; `scale` and `zero_point` are of one element, or go along a dimension. A float zero point is
 * added before rounding. */
static tp_tensor2 faked(tp_tensor *self, tp_tensor *scale, tp_tensor *zero_point, int64_t low, int64_t high) {
    tp_tensor2 none = {{NULL, NULL}};
    tp_autoref *x = computable(self), *by = tp_to_dtype(scale, TP_FLOAT32, false, false, TP_NO_FORMAT),
               *at = tp_to_dtype(zero_point, TP_FLOAT32, false, false, TP_NO_FORMAT);
    tp_autoref *inverse = by ? tp_reciprocal(by) : NULL, *scaled = x && inverse ? tp_mul_Tensor(x, inverse) : NULL;
    if (!scaled || !at) return none;
    bool before = tp_is_floating(zero_point);
    tp_autoref *first = before ? tp_add_Tensor(scaled, at, TP_SCALAR_I(1)) : tp_round(scaled);
    tp_autoref *steps = !first ? NULL : before ? tp_round(first) : tp_add_Tensor(first, at, TP_SCALAR_I(1));
    tp_autoref *kept = steps ? tp_clamp(steps, TP_SCALAR_I(low), TP_SCALAR_I(high)) : NULL;
    tp_autoref *moved = kept ? tp_sub_Tensor(kept, at, TP_SCALAR_I(1)) : NULL;
    tp_autoref *integers = moved ? tp_to_dtype(moved, TP_FLOAT32, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *numbers = integers ? tp_mul_Tensor(integers, by) : NULL;
    tp_autoref *output = numbers ? tp_to_dtype(numbers, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    tp_tensor *mask = output ? between(steps, low, high) : NULL;
    return mask ? (tp_tensor2){{tp_take(output), mask}} : none;
}

static int check(const tp_tensor *self, int64_t low, int64_t high) {
    if (!tp_is_floating(self) || tp_is_stored_dtype((tp_dtype)self->dtype))
        return tp_fail(TP_NotImplementedError, "\"fake_quantize\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    if (low <= high) return 0;
    return tp_fail(TP_RuntimeError, "`quant_min` should be less than or equal to `quant_max`.");
}

/* fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) ->
 * (Tensor output, Tensor mask) */
tp_tensor2 fake_quantize_per_tensor_affine_cachemask_explicit(tp_tensor *self, double scale, int64_t zero_point,
                                                              int64_t quant_min, int64_t quant_max) {
    tp_tensor2 none = {{NULL, NULL}};
    if (check(self, quant_min, quant_max) < 0) return none;
    if (zero_point < quant_min || zero_point > quant_max) {
        tp_fail(TP_RuntimeError, "`zero_point` must be between `quant_min` and `quant_max`.");
        return none;
    }
    tp_autoref *by = tp_scalar_tensor(TP_SCALAR_F(scale), TP_FLOAT32, TP_STRIDED, self->device, -1),
               *at = tp_scalar_tensor(TP_SCALAR_I(zero_point), TP_INT64, TP_STRIDED, self->device, -1);
    return by && at ? faked(self, by, at, quant_min, quant_max) : none;
}

/* _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor
 * fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask) */
tp_tensor2 _fake_quantize_per_tensor_affine_cachemask_tensor_qparams_explicit(tp_tensor *self, tp_tensor *scale,
                                                                              tp_tensor *zero_point,
                                                                              tp_tensor *fake_quant_enabled,
                                                                              int64_t quant_min, int64_t quant_max) {
    tp_tensor2 none = {{NULL, NULL}};
    if (check(self, quant_min, quant_max) < 0) return none;
    tp_scalar on;
    if (scale->numel != 1 || zero_point->numel != 1 || fake_quant_enabled->numel != 1) {
        tp_fail(TP_RuntimeError, "fake_quantize_per_tensor_affine: the scale and the zero point are one number each");
        return none;
    }
    if (tp__local_scalar_dense(fake_quant_enabled, &on) < 0) return none;
    if (tp_scalar_int(&on) == 0) {
        tp_autoref *same = tp_clone(self, TP_NO_FORMAT);
        tp_tensor *all = same ? tp_ones_like(self, TP_BOOL, TP_NO_LAYOUT, (tp_device){-1, -1}, -1, TP_NO_FORMAT) : NULL;
        return all ? (tp_tensor2){{tp_take(same), all}} : none;
    }
    tp_autoref *by = tp_reshape(scale, TP_EMPTY_INTS), *at = tp_reshape(zero_point, TP_EMPTY_INTS);
    return by && at ? faked(self, by, at, quant_min, quant_max) : none;
}

/* fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int
 * quant_max) -> (Tensor output, Tensor mask) */
tp_tensor2 fake_quantize_per_channel_affine_cachemask_explicit(tp_tensor *self, tp_tensor *scale, tp_tensor *zero_point,
                                                               int64_t axis, int64_t quant_min, int64_t quant_max) {
    tp_tensor2 none = {{NULL, NULL}};
    if (check(self, quant_min, quant_max) < 0) return none;
    bool fits = axis >= 0 && axis < self->ndim && scale->ndim == 1 && zero_point->ndim == 1 &&
                scale->numel == self->sizes[axis] && zero_point->numel == scale->numel;
    if (!fits) {
        tp_fail(TP_RuntimeError,
                "fake_quantize_per_channel_affine: dimensions of scale and zero-point are not "
                "consistent with input tensor: one of each for each place along the axis %lld",
                (long long)axis);
        return none;
    }
    tp_autoref *by = tp__along(scale, axis, self->ndim), *at = tp__along(zero_point, axis, self->ndim);
    return by && at ? faked(self, by, at, quant_min, quant_max) : none;
}
