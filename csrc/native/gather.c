/* gather.c: gather, scatter and the index_* operators: checks, and their loops' (cpu/gather.c) common form.
 *
 * A one-dimensional index of index_select and its kin is the same as a gather index expanded to the source's shape,
 * with strides of zero. Every index is checked before anything is written. */
#include "NativeFunctions.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/gather.h"
#include "native/device_kernels.h"
#include "native/gather.h"
#include "native/variants.h"
#include "iter/iter.h"

#include <string.h>

/* ---- checks ---- */

static int check_index_dtype(const char *op, const tp_tensor *index) {
    if (index->dtype == TP_INT64 || index->dtype == TP_INT32) return 0;
    return tp_fail(TP_RuntimeError, "%s(): Expected dtype int32/int64 for index", op);
}

static tp_tensor *fail_index(tp_error_class cls, int64_t value, int64_t dim, int64_t size) {
    return tp_fail_null(cls,
                        "index %lld is out of bounds for dimension %lld with size %lld (index out of range in self)",
                        (long long)value, (long long)dim, (long long)size);
}

/* The index as int64 with all values in [0, size). Elsewhere than on the CPU it is as given: the kernel checks it. */
static tp_tensor *checked_index(const tp_index_check *check, tp_tensor *index) {
    tp_error_class cls = check->cls;
    int64_t dim = check->dim, size = check->size;
    bool wrap = check->wrap;
    tp_autoref *wide = tp_to_dtype(index, TP_INT64, false, false, TP_NO_FORMAT),
               *flat = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!flat || tp_elsewhere(flat)) return tp_take(flat);
    const int64_t *v = tp_data(flat);
    int64_t bad = -1, signs = 0; /* negative once an index is below 0 or above size - 1 */
    for (int64_t i = 0; i < flat->numel; i++) signs |= v[i] | (int64_t)((uint64_t)size - 1 - (uint64_t)v[i]);
    if (signs >= 0) return tp_take(flat);
    bool negative = false;
    for (int64_t i = 0; i < flat->numel; i++) {
        bool out = wrap ? v[i] < -size || v[i] >= size : (uint64_t)v[i] >= (uint64_t)size;
        if (out) bad = i;
        negative |= v[i] < 0;
    }
    if (bad >= 0) return fail_index(cls, v[bad], dim, size);
    if (!negative) return tp_take(flat);
    tp_autoref *own = tp_clone(flat, TP_CONTIGUOUS_FORMAT);
    int64_t *w = own ? tp_data(own) : NULL;
    for (int64_t i = 0; w && i < own->numel; i++)
        if (w[i] < 0) w[i] += size;
    return tp_take(own);
}

static int check_same_dtype(const char *op, const tp_tensor *self, const tp_tensor *src) {
    if (self->dtype == src->dtype) return 0;
    return tp_fail(TP_RuntimeError, "%s(): Expected self.dtype to be equal to src.dtype, got self: %s, source: %s", op,
                   tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)src->dtype));
}

static int64_t ndim1(const tp_tensor *t) { return t->ndim ? t->ndim : 1; }

/* index fits self (outside dim) and src. */
static int check_scatter(const char *op, const tp_tensor *self, int64_t dim, const tp_tensor *index,
                         const tp_tensor *src) {
    if (index->numel == 0) return 0; /* of any dtype */
    if (check_index_dtype(op, index) < 0) return -1;
    if (ndim1(index) != ndim1(self) || (src && ndim1(src) != ndim1(index)))
        return tp_fail(TP_RuntimeError, "Index tensor must have the same number of dimensions as %s tensor",
                       src && ndim1(index) == ndim1(self) ? "src" : "self");
    for (int d = 0; d < index->ndim; d++) {
        bool fits = d == dim || index->sizes[d] <= tp_size_at(tp_sizes(self), d);
        if (fits && (!src || index->sizes[d] <= tp_size_at(tp_sizes(src), d))) continue;
        tp_autotext a = {0}, b = {0}, c = {0};
        tp_text_ints(&a, tp_sizes(index));
        tp_text_ints(&b, tp_sizes(self));
        if (src) tp_text_ints(&c, tp_sizes(src));
        return tp_fail(TP_RuntimeError,
                       "%s(): Expected index %s to be no larger than self %s apart from dimension %lld%s%s", op, a.text,
                       b.text, (long long)dim, src ? " and to be no larger than src " : "", src ? c.text : "");
    }
    return 0;
}

/* ---- gather ---- */

