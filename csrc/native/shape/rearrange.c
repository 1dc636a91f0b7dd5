/* rearrange.c: elements in another order or several times: flip, roll, rot90, repeat, repeat_interleave. */
#include "NativeFunctions.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "prim/transfer.h"

#include <string.h>

/* ---- flip ---- */

/* A view that walks the given dimensions backwards. */
static tp_tensor *backwards(tp_tensor *self, tp_ints dims) {
    int64_t strides[TP_MAX_DIMS], skip = 0;
    bool seen[TP_MAX_DIMS] = {0};
    memcpy(strides, self->strides, self->ndim * sizeof *strides);
    for (int64_t i = 0; i < dims.size; i++) {
        int64_t d = tp_wrap_dim(dims.data[i], self->ndim);
        if (d < 0) return NULL;
        if (seen[d])
            return tp_fail_null(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)d);
        seen[d] = true;
        if (self->ndim == 0 || self->sizes[d] == 0) continue;
        skip += (self->sizes[d] - 1) * strides[d];
        strides[d] = -strides[d];
    }
    return tp_new_alias(self, tp_sizes(self), (tp_ints){strides, self->ndim},
                        self->byte_offset + skip * tp_itemsize((tp_dtype)self->dtype));
}
/* flip(Tensor self, int[] dims) -> Tensor */
tp_tensor *flip_dense(tp_tensor *self, tp_ints dims) {
    tp_autoref *from = backwards(self, dims), *out = from ? tp_new_empty_like(self, (tp_dtype)self->dtype) : NULL;
    return out && tp_copy_data(out, from) == 0 ? tp_take(out) : NULL;
}

tp_tensor *fliplr_composite(tp_tensor *self) {
    if (self->ndim < 2) return tp_fail_null(TP_RuntimeError, "Input must be >= 2-d.");
    return tp_flip(self, TP_INTS(1));
}
tp_tensor *flipud_composite(tp_tensor *self) {
    if (self->ndim < 1) return tp_fail_null(TP_RuntimeError, "Input must be >= 1-d.");
    return tp_flip(self, TP_INTS(0));
}

/* ---- roll, rot90 ---- */

static tp_tensor *roll_one(tp_tensor *self, int64_t shift, int64_t dim) {
    int64_t d = tp_wrap_own_dim(dim, self);
    if (d < 0) return NULL;
    if (self->numel == 0) return tp_clone(self, TP_NO_FORMAT);
    int64_t size = self->sizes[d], at = tp_floor_mod(-tp_floor_mod(shift, size), size);
    if (at == 0) return tp_clone(self, TP_NO_FORMAT);
    tp_autoref *head = tp_slice_Tensor(self, d, TP_SOME_INT(at), TP_NO_INT, 1);
    tp_autoref *tail = head ? tp_slice_Tensor(self, d, TP_SOME_INT(0), TP_SOME_INT(at), 1) : NULL;
    return tail ? tp_cat((tp_tensors){(tp_tensor *const[]){head, tail}, 2}, d) : NULL;
}
/* roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor */
tp_tensor *roll_composite(tp_tensor *self, tp_ints shifts, tp_ints dims) {
    if (shifts.size <= 0) return tp_fail_null(TP_RuntimeError, "`shifts` required");
    if (dims.size <= 0 && shifts.size == 1) {
        tp_autoref *flat = tp_reshape(self, TP_INTS(-1)), *rolled = flat ? roll_one(flat, shifts.data[0], 0) : NULL;
        return rolled ? tp_view(rolled, tp_sizes(self)) : NULL;
    }
    if (dims.size != shifts.size)
        return tp_fail_null(TP_RuntimeError, "shifts and dimensions must align. shifts: %lld, dims:%lld",
                            (long long)shifts.size, (long long)dims.size);
    tp_autoref *t = tp_retain(self);
    for (int64_t i = 0; i < dims.size; i++) {
        tp_tensor *next = roll_one(t, shifts.data[i], dims.data[i]);
        tp_release(t);
        t = next;
        if (!t) return NULL;
    }
    return tp_take(t);
}

/* rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor */
tp_tensor *rot90_composite(tp_tensor *self, int64_t k, tp_ints dims) {
    if (dims.size != 2)
        return tp_fail_null(TP_RuntimeError, "expected total rotation dims == 2, but got dims = %lld",
                            (long long)dims.size);
    if (self->ndim < 2)
        return tp_fail_null(TP_RuntimeError, "expected total dims >= 2, but got total dims = %d", self->ndim);
    int64_t a = tp_wrap_dim(dims.data[0], self->ndim), b = a < 0 ? -1 : tp_wrap_dim(dims.data[1], self->ndim);
    if (b < 0) return NULL;
    if (a == b)
        return tp_fail_null(TP_RuntimeError,
                            "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                            (long long)dims.data[0], (long long)dims.data[1]);
    k = tp_floor_mod(k, 4);
    if (k == 0) return tp_clone(self, TP_CONTIGUOUS_FORMAT);
    if (k == 2) return tp_flip(self, TP_INTS(a, b));
    tp_autoref *mirrored = tp_flip(self, k == 1 ? TP_INTS(b) : TP_INTS(a));
    return mirrored ? tp_transpose_int(mirrored, a, b) : NULL;
}

/* ---- repeat ---- */

/* repeat(Tensor self, SymInt[] repeats) -> Tensor
 * A new dimension in front of each that is repeated, expanded and written out by one copy. */
tp_tensor *repeat_composite(tp_tensor *self, tp_ints repeats) {
    int64_t with_ones[2 * TP_MAX_DIMS], expanded[2 * TP_MAX_DIMS], sizes[TP_MAX_DIMS];
    int64_t n = 0, lead = repeats.size - self->ndim;
    if (lead < 0)
        return tp_fail_null(
            TP_RuntimeError,
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    if (repeats.size > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "repeat: more than %d dimensions", TP_MAX_DIMS);
    for (int64_t d = 0; d < repeats.size; d++) {
        int64_t size = d < lead ? 1 : self->sizes[d - lead];
        if (repeats.data[d] < 0) return tp_fail_null(TP_RuntimeError, "repeat: Repeats cannot be negative");
        if (__builtin_mul_overflow(size, repeats.data[d], &sizes[d]))
            return tp_fail_null(TP_RuntimeError, "repeat: the sizes overflow");
        if (repeats.data[d] != 1) {
            with_ones[n] = 1;
            expanded[n++] = repeats.data[d];
        }
        with_ones[n] = expanded[n] = size;
        n++;
    }
    if (n > TP_MAX_DIMS) return tp_fail_null(TP_RuntimeError, "repeat: more than %d dimensions", TP_MAX_DIMS);
    tp_autoref *view = tp_reshape(self, (tp_ints){with_ones, n});
    tp_autoref *wide = view ? tp_expand(view, (tp_ints){expanded, n}, false) : NULL;
    tp_autoref *copy = wide ? tp_clone(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!copy) return NULL;
    int64_t strides[TP_MAX_DIMS];
    tp_contiguous_strides((tp_ints){sizes, repeats.size}, strides);
    return tp_new_alias(copy, (tp_ints){sizes, repeats.size}, (tp_ints){strides, repeats.size}, copy->byte_offset);
}
/* _repeat_backward(Tensor grad, int[] repeats, int[] sizes) -> Tensor
 * Each dimension as (copies, size), and the sum over the copies. */
tp_tensor *_repeat_backward_composite(tp_tensor *grad, tp_ints repeats, tp_ints sizes) {
    int64_t split[2 * TP_MAX_DIMS], dims[TP_MAX_DIMS];
    int64_t n = 0, copies = 0, lead = repeats.size - sizes.size;
    for (int64_t d = 0; d < repeats.size; d++) {
        if (d < lead || repeats.data[d] != 1) {
            dims[copies++] = n;
            split[n++] = repeats.data[d];
        }
        if (d >= lead) split[n++] = sizes.data[d - lead];
    }
    tp_autoref *apart = tp_reshape(grad, (tp_ints){split, n});
    if (!apart || copies == 0) return tp_take(apart);
    return tp_sum_dim_IntList(apart, (tp_ints){dims, copies}, false, TP_NO_DTYPE);
}
/* tile(Tensor self, SymInt[] dims) -> Tensor */
tp_tensor *tile_composite(tp_tensor *self, tp_ints dims) {
    int64_t full[TP_MAX_DIMS], lead = self->ndim - dims.size;
    if (lead <= 0) return tp_repeat(self, dims);
    for (int64_t d = 0; d < self->ndim; d++) full[d] = d < lead ? 1 : dims.data[d - lead];
    return tp_repeat(self, (tp_ints){full, self->ndim});
}

/* Each place of the result is looked for among the ends of the repeats. Waits for the largest and the smallest number
 * and for the sum. */
static tp_tensor *repeat_places(tp_tensor *counts, tp_opt_int output_size, tp_dtype dtype) {
    tp_scalar low = {.i = 0}, high = {.i = 0}, total = {.i = 0};
    if (counts->numel) {
        tp_autoref *least = tp_min(counts), *most = least ? tp_max(counts) : NULL;
        tp_autoref *all = most ? tp_sum(counts, TP_NO_DTYPE) : NULL;
        if (!all || tp__local_scalar_dense(least, &low) < 0 || tp__local_scalar_dense(most, &high) < 0 ||
            tp__local_scalar_dense(all, &total) < 0)
            return NULL;
    }
    if (low.i < 0) return tp_fail_null(TP_RuntimeError, "repeats can not be negative");
    int64_t bound;
    if (__builtin_mul_overflow(high.i, counts->numel, &bound))
        return tp_fail_null(TP_RuntimeError, "repeat_interleave: the sizes overflow");
    if (output_size.has && output_size.value != total.i)
        return tp_fail_null(TP_RuntimeError, "repeat_interleave: the sum of repeats is %lld, but output_size is %lld",
                            (long long)total.i, (long long)output_size.value);
    if (total.i == 0) return tp_new_empty(TP_INTS(0), dtype, counts->device);
    tp_autoref *ends = tp_cumsum(counts, 0, TP_NO_DTYPE);
    tp_autoref *places = ends ? tp_arange(TP_SCALAR_I(total.i), TP_INT64, TP_STRIDED, counts->device, -1) : NULL;
    return places ? tp_searchsorted_Tensor(ends, places, dtype == TP_INT32, true, NULL, NULL) : NULL;
}
/* repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor */
tp_tensor *repeat_interleave_Tensor_dense(tp_tensor *repeats, tp_opt_int output_size) {
    if (repeats->ndim != 1) return tp_fail_null(TP_RuntimeError, "repeat_interleave only accept 1D vector as repeat");
    if (repeats->dtype != TP_INT64 && repeats->dtype != TP_INT32)
        return tp_fail_null(TP_RuntimeError, "repeats has to be Long or Int tensor");
    tp_autoref *wide = tp_to_dtype(repeats, TP_INT64, false, false, TP_NO_FORMAT),
               *counts = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    return counts ? repeat_places(counts, output_size, (tp_dtype)repeats->dtype) : NULL;
}
/* repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor */
tp_tensor *repeat_interleave_self_Tensor_composite(tp_tensor *self, tp_tensor *repeats, tp_opt_int dim,
                                                   tp_opt_int output_size) {
    if (repeats->ndim > 1) return tp_fail_null(TP_RuntimeError, "repeats must be 0-dim or 1-dim tensor");
    tp_autoref *t = dim.has ? tp_retain(self) : tp_reshape(self, TP_INTS(-1));
    int64_t d = t ? tp_wrap_dim(dim.has ? dim.value : 0, t->ndim) : -1;
    if (d < 0) return NULL;
    int64_t size = tp_size_at(tp_sizes(t), d);
    if (repeats->numel != size && repeats->numel != 1)
        return tp_fail_null(TP_RuntimeError,
                            "repeats must have the same size as input along dim, but got repeats.size(0) = %lld and "
                            "input.size(%lld) = %lld",
                            (long long)repeats->numel, (long long)d, (long long)size);
    tp_autoref *flat = tp_reshape(repeats, TP_INTS(-1)), *counts = flat ? tp_expand(flat, TP_INTS(size), false) : NULL;
    tp_autoref *index = counts ? tp_repeat_interleave_Tensor(counts, output_size) : NULL;
    return index ? tp_index_select(t, d, index) : NULL;
}
/* repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor */
tp_tensor *repeat_interleave_self_int_composite(tp_tensor *self, int64_t repeats, tp_opt_int dim,
                                                tp_opt_int output_size) {
    tp_autoref *t = dim.has ? tp_retain(self) : tp_reshape(self, TP_INTS(-1));
    int64_t d = t ? tp_wrap_dim(dim.has ? dim.value : 0, t->ndim) : -1, wide[TP_MAX_DIMS + 1];
    if (d < 0) return NULL;
    if (repeats < 0) return tp_fail_null(TP_RuntimeError, "Repeats must be non-negative");
    int64_t total;
    if (__builtin_mul_overflow(tp_size_at(tp_sizes(t), d), repeats, &total))
        return tp_fail_null(TP_RuntimeError, "repeat_interleave: the sizes overflow");
    if (output_size.has && output_size.value != total)
        return tp_fail_null(TP_RuntimeError, "repeat_interleave: Invalid output_size, %lld instead of %lld",
                            (long long)output_size.value, (long long)total);
    if (t->ndim == 0) return tp_repeat(t, TP_INTS(repeats));
    for (int i = 0; i <= t->ndim; i++) wide[i] = i <= d ? t->sizes[i] : i == d + 1 ? repeats : t->sizes[i - 1];
    tp_autoref *column = tp_unsqueeze(t, d + 1),
               *view = column ? tp_expand(column, (tp_ints){wide, t->ndim + 1}, false) : NULL;
    tp_autoref *copy = view ? tp_clone(view, TP_CONTIGUOUS_FORMAT) : NULL;
    return copy ? tp_flatten_using_ints(copy, d, d + 1) : NULL;
}
