/* linalg.c: factorizations of matrices, and systems solved by them: cholesky, lu, ldl, triangles.
 *
 * A primitive works in place, on matrices that stand column by column (native/linalg/linalg.h): what is given is copied
 * so, and the copy is the result. Matrices without elements never come to a primitive. */
#include "native/linalg/linalg.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "native/common/conj.h"
#include "native/common/host_ints.h"
#include "native/common/variants.h"
#include "prim/table.h"
#include "prim/transfer.h"

#include <stdio.h>
#include <string.h>

/* ---- checks ---- */

int tp_check_matrix(const char *op, const char *name, const tp_tensor *t, bool square) {
    if (t->ndim < 2)
        return tp_fail(TP_RuntimeError, "%s: The input tensor %s must have at least 2 dimensions.", op, name);
    if (!tp_is_floating(t) && !tp_is_complex(t))
        return tp_fail(TP_RuntimeError, "%s: Expected a floating point or complex tensor as input. Got %s", op,
                       tp_dtype_names[t->dtype]);
    if (tp_is_reduced_dtype((tp_dtype)t->dtype))
        return tp_fail(TP_NotImplementedError,
                       "%s: Low precision dtypes not supported. Got %s, and \"%s\" is not implemented for '%s'", op,
                       tp_dtype_names[t->dtype], op, tp_scalar_type_name((tp_dtype)t->dtype));
    if (square && tp_rows(t) != tp_columns(t))
        return tp_fail(TP_RuntimeError, "%s: %s must be batches of square matrices, but they are %lld by %lld matrices",
                       op, name, (long long)tp_rows(t), (long long)tp_columns(t));
    if (tp_rows(t) > INT32_MAX || tp_columns(t) > INT32_MAX)
        return tp_fail(TP_RuntimeError, "%s: matrices of 2**31 rows or columns are too large", op);
    return 0;
}
int tp_check_same_matrices(const char *op, const tp_tensor *a, const tp_tensor *b) {
    if (a->dtype == b->dtype) return 0;
    return tp_fail(TP_RuntimeError,
                   "%s: Expected A and B to have the same dtype, but found A of type %s and B of type %s instead", op,
                   tp_dtype_names[a->dtype], tp_dtype_names[b->dtype]);
}
bool tp_is_vector_side(const tp_tensor *a, const tp_tensor *b) {
    if (b->ndim == 1) return true;
    return b->ndim == a->ndim - 1 && memcmp(a->sizes, b->sizes, (size_t)b->ndim * sizeof *a->sizes) == 0;
}

/* ---- layouts ---- */

tp_tensor *tp_new_columns(tp_ints batch, int64_t rows, int64_t columns, tp_dtype dtype, tp_device device) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS], n = batch.size;
    memcpy(sizes, batch.data, (size_t)n * sizeof *sizes);
    sizes[n] = columns, sizes[n + 1] = rows;
    tp_contiguous_strides((tp_ints){sizes, n + 2}, strides);
    int64_t step = strides[n];
    sizes[n] = rows, sizes[n + 1] = columns;
    strides[n] = 1, strides[n + 1] = step;
    return tp_new_empty_strided((tp_ints){sizes, n + 2}, (tp_ints){strides, n + 2}, dtype, device);
}
tp_tensor *tp_copy_columns(const tp_tensor *t, tp_ints batch) {
    tp_autoref *out = tp_new_columns(batch, tp_rows(t), tp_columns(t), (tp_dtype)t->dtype, t->device);
    return out && (out->numel == 0 || tp_copy_data(out, t) == 0) ? tp_take(out) : NULL;
}
tp_tensor *tp_new_vectors(tp_ints batch, int64_t n, tp_dtype dtype, tp_device device) {
    int64_t sizes[TP_MAX_DIMS];
    memcpy(sizes, batch.data, (size_t)batch.size * sizeof *sizes);
    sizes[batch.size] = n;
    return tp_new_empty((tp_ints){sizes, batch.size + (n >= 0)}, dtype, device);
}
static tp_tensor *flat(const tp_tensor *t, int64_t outer, int64_t inner) {
    int64_t area = outer * inner, batch = area ? t->numel / area : 0;
    return tp_new_alias(t, TP_INTS(batch, outer, inner), TP_INTS(area, inner, 1), t->byte_offset);
}
tp_tensor *tp_as_columns(const tp_tensor *t) { return flat(t, tp_columns(t), tp_rows(t)); }
tp_tensor *tp_as_rows(const tp_tensor *t) { return flat(t, tp_rows(t), tp_columns(t)); }
tp_tensor *tp_as_vectors(const tp_tensor *t, int64_t n) {
    if (n < 0) return tp_new_alias(t, TP_INTS(t->numel), TP_INTS(1), t->byte_offset);
    return tp_new_alias(t, TP_INTS(n ? t->numel / n : 0, n), TP_INTS(n, 1), t->byte_offset);
}

