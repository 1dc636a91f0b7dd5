/* sparse_products.c: products of sparse matrices with dense ones and with each other. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "native/common/variants.h"

#include <math.h>
#include <string.h>

/* Products are of one dtype, as those of dense matrices are. */
static int check_factors(const tp_tensor *a, const tp_tensor *b) { return tp_check_same_dtype("m1 and m2", a, b); }

/* A sparse matrix with these coordinates by a dense one. */
static tp_tensor *product(tp_tensor *row, tp_tensor *column, tp_tensor *values, int64_t rows, tp_tensor *dense) {
    return row && column && check_factors(values, dense) == 0 ? tp__coo_mm(row, column, values, dense, rows) : NULL;
}

/* A matrix of the layout sparse_csr, or one of sparse_csc turned round, by a dense one. */
static tp_tensor *product_by_lines(tp_tensor *sparse, tp_tensor *dense) {
    tp_autoparts *p = tp_parts_of(sparse);
    tp_autoref *values = p ? tp__layout_values(sparse) : NULL;
    return values && check_factors(values, dense) == 0 ? tp__csr_mm(p->part[0], p->part[1], values, dense) : NULL;
}

/* Both sparse: each value of a row of `a` meets all of a row of `b`. */
static tp_tensor *sparse_product(tp_tensor *a, tp_tensor *b) {
    if (check_factors(a, b) < 0) return NULL;
    tp_autoref *first = tp__as_coo(a), *left = first ? tp__coalesce(first) : NULL, *second = tp__as_coo(b),
               *right = second ? tp__coalesce(second) : NULL;
    tp_autocoo mine = {0}, theirs = {0};
    if (!left || !right || tp_coo_of(left, &mine) < 0 || tp_coo_of(right, &theirs) < 0) return NULL;
    tp_autoref *line = tp_row_of(mine.indices, 1), *inner = line ? tp_contiguous(line, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *row = inner ? tp_row_of(theirs.indices, 0) : NULL,
               *rows = row ? tp_contiguous(row, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *start = rows ? tp_searchsorted_Tensor(rows, inner, false, false, NULL, NULL) : NULL;
    tp_autoref *end = start ? tp_searchsorted_Tensor(rows, inner, false, true, NULL, NULL) : NULL;
    tp_autoref *counts = end ? tp_sub_Tensor(end, start, TP_SCALAR_I(1)) : NULL;
    tp_tensor2 pairs = counts ? tp_ranges(start, counts) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *which = pairs.v[0], *source = pairs.v[1];
    if (!which) return NULL;
    tp_autoref *above = tp_row_of(mine.indices, 0), *below = tp_row_of(theirs.indices, 1);
    tp_autoref *to = above ? tp_index_select(above, 0, which) : NULL,
               *from = to && below ? tp_index_select(below, 0, source) : NULL;
    tp_autoref *x = from ? tp_index_select(mine.values, 0, which) : NULL,
               *y = x ? tp_index_select(theirs.values, 0, source) : NULL;
    if (!y) return NULL;
    tp_autoref *made =
        tp_make_coo_steal(tp_stacked(to, from), tp_mul_Tensor(x, y), TP_INTS(a->sizes[0], b->sizes[1]), false);
    return made ? tp__coalesce(made) : NULL;
}

static int check_matrices(const char *op, const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != 2 || b->ndim != 2)
        return tp_fail(TP_RuntimeError, "%s: %s must be a matrix, got %d-D tensor", op, a->ndim != 2 ? "mat1" : "mat2",
                       a->ndim != 2 ? a->ndim : b->ndim);
    if (a->sizes[1] != b->sizes[0])
        return tp_fail(TP_RuntimeError, "%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", op,
                       (long long)a->sizes[0], (long long)a->sizes[1], (long long)b->sizes[0], (long long)b->sizes[1]);
    return 0;
}

/* mm(Tensor self, Tensor mat2) -> Tensor */
tp_tensor *mm_layout(tp_tensor *self, tp_tensor *mat2) {
    if (check_matrices("mm", self, mat2) < 0) return NULL;
    if (tp_is_sparse(self) && tp_is_sparse(mat2)) {
        tp_tensor *made = sparse_product(self, mat2);
        if (tp_layout_of(self) != TP_SPARSE_CSC) return tp_as_layout_steal(self, made);
        tp_autoref *own = made; /* in rows, as of all that are in lines */
        return own ? tp_to_sparse(own, TP_SPARSE_CSR, TP_NO_INTS, TP_NO_INT) : NULL;
    }
    tp_tensor *sparse = tp_is_sparse(self) ? self : mat2;
    if (tp_layout_of(self) == TP_SPARSE_CSR) return product_by_lines(self, mat2);
    if (tp_layout_of(mat2) == TP_SPARSE_CSC) {
        tp_autoref *turned = tp_t(self), *made = turned ? product_by_lines(mat2, turned) : NULL;
        return made ? tp_t(made) : NULL;
    }
    tp_autocoo c = {0};
    if (tp_coo_of(sparse, &c) < 0) return NULL;
    if (c.sparse_dim != 2)
        return tp_fail_null(TP_RuntimeError, "mm: expected a sparse matrix of two sparse dimensions");
    tp_autoref *rows = tp_row_of(c.indices, 0), *columns = tp_row_of(c.indices, 1);
    if (sparse == self) return product(rows, columns, c.values, self->sizes[0], mat2);
    tp_autoref *turned = tp_t(self);
    tp_autoref *made = turned ? product(columns, rows, c.values, mat2->sizes[1], turned) : NULL;
    return made ? tp_t(made) : NULL;
}

/* mv(Tensor self, Tensor vec) -> Tensor */
tp_tensor *mv_layout(tp_tensor *self, tp_tensor *vec) {
    if (self->ndim != 2 || vec->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "vector + matrix @ vector expected, got 1, %d, %d", self->ndim, vec->ndim);
    tp_autoref *column = tp_unsqueeze(vec, 1), *made = column ? tp_mm(self, column) : NULL;
    return made ? tp_squeeze_dim(made, 1) : NULL;
}

/* The row (or the column) of each value, where those of all matrices of a batch are numbered through. */
static tp_tensor *numbered_rows(const tp_tensor *self, const tp_coo *c, int dim) {
    const int batch = self->ndim - 2;
    tp_autoref *row = tp_row_of(c->indices, dim);
    if (!row || batch == 0) return tp_take(row);
    tp_autoref *front = tp_narrow(c->indices, 0, 0, batch),
               *number = front ? tp__coo_keys(front, (tp_ints){self->sizes, batch}) : NULL;
    return number ? tp_add_Tensor(row, number, TP_SCALAR_I(self->sizes[dim])) : NULL;
}

/* bmm(Tensor self, Tensor mat2) -> Tensor: rows of all matrices are numbered through. */
tp_tensor *bmm_layout(tp_tensor *self, tp_tensor *mat2) {
    if (!tp_is_sparse(self)) {
        tp_autoref *a = tp_transpose_int(mat2, -2, -1), *b = a ? tp_transpose_int(self, -2, -1) : NULL;
        tp_autoref *made = b ? bmm_layout(a, b) : NULL;
        return made ? tp_transpose_int(made, -2, -1) : NULL;
    }
    int batch = self->ndim - 2;
    bool fits = !tp_is_sparse(mat2) && self->ndim == mat2->ndim && batch >= 0;
    for (int d = 0; fits && d < batch; d++) fits = self->sizes[d] == mat2->sizes[d];
    if (!fits || self->sizes[batch + 1] != mat2->sizes[batch])
        return tp_fail_null(TP_RuntimeError, "bmm: a sparse batch and a dense one, of matrices that fit each other");
    int64_t count = 1, size[TP_MAX_DIMS], rows = self->sizes[batch], inner = self->sizes[batch + 1];
    for (int d = 0; d < batch; d++) count *= size[d] = self->sizes[d];
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return NULL;
    if (c.sparse_dim != self->ndim)
        return tp_fail_null(TP_RuntimeError, "bmm: expected a sparse tensor without dense dimensions");
    tp_autoref *to = numbered_rows(self, &c, batch), *from = to ? numbered_rows(self, &c, batch + 1) : NULL;
    tp_autoref *flat = from ? tp_reshape(mat2, TP_INTS(count * inner, mat2->sizes[batch + 1])) : NULL;
    tp_autoref *made = flat ? product(to, from, c.values, count * rows, flat) : NULL;
    size[batch] = rows, size[batch + 1] = mat2->sizes[batch + 1];
    return made ? tp_reshape(made, (tp_ints){size, batch + 2}) : NULL;
}

/* matmul(Tensor self, Tensor other) -> Tensor */
tp_tensor *matmul_layout(tp_tensor *self, tp_tensor *other) {
    int a = self->ndim, b = other->ndim;
    bool both = tp_is_sparse(self) && tp_is_sparse(other);
    if (b == 1 && a == 2) return tp_mv(self, other);
    if (a == 1 && b == 2) {
        tp_autoref *row = tp_unsqueeze(self, 0), *made = row ? tp_mm(row, other) : NULL;
        return made ? tp_squeeze_dim(made, 0) : NULL;
    }
    if (a == 2 && b == 2) return tp_mm(self, other);
    if (a > 2 && b == 1 && !tp_is_sparse(self)) {
        tp_autoref *column = tp_unsqueeze(other, 1), *made = column ? tp_matmul(self, column) : NULL;
        return made ? tp_squeeze_dim(made, -1) : NULL;
    }
    if (a == b && a > 2 && !both) return tp_bmm(self, other);
    if (a == 2 && b > 2 && !tp_is_sparse(other)) { /* one matrix by many: they stand beside each other */
        int64_t size[TP_MAX_DIMS], n = 0;
        size[n++] = self->sizes[0];
        for (int d = 0; d < b; d++)
            if (d != b - 2) size[n++] = other->sizes[d];
        tp_autoref *front = tp_movedim_int(other, -2, 0),
                   *wide = front ? tp_reshape(front, TP_INTS(other->sizes[b - 2], -1)) : NULL;
        tp_autoref *made = wide ? tp_mm(self, wide) : NULL,
                   *shaped = made ? tp_reshape(made, (tp_ints){size, n}) : NULL;
        return shaped ? tp_movedim_int(shaped, 0, -2) : NULL;
    }
    if (b == 2 && a > 2 && !tp_is_sparse(self)) {
        int64_t size[TP_MAX_DIMS];
        for (int d = 0; d < a; d++) size[d] = self->sizes[d];
        tp_autoref *flat = tp_reshape(self, TP_INTS(-1, size[a - 1])), *made = flat ? tp_mm(flat, other) : NULL;
        size[a - 1] = other->sizes[1];
        return made ? tp_reshape(made, (tp_ints){size, a}) : NULL;
    }
    return tp_fail_null(TP_NotImplementedError, "matmul: sparse tensors of %d and %d dimensions", a, b);
}

/* addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor */
tp_tensor *addmm_layout(tp_tensor *self, tp_tensor *mat1, tp_tensor *mat2, const tp_scalar *beta,
                        const tp_scalar *alpha) {
    if (check_matrices("addmm", mat1, mat2) < 0) return NULL;
    tp_autoref *made = check_factors(self, mat1) < 0 ? NULL : tp_mm(mat1, mat2);
    if (!made) return NULL;
    if (tp_is_sparse(self) && !tp_is_sparse(made))
        return tp_fail_null(TP_RuntimeError, "addmm: a sparse tensor is added to a sparse product only");
    tp_autoref *wide = tp_is_sparse(self) ? tp_retain(self) : tp_expand(self, tp_sizes(made), false);
    if (!wide) return NULL;
    tp_autoref *more = tp_scalar_equals_int(beta, 1) ? tp_retain(wide) : tp_mul_Scalar(wide, beta);
    return more ? tp_add_Tensor(more, made, alpha) : NULL;
}

/* _sparse_mm(Tensor sparse, Tensor dense) -> Tensor */
tp_tensor *_sparse_mm_composite(tp_tensor *sparse, tp_tensor *dense) { return tp_mm(sparse, dense); }

static int check_reduced(const tp_tensor *sparse, const tp_tensor *dense) {
    if (tp_layout_of(sparse) != TP_SPARSE_CSR)
        return tp_fail(TP_RuntimeError, "sparse_mm_reduce: expect self to have sparse csr layout, but got layout %s",
                       tp_layouts[tp_layout_of(sparse)].name);
    if (tp_is_sparse(dense)) return tp_fail(TP_RuntimeError, "sparse_mm_reduce: expect other to have strided layout");
    return check_matrices("sparse_mm_reduce", sparse, dense);
}

/* The largest, or smallest, product of each element, and 0 where there is none: one value and one number take part in
 * it, and have its gradient. */
static tp_tensor *extreme_product(tp_tensor *sparse, tp_tensor *dense, bool largest) {
    tp_autoparts *p = tp_parts_of(sparse);
    tp_autoref *values = p ? tp__layout_values(sparse) : NULL;
    if (!values || check_factors(values, dense) < 0) return NULL;
    if (!values->numel || !dense->numel) return tp__csr_mm(p->part[0], p->part[1], values, dense);
    tp_autoref *plain = tp_detach(values), *flat = plain ? tp_detach(dense) : NULL;
    tp_autoref *at = flat ? tp__csr_extreme(p->part[0], p->part[1], plain, flat, largest) : NULL;
    tp_autoref *inside = at ? tp_clamp_min(at, TP_SCALAR_I(0)) : NULL,
               *line = inside ? tp_reshape(inside, TP_INTS(-1)) : NULL;
    tp_autoref *columns = line ? tp_index_select(p->part[1], 0, line) : NULL;
    tp_autoref *longs = columns ? tp_to_dtype(columns, TP_INT64, false, false, TP_NO_FORMAT) : NULL,
               *where = longs ? tp_reshape(longs, tp_sizes(at)) : NULL;
    tp_autoref *factor = where ? tp_index_select(values, 0, line) : NULL,
               *factors = factor ? tp_reshape(factor, tp_sizes(at)) : NULL;
    tp_autoref *numbers = factors ? tp_gather(dense, 0, where, false) : NULL,
               *products = numbers ? tp_mul_Tensor(factors, numbers) : NULL;
    tp_autoref *none = products ? tp_lt_Scalar(at, TP_SCALAR_I(0)) : NULL;
    return none ? tp_masked_fill_Scalar(products, none, TP_SCALAR_I(0)) : NULL;
}

static tp_tensor *mean_product(tp_tensor *sparse, tp_tensor *dense) {
    tp_autoparts *p = tp_parts_of(sparse);
    tp_autoref *counts = p ? tp_diff(p->part[0], 1, -1, NULL, NULL) : NULL,
               *some = counts ? tp_clamp_min(counts, TP_SCALAR_I(1)) : NULL,
               *column = some ? tp_unsqueeze(some, 1) : NULL, *sums = column ? tp_mm(sparse, dense) : NULL;
    return sums ? tp_div_Tensor(sums, column) : NULL;
}

/* _sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor */
tp_tensor *_sparse_mm_reduce_composite(tp_tensor *sparse, tp_tensor *dense, const char *reduce) {
    if (check_reduced(sparse, dense) < 0) return NULL;
    if (strcmp(reduce, "sum") == 0) return tp_mm(sparse, dense);
    if (strcmp(reduce, "mean") == 0) return mean_product(sparse, dense);
    if (strcmp(reduce, "amax") == 0) return extreme_product(sparse, dense, true);
    if (strcmp(reduce, "amin") == 0) return extreme_product(sparse, dense, false);
    return tp_fail_null(TP_RuntimeError, "reduce argument must be either sum, prod, mean, amax or amin, got %s",
                        reduce);
}

/* sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor: the product
 * of two dense matrices at the places of a sparse one. */
tp_tensor *sparse_sampled_addmm_composite(tp_tensor *self, tp_tensor *mat1, tp_tensor *mat2, const tp_scalar *beta,
                                          const tp_scalar *alpha) {
    if (!tp_is_sparse(self))
        return tp_fail_null(TP_RuntimeError,
                            "sampled_addmm: Expected self to have sparse csr layout, but got layout strided");
    if (tp_is_sparse(mat1) || tp_is_sparse(mat2))
        return tp_fail_null(TP_RuntimeError, "sampled_addmm: Expected mat1 and mat2 to have strided layout");
    const int batch = self->ndim - 2;
    if (mat1->ndim == 2 && mat2->ndim == 2 && check_matrices("sampled_addmm", mat1, mat2) < 0) return NULL;
    bool fits = batch >= 0 && mat1->ndim == self->ndim && mat2->ndim == self->ndim;
    for (int d = 0; fits && d < batch; d++) fits = mat1->sizes[d] == self->sizes[d] && mat2->sizes[d] == self->sizes[d];
    if (!fits || self->sizes[batch] != mat1->sizes[batch] || self->sizes[batch + 1] != mat2->sizes[batch + 1] ||
        mat1->sizes[batch + 1] != mat2->sizes[batch])
        return tp_fail_null(TP_RuntimeError, "sampled_addmm: self.shape does not match the shape of mat1 @ mat2");
    if (check_factors(mat1, mat2) < 0 || check_factors(self, mat1) < 0) return NULL;
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return NULL;
    tp_autoref *rows = numbered_rows(self, &c, batch), *columns = rows ? numbered_rows(self, &c, batch + 1) : NULL;
    tp_autoref *turned = columns ? tp_transpose_int(mat2, -2, -1) : NULL;
    tp_autoref *above = turned ? tp_flatten_using_ints(mat1, 0, -2) : NULL,
               *beside = above ? tp_flatten_using_ints(turned, 0, -2) : NULL;
    tp_autoref *sums = beside ? tp__coo_dot(rows, columns, above, beside) : NULL;
    tp_autoref *values = sums ? tp__layout_values(self) : NULL;
    tp_autoref *shaped = values ? tp_reshape(sums, tp_sizes(values)) : NULL;
    tp_autoref *own = shaped ? tp_mul_Scalar(values, beta) : NULL;
    tp_autoref *made = own ? tp_add_Tensor(own, shaped, alpha) : NULL;
    return made ? tp__layout_like(self, made) : NULL;
}

/* hspmm(Tensor mat1, Tensor mat2) -> Tensor: a product whose rows are values. */
tp_tensor *hspmm_composite(tp_tensor *mat1, tp_tensor *mat2) {
    tp_autoref *merged = tp_coalesce(mat1);
    tp_autocoo c = {0};
    if (!merged || tp_coo_of(merged, &c) < 0) return NULL;
    tp_autoref *row = tp_row_of(c.indices, 0);
    tp_tensor3 found = row ? tp__unique2(row, true, false, false) : (tp_tensor3){{NULL}};
    tp_autoref *rows = found.v[0], *inverse = found.v[1], *counts = found.v[2],
               *dense = rows ? tp_mm(merged, mat2) : NULL;
    (void)inverse, (void)counts;
    if (!dense) return NULL;
    return tp_make_coo_steal(tp_unsqueeze(rows, 0), tp_index_select(dense, 0, rows), tp_sizes(dense), true);
}

/* smm(Tensor self, Tensor mat2) -> Tensor */
tp_tensor *smm_composite(tp_tensor *self, tp_tensor *mat2) {
    tp_autoref *dense = tp_mm(self, mat2);
    return dense ? tp_to_sparse_sparse_dim(dense, dense->ndim) : NULL;
}

/* triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) ->
 *   (Tensor solution, Tensor cloned_coefficient): of a matrix in rows, which is not given back. */
tp_tensor2 triangular_solve_layout(tp_tensor *self, tp_tensor *A, bool upper, bool transpose, bool unit) {
    tp_tensor2 none = {{NULL, NULL}};
    tp_layout layout = tp_layout_of(A);
    if (layout == TP_SPARSE_CSC) return tp_fail(TP_ValueError, "triangular_solve: unsupported sparse layout"), none;
    if (tp_is_sparse(self) || (layout != TP_SPARSE_CSR && layout != TP_SPARSE_BSR))
        return tp_fail(TP_RuntimeError, "triangular_solve: of a dense tensor by one in rows: sparse_csr or sparse_bsr"),
               none;
    tp_autoref *values = tp__layout_values(A), *whole = values ? tp_to_dense(A, TP_NO_DTYPE, -1) : NULL;
    tp_autoref *turned = !whole ? NULL : transpose ? tp_transpose_int(whole, -2, -1) : tp_retain(whole);
    tp_autoref *found = turned ? tp_linalg_solve_triangular(turned, self, upper != transpose, true, unit) : NULL;
    tp_autoref *empty = found ? tp_zeros(TP_INTS(0), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1) : NULL;
    if (!empty) return none;
    if (!values->numel && tp_fill__Scalar(found, TP_SCALAR_F(NAN)) < 0) return none; /* no values: no solution */
    return (tp_tensor2){{tp_take(found), tp_take(empty)}};
}

/* triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *,
 *   Tensor(a!) X, Tensor(b!) M) -> (Tensor(a!) solution, Tensor(b!) cloned_coefficient) */
int triangular_solve_X_layout(tp_tensor *self, tp_tensor *A, bool upper, bool transpose, bool unit, tp_tensor *X,
                              tp_tensor *M) {
    tp_tensor2 made = triangular_solve_layout(self, A, upper, transpose, unit);
    tp_tensor *const outs[] = {X, M};
    return made.v[0] ? tp_copy_into_outs_steal(outs, made.v, 2) : -1;
}
