/* vector.c: small products and combinations of vectors and matrices, all of them composites: cross, kron, addr,
 * block_diag, cartesian_prod, combinations. */
#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "native/common/table_beside.h"

#include <string.h>

/* ---- cross ---- */

/* linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor */
tp_tensor *linalg_cross_composite(tp_tensor *self, tp_tensor *other, int64_t dim) {
    if (self->ndim != other->ndim)
        return tp_fail_null(TP_RuntimeError, "linalg.cross: inputs must have the same number of dimensions.");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || tp_check_dtype("linalg.cross", "other", other, (tp_dtype)self->dtype) < 0) return NULL;
    int64_t a = tp_size_at(tp_sizes(self), d), b = tp_size_at(tp_sizes(other), d);
    if (a != 3 || b != 3 || self->ndim == 0)
        return tp_fail_null(TP_RuntimeError,
                            "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld", (long long)dim,
                            (long long)a, (long long)b);
    tp_ints dims = {&d, 1};
    tp_autoref *a1 = tp_roll(self, TP_INTS(-1), dims), *b2 = a1 ? tp_roll(other, TP_INTS(-2), dims) : NULL;
    tp_autoref *a2 = b2 ? tp_roll(self, TP_INTS(-2), dims) : NULL, *b1 = a2 ? tp_roll(other, TP_INTS(-1), dims) : NULL;
    tp_autoref *plus = b1 ? tp_mul_Tensor(a1, b2) : NULL, *minus = plus ? tp_mul_Tensor(a2, b1) : NULL;
    return minus ? tp_sub_Tensor(plus, minus, TP_SCALAR_I(1)) : NULL;
}
/* cross(Tensor self, Tensor other, int? dim=None) -> Tensor */
tp_tensor *cross_composite(tp_tensor *self, tp_tensor *other, tp_opt_int dim) {
    if (dim.has) return tp_linalg_cross(self, other, dim.value);
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_broadcast_sizes(tp_sizes(self), tp_sizes(other), sizes);
    if (n < 0) return NULL;
    for (int d = 0; d < n; d++)
        if (sizes[d] == 3) return tp_linalg_cross(self, other, d);
    return tp_fail_null(TP_RuntimeError, "cross: no dimension of size 3 in input");
}

/* ---- kron, addr ---- */

/* kron(Tensor self, Tensor other) -> Tensor */
tp_tensor *kron_composite(tp_tensor *self, tp_tensor *other) {
    int64_t a[TP_MAX_DIMS * 2], b[TP_MAX_DIMS * 2], out[TP_MAX_DIMS];
    int n = self->ndim > other->ndim ? self->ndim : other->ndim;
    if (2 * n > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "kron: more than %d dimensions are too many", TP_MAX_DIMS / 2);
    for (int d = 0; d < n; d++) {
        int i = d - (n - self->ndim), j = d - (n - other->ndim);
        a[2 * d] = i < 0 ? 1 : self->sizes[i];
        a[2 * d + 1] = b[2 * d] = 1;
        b[2 * d + 1] = j < 0 ? 1 : other->sizes[j];
        out[d] = a[2 * d] * b[2 * d + 1];
    }
    tp_autoref *x = tp_reshape(self, (tp_ints){a, 2 * n}), *y = x ? tp_reshape(other, (tp_ints){b, 2 * n}) : NULL;
    tp_autoref *product = y ? tp_mul_Tensor(x, y) : NULL;
    return product ? tp_reshape(product, (tp_ints){out, n}) : NULL;
}

