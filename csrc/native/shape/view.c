/* view.c: operators that give another geometry over the same memory.
 *
 * Each makes a bare alias; the generated ADInplaceOrView layer relates it to its base and the autograd layer records
 * it. They need no backend: sizes and strides are all they touch. */
#include "NativeFunctions.h"
#include "core/determinism.h"
#include "dispatch/key.h"
#include "core/host.h"
#include "core/tls.h"
#include "native/common/checks.h"

#include <string.h>

/* An alias with new sizes and strides; `skip` elements further on. */
static tp_tensor *restride(tp_tensor *self, const int64_t *sizes, const int64_t *strides, int64_t ndim, int64_t skip) {
    return tp_new_alias(self, (tp_ints){sizes, ndim}, (tp_ints){strides, ndim},
                        self->byte_offset + skip * tp_itemsize((tp_dtype)self->dtype));
}

tp_tensor *alias_composite(tp_tensor *self) { return restride(self, self->sizes, self->strides, self->ndim, 0); }
tp_tensor *detach_composite(tp_tensor *self) { return alias_composite(self); }

/* ---- as_strided ---- */

static int TP_COLD fail_lengths(tp_ints size, tp_ints stride) {
    return tp_fail(TP_RuntimeError, "as_strided: mismatch in length of strides and shape: %lld sizes and %lld strides",
                   (long long)size.size, (long long)stride.size);
}

static int TP_COLD check_strided(const tp_tensor *self, tp_ints size, tp_ints stride, int64_t offset) {
    if (size.size != stride.size) return fail_lengths(size, stride);
    for (int64_t i = 0; i < stride.size; i++) {
        if (stride.data[i] >= 0) continue;
        tp_autotext text = {0};
        tp_text_ints(&text, stride);
        return tp_fail(TP_RuntimeError, "as_strided: Negative strides are not supported at the moment, got strides: %s",
                       text.text);
    }
    if (offset < 0) return tp_fail(TP_RuntimeError, "Tensor: invalid storage offset %lld", (long long)offset);
    if (__builtin_mul_overflow(offset, tp_itemsize((tp_dtype)self->dtype), &offset))
        return tp_fail(TP_RuntimeError, "as_strided: storage_offset is too large");
    return tp_check_in_storage(size, stride, offset, (tp_dtype)self->dtype, self->storage->nbytes);
}

tp_tensor *as_strided_composite(tp_tensor *self, tp_ints size, tp_ints stride, tp_opt_int storage_offset) {
    int64_t offset = storage_offset.has ? storage_offset.value : tp_storage_offset(self), bytes;
    bool fits = !__builtin_mul_overflow(offset, tp_itemsize((tp_dtype)self->dtype), &bytes) &&
                tp_lies_in_storage(size, stride, bytes, (tp_dtype)self->dtype, self->storage->nbytes);
    if (tp_unlikely(!fits) && check_strided(self, size, stride, offset) < 0) return NULL;
    if (tp_unlikely(tp_tls.region && storage_offset.has))
        tp_pending_hooks.reshaped(self->storage, "a view says where it begins in the memory");
    return tp_new_alias(self, size, stride, bytes);
}

/* Whether two places of the geometry may be the same element. Exact for what views give: sorted by stride, each
 * dimension steps over all of the smaller ones. */
static bool overlaps_itself(tp_ints sizes, tp_ints strides) {
    int order[TP_MAX_DIMS], n = 0;
    for (int i = 0; i < sizes.size; i++) {
        if (sizes.data[i] <= 1) continue;
        int k = n++;
        for (; k > 0 && strides.data[order[k - 1]] > strides.data[i]; k--) order[k] = order[k - 1];
        order[k] = i;
    }
    int64_t reach = 0;
    for (int k = 0; k < n; k++) {
        if (strides.data[order[k]] <= reach) return true;
        reach += strides.data[order[k]] * (sizes.data[order[k]] - 1);
    }
    return false;
}

