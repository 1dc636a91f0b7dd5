/* sort.c: orders along a dimension: sort, topk, kthvalue, unique, searchsorted.
 *
 * A line is sorted by 64-bit keys that have the order of its elements (NaN is greater than all, -0 equals 0): stably,
 * by insertion or by radix. A descending sort complements the keys, so equal elements keep their order there too. */
#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/gather.h"
#include "iter/iter.h"

#include <string.h>

typedef struct {
    uint64_t key;
    int64_t index;
} entry;

#define NAN_KEY UINT64_MAX
#define SIGN (UINT64_C(1) << 63)

static uint64_t key_of_double(double v) {
    if (v != v) return NAN_KEY;
    if (v == 0) return SIGN;
    uint64_t bits;
    memcpy(&bits, &v, 8);
    return bits & SIGN ? ~bits : bits | SIGN;
}
/* float and double: 16-bit floats come as float32, integers and bool as int64 (uint64 with its sign bit flipped). */
static uint64_t key_of_int(int64_t v) { return (uint64_t)v ^ SIGN; }

static void sort_entries(entry *e, entry *spare, int64_t n) {
    if (n <= 32) {
        for (int64_t i = 1; i < n; i++) {
            entry x = e[i];
            int64_t k = i;
            for (; k > 0 && e[k - 1].key > x.key; k--) e[k] = e[k - 1];
            e[k] = x;
        }
        return;
    }
    entry *from = e, *to = spare;
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t count[257] = {0};
        for (int64_t i = 0; i < n; i++) count[(from[i].key >> shift & 255) + 1]++;
        if (count[(from[0].key >> shift & 255) + 1] == n) continue;
        for (int k = 0; k < 256; k++) count[k + 1] += count[k];
        for (int64_t i = 0; i < n; i++) to[count[from[i].key >> shift & 255]++] = from[i];
        entry *t = from;
        from = to;
        to = t;
    }
    if (from != e) memcpy(e, from, (size_t)n * sizeof *e);
}

/* The dtype that keys are made of: float64 or int64; the elements as such, contiguous, with dim last. */
static tp_tensor *comparable(const char *op, tp_tensor *self, int64_t dim) {
    if (tp_is_complex(self))
        return tp_fail_null(TP_RuntimeError, "%s: not implemented for complex tensors (dtype %s)", op,
                            tp_dtype_names[self->dtype]);
    tp_autoref *moved = self->ndim > 1 ? tp_transpose_int(self, dim, -1) : tp_retain(self);
    tp_autoref *wide =
        moved ? tp_to_dtype(moved, tp_is_floating(self) ? TP_FLOAT64 : TP_INT64, false, false, TP_NO_FORMAT) : NULL;
    return wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
}
static void make_entries(entry *e, const tp_tensor *keys, int64_t first, int64_t n, bool descending, bool is_uint64) {
    uint64_t flip = descending ? UINT64_MAX : 0;
    if (keys->dtype == TP_FLOAT64) {
        const double *v = (const double *)tp_data(keys) + first;
        for (int64_t i = 0; i < n; i++) e[i] = (entry){key_of_double(v[i]) ^ flip, i};
    } else {
        const int64_t *v = (const int64_t *)tp_data(keys) + first;
        for (int64_t i = 0; i < n; i++) e[i] = (entry){(is_uint64 ? (uint64_t)v[i] : key_of_int(v[i])) ^ flip, i};
    }
}

typedef struct {
    const tp_tensor *keys;
    int64_t n, *out;
    bool descending, is_uint64;
} sort_run;

static void sort_lines(int64_t begin, int64_t end, void *context) {
    const sort_run *r = context;
    size_t bytes = (size_t)r->n * 2 * sizeof(entry);
    entry *e = tp_alloc(bytes);
    for (int64_t line = begin; e && line < end; line++) {
        make_entries(e, r->keys, line * r->n, r->n, r->descending, r->is_uint64);
        sort_entries(e, e + r->n, r->n);
        for (int64_t i = 0; i < r->n; i++) r->out[line * r->n + i] = e[i].index;
    }
    tp_free(e, bytes);
}

