/* unique.c: distinct elements and slices: _unique2, unique_dim, the consecutive forms, isin. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/scalar_math.h"
#include "prim/transfer.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "native/common/meta.h"
#include "native/index/order.h"

#include <string.h>

static const tp_tensor3 failed = {{NULL, NULL, NULL}};

/* The distinct items of `from` along dimension 0, in order or as neighbours; what is not asked for is empty. */
static tp_tensor3 distinct(const char *op, tp_tensor *from, bool sorted, bool return_inverse, bool return_counts,
                           tp_ints inverse_shape) {
    tp_autoref *flat = tp_reshape(from, TP_INTS(-1)), *wide = flat ? tp_comparable(op, flat, 0) : NULL,
               *rows = wide ? tp_reshape(wide, tp_sizes(from)) : NULL,
               *none = rows ? tp_new_empty(TP_INTS(0), TP_INT64, from->device) : NULL;
    if (!none) return failed;
    tp_tensor3 found = rows->numel ? tp_prim_distinct(rows, sorted)
                                   : (tp_tensor3){{tp_retain(none), tp_retain(none), tp_retain(none)}};
    tp_autoref *firsts = found.v[0], *counts = found.v[1], *inverse = found.v[2];
    if (!firsts) return failed;
    tp_autoref *values = tp_index_select(from, 0, firsts);
    tp_autoref *shaped = !values ? NULL : return_inverse ? tp_reshape(inverse, inverse_shape) : tp_retain(none);
    if (!shaped) return failed;
    return (tp_tensor3){{tp_take(values), tp_take(shaped), tp_retain(return_counts ? counts : none)}};
}

