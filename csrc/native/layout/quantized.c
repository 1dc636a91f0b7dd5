/* quantized.c: quantized tensors: made of integers, of numbers, and read (Note [Quantized kernels]). */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "iter/iter.h"

#include <math.h>
#include <string.h>

/* ---- integers ---- */

/* What the integers of a dtype are, and which are in range. */
typedef struct {
    tp_dtype integers;
    int64_t low, high;
} range;

static range range_of(tp_dtype dtype) {
    if (dtype == TP_QINT8) return (range){TP_INT8, INT8_MIN, INT8_MAX};
    if (dtype == TP_QINT32) return (range){TP_INT32, INT32_MIN, INT32_MAX};
    return (range){TP_UINT8, 0, dtype == TP_QUINT2X4 ? 3 : dtype == TP_QUINT4X2 ? 15 : UINT8_MAX};
}

static int check_dtype(tp_dtype dtype) {
    if (dtype >= 0 && tp_is_quantized_dtype(dtype)) return 0;
    return tp_fail(TP_RuntimeError, "Creation of quantized tensor requires quantized dtype like torch.quint8, got %s",
                   dtype < 0 ? "none" : tp_dtype_names[dtype]);
}

static int check_integers(const tp_tensor *integers, tp_dtype dtype) {
    if (check_dtype(dtype) < 0) return -1;
    tp_dtype wanted = range_of(dtype).integers;
    if (integers->dtype == wanted && tp_layout_of(integers) == TP_STRIDED) return 0;
    return tp_fail(TP_RuntimeError, "integers of a tensor of %s are a dense tensor of %s, not one of %s",
                   tp_dtype_names[dtype], tp_dtype_names[wanted], tp_dtype_names[integers->dtype]);
}

static int check_zero_point(const char *op, int64_t zero_point, range r) {
    if (zero_point < r.low)
        return tp_fail(TP_RuntimeError, "%s zero_point %lld is below lower bound.", op, (long long)zero_point);
    if (zero_point > r.high)
        return tp_fail(TP_RuntimeError, "%s zero_point %lld is above upper bound.", op, (long long)zero_point);
    return 0;
}

static int check_scale(const char *op, double scale) {
    if (isfinite((float)scale) && (float)scale != 0) return 0;
    return tp_fail(TP_RuntimeError, "%s scale %g is no finite number other than 0.", op, scale);
}

/* ---- making of integers ---- */