static tp_tensor *gather_empty(tp_tensor *self, int64_t *dim, tp_tensor *index) {
    *dim = tp_wrap_dim(*dim, self->ndim);
    if (*dim < 0 || check_scatter("gather", self, *dim, index, NULL) < 0) return NULL;
    return tp_new_empty(tp_sizes(index), (tp_dtype)self->dtype, self->device);
}
tp_tensor *gather_meta(tp_tensor *self, int64_t dim, tp_tensor *index, bool sparse_grad) {
    (void)sparse_grad;
    return gather_empty(self, &dim, index);
}
/* gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor */
tp_tensor *gather_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, bool sparse_grad) {
    (void)sparse_grad;
    tp_autoref *out = gather_empty(self, &dim, index);
    if (!out || out->numel == 0) return tp_take(out);
    tp_index_check check = {TP_RuntimeError, "gather", dim, tp_size_at(tp_sizes(self), dim), false};
    tp_autoref *places = checked_index(&check, index);
    return places && tp_run_places(TP_PLACES_GET, self, dim, places, out, &check) == 0 ? tp_take(out) : NULL;
}

/* gather.out(Tensor self, int dim, Tensor index, *, bool sparse_grad=False, Tensor(a!) out) -> Tensor(a!) */
int gather_out_composite(tp_tensor *self, int64_t dim, tp_tensor *index, bool sparse_grad, tp_tensor *out) {
    tp_autoref *made = tp_gather(self, dim, index, sparse_grad);
    return made ? tp_copy_into_out_of_its_dtype(out, made) : -1;
}

/* ---- scatter ---- */

static int scatter_into(const char *op, tp_places_op how, tp_tensor *self, int64_t dim, tp_tensor *index,
                        tp_tensor *src) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_scatter(op, self, d, index, src) < 0) return -1;
    if (check_same_dtype(op, self, src) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    if (index->numel == 0 || self->device.type == TP_DEVICE_META) return 0;
    tp_index_check check = {TP_RuntimeError, op, d, tp_size_at(tp_sizes(self), d), false};
    tp_autoref *places = checked_index(&check, index);
    tp_autoref *from =
        tp_overlap_of(self, src) == TP_OVERLAP_NONE ? tp_retain(src) : tp_clone(src, TP_CONTIGUOUS_FORMAT);
    return places && from ? tp_run_places(how, self, d, places, from, &check) : -1;
}
/* A number as a source: one element for every place. */
static tp_tensor *number_like(const tp_tensor *self, const tp_tensor *index, const tp_scalar *value) {
    int64_t zeros[TP_MAX_DIMS] = {0};
    tp_autoref *one = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    if (!one || tp_fill__Scalar(one, value) < 0) return NULL;
    return tp_new_alias(one, tp_sizes(index), (tp_ints){zeros, index->ndim}, 0);
}
static int scatter_number(const char *op, tp_places_op how, tp_tensor *self, int64_t dim, tp_tensor *index,
                          const tp_scalar *value) {
    tp_autoref *src = number_like(self, index, value);
    return src ? scatter_into(op, how, self, dim, index, src) : -1;
}
static int reduction_named(const char *reduce) {
    if (strcmp(reduce, "add") == 0) return TP_PLACES_ADD;
    if (strcmp(reduce, "multiply") == 0) return TP_PLACES_MUL;
    return tp_fail(TP_RuntimeError, "reduce argument must be either add or multiply.");
}

int scatter__src_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    return scatter_into("scatter", TP_PLACES_SET, self, dim, index, src);
}
int scatter__value_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    return scatter_number("scatter", TP_PLACES_SET, self, dim, index, value);
}
int scatter__reduce_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, const char *reduce) {
    int how = reduction_named(reduce);
    return how < 0 ? -1 : scatter_into("scatter", (tp_places_op)how, self, dim, index, src);
}
int scatter__value_reduce_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value,
                              const char *reduce) {
    int how = reduction_named(reduce);
    return how < 0 ? -1 : scatter_number("scatter", (tp_places_op)how, self, dim, index, value);
}
int scatter_add__cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src) {
    return scatter_into("scatter_add", TP_PLACES_ADD, self, dim, index, src);
}

