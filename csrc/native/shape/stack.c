/* stack.c: tensors put side by side after they were given enough dimensions, and grids. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"

#include <string.h>

/* ---- at least so many dimensions ---- */

tp_tensor *atleast_1d_composite(tp_tensor *self) { return self->ndim ? tp_retain(self) : tp_reshape(self, TP_INTS(1)); }
tp_tensor *atleast_2d_composite(tp_tensor *self) {
    if (self->ndim == 0) return tp_reshape(self, TP_INTS(1, 1));
    return self->ndim == 1 ? tp_unsqueeze(self, 0) : tp_retain(self);
}
tp_tensor *atleast_3d_composite(tp_tensor *self) {
    if (self->ndim >= 3) return tp_retain(self);
    tp_autoref *matrix = atleast_2d_composite(self);
    return matrix ? tp_unsqueeze(matrix, 2) : NULL;
}
static tp_tensor *as_columns(tp_tensor *self) {
    return self->ndim <= 1 ? tp_reshape(self, TP_INTS(self->numel, 1)) : tp_retain(self);
}

static tp_tensor_seq *each(tp_tensors tensors, tp_tensor *(*f)(tp_tensor *)) {
    tp_autoseq *seq = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; seq && i < tensors.size; i++)
        if (!(seq->items[i] = f(tensors.data[i]))) return NULL;
    return seq ? tp_take(seq) : NULL;
}
tp_tensor_seq *atleast_1d_Sequence_composite(tp_tensors tensors) { return each(tensors, atleast_1d_composite); }
tp_tensor_seq *atleast_2d_Sequence_composite(tp_tensors tensors) { return each(tensors, atleast_2d_composite); }
tp_tensor_seq *atleast_3d_Sequence_composite(tp_tensors tensors) { return each(tensors, atleast_3d_composite); }

/* ---- side by side ---- */

static tp_tensor *join(const char *op, tp_tensors tensors, tp_tensor *(*f)(tp_tensor *), int64_t dim) {
    if (tensors.size <= 0) return tp_fail_null(TP_RuntimeError, "%s expects a non-empty TensorList", op);
    tp_autoseq *seq = each(tensors, f);
    if (!seq) return NULL;
    return tp_cat(tp_tensor_seq_borrow(seq), dim < 0 ? seq->items[0]->ndim != 1 : dim);
}
tp_tensor *hstack_composite(tp_tensors tensors) { return join("hstack", tensors, atleast_1d_composite, -1); }
tp_tensor *vstack_composite(tp_tensors tensors) { return join("vstack", tensors, atleast_2d_composite, 0); }
tp_tensor *row_stack_composite(tp_tensors tensors) { return join("row_stack", tensors, atleast_2d_composite, 0); }
tp_tensor *dstack_composite(tp_tensors tensors) { return join("dstack", tensors, atleast_3d_composite, 2); }
tp_tensor *column_stack_composite(tp_tensors tensors) { return join("column_stack", tensors, as_columns, -1); }
tp_tensor *concat_composite(tp_tensors tensors, int64_t dim) { return tp_cat(tensors, dim); }
tp_tensor *concatenate_composite(tp_tensors tensors, int64_t dim) { return tp_cat(tensors, dim); }

/* ---- to one shape ---- */

tp_tensor_seq *broadcast_tensors_composite(tp_tensors tensors) {
    int64_t sizes[TP_MAX_DIMS];
    int ndim = 0;
    for (int64_t i = 0; i < tensors.size; i++) {
        int64_t joined[TP_MAX_DIMS];
        ndim = tp_broadcast_sizes((tp_ints){sizes, ndim}, tp_sizes(tensors.data[i]), joined);
        if (ndim < 0) return NULL;
        memcpy(sizes, joined, (size_t)ndim * sizeof *sizes);
    }
    tp_autoseq *seq = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; seq && i < tensors.size; i++) {
        tp_tensor *t = tensors.data[i];
        bool fits = tp_ints_equal(tp_sizes(t), (tp_ints){sizes, ndim}); /* it stays what it is then */
        if (!(seq->items[i] = fits ? tp_retain(t) : tp_expand(t, (tp_ints){sizes, ndim}, false))) return NULL;
    }
    return seq ? tp_take(seq) : NULL;
}