static int64_t bits_of(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* _quantized(Tensor integers, ScalarType dtype, float scale, int zero_point) -> Tensor */
tp_tensor *_quantized_composite(tp_tensor *integers, tp_dtype dtype, double scale, int64_t zero_point) {
    if (check_integers(integers, dtype) < 0 || check_scale("_quantized", scale) < 0 ||
        check_zero_point("_quantized", zero_point, range_of(dtype)) < 0)
        return NULL;
    int64_t facts[TP_MAX_FACTS] = {
        [TP_FACT_DTYPE] = dtype, [TP_FACT_SCALE] = bits_of(scale), [TP_FACT_ZERO_POINT] = zero_point};
    return tp_of_parts(TP_QUANTIZED, &integers, facts, tp_sizes(integers));
}

static int check_axis(const tp_tensor *t, const tp_tensor *scales, int64_t axis) {
    if (axis < 0 || axis >= t->ndim)
        return tp_fail(TP_RuntimeError,
                       "Channel axis out of range in per channel affine quantization. Got: %lld Expected: [0, %d)",
                       (long long)axis, t->ndim);
    if (t->sizes[axis] != scales->numel)
        return tp_fail(TP_RuntimeError, "length of scales must equal to channel, expected %lld got, %lld",
                       (long long)t->sizes[axis], (long long)scales->numel);
    return 0;
}

/* _quantized_channels(Tensor integers, ScalarType dtype, Tensor scales, Tensor zero_points, int axis) -> Tensor: the
 * values of scales and zero points were checked. */
tp_tensor *_quantized_channels_composite(tp_tensor *integers, tp_dtype dtype, tp_tensor *scales, tp_tensor *zero_points,
                                         int64_t axis) {
    bool numbers = scales->dtype == TP_FLOAT32 && zero_points->dtype == TP_FLOAT32;
    if (!numbers && (scales->dtype != TP_FLOAT64 || zero_points->dtype != TP_INT64))
        return tp_fail_null(TP_RuntimeError, "_quantized_channels: scales in float64 and zero points in int64, or both "
                                             "in float32");
    if (check_integers(integers, dtype) < 0 || check_axis(integers, scales, axis) < 0) return NULL;
    if (scales->ndim != 1 || !tp_same_sizes(scales, zero_points))
        return tp_fail_null(TP_RuntimeError, "_quantized_channels: one scale and one zero point for each channel");
    int64_t facts[TP_MAX_FACTS] = {[TP_FACT_DTYPE] = dtype, [TP_FACT_AXIS] = axis};
    return tp_of_parts(TP_QUANTIZED_CHANNELS, (tp_tensor *[]){integers, scales, zero_points}, facts,
                       tp_sizes(integers));
}

/* ---- taking apart ---- */

int tp_quantized_of(tp_tensor *t, tp_quantized *q) {
    *q = (tp_quantized){0};
    if (!tp_is_quantized(t))
        return tp_fail(TP_NotImplementedError, "expected a quantized tensor, but got one of %s",
                       tp_dtype_names[t->dtype]);
    tp_autoparts *parts = tp_parts_of(t);
    if (!parts) return -1;
    q->dtype = (tp_dtype)parts->fact[TP_FACT_DTYPE];
    q->channels = parts->layout == TP_QUANTIZED_CHANNELS;
    q->integers = tp_retain(parts->part[0]);
    if (q->channels) {
        q->axis = parts->fact[TP_FACT_AXIS];
        q->scales = tp_retain(parts->part[1]);
        q->zero_points = tp_retain(parts->part[2]);
    } else {
        memcpy(&q->scale, &parts->fact[TP_FACT_SCALE], sizeof q->scale);
        q->zero_point = parts->fact[TP_FACT_ZERO_POINT];
    }
    return 0;
}

void tp_quantized_release(tp_quantized *q) {
    tp_release(q->integers);
    tp_release(q->scales);
    tp_release(q->zero_points);
}

static tp_tensor *read_alike(const tp_quantized *q, tp_tensor *integers) {
    return q->channels ? tp__quantized_channels(integers, q->dtype, q->scales, q->zero_points, q->axis)
                       : tp__quantized(integers, q->dtype, q->scale, q->zero_point);
}

/* _quantized_like(Tensor self, Tensor integers) -> Tensor: other integers, which need not lie as self's do. */
tp_tensor *quantized_like_of(tp_tensor *self, tp_tensor *integers) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    if (q.channels)
        return tp_fail_null(TP_RuntimeError, "Setting strides is possible only on uniformly quantized tensor");
    return read_alike(&q, integers);
}

/* _quantized_same(Tensor self, Tensor integers) -> Tensor: other integers in the same dimensions. */
tp_tensor *quantized_same_of(tp_tensor *self, tp_tensor *integers) {
    tp_autoquantized q = {0};
    return tp_quantized_of(self, &q) < 0 ? NULL : read_alike(&q, integers);
}

static int only(const tp_quantized *q, bool channels, const char *what) {
    if (q->channels == channels) return 0;
    return tp_fail(TP_RuntimeError, "%s is of a tensor that is quantized per %s, this one is per %s", what,
                   channels ? "channel" : "tensor", channels ? "tensor" : "channel");
}

/* q_scale(Tensor self) -> float */
int q_scale_of(tp_tensor *self, double *result) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0 || only(&q, false, "q_scale") < 0) return -1;
    *result = q.scale;
    return 0;
}

/* q_zero_point(Tensor self) -> int */
int q_zero_point_of(tp_tensor *self, int64_t *result) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0 || only(&q, false, "q_zero_point") < 0) return -1;
    *result = q.zero_point;
    return 0;
}

/* q_per_channel_scales(Tensor self) -> Tensor */
tp_tensor *q_per_channel_scales_of(tp_tensor *self) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0 || only(&q, true, "q_per_channel_scales") < 0) return NULL;
    return tp_clone(q.scales, TP_NO_FORMAT);
}

