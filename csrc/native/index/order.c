/* order.c: elements at a place of the order along a dimension: topk, kthvalue, median, mode, quantile. A primitive
 * finds the places in lines; the values are what lies there. */
#include "native/index/order.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "prim/transfer.h"

#include <string.h>

static const tp_tensor2 failed = {{NULL, NULL}};

/* ---- lines ---- */

static int line_sizes(const tp_tensor *self, int64_t d, int64_t width, bool keepdim, int64_t *sizes) {
    int n = 0;
    for (int i = 0; i < self->ndim; i++)
        if (i != d || keepdim) sizes[n++] = i == d ? width : self->sizes[i];
    return n;
}
static tp_tensor2 order_outputs(tp_tensor *self, int64_t d, int64_t width, bool keepdim) {
    int64_t sizes[TP_MAX_DIMS];
    tp_ints shape = {sizes, line_sizes(self, d, width, keepdim, sizes)};
    tp_autoref *values = tp_new_empty(shape, (tp_dtype)self->dtype, self->device),
               *indices = values ? tp_new_empty(shape, TP_INT64, self->device) : NULL;
    return indices ? (tp_tensor2){{tp_take(values), tp_take(indices)}} : failed;
}
/* What is looked for in each line; `width` places of it are the result. */
typedef struct {
    const char *op;
    enum { FIRST, PLACE, MEDIAN, MODE } kind;
    int64_t width, k; /* k: of FIRST how many, of PLACE which, from 0 */
    bool largest, skip_nan;
} wanted;

static int order_keys(const wanted *w, tp_tensor *keys, tp_tensor *order) {
    switch (w->kind) {
    case FIRST: return tp_prim_topk(keys, w->k, w->largest, order);
    case PLACE: return tp_prim_kth(keys, w->k, order);
    case MEDIAN: return tp_prim_median(keys, w->skip_nan, order);
    default: return tp_prim_mode(keys, order);
    }
}

/* The indices (self's shape with `width` in place of dimension d) and the elements there; both contiguous, without the
 * dimension if !keepdim (width is 1 then). */
static tp_tensor2 order_lines(const wanted *w, tp_tensor *given, int64_t d, bool keepdim) {
    tp_autoref *self = tp_still(given);
    if (!self) return failed;
    tp_tensor2 both = order_outputs(self, d, w->width, true);
    tp_autoref *values = both.v[0], *indices = both.v[1];
    if (!values) return failed;
    if (values->numel && w->width) { /* none of a number without dimensions are one, unset */
        tp_autoref *keys = tp_comparable(w->op, self, d);
        bool last = d == self->ndim - 1 || self->ndim == 0;
        tp_autoref *moved = last ? NULL : keys ? tp_transpose_int(indices, d, -1) : NULL;
        tp_autoref *order = last    ? tp_retain(indices)
                            : moved ? tp_new_empty(tp_sizes(moved), TP_INT64, self->device)
                                    : NULL;
        if (!keys || !order || order_keys(w, keys, order) < 0) return failed;
        if (!last && tp_copy_data(moved, order) < 0) return failed;
        if (tp_take_along(self, d, indices, values) < 0) return failed;
    }
    if (!keepdim) {
        int64_t sizes[TP_MAX_DIMS], steps[TP_MAX_DIMS];
        tp_ints shape = {sizes, line_sizes(self, d, 1, false, sizes)}, strides = {steps, shape.size};
        tp_contiguous_strides(shape, steps);
        if (tp_tensor_set_geometry(values, shape, strides) < 0 || tp_tensor_set_geometry(indices, shape, strides) < 0)
            return failed;
    }
    return (tp_tensor2){{tp_take(values), tp_take(indices)}};
}

static int unsupported(const char *op, const tp_tensor *self, bool bool_too) {
    if (!tp_is_complex(self) && (self->dtype != TP_BOOL || !bool_too)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s_cpu\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}
/* The dimension, of which there has to be something unless there is nothing to compute. */
static int64_t checked_dim(const char *op, const tp_tensor *self, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || tp_size_at(tp_sizes(self), d) > 0) return d;
    return tp_fail(TP_IndexError, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)d);
}

