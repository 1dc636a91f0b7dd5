/* geometry.c: sizes and strides as such: products, extents, contiguity, memory formats, broadcasting.
 *
 * Nothing here allocates or touches a storage. Strides count elements and may be negative or zero. Dimensions of size 1
 * have strides without meaning, except to the memory format heuristics, which follow PyTorch to the letter. */
#include "core/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int channels_last_order[] = {1, 3, 2, 0}; /* fastest first */
static const int channels_last_3d_order[] = {1, 4, 3, 2, 0};

static int fail_sizes(const char *what, tp_ints sizes) {
    tp_autotext text = {0};
    tp_text_ints(&text, sizes);
    return tp_fail(TP_RuntimeError, "%s%s", what, text.text ? text.text : "");
}

static int TP_COLD fail_negative(int64_t size, tp_ints sizes) {
    tp_autotext text = {0};
    tp_text_ints(&text, sizes);
    return tp_fail(TP_RuntimeError, "Trying to create tensor with negative dimension %lld: %s", (long long)size,
                   text.text ? text.text : "");
}

int64_t tp_checked_numel(tp_ints sizes) {
    int64_t numel = 1, product = 1; /* product: without the zeros */
    bool overflow = false;
    for (int64_t i = 0; i < sizes.size; i++) {
        int64_t n = sizes.data[i];
        if (tp_unlikely(n < 0)) return fail_negative(n, sizes);
        if (n == 0) numel = 0;
        overflow |= __builtin_mul_overflow(product, n ? n : 1, &product);
    }
    if (tp_unlikely(overflow))
        return fail_sizes(numel == 0 ? "Stride calculation overflowed with sizes="
                                     : "Storage size calculation overflowed with sizes=",
                          sizes);
    return numel ? product : 0;
}

static int fail_extent(tp_ints sizes, tp_ints strides) {
    tp_autotext text = {0};
    tp_text_ints(&text, sizes);
    tp_text_add(&text, " and strides=");
    tp_text_ints(&text, strides);
    return tp_fail(TP_RuntimeError, "Storage size calculation overflowed with sizes=%s", text.text ? text.text : "");
}

int tp_strided_extent(tp_ints sizes, tp_ints strides, int64_t *low, int64_t *high) {
    *low = *high = 0;
    bool overflow = false;
    for (int64_t i = 0; i < sizes.size; i++) {
        if (sizes.data[i] == 0) {
            *low = *high = 0;
            return 0;
        }
        int64_t reach, *end = strides.data[i] < 0 ? low : high;
        overflow |= __builtin_mul_overflow(sizes.data[i] - 1, strides.data[i], &reach);
        overflow |= __builtin_add_overflow(*end, reach, end);
    }
    return overflow ? fail_extent(sizes, strides) : 0;
}

static int fail_bounds(tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype, int64_t needed,
                       size_t nbytes) {
    tp_autotext text = {0};
    tp_text_add(&text, "setStorage: sizes ");
    tp_text_ints(&text, sizes);
    tp_text_add(&text, ", strides ");
    tp_text_ints(&text, strides);
    tp_text_add(&text, ", storage offset %lld, and itemsize %lld", (long long)(byte_offset / tp_itemsize(dtype)),
                (long long)tp_itemsize(dtype));
    if (needed < 0) tp_text_add(&text, " reach before the start of the storage and are out of bounds");
    else
        tp_text_add(&text, " requiring a storage size of %lld are out of bounds for storage of size %zu",
                    (long long)needed, nbytes);
    return tp_fail(TP_RuntimeError, "%s", text.text ? text.text : "out of bounds of the storage");
}

bool tp_lies_in_storage(tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype, size_t nbytes) {
    int64_t numel = 1, reach, end = 1;
    bool unsure = false;
    if (byte_offset < 0 || sizes.size != strides.size) return false;
    for (int64_t i = 0; i < sizes.size; i++) {
        int64_t n = sizes.data[i], stride = strides.data[i];
        unsure |= n < 1 || stride < 0;
        unsure |= __builtin_mul_overflow(numel, n, &numel);
        unsure |= __builtin_mul_overflow(n - 1, stride, &reach);
        unsure |= __builtin_add_overflow(end, reach, &end);
    }
    unsure |= __builtin_mul_overflow(end, tp_itemsize(dtype), &end);
    unsure |= __builtin_add_overflow(end, byte_offset, &end);
    return !unsure && (uint64_t)end <= nbytes;
}

