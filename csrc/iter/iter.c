/* iter.c: making a plan: broadcasting, the order of dimensions, strides of new outputs, merging.
 *
 * The order is PyTorch's (TensorIterator::reorder_dimensions), so that a new output has the strides that PyTorch would
 * give it: the first operand with an opinion on two dimensions decides, the smaller stride is walked first. Strides are
 * compared by magnitude; a dimension in which the first operand that moves runs backwards is turned round, so that
 * memory is walked forward. */
#include "iter/iter.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

/* ---- the broadcast shape ---- */

static inline bool has_sizes(const tp_tensor *t, const int64_t *sizes, int ndim) {
    int same = t->ndim == ndim ? 0 : -1;
    while (same >= 0 && same < ndim) same = t->sizes[same] == sizes[same] ? same + 1 : -1;
    return same == ndim;
}

int tp_iter_broadcast(const tp_operand *operands, int n, int64_t *shape) {
    int ndim = 0;
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = operands[i].tensor;
        if (!t || has_sizes(t, shape, ndim)) continue;
        ndim = tp_broadcast_sizes((tp_ints){shape, ndim}, tp_sizes(t), shape);
        if (ndim < 0) return -1;
    }
    return ndim;
}

/* Strides in bytes of a tensor as walked in `shape`, fastest dimension first: 0 where it is broadcast. */
static void broadcast_strides(const tp_tensor *t, tp_ints shape, int64_t *out) {
    int64_t itemsize = t ? tp_itemsize((tp_dtype)t->dtype) : 0;
    for (int64_t i = 0; i < shape.size; i++) {
        int64_t d = t ? t->ndim - 1 - i : -1;
        bool moves = d >= 0 && (t->sizes[d] != 1 || shape.data[shape.size - 1 - i] == 1);
        /* The stride of a dimension of size 1 may be anything; it is never added. */
        out[i] = moves ? (int64_t)((uint64_t)t->strides[d] * (uint64_t)itemsize) : 0;
    }
}

/* ---- the order of dimensions ---- */

/* 1 if dimension a must be walked after b, -1 before, 0 without an opinion. Dimensions are numbered from the last. */
static int compare_dims(const tp_iter *it, int a, int b) {
    for (int i = 0; i < it->noperands; i++) {
        int64_t x = llabs(it->strides[i][a]), y = llabs(it->strides[i][b]);
        if (x == 0 || y == 0) continue;
        if (x != y) return x < y ? -1 : 1;
        if (it->shape[a] > it->shape[b]) return 1;
    }
    return 0;
}

/* Insertion sort, since a dimension without an opinion on its neighbour may still have one on the next. */
static bool order_dims(const tp_iter *it, int *order) {
    bool moved = false;
    for (int i = 0; i < it->ndim; i++) order[i] = i;
    for (int i = 1; i < it->ndim; i++) {
        int moving = i;
        for (int j = i - 1; j >= 0; j--) {
            int c = compare_dims(it, order[j], order[moving]);
            if (c < 0) break;
            if (c == 0) continue;
            int swap = order[j];
            order[j] = order[moving];
            order[moving] = swap;
            moving = j;
            moved = true;
        }
    }
    return moved;
}

/* ---- strides of a new output ---- */

/* Where all inputs are tensors of one shape, laid out alike and without gaps, the output is laid out as they are, to
 * the strides of dimensions of size 1. */
static const tp_tensor *common_layout(const tp_operand *inputs, int n) {
    const tp_tensor *first = inputs[0].tensor;
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t || !tp_same_sizes(t, first) || !tp_is_dense(t)) return NULL;
        if (memcmp(t->strides, first->strides, sizeof(int64_t) * t->ndim) != 0) return NULL;
    }
    return first;
}

static bool all_in_format(const tp_operand *inputs, int n, tp_memory_format format) {
    for (int i = 0; i < n; i++) {
        const tp_tensor *t = inputs[i].tensor;
        if (!t || !tp_same_sizes(t, inputs[0].tensor) || !tp_is_contiguous_in(t, format)) return false;
    }
    return true;
}

bool tp_iter_output_strides(const tp_operand *inputs, int n, tp_ints shape, int64_t *strides) {
    if (all_in_format(inputs, n, TP_CONTIGUOUS_FORMAT)) return tp_contiguous_strides(shape, strides), true;
    if (shape.size == 4 && all_in_format(inputs, n, TP_CHANNELS_LAST)) {
        tp_strides_for_format(shape, TP_CHANNELS_LAST, strides);
        return false;
    }
    const tp_tensor *alike = common_layout(inputs, n);
    if (alike) {
        memcpy(strides, alike->strides, sizeof(int64_t) * (size_t)shape.size);
        return false;
    }
    tp_iter it;
    it.noperands = n;
    it.ndim = (int)shape.size;
    for (int64_t i = 0; i < shape.size; i++) it.shape[i] = shape.data[shape.size - 1 - i];
    for (int i = 0; i < n; i++) broadcast_strides(inputs[i].tensor, shape, it.strides[i]);
    int order[TP_MAX_DIMS];
    if (!order_dims(&it, order)) return tp_contiguous_strides(shape, strides), true;
    int64_t stride = 1;
    for (int i = 0; i < it.ndim; i++) {
        strides[it.ndim - 1 - order[i]] = stride;
        stride *= it.shape[order[i]];
    }
    return false;
}

