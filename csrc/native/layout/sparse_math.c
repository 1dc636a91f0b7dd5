/* sparse_math.c: arithmetic of sparse tensors, element by element, and their softmax. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/pointwise/pointwise_checks.h"

#include <string.h>

static int fail_sizes(const char *op, const tp_tensor *a, const tp_tensor *b) {
    tp_autotext first = {0}, second = {0};
    tp_text_ints(&first, tp_sizes(a));
    tp_text_ints(&second, tp_sizes(b));
    return tp_fail(TP_RuntimeError, "%s: expected 'self' and 'other' to have same size, but %s and %s differ", op,
                   first.text, second.text);
}

static bool is_number(const tp_tensor *t) { return !tp_is_sparse(t) && t->ndim == 0; }

static tp_tensor *like_steal(tp_tensor *pattern, tp_tensor *values) {
    tp_autoref *own = values;
    return own ? tp__layout_like(pattern, own) : NULL;
}

static tp_dtype common_dtype(tp_tensor *a, tp_tensor *b) {
    return tp_result_type((tp_operand[]){{a, NULL}, {b, NULL}}, 2);
}

static tp_tensor *scaled(tp_tensor *values, const tp_scalar *alpha, tp_dtype dtype) {
    tp_autoref *cast = tp_to_dtype(values, dtype, false, false, TP_NO_FORMAT);
    if (!cast || tp_scalar_equals_int(alpha, 1)) return tp_take(cast);
    tp_autoref *product = tp_mul_Scalar(cast, alpha); /* bools become integers */
    return product ? tp_to_dtype(product, dtype, false, false, TP_NO_FORMAT) : NULL;
}

/* ---- sums ---- */

