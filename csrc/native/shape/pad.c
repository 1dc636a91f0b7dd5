/* pad.c: borders around a tensor.
 *
 * A constant border is a copy into a larger tensor. The other modes say for each place of the result which place of
 * self it shows. Where nothing is cut off, self is copied and each border is taken from what is there already; else
 * there is one index_select for each padded dimension. */
#include "NativeFunctions.h"
#include "core/parallel.h"
#include "iter/iter.h"
#include "prim/transfer.h"
#include "native/common/table_beside.h"

#include <string.h>

/* ---- a constant ---- */

/* Amounts whose sums with a size stay within 64 bits. */
static int check_amounts(tp_ints pad) {
    for (int64_t i = 0; i < pad.size; i++)
        if (pad.data[i] > INT64_MAX / 4 || pad.data[i] < -INT64_MAX / 4)
            return tp_fail(TP_RuntimeError, "pad: an amount of %lld is too large", (long long)pad.data[i]);
    return 0;
}

/* constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor */
tp_tensor *constant_pad_nd_composite(tp_tensor *self, tp_ints pad, const tp_scalar *value) {
    int64_t sizes[TP_MAX_DIMS];
    if (pad.size % 2)
        return tp_fail_null(
            TP_RuntimeError,
            "Padding length must be divisible by 2: Length of pad must be even but instead it equals %lld",
            (long long)pad.size);
    if (pad.size > 2 * self->ndim)
        return tp_fail_null(
            TP_RuntimeError,
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is %lld "
            "while the input has %d dimensions.",
            (long long)pad.size, self->ndim);
    if (check_amounts(pad) < 0) return NULL;
    tp_autoref *from = tp_retain(self), *out = NULL, *into = NULL;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    for (int64_t i = 0; i < pad.size / 2; i++) {
        int64_t d = self->ndim - 1 - i, before = pad.data[2 * i], after = pad.data[2 * i + 1];
        if (__builtin_add_overflow(sizes[d], before + after, &sizes[d]))
            return tp_fail_null(TP_RuntimeError, "constant_pad_nd: the sizes overflow");
        if (sizes[d] < 0)
            return tp_fail_null(
                TP_RuntimeError,
                "The input size %lld, plus negative padding %lld and %lld, resulted in a negative output size, "
                "which is invalid. Check dimension %lld of your input.",
                (long long)self->sizes[d], (long long)before, (long long)after, (long long)d);
        int64_t first = before < 0 ? -before : 0, last = self->sizes[d] + (after < 0 ? after : 0);
        tp_tensor *part = tp_slice_Tensor(from, d, TP_SOME_INT(first), TP_SOME_INT(last < first ? first : last), 1);
        tp_release(from);
        if (!(from = part)) return NULL;
    }
    out = tp_new_empty_format((tp_ints){sizes, self->ndim}, (tp_dtype)self->dtype, self->device,
                              tp_suggest_memory_format(self));
    if (!out || tp_fill__Scalar(out, value) < 0) return NULL;
    into = tp_retain(out);
    for (int64_t i = 0; i < pad.size / 2; i++) {
        int64_t d = self->ndim - 1 - i, first = pad.data[2 * i] > 0 ? pad.data[2 * i] : 0;
        if (first > sizes[d]) first = sizes[d];
        tp_tensor *part = tp_slice_Tensor(into, d, TP_SOME_INT(first), TP_SOME_INT(first + from->sizes[d]), 1);
        tp_release(into);
        if (!(into = part)) return NULL;
    }
    return tp_copy_(into, from, false) == 0 ? tp_take(out) : NULL;
}
tp_tensor *_constant_pad_nd_backward_composite(tp_tensor *grad, tp_ints pad) {
    int64_t less[2 * TP_MAX_DIMS];
    if (pad.size > TP_COUNTOF(less) || check_amounts(pad) < 0)
        return tp_fail_null(TP_RuntimeError, "_constant_pad_nd_backward: this is no padding");
    for (int64_t i = 0; i < pad.size; i++) less[i] = -pad.data[i];
    return tp_constant_pad_nd(grad, (tp_ints){less, pad.size}, TP_SCALAR_I(0));
}

/* ---- borders made of the tensor ---- */

#define FEW_PLACES 16 /* are copied one by one */

typedef enum { REFLECT, REPLICATE, CIRCULAR } border;

