/* linalg_norm.c: powers and pseudo-inverses of matrices, and systems of tensors. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/linalg/linalg.h"

#include <string.h>

/* By squares: for each bit of n, the square so far is a factor or not.
 * linalg_matrix_power(Tensor self, int n) -> Tensor */
tp_tensor *linalg_matrix_power_composite(tp_tensor *self, int64_t n) {
    if (self->ndim < 2)
        return tp_fail_null(TP_RuntimeError,
                            "linalg.matrix_power: The input tensor A must have at least 2 dimensions.");
    if (tp_rows(self) != tp_columns(self))
        return tp_fail_null(
            TP_RuntimeError,
            "linalg.matrix_power: A must be batches of square matrices, but they are %lld by %lld matrices",
            (long long)tp_rows(self), (long long)tp_columns(self));
    if (n == 0) {
        tp_autoref *one = tp_eye(tp_rows(self), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1);
        tp_autoref *out = one ? tp_clone(self, TP_CONTIGUOUS_FORMAT) : NULL; /* whose gradient is zero, not missing */
        return out && tp_copy_(out, one, false) == 0 ? tp_take(out) : NULL;
    }
    tp_autoref *square = n < 0 ? tp_linalg_inv(self) : tp_retain(self), *out = NULL;
    for (uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n; square; left >>= 1) {
        if (left & 1) {
            tp_tensor *more = out ? tp_matmul(out, square) : tp_retain(square);
            tp_release(out);
            out = more;
            if (!out) return NULL;
        }
        if (left <= 1) break;
        tp_tensor *next = tp_matmul(square, square);
        tp_release(square);
        square = next;
    }
    if (n == 1 && out) return tp_clone(out, TP_NO_FORMAT);
    return square ? tp_take(out) : NULL;
}

/* linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor */
tp_tensor *linalg_pinv_atol_rtol_tensor_composite(tp_tensor *self, tp_tensor *atol, tp_tensor *rtol, bool hermitian) {
    if (self->ndim < 2)
        return tp_fail_null(TP_RuntimeError,
                            "linalg.pinv: expected a tensor with 2 or more dimensions of float, double, cfloat or "
                            "cdouble types, got %d dimensions",
                            self->ndim);
    return tp__pinv(self, atol, rtol, hermitian);
}

/* linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor */
tp_tensor *linalg_tensorsolve_composite(tp_tensor *self, tp_tensor *other, tp_ints dims) {
    tp_autoref *a = tp_retain(self);
    if (dims.size >= 0) {
        int64_t last[TP_MAX_DIMS];
        for (int64_t i = 0; i < dims.size && i < TP_MAX_DIMS; i++) last[i] = self->ndim - dims.size + i;
        tp_tensor *moved = tp_movedim_intlist(a, dims, (tp_ints){last, dims.size});
        tp_release(a);
        a = moved;
        if (!a) return NULL;
    }
    if (a->ndim < other->ndim)
        return tp_fail_null(TP_RuntimeError, "linalg.tensorsolve: the first tensor has too few dimensions");
    tp_ints shape = {a->sizes + other->ndim, a->ndim - other->ndim};
    int64_t n = other->numel, m = 1;
    for (int64_t i = 0; i < shape.size; i++) m *= shape.data[i];
    if (n != m)
        return tp_fail_null(TP_RuntimeError,
                            "linalg.tensorsolve: Expected self to satisfy the requirement "
                            "prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got %lld != %lld",
                            (long long)m, (long long)n);
    tp_autoref *matrix = tp_reshape(a, TP_INTS(n, m)), *side = matrix ? tp_reshape(other, TP_INTS(-1)) : NULL;
    tp_autoref *x = side ? tp_linalg_solve(matrix, side, true) : NULL;
    return x ? tp_reshape(x, shape) : NULL;
}