static tp_tensor *add_to_dense(tp_tensor *dense, tp_tensor *sparse, const tp_scalar *alpha) {
    if (!tp_same_sizes(dense, sparse)) return fail_sizes("add", dense, sparse), NULL;
    tp_dtype dtype = common_dtype(dense, sparse);
    tp_autocoo c = {0};
    if (dtype == TP_NO_DTYPE || tp_coo_of(sparse, &c) < 0) return NULL;
    int64_t room[TP_MAX_DIMS + 1], places = tp_checked_numel((tp_ints){sparse->sizes, c.sparse_dim});
    if (places < 0) return NULL;
    tp_autoref *keys = tp_keys_of(sparse, &c);
    tp_autoref *cast = keys ? tp_to_dtype(dense, dtype, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *flat = cast ? tp_reshape(cast, tp_rows_and_dense(sparse, &c, places, room)) : NULL;
    tp_autoref *values = flat ? scaled(c.values, alpha, dtype) : NULL;
    tp_autoref *sum = values ? tp_index_add(flat, 0, keys, values, TP_SCALAR_I(1)) : NULL;
    return sum ? tp_reshape(sum, tp_sizes(dense)) : NULL;
}

static tp_tensor *fail_sum_of_sizes(const tp_tensor *a, const tp_tensor *b) {
    tp_autotext first = {0}, second = {0};
    tp_text_ints(&first, tp_sizes(a));
    tp_text_ints(&second, tp_sizes(b));
    return tp_fail_null(TP_RuntimeError,
                        "add: Expected input tensors to have the same shape, but self is of %s and other of %s",
                        first.text, second.text);
}

/* A sum of which one has no values: those of the other stay as they are, merged or not. */
static tp_tensor *add_to_none(tp_tensor *self, tp_tensor *values, const tp_coo *own, tp_tensor *of) {
    tp_autoref *made = tp_make_coo_steal(tp_retain(own->indices), tp_retain(values), tp_sizes(of), own->coalesced);
    return made ? tp_as_layout_steal(self, tp_take(made)) : NULL;
}

/* Whether the sum of two COO tensors is the elements of both, one after the other: as in PyTorch where the values of
 * one do not lie in a row, a gradient's that is expanded for instance. */
static int stays_apart(tp_tensor *self, tp_tensor *other) {
    if (tp_layout_of(self) != TP_SPARSE_COO) return 0;
    tp_autoref *a = tp__layout_values(self), *b = a ? tp__layout_values(other) : NULL;
    return b ? !(tp_is_contiguous(a) && tp_is_contiguous(b)) : -1;
}

static tp_tensor *add_sparse(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    if (!tp_same_sizes(self, other))
        return tp_layout_of(self) == TP_SPARSE_COO ? fail_sizes("add", self, other),
               NULL                                : fail_sum_of_sizes(self, other);
    if (tp_layout_of(self) != tp_layout_of(other))
        return tp_fail_null(
            TP_RuntimeError,
            "add: a tensor of the layout %s and one of the layout %s have no sum: to_sparse(layout=...) "
            "gives one of them the other's",
            tp_layouts[tp_layout_of(self)].name, tp_layouts[tp_layout_of(other)].name);
    bool same;
    tp_dtype dtype = common_dtype(self, other);
    int apart = dtype == TP_NO_DTYPE ? -1 : stays_apart(self, other);
    if (apart < 0 || tp__same_pattern(self, other, &same) < 0) return NULL;
    if (same && !apart) {
        tp_autoref *a = tp__layout_values(self), *b = tp__layout_values(other);
        tp_autoref *more = a && b ? scaled(b, alpha, dtype) : NULL;
        return like_steal(self, more ? tp_add_Tensor(a, more, TP_SCALAR_I(1)) : NULL);
    }
    tp_autocoo a = {0}, b = {0};
    if (tp_coo_of(self, &a) < 0 || tp_coo_of(other, &b) < 0) return NULL;
    const bool none = !a.indices->sizes[1] || !b.indices->sizes[1];
    if (a.sparse_dim != b.sparse_dim && !none)
        return tp_fail_null(TP_RuntimeError,
                            "add: expected 'self' and 'other' to have same number of sparse dimensions, but %lld and "
                            "%lld differ",
                            (long long)a.sparse_dim, (long long)b.sparse_dim);
    tp_autoref *first = tp_to_dtype(a.values, dtype, false, false, TP_NO_FORMAT),
               *second = first ? scaled(b.values, alpha, dtype) : NULL;
    if (!second) return NULL;
    if (none && a.sparse_dim != b.sparse_dim)
        return b.indices->sizes[1] ? add_to_none(self, second, &b, other) : add_to_none(self, first, &a, self);
    tp_autoref *joined = tp_make_coo_steal(tp_cat((tp_tensors){(tp_tensor *[]){a.indices, b.indices}, 2}, 1),
                                           tp_cat((tp_tensors){(tp_tensor *[]){first, second}, 2}, 0), tp_sizes(self),
                                           none && (b.indices->sizes[1] ? b : a).coalesced);
    if (none || apart) return joined ? tp_as_layout_steal(self, tp_take(joined)) : NULL;
    tp_autoref *sum = joined ? tp_as_layout_steal(self, tp__coalesce(joined)) : NULL;
    bool known =
        (a.coalesced && b.coalesced) || tp_layout_of(self) != TP_SPARSE_COO; /* as PyTorch: each element once */
    return sum && !known && tp__coalesced_(sum, false) < 0 ? NULL : tp_take(sum);
}

/* add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor */
tp_tensor *add_layout(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    bool in_lines = self->keys & TP_BIT(SparseCsr);
    if (tp_refuse_alpha(&(tp_pointwise){.name = "add"}, (tp_operand[]){{self, NULL}, {other, NULL}}, alpha) < 0)
        return NULL;
    if (in_lines && !tp_is_sparse(other) && tp_same_sizes(self, other)) {
        bool once = tp_scalar_equals_int(alpha, 1); /* and bools stay bools */
        tp_autoref *more = once ? tp_retain(other) : tp_mul_Scalar(other, alpha);
        return more ? tp_add_Tensor(more, self, TP_SCALAR_I(1)) : NULL;
    }
    if (!tp_is_sparse(other) || (is_number(self) && !is_number(other)))
        return tp_fail_null(TP_RuntimeError, "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
    return tp_is_sparse(self) ? add_sparse(self, other, alpha) : add_to_dense(self, other, alpha);
}

/* A sparse tensor added to a dense one where it stands: what it has nothing for is not touched. 0 if it does not fit
 * so (another dtype, rows that are not one after the other), 1 if it is done. */
static int add_in_place(tp_tensor *dense, tp_tensor *sparse, const tp_scalar *alpha) {
    if (!tp_same_sizes(dense, sparse)) return fail_sizes("add", dense, sparse);
    tp_autocoo c = {0};
    tp_dtype dtype = common_dtype(dense, sparse);
    if (dtype == TP_NO_DTYPE || tp_coo_of(sparse, &c) < 0) return -1;
    if (dtype != (tp_dtype)dense->dtype || c.sparse_dim == 0) return 0;
    if (c.sparse_dim > 1 && !tp_is_contiguous(dense)) return 0;
    int64_t room[TP_MAX_DIMS + 1], places = tp_checked_numel((tp_ints){sparse->sizes, c.sparse_dim});
    tp_autoref *keys = places < 0 ? NULL : tp_keys_of(sparse, &c);
    tp_autoref *values = keys ? scaled(c.values, alpha, dtype) : NULL;
    tp_autoref *rows = !values             ? NULL
                       : c.sparse_dim == 1 ? tp_retain(dense)
                                           : tp_view(dense, tp_rows_and_dense(sparse, &c, places, room));
    return rows && tp_index_add_(rows, 0, keys, values, TP_SCALAR_I(1)) == 0 ? 1 : -1;
}

/* add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!) */
int add__layout(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    if (tp_refuse_alpha(&(tp_pointwise){.name = "add_"}, (tp_operand[]){{self, NULL}, {other, NULL}}, alpha) < 0)
        return -1;
    if (!tp_is_sparse(self) && tp_is_sparse(other)) {
        int done = add_in_place(self, other, alpha);
        if (done) return done < 0 ? -1 : 0;
    }
    tp_autoref *made = tp_add_Tensor(self, other, alpha);
    return made ? tp_write_layout(self, made, "add_.Tensor") : -1;
}

/* sub_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!) */
int sub__layout(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    tp_scalar minus = tp_scalar_neg(alpha);
    return add__layout(self, other, &minus);
}

/* sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor */
tp_tensor *sub_layout(tp_tensor *self, tp_tensor *other, const tp_scalar *alpha) {
    tp_scalar minus = tp_scalar_neg(alpha);
    return tp_add_Tensor(self, other, &minus);
}

/* ---- products and quotients ---- */

/* Where both have something. */
static tp_tensor *mul_sparse(tp_tensor *self, tp_tensor *other) {
    if (!tp_same_sizes(self, other)) return fail_sizes("mul", self, other), NULL;
    bool same;
    tp_autoref *a = tp__merged(self), *b = tp__merged(other);
    if (!a || !b || tp__same_pattern(a, b, &same) < 0) return NULL;
    tp_autoref *theirs = tp__layout_values(b), *mine = tp__layout_values(a);
    if (!mine || !theirs) return NULL;
    if (same) return like_steal(a, tp_mul_Tensor(mine, theirs));
    tp_autoref *whole = tp__as_coo(a), *first = whole ? tp__coalesce(whole) : NULL;
    tp_autoref *rest = tp__as_coo(b), *second = rest ? tp__coalesce(rest) : NULL;
    tp_autocoo c = {0}, d = {0};
    if (!first || !second || tp_coo_of(first, &c) < 0 || tp_coo_of(second, &d) < 0) return NULL;
    if (c.sparse_dim != d.sparse_dim)
        return tp_fail_null(TP_RuntimeError, "mul: sparse tensors of different numbers of sparse dimensions");
    tp_ints size = {self->sizes, c.sparse_dim};
    tp_autoref *have = tp__coo_keys(c.indices, size), *want = have ? tp__coo_keys(d.indices, size) : NULL;
    tp_autoref *hit = want ? tp_isin_Tensor_Tensor(have, want, true, false) : NULL;
    tp_autoref *places = hit ? tp_where_true(hit) : NULL;
    tp_autoref *indices = places ? tp_index_select(c.indices, 1, places) : NULL;
    tp_autoref *left = indices ? tp_index_select(c.values, 0, places) : NULL;
    tp_autoref *pattern = left ? tp__coo(indices, left, tp_sizes(self), true) : NULL;
    tp_autoref *right = pattern ? tp__layout_at(second, pattern) : NULL;
    return tp_as_layout_steal(self, right ? like_steal(pattern, tp_mul_Tensor(left, right)) : NULL);
}

/* A sparse tensor of a larger size, whose values are repeated. */
static tp_tensor *expanded(tp_tensor *self, tp_ints size) {
    tp_autoref *made = tp__as_coo(self);
    for (int64_t d = self->ndim; made && d < size.size; d++) {
        tp_tensor *next = tp_unsqueeze(made, 0);
        tp_release(made);
        made = next;
    }
    for (int64_t d = 0; made && d < size.size; d++) {
        if (made->sizes[d] == size.data[d]) continue;
        tp_autoref *places = tp_zeros(TP_INTS(size.data[d]), TP_INT64, TP_STRIDED, self->device, -1);
        tp_tensor *next = places ? tp_index_select(made, d, places) : NULL;
        tp_release(made);
        made = next;
    }
    return tp_take(made);
}

/* mul.Tensor(Tensor self, Tensor other) -> Tensor */
tp_tensor *mul_layout(tp_tensor *self, tp_tensor *other) {
    if (!tp_is_sparse(self)) {
        tp_tensor *swap = self;
        self = other, other = swap;
    }
    if (tp_is_sparse(other)) return mul_sparse(self, other);
    tp_autoref *values = tp__layout_values(self);
    if (!values) return NULL;
    if (is_number(other)) return like_steal(self, tp_mul_Tensor(values, other));
    int64_t wide[TP_MAX_DIMS];
    int n = tp_broadcast_sizes(tp_sizes(self), tp_sizes(other), wide);
    if (n < 0) return NULL;
    if (!tp_ints_equal(tp_sizes(self), (tp_ints){wide, n})) {
        tp_autoref *whole = expanded(self, (tp_ints){wide, n});
        return whole ? tp_mul_Tensor(whole, other) : NULL;
    }
    tp_autoref *there = tp__layout_at(other, self);
    return there ? like_steal(self, tp_mul_Tensor(values, there)) : NULL;
}

/* div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor */
tp_tensor *div_mode_layout(tp_tensor *self, tp_tensor *other, const char *rounding_mode) {
    if (!tp_is_sparse(self) || !is_number(other)) {
        tp_autotext text = {0};
        tp_text_ints(&text, tp_sizes(other));
        return tp_fail_null(
            TP_RuntimeError,
            "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape %s for divisor)", text.text);
    }
    tp_autoref *merged = rounding_mode ? tp__merged(self) : tp_retain(self);
    tp_autoref *values = merged ? tp__layout_values(merged) : NULL;
    return values ? like_steal(merged, tp_div_Tensor_mode(values, other, rounding_mode)) : NULL;
}
tp_tensor *div_layout(tp_tensor *self, tp_tensor *other) { return div_mode_layout(self, other, NULL); }

/* pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor */
tp_tensor *pow_layout(tp_tensor *self, const tp_scalar *exponent) {
    if (exponent->kind == TP_SCALAR_COMPLEX || !(tp_scalar_double(exponent) > 0))
        return tp_fail_null(TP_RuntimeError, "pow: the exponent of a sparse tensor is a number greater than 0");
    tp_autoref *merged = tp__merged(self), *values = merged ? tp__layout_values(merged) : NULL;
    return values ? like_steal(merged, tp_pow_Tensor_Scalar(values, exponent)) : NULL;
}

/* ---- reductions of everything ---- */

static tp_tensor *merged_values(tp_tensor *self) {
    tp_autoref *merged = tp__merged(self);
    return merged ? tp__layout_values(merged) : NULL;
}

/* linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, ...) -> Tensor */
tp_tensor *linalg_vector_norm_layout(tp_tensor *self, const tp_scalar *ord, tp_ints dim, bool keepdim, tp_dtype dtype) {
    bool seen[TP_MAX_DIMS] = {0};
    int64_t whole = dim.size > 0 ? 0 : self->ndim;
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], self->ndim);
        if (d < 0) return NULL;
        whole += !seen[d], seen[d] = true;
    }
    if (whole != self->ndim || keepdim)
        return tp_fail_null(TP_RuntimeError, "norm: a sparse tensor has it over all of its dimensions only");
    tp_autoref *values = merged_values(self);
    return values ? tp_linalg_vector_norm(values, ord, TP_NO_INTS, false, dtype) : NULL;
}