static int64_t place_in(int64_t i, int64_t size, border mode) {
    switch (mode) {
    case REFLECT: return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    case REPLICATE: return i < 0 ? 0 : i >= size ? size - 1 : i;
    default: return i < 0 ? i + size : i >= size ? i - size : i;
    }
}
static int check_border(const tp_tensor *self, int64_t d, int64_t before, int64_t after, border mode) {
    int64_t size = self->sizes[d];
    if (mode == REFLECT && (before >= size || after >= size)) {
        tp_autotext text = {0};
        tp_text_ints(&text, tp_sizes(self));
        return tp_fail(
            TP_RuntimeError,
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            "(%lld, %lld) at dimension %lld of input %s",
            (long long)before, (long long)after, (long long)d, text.text);
    }
    /* What comes round is taken from what is left of the dimension. */
    const int64_t cut = (before < 0 ? -before : 0) + (after < 0 ? -after : 0);
    if (mode == CIRCULAR && ((before > 0 && before > size - cut) || (after > 0 && after > size - cut)))
        return tp_fail(TP_RuntimeError, "Padding value causes wrapping around more than once.");
    if (size + before + after < 0)
        return tp_fail(TP_RuntimeError, "input (dimension %lld of size %lld) is too small for padding (%lld, %lld)",
                       (long long)d, (long long)size, (long long)before, (long long)after);
    return 0;
}
/* What places first to last - 1 show, whose middle of `size` places begins at `middle`; counted from `shift`, on the
 * device. */
