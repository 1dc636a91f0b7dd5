/* matmul.c: matrix products: shapes and checks, and matmul on top of mm and bmm. */
#include "Functions.h"
#include "NativeFunctions.h"
#include "native/common/checks.h"
#include "native/common/out.h"
#include "Primitives.h"
#include "core/scalar_math.h"
#include "prim/transfer.h"
#include "iter/iter.h"

#include <string.h>

static int fail_sizes(const char *what, const tp_tensor *a, const tp_tensor *b) {
    tp_autotext x = {0}, y = {0};
    tp_text_ints(&x, tp_sizes(a));
    tp_text_ints(&y, tp_sizes(b));
    return tp_fail(TP_RuntimeError, "%s %s and %s", what, x.text, y.text);
}

static int check_beside_mat2(const char *name, const tp_tensor *t, const tp_tensor *mat2) {
    if (t->dtype == mat2->dtype) return 0;
    return tp_fail(TP_RuntimeError, "%s and mat2 must have the same dtype, but got %s and %s", name,
                   tp_scalar_type_name((tp_dtype)t->dtype), tp_scalar_type_name((tp_dtype)mat2->dtype));
}
static int check_addend_dtype(const tp_tensor *self, const tp_tensor *mat2) {
    return check_beside_mat2("self", self, mat2);
}
static int check_batch_dtypes(const tp_tensor *self, const tp_tensor *batch1, const tp_tensor *batch2) {
    if (self->dtype == batch1->dtype && self->dtype == batch2->dtype) return 0;
    return tp_fail(TP_RuntimeError, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                   tp_dtype_names[self->dtype], tp_dtype_names[batch1->dtype], tp_dtype_names[batch2->dtype]);
}

static int check_matrices(const char *op, const char *first, const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != 2) return tp_fail(TP_RuntimeError, "%s: %s must be a matrix, got %d-D tensor", op, first, a->ndim);
    if (b->ndim != 2) return tp_fail(TP_RuntimeError, "%s: mat2 must be a matrix, got %d-D tensor", op, b->ndim);
    if (a->sizes[1] != b->sizes[0])
        return tp_fail(TP_RuntimeError, "%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)", op,
                       (long long)a->sizes[0], (long long)a->sizes[1], (long long)b->sizes[0], (long long)b->sizes[1]);
    return tp_check_same_dtype("m1 and m2", a, b);
}

static tp_tensor *as_float(tp_tensor *t) { return tp_to_dtype(t, TP_FLOAT32, false, false, TP_NO_FORMAT); }

/* 8-bit floats are multiplied in float32, and the result is rounded once. */
static int TP_COLD product_of_float8(tp_tensor *a, tp_tensor *b, const tp_scalar *alpha, const tp_scalar *beta,
                                     tp_tensor *out) {
    tp_autoref *wide_a = as_float(a), *wide_b = as_float(b), *sum = as_float(out);
    if (!wide_a || !wide_b || !sum || tp_prim_product(wide_a, wide_b, alpha, beta, sum) < 0) return -1;
    return tp_copy_data(out, sum);
}

static int product(tp_tensor *a, tp_tensor *b, const tp_scalar *alpha, const tp_scalar *beta, tp_tensor *out) {
    return tp_unlikely(tp_is_float8_dtype((tp_dtype)out->dtype)) ? product_of_float8(a, b, alpha, beta, out)
                                                                 : tp_prim_product(a, b, alpha, beta, out);
}

static int multiply(tp_tensor *a, tp_tensor *b, tp_tensor *out) {
    if (out->numel == 0) return 0;
    if (a->numel == 0) return tp_fill_data(out, TP_SCALAR_I(0));
    return product(a, b, TP_SCALAR_I(1), TP_SCALAR_I(0), out);
}

/* ---- mm, addmm ---- */