/* What a reduction starts from; false if there is no such reduction. */
static bool reduction_start(const char *reduce, tp_dtype d, tp_places_op *how, tp_scalar *start) {
    static const struct {
        const char *name;
        tp_places_op op;
    } known[] = {{"sum", TP_PLACES_ADD},
                 {"mean", TP_PLACES_ADD},
                 {"prod", TP_PLACES_MUL},
                 {"amin", TP_PLACES_MIN},
                 {"amax", TP_PLACES_MAX}};
    for (int64_t i = 0; i < TP_COUNTOF(known); i++) {
        if (strcmp(reduce, known[i].name)) continue;
        *how = known[i].op;
        *start = (tp_scalar){.kind = TP_SCALAR_INT, .i = *how == TP_PLACES_MUL};
        if (*how < TP_PLACES_MIN) return true;
        bool high = *how == TP_PLACES_MIN;
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
    if (!counts || scatter_number("scatter_reduce", TP_PLACES_ADD, counts, dim, index, TP_SCALAR_I(1)) < 0) return -1;
    if (tp_clamp_min_(counts, TP_SCALAR_I(1)) < 0) return -1;
    bool whole = tp_is_integral_dtype((tp_dtype)self->dtype);
    return tp_div__Tensor_mode(self, counts, whole ? "floor" : NULL);
}
/* scatter_reduce_.two(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) ->
 * Tensor(a!) */
int scatter_reduce__two_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, const char *reduce,
                            bool include_self) {
    tp_places_op how;
    tp_scalar start;
    if (!reduction_start(reduce, (tp_dtype)self->dtype, &how, &start))
        return tp_fail(TP_RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got %s", reduce);
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_scatter("scatter_reduce", self, d, index, src) < 0 ||
        check_same_dtype("scatter_reduce", self, src) < 0)
        return -1;
    if (!include_self && scatter_number("scatter_reduce", TP_PLACES_SET, self, dim, index, &start) < 0) return -1;
    if (scatter_into("scatter_reduce", how, self, dim, index, src) < 0) return -1;
    bool mean = strcmp(reduce, "mean") == 0 && index->numel && self->device.type != TP_DEVICE_META;
    return mean ? divide_by_counts(self, d, index, include_self) : 0;
}

/* ---- one-dimensional indices ---- */

/* The checked index as if it had the shape of source, which is self's but for dim. NULL on failure. */
static tp_tensor *spread_index(const tp_index_check *check, tp_tensor *self, tp_tensor *index,
                               const tp_tensor *source) {
    const char *op = check->op;
    int64_t strides[TP_MAX_DIMS] = {0}, dim = check->dim;
    if (index->ndim > 1) return tp_fail_null(TP_IndexError, "%s(): Index is supposed to be a vector", op);
    if (check_index_dtype(op, index) < 0) return NULL;
    bool fits = source->ndim == self->ndim || (self->ndim == 0 && source->ndim <= 1);
    for (int d = 0; fits && d < source->ndim; d++) fits = d == dim || source->sizes[d] == self->sizes[d];
    bool counted = index->numel == (source->ndim ? tp_size_at(tp_sizes(source), dim) : 1);
    if (!fits || !counted) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(source));
        tp_text_ints(&b, tp_sizes(self));
        return tp_fail_null(
            fits ? check->cls : TP_RuntimeError,
            "%s(): Source/destination tensor must have same slice shapes. Source %s does not go with destination %s at "
            "dimension %lld and %lld indices",
            op, a.text, b.text, (long long)dim, (long long)index->numel);
    }
    tp_autoref *places = checked_index(check, index);
    if (!places) return NULL;
    if (source->ndim) strides[dim] = 1;
    return tp_new_alias(places, tp_sizes(source), (tp_ints){strides, source->ndim}, places->byte_offset);
}
int tp_index_write(const char *op, tp_places_op how, tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source,
                   bool wrap) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || check_same_dtype(op, self, source) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_error_class cls = strcmp(op, "index_add") == 0 ? TP_RuntimeError : TP_IndexError;
    tp_index_check check = {cls, op, d, tp_size_at(tp_sizes(self), d), wrap};
    tp_autoref *places = spread_index(&check, self, index, source);
    if (!places) return -1;
    if (source->numel == 0 || self->device.type == TP_DEVICE_META) return 0;
    tp_autoref *from =
        tp_overlap_of(self, source) == TP_OVERLAP_NONE ? tp_retain(source) : tp_clone(source, TP_CONTIGUOUS_FORMAT);
    return from ? tp_run_places(how, self, d, places, from, &check) : -1;
}
/* index_add_(Tensor(a!) self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor(a!) */
int index_add__cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source, const tp_scalar *alpha) {
    if (tp_scalar_check_fits(alpha, (tp_dtype)self->dtype) < 0) return -1;
    tp_autoref *scaled = tp_scalar_equals_int(alpha, 1) ? tp_retain(source) : tp_mul_Scalar(source, alpha);
    return scaled ? tp_index_write("index_add", TP_PLACES_ADD, self, dim, index, scaled, false) : -1;
}
int index_copy__cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *source) {
    return tp_index_write("index_copy_", TP_PLACES_SET, self, dim, index, source, false);
}
/* index_fill_.int_Scalar(Tensor(a!) self, int dim, Tensor index, Scalar value) -> Tensor(a!) */
int index_fill__int_Scalar_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, const tp_scalar *value) {
    int64_t d = tp_wrap_dim(dim, self->ndim), sizes[TP_MAX_DIMS], zeros[TP_MAX_DIMS] = {0};
    if (d < 0) return -1;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim) sizes[d] = index->numel;
    tp_autoref *one = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    if (!one || tp_fill__Scalar(one, value) < 0) return -1;
    tp_autoref *source = tp_new_alias(one, (tp_ints){sizes, self->ndim}, (tp_ints){zeros, self->ndim}, 0);
    return source ? tp_index_write("index_fill_", TP_PLACES_SET, self, d, index, source, true) : -1;
}
int index_fill__int_Tensor_cpu(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *value) {
    tp_scalar number;
    if (value->ndim != 0)
        return tp_fail(TP_RuntimeError,
                       "index_fill_ only supports a 0-dimensional value tensor, but got tensor with %d dimension(s).",
                       value->ndim);
    return tp_item(value, &number) < 0 ? -1 : index_fill__int_Scalar_cpu(self, dim, index, &number);
}

