/* extreme.c: largest and smallest elements and their places: shapes, dtypes, checks.
 *
 * No number stands for the largest of nothing, so a reduced dimension without elements is an error. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "native/reduction/reduce.h"
#include "iter/iter.h"
#include "prim/plain.h"

#include <string.h>

/* ---- checks ---- */

/* The dims that are reduced must have elements, unless nothing is asked for. `cls` is that of the error where all are
 * reduced: PyTorch's differ. */
static int check_not_empty(tp_error_class cls, const char *op, const tp_tensor *self, uint64_t mask, bool whole) {
    if (self->numel) return 0;
    if (whole)
        return tp_fail(
            cls,
            "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify it with the 'dim' argument.",
            op);
    for (int d = 0; d < self->ndim; d++)
        if (mask >> d & 1 && self->sizes[d] == 0)
            return tp_fail(TP_IndexError, "%s(): Expected reduction dim %d to have non-zero size.", op, d);
    return 0;
}

static int check_ordered(tp_error_class cls, const char *op, const tp_tensor *self) {
    if (!tp_is_complex(self)) return 0;
    if (cls == TP_NotImplementedError)
        return tp_fail(cls, "\"%s_all\" not implemented for '%s': complex numbers have no order", op,
                       tp_scalar_type_name(self->dtype));
    return tp_fail(cls, "%s(): does not support complex input (%s): complex numbers have no order", op,
                   tp_dtype_names[self->dtype]);
}

static int declare(tp_meta *m, int i, const tp_tensor *self, uint64_t mask, bool keepdim, tp_dtype dtype) {
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_reduce_sizes(self, mask, keepdim, sizes);
    return tp_meta_output(m, i, (tp_ints){sizes, n}, TP_NO_INTS, dtype, self->device);
}

/* One dimension as a mask; all of them if absent. */
static int mask_of(const tp_tensor *self, tp_opt_int dim, uint64_t *mask) {
    return tp_reduce_mask(dim.has ? TP_INTS(dim.value) : TP_EMPTY_INTS, self->ndim, mask);
}

typedef int (*extreme_prim)(tp_tensor *x, tp_ints dim, tp_tensor *out, tp_tensor *at);

/* out, at: what is wanted; the other is NULL. */
static int find(extreme_prim prim, tp_tensor *self, uint64_t mask, tp_tensor *out, tp_tensor *at) {
    int64_t room[TP_MAX_DIMS];
    if ((out ? out : at)->numel == 0) return 0;
    return prim(self, tp_reduce_dims(self, mask, room), out, at);
}

/* ---- amax, amin ---- */

static int amax_like_meta(tp_meta *m, const char *op, tp_tensor *self, tp_ints dim, bool keepdim) {
    uint64_t mask = 0;
    for (int64_t i = 0; i < dim.size; i++) { /* an empty dimension is complained of before one that is named twice */
        int64_t d = tp_wrap_dim(dim.data[i], self->ndim);
        if (d < 0) return -1;
        mask |= UINT64_C(1) << d;
    }
    if (check_not_empty(TP_RuntimeError, op, self, mask, dim.size <= 0) < 0) return -1;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    if (self->numel && check_ordered(TP_NotImplementedError, op, self) < 0) return -1;
    const tp_tensor *given = m->variant == TP_VARIANT_OUT ? m->given[0] : NULL;
    if (given && given->dtype != self->dtype)
        return tp_fail(TP_RuntimeError,
                       "%s: Expected the dtype for input and out to match, but got %s for input's dtype and %s for "
                       "out's dtype.",
                       op, tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)given->dtype));
    return declare(m, 0, self, mask, keepdim, (tp_dtype)self->dtype);
}

static int amax_like(extreme_prim prim, tp_tensor *self, tp_ints dim, tp_tensor *out) {
    uint64_t mask;
    if (tp_reduce_mask(dim, self->ndim, &mask) < 0) return -1;
    return find(prim, self, mask, out, NULL);
}

/* amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor */
int amax_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim) {
    return amax_like_meta(m, "amax", self, dim, keepdim);
}
int amax_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_tensor *out) {
    return amax_like(tp_prim_reduce_max, self, dim, out);
}

/* amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor */
int amin_meta(tp_meta *m, tp_tensor *self, tp_ints dim, bool keepdim) {
    return amax_like_meta(m, "amin", self, dim, keepdim);
}
int amin_dense(tp_tensor *self, tp_ints dim, bool keepdim TP_UNUSED, tp_tensor *out) {
    return amax_like(tp_prim_reduce_min, self, dim, out);
}