/* q_per_channel_zero_points(Tensor self) -> Tensor */
tp_tensor *q_per_channel_zero_points_of(tp_tensor *self) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0 || only(&q, true, "q_per_channel_zero_points") < 0) return NULL;
    return tp_clone(q.zero_points, TP_NO_FORMAT);
}

/* q_per_channel_axis(Tensor self) -> int */
int q_per_channel_axis_of(tp_tensor *self, int64_t *result) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0 || only(&q, true, "q_per_channel_axis") < 0) return -1;
    *result = q.axis;
    return 0;
}

/* _qscheme(Tensor self) -> int: 0 for all alike, 1 by channels, 2 by channels with float zero points. */
int _qscheme_of(tp_tensor *self, int64_t *result) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return -1;
    *result = !q.channels ? 0 : q.zero_points->dtype == TP_FLOAT32 ? 2 : 1;
    return 0;
}

/* int_repr(Tensor self) -> Tensor: the integers in memory of their own; of quint4x2 two in a byte, of quint2x4 four. */
tp_tensor *int_repr_of(tp_tensor *self) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    int64_t in_a_byte = q.dtype == TP_QUINT4X2 ? 2 : q.dtype == TP_QUINT2X4 ? 4 : 1;
    return in_a_byte > 1 ? tp__packed_integers(q.integers, in_a_byte) : tp_clone(q.integers, TP_NO_FORMAT);
}

/* ---- numbers into integers, and back ---- */

/* dequantize.self(Tensor self) -> Tensor: a quantized one in float32. */
tp_tensor *dequantize_of(tp_tensor *self) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    if (!q.channels) return tp__dequantize_affine(q.integers, q.scale, q.zero_point);
    return tp__dequantize_channels(q.integers, q.scales, q.zero_points, q.axis);
}

/* The elements of another tensor, in float32. */
tp_tensor *dequantize_self_explicit(tp_tensor *self) {
    return tp_to_dtype(self, TP_FLOAT32, false, false, TP_NO_FORMAT);
}

/* _along(Tensor self, int axis, int ndim) -> Tensor: a number for each place along one of the dimensions. */
tp_tensor *_along_composite(tp_tensor *self, int64_t axis, int64_t ndim) {
    int64_t sizes[TP_MAX_DIMS];
    if (ndim < 0 || ndim > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "_along: %lld dimensions", (long long)ndim);
    for (int64_t d = 0; d < ndim; d++) sizes[d] = d == axis ? self->numel : 1;
    return tp_reshape(self, (tp_ints){sizes, ndim});
}

/* _check_channels(Tensor scales, Tensor zero_points, int low, int high) -> () */
int _check_channels_composite(tp_tensor *scales, tp_tensor *zero_points, int64_t low, int64_t high) {
    const char *op = "quantize_tensor_per_channel_affine";
    tp_autoref *by = tp_to_device(scales, TP_CPU, TP_FLOAT64, false, false, TP_CONTIGUOUS_FORMAT);
    tp_autoref *at = tp_to_device(zero_points, TP_CPU, TP_INT64, false, false, TP_CONTIGUOUS_FORMAT);
    if (!by || !at) return -1;
    for (int64_t i = 0; i < by->numel; i++) {
        tp_autoref *scale = tp_select_int(by, 0, i), *zero_point = tp_select_int(at, 0, i);
        tp_scalar x, z;
        if (!scale || !zero_point || tp__local_scalar_dense(scale, &x) < 0 ||
            tp__local_scalar_dense(zero_point, &z) < 0)
            return -1;
        if (check_scale(op, x.f) < 0) return -1;
        if (!tp_is_floating(zero_points) && check_zero_point(op, z.i, (range){TP_UINT8, low, high}) < 0) return -1;
    }
    return 0;
}

