/* pack.c: the primitives pack, unpack and nonzero on the CPU; the walks along a mask are in masked.c. Long ones are
 * taken in parts, with a look for signals in between. */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "cpu/masked.h"
#include "prim/fault.h"
#include "core/memory.h"

#define PART ((int64_t)1 << 20)

static int64_t part_end(int64_t first, int64_t n) { return n - first < PART ? n : first + PART; }

static int pack_into(tp_tensor *out, const tp_tensor *from, const tp_tensor *mask) {
    int64_t size = tp_itemsize((tp_dtype)from->dtype), n = mask->numel, k = 0;
    char *to = tp_data(out);
    const char *elements = tp_data(from);
    const uint8_t *truths = tp_data(mask);
    for (int64_t i = 0, end; i < n; i = end) {
        if (i && tp_host_look() < 0) return -1;
        end = part_end(i, n);
        k += tp_mask_pack(to + k * size, out->numel - k, elements + i * size, truths + i, end - i, size);
    }
    return 0;
}

tp_tensor *pack_cpu(tp_tensor *from, tp_tensor *mask) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel);
    tp_autoref *out = tp_new_empty(TP_INTS(n), (tp_dtype)from->dtype, TP_CPU);
    return out && pack_into(out, from, mask) == 0 ? tp_take(out) : NULL;
}

int unpack_cpu(tp_tensor *from, tp_tensor *mask, int64_t fault, tp_tensor *out) {
    int64_t size = tp_itemsize((tp_dtype)from->dtype), n = mask->numel, k = 0;
    const uint8_t *truths = tp_data(mask);
    int64_t wanted = tp_mask_count(truths, n);
    if (wanted > from->numel) return tp_raise_fault((int)fault, from->numel, 0, wanted, "");
    char *to = tp_data(out);
    const char *elements = tp_data(from);
    for (int64_t i = 0, end; i < n; i = end) {
        if (i && tp_host_look() < 0) return -1;
        end = part_end(i, n);
        k += tp_mask_unpack(to + i * size, elements + k * size, from->numel - k, truths + i, end - i, size);
    }
    return 0;
}

/* The last of `columns` holds flat places in order; those of a row, of the mask's last dimension, are split together.
 */
static int split_places(int64_t *columns, int64_t count, const tp_tensor *mask) {
    int last = mask->ndim - 1;
    int64_t length = mask->sizes[last], *flat = columns + last * count;
    for (int64_t k = 0, end, rows = 0; k < count; k = end) {
        if (tp_ends_at(rows++)) return -1;
        int64_t row = flat[k] / length, begin = row * length;
        for (end = k; end < count && flat[end] - begin < length; end++) flat[end] -= begin;
        for (int d = last - 1; d >= 0; row /= mask->sizes[d--])
            for (int64_t i = k, at = d ? row % mask->sizes[d] : row; i < end; i++) columns[d * count + i] = at;
    }
    return 0;
}

/* The flat places of the mask's true bytes, then each dimension's part of them; the last column holds the flat ones. */
static int places_into(int64_t *columns, int64_t count, const tp_tensor *mask) {
    int last = mask->ndim - 1;
    int64_t *flat = columns + last * count, k = 0;
    for (int64_t i = 0, end; i < mask->numel; i = end) {
        if (i && tp_host_look() < 0) return -1;
        end = part_end(i, mask->numel);
        k += tp_mask_places(flat + k, count - k, tp_data(mask), i, end);
    }
    return last > 0 ? split_places(columns, count, mask) : 0;
}

tp_tensor *nonzero_cpu(tp_tensor *mask) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel);
    tp_autoref *out = tp_new_empty_strided(TP_INTS(n, mask->ndim), TP_INTS(1, n > 0 ? n : 1), TP_INT64, TP_CPU);
    if (!out || mask->ndim == 0 || n == 0) return tp_take(out);
    return places_into(tp_data(out), n, mask) == 0 ? tp_take(out) : NULL;
}