static int refuse_complex(const char *op, const tp_tensor *self) {
    if (!tp_is_complex(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

/* ---- elements ---- */

/* _unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
 * Tensor) */
tp_tensor3 _unique2_dense(tp_tensor *given, bool sorted TP_UNUSED, bool return_inverse, bool return_counts) {
    tp_autoref *self = tp_still(given);
    if (!self || refuse_complex("unique", self) < 0) return failed;
    tp_autoref *line = tp_reshape(self, TP_INTS(-1));
    return line ? distinct("unique", line, true, return_inverse, return_counts, tp_sizes(self)) : failed;
}
/* _unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor) */
tp_tensor2 _unique_dense(tp_tensor *self, bool sorted, bool return_inverse) {
    tp_tensor3 all = _unique2_dense(self, sorted, return_inverse, false);
    tp_release(all.v[2]);
    return (tp_tensor2){{all.v[0], all.v[1]}};
}

/* Whether each element of a line differs from the one before it, as the first one does. */
static tp_tensor *begin_runs(tp_tensor *line) {
    if (line->numel == 0) return tp_new_empty(TP_INTS(0), TP_BOOL, line->device);
    tp_autoref *left = tp_narrow(line, 0, 0, line->numel - 1),
               *right = left ? tp_narrow(line, 0, 1, line->numel - 1) : NULL,
               *differs = right ? tp_ne_Tensor(left, right) : NULL;
    return differs ? tp_constant_pad_nd(differs, TP_INTS(1, 0), TP_SCALAR_I(1)) : NULL;
}
/* How long each run is. */
static tp_tensor *count_runs(tp_tensor *begins) {
    tp_autoref *column = tp_nonzero(begins), *places = column ? tp_reshape(column, TP_INTS(-1)) : NULL,
               *ends = places ? tp_constant_pad_nd(places, TP_INTS(0, 1), TP_SCALAR_I(begins->numel)) : NULL;
    return ends ? tp_diff(ends, 1, -1, NULL, NULL) : NULL;
}
/* Equal neighbours among a line's elements: one of each run; what is not asked for is empty. */
static tp_tensor3 runs_of(tp_tensor *line, bool return_inverse, bool return_counts, tp_ints inverse_shape) {
    tp_autoref *begins = begin_runs(line), *values = begins ? tp_masked_select(line, begins) : NULL,
               *none = values ? tp_new_empty(TP_INTS(0), TP_INT64, line->device) : NULL,
               *counts = !none           ? NULL
                         : return_counts ? count_runs(begins)
                                         : tp_retain(none),
               *number = !counts          ? NULL
                         : return_inverse ? tp_cumsum(begins, 0, TP_NO_DTYPE)
                                          : tp_retain(none);
    if (!number || (return_inverse && tp_sub__Scalar(number, TP_SCALAR_I(1), TP_SCALAR_I(1)) < 0)) return failed;
    tp_autoref *inverse = return_inverse ? tp_reshape(number, inverse_shape) : tp_retain(number);
    return inverse ? (tp_tensor3){{tp_take(values), tp_take(inverse), tp_take(counts)}} : failed;
}

/* ---- slices ---- */

static tp_tensor3 distinct_slices(const char *op, tp_tensor *given, int64_t dim, bool sorted, bool return_inverse,
                                  bool return_counts) {
    tp_autoref *self = tp_still(given);
    if (!self) return failed;
    int64_t d = refuse_complex(op, self) < 0 ? -1 : tp_wrap_own_dim(dim, self);
    if (d < 0) return failed;
    if (self->numel == 0) {
        int zeros = 0;
        for (int i = 0; i < self->ndim; i++) zeros += self->sizes[i] == 0;
        if (self->sizes[d] != 0 || zeros != 1) {
            tp_fail(TP_RuntimeError,
                    "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
            return failed;
        }
        tp_autoref *none = tp_new_empty(TP_INTS(0), TP_INT64, self->device),
                   *nothing = none ? tp_new_empty(TP_INTS(0), TP_INT64, self->device) : NULL,
                   *same = nothing ? tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device) : NULL;
        return same ? (tp_tensor3){{tp_take(same), tp_take(none), tp_take(nothing)}} : failed;
    }
    tp_autoref *moved = tp_movedim_int(self, d, 0);
    tp_tensor3 out =
        moved ? distinct(op, moved, sorted, return_inverse, return_counts, TP_INTS(self->sizes[d])) : failed;
    tp_autoref *slices = out.v[0], *inverse = out.v[1], *counts = out.v[2];
    tp_autoref *values = slices ? tp_movedim_int(slices, 0, d) : NULL;
    return values ? (tp_tensor3){{tp_take(values), tp_take(inverse), tp_take(counts)}} : failed;
}
/* unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 unique_dim_dense(tp_tensor *self, int64_t dim, bool sorted, bool return_inverse, bool return_counts) {
    (void)sorted;
    return distinct_slices("unique_dim", self, dim, true, return_inverse, return_counts);
}
/* unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
 * Tensor) */
tp_tensor3 unique_dim_consecutive_dense(tp_tensor *self, int64_t dim, bool return_inverse, bool return_counts) {
    return distinct_slices("unique_dim", self, dim, false, return_inverse, return_counts);
}
/* unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 unique_consecutive_dense(tp_tensor *given, bool return_inverse, bool return_counts, tp_opt_int dim) {
    if (dim.has) return unique_dim_consecutive_dense(given, dim.value, return_inverse, return_counts);
    tp_autoref *self = tp_still(given);
    if (!self || refuse_complex("unique", self) < 0) return failed;
    tp_autoref *line = tp_reshape(self, TP_INTS(-1));
    return line ? runs_of(line, return_inverse, return_counts, tp_sizes(self)) : failed;
}

/* ---- isin ---- */

static int check_isin(tp_dtype d) {
    if (d != TP_BOOL && !tp_is_complex_dtype(d)) return 0;
    return tp_fail(TP_RuntimeError, "Unsupported input type encountered for isin(): %s", tp_scalar_type_name(d));
}
/* The test elements in order, and each element's place among them. */
static int find_members(tp_tensor *elements, tp_tensor *tests, bool invert, tp_tensor *out) {
    if (tests->numel == 0) return tp_fill_data(out, TP_SCALAR_I(invert));
    tp_autoref *x = tp_to_device(elements, out->device, (tp_dtype)elements->dtype, false, false, TP_NO_FORMAT);
    tp_autoref *y = x ? tp_to_device(tests, out->device, (tp_dtype)tests->dtype, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *line = y ? tp_reshape(y, TP_INTS(-1)) : NULL;
    tp_tensor2 both = line ? tp_sort(line, 0, false) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *sorted = both.v[0], *order = both.v[1];
    tp_autoref *places = order ? tp_searchsorted_Tensor(sorted, x, false, false, NULL, NULL) : NULL;
    tp_autoref *inside = places ? tp_clamp_max(places, TP_SCALAR_I(line->numel - 1)) : NULL;
    tp_autoref *flat = inside ? tp_reshape(inside, TP_INTS(-1)) : NULL;
    tp_autoref *found = flat ? tp_index_select(sorted, 0, flat) : NULL;
    tp_autoref *there = found ? tp_reshape(found, tp_sizes(x)) : NULL;
    tp_autoref *made = !there ? NULL : invert ? tp_ne_Tensor(there, x) : tp_eq_Tensor(there, x);
    return made ? tp_copy_data(out, made) : -1;
}
static int isin(tp_tensor *given, tp_tensor *given_tests, bool invert, tp_tensor *out) {
    if (out->numel == 0) return 0;
    tp_autoref *elements = tp_still(given), *tests = elements ? tp_still(given_tests) : NULL;
    if (!tests) return -1;
    tp_dtype common = tp_result_type((tp_operand[]){{elements, NULL}, {tests, NULL}}, 2);
    if (common == TP_NO_DTYPE) return -1;
    common = tp_compute_dtype(common);
    tp_autoref *a = tp_to_dtype(elements, common, false, false, TP_NO_FORMAT),
               *b = a ? tp_to_dtype(tests, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *x = b ? tp_contiguous(a, TP_CONTIGUOUS_FORMAT) : NULL,
               *y = x ? tp_contiguous(b, TP_CONTIGUOUS_FORMAT) : NULL;
    return y ? find_members(x, y, invert, out) : -1;
}
static int isin_output(tp_meta *m, const tp_tensor *elements, tp_dtype a, tp_dtype b, tp_device device) {
    if (check_isin(a) < 0 || check_isin(b) < 0) return -1;
    return tp_meta_output(m, 0, elements ? tp_sizes(elements) : TP_EMPTY_INTS, TP_NO_INTS, TP_BOOL, device);
}
/* isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
 */
int isin_Tensor_Tensor_meta(tp_meta *m, tp_tensor *elements, tp_tensor *test_elements, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, elements, (tp_dtype)elements->dtype, (tp_dtype)test_elements->dtype, elements->device);
}
int isin_Tensor_Tensor_dense(tp_tensor *elements, tp_tensor *test_elements, bool assume_unique, bool invert,
                             tp_tensor *out) {
    (void)assume_unique;
    return isin(elements, test_elements, invert, out);
}
/* isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Tensor_Scalar_meta(tp_meta *m, tp_tensor *elements, const tp_scalar *test_element, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, elements, (tp_dtype)elements->dtype, tp_scalar_dtype(test_element), elements->device);
}
int isin_Tensor_Scalar_dense(tp_tensor *elements, const tp_scalar *test_element, bool assume_unique, bool invert,
                             tp_tensor *out) {
    (void)assume_unique;
    tp_autoref *number = tp_number_beside(test_element, elements);
    return number ? isin(elements, number, invert, out) : -1;
}
/* isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor */
int isin_Scalar_Tensor_meta(tp_meta *m, const tp_scalar *element, tp_tensor *test_elements, bool assume_unique,
                            bool invert) {
    (void)assume_unique, (void)invert;
    return isin_output(m, NULL, tp_scalar_dtype(element), (tp_dtype)test_elements->dtype, test_elements->device);
}
int isin_Scalar_Tensor_dense(const tp_scalar *element, tp_tensor *test_elements, bool assume_unique, bool invert,
                             tp_tensor *out) {
    (void)assume_unique;
    tp_autoref *number = tp_number_beside(element, test_elements);
    return number ? isin(number, test_elements, invert, out) : -1;
}