static tp_tensor *shown_places(const tp_tensor *self, int64_t first, int64_t last, int64_t middle, int64_t size,
                               int64_t shift, border mode) {
    int64_t *places;
    tp_tensor *index = tp_table_int64_beside(self, TP_INTS(last - first), &places);
    for (int64_t i = first; places && i < last; i++) places[i - first] = shift + place_in(i - middle, size, mode);
    return tp_table_moved_steal(index, self, TP_INT64);
}
/* For each place of the padded dimension, the place of self that it shows. */
static tp_tensor *places_of(const tp_tensor *self, int64_t size, int64_t before, int64_t after, border mode) {
    int64_t first = mode == CIRCULAR && before < 0 ? -before : 0, cut = mode == CIRCULAR && after < 0 ? -after : 0;
    return shown_places(self, 0, size + before + after, before + first, size - first - cut, first, mode);
}
static tp_tensor *pad_dim(tp_tensor *self, int64_t d, int64_t before, int64_t after, border mode) {
    if (before == 0 && after == 0) return tp_retain(self);
    tp_autoref *places = places_of(self, self->sizes[d], before, after, mode);
    return places ? tp_index_select(self, d, places) : NULL;
}
/* The adjoint of pad_dim: what the copies of an element got is added up. */
static tp_tensor *unpad_dim(tp_tensor *grad, int64_t d, int64_t size, int64_t before, int64_t after, border mode) {
    int64_t sizes[TP_MAX_DIMS];
    if (before == 0 && after == 0) return tp_retain(grad);
    memcpy(sizes, grad->sizes, (size_t)grad->ndim * sizeof *sizes);
    sizes[d] = size;
    tp_autoref *places = places_of(grad, size, before, after, mode);
    tp_autoref *zeros =
        places ? tp_zeros((tp_ints){sizes, grad->ndim}, (tp_dtype)grad->dtype, TP_NO_LAYOUT, grad->device, -1) : NULL;
    return zeros ? tp_index_add(zeros, d, places, grad, TP_SCALAR_I(1)) : NULL;
}
/* dims dimensions at the end, with one or two in front of them. */
static int check_pad(tp_tensor *self, tp_ints pad, int dims, border mode) {
    if (pad.size != 2 * dims)
        return tp_fail(TP_RuntimeError, "padding size is expected to be %d, but got: %lld", 2 * dims,
                       (long long)pad.size);
    if (check_amounts(pad) < 0) return -1;
    bool empty = false, leaves = mode == CIRCULAR;
    for (int d = self->ndim > dims + 1; d < self->ndim; d++) empty |= self->sizes[d] == 0;
    if (self->ndim < dims + 1 || self->ndim > dims + 2 || (empty && mode != CIRCULAR)) {
        tp_autotext text = {0};
        tp_text_ints(&text, tp_sizes(self));
        return tp_fail(
            TP_RuntimeError,
            "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            "for input, but got: %s",
            dims + 1, dims + 2, text.text);
    }
    for (int i = 0; i < dims; i++) {
        int64_t d = self->ndim - 1 - i, before = pad.data[2 * i], after = pad.data[2 * i + 1];
        if (check_border(self, d, before, after, mode) < 0) return -1;
        leaves |= self->sizes[d] + before + after > 0;
    }
    return leaves ? 0 : tp_fail(TP_RuntimeError, "the input is too small: nothing is left of it in any dimension");
}
/* Place `to` of a dimension becomes like place `from`. */
static int copy_place(tp_tensor *t, int64_t d, int64_t to, int64_t from) {
    tp_autoref *a = tp_select_int(t, d, to), *b = a ? tp_select_int(t, d, from) : NULL;
    return b ? tp_copy_data(a, b) : -1;
}
/* Places first to last - 1 of a dimension whose middle, of `size` from `before` on, is there. */
static int fill_border(tp_tensor *t, int64_t d, int64_t first, int64_t last, int64_t before, int64_t size,
                       border mode) {
    if (last - first <= FEW_PLACES) {
        int status = 0;
        for (int64_t i = first; i < last && status == 0; i++)
            status = copy_place(t, d, i, before + place_in(i - before, size, mode));
        return status;
    }
    tp_autoref *index = shown_places(t, first, last, before, size, before, mode);
    tp_autoref *shown = index ? tp_index_select(t, d, index) : NULL;
    tp_autoref *there = shown ? tp_slice_Tensor(t, d, TP_SOME_INT(first), TP_SOME_INT(last), 1) : NULL;
    return there ? tp_copy_data(there, shown) : -1;
}
/* Dimension by dimension, so that what the later ones show has its borders already. */
static tp_tensor *pad_around(tp_tensor *self, tp_ints pad, int dims, border mode) {
    int64_t sizes[TP_MAX_DIMS];
    memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
    for (int i = 0; i < dims; i++) sizes[self->ndim - 1 - i] += pad.data[2 * i] + pad.data[2 * i + 1];
    tp_autoref *out = tp_new_empty_format((tp_ints){sizes, self->ndim}, (tp_dtype)self->dtype, self->device,
                                          tp_suggest_memory_format(self));
    tp_tensor *parts[4] = {out ? tp_retain(out) : NULL}; /* parts[i]: the last i dimensions without their borders */
    int made = out != NULL;
    for (; made && made <= dims; made++) {
        int64_t d = self->ndim - made, before = pad.data[2 * (made - 1)];
        parts[made] = tp_slice_Tensor(parts[made - 1], d, TP_SOME_INT(before), TP_SOME_INT(before + self->sizes[d]), 1);
        if (!parts[made]) break;
    }
    int status = made == dims + 1 ? tp_copy_data(parts[dims], self) : -1;
    for (int i = dims; i > 0 && status == 0; i--) {
        int64_t d = self->ndim - i, before = pad.data[2 * (i - 1)], size = self->sizes[d];
        status = fill_border(parts[i - 1], d, 0, before, before, size, mode);
        if (status == 0) status = fill_border(parts[i - 1], d, before + size, sizes[d], before, size, mode);
    }
    for (int i = 0; i < made; i++) tp_release(parts[i]);
    return status == 0 ? tp_take(out) : NULL;
}
static bool cuts_off(tp_ints pad) {
    for (int64_t i = 0; i < pad.size; i++)
        if (pad.data[i] < 0) return true;
    return false;
}

static tp_tensor *pad_border(tp_tensor *self, tp_ints pad, int dims, border mode) {
    if (check_pad(self, pad, dims, mode) < 0) return NULL;
    if (self->numel && tp_has_values(self) && !cuts_off(pad)) return pad_around(self, pad, dims, mode);
    tp_autoref *t = tp_retain(self);
    for (int i = dims - 1; i >= 0; i--) {
        tp_tensor *next = pad_dim(t, self->ndim - 1 - i, pad.data[2 * i], pad.data[2 * i + 1], mode);
        tp_release(t);
        if (!(t = next)) return NULL;
    }
    return t == self ? tp_clone(self, TP_NO_FORMAT) : tp_contiguous(t, tp_suggest_memory_format(self));
}
static tp_tensor *pad_border_backward(tp_tensor *grad, tp_tensor *self, tp_ints pad, int dims, border mode) {
    if (check_pad(self, pad, dims, mode) < 0) return NULL;
    bool fits = grad->ndim == self->ndim;
    for (int i = 0; fits && i < dims; i++) {
        int64_t d = self->ndim - 1 - i;
        fits = grad->sizes[d] == self->sizes[d] + pad.data[2 * i] + pad.data[2 * i + 1];
    }
    if (!fits) {
        tp_autotext g = {0}, s = {0};
        tp_text_ints(&g, tp_sizes(grad));
        tp_text_ints(&s, tp_sizes(self));
        return tp_fail_null(TP_RuntimeError, "grad_output of size %s is not that of a padded input of size %s", g.text,
                            s.text);
    }
    tp_autoref *t = tp_retain(grad);
    for (int i = 0; i < dims && t; i++) {
        int64_t d = self->ndim - 1 - i;
        tp_tensor *next = unpad_dim(t, d, self->sizes[d], pad.data[2 * i], pad.data[2 * i + 1], mode);
        tp_release(t);
        t = next;
    }
    if (!t || t == grad) return t ? tp_clone(grad, TP_NO_FORMAT) : NULL;
    return tp_contiguous(t, tp_suggest_memory_format(self));
}

