/* quantized_linear.c: linear maps of quantized tensors by a weight that lies in panels (Note [Quantized kernels]). */
#include "native/layout/quantized.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/scalar.h"
#include "iter/iter.h"
#include "prim/plain.h"

#include <math.h>

#define OP "quantized::linear"
#define PANEL 16

static int check_weight(const tp_tensor *a, const tp_tensor *panels, int64_t features) {
    bool is_panels =
        panels->dtype == TP_INT8 && panels->ndim == 4 && panels->sizes[2] == PANEL && panels->sizes[3] == 4;
    if (!is_panels || features < 1 || panels->sizes[0] != (features + PANEL - 1) / PANEL)
        return tp_fail(TP_RuntimeError, OP ": the weight lies in no panels of %lld features", (long long)features);
    if (a->ndim != 2 || (a->dtype != TP_UINT8 && a->dtype != TP_INT8))
        return tp_fail(TP_RuntimeError, OP ": the input is a matrix of bytes");
    if (a->sizes[1] > 0 && (a->sizes[1] + 3) / 4 == panels->sizes[1]) return 0;
    return tp_fail(TP_RuntimeError, OP ": the input has %lld columns, the weight about %lld", (long long)a->sizes[1],
                   (long long)(4 * panels->sizes[1]));
}

static int check_numbers(const char *op, const tp_tensor *t, tp_dtype dtype, int64_t features, bool one,
                         const char *name) {
    if (t->dtype == dtype && t->ndim == 1 && (t->numel == features || (one && t->numel == 1))) return 0;
    return tp_fail(TP_RuntimeError, "%s: %s are %lld numbers of %s", op, name, (long long)features,
                   tp_dtype_names[dtype]);
}

int tp_check_int8_numbers(const char *op, const tp_tensor *scales, const tp_tensor *zero_points, const tp_tensor *bias,
                          int64_t features) {
    if (check_numbers(op, scales, TP_FLOAT32, features, true, "scales") < 0 ||
        check_numbers(op, zero_points, TP_INT32, scales->numel, false, "zero points") < 0)
        return -1;
    return bias ? check_numbers(op, bias, TP_FLOAT32, features, false, "the bias") : 0;
}

int tp_check_int8_range(const char *op, tp_dtype dtype, double scale, int64_t zero_point) {
    int64_t low = dtype == TP_INT8 ? INT8_MIN : 0, high = dtype == TP_INT8 ? INT8_MAX : UINT8_MAX;
    if (!isfinite((float)scale) || (float)scale == 0)
        return tp_fail(TP_RuntimeError, "%s: the scale %g is no finite number other than 0", op, scale);
    if (zero_point >= low && zero_point <= high) return 0;
    return tp_fail(TP_RuntimeError, "%s: the zero point %lld is not from %lld to %lld", op, (long long)zero_point,
                   (long long)low, (long long)high);
}

static int check_out(const tp_tensor *a, tp_dtype dtype, double scale, int64_t zero_point) {
    if (dtype == TP_FLOAT32) return 0;
    if (dtype != a->dtype) return tp_fail(TP_RuntimeError, OP ": a result of %s", tp_dtype_names[dtype]);
    return tp_check_int8_range(OP, dtype, scale, zero_point);
}

/* _product_int8(Tensor self, Tensor panels, Tensor scales, Tensor zero_points, Tensor? bias, int features, float scale,
 * int zero_point, float out_scale, int out_zero_point, bool relu, ScalarType dtype) -> Tensor */
