/* diagonal.c: diagonals taken out and put in, and indices as matrices. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "dispatch/key.h"
#include "native/common/host_ints.h"
#include "native/common/tags.h"
#include "prim/table.h"

#include <string.h>

/* diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor */
tp_tensor *diag_embed_composite(tp_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    int64_t a = tp_wrap_dim(dim1, self->ndim + 1), b = a < 0 ? -1 : tp_wrap_dim(dim2, self->ndim + 1),
            sizes[TP_MAX_DIMS + 1];
    if (b < 0) return NULL;
    if (a == b)
        return tp_fail_null(TP_RuntimeError, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                            (long long)dim2);
    if (offset > INT32_MAX || offset < -INT32_MAX)
        return tp_fail_null(TP_RuntimeError, "diag_embed: an offset of %lld is too large", (long long)offset);
    for (int i = 0, from = 0; i <= self->ndim; i++)
        sizes[i] = i == a || i == b ? self->sizes[self->ndim - 1] + tp_abs_int(offset) : self->sizes[from++];
    tp_autoref *out = tp_zeros((tp_ints){sizes, self->ndim + 1}, (tp_dtype)self->dtype, TP_STRIDED, self->device, -1);
    tp_autoref *part = out ? tp_diagonal(out, offset, a, b) : NULL;
    return part && tp_copy_(part, self, false) == 0 ? tp_take(out) : NULL;
}
/* diag(Tensor self, int diagonal=0) -> Tensor */
tp_tensor *diag_composite(tp_tensor *self, int64_t diagonal) {
    if (self->ndim == 1) return tp_diag_embed(self, diagonal, 0, 1);
    if (self->ndim != 2) return tp_fail_null(TP_RuntimeError, "diag(): Supports 1D or 2D tensors. Got %dD", self->ndim);
    tp_autoref *view = tp_diagonal(self, diagonal, 0, 1);
    return view ? tp_clone(view, TP_NO_FORMAT) : NULL;
}
/* trace(Tensor self) -> Tensor */
tp_tensor *trace_composite(tp_tensor *self) {
    if (self->ndim != 2)
        return tp_fail_null(TP_RuntimeError, "trace: expected a matrix, but got tensor with dim %d", self->ndim);
    tp_autoref *view = tp_diagonal(self, 0, 0, 1);
    return view ? tp_sum(view, TP_NO_DTYPE) : NULL;
}

/* Indices in which negative ones, which count from the end, are replaced. */
static tp_tensor *from_end(tp_tensor *index, int64_t size) {
    tp_autoref *negative = tp_lt_Scalar(index, TP_SCALAR_I(0));
    return negative ? tp_add_Tensor(index, negative, TP_SCALAR_I(size)) : NULL;
}
/* take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor */
tp_tensor *take_along_dim_composite(tp_tensor *self, tp_tensor *indices, tp_opt_int dim) {
    if (indices->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError, "torch.take_along_dim(): dtype of indices should be Long but got %s",
                            tp_scalar_type_name((tp_dtype)indices->dtype));
    if (!dim.has) {
        tp_autoref *flat = tp_reshape(self, TP_INTS(-1)), *places = flat ? tp_reshape(indices, TP_INTS(-1)) : NULL;
        tp_autoref *wrapped = places ? from_end(places, flat->numel) : NULL;
        return wrapped ? tp_gather(flat, 0, wrapped, false) : NULL;
    }
    if (self->ndim != indices->ndim)
        return tp_fail_null(
            TP_RuntimeError,
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got %d "
            "dimensions for input, and %d dimensions for indices",
            self->ndim, indices->ndim);
    int64_t d = tp_wrap_dim(dim.value, self->ndim), own[TP_MAX_DIMS], shape[TP_MAX_DIMS];
    if (d < 0) return NULL;
    if (tp_broadcast_sizes(tp_sizes(self), tp_sizes(indices), shape) < 0) tp_error_clear();
    for (int i = 0; i < self->ndim; i++) shape[i] = tp_max_int(self->sizes[i], indices->sizes[i]), own[i] = shape[i];
    own[d] = self->sizes[d];
    shape[d] = indices->sizes[d];
    tp_autoref *from = tp_expand(self, (tp_ints){own, self->ndim}, false),
               *places = from ? tp_expand(indices, (tp_ints){shape, self->ndim}, false) : NULL;
    tp_autoref *wrapped = places ? from_end(places, tp_size_at(tp_sizes(self), d)) : NULL;
    return wrapped ? tp_gather(from, d, wrapped, false) : NULL;
}
/* take(Tensor self, Tensor index) -> Tensor */
tp_tensor *op_take_composite(tp_tensor *self, tp_tensor *index) {
    tp_autoref *flat = tp_reshape(self, TP_INTS(-1)), *row = flat ? tp_reshape(index, TP_INTS(-1)) : NULL;
    if (!row) return NULL;
    if (index->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError, "take(): Expected a long tensor for index, but got %s",
                            tp_dtype_names[index->dtype]);
    if (flat->numel == 0 && row->numel > 0)
        return tp_fail_null(TP_IndexError, "take(): tried to take from an empty tensor");
    tp_autoref *places = from_end(row, flat->numel), *out = places ? tp_index_select(flat, 0, places) : NULL;
    return out ? tp_view(out, tp_sizes(index)) : NULL;
}