/* norm.Scalar(Tensor self, Scalar p=2) -> Tensor */
tp_tensor *norm_layout(tp_tensor *self, const tp_scalar *p) {
    tp_autoref *values = merged_values(self);
    return values ? tp_norm_Scalar(values, p) : NULL;
}

/* any(Tensor self) -> Tensor */
tp_tensor *any_layout(tp_tensor *self) {
    tp_autoref *values = merged_values(self);
    return values ? tp_any(values) : NULL;
}

/* ---- softmax: what is not there counts as minus infinity ---- */

/* Which line along the dimension each value is in; NULL without an error for a dense dimension. */
static int line_of(const tp_tensor *t, const tp_coo *c, int64_t d, tp_tensor **line) {
    *line = NULL;
    if (d >= c->sparse_dim) return 0;
    int64_t rows[TP_MAX_DIMS], size[TP_MAX_DIMS], n = 0;
    for (int64_t i = 0; i < c->sparse_dim; i++)
        if (i != d) rows[n] = i, size[n++] = t->sizes[i];
    tp_autoref *others = tp_rows_of(c->indices, (tp_ints){rows, n});
    tp_autoref *keys = others ? tp__coo_keys(others, (tp_ints){size, n}) : NULL;
    tp_tensor3 found = keys ? tp__unique2(keys, true, true, false) : (tp_tensor3){{NULL}};
    tp_release(found.v[0]);
    tp_release(found.v[2]);
    *line = found.v[1];
    return *line ? 0 : -1;
}