/* Adds each element of `t` where the view has it in the memory `flat`. */
static int add_overlapping(tp_tensor *flat, tp_tensor *t, tp_ints size, tp_ints stride, int64_t offset) {
    tp_autoref *all = tp_arange(TP_SCALAR_I(flat->numel), TP_INT64, TP_STRIDED, flat->device, -1),
               *view = all ? restride(all, size.data, stride.data, size.size, offset) : NULL;
    tp_autoref *places = view ? tp_reshape(view, TP_INTS(-1)) : NULL,
               *line = places ? tp_reshape(t, TP_INTS(-1)) : NULL;
    return line ? tp_index_add_(flat, 0, places, line, TP_SCALAR_I(1)) : -1;
}

/* Divides each element by the number of places that the base has it in: each place gets a part of its gradient. */
static int share_among_places(tp_tensor *flat, const tp_tensor *base) {
    tp_autoref *counts = tp_zeros_like(flat, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    tp_autoref *one = counts ? tp_ones(tp_sizes(base), (tp_dtype)flat->dtype, TP_STRIDED, flat->device, -1) : NULL;
    if (!one || add_overlapping(counts, one, tp_sizes(base), tp_strides(base), tp_storage_offset(base)) < 0) return -1;
    tp_autoref *divisor = tp_clamp_min(counts, TP_SCALAR_I(1));
    return divisor ? tp_div__Tensor(flat, divisor) : -1;
}

/* The elements that a geometry reaches from an offset on, widened into [*low, *high]. */
static int widen(tp_ints size, tp_ints stride, int64_t offset, int64_t *low, int64_t *high) {
    int64_t first, last;
    if (tp_strided_extent(size, stride, &first, &last) < 0) return -1;
    if (__builtin_add_overflow(first, offset, &first) || __builtin_add_overflow(last, offset, &last))
        return tp_fail(TP_RuntimeError, "as_strided: storage offset %lld is too large", (long long)offset);
    if (first < *low) *low = first;
    if (last > *high) *high = last;
    return 0;
}

/* A tensor laid out as the base, in memory that holds the view as well: a view may begin before its base, whose own
 * memory begins further on, and end behind it. `offset` counts elements from the base's first. */
static tp_tensor *base_and_view(tp_ints base_size, tp_ints base_stride, tp_ints size, tp_ints stride, int64_t offset,
                                const tp_tensor *like) {
    tp_dtype dtype = (tp_dtype)like->dtype;
    int64_t item = tp_itemsize(dtype), bytes, low = 0, high = 0, room;
    tp_autoref *base = tp_new_empty_strided(base_size, base_stride, dtype, like->device);
    if (!base) return NULL;
    if (!__builtin_mul_overflow(offset, item, &bytes) && !__builtin_add_overflow(bytes, base->byte_offset, &bytes) &&
        tp_lies_in_storage(size, stride, bytes, dtype, base->storage->nbytes))
        return tp_take(base);
    if (size.size != stride.size) return fail_lengths(size, stride), NULL;
    if (widen(base_size, base_stride, 0, &low, &high) < 0 || widen(size, stride, offset, &low, &high) < 0) return NULL;
    if (__builtin_sub_overflow(high, low, &room) || room == INT64_MAX)
        return tp_fail(TP_RuntimeError, "as_strided: storage offset %lld is too large", (long long)offset), NULL;
    tp_autoref *memory = tp_new_empty(TP_INTS(room + 1), dtype, like->device);
    return memory ? tp_new_alias(memory, base_size, base_stride, -low * item) : NULL;
}

/* All elements that a tensor's storage has room for. */
static tp_tensor *memory_of(const tp_tensor *t) {
    return tp_new_on_storage(t->storage, TP_INTS((int64_t)t->storage->nbytes / tp_itemsize((tp_dtype)t->dtype)),
                             TP_INTS(1), 0, (tp_dtype)t->dtype);
}

/* The gradient lives in memory laid out as the base's, counted from the base's first element. */
tp_tensor *_as_strided_backward_composite(tp_tensor *grad, tp_ints base_size, tp_ints base_stride, tp_ints size,
                                          tp_ints stride, int64_t offset) {
    tp_autoref *base = base_and_view(base_size, base_stride, size, stride, offset, grad);
    tp_autoref *flat = base ? memory_of(base) : NULL;
    if (!flat || tp_zero_(flat) < 0) return NULL;
    if (overlaps_itself(size, stride)) {
        if (add_overlapping(flat, grad, size, stride, tp_storage_offset(base) + offset) < 0) return NULL;
    } else {
        tp_autoref *view = restride(base, size.data, stride.data, size.size, offset);
        if (!view || tp_copy_(view, grad, false) < 0) return NULL;
    }
    if (overlaps_itself(base_size, base_stride) && share_among_places(flat, base) < 0) return NULL;
    return tp_take(base);
}

/* The view's elements of a tensor laid out as the base: what differentiates _as_strided_backward. */
tp_tensor *_as_strided_part_composite(tp_tensor *whole, tp_ints base_size, tp_ints base_stride, tp_ints size,
                                      tp_ints stride, int64_t offset) {
    tp_autoref *base = base_and_view(base_size, base_stride, size, stride, offset, whole);
    tp_autoref *flat = base ? memory_of(base) : NULL;
    if (!flat || tp_zero_(flat) < 0) return NULL;
    if (overlaps_itself(base_size, base_stride)) {
        if (add_overlapping(flat, whole, base_size, base_stride, tp_storage_offset(base)) < 0 ||
            share_among_places(flat, base) < 0)
            return NULL;
    } else if (tp_copy_(base, whole, false) < 0) {
        return NULL;
    }
    tp_autoref *view = restride(base, size.data, stride.data, size.size, offset);
    bool apart = view && !overlaps_itself(size, stride); /* the memory is new: it is read by the view's strides */
    return !view ? NULL : apart ? tp_take(view) : tp_clone(view, TP_CONTIGUOUS_FORMAT);
}

/* ---- view and reshape ---- */

static TP_COLD int sizes_do_not_fit(tp_ints wanted, int64_t numel, bool ambiguous) {
    tp_autotext text = {0};
    tp_text_ints(&text, wanted);
    if (ambiguous)
        return tp_fail(TP_RuntimeError,
                       "cannot reshape tensor of 0 elements into shape %s because the unspecified dimension size -1 "
                       "can be any value and is ambiguous",
                       text.text);
    return tp_fail(TP_RuntimeError, "shape '%s' is invalid for input of size %lld", text.text, (long long)numel);
}

/* Fills in the one size that is -1. */
static int infer_sizes(tp_ints wanted, int64_t numel, int64_t *out) {
    int64_t known = 1;
    int unknown = -1;
    if (wanted.size > TP_MAX_DIMS)
        return tp_fail(TP_RuntimeError, "view: %lld dimensions are more than %d", (long long)wanted.size, TP_MAX_DIMS);
    for (int i = 0; i < wanted.size; i++) {
        out[i] = wanted.data[i];
        if (out[i] == -1) {
            if (unknown >= 0) return tp_fail(TP_RuntimeError, "only one dimension can be inferred");
            unknown = i;
        } else if (out[i] < 0) {
            return tp_fail(TP_RuntimeError, "invalid shape dimension %lld", (long long)out[i]);
        } else if (__builtin_mul_overflow(known, out[i], &known)) {
            return tp_fail(TP_RuntimeError, "view: the sizes overflow");
        }
    }
    bool fits = unknown < 0 ? known == numel : known > 0 && numel % known == 0;
    if (!fits) return sizes_do_not_fit(wanted, numel, unknown >= 0 && known == 0 && numel == 0);
    if (unknown >= 0) out[unknown] = numel / known;
    return 0;
}

/* Strides for `sizes` over self's memory; false if a copy is needed. Walks both shapes from the right, over runs of old
 * dimensions that lie one after another in memory. */
static bool view_strides(const tp_tensor *self, const int64_t *sizes, int ndim, int64_t *strides) {
    if (self->numel == 0 || self->ndim == 0) {
        tp_contiguous_strides((tp_ints){sizes, ndim}, strides);
        return true;
    }
    int d = ndim - 1;
    int64_t base = self->strides[self->ndim - 1], old_run = 1, new_run = 1;
    for (int o = self->ndim - 1; o >= 0; o--) {
        old_run *= self->sizes[o];
        bool ends = o == 0 || (self->sizes[o - 1] != 1 && self->strides[o - 1] != old_run * base);
        if (!ends) continue;
        while (d >= 0 && (new_run < old_run || sizes[d] == 1)) {
            strides[d] = new_run * base;
            new_run *= sizes[d--];
        }
        if (new_run != old_run) return false;
        if (o > 0) {
            base = self->strides[o - 1];
            old_run = new_run = 1;
        }
    }
    return d < 0;
}

tp_tensor *view_composite(tp_tensor *self, tp_ints size) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    if (infer_sizes(size, self->numel, sizes) < 0) return NULL;
    if (!view_strides(self, sizes, (int)size.size, strides))
        return tp_fail_null(TP_RuntimeError,
                            "view size is not compatible with input tensor's size and stride (at least one "
                            "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
    return restride(self, sizes, strides, size.size, 0);
}

tp_tensor *_unsafe_view_composite(tp_tensor *self, tp_ints size) { return view_composite(self, size); }

tp_tensor *reshape_composite(tp_tensor *self, tp_ints shape) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    if (infer_sizes(shape, self->numel, sizes) < 0) return NULL;
    tp_ints full = {sizes, shape.size};
    if (view_strides(self, sizes, (int)shape.size, strides)) return tp_view(self, full);
    tp_autoref *copy = tp_clone(self, TP_CONTIGUOUS_FORMAT);
    return copy ? tp__unsafe_view(copy, full) : NULL;
}

