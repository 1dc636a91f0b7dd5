/* gather.c: gather, scatter and the index_* operators: checks, and the common form of the primitives take and put.
 *
 * A one-dimensional index of index_select and its kin is the same as a gather index expanded to the source's shape,
 * with strides of zero. */
#include "native/index/gather.h"

#include "NativeFunctions.h"
#include "core/determinism.h"
#include "core/scalar_math.h"
#include "native/common/variants.h"
#include "iter/iter.h"

#include <string.h>

/* ---- checks ---- */

static int check_index_dtype(const char *op, const tp_tensor *index) {
    if (index->dtype == TP_INT64 || index->dtype == TP_INT32) return 0;
    return tp_fail(TP_RuntimeError, "%s(): Expected dtype int32/int64 for index", op);
}

static int check_same_dtype(const char *op, const tp_tensor *self, const tp_tensor *src) {
    if (self->dtype == src->dtype) return 0;
    return tp_fail(TP_RuntimeError, "%s(): Expected self.dtype to be equal to src.dtype, got self: %s, source: %s", op,
                   tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)src->dtype));
}

static int64_t ndim1(const tp_tensor *t) { return t->ndim ? t->ndim : 1; }

/* A number counts as a line of one element, beside lines too: the primitives take tensors of as many dimensions. */
static tp_tensor *as_line(tp_tensor *t) {
    return t->ndim ? tp_retain(t) : tp_new_alias(t, TP_INTS(1), TP_INTS(1), t->byte_offset);
}

/* index fits self (outside dim) and src. */
static int check_scatter(const char *op, const tp_tensor *self, int64_t dim, const tp_tensor *index,
                         const tp_tensor *src) {
    if (index->numel == 0) return 0; /* of any dtype */
    if (check_index_dtype(op, index) < 0) return -1;
    if (ndim1(index) != ndim1(self) || (src && ndim1(src) != ndim1(index)))
        return tp_fail(TP_RuntimeError, "Index tensor must have the same number of dimensions as %s tensor",
                       src && ndim1(index) == ndim1(self) ? "src" : "self");
    for (int d = 0; d < ndim1(index); d++) {
        int64_t n = tp_size_at(tp_sizes(index), d);
        bool fits = d == dim || n <= tp_size_at(tp_sizes(self), d);
        if (fits && (!src || n <= tp_size_at(tp_sizes(src), d))) continue;
        tp_autotext a = {0}, b = {0}, c = {0};
        tp_text_ints(&a, tp_sizes(index));
        tp_text_ints(&b, tp_sizes(self));
        if (src) tp_text_ints(&c, tp_sizes(src));
        return tp_fail(TP_RuntimeError,
                       "Size does not match at dimension %d: Expected index %s to be no larger than self %s apart from "
                       "dimension %lld%s%s (%s)",
                       d, a.text, b.text, (long long)dim, src ? " and to be no larger size than src " : "",
                       src ? c.text : "", op);
    }
    return 0;
}

/* ---- gather ---- */

static tp_tensor *as_int64(tp_tensor *index) { return tp_to_dtype(index, TP_INT64, false, false, TP_NO_FORMAT); }

/* gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor */
tp_tensor *gather_dense(tp_tensor *self, int64_t dim, tp_tensor *index, bool sparse_grad TP_UNUSED) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_scatter("gather", self, d, index, NULL) < 0) return NULL;
    tp_autoref *out = tp_new_empty(tp_sizes(index), (tp_dtype)self->dtype, self->device);
    if (!out || out->numel == 0) return tp_take(out);
    tp_autoref *wide = as_int64(index), *places = wide ? as_line(wide) : NULL;
    tp_autoref *from = as_line(self), *to = as_line(out);
    int fault = TP_INDEX_FAULT(TP_RuntimeError, "gather");
    return places && from && to && tp_prim_take(from, d, places, fault, false, to) == 0 ? tp_take(out) : NULL;
}

/* gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!) */
int gather_out_composite(tp_tensor *self, int64_t dim, tp_tensor *index, bool sparse_grad, tp_tensor *out) {
    tp_autoref *made = tp_gather(self, dim, index, sparse_grad);
    if (!made || tp_fit_out(out, made) < 0) return -1;
    if (tp_check_out_apart(out, self) < 0 || tp_check_out_apart(out, index) < 0) return -1;
    return tp_copy_into_out(out, made);
}

/* ---- scatter ---- */

int tp_warn_of_expanded(const char *op, const tp_tensor *self) {
    if (!tp_overlaps_itself(self)) return 0;
    return tp_warn("Use of %s on expanded tensors is deprecated. Please clone() the tensor before performing this "
                   "operation. This holds for tensor[indices] = tensor as well.",
                   op);
}