/* Values less the largest of their line, and the sums of the exponentials of these, value by value. */
static tp_tensor2 shifted(tp_tensor *values, tp_tensor *line) {
    tp_tensor2 none = {{NULL, NULL}};
    int64_t shape[TP_MAX_DIMS + 1], ones[TP_MAX_DIMS + 1];
    for (int d = 0; d < values->ndim; d++) shape[d] = values->sizes[d], ones[d] = d == 0 ? -1 : 1;
    shape[0] = values->sizes[0]; /* there are no more lines than values */
    tp_autoref *column = tp_reshape(line, (tp_ints){ones, values->ndim});
    tp_autoref *spread = column ? tp_expand(column, tp_sizes(values), false) : NULL;
    tp_autoref *zeros =
        spread ? tp_zeros((tp_ints){shape, values->ndim}, (tp_dtype)values->dtype, TP_STRIDED, values->device, -1)
               : NULL;
    tp_autoref *plain = zeros ? tp_detach(values) : NULL;
    tp_autoref *most = plain ? tp_scatter_reduce_two(zeros, 0, spread, plain, "amax", false) : NULL;
    tp_autoref *largest = most ? tp_index_select(most, 0, line) : NULL;
    tp_autoref *less = largest ? tp_sub_Tensor(values, largest, TP_SCALAR_I(1)) : NULL;
    tp_autoref *powers = less ? tp_exp(less) : NULL;
    tp_autoref *sums = powers ? tp_index_add(zeros, 0, line, powers, TP_SCALAR_I(1)) : NULL;
    tp_tensor *each = sums ? tp_index_select(sums, 0, line) : NULL;
    return each ? (tp_tensor2){{tp_take(less), each}} : none;
}