/* ---- the plan ---- */

static void apply_order(tp_iter *it, const int *order) {
    int64_t old[TP_MAX_DIMS];
    size_t bytes = sizeof(int64_t) * (size_t)it->ndim;
    memcpy(old, it->shape, bytes);
    for (int d = 0; d < it->ndim; d++) it->shape[d] = old[order[d]];
    for (int i = 0; i < it->noperands; i++) {
        memcpy(old, it->strides[i], bytes);
        for (int d = 0; d < it->ndim; d++) it->strides[i][d] = old[order[d]];
    }
}

static bool runs_backwards(const tp_iter *it, int d) {
    for (int i = 0; i < it->noperands; i++)
        if (it->strides[i][d]) return it->strides[i][d] < 0;
    return false;
}

static void turn_forward(tp_iter *it) {
    for (int d = 0; d < it->ndim; d++) {
        if (it->shape[d] < 2 || !runs_backwards(it, d)) continue;
        for (int i = 0; i < it->noperands; i++) {
            if (it->strides[i][d] == 0) continue;
            it->data[i] += (it->shape[d] - 1) * it->strides[i][d];
            it->strides[i][d] = -it->strides[i][d];
        }
    }
}

static bool can_merge(const tp_iter *it, int low, int high) {
    for (int i = 0; i < it->noperands; i++)
        if (it->strides[i][low] * it->shape[low] != it->strides[i][high]) return false;
    return true;
}

static void move_dim(tp_iter *it, int from, int to) {
    it->shape[to] = it->shape[from];
    for (int i = 0; i < it->noperands; i++) it->strides[i][to] = it->strides[i][from];
}

/* Drops dimensions of size 1 and joins neighbours that every operand walks as one. */
static void merge_dims(tp_iter *it) {
    int last = -1;
    for (int d = 0; d < it->ndim; d++) {
        if (it->shape[d] == 1) continue;
        if (last >= 0 && can_merge(it, last, d)) it->shape[last] *= it->shape[d];
        else move_dim(it, d, ++last);
    }
    it->ndim = last + 1;
    if (it->ndim) return;
    it->ndim = 1;
    it->shape[0] = 1;
    for (int i = 0; i < it->noperands; i++) it->strides[i][0] = 0;
}

static void swap_dims(tp_iter *it, int a, int b) {
    int64_t keep = it->shape[a];
    it->shape[a] = it->shape[b];
    it->shape[b] = keep;
    for (int i = 0; i < it->noperands; i++) {
        keep = it->strides[i][a];
        it->strides[i][a] = it->strides[i][b];
        it->strides[i][b] = keep;
    }
}

#define LINE 64          /* bytes */
#define MOST_ELEMENTS 32 /* of a line that a tile has to use */

/* A dimension that some operand walks from element to element, while it jumps in the first, comes second: there
 * tp_iter_run finds it and walks both in tiles. Where one of them is short, tiles would not use up the cache lines that
 * they touch, and memory is walked as the first operand lies. */
static void bring_across_second(tp_iter *it) {
    if (it->ndim < 3) return;
    for (int i = 0; i < it->noperands; i++) {
        int64_t itemsize = it->dtype[i] == TP_NO_DTYPE ? 0 : tp_itemsize(it->dtype[i]);
        if (llabs(it->strides[i][0]) <= itemsize) continue;
        int64_t least = itemsize ? tp_at_most(LINE / itemsize, MOST_ELEMENTS) : 0;
        for (int d = 2; d < it->ndim && it->shape[0] >= least; d++)
            if (llabs(it->strides[i][d]) == itemsize && it->shape[d] >= least) swap_dims(it, 1, d);
    }
}

int tp_iter_plan(tp_iter *it, tp_tensor *const *tensors, int noutputs, int n, tp_ints shape) {
    TP_ASSERT(n <= TP_MAX_OPERANDS);
    it->noperands = n;
    it->noutputs = noutputs;
    it->ndim = (int)shape.size;
    it->numel = tp_checked_numel(shape);
    if (it->numel < 0) return -1;
    for (int64_t i = 0; i < shape.size; i++) it->shape[i] = shape.data[shape.size - 1 - i];
    for (int i = 0; i < n; i++) {
        broadcast_strides(tensors[i], shape, it->strides[i]);
        it->data[i] = tensors[i] ? tp_data(tensors[i]) : NULL;
        it->dtype[i] = it->loop_dtype[i] = tensors[i] ? (tp_dtype)tensors[i]->dtype : TP_NO_DTYPE;
    }
    if (it->numel == 0) {
        it->ndim = 1;
        it->shape[0] = 0;
        return 0;
    }
    int order[TP_MAX_DIMS];
    if (order_dims(it, order)) apply_order(it, order);
    turn_forward(it);
    merge_dims(it);
    bring_across_second(it);
    return 0;
}

void tp_iter_flat(tp_iter *it, int noutputs, int n, int64_t numel) {
    it->noperands = n;
    it->noutputs = noutputs;
    it->ndim = 1;
    it->numel = it->shape[0] = numel;
}