int tp_check_in_storage(tp_ints sizes, tp_ints strides, int64_t byte_offset, tp_dtype dtype, size_t nbytes) {
    int64_t itemsize = tp_itemsize(dtype), low, high;
    if (tp_likely(tp_lies_in_storage(sizes, strides, byte_offset, dtype, nbytes))) return 0;
    if (sizes.size != strides.size) return tp_fail(TP_RuntimeError, "mismatch in length of strides and shape");
    if (byte_offset < 0)
        return tp_fail(TP_RuntimeError, "Tensor: invalid storage offset %lld", (long long)(byte_offset / itemsize));
    int64_t numel = tp_checked_numel(sizes);
    if (numel < 0) return -1;
    if (numel == 0) return 0;
    if (tp_strided_extent(sizes, strides, &low, &high) < 0) return -1;
    int64_t begin, end;
    bool overflow = __builtin_mul_overflow(low, itemsize, &begin);
    overflow |= __builtin_add_overflow(begin, byte_offset, &begin);
    overflow |= __builtin_add_overflow(high, 1, &end);
    overflow |= __builtin_mul_overflow(end, itemsize, &end);
    overflow |= __builtin_add_overflow(end, byte_offset, &end);
    if (overflow) return fail_extent(sizes, strides);
    if (begin < 0) return fail_bounds(sizes, strides, byte_offset, dtype, -1, nbytes);
    return (uint64_t)end > nbytes ? fail_bounds(sizes, strides, byte_offset, dtype, end, nbytes) : 0;
}

/* ---- strides ---- */

/* The products may overflow only for sizes that tp_checked_numel refuses; unsigned, they are defined even so. */
void tp_contiguous_strides(tp_ints sizes, int64_t *strides) {
    uint64_t stride = 1;
    for (int64_t i = sizes.size - 1; i >= 0; i--) {
        strides[i] = (int64_t)stride;
        stride *= (uint64_t)tp_at_least(sizes.data[i], 1);
    }
}

static void strides_in_order(tp_ints sizes, const int *order, int64_t *strides) {
    uint64_t stride = 1;
    for (int64_t i = 0; i < sizes.size; i++) {
        strides[order[i]] = (int64_t)stride;
        stride *= (uint64_t)sizes.data[order[i]];
    }
}

int tp_strides_for_format(tp_ints sizes, tp_memory_format format, int64_t *strides) {
    switch (format) {
    case TP_CHANNELS_LAST:
        if (sizes.size != 4) return tp_fail(TP_RuntimeError, "required rank 4 tensor to use channels_last format");
        strides_in_order(sizes, channels_last_order, strides);
        return 0;
    case TP_CHANNELS_LAST_3D:
        if (sizes.size != 5) return tp_fail(TP_RuntimeError, "required rank 5 tensor to use channels_last_3d format");
        strides_in_order(sizes, channels_last_3d_order, strides);
        return 0;
    default: tp_contiguous_strides(sizes, strides); return 0;
    }
}

/* Whether dimension a must be walked after (1) or before (-1) dimension b; 0: no opinion. The tensor iterator orders
 * dimensions in the same way, so that strides come out alike everywhere. */
static int compare_dims(tp_ints sizes, tp_ints strides, int64_t a, int64_t b) {
    int64_t x = llabs(strides.data[a]), y = llabs(strides.data[b]);
    if (x == 0 || y == 0) return 0;
    if (x != y) return x < y ? -1 : 1;
    return sizes.data[a] > sizes.data[b] ? 1 : 0;
}

void tp_dense_strides(tp_ints sizes, tp_ints strides, int64_t *out) {
    int64_t order[TP_MAX_DIMS], n = sizes.size; /* fastest first */
    for (int64_t i = 0; i < n; i++) order[i] = n - 1 - i;
    for (int64_t i = 1; i < n; i++) {
        int64_t moving = i;
        for (int64_t j = i - 1; j >= 0; j--) {
            int c = compare_dims(sizes, strides, order[j], order[moving]);
            if (c < 0) break;
            if (c == 0) continue;
            int64_t swap = order[j];
            order[j] = order[moving];
            order[moving] = swap;
            moving = j;
        }
    }
    uint64_t stride = 1;
    for (int64_t i = 0; i < n; i++) {
        out[order[i]] = (int64_t)stride;
        stride *= (uint64_t)tp_at_least(sizes.data[order[i]], 1);
    }
}

/* ---- contiguity ---- */

static bool is_contiguous_in_order(const tp_tensor *t, const int *order) {
    int64_t expected = 1;
    for (int i = 0; i < t->ndim; i++) {
        int d = order[i];
        if (t->sizes[d] == 1) continue;
        if (t->strides[d] != expected) return false;
        expected *= t->sizes[d];
    }
    return true;
}

