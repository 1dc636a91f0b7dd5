/* moments.c: variances, deviations, norms, logsumexp, and comparisons of whole tensors. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/determinism.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "native/reduction/reduce.h"
#include "prim/reduce.h"

#include <math.h>

/* ---- var, std ---- */

static double correction_of(const tp_scalar *correction) { return correction ? tp_scalar_double(correction) : 1; }

static tp_tensor *variance_empty(tp_tensor *self, tp_ints dim, bool keepdim, uint64_t *mask) {
    int64_t sizes[TP_MAX_DIMS];
    if (!tp_is_floating(self) && !tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "std and var only support floating point and complex dtypes");
    if (tp_reduce_mask(dim, self->ndim, mask) < 0) return NULL;
    int n = tp_reduce_sizes(self, *mask, keepdim, sizes);
    return tp_new_empty((tp_ints){sizes, n}, tp_to_real_dtype((tp_dtype)self->dtype), self->device);
}

static int warn_of_freedom(const char *op, const tp_tensor *self, const tp_tensor *out, const tp_scalar *correction) {
    if ((double)(self->numel / out->numel) > correction_of(correction)) return 0;
    return tp_warn("%s(): degrees of freedom is <= 0: no result is of more elements than the correction", op);
}

static tp_tensor *variance(const char *op, tp_tensor *self, tp_ints dim, const tp_scalar *correction, bool keepdim,
                           bool root) {
    uint64_t mask;
    int64_t room[TP_MAX_DIMS];
    if (correction && tp_scalar_check_fits(correction, TP_FLOAT64) < 0) return NULL;
    tp_autoref *out = variance_empty(self, dim, keepdim, &mask);
    if (!out || out->numel == 0) return tp_take(out);
    if (warn_of_freedom(op, self, out, correction) < 0) return NULL;
    if (self->numel == 0) return tp_fill__Scalar(out, TP_SCALAR_F(NAN)) == 0 ? tp_take(out) : NULL;
    tp_ints dims = tp_reduce_dims(self, mask, room);
    return tp_prim_reduce_variance(self, dims, correction_of(correction), root, out) == 0 ? tp_take(out) : NULL;
}

static tp_tensor2 variance_and_mean(const char *op, tp_tensor *self, tp_ints dim, const tp_scalar *correction,
                                    bool keepdim, bool root) {
    tp_autoref *var = variance(op, self, dim, correction, keepdim, root);
    tp_autoref *mean = var ? tp_mean_dim(self, dim, keepdim, TP_NO_DTYPE) : NULL;
    if (!mean) return (tp_tensor2){{NULL}};
    return (tp_tensor2){{tp_take(var), tp_take(mean)}};
}

/* <op>.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) */
#define VARIANCE(op, root)                                                                                           \
    tp_tensor *op##_correction_dense(tp_tensor *self, tp_ints dim, const tp_scalar *correction, bool keepdim) {      \
        return variance(#op, self, dim, correction, keepdim, root);                                                  \
    }                                                                                                                \
    tp_tensor2 op##_mean_correction_dense(tp_tensor *self, tp_ints dim, const tp_scalar *correction, bool keepdim) { \
        return variance_and_mean(#op "_mean", self, dim, correction, keepdim, root);                                 \
    }
VARIANCE(var, false)
VARIANCE(std, true)

static tp_tensor *restore(tp_tensor *t, tp_ints dim, int64_t ndim, bool keepdim) {
    return keepdim ? tp_retain(t) : tp__restore_dims(t, dim, ndim);
}

/* 2 / (count - correction) * grad * (self - mean). */
static tp_tensor *var_backward(tp_tensor *grad, tp_tensor *self, tp_ints dim, const tp_scalar *correction,
                               bool keepdim) {
    int64_t count = grad->numel ? self->numel / grad->numel : 0;
    double by = (double)count - correction_of(correction);
    tp_autoref *mean = tp_mean_dim(self, dim, true, TP_NO_DTYPE);
    tp_autoref *gap = mean ? tp_sub_Tensor(self, mean, TP_SCALAR_I(1)) : NULL;
    tp_autoref *spread = gap ? restore(grad, dim, self->ndim, keepdim) : NULL;
    tp_autoref *scaled = spread ? tp_mul_Scalar(spread, TP_SCALAR_F(by > 0 ? 2 / by : NAN)) : NULL;
    return scaled ? tp_mul_Tensor(scaled, gap) : NULL;
}

