/* nested_math.c: products, norms and padding of nested tensors (Note [Nested kernels]). */
#include "native/layout/nested.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "prim/table.h"

#include <string.h>

/* ---- along a dimension ---- */

typedef tp_tensor *(*along_dim)(tp_tensor *self, int64_t dim, tp_dtype dtype);

static tp_tensor *softmax_by(tp_tensor *self, int64_t dim, tp_dtype dtype, along_dim f) {
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, self->ndim);
    if (at < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (n.count == 0) return tp_nested_none(&n);
    if (at == 0)
        return tp_fail_null(
            TP_RuntimeError,
            "softmax(): not supported for NestedTensor on dim=0: Cannot apply softmax across nested dimension 0");
    if (!n.shapes && at != n.ragged) return tp_nested_with_steal(&n, f(n.values, at - 1, dtype), n.ragged);
    if (tp_nested_check_no_holes(&n, TP_RuntimeError, "softmax") < 0) return NULL;
    tp_autoseq *pieces = tp_pieces(&n), *made = pieces ? tp_tensor_seq_new(n.count) : NULL;
    for (int64_t i = 0; made && i < n.count; i++)
        if (!(made->items[i] = f(pieces->items[i], at - 1, dtype))) return NULL;
    return made ? tp_nested_of_results(&n, tp_tensor_seq_borrow(made)) : NULL;
}

/* softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *softmax_nested(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return softmax_by(self, dim, dtype, tp_softmax_int);
}
/* log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor */
tp_tensor *log_softmax_nested(tp_tensor *self, int64_t dim, tp_dtype dtype) {
    return softmax_by(self, dim, dtype, tp_log_softmax_int);
}

/* ---- products ---- */

/* Whether the last dimension is one that the pieces share. */
static bool has_rows(const tp_nested *n) { return !n->shapes && n->ragged < n->values->ndim; }

/* linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor */
tp_tensor *linear_nested(tp_tensor *input, tp_tensor *weight, tp_tensor *bias) {
    tp_autonested n = {0};
    if (tp_is_nested(weight) || (bias && tp_is_nested(bias)))
        return tp_fail_null(TP_RuntimeError, "linear: a nested tensor as weight or bias");
    if (tp_nested_of(input, &n) < 0) return NULL;
    if (has_rows(&n)) return tp_nested_with_steal(&n, tp_linear(n.values, weight, bias), n.ragged);
    tp_autoseq *pieces = tp_pieces(&n), *made = pieces ? tp_tensor_seq_new(n.count) : NULL;
    for (int64_t i = 0; made && i < n.count; i++)
        if (!(made->items[i] = tp_linear(pieces->items[i], weight, bias))) return NULL;
    return made ? tp_nested_of_results(&n, tp_tensor_seq_borrow(made)) : NULL;
}

static tp_tensor *part_of(tp_tensor *t, const tp_nested *n, int ndim, int64_t i) {
    bool batch = tp_is_nested(t) || (t->ndim == ndim && t->sizes[0] == n->count);
    return batch ? tp_select_int(t, 0, i) : tp_retain(t);
}

static bool alike(tp_tensors pieces) {
    for (int64_t i = 1; i < pieces.size; i++)
        if (!tp_same_sizes(pieces.data[i], pieces.data[0])) return false;
    return pieces.size > 0;
}

/* Whether the product is along the differing dimension of both, which it does not have then. */
static bool contracts(tp_tensor *a, tp_tensor *b) {
    tp_autoparts *one = tp_parts_of(a), *two = one ? tp_parts_of(b) : NULL;
    return two && one->fact[TP_FACT_RAGGED] == a->ndim - 1 && two->fact[TP_FACT_RAGGED] == b->ndim - 2;
}

/* matmul(Tensor self, Tensor other) -> Tensor */
tp_tensor *matmul_nested(tp_tensor *self, tp_tensor *other) {
    tp_autonested n = {0};
    tp_tensor *like = tp_is_nested(self) ? self : other;
    if (tp_nested_of(like, &n) < 0) return NULL;
    if (like == self && !tp_is_nested(other) && other->ndim == 2 && has_rows(&n))
        return tp_nested_with_steal(&n, tp_matmul(n.values, other), n.ragged);
    if (tp_is_nested(self) && tp_is_nested(other) && self->sizes[0] != other->sizes[0])
        return tp_fail_null(
            TP_RuntimeError,
            "matmul: Expected size for the 1st dimension of 2nd input tensor to be: %lld but got: %lld.",
            (long long)self->sizes[0], (long long)other->sizes[0]);
    tp_autoseq *made = tp_tensor_seq_new(n.count);
    for (int64_t i = 0; made && i < n.count; i++) {
        tp_autoref *a = part_of(self, &n, like->ndim, i), *b = a ? part_of(other, &n, like->ndim, i) : NULL;
        if (!b || !(made->items[i] = tp_matmul(a, b))) return NULL;
    }
    if (!made) return NULL;
    bool dense = n.jagged && tp_is_nested(self) && tp_is_nested(other) && alike(tp_tensor_seq_borrow(made)) &&
                 contracts(self, other);
    return dense ? tp_stack(tp_tensor_seq_borrow(made), 0) : tp_nested_of_results(&n, tp_tensor_seq_borrow(made));
}

/* layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, ...) -> Tensor */
tp_tensor *layer_norm_nested(tp_tensor *input, tp_ints normalized_shape, tp_tensor *weight, tp_tensor *bias, double eps,
                             bool cudnn_enable) {
    tp_autonested n = {0};
    if (!tp_is_nested(input)) return tp_fail_null(TP_RuntimeError, "layer_norm: a nested tensor as weight or bias");
    if (tp_nested_of(input, &n) < 0) return NULL;
    if (!n.shapes && normalized_shape.size <= n.values->ndim - n.ragged)
        return tp_nested_with_steal(&n, tp_layer_norm(n.values, normalized_shape, weight, bias, eps, cudnn_enable),
                                    n.ragged);
    int64_t shape[TP_MAX_DIMS], ragged = n.ragged - (input->ndim - normalized_shape.size);
    if (normalized_shape.size >= input->ndim)
        return tp_fail_null(TP_RuntimeError,
                            "layer_norm(): not supported when normalizing over the batch dimension for "
                            "NestedTensor");
    for (int64_t d = 0; d < normalized_shape.size; d++) shape[d] = normalized_shape.data[d];
    bool differs = !n.shapes && ragged >= 0 && shape[ragged] == -1;
    tp_autoseq *pieces = tp_pieces(&n), *made = pieces ? tp_tensor_seq_new(n.count) : NULL;
    for (int64_t i = 0; made && i < n.count; i++) {
        if (differs) shape[ragged] = n.length[i];
        if (!(made->items[i] = tp_layer_norm(pieces->items[i], (tp_ints){shape, normalized_shape.size}, weight, bias,
                                             eps, cudnn_enable)))
            return NULL;
    }
    return made ? tp_nested_of_results(&n, tp_tensor_seq_borrow(made)) : NULL;
}

/* ---- padding ---- */

static int padded_sizes(const tp_tensor *self, const tp_nested *n, tp_ints wanted, int64_t *sizes) {
    for (int d = 0; d < self->ndim; d++) sizes[d] = self->sizes[d];
    if (n->jagged && n->most >= 0) sizes[n->ragged] = n->most;
    if (wanted.size < 0) return 0;
    if (wanted.size != self->ndim)
        return tp_fail(TP_RuntimeError, "to_padded_tensor: output_size has %lld numbers, the tensor %d dimensions",
                       (long long)wanted.size, self->ndim);
    for (int d = 1; d < self->ndim; d++) {
        bool taken = !n->jagged || d == n->ragged;
        if (!n->jagged && wanted.data[d] < sizes[d])
            return tp_fail(TP_RuntimeError, "Value in output_size is less than NestedTensor padded size. Truncation is "
                                            "not supported.");
        if (taken) sizes[d] = wanted.data[d];
    }
    return 0;
}

static tp_tensor *padded_piece(tp_tensor *piece, tp_ints sizes, const tp_scalar *padding) {
    int64_t pad[2 * TP_MAX_DIMS] = {0};
    for (int64_t d = 0; d < sizes.size; d++) pad[2 * (sizes.size - 1 - d) + 1] = sizes.data[d] - piece->sizes[d];
    return tp_constant_pad_nd(piece, (tp_ints){pad, 2 * sizes.size}, padding);
}

/* to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor: of a jagged one what is longer
 * is left out, as in PyTorch */
tp_tensor *to_padded_nested(tp_tensor *self, double padding, tp_ints output_size) {
    tp_autonested n = {0};
    int64_t sizes[TP_MAX_DIMS];
    if (tp_nested_of(self, &n) < 0 || tp_nested_check_no_holes(&n, TP_RuntimeError, "to_padded_tensor") < 0)
        return NULL;
    if (n.count == 0 && !n.jagged)
        return tp_empty_memory_format(TP_INTS(0), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1, TP_NO_FORMAT);
    if (padded_sizes(self, &n, output_size, sizes) < 0) return NULL;
    if (n.count == 0 || (!n.jagged && n.values->numel == 0))
        return tp_fail_null(TP_RuntimeError, "to_padded_tensor: at least one constituent tensor should have non-zero "
                                             "numel");
    bool whole_numbers = !tp_is_floating(self) && !tp_is_complex(self);
    if (whole_numbers && !(padding > -0x1p62 && padding < 0x1p62))
        return tp_fail_null(TP_RuntimeError, "to_padded_tensor: a padding that is no whole number");
    tp_autoseq *pieces = tp_pieces(&n), *made = pieces ? tp_tensor_seq_new(n.count) : NULL;
    tp_scalar number = whole_numbers ? *TP_SCALAR_I((int64_t)padding) : *TP_SCALAR_F(padding);
    for (int64_t i = 0; made && i < n.count; i++)
        if (!(made->items[i] = padded_piece(pieces->items[i], (tp_ints){sizes + 1, self->ndim - 1}, &number)))
            return NULL;
    return made ? tp_stack(tp_tensor_seq_borrow(made), 0) : NULL;
}