/* ---- the order of dimensions ---- */

tp_tensor *permute_composite(tp_tensor *self, tp_ints dims) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    bool seen[TP_MAX_DIMS] = {0};
    if (dims.size != self->ndim)
        return tp_fail_null(TP_RuntimeError,
                            "permute: number of dimensions in the tensor input does not match the length of the "
                            "desired ordering of dimensions i.e. input.dim() = %d is not equal to len(dims) = %lld",
                            self->ndim, (long long)dims.size);
    for (int i = 0; i < self->ndim; i++) {
        int64_t d = tp_wrap_dim(dims.data[i], self->ndim);
        if (d < 0) return NULL;
        if (seen[d]) return tp_fail_null(TP_RuntimeError, "permute(): duplicate dims are not allowed.");
        seen[d] = true;
        sizes[i] = self->sizes[d];
        strides[i] = self->strides[d];
    }
    return restride(self, sizes, strides, self->ndim, 0);
}

tp_tensor *transpose_int_composite(tp_tensor *self, int64_t dim0, int64_t dim1) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int64_t a = tp_wrap_dim(dim0, self->ndim), b = tp_wrap_dim(dim1, self->ndim);
    if (a < 0 || b < 0) return NULL;
    if (self->ndim == 0) return alias_composite(self);
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    memcpy(strides, self->strides, self->ndim * sizeof *strides);
    sizes[a] = self->sizes[b], sizes[b] = self->sizes[a];
    strides[a] = self->strides[b], strides[b] = self->strides[a];
    return restride(self, sizes, strides, self->ndim, 0);
}