/* The gradients of var_mean; either may be absent.
 * _var_mean_backward(Tensor? grad_var, Tensor? grad_mean, Tensor self, int[1]? dim, Scalar? correction, bool keepdim)
 *   -> Tensor */
tp_tensor *_var_mean_backward_composite(tp_tensor *grad_var, tp_tensor *grad_mean, tp_tensor *self, tp_ints dim,
                                        const tp_scalar *correction, bool keepdim) {
    tp_autoref *var = grad_var ? var_backward(grad_var, self, dim, correction, keepdim) : NULL;
    if (!grad_var && !grad_mean)
        return tp_zeros_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, (tp_device){-1, -1}, -1, TP_NO_FORMAT);
    if ((grad_var && !var) || !grad_mean) return tp_take(var);
    tp_autoref *spread = restore(grad_mean, dim, self->ndim, keepdim);
    int64_t count = grad_mean->numel ? self->numel / grad_mean->numel : 1;
    tp_autoref *share = spread ? tp_div_Scalar(spread, TP_SCALAR_I(count)) : NULL;
    tp_autoref *mean = share ? tp_expand(share, tp_sizes(self), false) : NULL;
    return mean && var ? tp_add_Tensor(var, mean, TP_SCALAR_I(1)) : tp_take(mean);
}

/* A deviation of zero passes nothing on.
 * _std_mean_backward(Tensor? grad_std, Tensor? grad_mean, Tensor self, Tensor std, int[1]? dim, Scalar? correction,
 *   bool keepdim) -> Tensor */
tp_tensor *_std_mean_backward_composite(tp_tensor *grad_std, tp_tensor *grad_mean, tp_tensor *self, tp_tensor *std,
                                        tp_ints dim, const tp_scalar *correction, bool keepdim) {
    if (!grad_std) return tp__var_mean_backward(NULL, grad_mean, self, dim, correction, keepdim);
    tp_autoref *twice = tp_mul_Scalar(std, TP_SCALAR_I(2)), *ratio = twice ? tp_div_Tensor(grad_std, twice) : NULL;
    tp_autoref *none = ratio ? tp_eq_Scalar(std, TP_SCALAR_I(0)) : NULL;
    tp_autoref *grad_var = none ? tp_masked_fill_Scalar(ratio, none, TP_SCALAR_I(0)) : NULL;
    return grad_var ? tp__var_mean_backward(grad_var, grad_mean, self, dim, correction, keepdim) : NULL;
}

/* ---- norms ---- */

static tp_dtype norm_dtype(const tp_tensor *self, tp_dtype dtype) {
    if (!tp_is_floating(self) && !tp_is_complex(self)) {
        tp_fail(TP_RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
                tp_scalar_type_name((tp_dtype)self->dtype));
        return TP_NO_DTYPE;
    }
    if (dtype == TP_NO_DTYPE) return (tp_dtype)self->dtype;
    const char *name = tp_scalar_type_name(dtype);
    if (!tp_is_complex_dtype(dtype) && !tp_is_floating_dtype(dtype))
        return tp_fail(TP_RuntimeError, "linalg.vector_norm: dtype should be floating point or complex, but got %s",
                       name),
               TP_NO_DTYPE;
    if (tp_is_complex_dtype(dtype) != tp_is_complex(self))
        return tp_fail(TP_RuntimeError, "linalg.vector_norm: dtype should be %s for %s inputs, but got %s",
                       tp_is_complex(self) ? "complex" : "real", tp_is_complex(self) ? "complex" : "real", name),
               TP_NO_DTYPE;
    if (tp_promote_dtypes((tp_dtype)self->dtype, dtype) == dtype) return dtype;
    tp_fail(TP_RuntimeError,
            "linalg.vector_norm: the dtype of the input (%s) should be convertible without narrowing to the "
            "specified dtype (%s)",
            tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name(dtype));
    return TP_NO_DTYPE;
}