bool tp_is_contiguous_in(const tp_tensor *t, tp_memory_format format) {
    switch (format) {
    case TP_CHANNELS_LAST: return t->ndim == 4 && is_contiguous_in_order(t, channels_last_order);
    case TP_CHANNELS_LAST_3D: return t->ndim == 5 && is_contiguous_in_order(t, channels_last_3d_order);
    default: return tp_is_contiguous(t);
    }
}

/* Dimensions of more than one element, by insertion into the order of their strides. */
void tp_preserved_strides(const tp_tensor *t, int64_t *out) {
    if (tp_is_dense(t)) memcpy(out, t->strides, sizeof(int64_t) * t->ndim);
    else tp_dense_strides(tp_sizes(t), tp_strides(t), out);
}

bool tp_is_dense(const tp_tensor *t) {
    if (tp_is_contiguous(t)) return true;
    int64_t order[TP_MAX_DIMS], n = 0;
    for (int64_t d = 0; d < t->ndim; d++) {
        if (t->sizes[d] < 2) continue;
        int64_t at = n++;
        for (; at > 0 && t->strides[order[at - 1]] > t->strides[d]; at--) order[at] = order[at - 1];
        order[at] = d;
    }
    int64_t expected = 1;
    for (int64_t i = 0; i < n; i++) {
        if (t->strides[order[i]] != expected) return false;
        expected *= t->sizes[order[i]];
    }
    return true;
}

/* Whether the strides look like channels_last, including those of dimensions of size 1: all that is left of the format
 * of a tensor with such dimensions. PyTorch's heuristic (c10/core/MemoryFormat.h, "Ambiguous
 * is_channels_last_strides_xd"): N111 and permuted tensors count as contiguous. */
static bool looks_channels_last(const tp_tensor *t, const int *order) {
    if (t->strides[1] == 0) return false;
    int64_t least = 0;
    for (int i = 0; i < t->ndim; i++) {
        int d = order[i];
        if (t->sizes[d] == 0 || t->strides[d] < least) return false;
        if (d == 0 && least == t->strides[1]) return false;
        least = t->strides[d] * tp_at_least(t->sizes[d], 1);
    }
    return true;
}

tp_memory_format tp_suggest_memory_format(const tp_tensor *t) {
    if (t->ndim == 4 && looks_channels_last(t, channels_last_order)) return TP_CHANNELS_LAST;
    if (t->ndim == 5 && looks_channels_last(t, channels_last_3d_order)) return TP_CHANNELS_LAST_3D;
    return TP_CONTIGUOUS_FORMAT;
}

/* ---- shapes ---- */

bool tp_same_sizes(const tp_tensor *a, const tp_tensor *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] != b->sizes[i]) return false;
    return true;
}

bool tp_laid_out_alike(const tp_tensor *a, const tp_tensor *b) {
    if (a->dtype != b->dtype || !tp_same_sizes(a, b)) return false;
    if (tp_is_contiguous(a) && tp_is_contiguous(b)) return true;
    if (!tp_is_dense(a) || !tp_is_dense(b)) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] > 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

int64_t tp_wrap_dim(int64_t dim, int64_t ndim) {
    int64_t n = tp_at_least(ndim, 1);
    if (tp_likely(dim >= -n && dim < n)) return dim < 0 ? dim + n : dim;
    return tp_fail(TP_IndexError, "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                   (long long)-n, (long long)(n - 1), (long long)dim);
}

/* From the last dimension back, so that `out` may be the data of the longer one. */
int tp_broadcast_sizes(tp_ints a, tp_ints b, int64_t *out) {
    int64_t n = a.size > b.size ? a.size : b.size;
    for (int64_t i = 1; i <= n; i++) {
        int64_t x = i <= a.size ? a.data[a.size - i] : 1, y = i <= b.size ? b.data[b.size - i] : 1;
        if (x != y && x != 1 && y != 1)
            return tp_fail(TP_RuntimeError,
                           "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
                           "dimension %lld",
                           (long long)x, (long long)y, (long long)(n - i));
        out[n - i] = x == 1 ? y : x;
    }
    return (int)n;
}

void tp_text_ints(tp_text *text, tp_ints v) {
    tp_text_add(text, "[");
    for (int64_t i = 0; i < v.size; i++) tp_text_add(text, "%s%lld", i ? ", " : "", (long long)v.data[i]);
    tp_text_add(text, "]");
}

const char *tp_ints_text(char *room, size_t size, tp_ints v) {
    tp_autotext text = {0};
    tp_text_ints(&text, v);
    snprintf(room, size, "%s", text.text ? text.text : "");
    return room;
}

void tp_text_tensor(tp_text *text, const tp_tensor *t) {
    char device[40];
    tp_text_add(text, "%s", tp_dtype_names[t->dtype]);
    tp_text_ints(text, tp_sizes(t));
    tp_text_add(text, " on %s", tp_device_print(t->device, device));
}