tp_tensor *t_composite(tp_tensor *self) {
    if (self->ndim > 2)
        return tp_fail_null(TP_RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    return self->ndim == 2 ? transpose_int_composite(self, 0, 1) : alias_composite(self);
}

tp_tensor *numpy_T_composite(tp_tensor *self) {
    int64_t dims[TP_MAX_DIMS];
    if (tp_unlikely(self->ndim != 2) &&
        tp_warn_once("The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated. x.mT "
                     "transposes batches of matrices, x.permute(...) reverses dimensions.") < 0)
        return NULL;
    for (int i = 0; i < self->ndim; i++) dims[i] = self->ndim - 1 - i;
    return tp_permute(self, (tp_ints){dims, self->ndim});
}

/* The transpose of the last two dimensions; a number is itself, with a warning, as in PyTorch. */
static tp_tensor *transposed_matrices(tp_tensor *self, const char *name) {
    if (self->ndim == 0)
        return tp_warn_once("tensor.mT, tensor.mH and tensor.adjoint() of a tensor without dimensions are deprecated") <
                       0
                   ? NULL
                   : tp_retain(self);
    if (self->ndim < 2)
        return tp_fail_null(TP_RuntimeError,
                            "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.", name,
                            self->ndim);
    return tp_transpose_int(self, -2, -1);
}
static tp_tensor *conjugate_transposed(tp_tensor *self, const char *name) {
    tp_autoref *swapped = transposed_matrices(self, name);
    return swapped ? tp_conj(swapped) : NULL;
}

tp_tensor *mT_composite(tp_tensor *self) { return transposed_matrices(self, "mT"); }
tp_tensor *mH_composite(tp_tensor *self) { return conjugate_transposed(self, "mH"); }
tp_tensor *adjoint_composite(tp_tensor *self) { return conjugate_transposed(self, "adjoint()"); }

tp_tensor *matrix_H_composite(tp_tensor *self) {
    if (self->ndim == 0)
        return tp_warn_once("Tensor.H is deprecated on 0-D tensors: conj() gives the same") < 0 ? NULL : tp_conj(self);
    if (self->ndim != 2)
        return tp_fail_null(TP_RuntimeError, "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s",
                            self->ndim, self->ndim > 2 ? " For batches of matrices, consider using tensor.mH" : "");
    return mH_composite(self);
}

/* ---- complex numbers ---- */

/* conj(Tensor(a) self) -> Tensor(a): nothing is computed, as in PyTorch */
tp_tensor *conj_composite(tp_tensor *self) { return tp_is_complex(self) ? tp__conj(self) : tp_retain(self); }

/* _conj(Tensor(a) self) -> Tensor(a): Note [Pending math] in conjugate/conjugate.h */
tp_tensor *_conj_composite(tp_tensor *self) {
    if (!tp_is_complex(self)) return tp_fail_null(TP_RuntimeError, "_conj is only for complex tensors");
    tp_tensor *view = tp_new_alias(self, tp_sizes(self), tp_strides(self), self->byte_offset);
    if (view) view->keys ^= TP_BIT(Conjugate);
    return view;
}
/* _neg_view(Tensor(a) self) -> Tensor(a) */
tp_tensor *_neg_view_composite(tp_tensor *self) {
    if (self->dtype == TP_BOOL) return tp_fail_null(TP_RuntimeError, "_neg_view is not for tensors of bool");
    tp_tensor *view = tp_new_alias(self, tp_sizes(self), tp_strides(self), self->byte_offset);
    if (view) view->keys ^= TP_BIT(Negative);
    return view;
}

/* A view of another dtype; what is to be read as negative still is. */
static tp_tensor *with_negative_steal(tp_tensor *view, const tp_tensor *self) {
    if (view) view->keys |= self->keys & TP_BIT(Negative);
    return view;
}

tp_tensor *view_as_real_composite(tp_tensor *self) {
    if (!tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "view_as_real is only supported for complex tensors");
    if (self->keys & TP_BIT(Conjugate))
        return tp_fail_null(TP_RuntimeError, "view_as_real doesn't work on unresolved conjugated tensors.  To resolve "
                                             "the conjugate tensor so you can view "
                                             "it as real, use self.resolve_conj(), which gives memory of its own");
    int64_t sizes[TP_MAX_DIMS + 1], strides[TP_MAX_DIMS + 1];
    for (int i = 0; i < self->ndim; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = self->strides[i] * 2;
    }
    sizes[self->ndim] = 2;
    strides[self->ndim] = 1;
    tp_tensor *view =
        tp_new_on_storage(self->storage, (tp_ints){sizes, self->ndim + 1}, (tp_ints){strides, self->ndim + 1},
                          self->byte_offset, tp_to_real_dtype((tp_dtype)self->dtype));
    return with_negative_steal(view, self);
}

tp_tensor *view_as_complex_composite(tp_tensor *self) {
    int last = self->ndim - 1;
    int64_t strides[TP_MAX_DIMS];
    if (self->dtype != TP_FLOAT16 && self->dtype != TP_FLOAT32 && self->dtype != TP_FLOAT64)
        return tp_fail_null(TP_RuntimeError,
                            "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                            "scalar type: %s",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "Input tensor must have one or more dimensions");
    if (self->sizes[last] != 2) return tp_fail_null(TP_RuntimeError, "Tensor must have a last dimension of size 2");
    if (self->strides[last] != 1)
        return tp_fail_null(TP_RuntimeError, "Tensor must have a last dimension with stride 1");
    for (int i = 0; i < last; i++) {
        if (self->sizes[i] > 1 && self->strides[i] % 2)
            return tp_fail_null(TP_RuntimeError, "Tensor must have a stride divisible by 2 for all but last dimension");
        strides[i] = self->strides[i] / 2;
    }
    tp_dtype dtype = tp_to_complex_dtype((tp_dtype)self->dtype);
    if (self->byte_offset % tp_itemsize(dtype))
        return tp_fail_null(TP_RuntimeError, "Tensor must have a storage_offset divisible by 2");
    tp_tensor *view = tp_new_on_storage(self->storage, (tp_ints){self->sizes, last}, (tp_ints){strides, last},
                                        self->byte_offset, dtype);
    return with_negative_steal(view, self);
}

/* The imaginary part of a conjugate is a view whose negative is pending. */
static tp_tensor *part_of_complex(tp_tensor *self, int64_t index) {
    bool conjugated = tp_reads_conj(self);
    tp_autoref *plain = conjugated ? tp__conj(self) : tp_retain(self), *pairs = plain ? tp_view_as_real(plain) : NULL;
    tp_autoref *part = pairs ? tp_select_int(pairs, -1, index) : NULL;
    return part && conjugated && index == 1 ? tp__neg_view(part) : tp_take(part);
}
tp_tensor *real_composite(tp_tensor *self) { return tp_is_complex(self) ? part_of_complex(self, 0) : tp_retain(self); }
tp_tensor *imag_composite(tp_tensor *self) {
    if (!tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "imag is not implemented for tensors with non-complex dtypes.");
    return part_of_complex(self, 1);
}

/* ---- expand, select, slice ---- */

static TP_COLD tp_tensor *expand_does_not_fit(const tp_tensor *self, tp_ints size, int i, int64_t old) {
    tp_autotext wanted = {0}, found = {0};
    tp_text_ints(&wanted, size);
    tp_text_ints(&found, tp_sizes(self));
    return tp_fail_null(TP_RuntimeError,
                        "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
                        "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                        (long long)size.data[i], (long long)old, i, wanted.text, found.text);
}

tp_tensor *expand_composite(tp_tensor *self, tp_ints size, bool implicit) {
    (void)implicit;
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int lead = (int)size.size - self->ndim;
    if (size.size > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "expand: %lld dimensions are more than %d", (long long)size.size,
                            TP_MAX_DIMS);
    if (lead < 0)
        return tp_fail_null(TP_RuntimeError,
                            "expand: the number of sizes provided (%lld) must be greater or equal to the number of "
                            "dimensions in the tensor (%d)",
                            (long long)size.size, self->ndim);
    for (int i = 0; i < size.size; i++) {
        int64_t old = i < lead ? 1 : self->sizes[i - lead], wanted = size.data[i];
        if (wanted == -1 && i < lead)
            return tp_fail_null(
                TP_RuntimeError,
                "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension %d", i);
        if (wanted < -1)
            return tp_fail_null(TP_RuntimeError, "expand: size %lld of dimension %d is negative", (long long)wanted, i);
        sizes[i] = wanted == -1 ? old : wanted;
        if (sizes[i] != old && old != 1) return expand_does_not_fit(self, size, i, old);
        strides[i] = i < lead || (old == 1 && sizes[i] != 1) ? 0 : self->strides[i - lead];
    }
    /* A dimension of one element that is new has the stride of contiguous memory, as unsqueeze gives it. */
    for (int i = lead - 1; i >= 0 && self->ndim; i--)
        if (sizes[i] == 1) strides[i] = sizes[i + 1] * strides[i + 1];
    return restride(self, sizes, strides, size.size, 0);
}

tp_tensor *select_int_composite(tp_tensor *self, int64_t dim, int64_t index) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    if (self->ndim == 0) return tp_fail_null(TP_IndexError, "select() cannot be applied to a 0-dim tensor.");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    int64_t i = index < 0 ? index + self->sizes[d] : index;
    if (i < 0 || i >= self->sizes[d]) {
        tp_autotext sizes_of = {0};
        tp_text_ints(&sizes_of, tp_sizes(self));
        return tp_fail_null(TP_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %lld",
                            (long long)index, sizes_of.text, (long long)d);
    }
    for (int k = 0, to = 0; k < self->ndim; k++) {
        if (k == d) continue;
        sizes[to] = self->sizes[k];
        strides[to++] = self->strides[k];
    }
    return restride(self, sizes, strides, self->ndim - 1, i * self->strides[d]);
}

static int64_t clamp_index(int64_t i, int64_t size) {
    if (i < 0) i += size;
    return i < 0 ? 0 : i > size ? size : i;
}

tp_tensor *slice_Tensor_composite(tp_tensor *self, int64_t dim, tp_opt_int start, tp_opt_int end, int64_t step) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "slice() cannot be applied to a 0-dim tensor.");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    if (step <= 0) return tp_fail_null(TP_RuntimeError, "slice step must be positive");
    int64_t from = clamp_index(start.has ? start.value : 0, self->sizes[d]);
    int64_t to = clamp_index(end.has ? end.value : INT64_MAX, self->sizes[d]);
    int64_t n = to > from ? to - from : 0;
    for (int i = 0; i < self->ndim; i++) {
        sizes[i] = self->sizes[i];
        strides[i] = self->strides[i];
    }
    sizes[d] = step == 1 ? n : n / step + (n % step != 0);
    if (__builtin_mul_overflow(strides[d], step, &strides[d])) strides[d] = 0; /* only for sizes 0 and 1 */
    return restride(self, sizes, strides, self->ndim, from * self->strides[d]);
}

