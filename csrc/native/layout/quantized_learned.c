/* quantized_learned.c: fake quantization whose scale is learned, by gradients or from what it has seen (Note [Quantized
 * kernels]). */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "iter/iter.h"

#include <math.h>

/* ---- by gradients ---- */

static int check_range(const char *op, int64_t low, int64_t high) {
    if (low <= 0 && high >= 0) return 0;
    return tp_fail(TP_RuntimeError, "%s: the integers from %lld to %lld are without 0", op, (long long)low,
                   (long long)high);
}

/* Zero points that were learned are rounded. */
static tp_tensor *whole(tp_tensor *zero_point, int64_t low, int64_t high) {
    tp_autoref *rounded = tp_round(zero_point);
    tp_autoref *kept = rounded ? tp_clamp(rounded, TP_SCALAR_I(low), TP_SCALAR_I(high)) : NULL;
    return kept ? tp_to_dtype(kept, TP_INT32, false, false, TP_NO_FORMAT) : NULL;
}

static tp_tensor *first_of(tp_tensor2 pair) {
    tp_release(pair.v[1]);
    return pair.v[0];
}

/* _fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int
 * quant_max, float grad_factor=1.0) -> Tensor */
tp_tensor *_fake_quantize_learnable_per_tensor_affine_explicit(tp_tensor *self, tp_tensor *scale, tp_tensor *zero_point,
                                                               int64_t quant_min, int64_t quant_max,
                                                               double grad_factor TP_UNUSED) {
    if (check_range("_fake_quantize_learnable_per_tensor_affine", quant_min, quant_max) < 0) return NULL;
    tp_autoref *at = whole(zero_point, quant_min, quant_max),
               *on = tp_scalar_tensor(TP_SCALAR_I(1), TP_INT64, TP_STRIDED, self->device, -1);
    if (!at || !on) return NULL;
    return first_of(
        tp__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, at, on, quant_min, quant_max));
}

/* _fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min,
 * int quant_max, float grad_factor=1.0) -> Tensor */
tp_tensor *_fake_quantize_learnable_per_channel_affine_explicit(tp_tensor *self, tp_tensor *scale,
                                                                tp_tensor *zero_point, int64_t axis, int64_t quant_min,
                                                                int64_t quant_max, double grad_factor TP_UNUSED) {
    if (check_range("_fake_quantize_learnable_per_channel_affine", quant_min, quant_max) < 0) return NULL;
    tp_autoref *at = whole(zero_point, quant_min, quant_max);
    if (!at) return NULL;
    return first_of(tp_fake_quantize_per_channel_affine_cachemask(self, scale, at, axis, quant_min, quant_max));
}

/* ---- from what was seen ---- */

/* The arguments of the operator by which it watches. */
typedef struct {
    tp_tensor *self, *least, *most; /* the last two: what was seen, a number for each channel */
    double share;                   /* of a new range in the average */
    int64_t axis;
    bool channels;
} watch;

/* The least and the greatest number: of all, or of each channel. New. */
static tp_tensor2 ends_of(const watch *w) {
    if (!w->channels) return tp_aminmax(w->self, TP_NO_INT, false);
    tp_tensor2 none = {{NULL, NULL}};
    tp_autoref *lines = tp_movedim_int(w->self, w->axis, 0);
    tp_autoref *flat = lines ? tp_reshape(lines, TP_INTS(w->self->sizes[w->axis], -1)) : NULL;
    return flat ? tp_aminmax(flat, (tp_opt_int){true, 1}, false) : none;
}

/* What was seen is the first range, then goes towards each new one. */
static int move(tp_tensor *seen, tp_tensor *now, double share) {
    tp_autoref *shaped = tp_reshape(now, tp_sizes(seen)),
               *step = shaped ? tp_sub_Tensor(shaped, seen, TP_SCALAR_I(1)) : NULL;
    tp_autoref *part = step ? tp_mul_Scalar(step, TP_SCALAR_F(share)) : NULL,
               *moved = part ? tp_add_Tensor(seen, part, TP_SCALAR_I(1)) : NULL;
    tp_autoref *first = moved ? tp_isinf(seen) : NULL, *result = first ? tp_where_self(first, shaped, moved) : NULL;
    return result ? tp_copy_(seen, result, false) : -1;
}

static int as_many(tp_tensor *t, int64_t count, double value) {
    if (t->numel != 0) return 0;
    return tp_resize_(t, TP_INTS(count), TP_NO_FORMAT) < 0 ? -1 : tp_fill__Scalar(t, TP_SCALAR_F(value));
}

static int observe(const watch *w) {
    int64_t count = w->channels ? w->self->sizes[w->axis] : 1;
    if (as_many(w->least, count, (double)INFINITY) < 0 || as_many(w->most, count, -(double)INFINITY) < 0) return -1;
    if (w->least->numel != count || w->most->numel != count)
        return tp_fail(TP_RuntimeError, "fused_moving_avg_obs_fake_quant: %lld and %lld numbers were seen, of %lld",
                       (long long)w->least->numel, (long long)w->most->numel, (long long)count);
    tp_tensor2 pair = ends_of(w);
    tp_autoref *least = pair.v[0], *most = pair.v[1];
    if (!most) return -1;
    return move(w->least, least, w->share) < 0 ? -1 : move(w->most, most, w->share);
}

static int number(tp_tensor *t, int64_t i, tp_scalar *out) {
    tp_autoref *one = tp_select_int(t, 0, i);
    return one ? tp__local_scalar_dense(one, out) : -1;
}