tp_tensor *_product_int8_dense(tp_tensor *self, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points,
                               tp_tensor *bias, int64_t features, double scale, int64_t zero_point, double out_scale,
                               int64_t out_zero_point, bool relu, tp_dtype dtype) {
    if (check_weight(self, panels, features) < 0 || check_out(self, dtype, out_scale, out_zero_point) < 0 ||
        tp_check_int8_numbers(OP, scales, zero_points, bias, features) < 0)
        return NULL;
    tp_autoref *a = tp_contiguous(self, TP_CONTIGUOUS_FORMAT), *p = tp_contiguous(panels, TP_CONTIGUOUS_FORMAT);
    tp_autoref *s = tp_contiguous(scales, TP_CONTIGUOUS_FORMAT), *z = tp_contiguous(zero_points, TP_CONTIGUOUS_FORMAT);
    tp_autoref *b = bias ? tp_contiguous(bias, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *out = tp_new_empty(TP_INTS(self->sizes[0], features), dtype, self->device);
    if (!a || !p || !s || !z || !out || (bias && !b)) return NULL;
    if (out->numel && tp_prim_product_int8(a, p, s, z, b, scale, zero_point, out_scale, out_zero_point, relu, out) < 0)
        return NULL;
    return tp_take(out);
}

/* Rows of a tensor whose last dimension is the features. New. */
static tp_tensor *rows_of(tp_tensor *t) {
    if (t->ndim == 0) return tp_fail_null(TP_RuntimeError, "The dimension of input should be larger than 0");
    int64_t columns = t->sizes[t->ndim - 1];
    return tp_reshape(t, TP_INTS(columns ? t->numel / columns : 0, columns));
}

static tp_tensor *shaped(const tp_tensor *self, tp_tensor *rows, int64_t features) {
    int64_t sizes[TP_MAX_DIMS];
    if (!rows) return NULL;
    for (int d = 0; d < self->ndim; d++) sizes[d] = d + 1 < self->ndim ? self->sizes[d] : features;
    return tp_view(rows, (tp_ints){sizes, self->ndim});
}

/* _quantized_linear(Tensor self, Tensor panels, Tensor scales, Tensor zero_points, Tensor? bias, int features, float
 * scale, int zero_point, bool relu) -> Tensor */
tp_tensor *_quantized_linear_of(tp_tensor *self, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points,
                                tp_tensor *bias, int64_t features, double scale, int64_t zero_point, bool relu) {
    tp_autoquantized q = {0};
    if (tp_quantized_of(self, &q) < 0) return NULL;
    if (q.channels || (q.dtype != TP_QUINT8 && q.dtype != TP_QINT8))
        return tp_fail_null(TP_RuntimeError, OP ": the input is one of quint8 or qint8 that is quantized per tensor");
    tp_autoref *a = rows_of(q.integers);
    tp_autoref *made = a ? tp__product_int8(a, panels, scales, zero_points, bias, features, q.scale, q.zero_point,
                                            scale, zero_point, relu, (tp_dtype)a->dtype)
                         : NULL;
    tp_autoref *integers = shaped(self, made, features);
    return integers ? tp__quantized(integers, q.dtype, scale, zero_point) : NULL;
}

/* _quantized_linear_dynamic(Tensor self, Tensor panels, Tensor scales, Tensor zero_points, Tensor? bias, int features,
 * bool relu, bool reduce_range) -> Tensor: the input is quantized by the range that it has. */
tp_tensor *_quantized_linear_dynamic_explicit(tp_tensor *self, tp_tensor *panels, tp_tensor *scales,
                                              tp_tensor *zero_points, tp_tensor *bias, int64_t features, bool relu,
                                              bool reduce_range) {
    double scale = 1;
    int64_t zero_point = 0;
    if (self->dtype != TP_FLOAT32)
        return tp_fail_null(TP_RuntimeError, "quantized::linear_dynamic: expected an input of float32, got %s",
                            tp_dtype_names[self->dtype]);
    if (self->numel && tp_range_scale(self, 0, reduce_range ? UINT8_MAX / 2 : UINT8_MAX, &scale, &zero_point) < 0)
        return NULL;
    tp_autoref *rows = rows_of(self);
    tp_autoref *a = rows ? tp__quantize_affine(rows, 1 / (float)scale, zero_point, 0, UINT8_MAX, TP_UINT8) : NULL;
    tp_autoref *made =
        a ? tp__product_int8(a, panels, scales, zero_points, bias, features, scale, zero_point, 1, 0, relu, TP_FLOAT32)
          : NULL;
    return shaped(self, made, features);
}