static tp_tensor *softmax_of(tp_tensor *self, int64_t dim, tp_dtype dtype, bool log) {
    if (!tp_is_sparse(self)) return tp_fail_null(TP_RuntimeError, "sparse.softmax: expected a sparse tensor");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *whole = d < 0 ? NULL : tp__as_coo(self), *merged = whole ? tp__coalesce(whole) : NULL;
    tp_autocoo c = {0};
    if (!merged || tp_coo_of(merged, &c) < 0) return NULL;
    tp_autoref *values = dtype < 0 ? tp_retain(c.values) : tp_to_dtype(c.values, dtype, false, false, TP_NO_FORMAT);
    tp_autoref *line = NULL;
    if (!values || line_of(self, &c, d, &line) < 0) return NULL;
    tp_tensor *made = NULL;
    if (!line) {
        int64_t along = d - c.sparse_dim + 1;
        made = log ? tp_log_softmax_int(values, along, TP_NO_DTYPE) : tp_softmax_int(values, along, TP_NO_DTYPE);
    } else {
        tp_tensor2 both = shifted(values, line);
        tp_autoref *less = both.v[0], *sums = both.v[1];
        if (!less) return NULL;
        tp_autoref *part = log ? tp_log(sums) : tp_exp(less);
        made = !part ? NULL : log ? tp_sub_Tensor(less, part, TP_SCALAR_I(1)) : tp_div_Tensor(part, sums);
    }
    tp_autoref *own = made;
    return own ? tp__coo(c.indices, own, tp_sizes(self), true) : NULL;
}

/* _sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *_sparse_softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return softmax_of(self, dim, dtype, false);
}
/* _sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *_sparse_log_softmax_int_composite(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return softmax_of(self, dim, dtype, true);
}

/* threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor: at the places of the gradient. */
tp_tensor *threshold_backward_layout(tp_tensor *grad_output, tp_tensor *self, const tp_scalar *threshold) {
    if (!tp_is_sparse(grad_output) || !tp_same_sizes(grad_output, self))
        return tp_fail_null(TP_RuntimeError, "threshold_backward: a sparse gradient, of the size of a sparse tensor");
    tp_autoref *merged = tp__merged(grad_output), *values = merged ? tp__layout_values(merged) : NULL,
               *there = values ? tp__layout_at(self, merged) : NULL;
    return there ? like_steal(merged, tp_threshold_backward(values, there, threshold)) : NULL;
}