static int check_grid(tp_tensors tensors, const char *indexing) {
    if (tensors.size <= 0) return tp_fail(TP_RuntimeError, "meshgrid expects a non-empty TensorList");
    if (strcmp(indexing, "ij") && strcmp(indexing, "xy"))
        return tp_fail(TP_RuntimeError, "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s",
                       indexing);
    if (tensors.size > TP_MAX_DIMS) return tp_fail(TP_RuntimeError, "meshgrid: more than %d dimensions", TP_MAX_DIMS);
    for (int64_t i = 0; i < tensors.size; i++) {
        if (tensors.data[i]->ndim > 1)
            return tp_fail(
                TP_RuntimeError,
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got a tensor of %d dimensions",
                tensors.data[i]->ndim);
        if (tensors.data[i]->dtype != tensors.data[0]->dtype)
            return tp_fail(TP_RuntimeError, "torch.meshgrid expects all tensors to have the same dtype");
    }
    return 0;
}
/* meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[] */
tp_tensor_seq *meshgrid_indexing_composite(tp_tensors tensors, const char *indexing) {
    if (check_grid(tensors, indexing) < 0) return NULL;
    int64_t shape[TP_MAX_DIMS];
    bool swap = strcmp(indexing, "xy") == 0 && tensors.size >= 2;
    for (int64_t i = 0; i < tensors.size; i++) shape[swap && i < 2 ? 1 - i : i] = tensors.data[i]->numel;
    tp_autoseq *seq = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; seq && i < tensors.size; i++) {
        int64_t own[TP_MAX_DIMS], place = swap && i < 2 ? 1 - i : i;
        for (int64_t d = 0; d < tensors.size; d++) own[d] = d == place ? tensors.data[i]->numel : 1;
        tp_autoref *axis = tp_view(tensors.data[i], (tp_ints){own, tensors.size});
        if (!axis || !(seq->items[i] = tp_expand(axis, (tp_ints){shape, tensors.size}, false))) return NULL;
    }
    return seq ? tp_take(seq) : NULL;
}
tp_tensor_seq *meshgrid_composite(tp_tensors tensors) { return meshgrid_indexing_composite(tensors, "ij"); }

/* ---- filled up to one length ---- */

/* Zeros, or a value, after the last element of dimension `dim`, or in front of it. */
static tp_tensor *filled_up(tp_tensor *t, int64_t dim, int64_t size, bool in_front, const tp_scalar *value) {
    int64_t pad[TP_MAX_DIMS * 2] = {0}, missing = size - t->sizes[dim];
    if (!missing) return tp_retain(t);
    int pairs = t->ndim - (int)dim;
    pad[2 * (pairs - 1) + !in_front] = missing;
    return tp_constant_pad_nd(t, (tp_ints){pad, 2 * pairs}, value);
}