static tp_tensor *norm_empty(tp_tensor *self, double p, tp_ints dim, bool keepdim, tp_dtype dtype, uint64_t *mask) {
    int64_t sizes[TP_MAX_DIMS];
    tp_dtype compute = norm_dtype(self, dtype);
    if (compute == TP_NO_DTYPE || tp_reduce_mask(dim, self->ndim, mask) < 0) return NULL;
    if (self->numel == 0 && (p < 0 || p == INFINITY)) {
        if (dim.size <= 0)
            return tp_fail_null(TP_RuntimeError,
                                "linalg.vector_norm cannot compute the %g norm on an empty tensor because the "
                                "operation does not have an identity",
                                p);
        for (int d = 0; d < self->ndim; d++)
            if (*mask >> d & 1 && self->sizes[d] == 0)
                return tp_fail_null(TP_RuntimeError,
                                    "linalg.vector_norm cannot compute the %g norm on the dimension %d because "
                                    "this dimension is empty and the operation does not have an identity",
                                    p, d);
    }
    int n = tp_reduce_sizes(self, *mask, keepdim, sizes);
    return tp_new_empty((tp_ints){sizes, n}, tp_to_real_dtype(compute), self->device);
}

/* Orders other than 2, over the absolute values. */
static tp_tensor *norm_of_magnitudes(tp_tensor *a, double p, tp_ints dim, bool keepdim) {
    if (p == INFINITY) return tp_amax(a, dim.size < 0 ? TP_EMPTY_INTS : dim, keepdim);
    if (p == -INFINITY) return tp_amin(a, dim.size < 0 ? TP_EMPTY_INTS : dim, keepdim);
    if (p == 1) return tp_sum_dim_IntList(a, dim, keepdim, TP_NO_DTYPE);
    tp_autoref *powers = p == 0 ? tp_ne_Scalar(a, TP_SCALAR_I(0)) : tp_pow_Tensor_Scalar(a, TP_SCALAR_F(p));
    tp_autoref *sum = powers ? tp_sum_dim_IntList(powers, dim, keepdim, (tp_dtype)a->dtype) : NULL;
    return sum ? (p == 0 ? tp_take(sum) : tp_pow_Tensor_Scalar(sum, TP_SCALAR_F(1 / p))) : NULL;
}

/* linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)
 *   -> Tensor */