tp_tensor *select_backward_composite(tp_tensor *grad_output, tp_ints input_sizes, int64_t dim, int64_t index) {
    tp_autoref *grad = tp_zeros(input_sizes, (tp_dtype)grad_output->dtype, TP_STRIDED, grad_output->device, -1);
    tp_autoref *part = grad ? tp_select_int(grad, dim, index) : NULL;
    return part && tp_copy_(part, grad_output, false) == 0 ? tp_take(grad) : NULL;
}

tp_tensor *slice_backward_composite(tp_tensor *grad_output, tp_ints input_sizes, int64_t dim, int64_t start,
                                    int64_t end, int64_t step) {
    tp_autoref *grad = tp_zeros(input_sizes, (tp_dtype)grad_output->dtype, TP_STRIDED, grad_output->device, -1);
    tp_autoref *part = grad ? tp_slice_Tensor(grad, dim, TP_SOME_INT(start), TP_SOME_INT(end), step) : NULL;
    return part && tp_copy_(part, grad_output, false) == 0 ? tp_take(grad) : NULL;
}

/* ---- dimensions of size one ---- */

static tp_tensor *squeeze_where(tp_tensor *self, const bool *drop) {
    int64_t sizes[TP_MAX_DIMS], strides[TP_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < self->ndim; i++) {
        if (drop[i] && self->sizes[i] == 1) continue;
        sizes[n] = self->sizes[i];
        strides[n++] = self->strides[i];
    }
    return restride(self, sizes, strides, n, 0);
}