static int check_factor(const char *name, const tp_scalar *factor, tp_dtype result) {
    if (factor->kind == TP_SCALAR_BOOL && result != TP_BOOL)
        return tp_fail(TP_RuntimeError, "addr: Boolean %s only supported for Boolean results.", name);
    if (tp_dtype_categories[result] < TP_FLOATING && factor->kind >= TP_SCALAR_FLOAT)
        return tp_fail(TP_RuntimeError,
                       "addr: For integral input tensors, argument %s must not be a floating point number.", name);
    return tp_scalar_check_fits(factor, result) < 0 ? tp_error_prefix("addr: ") : 0;
}
/* t times a factor, which among bools is one. */
static tp_tensor *scaled(tp_tensor *t, const tp_scalar *factor) {
    if (tp_scalar_equals_int(factor, 1)) return tp_retain(t);
    tp_scalar truth = {.kind = TP_SCALAR_BOOL, .b = !tp_scalar_equals_int(factor, 0)};
    return tp_mul_Scalar(t, t->dtype == TP_BOOL ? &truth : factor);
}
/* addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor */
tp_tensor *addr_composite(tp_tensor *self, tp_tensor *vec1, tp_tensor *vec2, const tp_scalar *beta,
                          const tp_scalar *alpha) {
    bool first = vec1->ndim != 1;
    if (first || vec2->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "addr: Expected 1-D argument vec%d, but got %d-D", first ? 1 : 2,
                            (first ? vec1 : vec2)->ndim);
    tp_dtype common = tp_result_type((tp_operand[]){{self, NULL}, {vec1, NULL}, {vec2, NULL}}, 3);
    if (common == TP_NO_DTYPE || check_factor("beta", beta, common) < 0 || check_factor("alpha", alpha, common) < 0)
        return NULL;
    tp_autoref *column = tp_to_dtype(vec1, common, false, false, TP_NO_FORMAT),
               *row = column ? tp_to_dtype(vec2, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *product = row ? tp_outer(column, row) : NULL, *outer = product ? scaled(product, alpha) : NULL;
    tp_autoref *own = outer ? tp_to_dtype(self, common, false, false, TP_NO_FORMAT) : NULL,
               *wide = own ? tp_expand(own, tp_sizes(outer), false) : NULL;
    if (!wide || tp_scalar_equals_int(beta, 0)) return wide ? tp_take(outer) : NULL;
    tp_autoref *base = scaled(wide, beta);
    return base ? tp_add_Tensor(base, outer, TP_SCALAR_I(1)) : NULL;
}

/* ---- block_diag ---- */

/* The dtype that all of a list are promoted to: one without dimensions counts as a number. */
static tp_dtype common_dtype(tp_tensors tensors) {
    size_t nbytes = (size_t)tensors.size * sizeof(tp_operand);
    tp_operand *operands = tp_alloc(nbytes);
    if (!operands) return TP_NO_DTYPE;
    for (int64_t i = 0; i < tensors.size; i++) operands[i] = (tp_operand){tensors.data[i], NULL};
    tp_dtype common = tp_result_type(operands, (int)tensors.size);
    tp_free(operands, nbytes);
    return common;
}

/* block_diag(Tensor[] tensors) -> Tensor */
tp_tensor *block_diag_composite(tp_tensors tensors) {
    tp_autoseq *rows = tp_tensor_seq_new(tensors.size);
    if (!rows) return NULL;
    if (tensors.size == 0) return tp_new_empty(TP_INTS(1, 0), tp_default_dtype(), TP_CPU);
    const tp_dtype dtype = common_dtype(tensors);
    if (dtype == TP_NO_DTYPE) return NULL;
    int64_t width = 0, before = 0;
    for (int64_t i = 0; i < tensors.size; i++) {
        const tp_tensor *t = tensors.data[i];
        if (t->ndim > 2)
            return tp_fail_null(
                TP_RuntimeError,
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input %lld has %d dimensions",
                (long long)i, t->ndim);
        width += t->ndim ? t->sizes[t->ndim - 1] : 1;
    }
    for (int64_t i = 0; i < tensors.size; i++) {
        tp_tensor *t = tensors.data[i];
        int64_t n = t->ndim ? t->sizes[t->ndim - 1] : 1;
        tp_autoref *typed = tp_to_dtype(t, dtype, false, false, TP_NO_FORMAT);
        tp_autoref *matrix = !typed || t->ndim == 2 ? tp_retain(typed) : tp_reshape(typed, TP_INTS(1, n));
        rows->items[i] =
            matrix ? tp_constant_pad_nd(matrix, TP_INTS(before, width - before - n), TP_SCALAR_I(0)) : NULL;
        if (!rows->items[i]) return NULL;
        before += n;
    }
    return tp_cat(tp_tensor_seq_borrow(rows), 0);
}

/* ---- combinations ---- */

static int check_vector(const tp_tensor *t) {
    if (t->ndim == 1) return 0;
    tp_autotext shape = {0};
    tp_text_ints(&shape, tp_sizes(t));
    return tp_fail(TP_RuntimeError, "Expect a 1D vector, but got shape %s", shape.text);
}
/* cartesian_prod(Tensor[] tensors) -> Tensor */
tp_tensor *cartesian_prod_composite(tp_tensors tensors) {
    for (int64_t i = 0; i < tensors.size; i++)
        if (check_vector(tensors.data[i]) < 0) return NULL;
    if (tensors.size == 0) return tp_fail_null(TP_RuntimeError, "cartesian_prod: expected a non-empty list of tensors");
    if (tensors.size == 1) return tp_alias(tensors.data[0]);
    tp_autoseq *grids = tp_meshgrid_indexing(tensors, "ij");
    for (int64_t i = 0; grids && i < grids->size; i++) {
        tp_tensor *flat = tp_flatten_using_ints(grids->items[i], 0, -1);
        tp_release(grids->items[i]);
        grids->items[i] = flat;
        if (!flat) return NULL;
    }
    return grids ? tp_stack(tp_tensor_seq_borrow(grids), 1) : NULL;
}
/* How many ways there are to choose r of n; -1 and the error set where they are too many for a tensor. */
static int64_t count_choices(int64_t n, int64_t r) {
    int64_t count = 1;
    if (r > n) return 0;
    if (r > n - r) r = n - r;
    for (int64_t k = 1; k <= r; k++) {
        __int128 more = (__int128)count * (n - r + k) / k;
        if (more > INT64_MAX / 64) return tp_fail(TP_RuntimeError, "combinations: there are too many");
        count = (int64_t)more;
    }
    return count;
}
/* Which elements of self each choice has, on its device: (count, r). */
static tp_tensor *chosen_places(const tp_tensor *self, int64_t count, int64_t r, bool with_replacement) {
    int64_t n = self->numel, *row, rise = with_replacement ? 0 : 1;
    tp_tensor *places = tp_table_int64_beside(self, TP_INTS(count, r), &row);
    for (int64_t k = 0; row && count && k < r; k++) row[k] = k * rise;
    for (int64_t i = 1; row && i < count; i++, row += r) { /* the next in lexicographic order */
        int64_t last = r - 1;
        memcpy(row + r, row, (size_t)r * sizeof *row);
        while (row[last] == n - 1 - (r - 1 - last) * rise) last--;
        row[r + last]++;
        for (int64_t k = last + 1; k < r; k++) row[r + k] = row[r + k - 1] + rise;
    }
    return tp_table_moved_steal(places, self, TP_INT64);
}
/* combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor */
tp_tensor *combinations_composite(tp_tensor *self, int64_t r, bool with_replacement) {
    if (check_vector(self) < 0) return NULL;
    if (r < 0) return tp_fail_null(TP_RuntimeError, "Expect a non-negative number, but got %lld", (long long)r);
    if (r == 0) return tp_new_empty(TP_INTS(0), (tp_dtype)self->dtype, self->device);
    int64_t n = self->numel, count = count_choices(with_replacement ? n + r - 1 : n, r);
    if (count < 0) return NULL;
    tp_autoref *there = chosen_places(self, count, r, with_replacement);
    tp_autoref *flat = there ? tp_reshape(there, TP_INTS(-1)) : NULL,
               *out = flat ? tp_index_select(self, 0, flat) : NULL;
    return out ? tp_reshape(out, TP_INTS(count, r)) : NULL;
}