/* _chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor */
tp_tensor *_chunk_cat_composite(tp_tensors tensors, int64_t dim, int64_t num_chunks) {
    if (num_chunks < 1) return tp_fail_null(TP_RuntimeError, "_chunk_cat expects positive num_chunks");
    if (tensors.size <= 0) return tp_fail_null(TP_RuntimeError, "_chunk_cat expects a non-empty input tensor list");
    bool alike = true;
    for (int64_t i = 1; i < tensors.size; i++) alike &= tensors.data[i]->ndim == tensors.data[0]->ndim;
    if (!alike && dim < 0)
        return tp_fail_null(TP_RuntimeError,
                            "_chunk_cat expects non-negative dim when input tensors have different ndims");
    int64_t d = alike ? tp_wrap_dim(dim, tensors.data[0]->ndim) : dim;
    tp_autoseq *seq = d < 0 ? NULL : tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; seq && i < tensors.size; i++) {
        tp_tensor *t = tensors.data[i];
        if (t->ndim <= d) return tp_fail_null(TP_RuntimeError, "_chunk_cat expects dim < ndim for all input tensors");
        if (t->numel == 0) return tp_fail_null(TP_RuntimeError, "_chunk_cat expects non-empty tensor");
        if (t->dtype != tensors.data[0]->dtype)
            return tp_fail_null(TP_RuntimeError, "_chunk_cat expects all input tensors with the same dtype");
        for (int64_t k = 0; k < d; k++)
            if (t->sizes[k] != tensors.data[0]->sizes[k])
                return tp_fail_null(TP_RuntimeError,
                                    "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
        int64_t sizes[TP_MAX_DIMS + 1], chunk = (t->sizes[d] - 1) / num_chunks + 1, filled;
        if (__builtin_mul_overflow(chunk, num_chunks, &filled))
            return tp_fail_null(TP_RuntimeError, "_chunk_cat: num_chunks=%lld is too large", (long long)num_chunks);
        memcpy(sizes, t->sizes, (size_t)d * sizeof *sizes);
        sizes[d] = num_chunks;
        sizes[d + 1] = -1;
        tp_autoref *whole = filled_up(t, d, filled, false, TP_SCALAR_I(0));
        if (!whole || !(seq->items[i] = tp_reshape(whole, (tp_ints){sizes, (int)d + 2}))) return NULL;
    }
    return seq ? tp_cat(tp_tensor_seq_borrow(seq), d + 1) : NULL;
}

/* pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> Tensor
 */
tp_tensor *pad_sequence_composite(tp_tensors sequences, bool batch_first, double padding_value,
                                  const char *padding_side) {
    if (sequences.size <= 0) return tp_fail_null(TP_RuntimeError, "received an empty list of sequences");
    bool left = strcmp(padding_side, "left") == 0;
    if (!left && strcmp(padding_side, "right") != 0)
        return tp_fail_null(TP_RuntimeError, "Expected padding_side to be one of left or right, but got %s.",
                            padding_side);
    int64_t longest = 0;
    for (int64_t i = 0; i < sequences.size; i++) {
        if (sequences.data[i]->ndim < 1)
            return tp_fail_null(TP_IndexError, "pad_sequence: a sequence has at least one dimension");
        if (sequences.data[i]->sizes[0] > longest) longest = sequences.data[i]->sizes[0];
    }
    tp_autoseq *seq = tp_tensor_seq_new(sequences.size);
    for (int64_t i = 0; seq && i < sequences.size; i++) {
        tp_autoref *t = tp_to_dtype(sequences.data[i], (tp_dtype)sequences.data[0]->dtype, false, false, TP_NO_FORMAT);
        if (!t || !(seq->items[i] = filled_up(t, 0, longest, left, TP_SCALAR_F(padding_value)))) return NULL;
    }
    return seq ? tp_stack(tp_tensor_seq_borrow(seq), !batch_first) : NULL;
}

/* ---- in a line, and back ---- */

static tp_tensor *in_a_line(tp_tensor *self) { return tp_reshape(self, TP_INTS(-1)); }
/* flatten_dense_tensors(Tensor[] tensors) -> Tensor */
tp_tensor *flatten_dense_tensors_composite(tp_tensors tensors) {
    return join("flatten_dense_tensors", tensors, in_a_line, 0);
}
/* unflatten_dense_tensors(Tensor flat, Tensor[] tensors) -> Tensor[] */
tp_tensor_seq *unflatten_dense_tensors_composite(tp_tensor *flat, tp_tensors tensors) {
    tp_autoseq *seq = tp_tensor_seq_new(tensors.size);
    int64_t from = 0;
    for (int64_t i = 0; seq && i < tensors.size; i++) {
        tp_autoref *part = tp_narrow(flat, 0, from, tensors.data[i]->numel);
        if (!part || !(seq->items[i] = tp_view(part, tp_sizes(tensors.data[i])))) return NULL;
        from += tensors.data[i]->numel;
    }
    return seq ? tp_take(seq) : NULL;
}