/* mm(Tensor self, Tensor mat2) -> Tensor */
int mm_meta(tp_meta *m, tp_tensor *self, tp_tensor *mat2) {
    if (check_matrices("mm", "self", self, mat2) < 0) return -1;
    return tp_meta_output(m, 0, TP_INTS(self->sizes[0], mat2->sizes[1]), TP_NO_INTS, (tp_dtype)self->dtype,
                          self->device);
}

int mm_dense(tp_tensor *self, tp_tensor *mat2, tp_tensor *out) { return multiply(self, mat2, out); }

/* What is added has to expand to the sizes of the product; the factors are numbers of the dtype. */
static int check_addend(const char *op, const tp_tensor *self, tp_ints sizes, const tp_scalar *beta,
                        const tp_scalar *alpha) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    if (tp_scalar_check_fits(beta, dtype) < 0 || tp_scalar_check_fits(alpha, dtype) < 0)
        return tp_error_prefix("%s: ", op);
    bool fits = self->ndim <= sizes.size;
    for (int64_t i = 1; fits && i <= self->ndim; i++)
        fits = self->sizes[self->ndim - i] == 1 || self->sizes[self->ndim - i] == sizes.data[sizes.size - i];
    if (fits) return 0;
    tp_autotext a = {0}, b = {0};
    tp_text_ints(&a, tp_sizes(self));
    tp_text_ints(&b, sizes);
    return tp_fail(TP_RuntimeError,
                   "%s: The expanded size of the tensor must match: input of size %s does not expand to %s", op, a.text,
                   b.text);
}

/* Puts beta's part into out where the product will not: everything if the product is over no elements. */
static int start(tp_tensor *self, tp_tensor *out, const tp_scalar *beta, bool empty_product) {
    if (tp_scalar_equals_int(beta, 0)) return empty_product ? tp_fill_data(out, TP_SCALAR_I(0)) : 0;
    if (tp_copy_data(out, self) < 0) return -1;
    return empty_product && !tp_scalar_equals_int(beta, 1) ? tp_mul__Scalar(out, beta) : 0;
}

/* addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor */
int addmm_meta(tp_meta *m, tp_tensor *self, tp_tensor *mat1, tp_tensor *mat2, const tp_scalar *beta,
               const tp_scalar *alpha) {
    if (check_matrices("addmm", "mat1", mat1, mat2) < 0 || check_addend_dtype(self, mat2) < 0) return -1;
    tp_ints sizes = TP_INTS(mat1->sizes[0], mat2->sizes[1]);
    return check_addend("addmm", self, sizes, beta, alpha) < 0
               ? -1
               : tp_meta_output(m, 0, sizes, TP_NO_INTS, (tp_dtype)mat1->dtype, mat1->device);
}

int addmm_dense(tp_tensor *self, tp_tensor *mat1, tp_tensor *mat2, const tp_scalar *beta, const tp_scalar *alpha,
                tp_tensor *out) {
    bool empty = mat1->sizes[1] == 0;
    if (out->numel == 0) return 0;
    return start(self, out, beta, empty) < 0 || empty ? (tp_error_pending() ? -1 : 0)
                                                      : product(mat1, mat2, alpha, beta, out);
}

/* ---- batches ---- */

static int check_batches(const char *op, const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != 3 || b->ndim != 3)
        return tp_fail(TP_RuntimeError, "batch%d must be a 3D tensor: %s got %dD and %dD", a->ndim != 3 ? 1 : 2, op,
                       a->ndim, b->ndim);
    if (a->sizes[0] != b->sizes[0] || a->sizes[2] != b->sizes[1]) {
        return tp_fail(TP_RuntimeError,
                       "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, "
                       "%lld].",
                       (long long)a->sizes[0], (long long)a->sizes[2], (long long)b->sizes[0], (long long)b->sizes[1]);
    }
    return tp_check_same_dtype("batch1 and batch2", a, b);
}

/* bmm(Tensor self, Tensor mat2) -> Tensor */
int bmm_meta(tp_meta *m, tp_tensor *self, tp_tensor *mat2) {
    if (check_batches("bmm", self, mat2) < 0) return -1;
    return tp_meta_output(m, 0, TP_INTS(self->sizes[0], self->sizes[1], mat2->sizes[2]), TP_NO_INTS,
                          (tp_dtype)self->dtype, self->device);
}