/* ---- index_select ---- */

static tp_tensor *index_select_empty(tp_tensor *self, int64_t *dim, tp_tensor *index) {
    int64_t sizes[TP_MAX_DIMS];
    *dim = tp_wrap_dim(*dim, self->ndim);
    if (*dim < 0) return NULL;
    if (index->ndim > 1) return tp_fail_null(TP_IndexError, "index_select(): Index is supposed to be a vector");
    if (check_index_dtype("index_select", index) < 0) return NULL;
    if (self->ndim == 0 && index->numel != 1)
        return tp_fail_null(TP_RuntimeError, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                            (long long)index->numel);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    if (self->ndim) sizes[*dim] = index->numel;
    return tp_new_empty((tp_ints){sizes, self->ndim}, (tp_dtype)self->dtype, self->device);
}
tp_tensor *index_select_meta(tp_tensor *self, int64_t dim, tp_tensor *index) {
    return index_select_empty(self, &dim, index);
}

typedef struct {
    const char *from;
    char *to;
    const int64_t *index;
    int64_t n, size, bytes; /* rows chosen, rows there, bytes of a row */
} rows;
static void copy_rows(int64_t begin, int64_t end, void *context) {
    const rows *r = context;
    for (int64_t i = begin; i < end; i++)
        memcpy(r->to + i * r->bytes, r->from + (i / r->n * r->size + r->index[i % r->n]) * r->bytes, (size_t)r->bytes);
}
tp_tensor *tp_index_take(const char *op, tp_tensor *self, int64_t dim, tp_tensor *index, bool wrap) {
    tp_autoref *out = index_select_empty(self, &dim, index);
    tp_index_check check = {TP_IndexError, op, dim, out ? tp_size_at(tp_sizes(self), dim) : 0, wrap};
    tp_autoref *places = out ? checked_index(&check, index) : NULL;
    if (!places) return NULL;
    if (out->numel == 0) return tp_take(out);
    rows r = {.from = tp_data(self),
              .to = tp_data(out),
              .index = tp_data(places),
              .n = places->numel,
              .size = tp_size_at(tp_sizes(self), dim),
              .bytes = tp_itemsize((tp_dtype)self->dtype)};
    for (int64_t d = dim + 1; d < self->ndim; d++) r.bytes *= self->sizes[d];
    if (tp_is_contiguous(self) && r.bytes >= 64 && !tp_elsewhere(self))
        return tp_parallel_for(out->numel * tp_itemsize((tp_dtype)self->dtype) / r.bytes, TP_GRAIN / r.bytes + 1,
                               copy_rows, &r) < 0
                   ? NULL
                   : tp_take(out);
    check.wrap = wrap && tp_elsewhere(self); /* the CPU's are wrapped by now */
    tp_autoref *spread = spread_index(&check, self, places, out);
    return spread && tp_run_places(TP_PLACES_GET, self, dim, spread, out, &check) == 0 ? tp_take(out) : NULL;
}
/* index_select(Tensor self, int dim, Tensor index) -> Tensor */
tp_tensor *index_select_cpu(tp_tensor *self, int64_t dim, tp_tensor *index) {
    return tp_index_take("index_select", self, dim, index, false);
}