/* The smallest and the largest of int64 elements, 0 and -1 without any; waits for a device. */
static int extremes_of(tp_tensor *line, int64_t *least, int64_t *most) {
    tp_scalar low, high;
    *least = 0, *most = -1;
    if (line->numel == 0) return 0;
    tp_autoref *a = tp_min(line), *b = a ? tp_max(line) : NULL;
    if (!b || tp__local_scalar_dense(a, &low) < 0 || tp__local_scalar_dense(b, &high) < 0) return -1;
    *least = low.i;
    *most = high.i;
    return 0;
}
/* bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor */
tp_tensor *bincount_dense(tp_tensor *self, tp_tensor *weights, int64_t minlength) {
    if (!tp_is_integral_dtype((tp_dtype)self->dtype))
        return tp_fail_null(TP_NotImplementedError, "\"bincount_cpu\" not implemented for '%s'",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    if (self->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "bincount only supports 1-d non-negative integral inputs.");
    if (minlength < 0) return tp_fail_null(TP_RuntimeError, "minlength should be >= 0");
    if (weights && !tp_same_sizes(weights, self))
        return tp_fail_null(TP_RuntimeError, "weights should be 1-d and have the same length as input");
    tp_autoref *wide = tp_to_dtype(self, TP_INT64, false, false, TP_NO_FORMAT),
               *line = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!line) return NULL;
    int64_t least, most;
    if (extremes_of(line, &least, &most) < 0) return NULL;
    if (least < 0) return tp_fail_null(TP_RuntimeError, "bincount only supports 1-d non-negative integral inputs.");
    int64_t size = tp_max_int(minlength, tp_min_int(most, INT64_MAX - 1) + 1);
    /* Without elements there is no sum of weights either: PyTorch counts then. */
    tp_dtype dtype = !weights || !self->numel ? TP_INT64 : weights->dtype == TP_FLOAT32 ? TP_FLOAT32 : TP_FLOAT64;
    tp_autoref *out = tp_zeros(TP_INTS(size), dtype, TP_STRIDED, self->device, -1);
    tp_autoref *amounts = !out      ? NULL
                          : weights ? tp_to_dtype(weights, dtype, false, false, TP_NO_FORMAT)
                                    : tp_ones(TP_INTS(line->numel), dtype, TP_STRIDED, self->device, -1);
    return amounts && tp_index_add_(out, 0, line, amounts, TP_SCALAR_I(1)) == 0 ? tp_take(out) : NULL;
}

/* The largest of the classes, none of which is negative; -1 without any. */
static int highest_class(tp_tensor *self, int64_t *most) {
    tp_autoref *line = tp_host_ints(self);
    const int64_t *v = line ? tp_table_values(line) : NULL;
    *most = -1;
    if (!v) return -1;
    for (int64_t i = 0; i < self->numel; i++) {
        if (v[i] < 0) return tp_fail(TP_RuntimeError, "Class values must be non-negative.");
        *most = tp_max_int(*most, v[i]);
    }
    return 0;
}

/* one_hot(Tensor self, int num_classes=-1) -> Tensor */
tp_tensor *one_hot_composite(tp_tensor *self, int64_t num_classes) {
    int64_t sizes[TP_MAX_DIMS + 1], most = -1;
    if (self->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError, "one_hot is only applicable to index tensor of type LongTensor.");
    if (self->numel == 0 && num_classes <= 0)
        return tp_fail_null(TP_RuntimeError, "Can not infer total number of classes from empty tensor.");
    if (num_classes <= 0 && tp_refuse_meta(self, "one_hot", "dynamic_output_shape") < 0) return NULL;
    /* On Meta there are no classes to check; where a layer sees reads, scatter checks them. */
    bool is_seen = tp_read_is_seen(self), unread = !tp_has_values(self) || is_seen;
    if ((!unread || num_classes <= 0) && highest_class(self, &most) < 0) return NULL;
    if (num_classes == -1) num_classes = tp_min_int(most, INT64_MAX - 1) + 1;
    if (num_classes <= most) return tp_fail_null(TP_RuntimeError, "Class values must be smaller than num_classes.");
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[self->ndim] = num_classes;
    tp_autoref *out = tp_zeros((tp_ints){sizes, self->ndim + 1}, TP_INT64, TP_STRIDED, self->device, -1);
    tp_autoref *places = out ? tp_unsqueeze(self, -1) : NULL;
    if (places && is_seen) return tp_scatter_value(out, -1, places, TP_SCALAR_I(1));
    return places && tp_scatter__value(out, -1, places, TP_SCALAR_I(1)) == 0 ? tp_take(out) : NULL;
}