static int check_source(const tp_tensor *self, tp_dtype dtype) {
    if (dtype < 0 || !tp_is_quantized_dtype(dtype))
        return tp_fail(TP_RuntimeError, "ScalarType %s is not supported in new_qtensor.",
                       dtype < 0 ? "None" : tp_scalar_type_name(dtype));
    if (self->dtype == TP_FLOAT32) return 0;
    return tp_fail(TP_RuntimeError, "Quantize only works on Float Tensor, got %s",
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

/* quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor */
tp_tensor *quantize_per_tensor_explicit(tp_tensor *self, double scale, int64_t zero_point, tp_dtype dtype) {
    const char *op = "quantize_tensor_per_tensor_affine";
    if (check_source(self, dtype) < 0 || check_scale(op, scale) < 0) return NULL;
    range r = range_of(dtype);
    if (check_zero_point(op, zero_point, r) < 0) return NULL;
    tp_autoref *integers = tp__quantize_affine(self, 1 / (float)scale, zero_point, r.low, r.high, r.integers);
    return integers ? tp__quantized(integers, dtype, scale, zero_point) : NULL;
}

static int number_of(tp_tensor *t, const char *what, tp_scalar *out) {
    if (t->numel != 1)
        return tp_fail(TP_RuntimeError, "quantize_per_tensor: %s is one number, not %lld", what, (long long)t->numel);
    return tp__local_scalar_dense(t, out);
}

/* quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor */
tp_tensor *quantize_per_tensor_tensor_qparams_explicit(tp_tensor *self, tp_tensor *scale, tp_tensor *zero_point,
                                                       tp_dtype dtype) {
    tp_scalar by, at;
    if (number_of(scale, "the scale", &by) < 0 || number_of(zero_point, "the zero point", &at) < 0) return NULL;
    return tp_quantize_per_tensor(self, tp_scalar_double(&by), tp_scalar_int(&at), dtype);
}

/* quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[] */
tp_tensor_seq *quantize_per_tensor_tensors_explicit(tp_tensors tensors, tp_tensor *scales, tp_tensor *zero_points,
                                                    tp_dtype dtype) {
    if (scales->numel != tensors.size || zero_points->numel != tensors.size) {
        tp_fail(TP_RuntimeError, "quantize_per_tensor: one scale and one zero point for each of %lld tensors",
                (long long)tensors.size);
        return NULL;
    }
    tp_autoref *by = tp_reshape(scales, TP_INTS(-1)), *at = tp_reshape(zero_points, TP_INTS(-1));
    tp_autoseq *made = by && at ? tp_tensor_seq_new(tensors.size) : NULL;
    for (int64_t i = 0; made && i < tensors.size; i++) {
        tp_autoref *scale = tp_select_int(by, 0, i), *zero_point = tp_select_int(at, 0, i);
        if (scale && zero_point)
            made->items[i] = tp_quantize_per_tensor_tensor_qparams(tensors.data[i], scale, zero_point, dtype);
        if (!made->items[i]) return NULL;
    }
    tp_tensor_seq *result = made;
    made = NULL;
    return result;
}

/* dequantize.tensors(Tensor[] tensors) -> Tensor[] */
tp_tensor_seq *dequantize_tensors_composite(tp_tensors tensors) {
    tp_autoseq *made = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; made && i < tensors.size; i++)
        if (!(made->items[i] = tp_dequantize_self(tensors.data[i]))) return NULL;
    tp_tensor_seq *result = made;
    made = NULL;
    return result;
}

/* Scales and zero points as they are kept: float32 both, or float64 and int64; checked. New, in p. */
static int channels_of(const tp_tensor *self, tp_tensor *scales, tp_tensor *zero_points, int64_t axis, range r,
                       tp_tensor **by, tp_tensor **at) {
    if (!tp_is_floating(scales)) return tp_fail(TP_RuntimeError, "scale tensor must be floating point");
    if (scales->ndim != 1) return tp_fail(TP_RuntimeError, "scale tensor must have dimension 1");
    if (zero_points->ndim != 1) return tp_fail(TP_RuntimeError, "zero_points tensor must have dimension 1");
    if (scales->numel != zero_points->numel)
        return tp_fail(TP_RuntimeError, "number of elements in scales and zero_points must match");
    if (check_axis(self, scales, axis) < 0) return -1;
    bool numbers = tp_is_floating(zero_points);
    *by = tp_to_dtype(scales, numbers ? TP_FLOAT32 : TP_FLOAT64, false, true, TP_CONTIGUOUS_FORMAT);
    *at = tp_to_dtype(zero_points, numbers ? TP_FLOAT32 : TP_INT64, false, true, TP_CONTIGUOUS_FORMAT);
    if (!*by || !*at) return -1;
    return tp__check_channels(*by, *at, r.low, r.high);
}

/* quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor */
tp_tensor *quantize_per_channel_explicit(tp_tensor *self, tp_tensor *scales, tp_tensor *zero_points, int64_t axis,
                                         tp_dtype dtype) {
    tp_autoref *by = NULL, *at = NULL;
    if (check_source(self, dtype) < 0) return NULL;
    range r = range_of(dtype);
    if (channels_of(self, scales, zero_points, axis, r, &by, &at) < 0) return NULL;
    if ((dtype == TP_QUINT4X2 || dtype == TP_QUINT2X4) && at->dtype == TP_INT64)
        return tp_fail_null(TP_NotImplementedError,
                            "quantize_per_channel to %s: zero points in whole numbers; those "
                            "of this dtype are floating point",
                            tp_dtype_names[dtype]);
    tp_autoref *integers = tp__quantize_channels(self, by, at, axis, r.low, r.high, r.integers);
    return integers ? tp__quantized_channels(integers, dtype, by, at, axis) : NULL;
}

static tp_dtype quantized_of_integers(const tp_tensor *t) {
    switch (t->dtype) {
    case TP_UINT8: return TP_QUINT8;
    case TP_INT8: return TP_QINT8;
    case TP_INT32: return TP_QINT32;
    default: return TP_NO_DTYPE;
    }
}

/* _make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor */
tp_tensor *_make_per_tensor_quantized_tensor_explicit(tp_tensor *self, double scale, int64_t zero_point) {
    tp_dtype dtype = quantized_of_integers(self);
    tp_autoref *own = check_dtype(dtype) < 0 ? NULL : tp_clone(self, TP_NO_FORMAT);
    return own ? tp__quantized(own, dtype, scale, zero_point) : NULL;
}

/* _make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor */
tp_tensor *_make_per_channel_quantized_tensor_explicit(tp_tensor *self, tp_tensor *scale, tp_tensor *zero_point,
                                                       int64_t axis) {
    tp_dtype dtype = quantized_of_integers(self);
    tp_autoref *by = NULL, *at = NULL;
    if (check_dtype(dtype) < 0 || channels_of(self, scale, zero_point, axis, range_of(dtype), &by, &at) < 0)
        return NULL;
    tp_autoref *own = tp_clone(self, TP_NO_FORMAT);
    return own ? tp__quantized_channels(own, dtype, by, at, axis) : NULL;
}

/* _empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, ..., float scale=1, int zero_point=0, ...) */
tp_tensor *_empty_affine_quantized_explicit(tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device,
                                            tp_opt_bool pin_memory, double scale, int64_t zero_point,
                                            tp_memory_format memory_format) {
    if (check_dtype(dtype) < 0) return NULL;
    tp_autoref *integers =
        tp_empty_memory_format(size, range_of(dtype).integers, layout, device, pin_memory, memory_format);
    return integers ? tp__quantized(integers, dtype, scale, zero_point) : NULL;
}

/* empty_quantized(int[] size, Tensor qtensor, *, ScalarType? dtype=None, ...): to be read as qtensor is. */
tp_tensor *empty_quantized_of(tp_ints size, tp_tensor *qtensor, tp_dtype dtype, tp_layout layout, tp_device device,
                              tp_opt_bool pin_memory, tp_memory_format memory_format) {
    double scale;
    int64_t zero_point;
    if (q_scale_of(qtensor, &scale) < 0 || q_zero_point_of(qtensor, &zero_point) < 0) return NULL;
    if (dtype == TP_NO_DTYPE) dtype = (tp_dtype)qtensor->dtype;
    return tp__empty_affine_quantized(size, dtype, layout, device, pin_memory, scale, zero_point, memory_format);
}

/* _empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, ...) */
tp_tensor *_empty_per_channel_affine_quantized_explicit(tp_ints size, tp_tensor *scales, tp_tensor *zero_points,
                                                        int64_t axis, tp_dtype dtype, tp_layout layout,
                                                        tp_device device, tp_opt_bool pin_memory,
                                                        tp_memory_format memory_format) {
    if (check_dtype(dtype) < 0) return NULL;
    range r = range_of(dtype);
    tp_autoref *integers = tp_empty_memory_format(size, r.integers, layout, device, pin_memory, memory_format);
    tp_autoref *by = NULL, *at = NULL;
    if (!integers || channels_of(integers, scales, zero_points, axis, r, &by, &at) < 0) return NULL;
    return tp__quantized_channels(integers, dtype, by, at, axis);
}

/* ---- a scale for a range of numbers ---- */

/* The least scale, below which products of integers lose what they say. */
#define LEAST_SCALE 6.1e-5f

/* The ends of a range whose zero lies in the middle of the integers, where it has numbers of both signs. */
static bool centre(float *least, float *most, int64_t low, int64_t high) {
    if (*least >= 0 || *most <= 0) return false;
    float up = (float)((high - low) / 2), down = -up - 1;
    float step = fmaxf(fabsf(*least / down), fabsf(*most / up));
    *least = step * down, *most = step * up;
    return true;
}

void tp_choose_scale(float least, float most, int64_t low, int64_t high, tp_choice choice, double *scale,
                     int64_t *zero_point) {
    least = fminf(least, 0), most = fmaxf(most, 0);
    bool centred = choice.symmetric && centre(&least, &most, low, high);
    *scale = ((double)most - least) / (double)(high - low);
    if ((float)*scale == 0 || isinf(1 / (float)*scale)) *scale = 0.1;
    if (*scale < LEAST_SCALE) {
        float was = (float)*scale, by = LEAST_SCALE / was;
        *scale = LEAST_SCALE;
        if (least == 0) most = LEAST_SCALE * (float)(high - low);
        else if (most == 0) least = -LEAST_SCALE * (float)(high - low);
        else least *= by, most *= by;
    }
    if (choice.narrow) *scale = (float)*scale;
    double from_least = (double)low - least / *scale, from_most = (double)high - most / *scale;
    double error_least = fabs((double)low) - fabs(least / *scale),
           error_most = fabs((double)high) - fabs(most / *scale);
    double chosen = error_least < error_most ? from_least : from_most;
    if (centred) chosen = (double)(low + high) / 2;
    *zero_point = chosen<(double)low ? low : chosen>(double) high ? high : (int64_t)nearbyint(chosen);
}

int tp_range_scale(tp_tensor *self, int64_t low, int64_t high, double *scale, int64_t *zero_point) {
    tp_tensor2 ends = tp_aminmax(self, TP_NO_INT, false);
    tp_autoref *least = ends.v[0], *most = ends.v[1];
    tp_scalar from, to;
    if (!most || tp__local_scalar_dense(least, &from) < 0 || tp__local_scalar_dense(most, &to) < 0) return -1;
    if (!isfinite(from.f) || !isfinite(to.f))
        return tp_fail(TP_RuntimeError, "quantize_per_tensor_dynamic: numbers from %g to %g have no scale", from.f,
                       to.f);
    tp_choose_scale((float)from.f, (float)to.f, low, high, (tp_choice){0}, scale, zero_point);
    return 0;
}

/* quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor */
tp_tensor *quantize_per_tensor_dynamic_explicit(tp_tensor *self, tp_dtype dtype, bool reduce_range) {
    if (dtype == TP_FLOAT16) return tp_to_dtype(self, dtype, false, false, TP_NO_FORMAT);
    if (dtype != TP_QUINT8 && dtype != TP_QINT8)
        return tp_fail_null(TP_RuntimeError, "dtype %s not supported", dtype < 0 ? "None" : tp_scalar_type_name(dtype));
    if (check_source(self, dtype) < 0) return NULL;
    range r = range_of(dtype);
    int shrink = reduce_range ? 2 : 1;
    double scale;
    int64_t zero_point;
    if (tp_range_scale(self, r.low / shrink, r.high / shrink, &scale, &zero_point) < 0) return NULL;
    return tp_quantize_per_tensor(self, scale, zero_point, dtype);
}