int bmm_dense(tp_tensor *self, tp_tensor *mat2, tp_tensor *out) { return multiply(self, mat2, out); }

/* baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor */
int baddbmm_meta(tp_meta *m, tp_tensor *self, tp_tensor *batch1, tp_tensor *batch2, const tp_scalar *beta,
                 const tp_scalar *alpha) {
    if (check_batch_dtypes(self, batch1, batch2) < 0 || check_batches("baddbmm", batch1, batch2) < 0) return -1;
    tp_ints sizes = TP_INTS(batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]);
    return check_addend("baddbmm", self, sizes, beta, alpha) < 0
               ? -1
               : tp_meta_output(m, 0, sizes, TP_NO_INTS, (tp_dtype)batch1->dtype, batch1->device);
}

int baddbmm_dense(tp_tensor *self, tp_tensor *batch1, tp_tensor *batch2, const tp_scalar *beta, const tp_scalar *alpha,
                  tp_tensor *out) {
    bool empty = batch1->sizes[2] == 0;
    if (out->numel == 0) return 0;
    if (start(self, out, beta, empty) < 0) return -1;
    return empty ? 0 : product(batch1, batch2, alpha, beta, out);
}

/* addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor: one product, with the
 * batch as part of the inner dimension. */
tp_tensor *addbmm_composite(tp_tensor *self, tp_tensor *batch1, tp_tensor *batch2, const tp_scalar *beta,
                            const tp_scalar *alpha) {
    if (check_batches("addbmm", batch1, batch2) < 0) return NULL;
    int64_t b = batch1->sizes[0], n = batch1->sizes[1], k = batch1->sizes[2], p = batch2->sizes[2];
    tp_autoref *turned = tp_permute(batch1, TP_INTS(1, 0, 2)),
               *left = turned ? tp_reshape(turned, TP_INTS(n, b * k)) : NULL;
    tp_autoref *right = left ? tp_reshape(batch2, TP_INTS(b * k, p)) : NULL;
    return right ? tp_addmm(self, left, right, beta, alpha) : NULL;
}

/* ---- vectors ---- */

static int check_vector(const char *op, const char *name, const tp_tensor *t) {
    return t->ndim == 1 ? 0 : tp_fail(TP_RuntimeError, "%s: Expected 1-D argument %s, but got %d-D", op, name, t->ndim);
}

static int check_mv(const tp_tensor *mat, const tp_tensor *vec) {
    if (mat->ndim != 2 || vec->ndim != 1)
        return tp_fail(TP_RuntimeError, "vector + matrix @ vector expected, got 1, %d, %d", mat->ndim, vec->ndim);
    if (mat->sizes[1] != vec->sizes[0])
        return tp_fail(TP_RuntimeError, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                       (long long)mat->sizes[0], (long long)mat->sizes[0], (long long)mat->sizes[1],
                       (long long)vec->sizes[0]);
    return tp_check_same_dtype("the matrix and the vector", mat, vec);
}

/* A vector as a matrix of one column or one row, and its element count as one number; views below the dispatcher. */
static tp_tensor *column(const tp_tensor *t) {
    return tp_new_alias(t, TP_INTS(t->numel, 1), TP_INTS(t->strides[0], 1), t->byte_offset);
}
static tp_tensor *row(const tp_tensor *t) {
    return tp_new_alias(t, TP_INTS(1, t->numel), TP_INTS(t->numel ? t->numel : 1, t->strides[0]), t->byte_offset);
}

/* mv(Tensor self, Tensor vec) -> Tensor */
tp_tensor *mv_dense(tp_tensor *self, tp_tensor *vec) {
    if (check_mv(self, vec) < 0) return NULL;
    tp_autoref *out = tp_new_empty(TP_INTS(self->sizes[0]), (tp_dtype)self->dtype, self->device);
    tp_autoref *x = out ? column(vec) : NULL, *y = out ? column(out) : NULL;
    return x && y && multiply(self, x, y) == 0 ? tp_take(out) : NULL;
}

/* addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor */
tp_tensor *addmv_composite(tp_tensor *self, tp_tensor *mat, tp_tensor *vec, const tp_scalar *beta,
                           const tp_scalar *alpha) {
    if (check_mv(mat, vec) < 0 || check_addend("addmv", self, TP_INTS(mat->sizes[0]), beta, alpha) < 0) return NULL;
    tp_autoref *addend = self->ndim ? tp_unsqueeze(self, 1) : tp_retain(self), *x = tp_unsqueeze(vec, 1);
    tp_autoref *out = addend && x ? tp_addmm(addend, mat, x, beta, alpha) : NULL;
    return out ? tp_squeeze_dim(out, 1) : NULL;
}

static int check_dot(const char *op, const tp_tensor *self, const tp_tensor *other) {
    if (self->ndim != 1 || other->ndim != 1)
        return tp_fail(TP_RuntimeError, "%s: 1D tensors expected, but got %dD and %dD tensors", op, self->ndim,
                       other->ndim);
    if (self->dtype != other->dtype)
        return tp_fail(TP_RuntimeError, "dot : expected both vectors to have same dtype, but found %s and %s",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)other->dtype));
    if (self->numel != other->numel)
        return tp_fail(TP_RuntimeError,
                       "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of "
                       "elements, but got %lld and %lld elements respectively",
                       (long long)self->numel, (long long)other->numel, (long long)self->numel,
                       (long long)other->numel);
    return 0;
}

/* dot(Tensor self, Tensor tensor) -> Tensor */
tp_tensor *dot_dense(tp_tensor *self, tp_tensor *tensor) {
    if (check_dot("dot", self, tensor) < 0) return NULL;
    tp_autoref *out = tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
    tp_autoref *x = out ? row(self) : NULL, *y = out ? column(tensor) : NULL;
    tp_autoref *cell = out ? tp_new_alias(out, TP_INTS(1, 1), TP_INTS(1, 1), out->byte_offset) : NULL;
    return x && y && cell && multiply(x, y, cell) == 0 ? tp_take(out) : NULL;
}

/* vdot(Tensor self, Tensor other) -> Tensor */
tp_tensor *vdot_composite(tp_tensor *self, tp_tensor *other) {
    if (check_dot("vdot", self, other) < 0) return NULL;
    tp_autoref *conjugate = tp_conj(self);
    return conjugate ? tp_dot(conjugate, other) : NULL;
}

/* outer(Tensor self, Tensor vec2) -> Tensor */
tp_tensor *outer_composite(tp_tensor *self, tp_tensor *vec2) {
    if (check_vector("outer", "self", self) < 0 || check_vector("outer", "vec2", vec2) < 0) return NULL;
    tp_autoref *left = tp_unsqueeze(self, 1);
    return left ? tp_mul_Tensor(left, vec2) : NULL;
}
tp_tensor *ger_composite(tp_tensor *self, tp_tensor *vec2) { return tp_outer(self, vec2); }

/* inner(Tensor self, Tensor other) -> Tensor */
tp_tensor *inner_composite(tp_tensor *self, tp_tensor *other) {
    if (self->ndim == 0 || other->ndim == 0) return tp_mul_Tensor(self, other);
    if (self->sizes[self->ndim - 1] != other->sizes[other->ndim - 1])
        return fail_sizes("inner() the last dimension must match on both input tensors but got shapes", self, other),
               NULL;
    return tp_tensordot(self, other, TP_INTS(-1), TP_INTS(-1));
}

/* ---- tensordot ---- */