tp_tensor *squeeze_composite(tp_tensor *self) {
    bool drop[TP_MAX_DIMS];
    memset(drop, true, sizeof drop);
    return squeeze_where(self, drop);
}

tp_tensor *squeeze_dims_composite(tp_tensor *self, tp_ints dim) {
    bool drop[TP_MAX_DIMS] = {0};
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], self->ndim);
        if (d < 0) return NULL;
        if (drop[d])
            return tp_fail_null(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)d);
        drop[d] = true;
    }
    return squeeze_where(self, drop);
}

tp_tensor *squeeze_dim_composite(tp_tensor *self, int64_t dim) { return squeeze_dims_composite(self, TP_INTS(dim)); }

tp_tensor *unsqueeze_composite(tp_tensor *self, int64_t dim) {
    int64_t sizes[TP_MAX_DIMS + 1], strides[TP_MAX_DIMS + 1];
    int64_t d = tp_wrap_dim(dim, self->ndim + 1);
    if (d < 0) return NULL;
    for (int i = 0, from = 0; i <= self->ndim; i++) {
        if (i == d) {
            sizes[i] = 1;
            strides[i] = d < self->ndim ? self->sizes[d] * self->strides[d] : 1;
        } else {
            sizes[i] = self->sizes[from];
            strides[i] = self->strides[from++];
        }
    }
    return restride(self, sizes, strides, self->ndim + 1, 0);
}