/* reflection_pad2d(Tensor self, SymInt[4] padding) -> Tensor; reflection_pad2d_backward(Tensor grad_output, Tensor
 * self, SymInt[4] padding) -> Tensor; and their kin. */
#define PAD(name, dims, mode)                                                                                       \
    tp_tensor *name##_composite(tp_tensor *self, tp_ints padding) { return pad_border(self, padding, dims, mode); } \
    tp_tensor *name##_backward_composite(tp_tensor *grad_output, tp_tensor *self, tp_ints padding) {                \
        return pad_border_backward(grad_output, self, padding, dims, mode);                                         \
    }
PAD(reflection_pad1d, 1, REFLECT)
PAD(reflection_pad2d, 2, REFLECT)
PAD(reflection_pad3d, 3, REFLECT)
PAD(replication_pad1d, 1, REPLICATE)
PAD(replication_pad2d, 2, REPLICATE)
PAD(replication_pad3d, 3, REPLICATE)
tp_tensor *_pad_circular_composite(tp_tensor *self, tp_ints pad) {
    return pad_border(self, pad, (int)(pad.size / 2), CIRCULAR);
}
tp_tensor *_pad_circular_backward_composite(tp_tensor *grad_output, tp_tensor *self, tp_ints pad) {
    return pad_border_backward(grad_output, self, pad, (int)(pad.size / 2), CIRCULAR);
}

/* pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None) -> Tensor */
tp_tensor *pad_composite(tp_tensor *self, tp_ints pad, const char *mode, tp_opt_float value) {
    if (strcmp(mode, "constant") == 0) return tp_constant_pad_nd(self, pad, TP_SCALAR_F(value.has ? value.value : 0));
    if (value.has && value.value != 0)
        return tp_fail_null(TP_RuntimeError, "Padding mode \"%s\" doesn't take in value argument", mode);
    int dims = (int)(pad.size / 2);
    bool fits = pad.size % 2 == 0 && dims >= 1 && dims <= 3 && (self->ndim == dims + 1 || self->ndim == dims + 2);
    if (strcmp(mode, "reflect") && strcmp(mode, "replicate") && strcmp(mode, "circular"))
        return tp_fail_null(TP_NotImplementedError, "Unrecognised padding mode %s", mode);
    if (!fits)
        return tp_fail_null(TP_NotImplementedError,
                            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
    if (strcmp(mode, "circular") == 0) return tp__pad_circular(self, pad);
    bool reflect = strcmp(mode, "reflect") == 0;
    switch (dims) {
    case 1: return reflect ? tp_reflection_pad1d(self, pad) : tp_replication_pad1d(self, pad);
    case 2: return reflect ? tp_reflection_pad2d(self, pad) : tp_replication_pad2d(self, pad);
    default: return reflect ? tp_reflection_pad3d(self, pad) : tp_replication_pad3d(self, pad);
    }
}

/* _pad_enum(Tensor self, SymInt[] pad, int mode, float? value=None) -> Tensor */
tp_tensor *_pad_enum_composite(tp_tensor *self, tp_ints pad, int64_t mode, tp_opt_float value) {
    static const char *const modes[] = {"reflect", "replicate", "circular", "constant"};
    if (mode < 0 || mode >= (int64_t)TP_COUNTOF(modes))
        return tp_fail_null(TP_RuntimeError, "_pad_enum: there is no padding mode %lld", (long long)mode);
    return pad_composite(self, pad, modes[mode], value);
}
