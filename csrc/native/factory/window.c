/* window.c: windows of signals: sums of cosines, the triangle, Kaiser's. */
#include "NativeFunctions.h"

#include <math.h>

#define OPTIONS tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory
#define PASS_OPTIONS dtype, layout, device, pin_memory

/* What a window is at x; x runs from 0 to `last`. new. */
typedef tp_tensor *curve(tp_tensor *x, double last, const double *parameters);

/* A periodic window is the symmetric one of a point more, without its last. */
static tp_tensor *window(const char *op, int64_t length, bool periodic, curve *f, const double *parameters, OPTIONS) {
    if (dtype == TP_NO_DTYPE) dtype = tp_default_dtype();
    if (!tp_is_floating_dtype(dtype) && !tp_is_complex_dtype(dtype))
        return tp_fail_null(TP_RuntimeError, "%s expects floating point dtypes, got: %s", op, tp_dtype_names[dtype]);
    if (length < 0)
        return tp_fail_null(TP_RuntimeError, "%s requires non-negative window_length, got window_length=%lld", op,
                            (long long)length);
    if (length <= 1) return tp_ones(TP_INTS(length), PASS_OPTIONS);
    tp_dtype wide = tp_is_reduced_dtype(dtype) ? TP_FLOAT32 : tp_to_real_dtype(dtype);
    tp_autoref *x = tp_arange(TP_SCALAR_I(length), wide, layout, device, pin_memory),
               *y = x ? f(x, (double)(periodic ? length : length - 1), parameters) : NULL;
    return y ? tp_to_dtype(y, dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* ---- the curves ---- */

/* p[0] - p[1] cos(t) + p[2] cos(2t), t from 0 to 2 pi */
static tp_tensor *cosines(tp_tensor *x, double last, const double *p) {
    tp_autoref *t = tp_mul_Scalar(x, TP_SCALAR_F(2 * M_PI / last)), *first = t ? tp_cos(t) : NULL,
               *scaled = first ? tp_mul_Scalar(first, TP_SCALAR_F(-p[1])) : NULL,
               *sum = scaled ? tp_add_Scalar(scaled, TP_SCALAR_F(p[0]), TP_SCALAR_I(1)) : NULL;
    if (!sum || p[2] == 0) return tp_take(sum);
    tp_autoref *twice = tp_mul_Scalar(t, TP_SCALAR_I(2)), *second = twice ? tp_cos(twice) : NULL;
    return second ? tp_add_Tensor(sum, second, TP_SCALAR_F(p[2])) : NULL;
}
/* 1 - |2x/last - 1| */
static tp_tensor *triangle(tp_tensor *x, double last, const double *p TP_UNUSED) {
    tp_autoref *t = tp_mul_Scalar(x, TP_SCALAR_F(2 / last)),
               *centred = t ? tp_sub_Scalar(t, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL,
               *away = centred ? tp_abs(centred) : NULL;
    return away ? tp_rsub_Scalar(away, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL;
}
/* I0(z) / I0(beta), z = beta sqrt(1 - (2x/last - 1)^2), both scaled by exp(-beta), which keeps them finite */
static tp_tensor *kaiser(tp_tensor *x, double last, const double *p) {
    double beta = fabs(p[0]);
    tp_autoref *t = tp_mul_Scalar(x, TP_SCALAR_F(2 / last)),
               *centred = t ? tp_sub_Scalar(t, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL,
               *square = centred ? tp_square(centred) : NULL,
               *under = square ? tp_rsub_Scalar(square, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL,
               *root = under ? tp_sqrt(under) : NULL, *z = root ? tp_mul_Scalar(root, TP_SCALAR_F(beta)) : NULL,
               *bessel = z ? tp_special_i0e(z) : NULL;
    tp_autoref *below = bessel ? tp_sub_Scalar(z, TP_SCALAR_F(beta), TP_SCALAR_I(1)) : NULL,
               *scale = below ? tp_exp(below) : NULL, *value = scale ? tp_mul_Tensor(bessel, scale) : NULL;
    tp_autoref *top =
        value ? tp_full((tp_ints){NULL, 0}, TP_SCALAR_F(beta), (tp_dtype)x->dtype, TP_STRIDED, x->device, -1) : NULL;
    tp_autoref *whole = top ? tp_special_i0e(top) : NULL;
    return whole ? tp_div_Tensor(value, whole) : NULL;
}

/* ---- the operators ---- */

/* NAME_window(int window_length, *, ...) -> Tensor, and NAME_window.periodic; without a word they are periodic. */
#define WINDOW(name, f, ...)                                                                        \
    tp_tensor *name##_window_periodic_composite(int64_t length, bool periodic, OPTIONS) {           \
        return window(#name "_window", length, periodic, f, (double[]){__VA_ARGS__}, PASS_OPTIONS); \
    }                                                                                               \
    tp_tensor *name##_window_composite(int64_t length, OPTIONS) {                                   \
        return name##_window_periodic_composite(length, true, PASS_OPTIONS);                        \
    }
WINDOW(hann, cosines, 0.5, 0.5, 0)
WINDOW(hamming, cosines, 0.54, 0.46, 0)
WINDOW(blackman, cosines, 0.42, 0.5, 0.08)
WINDOW(bartlett, triangle, 0)
WINDOW(kaiser, kaiser, 12)

tp_tensor *hamming_window_periodic_alpha_composite(int64_t length, bool periodic, double alpha, OPTIONS) {
    return window("hamming_window", length, periodic, cosines, (double[]){alpha, 0.46, 0}, PASS_OPTIONS);
}
tp_tensor *hamming_window_periodic_alpha_beta_composite(int64_t length, bool periodic, double alpha, double beta,
                                                        OPTIONS) {
    return window("hamming_window", length, periodic, cosines, (double[]){alpha, beta, 0}, PASS_OPTIONS);
}
tp_tensor *kaiser_window_beta_composite(int64_t length, bool periodic, double beta, OPTIONS) {
    return window("kaiser_window", length, periodic, kaiser, &beta, PASS_OPTIONS);
}