static int put(tp_tensor *t, int64_t i, const tp_scalar *value) {
    tp_autoref *one = tp_select_int(t, 0, i);
    return one ? tp_fill__Scalar(one, value) : -1;
}

static int choose_one(tp_tensor *least, tp_tensor *most, int64_t i, int64_t low, int64_t high, bool symmetric,
                      tp_tensor *scales, tp_tensor *zero_points) {
    tp_scalar from, to;
    if (number(least, i, &from) < 0 || number(most, i, &to) < 0) return -1;
    if (!(from.f <= to.f) || !isfinite(from.f) || !isfinite(to.f))
        return tp_fail(TP_RuntimeError, "fused_moving_avg_obs_fake_quant: numbers from %g to %g have no scale", from.f,
                       to.f);
    double scale;
    int64_t zero_point;
    tp_choose_scale((float)from.f, (float)to.f, low, high, (tp_choice){symmetric, true}, &scale, &zero_point);
    return put(scales, i, TP_SCALAR_F(scale)) < 0 ? -1 : put(zero_points, i, TP_SCALAR_I(zero_point));
}

static tp_tensor *on_host(tp_tensor *t) {
    tp_autoref *here = tp_to_device(t, TP_CPU, TP_FLOAT32, false, false, TP_CONTIGUOUS_FORMAT);
    return here ? tp_reshape(here, TP_INTS(-1)) : NULL;
}

static int write_all(tp_tensor *t, tp_tensor *values) {
    if (t->numel != values->numel && tp_resize_(t, tp_sizes(values), TP_NO_FORMAT) < 0) return -1;
    tp_autoref *shaped = tp_reshape(values, tp_sizes(t));
    return shaped ? tp_copy_(t, shaped, false) : -1;
}

/* The scales and the zero points for what was seen: chosen on the host, one after the other. */
static int choose_all(const watch *w, int64_t low, int64_t high, bool symmetric, tp_tensor *scale,
                      tp_tensor *zero_point) {
    tp_autoref *least = on_host(w->least), *most = least ? on_host(w->most) : NULL;
    tp_autoref *scales =
        most ? tp_empty_memory_format(TP_INTS(least->numel), TP_FLOAT32, TP_STRIDED, TP_CPU, -1, TP_NO_FORMAT) : NULL;
    tp_autoref *at =
        scales ? tp_empty_memory_format(TP_INTS(least->numel), TP_INT32, TP_STRIDED, TP_CPU, -1, TP_NO_FORMAT) : NULL;
    if (!at) return -1;
    if (least->numel != most->numel)
        return tp_fail(TP_RuntimeError, "fused_moving_avg_obs_fake_quant: %lld least numbers and %lld greatest ones",
                       (long long)least->numel, (long long)most->numel);
    for (int64_t i = 0; i < least->numel; i++)
        if (choose_one(least, most, i, low, high, symmetric, scales, at) < 0) return -1;
    return write_all(scale, scales) < 0 ? -1 : write_all(zero_point, at);
}

static int is_on(tp_tensor *t, bool *on) {
    tp_scalar value;
    if (t->numel != 1) return tp_fail(TP_RuntimeError, "fused_moving_avg_obs_fake_quant: a switch is one number");
    if (tp__local_scalar_dense(t, &value) < 0) return -1;
    *on = tp_scalar_int(&value) != 0;
    return 0;
}

static tp_tensor2 unchanged(tp_tensor *self) {
    tp_autoref *same = tp_clone(self, TP_NO_FORMAT);
    tp_tensor *all = same ? tp_ones_like(self, TP_BOOL, TP_NO_LAYOUT, (tp_device){-1, -1}, -1, TP_NO_FORMAT) : NULL;
    return all ? (tp_tensor2){{tp_take(same), all}} : (tp_tensor2){{NULL, NULL}};
}

/* _fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min,
 * Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max,
 * int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask) */
tp_tensor2 _fused_moving_avg_obs_fq_helper_explicit(tp_tensor *self, tp_tensor *observer_on, tp_tensor *fake_quant_on,
                                                    tp_tensor *running_min, tp_tensor *running_max, tp_tensor *scale,
                                                    tp_tensor *zero_point, double averaging_const, int64_t quant_min,
                                                    int64_t quant_max, int64_t ch_axis, bool per_row_fake_quant,
                                                    bool symmetric_quant) {
    tp_tensor2 none = {{NULL, NULL}};
    bool observes = false, fakes = false;
    if (per_row_fake_quant && (ch_axis < 0 || ch_axis >= self->ndim)) {
        tp_fail(TP_RuntimeError, "Error in fused_moving_avg_obs_fake_quant_cpu: ch_axis must be < self.dim()");
        return none;
    }
    if (quant_min >= quant_max) {
        tp_fail(TP_RuntimeError, "fused_moving_avg_obs_fake_quant: no integers from %lld to %lld", (long long)quant_min,
                (long long)quant_max);
        return none;
    }
    watch w = {self, running_min, running_max, averaging_const, ch_axis, per_row_fake_quant};
    if (is_on(observer_on, &observes) < 0 || is_on(fake_quant_on, &fakes) < 0) return none;
    if (observes && observe(&w) < 0) return none;
    if (!fakes) return unchanged(self);
    if (choose_all(&w, quant_min, quant_max, symmetric_quant, scale, zero_point) < 0) return none;
    if (per_row_fake_quant)
        return tp_fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, ch_axis, quant_min, quant_max);
    return tp__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(self, scale, zero_point, fake_quant_on,
                                                                        quant_min, quant_max);
}