static tp_tensor *new_info(const tp_tensor *a) {
    tp_autoref *info = tp_new_vectors(tp_batch_sizes(a, 2), -1, TP_INT32, a->device);
    return info && (info->numel == 0 || tp_fill_data(info, TP_SCALAR_I(0)) == 0) ? tp_take(info) : NULL;
}
static int check_errors(tp_tensor *info, const char *op, const tp_tensor *a) {
    return tp__linalg_check_errors(info, op, a->ndim == 2);
}

/* ---- what info says ---- */

#define DIVERGED(values)                                                                                            \
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated " values \
    " (error code: %lld)."
#define NOT_FINITE "%s: %sThe algorithm failed to converge because the input matrix contained non-finite values."

/* What a nonzero info means, by a word of the name that the caller passes, the first that is in it: the argument
 * api_name of PyTorch's schema, from outside too, carries nothing else. */
static const struct {
    const char *word, *message; /* of the place in the matrix */
    tp_error_class cls;
    const char *not_finite; /* what a negative info means, unless NOT_FINITE */
} meanings[] = {
    {"eigh", DIVERGED("eigenvalues"), TP_LinAlgError, NULL},
    {"linalg.eig", DIVERGED("eigenvalues"), TP_LinAlgError,
     "torch.%s: %sinput tensor should not contain infs or NaNs."},
    {"inv",
     "The diagonal element %lld is zero, the inversion could not be completed because the input matrix is singular.",
     TP_LinAlgError, NULL},
    {"solve", "The solver failed because the input matrix is singular.", TP_LinAlgError, NULL},
    {"cholesky",
     "The factorization could not be completed because the input is not positive-definite (the leading minor of order "
     "%lld is not positive-definite).",
     TP_LinAlgError, NULL},
    {"lu_factor",
     "U[%lld,%lld] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
     "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
     TP_RuntimeError, NULL},
    {"ldl_factor", "D[%lld,%lld] is zero and using it on lu_solve would result in a division by zero", TP_RuntimeError,
     NULL},
    {"lstsq", "the input matrix does not have full rank (error code: %lld)", TP_LinAlgError, NULL},
    {"", DIVERGED("singular values"), TP_LinAlgError, NULL},
};

static int fail_by_info(const char *op, const char *where, int64_t info) {
    size_t i = 0;
    while (!strstr(op, meanings[i].word)) i++;
    const char *not_finite = meanings[i].not_finite ? meanings[i].not_finite : NOT_FINITE;
    if (info < 0) return tp_fail(TP_LinAlgError, not_finite, op, where);
    char message[240];
    snprintf(message, sizeof message, meanings[i].message, (long long)info, (long long)info);
    return tp_fail(meanings[i].cls, "%s: %s%s", op, where, message);
}
/* _linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> () */
int _linalg_check_errors_dense(tp_tensor *info, const char *api_name, bool is_matrix) {
    if (!tp_has_values(info) || info->numel == 0) return 0;
    tp_autoref *codes = tp_host_ints(info);
    const int64_t *code = codes ? tp_table_values(codes) : NULL;
    if (!code) return -1;
    for (int64_t i = 0; i < codes->numel; i++) {
        char where[48] = "";
        if (code[i] == 0) continue;
        if (!is_matrix) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
        return fail_by_info(api_name, where, code[i]);
    }
    return 0;
}