/* ---- topk, kthvalue ---- */

static int64_t check_topk(tp_tensor *self, int64_t k, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d >= 0 && (k < 0 || k > tp_size_at(tp_sizes(self), d)))
        return tp_fail(TP_RuntimeError, "selected index k out of range");
    return d;
}
/* topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices) */
tp_tensor2 topk_dense(tp_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted) {
    (void)sorted;
    int64_t d = check_topk(self, k, dim);
    if (d >= 0 && (tp_is_complex(self) || self->dtype == TP_BOOL))
        d = tp_fail(TP_RuntimeError, "topk does not support %s dtypes on CPU",
                    tp_is_complex(self) ? "complex" : "bool");
    if (d < 0) return failed;
    if (self->ndim == 0) k = 1; /* a number is the first of none, too */
    return order_lines(&(wanted){.op = "topk", .kind = FIRST, .width = k, .k = k, .largest = largest}, self, d, true);
}

static int64_t check_kthvalue(tp_tensor *self, int64_t k, int64_t dim) {
    int64_t d = unsupported("kthvalue", self, true) < 0 ? -1 : checked_dim("kthvalue", self, dim);
    if (d >= 0 && (k < 1 || k > tp_size_at(tp_sizes(self), d)))
        return tp_fail(TP_RuntimeError, "kthvalue(): selected number k out of range for dimension %lld", (long long)d);
    return d;
}
/* kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 kthvalue_dense(tp_tensor *self, int64_t k, int64_t dim, bool keepdim) {
    int64_t d = check_kthvalue(self, k, dim);
    if (d < 0) return failed;
    return order_lines(&(wanted){.op = "kthvalue", .kind = PLACE, .width = 1, .k = k - 1}, self, d, keepdim);
}

/* ---- median ---- */

static int64_t check_median(const char *op, tp_tensor *self, int64_t dim) {
    return unsupported("median", self, true) < 0 ? -1 : checked_dim(op, self, dim);
}
static tp_tensor2 median_along(const char *name, tp_tensor *self, int64_t dim, bool keepdim, bool skip_nan) {
    int64_t d = check_median(name, self, dim);
    if (d < 0) return failed;
    return order_lines(&(wanted){.op = name, .kind = MEDIAN, .width = 1, .skip_nan = skip_nan}, self, d, keepdim);
}
/* median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 median_dim_dense(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along("median", self, dim, keepdim, false);
}
/* nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 nanmedian_dim_dense(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along("nanmedian", self, dim, keepdim, true);
}
/* The median of all elements; without any, NaN (as an integer, its smallest number). */
static tp_tensor *median_of_all(const char *name, tp_tensor *self, bool skip_nan) {
    if (unsupported("median", self, true) < 0) return NULL;
    if (self->numel == 0) {
        tp_autoref *nan =
            tp_full(TP_EMPTY_INTS, TP_SCALAR_F(__builtin_nan("")), TP_FLOAT64, TP_NO_LAYOUT, self->device, -1);
        tp_autoref *none = nan ? tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device) : NULL;
        tp_scalar least = {.kind = TP_SCALAR_INT,
                           .i = self->dtype == TP_INT64   ? INT64_MIN
                                : self->dtype == TP_INT32 ? INT32_MIN
                                                          : 0};
        if (!none) return NULL;
        int status = tp_is_floating(self) ? tp_copy_(none, nan, false) : tp_fill__Scalar(none, &least);
        return status == 0 ? tp_take(none) : NULL;
    }
    tp_autoref *line = tp_reshape(self, TP_INTS(-1));
    tp_tensor2 both = line ? median_along(name, line, 0, false, skip_nan) : failed;
    tp_release(both.v[1]);
    return both.v[0];
}
/* median(Tensor self) -> Tensor */
tp_tensor *median_dense(tp_tensor *self) { return median_of_all("median", self, false); }
/* nanmedian(Tensor self) -> Tensor */
tp_tensor *nanmedian_dense(tp_tensor *self) { return median_of_all("nanmedian", self, true); }

/* ---- mode ---- */

/* mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 mode_dense(tp_tensor *self, int64_t dim, bool keepdim) {
    int64_t d = unsupported("mode", self, false) < 0 ? -1 : checked_dim("mode", self, dim);
    if (d < 0) return failed;
    return order_lines(&(wanted){.op = "mode", .kind = MODE, .width = 1}, self, d, keepdim);
}

/* ---- quantile ---- */

static int check_quantile(const char *op, const tp_tensor *self, tp_opt_int dim, const char *interpolation) {
    static const char *const known[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    if (self->numel == 0) return tp_fail(TP_RuntimeError, "%s() input tensor must be non-empty", op);
    if (self->dtype != TP_FLOAT32 && self->dtype != TP_FLOAT64)
        return tp_fail(TP_RuntimeError, "%s() input tensor must be either float or double dtype", op);
    if (dim.has && tp_wrap_dim(dim.value, self->ndim) < 0) return -1;
    for (int64_t i = 0; i < TP_COUNTOF(known); i++)
        if (strcmp(known[i], interpolation) == 0) return 0;
    return tp_fail(TP_RuntimeError,
                   "%s() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", op,
                   interpolation);
}
static int check_levels(const char *op, const tp_tensor *self, tp_tensor *q) {
    if (q->ndim > 1) return tp_fail(TP_RuntimeError, "%s() q must be a scalar or 1D tensor", op);
    if (q->dtype != self->dtype)
        return tp_fail(TP_RuntimeError, "%s() q tensor must be same dtype as the input tensor", op);
    tp_autoref *plain = tp_detach(q), *low = plain ? tp_ge_Scalar(plain, TP_SCALAR_I(0)) : NULL,
               *high = low ? tp_le_Scalar(plain, TP_SCALAR_I(1)) : NULL;
    tp_autoref *both = high ? tp_logical_and(low, high) : NULL, *all = both ? tp_all(both) : NULL;
    return all ? tp__assert_async_msg(all, "quantile() q values must be in the range [0, 1]") : -1;
}
/* The levels, which lead, and the reduced dimension where they belong. */
static tp_tensor *shape_levels_steal(tp_tensor *out_steal, tp_tensor *self, bool one, tp_opt_int dim, bool keepdim) {
    tp_autoref *out = out_steal, *kept = NULL;
    if (!out) return NULL;
    if (!keepdim || self->ndim == 0) kept = tp_retain(out);
    else if (dim.has) kept = tp_unsqueeze(out, tp_wrap_dim(dim.value, self->ndim) + 1);
    else {
        int64_t sizes[TP_MAX_DIMS + 1] = {out->sizes[0]};
        for (int d = 1; d <= self->ndim; d++) sizes[d] = 1;
        kept = tp_reshape(out, (tp_ints){sizes, self->ndim + 1});
    }
    return kept && one ? tp_select_int(kept, 0, 0) : tp_take(kept);
}
#define QUANTILE(name, skip_nan)                                                                                       \
    tp_tensor *name##_composite(tp_tensor *self, tp_tensor *q, tp_opt_int dim, bool keepdim, const char *between) {    \
        if (check_quantile(#name, self, dim, between) < 0 || check_levels(#name, self, q) < 0) return NULL;            \
        return shape_levels_steal(tp__quantile(self, q, dim, between, skip_nan), self, q->ndim == 0, dim, keepdim);    \
    }                                                                                                                  \
    tp_tensor *name##_scalar_composite(tp_tensor *self, double q, tp_opt_int dim, bool keepdim, const char *between) { \
        if (!(q >= 0 && q <= 1))                                                                                       \
            return tp_fail_null(TP_RuntimeError, #name "() q must be in the range [0, 1] but got %g", q);              \
        if (check_quantile(#name, self, dim, between) < 0) return NULL;                                                \
        tp_autoref *level =                                                                                            \
            tp_full(TP_EMPTY_INTS, TP_SCALAR_F(q), (tp_dtype)self->dtype, TP_NO_LAYOUT, self->device, -1);             \
        return level ? shape_levels_steal(tp__quantile(self, level, dim, between, skip_nan), self, true, dim, keepdim) \
                     : NULL;                                                                                           \
    }
/* quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor */
QUANTILE(quantile, false)
/* nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor */
QUANTILE(nanquantile, true)
