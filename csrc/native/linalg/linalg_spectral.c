/* linalg_spectral.c: orthogonal factorizations: qr, eigenvalues, singular values, least squares; and matrix_exp. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "native/linalg/linalg.h"
#include "native/common/variants.h"
#include "native/common/out.h"
#include "prim/transfer.h"

#include <float.h>
#include <math.h>
#include <string.h>

static int64_t least(const tp_tensor *a) { return tp_rows(a) < tp_columns(a) ? tp_rows(a) : tp_columns(a); }
static tp_tensor *nothing(const tp_tensor *like) {
    return tp_new_empty(TP_INTS(0), (tp_dtype)like->dtype, like->device);
}
static tp_tensor *new_codes(tp_ints batch, tp_device device) {
    tp_autoref *info = tp_new_vectors(batch, -1, TP_INT32, device);
    return info && (info->numel == 0 || tp_fill_data(info, TP_SCALAR_I(0)) == 0) ? tp_take(info) : NULL;
}

/* ---- qr ---- */

/* geqrf(Tensor self) -> (Tensor a, Tensor tau) */
tp_tensor2 geqrf_dense(tp_tensor *given) {
    tp_tensor2 none = {{NULL}};
    tp_autoref *self = tp_still(given);
    if (!self) return none;
    if (tp_check_matrix("geqrf", "input", self, false) < 0) return none;
    tp_ints batch = tp_batch_sizes(self, 2);
    tp_autoref *a = tp_copy_columns(self, batch);
    tp_autoref *tau = a ? tp_new_vectors(batch, least(self), (tp_dtype)self->dtype, self->device) : NULL;
    if (!tau) return none;
    if (a->numel) {
        tp_autoref *matrices = tp_as_columns(a), *factors = matrices ? tp_as_vectors(tau, least(self)) : NULL;
        if (!factors || tp_prim_qr(matrices, factors) < 0) return none;
    }
    return (tp_tensor2){{tp_take(a), tp_take(tau)}};
}

static int check_reflections(const char *op, const tp_tensor *input, const tp_tensor *tau) {
    if (tp_check_matrix(op, "input", input, false) < 0) return -1;
    if (tau->dtype != input->dtype)
        return tp_fail(TP_RuntimeError, "%s: tau dtype %s does not match input dtype %s", op,
                       tp_scalar_type_name((tp_dtype)tau->dtype), tp_scalar_type_name((tp_dtype)input->dtype));
    bool fits = tau->ndim == input->ndim - 1 &&
                memcmp(tau->sizes, input->sizes, (size_t)(input->ndim - 2) * sizeof *input->sizes) == 0;
    if (!fits)
        return tp_fail(TP_RuntimeError, "%s: Expected batch dimensions of tau to be equal to those of input", op);
    if (tau->sizes[tau->ndim - 1] > tp_columns(input))
        return tp_fail(TP_RuntimeError, "%s: input.shape[-1] must be greater than or equal to tau.shape[-1]", op);
    return 0;
}
/* linalg_householder_product(Tensor input, Tensor tau) -> Tensor */
tp_tensor *linalg_householder_product_dense(tp_tensor *given, tp_tensor *given_tau) {
    static const char op[] = "linalg.householder_product";
    tp_autoref *input = tp_still(given), *tau = input ? tp_still(given_tau) : NULL;
    if (!tau || check_reflections(op, input, tau) < 0) return NULL;
    if (tp_rows(input) < tp_columns(input))
        return tp_fail_null(TP_RuntimeError, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]",
                            op);
    tp_autoref *out = tp_copy_columns(input, tp_batch_sizes(input, 2));
    if (!out || out->numel == 0) return tp_take(out);
    if (tau->numel == 0) {
        tp_autoref *one =
            tp_eye_m(tp_rows(input), tp_columns(input), (tp_dtype)input->dtype, TP_STRIDED, input->device, -1);
        return one && tp_copy_data(out, one) == 0 ? tp_take(out) : NULL;
    }
    tp_autoref *whole = tp_contiguous(tau, TP_CONTIGUOUS_FORMAT);
    tp_autoref *factors = whole ? tp_as_vectors(whole, tau->sizes[tau->ndim - 1]) : NULL;
    tp_autoref *matrices = factors ? tp_as_columns(out) : NULL;
    return matrices && tp_prim_householder(factors, matrices) == 0 ? tp_take(out) : NULL;
}

/* ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor */
tp_tensor *ormqr_dense(tp_tensor *given, tp_tensor *given_tau, tp_tensor *given_other, bool left, bool adjoint) {
    tp_autoref *self = tp_still(given), *tau = self ? tp_still(given_tau) : NULL,
               *other = tau ? tp_still(given_other) : NULL;
    if (!other) return NULL;
    bool are_matrices = self->ndim >= 2 && other->ndim >= 2 && tau->ndim >= 1;
    int64_t least = are_matrices ? tp_min_int(tp_rows(other), tp_columns(self)) : 0;
    if (left && are_matrices && tau->sizes[tau->ndim - 1] != least)
        return tp_fail_null(TP_RuntimeError,
                            "ormqr: tau.shape[-1] must be equal to min(other.shape[-2], input.shape[-1])");
    if (check_reflections("ormqr", self, tau) < 0 || tp_check_matrix("ormqr", "other", other, false) < 0) return NULL;
    if ((left ? tp_rows(other) : tp_columns(other)) != tp_rows(self))
        return tp_fail_null(TP_RuntimeError, "ormqr: other.shape[%d] must be equal to input.shape[-2]", left ? -2 : -1);
    if (other->dtype != self->dtype || other->ndim != self->ndim ||
        memcmp(other->sizes, self->sizes, (size_t)(self->ndim - 2) * sizeof *self->sizes))
        return tp_fail_null(TP_RuntimeError, "ormqr: input and other must have the same dtype and batch dimensions");
    tp_autoref *out = tp_copy_columns(other, tp_batch_sizes(other, 2));
    if (!out || out->numel == 0 || tau->numel == 0) return tp_take(out);
    int64_t k = tau->sizes[tau->ndim - 1];
    tp_autoref *first = tp_narrow(self, -1, 0, k),
               *held = first ? tp_copy_columns(first, tp_batch_sizes(self, 2)) : NULL;
    tp_autoref *a = held ? tp_as_columns(held) : NULL, *whole = a ? tp_contiguous(tau, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *factors = whole ? tp_as_vectors(whole, k) : NULL, *c = factors ? tp_as_columns(out) : NULL;
    return c && tp_prim_householder_multiply(a, factors, left, adjoint, c) == 0 ? tp_take(out) : NULL;
}

/* linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R) */
tp_tensor2 linalg_qr_composite(tp_tensor *A, const char *mode) {
    tp_tensor2 none = {{NULL}};
    bool complete = strcmp(mode, "complete") == 0, alone = strcmp(mode, "r") == 0;
    if (!complete && !alone && strcmp(mode, "reduced"))
        return tp_fail(TP_RuntimeError,
                       "qr received unrecognized mode '%s' but expected one of 'reduced' (default), 'r', or 'complete'",
                       mode),
               none;
    if (tp_check_matrix("linalg.qr", "A", A, false) < 0) return none;
    tp_tensor2 f = tp_geqrf(A);
    tp_autoref *a = f.v[0], *tau = f.v[1];
    if (!a) return none;
    int64_t k = least(a), m = tp_rows(a);
    tp_autoref *top = tp_narrow(a, -2, 0, complete ? m : k), *R = top ? tp_triu(top, 0) : NULL;
    if (!R) return none;
    if (alone) {
        tp_autoref *Q = nothing(A);
        return Q ? (tp_tensor2){{tp_take(Q), tp_take(R)}} : none;
    }
    tp_autoref *left = tp_narrow(a, -1, 0, k), *wide = left && complete && m > k
                                                           ? tp_constant_pad_nd(left, TP_INTS(0, m - k), TP_SCALAR_I(0))
                                                           : tp_retain(left);
    tp_autoref *Q = wide ? tp_linalg_householder_product(wide, tau) : NULL;
    return Q ? (tp_tensor2){{tp_take(Q), tp_take(R)}} : none;
}

/* With P_i = H_i P_i+1 and P_1 the product, H_i = 1 - tau v v^H, the gradient of each P_i gives those of v and tau, and
 * of P_i+1; H_i is taken back from P_i on the way. The one on the diagonal of v is a constant.
 * _householder_product_backward(Tensor grad, Tensor result, Tensor input, Tensor tau) -> (Tensor, Tensor) */
tp_tensor2 _householder_product_backward_composite(tp_tensor *grad, tp_tensor *result, tp_tensor *input,
                                                   tp_tensor *tau) {
    tp_tensor2 none = {{NULL}};
    tp_tensor *const alike[] = {input, result, grad};
    for (int i = 0; i < 3; i++)
        if (tp_check_matrix("linalg.householder_product", "input", alike[i], false) < 0) return none;
    int64_t n = tp_columns(input), m = tp_rows(input), k = tau->ndim ? tau->sizes[tau->ndim - 1] : -1;
    bool fits = tau->ndim == input->ndim - 1 && k >= 0 && k <= n && n <= m && tp_columns(result) == n &&
                tp_rows(result) == m && tp_columns(grad) == n && tp_rows(grad) == m;
    if (!fits)
        return tp_fail(TP_RuntimeError, "linalg.householder_product: the gradient is of other matrices than the call"),
               none;
    tp_autoref *below = tp_tril(input, -1);
    tp_autoref *one = below ? tp_eye_m(m, n, (tp_dtype)input->dtype, TP_STRIDED, input->device, -1) : NULL;
    tp_autoref *vectors = one ? tp_add_Tensor(below, one, TP_SCALAR_I(1)) : NULL, *G = tp_retain(grad),
               *P = tp_retain(result);
    tp_autoseq *to_v = tp_tensor_seq_new(n), *to_tau = tp_tensor_seq_new(k);
    if (!vectors || !to_v || !to_tau) return none;
    for (int64_t i = 0; i < n; i++) {
        tp_autoref *v = tp_narrow(vectors, -1, i, 1);
        if (i >= k) {
            to_v->items[i] = v ? tp_mul_Scalar(v, TP_SCALAR_I(0)) : NULL;
            if (!to_v->items[i]) return none;
            continue;
        }
        tp_autoref *vh = v ? tp_adjoint(v) : NULL, *flat_t = vh ? tp_narrow(tau, -1, i, 1) : NULL;
        tp_autoref *t = flat_t ? tp_unsqueeze(flat_t, -1) : NULL; /* [..., 1, 1] */
        tp_autoref *length = t ? tp_matmul(vh, v) : NULL, *scaled = length ? tp_mul_Tensor(t, length) : NULL;
        tp_autoref *bottom = scaled ? tp_sub_Scalar(scaled, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL;
        tp_autoref *back = bottom ? tp_div_Tensor(t, bottom) : NULL, *vhP = back ? tp_matmul(vh, P) : NULL;
        tp_autoref *step = vhP ? tp_matmul(v, vhP) : NULL, *part = step ? tp_mul_Tensor(back, step) : NULL;
        tp_autoref *before = part ? tp_sub_Tensor(P, part, TP_SCALAR_I(1)) : NULL; /* P_i+1 */
        tp_autoref *w = before ? tp_matmul(vh, before) : NULL, *wh = w ? tp_adjoint(w) : NULL;
        tp_autoref *vhG = wh ? tp_matmul(vh, G) : NULL, *dot = vhG ? tp_matmul(vhG, wh) : NULL;
        tp_autoref *minus = dot ? tp_neg(dot) : NULL;
        to_tau->items[i] = minus ? tp_squeeze_dim(minus, -1) : NULL;
        tp_autoref *tc = to_tau->items[i] ? tp_conj(t) : NULL, *Gw = tc ? tp_matmul(G, wh) : NULL;
        tp_autoref *a = Gw ? tp_mul_Tensor(tc, Gw) : NULL, *Ghv = a ? tp_adjoint(vhG) : NULL;
        tp_autoref *b = Ghv ? tp_matmul(before, Ghv) : NULL, *c = b ? tp_mul_Tensor(t, b) : NULL;
        tp_autoref *both = c ? tp_add_Tensor(a, c, TP_SCALAR_I(1)) : NULL;
        to_v->items[i] = both ? tp_neg(both) : NULL;
        tp_autoref *vG = to_v->items[i] ? tp_matmul(v, vhG) : NULL, *less = vG ? tp_mul_Tensor(tc, vG) : NULL;
        tp_tensor *next = less ? tp_sub_Tensor(G, less, TP_SCALAR_I(1)) : NULL;
        if (!next) return none;
        tp_release(G);
        G = next;
        tp_release(P);
        P = tp_take(before);
    }
    tp_autoref *all = n ? tp_cat(tp_tensor_seq_borrow(to_v), -1) : tp_retain(below),
               *gv = all ? tp_tril(all, -1) : NULL;
    tp_autoref *gt = !gv ? NULL : k ? tp_cat(tp_tensor_seq_borrow(to_tau), -1) : tp_retain(tau);
    return gt ? (tp_tensor2){{tp_take(gv), tp_take(gt)}} : none;
}

/* ---- eigenvalues ---- */

/* _linalg_eigh(Tensor A, str UPLO="L", bool compute_v=True) -> (Tensor eigenvalues, Tensor eigenvectors) */
tp_tensor2 _linalg_eigh_dense(tp_tensor *given, const char *uplo, bool compute_v) {
    tp_tensor2 none = {{NULL}};
    tp_autoref *A = tp_still(given);
    if (!A) return none;
    if (tp_check_matrix("linalg.eigh", "A", A, true) < 0) return none;
    bool upper = uplo[0] == 'U' || uplo[0] == 'u', lower = uplo[0] == 'L' || uplo[0] == 'l';
    if ((!upper && !lower) || uplo[1])
        return tp_fail(TP_RuntimeError, "Expected UPLO argument to be 'L' or 'U', but got %s", uplo), none;
    tp_ints batch = tp_batch_sizes(A, 2);
    tp_autoref *half = upper ? tp_triu(A, 0) : tp_tril(A, 0), *V = half ? tp_copy_columns(half, batch) : NULL;
    tp_autoref *values = V ? tp_new_vectors(batch, tp_rows(A), tp_to_real_dtype((tp_dtype)A->dtype), A->device) : NULL;
    tp_autoref *info = values ? new_codes(batch, A->device) : NULL;
    if (!info) return none;
    if (V->numel) {
        tp_autoref *a = tp_as_columns(V), *w = a ? tp_as_vectors(values, tp_rows(A)) : NULL,
                   *i = w ? tp_as_vectors(info, -1) : NULL;
        if (!i || tp_prim_eigh(upper, compute_v, a, w, i) < 0 ||
            tp__linalg_check_errors(info, "linalg.eigh", A->ndim == 2) < 0)
            return none;
    }
    tp_autoref *vectors = compute_v ? tp_retain(V) : nothing(A);
    return vectors ? (tp_tensor2){{tp_take(values), tp_take(vectors)}} : none;
}

/* linalg_eigh.eigvals(Tensor self, str UPLO="L", *, Tensor(a!) eigvals, Tensor(b!) eigvecs)
 *   -> (Tensor(a!) eigenvalues, Tensor(b!) eigenvectors) */
int linalg_eigh_eigvals_composite(tp_tensor *self, const char *uplo, tp_tensor *eigvals, tp_tensor *eigvecs) {
    tp_tensor2 made = tp__linalg_eigh(self, uplo, true);
    tp_tensor *const outs[] = {eigvals, eigvecs};
    return made.v[0] ? tp_copy_into_outs_steal(outs, made.v, 2) : -1;
}

static int eig(tp_tensor *given, tp_tensor **values, tp_tensor **vectors) {
    tp_autoref *self = tp_still(given);
    if (!self) return -1;
    if (tp_check_matrix("linalg.eig", "A", self, true) < 0) return -1;
    tp_ints batch = tp_batch_sizes(self, 2);
    tp_dtype dtype = tp_to_complex_dtype((tp_dtype)self->dtype);
    int64_t n = tp_rows(self);
    tp_autoref *a = tp_copy_columns(self, batch), *w = a ? tp_new_vectors(batch, n, dtype, self->device) : NULL;
    tp_autoref *v = w && vectors ? tp_new_columns(batch, n, n, dtype, self->device) : NULL;
    tp_autoref *info = w && (v || !vectors) ? new_codes(batch, self->device) : NULL;
    if (!info) return -1;
    if (a->numel) {
        tp_autoref *matrices = tp_as_columns(a), *flat_w = matrices ? tp_as_vectors(w, n) : NULL;
        tp_autoref *flat_v = flat_w && v ? tp_as_columns(v) : NULL, *i = flat_w ? tp_as_vectors(info, -1) : NULL;
        if (!i || (v && !flat_v) || tp_prim_eig(matrices, flat_w, flat_v, i) < 0 ||
            tp__linalg_check_errors(info, "linalg.eig", self->ndim == 2) < 0)
            return -1;
    }
    *values = tp_take(w);
    if (vectors) *vectors = tp_take(v);
    return 0;
}
/* linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors) */
tp_tensor2 linalg_eig_dense(tp_tensor *self) {
    tp_tensor2 out = {{NULL}};
    return eig(self, &out.v[0], &out.v[1]) == 0 ? out : (tp_tensor2){{NULL}};
}
/* _linalg_eigvals(Tensor self) -> Tensor */
tp_tensor *_linalg_eigvals_dense(tp_tensor *self) {
    tp_tensor *values = NULL;
    return eig(self, &values, NULL) == 0 ? values : NULL;
}

/* ---- singular values ---- */

/* U and Vh of matrices without elements: ones on the diagonal, as many as there are. */
static int fill_eye(tp_tensor *t) {
    if (t->numel == 0) return 0;
    tp_autoref *one = tp_eye_m(tp_rows(t), tp_columns(t), (tp_dtype)t->dtype, TP_STRIDED, t->device, -1);
    return one ? tp_copy_data(t, one) : -1;
}
/* _linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)
 *   -> (Tensor U, Tensor S, Tensor Vh) */
tp_tensor3 _linalg_svd_dense(tp_tensor *given, bool full, bool compute_uv, const char *driver) {
    tp_tensor3 none = {{NULL}};
    tp_autoref *A = tp_still(given);
    if (!A) return none;
    if (tp_check_matrix("linalg.svd", "A", A, false) < 0) return none;
    if (driver)
        return tp_fail(
                   TP_RuntimeError,
                   "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs, where there are several"),
               none;
    tp_ints batch = tp_batch_sizes(A, 2);
    int64_t m = tp_rows(A), n = tp_columns(A), k = least(A);
    tp_dtype dtype = (tp_dtype)A->dtype;
    tp_autoref *S = tp_new_vectors(batch, k, tp_to_real_dtype(dtype), A->device);
    tp_autoref *U = compute_uv ? tp_new_columns(batch, m, full ? m : k, dtype, A->device) : nothing(A);
    tp_autoref *Vh = compute_uv ? tp_new_columns(batch, full ? n : k, n, dtype, A->device) : nothing(A);
    tp_autoref *info = S && U && Vh ? new_codes(batch, A->device) : NULL;
    if (!info) return none;
    if (A->numel == 0) {
        if (compute_uv && (fill_eye(U) < 0 || fill_eye(Vh) < 0)) return none;
    } else {
        tp_autoref *held = tp_copy_columns(A, batch), *a = held ? tp_as_columns(held) : NULL;
        tp_autoref *s = a ? tp_as_vectors(S, k) : NULL, *i = s ? tp_as_vectors(info, -1) : NULL;
        tp_autoref *u = i && compute_uv ? tp_as_columns(U) : NULL, *vh = u ? tp_as_columns(Vh) : NULL;
        if (!i || (compute_uv && !vh) || tp_prim_svd(a, u, s, vh, i) < 0 ||
            tp__linalg_check_errors(info, "linalg.svd", A->ndim == 2) < 0)
            return none;
    }
    return (tp_tensor3){{tp_take(U), tp_take(S), tp_take(Vh)}};
}

/* ---- least squares ---- */

enum { GELS, GELSY, GELSD, GELSS };
static int driver_of(const char *driver) {
    static const char *const names[] = {"gels", "gelsy", "gelsd", "gelss"};
    for (int i = 0; i < 4; i++)
        if (strcmp(driver ? driver : "gelsy", names[i]) == 0) return i;
    return tp_fail(TP_RuntimeError, "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
}
static int call_driver(int driver, double rcond, tp_tensor *a, tp_tensor *b, tp_tensor *rank, tp_tensor *values,
                       tp_tensor *info) {
    tp_autoref *matrices = tp_as_columns(a), *sides = matrices ? tp_as_columns(b) : NULL;
    tp_autoref *i = sides ? tp_as_vectors(info, -1) : NULL, *r = i ? tp_as_vectors(rank, -1) : NULL;
    tp_autoref *s = r ? tp_as_vectors(values, least(a)) : NULL;
    if (!s) return -1;
    switch (driver) {
    case GELS: return tp_prim_lstsq_gels(matrices, sides, i);
    case GELSY: return tp_prim_lstsq_gelsy(rcond, matrices, sides, r, i);
    case GELSD: return tp_prim_lstsq_gelsd(rcond, matrices, sides, r, s, i);
    default: return tp_prim_lstsq_gelss(rcond, matrices, sides, r, s, i);
    }
}
/* The squared distances of each column, where that is known: more rows than columns, all of full rank. */
static tp_tensor *residuals_of(int driver, const tp_tensor *a, tp_tensor *x, tp_tensor *rank) {
    int64_t m = tp_rows(a), n = tp_columns(a);
    tp_dtype real = tp_to_real_dtype((tp_dtype)a->dtype);
    bool known = m > n && driver != GELSY;
    if (known && driver != GELS && tp_has_values(rank) && rank->numel) {
        tp_scalar lowest;
        tp_autoref *low = tp_amin(rank, TP_EMPTY_INTS, false);
        if (!low || tp_item(low, &lowest) < 0) return NULL;
        known = tp_scalar_int(&lowest) == n;
    }
    if (!known) return tp_new_empty(TP_INTS(0), real, a->device);
    tp_autoref *rest = tp_narrow(x, -2, n, m - n), *size = rest ? tp_abs(rest) : NULL,
               *square = size ? tp_square(size) : NULL;
    return square ? tp_sum_dim_IntList(square, TP_INTS(-2), false, TP_NO_DTYPE) : NULL;
}
/* linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)
 *   -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values) */
tp_tensor4 linalg_lstsq_dense(tp_tensor *given, tp_tensor *given_b, tp_opt_float rcond, const char *driver) {
    static const char op[] = "linalg.lstsq";
    tp_tensor4 none = {{NULL}};
    tp_autoref *self = tp_still(given), *b = self ? tp_still(given_b) : NULL;
    if (!b) return none;
    int64_t batch[TP_MAX_DIMS];
    int which = driver_of(driver);
    if (which < 0 || tp_check_matrix(op, "input", self, false) < 0 || tp_check_same_matrices(op, self, b) < 0)
        return none;
    if (b->ndim == 0) return tp_fail(TP_RuntimeError, "%s: other must have at least 1 dimension", op), none;
    if (self->ndim < b->ndim || self->ndim - b->ndim > 1)
        return tp_fail(
                   TP_RuntimeError,
                   "torch.%s: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1",
                   op),
               none;
    bool vector = tp_is_vector_side(self, b);
    tp_autoref *side = vector ? tp_unsqueeze(b, -1) : tp_retain(b);
    int64_t m = tp_rows(self), n = tp_columns(self), k = least(self), most = m > n ? m : n;
    if (side && tp_rows(side) != m)
        return tp_fail(TP_RuntimeError, "%s: input.size(-2) should match other.size(-%d)", op, vector ? 1 : 2), none;
    int nb = side ? tp_broadcast_sizes(tp_batch_sizes(self, 2), tp_batch_sizes(side, 2), batch) : -1;
    if (nb < 0) return none;
    tp_ints sizes = {batch, nb};
    tp_dtype dtype = (tp_dtype)self->dtype, real = tp_to_real_dtype(dtype);
    tp_autoref *a = tp_copy_columns(self, sizes),
               *padded =
                   most > m ? tp_constant_pad_nd(side, TP_INTS(0, 0, 0, most - m), TP_SCALAR_I(0)) : tp_retain(side);
    tp_autoref *x = a && padded ? tp_copy_columns(padded, sizes) : NULL,
               *info = x ? new_codes(sizes, self->device) : NULL;
    tp_autoref *rank = info ? new_codes(sizes, self->device) : NULL,
               *values = rank ? tp_new_vectors(sizes, k, real, self->device) : NULL;
    if (!values) return none;
    double eps = real == TP_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
    if (a->numel && x->numel) {
        if (call_driver(which, rcond.has ? rcond.value : eps * (double)most, a, x, rank, values, info) < 0 ||
            tp__linalg_check_errors(info, op, self->ndim == 2) < 0)
            return none;
    } /* else x holds what is left: b, whose squares are the residuals, or zeros */
    tp_autoref *first = tp_narrow(x, -2, 0, n);
    tp_autoref *top = first && most > n ? tp_copy_columns(first, sizes) : tp_retain(first),
               *solution = top && vector ? tp_squeeze_dim(top, -1) : tp_retain(top);
    tp_autoref *residuals = solution ? residuals_of(which, self, x, rank) : NULL;
    tp_autoref *ranks = which == GELS ? tp_new_empty(TP_INTS(0), TP_INT64, self->device)
                                      : tp_to_dtype(rank, TP_INT64, false, false, TP_NO_FORMAT);
    tp_autoref *singular = which >= GELSD ? tp_retain(values) : tp_new_empty(TP_INTS(0), real, self->device);
    if (!residuals || !ranks || !singular) return none;
    return (tp_tensor4){{tp_take(solution), tp_take(residuals), tp_take(ranks), tp_take(singular)}};
}

/* ---- matrix_exp ---- */

/* a * x, added to `sum`, which is replaced. */
static int add_scaled(tp_tensor **sum, tp_tensor *x, double a) {
    tp_tensor *more = tp_add_Tensor(*sum, x, TP_SCALAR_F(a));
    tp_release(*sum);
    *sum = more;
    return more ? 0 : -1;
}
/* a6 (c12 a6 + c10 a4 + c8 a2) + c6 a6 + c4 a4 + c2 a2 + c0. */
static tp_tensor *polynomial(tp_tensor *one, tp_tensor *a2, tp_tensor *a4, tp_tensor *a6, const double *c) {
    tp_autoref *high = tp_mul_Scalar(a6, TP_SCALAR_F(c[12]));
    if (!high || add_scaled(&high, a4, c[10]) < 0 || add_scaled(&high, a2, c[8]) < 0) return NULL;
    tp_autoref *sum = tp_matmul(a6, high);
    bool ok = sum && add_scaled(&sum, a6, c[6]) == 0 && add_scaled(&sum, a4, c[4]) == 0 &&
              add_scaled(&sum, a2, c[2]) == 0 && add_scaled(&sum, one, c[0]) == 0;
    return ok ? tp_take(sum) : NULL;
}
/* The Padé approximant of degree 13 (Higham 2005, "The scaling and squaring method for the matrix exponential
 * revisited"), for matrices of a norm up to 5.37. */
static tp_tensor *pade(tp_tensor *a) {
    static const double b[] = {64764752532480000.,
                               32382376266240000.,
                               7771770303897600.,
                               1187353796428800.,
                               129060195264000.,
                               10559470521600.,
                               670442572800.,
                               33522128640.,
                               1323241920.,
                               40840800.,
                               960960.,
                               16380.,
                               182.,
                               1.};
    tp_autoref *one = tp_eye(tp_rows(a), (tp_dtype)a->dtype, TP_STRIDED, a->device, -1);
    tp_autoref *a2 = one ? tp_matmul(a, a) : NULL, *a4 = a2 ? tp_matmul(a2, a2) : NULL,
               *a6 = a4 ? tp_matmul(a4, a2) : NULL;
    tp_autoref *even = a6 ? polynomial(one, a2, a4, a6, b) : NULL,
               *odd = even ? polynomial(one, a2, a4, a6, b + 1) : NULL;
    tp_autoref *u = odd ? tp_matmul(a, odd) : NULL, *top = u ? tp_add_Tensor(even, u, TP_SCALAR_I(1)) : NULL;
    tp_autoref *bottom = top ? tp_sub_Tensor(even, u, TP_SCALAR_I(1)) : NULL;
    tp_tensor2 x = bottom ? tp_linalg_solve_ex(bottom, top, true, false) : (tp_tensor2){{NULL}};
    tp_release(x.v[1]);
    return x.v[0];
}
/* How often each matrix is halved before and squared after, as floats; [..., 1, 1]. */
static tp_tensor *halvings(tp_tensor *a) {
    tp_autoref *size = tp_abs(a), *sums = size ? tp_sum_dim_IntList(size, TP_INTS(-2), true, TP_NO_DTYPE) : NULL;
    tp_autoref *norm = sums ? tp_amax(sums, TP_INTS(-1), true) : NULL;
    tp_autoref *part = norm ? tp_mul_Scalar(norm, TP_SCALAR_F(1 / 5.37)) : NULL, *log = part ? tp_log2(part) : NULL;
    tp_autoref *whole = log ? tp_ceil(log) : NULL;
    return whole ? tp_clamp(whole, TP_SCALAR_I(0), TP_SCALAR_I(1100)) : NULL;
}
static int most_of(tp_tensor *counts, int *most) {
    tp_scalar number = {.kind = TP_SCALAR_FLOAT, .f = 0};
    tp_autoref *highest = tp_has_values(counts) ? tp_max(counts) : NULL;
    if (tp_has_values(counts) && (!highest || tp_item(highest, &number) < 0)) return -1;
    double value = tp_scalar_double(&number);
    *most = isfinite(value) ? (int)value : 0; /* of a NaN all is NaN anyway */
    return 0;
}
static tp_tensor *exp_of_reduced(tp_tensor *self) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    tp_autoref *wide = tp_to_dtype(self, tp_compute_dtype(dtype), false, false, TP_NO_FORMAT);
    tp_autoref *result = wide ? tp_linalg_matrix_exp(wide) : NULL;
    return result ? tp_to_dtype(result, dtype, false, false, TP_NO_FORMAT) : NULL;
}
/* linalg_matrix_exp(Tensor self) -> Tensor */
tp_tensor *linalg_matrix_exp_composite(tp_tensor *self) {
    if (tp_is_reduced_dtype((tp_dtype)self->dtype)) return exp_of_reduced(self);
    if (tp_check_matrix("linalg.matrix_exp", "A", self, true) < 0) return NULL;
    if (self->numel == 0) return tp_clone(self, TP_NO_FORMAT);
    if (tp_rows(self) == 1) return tp_exp(self);
    int most = 0;
    tp_autoref *counts = halvings(self), *minus = counts && most_of(counts, &most) == 0 ? tp_neg(counts) : NULL;
    tp_autoref *scale = minus ? tp_exp2(minus) : NULL, *small = scale ? tp_mul_Tensor(self, scale) : NULL;
    tp_autoref *x = small ? pade(small) : NULL;
    for (int i = 0; x && i < most; i++) {
        tp_autoref *square = tp_matmul(x, x), *more = square ? tp_gt_Scalar(counts, TP_SCALAR_I(i)) : NULL;
        tp_tensor *next = more ? tp_where_self(more, square, x) : NULL;
        tp_release(x);
        x = next;
    }
    return x ? tp_contiguous(x, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* ---- products of several ---- */

/* The order of the cheapest products, by dynamic programming (Cormen et al., "Introduction to Algorithms"). */
static tp_tensor *product_of(tp_tensor **m, const int *split, int n, int from, int to) {
    if (from == to) return tp_retain(m[from]);
    int at = split[from * n + to];
    tp_autoref *left = product_of(m, split, n, from, at), *right = left ? product_of(m, split, n, at + 1, to) : NULL;
    return right ? tp_mm(left, right) : NULL;
}
enum { MANY = 64 };
static tp_tensor *cheapest(tp_tensor **m, int n) {
    double cost[MANY * MANY] = {0};
    int split[MANY * MANY] = {0};
    for (int length = 2; length <= n; length++)
        for (int from = 0, to = length - 1; to < n; from++, to++) {
            cost[from * n + to] = INFINITY;
            for (int at = from; at < to; at++) {
                double all = cost[from * n + at] + cost[(at + 1) * n + to] +
                             (double)m[from]->sizes[0] * (double)m[at]->sizes[1] * (double)m[to]->sizes[1];
                if (all < cost[from * n + to]) cost[from * n + to] = all, split[from * n + to] = at;
            }
        }
    return product_of(m, split, n, 0, n - 1);
}
static int check_chain(tp_tensors list) {
    if (list.size < 2)
        return tp_fail(TP_RuntimeError, "multi_dot(): expected at least 2 tensors but got %lld", (long long)list.size);
    if (list.size > MANY) return tp_fail(TP_RuntimeError, "multi_dot(): more than %d tensors", MANY);
    for (int64_t i = 0; i < list.size; i++) {
        int ndim = list.data[i]->ndim;
        bool end = i == 0 || i == list.size - 1;
        if (ndim != 2 && !end)
            return tp_fail(TP_RuntimeError, "multi_dot(): tensor %lld must be 2D but got %dD", (long long)i, ndim);
        if (ndim != 2 && ndim != 1)
            return tp_fail(TP_RuntimeError, "multi_dot(): the %s tensor must be 1D or 2D but got %dD",
                           i == 0 ? "first" : "last", ndim);
        tp_dtype first = (tp_dtype)list.data[0]->dtype, other = (tp_dtype)list.data[i]->dtype;
        if (first != other)
            return tp_fail(TP_RuntimeError,
                           "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor %lld %s",
                           tp_c_type_name(first), (long long)i, tp_c_type_name(other));
    }
    return 0;
}
/* linalg_multi_dot(Tensor[] tensors) -> Tensor */
tp_tensor *linalg_multi_dot_composite(tp_tensors tensors) {
    if (check_chain(tensors) < 0) return NULL;
    int n = (int)tensors.size;
    tp_tensor *m[MANY], *first = tensors.data[0], *last = tensors.data[n - 1];
    tp_autoref *head = first->ndim == 1 ? tp_unsqueeze(first, 0) : tp_retain(first);
    tp_autoref *tail = last->ndim == 1 ? tp_unsqueeze(last, 1) : tp_retain(last);
    if (!head || !tail) return NULL;
    for (int i = 0; i < n; i++) m[i] = i == 0 ? head : i == n - 1 ? tail : tensors.data[i];
    for (int i = 0; i + 1 < n; i++)
        if (m[i]->sizes[1] != m[i + 1]->sizes[0])
            return tp_fail_null(
                TP_RuntimeError,
                "multi_dot(): tensors %d and %d with shapes [%lld, %lld] and [%lld, %lld] cannot be multiplied", i,
                i + 1, (long long)m[i]->sizes[0], (long long)m[i]->sizes[1], (long long)m[i + 1]->sizes[0],
                (long long)m[i + 1]->sizes[1]);
    tp_autoref *out = cheapest(m, n);
    tp_autoref *flat = out && first->ndim == 1 ? tp_squeeze_dim(out, 0) : tp_retain(out);
    return flat && last->ndim == 1 ? tp_squeeze_dim(flat, -1) : tp_take(flat);
}