/* ---- sort ---- */

/* sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices) */
tp_tensor2 sort_stable_cpu(tp_tensor *self, tp_opt_bool stable, int64_t dim, bool descending) {
    tp_tensor2 failed = {{NULL, NULL}};
    (void)stable;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoref *values = d < 0 ? NULL : tp_new_empty_like(self, (tp_dtype)self->dtype);
    tp_autoref *keys = values ? comparable("sort", self, d) : NULL;
    tp_autoref *order = keys ? tp_new_empty(tp_sizes(keys), TP_INT64, TP_CPU) : NULL;
    tp_autoref *indices = order ? tp_new_empty_strided(tp_sizes(values), tp_strides(values), TP_INT64, TP_CPU) : NULL;
    tp_autoref *there = indices && self->ndim > 1 ? tp_transpose_int(order, d, -1) : tp_retain(order);
    if (!indices || !there) return failed;
    int64_t n = tp_size_at(tp_sizes(self), d);
    sort_run r = {keys, n, tp_data(order), descending, self->dtype == TP_UINT64};
    if (self->numel && tp_parallel_for(self->numel / n, TP_GRAIN / 16 / n + 1, sort_lines, &r) < 0) return failed;
    if (tp_copy_data(indices, there) < 0 || tp_places_run(TP_PLACES_GET, self, d, indices, values) < 0) return failed;
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

/* ---- topk, kthvalue ---- */

/* The indices of `n` places from `first` on of the sorted order; the values are gathered, which autograd sees. */
static tp_tensor2 part_of_order(tp_tensor *self, int64_t d, bool descending, int64_t first, int64_t n) {
    tp_tensor2 failed = {{NULL, NULL}};
    tp_autoref *plain = tp_detach(self);
    tp_autoref *order = plain ? argsort_stable_composite(plain, true, d, descending) : NULL;
    tp_autoref *part = !order       ? NULL
                       : self->ndim ? tp_slice_Tensor(order, d, TP_SOME_INT(first), TP_SOME_INT(first + n), 1)
                                    : tp_retain(order);
    tp_autoref *indices = part ? tp_clone(part, TP_CONTIGUOUS_FORMAT) : NULL,
               *values = indices ? tp_gather(self, d, indices, false) : NULL;
    return values ? (tp_tensor2){{tp_take(values), tp_take(indices)}} : failed;
}
/* topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices) */
tp_tensor2 topk_composite(tp_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted) {
    tp_tensor2 failed = {{NULL, NULL}};
    (void)sorted;
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return failed;
    if (k < 0 || k > tp_size_at(tp_sizes(self), d)) {
        tp_fail(TP_RuntimeError, "selected index k out of range");
        return failed;
    }
    return part_of_order(self, d, largest, 0, k);
}
/* kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 kthvalue_composite(tp_tensor *self, int64_t k, int64_t dim, bool keepdim) {
    tp_tensor2 failed = {{NULL, NULL}};
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return failed;
    if (k < 1 || k > tp_size_at(tp_sizes(self), d)) {
        tp_fail(TP_RuntimeError, "kthvalue(): selected number k out of range for dimension %lld", (long long)d);
        return failed;
    }
    tp_tensor2 both = part_of_order(self, d, false, k - 1, 1);
    if (!both.v[0] || keepdim || self->ndim == 0) return both;
    tp_autoref *values = both.v[0], *indices = both.v[1];
    tp_tensor2 out = {{tp_squeeze_dim(values, d), tp_squeeze_dim(indices, d)}};
    return out;
}

/* ---- unique ---- */

/* _unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor,
 * Tensor) */
tp_tensor3 _unique2_cpu(tp_tensor *self, bool sorted, bool return_inverse, bool return_counts) {
    tp_tensor3 failed = {{NULL, NULL, NULL}};
    (void)sorted;
    tp_autoref *flat = tp_reshape(self, TP_INTS(-1)), *line = flat ? tp_contiguous(flat, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *keys = line ? comparable("unique", line, 0) : NULL;
    int64_t n = self->numel, groups = 0;
    tp_autoref *inverse = keys ? tp_new_empty(return_inverse ? tp_sizes(self) : TP_INTS(0), TP_INT64, TP_CPU) : NULL;
    tp_autoref *firsts = inverse ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL,
               *counts = firsts ? tp_new_empty(TP_INTS(n), TP_INT64, TP_CPU) : NULL;
    size_t bytes = (size_t)n * 2 * sizeof(entry) + 1;
    entry *e = counts ? tp_alloc(bytes) : NULL;
    if (!e) return failed;
    make_entries(e, keys, 0, n, false, self->dtype == TP_UINT64);
    sort_entries(e, e + n, n);
    int64_t *first = tp_data(firsts), *count = tp_data(counts), *place = tp_data(inverse);
    for (int64_t i = 0; i < n; i++) {
        bool same = i > 0 && e[i].key == e[i - 1].key && !(tp_is_floating(self) && e[i].key == NAN_KEY);
        if (!same) first[groups] = e[i].index, count[groups++] = 0;
        count[groups - 1]++;
        if (return_inverse) place[e[i].index] = groups - 1;
    }
    tp_free(e, bytes);
    tp_autoref *chosen = tp_slice_Tensor(firsts, 0, TP_SOME_INT(0), TP_SOME_INT(groups), 1);
    tp_autoref *values = chosen ? tp_index_select(line, 0, chosen) : NULL;
    tp_autoref *used =
        values ? tp_slice_Tensor(counts, 0, TP_SOME_INT(0), TP_SOME_INT(return_counts ? groups : 0), 1) : NULL;
    tp_autoref *own = used ? tp_clone(used, TP_CONTIGUOUS_FORMAT) : NULL;
    return own ? (tp_tensor3){{tp_take(values), tp_take(inverse), tp_take(own)}} : failed;
}

/* ---- searchsorted ---- */

static int64_t lower(const tp_tensor *keys, int64_t first, int64_t n, uint64_t key, bool right, bool is_uint64) {
    int64_t low = 0, high = n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        entry e;
        make_entries(&e, keys, first + middle, 1, false, is_uint64);
        if (right ? e.key <= key : e.key < key) low = middle + 1;
        else high = middle;
    }
    return low;
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
    tp_autoref *sequence = sorter ? tp_gather(sorted_sequence, -1, sorter, false) : tp_retain(sorted_sequence);
    tp_dtype common = sequence ? tp_promote_dtypes((tp_dtype)sequence->dtype, (tp_dtype)self->dtype) : TP_NO_DTYPE;
    if (common == TP_NO_DTYPE) return NULL;
    tp_autoref *a = tp_to_dtype(sequence, common, false, false, TP_NO_FORMAT),
               *b = tp_to_dtype(self, common, false, false, TP_NO_FORMAT);
    tp_autoref *keys = a && b ? comparable("searchsorted", a, a->ndim - 1) : NULL;
    tp_autoref *wanted = keys ? comparable("searchsorted", b, tp_max_int(0, b->ndim - 1)) : NULL;
    tp_autoref *out = wanted ? tp_new_empty(tp_sizes(self), TP_INT64, TP_CPU) : NULL;
    if (!out) return NULL;
    int64_t n = sequence->sizes[sequence->ndim - 1],
            m = one ? tp_max_int(1, self->numel) : tp_max_int(1, self->sizes[self->ndim - 1]);
    for (int64_t i = 0; i < self->numel; i++) {
        entry e;
        make_entries(&e, wanted, i, 1, false, common == TP_UINT64);
        ((int64_t *)tp_data(out))[i] = lower(keys, one ? 0 : i / m * n, n, e.key, right, common == TP_UINT64);
    }
    return out_int32 ? tp_to_dtype(out, TP_INT32, false, false, TP_NO_FORMAT) : tp_take(out);
}
tp_tensor *searchsorted_Scalar_composite(tp_tensor *sorted_sequence, const tp_scalar *self, bool out_int32, bool right,
                                         const char *side, tp_tensor *sorter) {
    tp_autoref *value = tp_new_wrapped_number(self);
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