tp_tensor *tp_apart(tp_tensor *t, const tp_tensor *written) {
    if (t && tp_check_no_overlap(written, t) < 0) return NULL;
    return !t || tp_overlap_of(written, t) == TP_OVERLAP_NONE ? tp_retain(t) : tp_clone(t, TP_CONTIGUOUS_FORMAT);
}

static int scatter_into(int fault, tp_put_fn how, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    const char *op = tp_fault_at(fault)->op;
    if (d < 0 || check_scatter(op, self, d, index, src) < 0) return -1;
    if (check_same_dtype(op, self, src) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    if (index->numel == 0) return 0;
    tp_autoref *wide = as_int64(index), *own = tp_apart(wide, self), *given = tp_apart(src, self);
    tp_autoref *places = own ? as_line(own) : NULL, *from = given ? as_line(given) : NULL, *to = as_line(self);
    return places && from && to ? how(to, d, places, from, fault, false) : -1;
}
/* A number as a source: one element for every place. */
static tp_tensor *number_like(const tp_tensor *self, const tp_tensor *index, const tp_scalar *value) {
    int64_t zeros[TP_MAX_DIMS] = {0};
    if (tp_scalar_check_fits(value, (tp_dtype)self->dtype) < 0) return NULL;
    tp_autoref *one = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    if (!one || tp_fill__Scalar(one, value) < 0) return NULL;
    return tp_new_alias(one, tp_sizes(index), (tp_ints){zeros, index->ndim}, 0);
}
static int scatter_number(int fault, tp_put_fn how, tp_tensor *self, int64_t dim, tp_tensor *index,
                          const tp_scalar *value) {
    tp_autoref *src = number_like(self, index, value);
    return src ? scatter_into(fault, how, self, dim, index, src) : -1;
}
static tp_put_fn reduction_named(const char *reduce) {
    if (strcmp(reduce, "add") == 0) return tp_prim_put_add;
    if (strcmp(reduce, "multiply") == 0) return tp_prim_put_mul;
    return tp_fail_null(TP_RuntimeError, "reduce argument must be either add or multiply.");
}

int scatter__src_dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    return scatter_into(TP_INDEX_FAULT(TP_RuntimeError, "scatter"), tp_prim_put_set, self, dim, index, src);
}
int scatter__value_dense(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    return scatter_number(TP_INDEX_FAULT(TP_RuntimeError, "scatter"), tp_prim_put_set, self, dim, index, value);
}
int scatter__reduce_dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, const char *reduce) {
    tp_put_fn how = reduction_named(reduce);
    return !how ? -1 : scatter_into(TP_INDEX_FAULT(TP_RuntimeError, "scatter"), how, self, dim, index, src);
}
int scatter__value_reduce_dense(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value,
                                const char *reduce) {
    tp_put_fn how = reduction_named(reduce);
    return !how ? -1 : scatter_number(TP_INDEX_FAULT(TP_RuntimeError, "scatter"), how, self, dim, index, value);
}
int scatter_add__dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    return scatter_into(TP_INDEX_FAULT(TP_RuntimeError, "scatter_add"), tp_prim_put_add, self, dim, index, src);
}

/* What a reduction starts from; false if there is no such reduction. */
static bool reduction_start(const char *reduce, tp_dtype d, tp_put_fn *how, tp_scalar *start) {
    static const struct {
        const char *name;
        tp_put_fn put;
    } known[] = {{"sum", tp_prim_put_add},
                 {"mean", tp_prim_put_add},
                 {"prod", tp_prim_put_mul},
                 {"amin", tp_prim_put_min},
                 {"amax", tp_prim_put_max}};
    for (int64_t i = 0; i < TP_COUNTOF(known); i++) {
        if (strcmp(reduce, known[i].name)) continue;
        *how = known[i].put;
        *start = (tp_scalar){.kind = TP_SCALAR_INT, .i = *how == tp_prim_put_mul};
        if (*how != tp_prim_put_min && *how != tp_prim_put_max) return true;
        bool high = *how == tp_prim_put_min;
        int bits = 8 * (int)tp_itemsize(d);
        if (d == TP_BOOL) *start = (tp_scalar){.kind = TP_SCALAR_BOOL, .b = high};
        else if (tp_is_floating_dtype(d))
            *start = (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = high ? __builtin_inf() : -__builtin_inf()};
        else if (tp_dtype_categories[d] == TP_UNSIGNED)
            *start = (tp_scalar){.kind = TP_SCALAR_UINT, .u = high ? UINT64_MAX >> (64 - bits) : 0};
        else
            *start = (tp_scalar){.kind = TP_SCALAR_INT,
                                 .i = high ? (int64_t)(UINT64_MAX >> (65 - bits))
                                           : -(int64_t)(UINT64_MAX >> (65 - bits)) - 1};
        return true;
    }
    return false;
}
/* self divided by the number of elements that went into each place. */
static int divide_by_counts(tp_tensor *self, int64_t dim, tp_tensor *index, bool include_self) {
    tp_autoref *counts = tp_full(tp_sizes(self), TP_SCALAR_I(include_self), TP_INT64, TP_STRIDED, self->device, -1);
    if (!counts || scatter_number(TP_INDEX_FAULT(TP_RuntimeError, "scatter_reduce"), tp_prim_put_add, counts, dim,
                                  index, TP_SCALAR_I(1)) < 0)
        return -1;
    if (tp_clamp_min_(counts, TP_SCALAR_I(1)) < 0) return -1;
    bool whole = tp_is_integral_dtype((tp_dtype)self->dtype);
    return tp_div__Tensor_mode(self, counts, whole ? "floor" : NULL);
}
/* scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) ->
 * Tensor(a!) */