/* ---- max, min of all elements ---- */

static tp_tensor *whole(const char *op, extreme_prim prim, tp_tensor *self) {
    if (check_not_empty(TP_RuntimeError, op, self, 0, true) < 0 || check_ordered(TP_NotImplementedError, op, self) < 0)
        return NULL;
    tp_autoref *out = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    return out && find(prim, self, TP_ALL_DIMS, out, NULL) == 0 ? tp_take(out) : NULL;
}

/* max(Tensor self) -> Tensor */
tp_tensor *max_dense(tp_tensor *self) { return whole("max", tp_prim_reduce_max, self); }

/* min(Tensor self) -> Tensor */
tp_tensor *min_dense(tp_tensor *self) { return whole("min", tp_prim_reduce_min, self); }

/* ---- aminmax ---- */

/* aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max) */
int aminmax_meta(tp_meta *m, tp_tensor *self, tp_opt_int dim, bool keepdim) {
    uint64_t mask;
    if (mask_of(self, dim, &mask) < 0 || check_ordered(TP_NotImplementedError, "aminmax", self) < 0) return -1;
    if (!dim.has && self->numel == 0)
        return tp_fail(TP_RuntimeError,
                       "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                       "no identity.");
    if (check_not_empty(TP_RuntimeError, "aminmax", self, mask, false) < 0) return -1;
    for (int i = 0; i < 2; i++)
        if (declare(m, i, self, mask, keepdim, (tp_dtype)self->dtype) < 0) return -1;
    return 0;
}
int aminmax_dense(tp_tensor *self, tp_opt_int dim, bool keepdim TP_UNUSED, tp_tensor *min, tp_tensor *max) {
    uint64_t mask;
    if (mask_of(self, dim, &mask) < 0) return -1;
    if (find(tp_prim_reduce_min, self, mask, min, NULL) < 0) return -1;
    return find(tp_prim_reduce_max, self, mask, max, NULL);
}

/* ---- argmax, argmin ---- */

static int argmax_like_meta(tp_meta *m, const char *op, tp_tensor *self, tp_opt_int dim, bool keepdim) {
    uint64_t mask;
    if (tp_is_complex(self)) return tp_fail(TP_RuntimeError, "%s(): does not support complex input", op);
    if (self->dtype == TP_BOOL) return tp_fail(TP_RuntimeError, "%s(): does not support bool input", op);
    if (mask_of(self, dim, &mask) < 0) return -1;
    if (check_not_empty(TP_IndexError, op, self, mask, !dim.has) < 0) return -1;
    return declare(m, 0, self, mask, keepdim, TP_INT64);
}

/* The place in all of a tensor counts its elements in order, so it has to lie in memory so. */
static int argmax_like(extreme_prim prim, tp_tensor *self, tp_opt_int dim, tp_tensor *out) {
    uint64_t mask;
    if (mask_of(self, dim, &mask) < 0) return -1;
    tp_autoref *x = dim.has ? tp_retain(self) : tp_plain(self, (tp_dtype)self->dtype);
    return x ? find(prim, x, mask, NULL, out) : -1;
}

/* argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor */
int argmax_meta(tp_meta *m, tp_tensor *self, tp_opt_int dim, bool keepdim) {
    return argmax_like_meta(m, "argmax", self, dim, keepdim);
}
int argmax_dense(tp_tensor *self, tp_opt_int dim, bool keepdim TP_UNUSED, tp_tensor *out) {
    return argmax_like(tp_prim_reduce_max, self, dim, out);
}

/* argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor */
int argmin_meta(tp_meta *m, tp_tensor *self, tp_opt_int dim, bool keepdim) {
    return argmax_like_meta(m, "argmin", self, dim, keepdim);
}
int argmin_dense(tp_tensor *self, tp_opt_int dim, bool keepdim TP_UNUSED, tp_tensor *out) {
    return argmax_like(tp_prim_reduce_min, self, dim, out);
}

/* ---- max, min along a dimension ---- */

static int max_dim_like_meta(tp_meta *m, const char *op, tp_tensor *self, int64_t dim, bool keepdim) {
    uint64_t mask;
    if (mask_of(self, TP_SOME_INT(dim), &mask) < 0 || check_not_empty(TP_RuntimeError, op, self, mask, false) < 0)
        return -1;
    if (check_ordered(TP_RuntimeError, op, self) < 0) return -1;
    if (declare(m, 0, self, mask, keepdim, (tp_dtype)self->dtype) < 0) return -1;
    return declare(m, 1, self, mask, keepdim, TP_INT64);
}

static int max_dim_like(extreme_prim prim, tp_tensor *self, int64_t dim, tp_tensor *values, tp_tensor *indices) {
    uint64_t mask;
    if (mask_of(self, TP_SOME_INT(dim), &mask) < 0) return -1;
    return find(prim, self, mask, values, indices);
}

/* max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
int max_dim_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool keepdim) {
    return max_dim_like_meta(m, "max", self, dim, keepdim);
}
int max_dim_dense(tp_tensor *self, int64_t dim, bool keepdim TP_UNUSED, tp_tensor *values, tp_tensor *indices) {
    return max_dim_like(tp_prim_reduce_max, self, dim, values, indices);
}

/* min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
int min_dim_meta(tp_meta *m, tp_tensor *self, int64_t dim, bool keepdim) {
    return max_dim_like_meta(m, "min", self, dim, keepdim);
}
int min_dim_dense(tp_tensor *self, int64_t dim, bool keepdim TP_UNUSED, tp_tensor *values, tp_tensor *indices) {
    return max_dim_like(tp_prim_reduce_min, self, dim, values, indices);
}

/* ---- gradients ---- */

/* The gradient goes to the chosen elements: where a dimension's own numbers equal the places chosen.
 * value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, bool keepdim) -> Tensor */
tp_tensor *value_selecting_reduction_backward_composite(tp_tensor *grad, int64_t dim, tp_tensor *indices, tp_ints sizes,
                                                        bool keepdim) {
    int64_t shape[TP_MAX_DIMS], d = tp_wrap_dim(dim, sizes.size);
    if (d < 0) return NULL;
    if (sizes.size == 0) return tp_alias(grad);
    if (sizes.size > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "value_selecting_reduction_backward: %lld sizes are too many",
                            (long long)sizes.size);
    for (int64_t i = 0; i < sizes.size; i++) shape[i] = i == d ? sizes.data[i] : 1;
    tp_autoref *numbers = tp_arange(TP_SCALAR_I(sizes.data[d]), TP_INT64, TP_STRIDED, grad->device, -1);
    tp_autoref *along = numbers ? tp_reshape(numbers, (tp_ints){shape, sizes.size}) : NULL;
    tp_autoref *g = keepdim ? tp_retain(grad) : tp_unsqueeze(grad, d);
    tp_autoref *at = keepdim ? tp_retain(indices) : tp_unsqueeze(indices, d);
    tp_autoref *chosen = along && at ? tp_eq_Tensor(at, along) : NULL;
    return g && chosen ? tp_where_ScalarOther(chosen, g, TP_SCALAR_I(0)) : NULL;
}

/* Shares grad out evenly among the elements that equal the extreme value. */
static tp_tensor *share_out(tp_tensor *grad, tp_tensor *self, tp_tensor *value, tp_ints dim, bool keepdim) {
    tp_autoref *g = keepdim ? tp_retain(grad) : tp__restore_dims(grad, dim, self->ndim);
    tp_autoref *v = keepdim ? tp_retain(value) : tp__restore_dims(value, dim, self->ndim);
    tp_autoref *reached = v ? tp_eq_Tensor(self, v) : NULL;
    tp_autoref *count = reached ? tp_sum_dim_IntList(reached, dim, true, TP_NO_DTYPE) : NULL;
    tp_autoref *placed = g && count ? tp_mul_Tensor(g, reached) : NULL;
    return placed ? tp_div_Tensor(placed, count) : NULL;
}

/* _aminmax_backward(Tensor? grad_min, Tensor? grad_max, Tensor self, Tensor min, Tensor max, int? dim, bool keepdim)
 *   -> Tensor */
tp_tensor *_aminmax_backward_composite(tp_tensor *grad_min, tp_tensor *grad_max, tp_tensor *self, tp_tensor *min,
                                       tp_tensor *max, tp_opt_int dim, bool keepdim) {
    tp_ints dims = dim.has ? TP_INTS(dim.value) : TP_EMPTY_INTS;
    tp_autoref *low = grad_min ? share_out(grad_min, self, min, dims, keepdim) : NULL;
    if (grad_min && !low) return NULL;
    tp_autoref *high = grad_max ? share_out(grad_max, self, max, dims, keepdim) : NULL;
    if (grad_max && !high) return NULL;
    if (low && high) return tp_add_Tensor(low, high, TP_SCALAR_I(1));
    if (!low && !high) return tp_zeros_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, (tp_device){-1, -1}, -1, TP_NO_FORMAT);
    return tp_take(*(low ? &low : &high));
}