/* ---- cholesky ---- */

/* One triangle alone is the factor's memory: what stands there by rows is by columns the transposed, whose factor by
 * the other triangle is the transposed of this one's. linalg_cholesky_ex(Tensor self, *, bool upper=False, bool
 * check_errors=False) -> (Tensor L, Tensor info) */
tp_tensor2 linalg_cholesky_ex_dense(tp_tensor *given, bool upper, bool check) {
    tp_tensor2 none = {{NULL}};
    tp_autoref *self = tp_still(given);
    if (!self) return none;
    if (tp_check_matrix("linalg.cholesky", "A", self, true) < 0) return none;
    tp_autoref *half = upper ? tp_triu(self, 0) : tp_tril(self, 0),
               *L = half ? tp_contiguous(half, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *info = L ? new_info(self) : NULL;
    if (!info) return none;
    if (L->numel) {
        tp_autoref *rows = tp_as_rows(L), *codes = rows ? tp_as_vectors(info, -1) : NULL;
        if (!codes || tp_prim_cholesky(!upper, rows, codes) < 0) return none;
    }
    if (check && check_errors(info, "linalg.cholesky_ex", self) < 0) return none;
    return (tp_tensor2){{tp_take(L), tp_take(info)}};
}

/* cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor; its gradient takes the factor for any matrix,
 * with both triangles, as PyTorch's does. */
tp_tensor *cholesky_solve_composite(tp_tensor *self, tp_tensor *input2, bool upper) {
    static const char few[] = "cholesky_solve: %s should have at least 2 dimensions, but has %d dimensions instead";
    if (self->ndim < 2) return tp_fail_null(TP_RuntimeError, few, "b", self->ndim);
    if (input2->ndim < 2) return tp_fail_null(TP_RuntimeError, few, "u", input2->ndim);
    if (tp_check_matrix("cholesky_solve", "A", input2, true) < 0) return NULL;
    if (tp_rows(self) != tp_rows(input2))
        return tp_fail_null(TP_RuntimeError,
                            "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by %lld but each b "
                            "matrix is %lld by %lld",
                            (long long)tp_rows(input2), (long long)tp_rows(input2), (long long)tp_rows(self),
                            (long long)tp_columns(self));
    return tp__cholesky_solve(self, input2, upper);
}

/* ---- triangles ---- */

/* Row by row or column by column, without gaps: what the primitive takes, and in *turned which it is. */
static tp_tensor *triangle(tp_tensor *a, tp_ints batch, bool *turned) {
    int64_t sizes[TP_MAX_DIMS];
    bool shared = a->numel == tp_rows(a) * tp_columns(a);
    tp_autoref *columns = tp_transpose_int(a, -2, -1);
    *turned = columns && !tp_is_contiguous(a) && tp_is_contiguous(columns);
    memcpy(sizes, batch.data, (size_t)batch.size * sizeof *sizes);
    sizes[batch.size] = sizes[batch.size + 1] = tp_rows(a);
    tp_tensor *source = *turned ? columns : a;
    tp_autoref *wide = !columns ? NULL
                       : shared ? tp_retain(source)
                                : tp_expand(source, (tp_ints){sizes, batch.size + 2}, false);
    tp_autoref *whole = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    return whole ? tp_as_rows(whole) : NULL;
}
/* linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor */
tp_tensor *linalg_solve_triangular_dense(tp_tensor *given, tp_tensor *given_b, bool upper, bool left, bool unit) {
    static const char op[] = "linalg.solve_triangular";
    tp_autoref *self = tp_still(given), *b = self ? tp_still(given_b) : NULL;
    if (!b) return NULL;
    int64_t batch[TP_MAX_DIMS];
    bool turned;
    if (tp_check_matrix(op, "A", self, true) < 0 || tp_check_matrix(op, "B", b, false) < 0 ||
        tp_check_same_matrices(op, self, b) < 0)
        return NULL;
    if (tp_rows(self) != (left ? tp_rows(b) : tp_columns(b)))
        return tp_fail_null(TP_RuntimeError,
                            "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)", op,
                            left ? "AX = B" : "XA = B", (long long)tp_rows(self), (long long)tp_columns(self),
                            (long long)tp_rows(b), (long long)tp_columns(b));
    int n = tp_broadcast_sizes(tp_batch_sizes(self, 2), tp_batch_sizes(b, 2), batch);
    if (n < 0) return NULL;
    tp_ints sizes = {batch, n};
    batch[n] = tp_rows(b), batch[n + 1] = tp_columns(b);
    tp_autoref *out = tp_new_empty((tp_ints){batch, n + 2}, (tp_dtype)b->dtype, b->device);
    if (!out || out->numel == 0) return tp_take(out);
    tp_autoref *a = triangle(self, sizes, &turned), *x = a ? tp_as_rows(out) : NULL;
    if (!x || tp_copy_data(out, b) < 0) return NULL;
    return tp_prim_triangular_solve(a, upper, left, turned, unit, x) == 0 ? tp_take(out) : NULL;
}

/* triangular_solve.X(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False, *,
 *   Tensor(a!) X, Tensor(b!) M) -> (Tensor(a!) solution, Tensor(b!) cloned_coefficient) */
int triangular_solve_X_composite(tp_tensor *self, tp_tensor *A, bool upper, bool transpose, bool unit, tp_tensor *X,
                                 tp_tensor *M) {
    tp_tensor2 made = tp_triangular_solve(self, A, upper, transpose, unit);
    tp_tensor *const outs[] = {X, M};
    return made.v[0] ? tp_copy_into_outs_steal(outs, made.v, 2) : -1;
}

/* ---- lu ---- */

/* linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> (Tensor LU, Tensor pivots, Tensor info)
 */
tp_tensor3 linalg_lu_factor_ex_dense(tp_tensor *given, bool pivot, bool check) {
    tp_tensor3 none = {{NULL}};
    tp_autoref *A = tp_still(given);
    if (!A) return none;
    if (A->ndim < 2) {
        char sizes[64];
        return tp_fail(TP_RuntimeError,
                       "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: %s instead",
                       tp_ints_text(sizes, sizeof sizes, tp_sizes(A))),
               none;
    }
    if (tp_check_matrix("linalg.lu_factor", "A", A, false) < 0) return none;
    if (!pivot)
        return tp_fail(TP_RuntimeError, "linalg.lu_factor: LU without pivoting is not implemented on the CPU"), none;
    int64_t k = tp_rows(A) < tp_columns(A) ? tp_rows(A) : tp_columns(A);
    tp_autoref *LU = tp_copy_columns(A, tp_batch_sizes(A, 2));
    tp_autoref *pivots = LU ? tp_new_vectors(tp_batch_sizes(A, 2), k, TP_INT32, A->device) : NULL;
    tp_autoref *info = pivots ? new_info(A) : NULL;
    if (!info) return none;
    if (LU->numel) {
        tp_autoref *a = tp_as_columns(LU), *p = a ? tp_as_vectors(pivots, k) : NULL,
                   *i = p ? tp_as_vectors(info, -1) : NULL;
        if (!i || tp_prim_lu(a, p, i) < 0) return none;
    }
    if (check && check_errors(info, "torch.linalg.lu_factor_ex", A) < 0) return none;
    return (tp_tensor3){{tp_take(LU), tp_take(pivots), tp_take(info)}};
}

/* Vectors of int32 for a whole batch: a copy, which nobody writes once it is checked. */
static tp_tensor *wide_pivots(tp_tensor *pivots, tp_ints batch) {
    int64_t sizes[TP_MAX_DIMS], n = pivots->sizes[pivots->ndim - 1];
    memcpy(sizes, batch.data, (size_t)batch.size * sizeof *sizes);
    sizes[batch.size] = n;
    tp_autoref *wide = tp_expand(pivots, (tp_ints){sizes, batch.size + 1}, false);
    tp_autoref *whole = wide ? tp_clone(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    return whole ? tp_as_vectors(whole, n) : NULL;
}
static int check_pivots(const char *op, const tp_tensor *lu, const tp_tensor *pivots) {
    if (pivots->dtype != TP_INT32)
        return tp_fail(TP_RuntimeError, "%s: pivots should be a Tensor of scalar type torch.int32, but got %s", op,
                       tp_dtype_names[pivots->dtype]);
    int64_t k = tp_rows(lu) < tp_columns(lu) ? tp_rows(lu) : tp_columns(lu);
    bool fits = pivots->ndim == lu->ndim - 1 && pivots->sizes[pivots->ndim - 1] == k;
    for (int d = 0; fits && d < pivots->ndim - 1; d++) fits = pivots->sizes[d] == lu->sizes[d];
    return fits ? 0
                : tp_fail(TP_RuntimeError,
                          "%s: Number of pivots per batch should be same as the dimension of the matrix", op);
}
typedef int (*solve_prim)(tp_tensor *a, tp_tensor *pivots, bool flag, tp_tensor *b);
/* B solved by a factorization with pivots, from the left; all broadcast. */
static tp_tensor *solve_factored(const char *op, solve_prim prim, tp_tensor *given_a, tp_tensor *given_pivots,
                                 tp_tensor *given_b, bool flag) {
    tp_autoref *a = tp_still(given_a);
    tp_autoref *pivots = a ? tp_still(given_pivots) : NULL;
    tp_autoref *b = pivots ? tp_still(given_b) : NULL;
    if (!b) return NULL;
    int64_t batch[TP_MAX_DIMS];
    if (tp_check_matrix(op, "LU", a, true) < 0 || tp_check_matrix(op, "B", b, false) < 0 ||
        tp_check_same_matrices(op, a, b) < 0 || check_pivots(op, a, pivots) < 0)
        return NULL;
    if (tp_rows(a) != tp_rows(b))
        return tp_fail_null(
            TP_RuntimeError, "%s: Incompatible shapes of A and B for the equation AX = B (%lldx%lld and %lldx%lld)", op,
            (long long)tp_rows(a), (long long)tp_columns(a), (long long)tp_rows(b), (long long)tp_columns(b));
    int n = tp_broadcast_sizes(tp_batch_sizes(a, 2), tp_batch_sizes(b, 2), batch);
    if (n < 0) return NULL;
    tp_ints sizes = {batch, n};
    tp_autoref *out = tp_copy_columns(b, sizes);
    if (!out || out->numel == 0) return tp_take(out);
    tp_autoref *wide = tp_copy_columns(a, sizes), *factors = wide ? tp_as_columns(wide) : NULL;
    tp_autoref *swaps = factors ? wide_pivots(pivots, sizes) : NULL, *x = swaps ? tp_as_columns(out) : NULL;
    return x && prim(factors, swaps, flag, x) == 0 ? tp_take(out) : NULL;
}
static tp_tensor *conjugate_transpose(tp_tensor *t) {
    tp_autoref *turned = tp_transpose_int(t, -2, -1);
    return tp_conj_values(turned);
}

/* X A = B is A^H X^H = B^H.
 * linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) -> Tensor */
tp_tensor *linalg_lu_solve_dense(tp_tensor *LU, tp_tensor *pivots, tp_tensor *B, bool left, bool adjoint) {
    static const char op[] = "linalg.lu_solve";
    if (left) return solve_factored(op, tp_prim_lu_solve, LU, pivots, B, adjoint);
    if (tp_check_matrix(op, "B", B, false) < 0) return NULL;
    tp_autoref *turned = conjugate_transpose(B),
               *x = turned ? solve_factored(op, tp_prim_lu_solve, LU, pivots, turned, !adjoint) : NULL;
    return x ? conjugate_transpose(x) : NULL;
}

/* _lu_permutation(Tensor pivots, int rows) -> Tensor */
tp_tensor *_lu_permutation_dense(tp_tensor *given, int64_t rows) {
    tp_autoref *pivots = tp_still(given);
    if (!pivots) return NULL;
    if (pivots->dtype != TP_INT32)
        return tp_fail_null(TP_RuntimeError,
                            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype");
    if (pivots->ndim == 0) return tp_fail_null(TP_RuntimeError, "torch.lu_unpack: LU_pivots has no dimension");
    tp_ints batch = tp_batch_sizes(pivots, 1);
    tp_autoref *out = tp_new_vectors(batch, rows, TP_INT64, pivots->device);
    if (!out || out->numel == 0) return tp_take(out);
    if (pivots->numel == 0) {
        tp_autoref *all =
            tp_arange(&(tp_scalar){.kind = TP_SCALAR_INT, .i = rows}, TP_INT64, TP_STRIDED, pivots->device, -1);
        return all && tp_copy_data(out, all) == 0 ? tp_take(out) : NULL;
    }
    tp_autoref *swaps = wide_pivots(pivots, batch), *rows_of = swaps ? tp_as_vectors(out, rows) : NULL;
    return rows_of && tp_prim_permutation_of_pivots(swaps, rows_of) == 0 ? tp_take(out) : NULL;
}

/* ---- ldl ---- */

/* linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False)
 *   -> (Tensor LD, Tensor pivots, Tensor info) */
tp_tensor3 linalg_ldl_factor_ex_dense(tp_tensor *given, bool hermitian, bool check) {
    tp_tensor3 none = {{NULL}};
    tp_autoref *self = tp_still(given);
    if (!self) return none;
    if (tp_check_matrix("linalg.ldl_factor_ex", "A", self, true) < 0) return none;
    tp_autoref *half = tp_tril(self, 0), *LD = half ? tp_copy_columns(half, tp_batch_sizes(self, 2)) : NULL;
    tp_autoref *pivots = LD ? tp_new_vectors(tp_batch_sizes(self, 1), -1, TP_INT32, self->device) : NULL;
    tp_autoref *info = pivots ? new_info(self) : NULL;
    if (!info) return none;
    if (LD->numel) {
        tp_autoref *a = tp_as_columns(LD), *p = a ? tp_as_vectors(pivots, tp_rows(LD)) : NULL,
                   *i = p ? tp_as_vectors(info, -1) : NULL;
        if (!i || tp_prim_ldl(hermitian, a, p, i) < 0) return none;
    }
    if (check && check_errors(info, "linalg.ldl_factor_ex", self) < 0) return none;
    return (tp_tensor3){{tp_take(LD), tp_take(pivots), tp_take(info)}};
}
/* linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor */
tp_tensor *linalg_ldl_solve_dense(tp_tensor *LD, tp_tensor *pivots, tp_tensor *B, bool hermitian) {
    return solve_factored("linalg.ldl_solve", tp_prim_ldl_solve, LD, pivots, B, hermitian);
}

/* ---- solve ---- */

/* _linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)
 *   -> (Tensor result, Tensor LU, Tensor pivots, Tensor info) */
tp_tensor4 _linalg_solve_ex_composite(tp_tensor *A, tp_tensor *B, bool left, bool check) {
    tp_tensor4 none = {{NULL}};
    if (tp_check_matrix("linalg.solve", "A", A, true) < 0 || tp_check_same_matrices("linalg.solve", A, B) < 0)
        return none;
    if (B->ndim == 0)
        return tp_fail(TP_RuntimeError, "linalg.solve: The input tensor B must have at least 1 dimension"), none;
    bool vector = tp_is_vector_side(A, B);
    if (vector && !left)
        return tp_fail(TP_RuntimeError,
                       "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False."),
               none;
    tp_autoref *b = vector ? tp_unsqueeze(B, -1) : tp_retain(B);
    if (b && tp_rows(A) != (left ? tp_rows(b) : tp_columns(b)))
        return tp_fail(TP_RuntimeError,
                       "linalg.solve: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)",
                       left ? "AX = B" : "XA = B", (long long)tp_rows(A), (long long)tp_columns(A),
                       (long long)tp_rows(b), (long long)tp_columns(b)),
               none;
    tp_tensor3 f = b ? tp_linalg_lu_factor_ex(A, true, false) : (tp_tensor3){{NULL}};
    tp_autoref *LU = f.v[0], *pivots = f.v[1], *info = f.v[2];
    if (!LU || (check && check_errors(info, "linalg.solve", A) < 0)) return none;
    tp_autoref *x = tp_linalg_lu_solve(LU, pivots, b, left, false);
    tp_autoref *out = x && vector ? tp_squeeze_dim(x, -1) : tp_retain(x);
    if (!out) return none;
    return (tp_tensor4){{tp_take(out), tp_take(LU), tp_take(pivots), tp_take(info)}};
}

/* ---- inverses, determinants ---- */

/* linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info) */
tp_tensor2 linalg_inv_ex_composite(tp_tensor *A, bool check) {
    tp_tensor2 none = {{NULL}};
    if (tp_check_matrix("linalg.inv", "A", A, true) < 0) return none;
    tp_tensor3 f = tp_linalg_lu_factor_ex(A, true, false);
    tp_autoref *LU = f.v[0], *pivots = f.v[1], *info = f.v[2];
    if (!LU || (check && check_errors(info, "linalg.inv_ex", A) < 0)) return none;
    tp_autoref *one = tp_eye(tp_rows(A), (tp_dtype)A->dtype, TP_STRIDED, A->device, -1);
    tp_autoref *inverse = one ? tp_linalg_lu_solve(LU, pivots, one, true, false) : NULL;
    return inverse ? (tp_tensor2){{tp_take(inverse), tp_take(info)}} : none;
}
/* The sign of the permutation times the product of what stands on the diagonal; of no rows 1.
 * _linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots) */
tp_tensor3 _linalg_det_composite(tp_tensor *A) {
    tp_tensor3 none = {{NULL}};
    if (tp_check_matrix("linalg.det", "A", A, true) < 0) return none;
    tp_tensor3 f = tp_linalg_lu_factor_ex(A, true, false);
    tp_autoref *LU = f.v[0], *pivots = f.v[1];
    tp_release(f.v[2]);
    tp_autoref *sign = LU ? tp__lu_sign(pivots, (tp_dtype)A->dtype) : NULL,
               *line = sign ? tp_diagonal(LU, 0, -2, -1) : NULL;
    tp_autoref *product = line ? tp_prod_dim_int(line, -1, false, TP_NO_DTYPE) : NULL;
    tp_autoref *det = product ? tp_mul_Tensor(product, sign) : NULL;
    return det ? (tp_tensor3){{tp_take(det), tp_take(LU), tp_take(pivots)}} : none;
}
/* _linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor pivots) */
tp_tensor4 _linalg_slogdet_composite(tp_tensor *A) {
    tp_tensor4 none = {{NULL}};
    if (tp_check_matrix("linalg.slogdet", "A", A, true) < 0) return none;
    tp_tensor3 f = tp_linalg_lu_factor_ex(A, true, false);
    tp_autoref *LU = f.v[0], *pivots = f.v[1];
    tp_release(f.v[2]);
    tp_autoref *sign = LU ? tp__lu_sign(pivots, (tp_dtype)A->dtype) : NULL,
               *line = sign ? tp_diagonal(LU, 0, -2, -1) : NULL;
    tp_autoref *signs = line ? tp_sgn(line) : NULL,
               *product = signs ? tp_prod_dim_int(signs, -1, false, TP_NO_DTYPE) : NULL;
    tp_autoref *whole = product ? tp_mul_Tensor(product, sign) : NULL, *size = whole ? tp_abs(line) : NULL;
    tp_autoref *logs = size ? tp_log(size) : NULL,
               *sum = logs ? tp_sum_dim_IntList(logs, TP_INTS(-1), false, TP_NO_DTYPE) : NULL;
    return sum ? (tp_tensor4){{tp_take(whole), tp_take(sum), tp_take(LU), tp_take(pivots)}} : none;
}