tp_tensor *linalg_vector_norm_dense(tp_tensor *self, const tp_scalar *ord, tp_ints dim, bool keepdim, tp_dtype dtype) {
    uint64_t mask;
    if (ord->kind == TP_SCALAR_COMPLEX)
        return tp_fail_null(TP_RuntimeError, "linalg.vector_norm: Expected a non-complex scalar as the order of norm.");
    double p = tp_scalar_double(ord);
    tp_autoref *out = norm_empty(self, p, dim, keepdim, dtype, &mask);
    if (!out) return NULL;
    if (p == 2) return tp_reduce_by(tp_prim_reduce_length, self, mask, out) == 0 ? tp_take(out) : NULL;
    tp_dtype compute = tp_length_dtype(self, (tp_dtype)out->dtype);
    tp_autoref *wide = tp_to_dtype(self, compute, false, false, TP_NO_FORMAT), *a = wide ? tp_abs(wide) : NULL;
    tp_autoref *result = a ? norm_of_magnitudes(a, p, dim, keepdim) : NULL;
    return result ? tp_to_dtype(result, (tp_dtype)out->dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* norm.Scalar, norm.ScalarOpt_dim, norm.ScalarOpt_dtype, norm.ScalarOpt_dim_dtype */
tp_tensor *norm_Scalar_composite(tp_tensor *self, const tp_scalar *p) {
    return tp_linalg_vector_norm(self, p, TP_NO_INTS, false, TP_NO_DTYPE);
}
tp_tensor *norm_ScalarOpt_dim_composite(tp_tensor *self, const tp_scalar *p, tp_ints dim, bool keepdim) {
    return tp_linalg_vector_norm(self, p ? p : TP_SCALAR_I(2), dim, keepdim, TP_NO_DTYPE);
}
tp_tensor *norm_ScalarOpt_dtype_composite(tp_tensor *self, const tp_scalar *p, tp_dtype dtype) {
    return tp_linalg_vector_norm(self, p ? p : TP_SCALAR_I(2), TP_NO_INTS, false, dtype);
}
tp_tensor *norm_ScalarOpt_dim_dtype_composite(tp_tensor *self, const tp_scalar *p, tp_ints dim, bool keepdim,
                                              tp_dtype dtype) {
    return tp_linalg_vector_norm(self, p ? p : TP_SCALAR_I(2), dim, keepdim, dtype);
}

/* dist(Tensor self, Tensor other, Scalar p=2) -> Tensor */
tp_tensor *dist_composite(tp_tensor *self, tp_tensor *other, const tp_scalar *p) {
    tp_autoref *gap = tp_sub_Tensor(self, other, TP_SCALAR_I(1));
    return gap ? tp_norm_Scalar(gap, p) : NULL;
}

/* grad * factor / by, zero where `by` is. */
static tp_tensor *divide_unless_zero(tp_tensor *a, tp_tensor *by) {
    tp_autoref *ratio = tp_div_Tensor(a, by), *zero = ratio ? tp_eq_Scalar(by, TP_SCALAR_I(0)) : NULL;
    return zero ? tp_masked_fill_Scalar(ratio, zero, TP_SCALAR_I(0)) : NULL;
}

/* Shared among the elements whose magnitude is the norm. */
static tp_tensor *infinity_norm_backward(tp_tensor *grad, tp_tensor *self, tp_tensor *norm, tp_ints dim) {
    tp_autoref *a = tp_abs(self), *reached = a ? tp_eq_Tensor(a, norm) : NULL;
    tp_autoref *count = reached ? tp_sum_dim_IntList(reached, dim, true, TP_NO_DTYPE) : NULL;
    tp_autoref *share = count ? tp_div_Tensor(grad, count) : NULL, *sign = share ? tp_sgn(self) : NULL;
    tp_autoref *placed = sign ? tp_mul_Tensor(sign, reached) : NULL;
    return placed ? tp_mul_Tensor(placed, share) : NULL;
}

/* _vector_norm_backward(Tensor grad, Tensor self, Scalar ord, int[1]? dim, bool keepdim, Tensor norm) -> Tensor */
tp_tensor *_vector_norm_backward_composite(tp_tensor *grad, tp_tensor *self, const tp_scalar *ord, tp_ints dim,
                                           bool keepdim, tp_tensor *norm) {
    double p = tp_scalar_double(ord);
    tp_autoref *g = restore(grad, dim, self->ndim, keepdim), *n = g ? restore(norm, dim, self->ndim, keepdim) : NULL;
    if (!n) return NULL;
    if (p == 0) return tp_zeros_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    if (isinf(p)) return infinity_norm_backward(g, self, n, dim);
    tp_autoref *scaled = p == 2 ? divide_unless_zero(self, n) : tp_sgn(self);
    if (!scaled || p == 1 || p == 2) return scaled ? tp_mul_Tensor(scaled, g) : NULL;
    /* sgn(x) * (|x| / norm) ** (p - 1) */
    tp_autoref *a = tp_abs(self), *ratio = a ? divide_unless_zero(a, n) : NULL;
    tp_autoref *power = ratio ? tp_pow_Tensor_Scalar(ratio, TP_SCALAR_F(p - 1)) : NULL;
    tp_autoref *zero = power ? tp_eq_Scalar(ratio, TP_SCALAR_I(0)) : NULL; /* an element, or with p < 0 the norm */
    tp_autoref *kept = zero ? tp_masked_fill_Scalar(power, zero, TP_SCALAR_I(0)) : NULL;
    tp_autoref *slope = kept ? tp_mul_Tensor(scaled, kept) : NULL;
    return slope ? tp_mul_Tensor(slope, g) : NULL;
}

/* ---- logsumexp ---- */

/* exp is taken of distances from the largest element, or from 0 where that is infinite.
 * logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor */
tp_tensor *logsumexp_composite(tp_tensor *self, tp_ints dim, bool keepdim) {
    bool integral = !tp_is_floating(self) && !tp_is_complex(self);
    tp_autoref *x = integral ? tp_to_dtype(self, tp_default_dtype(), false, false, TP_NO_FORMAT) : tp_retain(self);
    if (!x) return NULL;
    if (x->numel == 0) {
        tp_autoref *e = tp_exp(x), *sum = e ? tp_sum_dim_IntList(e, dim, keepdim, TP_NO_DTYPE) : NULL;
        return sum ? tp_log(sum) : NULL;
    }
    tp_autoref *size = tp_is_complex(x) ? tp_real(x) : tp_retain(x), *high = size ? tp_amax(size, dim, true) : NULL;
    tp_autoref *infinite = high ? tp_isinf(high) : NULL;
    tp_autoref *from = infinite ? tp_masked_fill_Scalar(high, infinite, TP_SCALAR_I(0)) : NULL;
    tp_autoref *gap = from ? tp_sub_Tensor(x, from, TP_SCALAR_I(1)) : NULL, *e = gap ? tp_exp(gap) : NULL;
    tp_autoref *sum = e ? tp_sum_dim_IntList(e, dim, true, TP_NO_DTYPE) : NULL, *log = sum ? tp_log(sum) : NULL;
    tp_autoref *result = log ? tp_add_Tensor(log, from, TP_SCALAR_I(1)) : NULL;
    if (!result || keepdim) return tp_take(result);
    if (dim.size <= 0) return tp_reshape(result, TP_EMPTY_INTS);
    return tp_squeeze_dims(result, dim);
}

/* ---- comparisons of whole tensors ---- */

static int all_true(tp_tensor *t, bool *result) {
    tp_autoref *all = t ? tp_all(t) : NULL;
    return all ? tp_holds(all, result) : -1;
}

/* equal(Tensor self, Tensor other) -> bool */
int equal_dense(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = false;
    if (!tp_same_sizes(self, other)) return 0;
    tp_autoref *same = tp_eq_Tensor(self, other);
    return all_true(same, result);
}

static tp_tensor *as_inexact(tp_tensor *t) {
    bool inexact = tp_is_floating(t) || tp_is_complex(t);
    return inexact ? tp_retain(t) : tp_to_dtype(t, tp_default_dtype(), false, false, TP_NO_FORMAT);
}

/* |self - other| <= atol + |rtol * other|, and finite.
 * isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor */
tp_tensor *isclose_composite(tp_tensor *self, tp_tensor *other, double rtol, double atol, bool equal_nan) {
    if (self->dtype != other->dtype)
        return tp_fail_null(TP_RuntimeError, "isclose: %s did not match %s", tp_scalar_type_name((tp_dtype)self->dtype),
                            tp_scalar_type_name((tp_dtype)other->dtype));
    if (!(rtol >= 0))
        return tp_fail_null(TP_RuntimeError, "isclose: rtol must be greater than or equal to zero, but got %g", rtol);
    if (!(atol >= 0))
        return tp_fail_null(TP_RuntimeError, "isclose: atol must be greater than or equal to zero, but got %g", atol);
    tp_autoref *close = tp_eq_Tensor(self, other);
    if (close && equal_nan && (tp_is_floating(self) || tp_is_complex(self))) {
        tp_autoref *a = tp_isnan(self), *b = tp_isnan(other), *both = a && b ? tp_logical_and(a, b) : NULL;
        tp_tensor *either = both ? tp_logical_or(close, both) : NULL;
        tp_release(close);
        close = either;
    }
    if (!close || (rtol == 0 && atol == 0)) return tp_take(close);
    tp_autoref *x = as_inexact(self), *y = as_inexact(other);
    tp_autoref *gap = x && y ? tp_sub_Tensor(x, y, TP_SCALAR_I(1)) : NULL, *size = gap ? tp_abs(gap) : NULL;
    tp_autoref *scaled = size ? tp_mul_Scalar(y, TP_SCALAR_F(rtol)) : NULL, *part = scaled ? tp_abs(scaled) : NULL;
    tp_autoref *allowed = part ? tp_add_Scalar(part, TP_SCALAR_F(atol), TP_SCALAR_I(1)) : NULL;
    tp_autoref *within = allowed ? tp_le_Tensor(size, allowed) : NULL, *finite = within ? tp_isfinite(size) : NULL;
    tp_autoref *near = finite ? tp_logical_and(within, finite) : NULL;
    return near ? tp_logical_or(close, near) : NULL;
}

/* allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool */
int allclose_composite(tp_tensor *self, tp_tensor *other, double rtol, double atol, bool equal_nan, bool *result) {
    tp_autoref *close = tp_isclose(self, other, rtol, atol, equal_nan);
    return all_true(close, result);
}

/* norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor */
tp_tensor *norm_except_dim_composite(tp_tensor *v, int64_t pow, int64_t dim) {
    int64_t dims[TP_MAX_DIMS], n = 0, kept = dim == -1 ? -1 : tp_wrap_dim(dim, v->ndim);
    if (kept < -1 || (kept < 0 && dim != -1)) return NULL;
    for (int i = 0; i < v->ndim; i++)
        if (i != kept) dims[n++] = i;
    if (n == 0) return tp_abs(v); /* an empty list would stand for all dimensions */
    return tp_linalg_vector_norm(v, TP_SCALAR_I(pow), (tp_ints){dims, n}, kept >= 0, TP_NO_DTYPE);
}