tp_tensor_seq *unbind_int_composite(tp_tensor *self, int64_t dim) {
    int64_t d = tp_wrap_own_dim(dim, self);
    tp_tensor_seq *seq = d < 0 ? NULL : tp_tensor_seq_new(self->sizes[d]);
    for (int64_t i = 0; seq && i < seq->size; i++)
        if ((!(i & 0x3fff) && tp_host_look() < 0) || !(seq->items[i] = select_int_composite(self, d, i))) {
            tp_tensor_seq_free(seq);
            return NULL;
        }
    return seq;
}

/* ---- helpers of formulas ---- */

tp_tensor *_restore_dims_composite(tp_tensor *self, tp_ints dim, int64_t ndim) {
    int64_t sizes[TP_MAX_DIMS];
    bool reduced[TP_MAX_DIMS] = {0};
    if (ndim < 0 || ndim > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "_restore_dims: %lld dimensions", (long long)ndim);
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], ndim);
        if (d < 0) return NULL;
        reduced[d] = true;
    }
    for (int i = 0, from = 0; i < ndim; i++)
        sizes[i] = dim.size <= 0 || reduced[i] || from == self->ndim ? 1 : self->sizes[from++];
    return tp_reshape(self, (tp_ints){sizes, ndim});
}

tp_tensor *_inverse_permute_composite(tp_tensor *self, tp_ints dims) {
    int64_t inverse[TP_MAX_DIMS];
    if (dims.size != self->ndim)
        return tp_fail_null(TP_RuntimeError, "_inverse_permute: %lld dims for a tensor of %d dimensions",
                            (long long)dims.size, self->ndim);
    for (int64_t i = 0; i < dims.size; i++) {
        int64_t d = tp_wrap_dim(dims.data[i], dims.size);
        if (d < 0) return NULL;
        inverse[d] = i;
    }
    return tp_permute(self, (tp_ints){inverse, dims.size});
}