int scatter_reduce__two_dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, const char *reduce,
                              bool include_self) {
    tp_put_fn how;
    tp_scalar start;
    if (!reduction_start(reduce, (tp_dtype)self->dtype, &how, &start))
        return tp_fail(TP_RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_scatter("scatter_reduce", self, d, index, src) < 0 ||
        check_same_dtype("scatter_reduce", self, src) < 0)
        return -1;
    if (!include_self && scatter_number(TP_INDEX_FAULT(TP_RuntimeError, "scatter_reduce"), tp_prim_put_set, self, dim,
                                        index, &start) < 0)
        return -1;
    if (scatter_into(TP_INDEX_FAULT(TP_RuntimeError, "scatter_reduce"), how, self, dim, index, src) < 0) return -1;
    bool mean = strcmp(reduce, "mean") == 0 && index->numel;
    return mean ? divide_by_counts(self, d, index, include_self) : 0;
}

/* ---- one-dimensional indices ---- */

/* What index_add_ asks of its arguments; index_reduce's entry says the same. */
static int check_index_add(const tp_tensor *self, int64_t dim, const tp_tensor *index, const tp_tensor *source) {
    tp_autotext a = {0}, b = {0};
    tp_text_ints(&a, tp_sizes(index->ndim > 1 ? index : self));
    tp_text_ints(&b, tp_sizes(source));
    if (index->ndim > 1)
        return tp_fail(TP_IndexError,
                       "index_add_(): Index is supposed to be a vector, but got dim: %d with type: %s and size: %s",
                       index->ndim, tp_scalar_type_name((tp_dtype)index->dtype), a.text);
    if (index->dtype != TP_INT64 && index->dtype != TP_INT32)
        return tp_fail(TP_RuntimeError, "index_add_(): Expected dtype int32/int64 for index but got: %s",
                       tp_scalar_type_name((tp_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return tp_fail(TP_RuntimeError, "index_add_(): self (%s) and source (%s) must have the same scalar type",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)source->dtype));
    int64_t taken = dim < source->ndim ? source->sizes[dim] : 1;
    if (index->numel != taken)
        return tp_fail(
            TP_RuntimeError,
            "index_add_(): Number of indices (%lld) should be equal to source.size(dim): (%lld), for dim: %lld",
            (long long)index->numel, (long long)taken, (long long)dim);
    bool fits = source->ndim == self->ndim || (self->ndim == 0 && source->ndim <= 1 && source->numel == 1);
    for (int d = 0; fits && self->ndim && d < source->ndim; d++) fits = d == dim || source->sizes[d] == self->sizes[d];
    if (fits) return 0;
    return tp_fail(TP_RuntimeError,
                   "source tensor shape must match self tensor shape, excluding the specified dimension. "
                   "Got self.shape = %s source.shape = %s",
                   a.text, b.text);
}
/* What index_copy_ asks. */
static int check_index_copy(const tp_tensor *self, int64_t dim, const tp_tensor *index, const tp_tensor *source) {
    long long count = (long long)index->numel;
    if (index->ndim > 1)
        return tp_fail(TP_IndexError, "index_copy_(): Index should have dimension 1 or 0 (got %d)", index->ndim);
    if (!source->ndim && count != 1)
        return tp_fail(TP_IndexError, "index_copy_(): When source is scalar, index should have one element (got %lld)",
                       count);
    if (source->ndim && self->ndim && source->ndim != self->ndim)
        return tp_fail(TP_IndexError,
                       "index_copy_(): When source and destination are not scalars, their dimensionality must match. "
                       "Source dimensionality (%d), destination dimensionality (%d)",
                       source->ndim, self->ndim);
    if (index->dtype != TP_INT64 && index->dtype != TP_INT32)
        return tp_fail(TP_RuntimeError, "index_copy_(): Expected a long tensor for index, but got %s",
                       tp_scalar_type_name((tp_dtype)index->dtype));
    if (self->dtype != source->dtype)
        return tp_fail(
            TP_RuntimeError,
            "index_copy_(): self and source expected to have the same dtype, but got (self) %s and (source) %s",
            tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)source->dtype));
    for (int d = 0; self->ndim && d < source->ndim; d++)
        if (d != dim && source->sizes[d] != self->sizes[d])
            return tp_fail(TP_RuntimeError,
                           "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
                           "shape: %lld at dimension %d and source slice shape: %lld at dimension %d.",
                           (long long)self->sizes[d], d, (long long)source->sizes[d], d);
    int64_t taken = dim < source->ndim ? source->sizes[dim] : 1;
    if (count != taken)
        return tp_fail(TP_IndexError,
                       "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)", count,
                       (long long)taken);
    return 0;
}
/* The index as if it had the shape of source, which is self's but for dim. NULL on failure. */
static tp_tensor *spread_index(int fault, tp_tensor *self, int64_t dim, tp_tensor *index, const tp_tensor *source) {
    const char *op = tp_fault_at(fault)->op;
    int64_t strides[TP_MAX_DIMS] = {0};
    if (index->ndim > 1) return tp_fail_null(TP_IndexError, "%s(): Index is supposed to be a vector", op);
    if (check_index_dtype(op, index) < 0) return NULL;
    bool fits = source->ndim == self->ndim || (self->ndim == 0 && source->ndim <= 1);
    for (int d = 0; fits && d < source->ndim; d++) fits = d == dim || source->sizes[d] == self->sizes[d];
    if (!fits || index->numel != tp_size_at(tp_sizes(source), dim))
        return tp_fail_null(TP_RuntimeError, "%s(): the index has %lld elements for %lld places", op,
                            (long long)index->numel, (long long)tp_size_at(tp_sizes(source), dim));
    tp_autoref *wide = as_int64(index), *places = tp_apart(wide, self);
    if (!places) return NULL;
    if (source->ndim) strides[dim] = places->ndim ? places->strides[0] : 1;
    return tp_new_alias(places, tp_sizes(source), (tp_ints){strides, source->ndim}, places->byte_offset);
}
int tp_index_write(int fault, tp_put_fn how, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source,
                   bool wrap) {
    const char *op = tp_fault_at(fault)->op;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *places = d < 0 ? NULL : spread_index(fault, self, d, index, source);
    if (!places || check_same_dtype(op, self, source) < 0) return -1;
    if ((wrap ? tp_warn_of_expanded(op, self) : tp_check_internal_overlap(self)) < 0) return -1; /* wrap: index_fill_ */
    if (source->numel == 0) return 0;
    tp_autoref *given = tp_apart(source, self), *from = given ? as_line(given) : NULL;
    tp_autoref *at = as_line(places), *to = as_line(self);
    return from && at && to ? how(to, d, at, from, fault, wrap) : -1;
}
/* A factor of source, cut to its dtype; new. */
static tp_tensor *times(tp_tensor *source, const tp_scalar *alpha) {
    tp_autoref *factor = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)source->dtype, source->device);
    return factor && tp_fill__Scalar(factor, alpha) == 0 ? tp_mul_Tensor(source, factor) : NULL;
}
/* index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!) */
int index_add__dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source, const tp_scalar *alpha) {
    if (tp_scalar_check_fits(alpha, (tp_dtype)self->dtype) < 0) return -1;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_index_add(self, d, index, source) < 0 || tp_check_no_overlap(self, source) < 0) return -1;
    tp_autoref *scaled = tp_scalar_equals_int(alpha, 1) ? tp_retain(source) : times(source, alpha);
    int fault = TP_INDEX_FAULT(TP_IndexError, "index_add");
    return scaled ? tp_index_write(fault, tp_prim_put_add, self, dim, index, scaled, false) : -1;
}
int index_copy__dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_index_copy(self, d, index, source) < 0) return -1;
    int fault = TP_INDEX_FAULT(TP_IndexError, "index_copy_");
    tp_autoref *line = !source->ndim && self->ndim == 1 ? tp_unsqueeze(source, 0) : tp_retain(source); /* of one */
    return line ? tp_index_write(fault, tp_prim_put_set, self, d, index, line, false) : -1;
}
/* index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!) */
int index_fill__int_Scalar_dense(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    int64_t d = tp_wrap_dim(dim, self->ndim), sizes[TP_MAX_DIMS], zeros[TP_MAX_DIMS] = {0};
    if (d < 0) return -1;
    if (index->dtype != TP_INT64) return tp_fail(TP_IndexError, "index_fill_(): Expected dtype int64 for index.");
    if (self->ndim == 0) { /* a line of one */
        tp_autoref *line = tp_new_alias(self, TP_INTS(1), TP_INTS(1), self->byte_offset);
        return line ? index_fill__int_Scalar_dense(line, d, index, value) : -1;
    }
    if (index->ndim > 1) return tp_fail(TP_RuntimeError, "Index has to be a vector/scalar");
    if (value->kind == TP_SCALAR_COMPLEX && !tp_is_complex(self))
        return tp_fail(TP_RuntimeError,
                       "index_fill_(): Converting complex Scalar to non-complex type is not supported");
    if (tp_scalar_check_fits(value, (tp_dtype)self->dtype) < 0) return -1;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim) sizes[d] = index->numel;
    tp_autoref *one = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    if (!one || tp_fill__Scalar(one, value) < 0) return -1;
    tp_autoref *source = tp_new_alias(one, (tp_ints){sizes, self->ndim}, (tp_ints){zeros, self->ndim}, 0);
    return source ? tp_index_write(TP_INDEX_FAULT(TP_IndexError, "index_fill_"), tp_prim_put_set, self, d, index,
                                   source, true)
                  : -1;
}
int index_fill__int_Tensor_dense(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *value) {
    tp_scalar number;
    if (value->ndim != 0)
        return tp_fail(TP_RuntimeError,
                       "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                       value->ndim);
    return tp_item(value, &number) < 0 ? -1 : index_fill__int_Scalar_dense(self, dim, index, &number);
}

/* ---- index_select ---- */

static tp_tensor *index_select_empty(tp_tensor *self, int64_t *dim, tp_tensor *index) {
    int64_t sizes[TP_MAX_DIMS];
    *dim = tp_wrap_dim(*dim, self->ndim);
    if (*dim < 0) return NULL;
    if (index->ndim > 1) return tp_fail_null(TP_IndexError, "index_select(): Index is supposed to be a vector");
    if (index->dtype != TP_INT64 && index->dtype != TP_INT32)
        return tp_fail_null(TP_RuntimeError, "index_select(): Expected dtype int32 or int64 for index");
    if (self->ndim == 0 && index->numel != 1)
        return tp_fail_null(TP_RuntimeError, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                            (long long)index->numel);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim) sizes[*dim] = index->numel;
    return tp_new_empty((tp_ints){sizes, self->ndim}, (tp_dtype)self->dtype, self->device);
}
/* An index may be wrong where no element is read by it: it is tried on a line of as many places. */
static int check_places(int fault, tp_tensor *self, int64_t dim, tp_tensor *index, bool wrap) {
    if (index->numel == 0 || !self->ndim) return 0;
    fault = tp_fault_id(TP_RuntimeError, tp_fault_at(fault)->op, NULL); /* the class that PyTorch's has here */
    if (!self->sizes[dim] && tp_has_values(self)) return tp_raise_fault(fault, 0, dim, 0, "");
    tp_autoref *line = tp_new_empty(TP_INTS(self->sizes[dim] ? self->sizes[dim] : 1), TP_UINT8, self->device);
    tp_autoref *taken = line ? tp_index_take(fault, line, 0, index, wrap) : NULL;
    return taken ? 0 : -1;
}
tp_tensor *tp_index_take(int fault, tp_tensor *self, int64_t dim, tp_tensor *index, bool wrap) {
    tp_autoref *out = index_select_empty(self, &dim, index);
    if (!out || ((out->numel == 0 || self->numel == 0) && check_places(fault, self, dim, index, wrap) < 0)) return NULL;
    if (out->numel == 0) return tp_take(out);
    tp_autoref *spread = spread_index(fault, self, dim, index, out);
    return spread && tp_prim_take(self, dim, spread, fault, wrap, out) == 0 ? tp_take(out) : NULL;
}
/* index_select(Tensor self, int dim, Tensor index) -> Tensor */
tp_tensor *index_select_dense(tp_tensor *self, int64_t dim, tp_tensor *index) {
    return tp_index_take(TP_INDEX_FAULT(TP_IndexError, "index_select"), self, dim, index, false);
}