/* The dimensions that are not contracted, then those that are (or the other way round). */
static int contraction_order(const tp_tensor *t, tp_ints dims, bool contracted_first, int64_t *order,
                             int64_t *product) {
    bool used[TP_MAX_DIMS] = {false};
    int64_t kept = t->ndim - dims.size, n = contracted_first ? dims.size : 0;
    *product = 1;
    for (int64_t i = 0; i < dims.size; i++) {
        int64_t d = tp_wrap_dim(dims.data[i], t->ndim);
        if (d < 0) return -1;
        if (t->ndim == 0 || used[d])
            return tp_fail(TP_RuntimeError, "tensordot: dim %lld appears multiple times in the list of dims",
                           (long long)d);
        used[d] = true;
        order[(contracted_first ? 0 : kept) + i] = d;
        *product *= t->sizes[d];
    }
    for (int64_t d = 0; d < t->ndim; d++)
        if (!used[d]) order[n++] = d;
    return 0;
}

/* Where one tensor has size 1 in a contracted dimension and the other more, it is as if it were broadcast: the other is
 * summed. New references. */
static int sum_lonely_dims(tp_tensor **self, tp_tensor **other, tp_ints dims_self, tp_ints dims_other) {
    for (int64_t i = 0; i < dims_self.size; i++) {
        int64_t d = tp_wrap_dim(dims_self.data[i], (*self)->ndim), e = tp_wrap_dim(dims_other.data[i], (*other)->ndim);
        if (d < 0 || e < 0) return -1;
        int64_t a = tp_size_at(tp_sizes(*self), d), b = tp_size_at(tp_sizes(*other), e);
        if (a == b || (a != 1 && b != 1)) continue;
        tp_tensor **longer = a == 1 ? other : self;
        tp_tensor *sum = tp_sum_dim_IntList(*longer, TP_INTS(a == 1 ? e : d), true, (tp_dtype)(*longer)->dtype);
        if (!sum) return -1;
        tp_release(*longer);
        *longer = sum;
    }
    return 0;
}
/* tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor */
tp_tensor *tensordot_composite(tp_tensor *first, tp_tensor *second, tp_ints dims_self, tp_ints dims_other) {
    tp_autoref *self = tp_retain(first), *other = tp_retain(second);
    if (dims_self.size != dims_other.size)
        return tp_fail_null(TP_RuntimeError, "both dimension lists should have same length");
    if (dims_self.size > self->ndim || dims_other.size > other->ndim)
        return tp_fail_null(TP_RuntimeError, "tensordot: more dims than dimensions");
    if (sum_lonely_dims(&self, &other, dims_self, dims_other) < 0) return NULL;
    int64_t order_a[TP_MAX_DIMS], order_b[TP_MAX_DIMS], k, k_b, sizes[2 * TP_MAX_DIMS], n = 0;
    if (contraction_order(self, dims_self, false, order_a, &k) < 0 ||
        contraction_order(other, dims_other, true, order_b, &k_b) < 0)
        return NULL;
    for (int64_t i = 0; i < dims_self.size; i++) {
        int64_t a = self->sizes[order_a[self->ndim - dims_self.size + i]], b = other->sizes[order_b[i]];
        if (a != b)
            return tp_fail_null(TP_RuntimeError,
                                "contracted dimensions need to match, but first has size %lld and second has size %lld",
                                (long long)a, (long long)b);
    }
    int64_t rows = 1, cols = 1;
    for (int64_t i = 0; i < self->ndim - dims_self.size; i++) rows *= sizes[n++] = self->sizes[order_a[i]];
    for (int64_t i = dims_other.size; i < other->ndim; i++) cols *= sizes[n++] = other->sizes[order_b[i]];
    tp_autoref *a = tp_permute(self, (tp_ints){order_a, self->ndim}),
               *b = tp_permute(other, (tp_ints){order_b, other->ndim});
    tp_autoref *left = a ? tp_reshape(a, TP_INTS(rows, k)) : NULL, *right = b ? tp_reshape(b, TP_INTS(k, cols)) : NULL;
    tp_autoref *out = left && right ? tp_mm(left, right) : NULL;
    return out ? tp_reshape(out, (tp_ints){sizes, n}) : NULL;
}

/* ---- matmul ---- */

