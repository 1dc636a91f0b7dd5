/* overlap.c: whether two tensors share memory.
 *
 * PyTorch's rules (aten/src/ATen/MemoryOverlap.cpp) where both tensors are dense. Where one is not, PyTorch gives up
 * and computes; here the strides decide what they can, and what stays open is TP_OVERLAP_UNKNOWN, for which the drivers
 * copy the input first. */
#include "iter/iter.h"

#include <stdlib.h>

bool tp_overlaps_itself(const tp_tensor *t) {
    if (tp_is_contiguous(t)) return false;
    for (int i = 0; i < t->ndim; i++)
        if (t->sizes[i] > 1 && t->strides[i] == 0) return true;
    return false;
}

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static int64_t gcd_of_strides(const tp_tensor *t, int64_t g) {
    for (int i = 0; i < t->ndim; i++)
        if (t->sizes[i] > 1) g = gcd(llabs(t->strides[i]) * tp_itemsize((tp_dtype)t->dtype), g);
    return g;
}

/* Elements lie at multiples of g from their tensor's first, so two that touch are less than an element apart modulo g.
 */
static bool interleaved(const tp_tensor *a, const tp_tensor *b) {
    int64_t g = gcd_of_strides(b, gcd_of_strides(a, 0));
    if (g == 0) return false;
    int64_t distance = ((b->byte_offset - a->byte_offset) % g + g) % g;
    return distance >= tp_itemsize((tp_dtype)a->dtype) && g - distance >= tp_itemsize((tp_dtype)b->dtype);
}

static bool same_geometry(const tp_tensor *a, const tp_tensor *b) {
    if (a->byte_offset != b->byte_offset || a->dtype != b->dtype) return false;
    if (a->numel == 1 && b->numel == 1) return true; /* however many dimensions the one element has */
    if (!tp_same_sizes(a, b)) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->sizes[i] > 1 && a->strides[i] != b->strides[i]) return false;
    return true;
}

/* The bytes [begin, end) of the storage that t reaches; its geometry fits the storage, so nothing overflows. */
static void byte_range(const tp_tensor *t, int64_t *begin, int64_t *end) {
    int64_t low, high, itemsize = tp_itemsize((tp_dtype)t->dtype);
    if (tp_strided_extent(tp_sizes(t), tp_strides(t), &low, &high) < 0) low = high = 0;
    *begin = t->byte_offset + low * itemsize;
    *end = t->byte_offset + (high + 1) * itemsize;
}

tp_overlap tp_overlap_of(const tp_tensor *a, const tp_tensor *b) {
    if (a == b) return TP_OVERLAP_EXACT;
    if (a->numel == 0 || b->numel == 0) return TP_OVERLAP_NONE;
    /* Storages made from outside memory may lie in one another; equal data pointers are the case that occurs. */
    if (a->storage != b->storage && (!a->storage->data || a->storage->data != b->storage->data)) return TP_OVERLAP_NONE;
    if (same_geometry(a, b)) return TP_OVERLAP_EXACT;
    int64_t a_begin, a_end, b_begin, b_end;
    byte_range(a, &a_begin, &a_end);
    byte_range(b, &b_begin, &b_end);
    if (a_begin >= b_end || b_begin >= a_end) return TP_OVERLAP_NONE;
    if (tp_is_dense(a) && tp_is_dense(b)) return TP_OVERLAP_PARTIAL;
    return interleaved(a, b) ? TP_OVERLAP_NONE : TP_OVERLAP_UNKNOWN;
}

#define SHARED "some elements of the input tensor and the written-to tensor refer to a single memory location"
static int fail_overlap(const char *what) {
    return tp_fail(TP_RuntimeError,
                   "unsupported operation: %s. Please clone() the tensor before performing the operation.", what);
}

int tp_check_internal_overlap(const tp_tensor *output) {
    if (!tp_overlaps_itself(output)) return 0;
    return fail_overlap("more than one element of the written-to tensor refers to a single memory location");
}

int tp_check_no_overlap(const tp_tensor *written, const tp_tensor *read) {
    tp_overlap how = tp_overlap_of(written, read);
    if (how == TP_OVERLAP_NONE || how == TP_OVERLAP_UNKNOWN || read->numel == 0) return 0;
    return fail_overlap(SHARED);
}

int tp_iter_check_overlap(tp_tensor *const *tensors, int noutputs, int n) {
    for (int i = 0; i < noutputs; i++) {
        if (tp_check_internal_overlap(tensors[i]) < 0) return -1;
        for (int j = noutputs; j < n; j++)
            if (tensors[j] && tp_overlap_of(tensors[i], tensors[j]) == TP_OVERLAP_PARTIAL) return fail_overlap(SHARED);
    }
    return 0;
}
