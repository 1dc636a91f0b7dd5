/* sort.c: orders along a dimension: sort, argsort, searchsorted.
 *
 * A line is sorted by 64-bit keys that have the order of its elements (NaN is greater than all, -0 equals 0): stably,
 * by insertion or by radix. A descending sort complements the keys, so equal elements keep their order there too. */
#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/gather.h"
#include "cpu/kernels.h"
#include "iter/iter.h"
#include "native/device_kernels.h"
#include "native/order.h"

#include <string.h>

/* Both halves of a pass over the entries, some at a time so that a signal is heard. */
#define PER_LOOK ((int64_t)1 << 20)
static int count_bytes(const tp_entry *from, int64_t n, int shift, int64_t *count) {
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK;
        for (int64_t i = begin; i < end; i++) count[(from[i].key >> shift & 255) + 1]++;
        if (end < n && tp_host_look() < 0) return -1;
    }
    return 0;
}
static int spread_entries(tp_entry *to, const tp_entry *from, int64_t n, int shift, int64_t *count) {
    for (int64_t begin = 0; begin < n; begin += PER_LOOK) {
        int64_t end = n - begin < PER_LOOK ? n : begin + PER_LOOK;
        for (int64_t i = begin; i < end; i++) to[count[from[i].key >> shift & 255]++] = from[i];
        if (end < n && tp_host_look() < 0) return -1;
    }
    return 0;
}

int tp_sort_entries(tp_entry *e, tp_entry *spare, int64_t n) {
    if (n <= 32) {
        for (int64_t i = 1; i < n; i++) {
            tp_entry x = e[i];
            int64_t k = i;
            for (; k > 0 && e[k - 1].key > x.key; k--) e[k] = e[k - 1];
            e[k] = x;
        }
        return 0;
    }
    tp_entry *from = e, *to = spare;
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t count[257] = {0};
        if (count_bytes(from, n, shift, count) < 0) return -1;
        if (count[(from[0].key >> shift & 255) + 1] == n) continue;
        for (int k = 0; k < 256; k++) count[k + 1] += count[k];
        if (spread_entries(to, from, n, shift, count) < 0) return -1;
        tp_entry *t = from;
        from = to;
        to = t;
    }
    if (from != e) memcpy(e, from, (size_t)n * sizeof *e);
    return 0;
}

tp_tensor *tp_comparable(const char *op, tp_tensor *self, int64_t dim) {
    if (tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "%s: not implemented for complex tensors (dtype %s)", op,
                            tp_dtype_names[self->dtype]);
    tp_autoref *moved = self->ndim > 1 ? tp_transpose_int(self, dim, -1) : tp_retain(self);
    tp_autoref *wide =
        moved ? tp_to_dtype(moved, tp_compute_dtype((tp_dtype)self->dtype), false, false, TP_NO_FORMAT) : NULL;
    return wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
}
void tp_make_keys(uint64_t *keys, const tp_tensor *t, int64_t first, int64_t n, bool descending) {
    const char *from = (const char *)tp_data(t) + first * tp_itemsize((tp_dtype)t->dtype);
    tp_cpu.order->keys[t->dtype](from, n, descending ? UINT64_MAX : 0, keys);
}
void tp_make_entries(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, bool descending) {
    uint64_t keys[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        tp_make_keys(keys, t, first + i, m, descending);
        for (int64_t k = 0; k < m; k++) e[i + k] = (tp_entry){keys[k], i + k};
    }
}

typedef struct {
    const tp_tensor *keys;
    int64_t n, *out;
    bool descending;
} sort_run;

static void sort_lines(int64_t begin, int64_t end, void *context) {
    const sort_run *r = context;
    size_t bytes = (size_t)r->n * 2 * sizeof(tp_entry);
    tp_entry *e = tp_alloc(bytes);
    for (int64_t line = begin; e && line < end; line++) {
        tp_make_entries(e, r->keys, line * r->n, r->n, r->descending);
        if (tp_sort_entries(e, e + r->n, r->n) < 0) break;
        for (int64_t i = 0; i < r->n; i++) r->out[line * r->n + i] = e[i].index;
    }
    tp_free(e, bytes);
}

/* ---- sort ---- */