/* The general case: leading dimensions broadcast and become one batch. */
static tp_tensor *matmul_batched(tp_tensor *a, tp_tensor *b) {
    int64_t sizes[TP_MAX_DIMS], full[TP_MAX_DIMS];
    int64_t rows = a->sizes[a->ndim - 2], k = a->sizes[a->ndim - 1], cols = b->sizes[b->ndim - 1], batch = 1;
    int n = tp_broadcast_sizes((tp_ints){a->sizes, a->ndim - 2}, (tp_ints){b->sizes, b->ndim - 2}, sizes);
    if (n < 0) return NULL;
    for (int i = 0; i < n; i++) batch *= sizes[i];
    memcpy(full, sizes, (size_t)n * sizeof *full);
    full[n] = rows, full[n + 1] = k;
    tp_autoref *wide_a = tp_expand(a, (tp_ints){full, n + 2}, false),
               *left = wide_a ? tp_reshape(wide_a, TP_INTS(batch, rows, k)) : NULL;
    full[n] = b->sizes[b->ndim - 2], full[n + 1] = cols;
    tp_autoref *wide_b = left ? tp_expand(b, (tp_ints){full, n + 2}, false) : NULL;
    tp_autoref *right = wide_b ? tp_reshape(wide_b, TP_INTS(batch, b->sizes[b->ndim - 2], cols)) : NULL;
    tp_autoref *out = right ? tp_bmm(left, right) : NULL;
    full[n] = rows;
    return out ? tp__unsafe_view(out, (tp_ints){full, n + 2}) : NULL;
}

/* Matrices times one matrix: all rows in one product. */
static tp_tensor *matmul_folded(tp_tensor *a, tp_tensor *b) {
    int64_t sizes[TP_MAX_DIMS], rows = 1, k = a->sizes[a->ndim - 1];
    for (int i = 0; i + 1 < a->ndim; i++) rows *= sizes[i] = a->sizes[i];
    sizes[a->ndim - 1] = b->sizes[1];
    tp_autoref *flat = tp_reshape(a, TP_INTS(rows, k)), *out = flat ? tp_mm(flat, b) : NULL;
    return out ? tp__unsafe_view(out, (tp_ints){sizes, a->ndim}) : NULL;
}

static tp_tensor *without(tp_tensor *t, int64_t dim) {
    tp_autoref *given = t;
    return given ? tp_squeeze_dim(given, dim) : NULL;
}