static int order_lines(const tp_tensor *keys, int64_t n, bool descending, tp_tensor *order) {
    if (tp_elsewhere(keys)) {
        const tp_device_kernels *k = tp_device_kernels_of(keys->device);
        tp_order_spec all = {TP_ORDER_FIRST, n, descending, false};
        return k ? k->order(&all, keys, n, order) : -1;
    }
    sort_run r = {keys, n, tp_data(order), descending};
    void *host = keys->numel >= TP_GRAIN ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(keys->numel / n, TP_GRAIN / 16 / n + 1, sort_lines, &r);
    tp_host_lock_acquire(host);
    return status;
}
/* sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices) */
tp_tensor2 sort_stable_cpu(tp_tensor *self, tp_opt_bool stable, int64_t dim, bool descending) {
    tp_tensor2 failed = {{NULL, NULL}};
    (void)stable;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *values = d < 0 ? NULL : tp_new_empty_like(self, (tp_dtype)self->dtype);
    tp_autoref *keys = values ? tp_comparable("sort", self, d) : NULL;
    tp_autoref *indices =
        keys ? tp_new_empty_strided(tp_sizes(values), tp_strides(values), TP_INT64, self->device) : NULL;
    bool last = d == self->ndim - 1 || self->ndim == 0;
    tp_autoref *order = !indices                            ? NULL
                        : last && tp_is_contiguous(indices) ? tp_retain(indices)
                                                            : tp_new_empty(tp_sizes(keys), TP_INT64, self->device);
    tp_autoref *there = order && self->ndim > 1 ? tp_transpose_int(order, d, -1) : tp_retain(order);
    if (!there) return failed;
    if (self->numel && order_lines(keys, tp_size_at(tp_sizes(self), d), descending, order) < 0) return failed;
    if (order != indices && tp_copy_data(indices, there) < 0) return failed;
    if (tp_run_places(TP_PLACES_GET, self, d, indices, values, NULL) < 0) return failed;
    return (tp_tensor2){{tp_take(values), tp_take(indices)}};
}
tp_tensor2 sort_stable_meta(tp_tensor *self, tp_opt_bool stable, int64_t dim, bool descending) {
    tp_tensor2 failed = {{NULL, NULL}};
    (void)stable, (void)descending;
    tp_autoref *values = tp_wrap_dim(dim, self->ndim) < 0 ? NULL : tp_new_empty_like(self, (tp_dtype)self->dtype);
    tp_autoref *indices = values ? tp_new_empty_like(self, TP_INT64) : NULL;
    return indices ? (tp_tensor2){{tp_take(values), tp_take(indices)}} : failed;
}
tp_tensor2 sort_composite(tp_tensor *self, int64_t dim, bool descending) {
    return tp_sort_stable(self, 0, dim, descending);
}
static tp_tensor *second_of(tp_tensor2 both) {
    tp_release(both.v[0]);
    return both.v[1];
}
tp_tensor *argsort_composite(tp_tensor *self, int64_t dim, bool descending) {
    return second_of(tp_sort_stable(self, 0, dim, descending));
}
tp_tensor *argsort_stable_composite(tp_tensor *self, bool stable, int64_t dim, bool descending) {
    return second_of(tp_sort_stable(self, stable, dim, descending));
}
tp_tensor *msort_composite(tp_tensor *self) {
    tp_tensor2 both = tp_sort_stable(self, 0, 0, false);
    tp_release(both.v[1]);
    return both.v[0];
}

/* ---- searchsorted ---- */

typedef struct {
    void (*find)(const void *sequence, int64_t n, const void *values, int64_t count, int64_t *out);
    const char *sequence, *values;
    int64_t *out, n, m, itemsize; /* n elements to a sequence, m values each; m is 0 where one sequence serves all */
} search;
static void search_part(int64_t begin, int64_t end, void *context) {
    const search *s = context;
    for (int64_t i = begin, stop; i < end; i = stop) {
        stop = s->m && (i / s->m + 1) * s->m < end ? (i / s->m + 1) * s->m : end;
        const char *sequence = s->sequence + (s->m ? i / s->m * s->n * s->itemsize : 0);
        s->find(sequence, s->n, s->values + i * s->itemsize, stop - i, s->out + i);
    }
}
/* What the values are compared in. */
static tp_dtype search_dtype(tp_dtype common) {
    if (tp_is_reduced_dtype(common)) return TP_FLOAT32;
    if (tp_is_floating_dtype(common) || common == TP_UINT64 || common == TP_INT64) return common;
    return common == TP_UINT32 ? TP_INT64 : TP_INT32;
}
/* Whether the arguments fit each other, and in *right on which side of equal values. */
static int check_search(const tp_tensor *sequence, const tp_tensor *self, const char *side, bool *right) {
    if (side && strcmp(side, "left") && strcmp(side, "right"))
        return tp_fail(TP_RuntimeError, "torch.searchsorted(): side can only be 'left' or 'right' but got %s", side);
    if (side && *right && strcmp(side, "left") == 0)
        return tp_fail(
            TP_RuntimeError,
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True");
    *right |= side && strcmp(side, "right") == 0;
    for (int d = 0; sequence->ndim != 1 && d < sequence->ndim; d++)
        if (self->ndim != sequence->ndim || (d < self->ndim - 1 && self->sizes[d] != sequence->sizes[d]))
            return tp_fail(TP_RuntimeError,
                           "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions "
                           "of boundaries tensor and input value tensor must match");
    if (sequence->ndim == 0)
        return tp_fail(TP_RuntimeError, "torch.searchsorted(): boundaries tensor should have positive dimension");
    return 0;
}
/* Into out, int64; all are contiguous, sequences and values of one dtype. `one`: all values go into one sequence. */
static int run_search(tp_tensor *sequence, tp_tensor *values, bool one, bool right, tp_tensor *out) {
    tp_dtype common = (tp_dtype)values->dtype;
    int64_t n = sequence->sizes[sequence->ndim - 1], each = one ? 0 : tp_max_int(1, values->sizes[values->ndim - 1]);
    if (n > UINT32_MAX) return tp_fail(TP_RuntimeError, "searchsorted: sequences of 2**32 elements are too long");
    if (tp_elsewhere(values)) {
        const tp_device_kernels *k = tp_device_kernels_of(values->device);
        return k ? k->search(sequence, n, values, each, right, out) : -1;
    }
    search s = {.find = (right ? tp_cpu.order->right : tp_cpu.order->left)[common],
                .sequence = tp_data(sequence),
                .values = tp_data(values),
                .out = tp_data(out),
                .n = n,
                .m = each,
                .itemsize = tp_itemsize(common)};
    return tp_parallel_for(values->numel, TP_GRAIN / 32, search_part, &s);
}
tp_tensor *searchsorted_Tensor_meta(tp_tensor *sorted_sequence, tp_tensor *self, bool out_int32, bool right,
                                    const char *side, tp_tensor *sorter TP_UNUSED) {
    if (check_search(sorted_sequence, self, side, &right) < 0) return NULL;
    return tp_new_empty(tp_sizes(self), out_int32 ? TP_INT32 : TP_INT64, sorted_sequence->device);
}
/* searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None,
 * Tensor? sorter=None) -> Tensor */
tp_tensor *searchsorted_Tensor_cpu(tp_tensor *sorted_sequence, tp_tensor *self, bool out_int32, bool right,
                                   const char *side, tp_tensor *sorter) {
    if (check_search(sorted_sequence, self, side, &right) < 0) return NULL;
    bool one = sorted_sequence->ndim == 1;
    if (sorter && (sorter->dtype != TP_INT64 || !tp_same_sizes(sorter, sorted_sequence)))
        return tp_fail_null(TP_RuntimeError,
                            "searchsorted: sorter must be int64 and of the same size as sorted_sequence");
    tp_autoref *sequence = sorter ? tp_gather(sorted_sequence, -1, sorter, false) : tp_retain(sorted_sequence);
    tp_dtype common = sequence ? tp_promote_dtypes((tp_dtype)sequence->dtype, (tp_dtype)self->dtype) : TP_NO_DTYPE;
    if (common == TP_NO_DTYPE) return NULL;
    if (tp_is_complex_dtype(common))
        return tp_fail_null(TP_RuntimeError, "searchsorted: not implemented for complex tensors (dtype %s)",
                            tp_dtype_names[common]);
    common = search_dtype(common);
    tp_autoref *a = tp_to_dtype(sequence, common, false, false, TP_NO_FORMAT),
               *b = a ? tp_to_dtype(self, common, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *sorted = b ? tp_contiguous(a, TP_CONTIGUOUS_FORMAT) : NULL,
               *wanted = sorted ? tp_contiguous(b, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *out = wanted ? tp_new_empty(tp_sizes(self), TP_INT64, wanted->device) : NULL;
    if (!out || run_search(sorted, wanted, one, right, out) < 0) return NULL;
    return out_int32 ? tp_to_dtype(out, TP_INT32, false, false, TP_NO_FORMAT) : tp_take(out);
}
tp_tensor *searchsorted_Scalar_composite(tp_tensor *sorted_sequence, const tp_scalar *self, bool out_int32, bool right,
                                         const char *side, tp_tensor *sorter) {
    tp_autoref *number = tp_new_wrapped_number(self),
               *value = number ? tp_to_device(number, sorted_sequence->device, TP_NO_DTYPE, false, false, TP_NO_FORMAT)
                               : NULL;
    return value ? tp_searchsorted_Tensor(sorted_sequence, value, out_int32, right, side, sorter) : NULL;
}
tp_tensor *bucketize_Tensor_composite(tp_tensor *self, tp_tensor *boundaries, bool out_int32, bool right) {
    if (boundaries->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "boundaries tensor must be 1 dimension, but got dim(%d)",
                            boundaries->ndim);
    return tp_searchsorted_Tensor(boundaries, self, out_int32, right, NULL, NULL);
}
tp_tensor *bucketize_Scalar_composite(const tp_scalar *self, tp_tensor *boundaries, bool out_int32, bool right) {
    return searchsorted_Scalar_composite(boundaries, self, out_int32, right, NULL, NULL);
}