/* matmul(Tensor self, Tensor other) -> Tensor */
tp_tensor *matmul_composite(tp_tensor *self, tp_tensor *other) {
    int a = self->ndim, b = other->ndim;
    if (a == 0 || b == 0)
        return tp_fail_null(TP_RuntimeError,
                            "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a, b);
    if (a == 2 && b == 2) return tp_mm(self, other);
    if (a == 1 && b == 1) return tp_dot(self, other);
    if (a == 2 && b == 1) return tp_mv(self, other);
    if (b == 1) {
        tp_autoref *x = tp_unsqueeze(other, 1);
        return x ? without(matmul_folded(self, x), -1) : NULL;
    }
    if (a == 1) {
        tp_autoref *x = tp_unsqueeze(self, 0);
        return x ? without(tp_matmul(x, other), -2) : NULL;
    }
    if (b == 2) return matmul_folded(self, other);
    /* A gradient of the one matrix that is summed over a batch would be rounded for each of it. */
    if (a == 2 && tp_is_reduced_dtype((tp_dtype)self->dtype)) {
        tp_autoref *right = tp_transpose_int(other, -2, -1), *left = right ? tp_t(self) : NULL,
                   *turned = left ? matmul_folded(right, left) : NULL,
                   *out = turned ? tp_transpose_int(turned, -2, -1) : NULL;
        return out ? tp_contiguous(out, TP_CONTIGUOUS_FORMAT) : NULL;
    }
    return matmul_batched(self, other);
}

/* A bias does not widen the product; one with more dimensions, of size 1, has its last ones. */
static tp_tensor *with_bias(tp_tensor *out, tp_tensor *bias) {
    bool plain = bias->ndim == 1 && out->ndim > 0 && bias->sizes[0] == out->sizes[out->ndim - 1];
    if (plain) return tp_add_Tensor(out, bias, TP_SCALAR_I(1));
    bool wide = bias->ndim > out->ndim && bias->numel == out->numel;
    tp_autoref *last = wide ? tp_reshape(bias, tp_sizes(out)) : tp_retain(bias);
    tp_autoref *whole = last ? tp_expand(last, tp_sizes(out), false) : NULL;
    return whole ? tp_add_Tensor(out, whole, TP_SCALAR_I(1)) : NULL;
}

/* linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor */
tp_tensor *linear_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias) {
    if (weight->ndim < 1 || weight->ndim > 2)
        return tp_fail_null(TP_RuntimeError, "linear: weight must have one or two dimensions, got %d", weight->ndim);
    tp_autoref *w = weight->ndim == 2 ? tp_t(weight) : tp_retain(weight);
    if (!w || (bias ? check_addend_dtype(bias, weight) < 0 || check_beside_mat2("mat1", input, weight) < 0
                    : tp_check_same_dtype("m1 and m2", input, weight) < 0))
        return NULL;
    if (input->ndim == 2 && bias && weight->ndim == 2) return tp_addmm(bias, input, w, TP_SCALAR_I(1), TP_SCALAR_I(1));
    /* Rows of all leading dimensions: what is added goes into the product, before that is rounded. */
    if (input->ndim > 0 && bias && weight->ndim == 2 && tp_is_reduced_dtype((tp_dtype)input->dtype)) {
        int64_t sizes[TP_MAX_DIMS], rows = 1, k = input->sizes[input->ndim - 1];
        for (int i = 0; i + 1 < input->ndim; i++) rows *= sizes[i] = input->sizes[i];
        sizes[input->ndim - 1] = weight->sizes[0];
        tp_autoref *flat = tp_reshape(input, TP_INTS(rows, k)),
                   *sum = flat ? tp_addmm(bias, flat, w, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL;
        return sum ? tp__unsafe_view(sum, (tp_ints){sizes, input->ndim}) : NULL;
    }
    tp_autoref *out = tp_matmul(input, w);
    return out && bias ? with_bias(out, bias) : tp_take(out);
}

/* t with dimensions of size 1 at these places. New. */
static tp_tensor *unsqueezed_at(tp_tensor *t, tp_ints places) {
    bool is_new[TP_MAX_DIMS] = {false};
    int64_t ndim = t->ndim + places.size;
    for (int64_t i = 0; i < places.size; i++) {
        int64_t d = ndim > TP_MAX_DIMS ? tp_fail(TP_RuntimeError, "_trilinear: more than %d dimensions", TP_MAX_DIMS)
                                       : tp_wrap_dim(places.data[i], (int)ndim);
        if (d < 0) return NULL;
        is_new[d] = true;
    }
    tp_tensor *made = tp_retain(t);
    for (int d = 0; made && d < ndim; d++)
        if (is_new[d]) {
            tp_autoref *before = made;
            made = tp_unsqueeze(before, d);
        }
    return made;
}
/* _trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, int
 * unroll_dim=1) -> Tensor */
tp_tensor *_trilinear_composite(tp_tensor *i1, tp_tensor *i2, tp_tensor *i3, tp_ints expand1, tp_ints expand2,
                                tp_ints expand3, tp_ints sumdim, int64_t unroll_dim TP_UNUSED) {
    tp_autoref *a = unsqueezed_at(i1, expand1), *b = a ? unsqueezed_at(i2, expand2) : NULL,
               *c = b ? unsqueezed_at(i3, expand3) : NULL, *two = c ? tp_mul_Tensor(a, b) : NULL,
               *all = two ? tp_mul_Tensor(two, c) : NULL;
    return all && sumdim.size > 0 ? tp_sum_dim_IntList(all, sumdim, false, TP_NO_DTYPE) : tp_take(all);
}
