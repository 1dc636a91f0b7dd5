/* order.c: elements at a place of the order along a dimension: topk, kthvalue, median, mode, quantile.
 *
 * Each line becomes entries (native/order.h), from which an operator picks indices; the values are what lies there. Of
 * equal elements the one with the lowest index is picked, for any number of threads. */
#include "native/order.h"

#include "NativeFunctions.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "cpu/gather.h"
#include "cpu/kernels.h"
#include "iter/iter.h"

#include <string.h>

static const tp_tensor2 failed = {{NULL, NULL}};

/* ---- selection ---- */

static bool before(tp_entry a, tp_entry b) { return a.key < b.key || (a.key == b.key && a.index < b.index); }
static void swap(tp_entry *a, tp_entry *b) {
    tp_entry t = *a;
    *a = *b;
    *b = t;
}
/* Quickselect with the median of three as the pivot; what is left after many rounds is sorted by heap instead. */
static void sift(tp_entry *e, int64_t n, int64_t i) {
    for (int64_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(e[c], e[c + 1])) c++;
        if (!before(e[i], e[c])) return;
        swap(&e[i], &e[c]);
    }
}
static void heap_sort(tp_entry *e, int64_t n) {
    for (int64_t i = n / 2 - 1; i >= 0; i--) sift(e, n, i);
    for (int64_t end = n - 1; end > 0; end--) {
        swap(&e[0], &e[end]);
        sift(e, end, 0);
    }
}
tp_entry tp_select_entry(tp_entry *e, int64_t n, int64_t k) {
    int64_t low = 0, high = n - 1;
    for (int rounds = 0; high - low > 16 && rounds < 64; rounds++) {
        int64_t middle = low + (high - low) / 2;
        if (before(e[middle], e[low])) swap(&e[middle], &e[low]);
        if (before(e[high], e[low])) swap(&e[high], &e[low]);
        if (before(e[high], e[middle])) swap(&e[high], &e[middle]);
        tp_entry pivot = e[middle];
        int64_t i = low, j = high;
        while (i <= j) {
            while (before(e[i], pivot)) i++;
            while (before(pivot, e[j])) j--;
            if (i <= j) swap(&e[i++], &e[j--]);
        }
        if (k <= j) high = j;
        else if (k >= i) low = i;
        else return e[k];
        if (tp_unlikely(high - low > 1 << 20) && tp_host_look() < 0) return e[k]; /* the caller's loop fails */
    }
    heap_sort(e + low, high - low + 1);
    return e[k];
}

/* ---- lines ---- */

typedef struct {
    const tp_line_op *op;
    const tp_tensor *keys;
    int64_t n, *out;
} line_run;

static void run_lines(int64_t begin, int64_t end, void *context) {
    const line_run *r = context;
    size_t bytes = (size_t)(r->op->stream ? r->op->room : r->n * 2) * sizeof(tp_entry);
    tp_entry *e = tp_alloc(bytes);
    for (int64_t line = begin; e && line < end; line++) {
        if (r->op->stream) {
            r->op->stream(e, r->keys, line * r->n, r->n, r->out + line * r->op->width, r->op);
            continue;
        }
        tp_make_entries(e, r->keys, line * r->n, r->n, r->op->descending);
        r->op->line(e, e + r->n, r->n, r->out + line * r->op->width, r->op);
    }
    tp_free(e, bytes);
}

static int line_sizes(const tp_tensor *self, int64_t d, int64_t width, bool keepdim, int64_t *sizes) {
    int n = 0;
    for (int i = 0; i < self->ndim; i++)
        if (i != d || keepdim) sizes[n++] = i == d ? width : self->sizes[i];
    return n;
}
tp_tensor2 tp_order_outputs(tp_tensor *self, int64_t d, int64_t width, bool keepdim) {
    int64_t sizes[TP_MAX_DIMS];
    tp_ints shape = {sizes, line_sizes(self, d, width, keepdim, sizes)};
    tp_autoref *values = tp_new_empty(shape, (tp_dtype)self->dtype, self->device),
               *indices = values ? tp_new_empty(shape, TP_INT64, self->device) : NULL;
    return indices ? (tp_tensor2){{tp_take(values), tp_take(indices)}} : failed;
}
static int order_keys(const tp_line_op *op, const tp_tensor *keys, int64_t n, tp_tensor *order) {
    if (tp_elsewhere(keys)) {
        const tp_device_kernels *k = tp_device_kernels_of(keys->device);
        tp_order_spec spec = {op->kind, op->kind == TP_ORDER_PLACE ? op->k - 1 : op->k, op->descending, op->skip_nan};
        return k ? k->order(&spec, keys, n, order) : -1;
    }
    line_run r = {op, keys, n, tp_data(order)};
    void *host = keys->numel >= TP_GRAIN ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(keys->numel / n, TP_GRAIN / 16 / n + 1, run_lines, &r);
    tp_host_lock_acquire(host);
    return status;
}
tp_tensor2 tp_order_lines(const tp_line_op *op, tp_tensor *self, int64_t d, bool keepdim) {
    tp_tensor2 both = tp_order_outputs(self, d, op->width, true);
    tp_autoref *values = both.v[0], *indices = both.v[1];
    if (!values) return failed;
    if (values->numel && op->width) { /* none of a number without dimensions are one, unset */
        tp_autoref *keys = tp_comparable(op->op, self, d);
        int64_t n = tp_size_at(tp_sizes(self), d);
        bool last = d == self->ndim - 1 || self->ndim == 0;
        tp_autoref *moved = last ? NULL : keys ? tp_transpose_int(indices, d, -1) : NULL;
        tp_autoref *order = !keys  ? NULL
                            : last ? tp_retain(indices)
                                   : tp_new_empty(tp_sizes(moved), TP_INT64, self->device);
        if (!order || order_keys(op, keys, n, order) < 0) return failed;
        if (!last && tp_copy_data(moved, order) < 0) return failed;
        if (tp_run_places(TP_PLACES_GET, self, d, indices, values, NULL) < 0) return failed;
    }
    if (!keepdim) {
        int64_t sizes[TP_MAX_DIMS], steps[TP_MAX_DIMS];
        tp_ints shape = {sizes, line_sizes(self, d, 1, false, sizes)}, strides = {steps, shape.size};
        tp_contiguous_strides(shape, steps);
        if (tp_tensor_set_geometry(values, shape, strides) < 0 || tp_tensor_set_geometry(indices, shape, strides) < 0)
            return failed;
    }
    return (tp_tensor2){{tp_take(values), tp_take(indices)}};
}

static int unsupported(const char *op, const tp_tensor *self, bool bool_too) {
    if (!tp_is_complex(self) && (self->dtype != TP_BOOL || !bool_too)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s_cpu\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}
/* The dimension, of which there has to be something unless there is nothing to compute. */
static int64_t checked_dim(const char *op, const tp_tensor *self, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || tp_size_at(tp_sizes(self), d) > 0) return d;
    return tp_fail(TP_IndexError, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)d);
}

/* ---- topk, kthvalue ---- */

static void k_first(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const void *run) {
    int64_t k = ((const tp_line_op *)run)->k;
    if (k == 0) return;
    if (k < n) tp_select_entry(e, n, k - 1);
    (void)spare;
    heap_sort(e, k);
    for (int64_t i = 0; i < k; i++) out[i] = e[i].index;
}
/* The same for few of many: what is not before the k-th so far is passed over, block by block. */
static void k_first_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const void *run) {
    const tp_line_op *op = run;
    uint64_t keys[256], bound = UINT64_MAX;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        tp_make_keys(keys, t, first + i, m, op->descending);
        if (kept >= op->k && !tp_cpu.order->any_below(keys, m, bound)) continue;
        for (int64_t j = 0; j < m; j++) {
            if (kept >= op->k && keys[j] >= bound) continue;
            e[kept++] = (tp_entry){keys[j], i + j};
            if (kept == op->room) {
                bound = tp_select_entry(e, kept, op->k - 1).key;
                kept = op->k;
            }
        }
    }
    if (kept > op->k) tp_select_entry(e, kept, op->k - 1);
    heap_sort(e, op->k);
    for (int64_t i = 0; i < op->k; i++) out[i] = e[i].index;
}
/* And for a handful, which are kept in order all the time. */
#define HANDFUL 32
static void k_first_few(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const void *run) {
    const tp_line_op *op = run;
    uint64_t keys[256];
    int64_t kept = 0, k = op->k;
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        tp_make_keys(keys, t, first + i, m, op->descending);
        for (int64_t part = 0; part < m; part += HANDFUL) {
            int64_t end = m - part < HANDFUL ? m : part + HANDFUL;
            if (kept == k && !tp_cpu.order->any_below(keys + part, end - part, e[k - 1].key)) continue;
            for (int64_t j = part; j < end; j++) {
                if (kept == k && keys[j] >= e[k - 1].key) continue;
                int64_t p = kept < k ? kept++ : k - 1;
                for (; p > 0 && e[p - 1].key > keys[j]; p--) e[p] = e[p - 1];
                e[p] = (tp_entry){keys[j], i + j};
            }
        }
    }
    for (int64_t i = 0; i < k; i++) out[i] = e[i].index;
}
static int64_t check_topk(tp_tensor *self, int64_t k, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d >= 0 && (k < 0 || k > tp_size_at(tp_sizes(self), d)))
        return tp_fail(TP_RuntimeError, "selected index k out of range");
    return d;
}
/* topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices) */
tp_tensor2 topk_cpu(tp_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted) {
    (void)sorted;
    int64_t d = check_topk(self, k, dim);
    if (d < 0) return failed;
    tp_line_op op = {.op = "topk", .kind = TP_ORDER_FIRST, .width = k, .descending = largest, .k = k, .line = k_first};
    if (k > 0 && k <= tp_size_at(tp_sizes(self), d) / 8)
        op.stream = k <= HANDFUL ? k_first_few : k_first_stream, op.room = 2 * k + 256;
    return tp_order_lines(&op, self, d, true);
}
tp_tensor2 topk_meta(tp_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted) {
    (void)largest, (void)sorted;
    int64_t d = check_topk(self, k, dim);
    return d < 0 ? failed : tp_order_outputs(self, d, k, true);
}

/* Place k (from 0) of a long line: the keys are counted in buckets, and only those of one bucket are looked at closely.
 * The keys of NaN, which all are in the last bucket, would spoil the range. */
#define BUCKETS 2048
#define BLOCK 256
#define EACH_BLOCK(keys)                                                                                     \
    for (int64_t i = 0, m = n < BLOCK ? n : BLOCK; i < n && (tp_make_keys(keys, t, first + i, m, false), 1); \
         i += m, m = n - i < BLOCK ? n - i : BLOCK)
static int64_t place_in_line(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t k) {
    uint64_t keys[BLOCK], low = UINT64_MAX, high = 0;
    int64_t counts[BUCKETS] = {0}, kept = 0, bucket = 0;
    EACH_BLOCK(keys)
    for (int64_t j = 0; j < m; j++) {
        low = keys[j] < low ? keys[j] : low;
        high = keys[j] > high && keys[j] != TP_NAN_KEY ? keys[j] : high;
    }
    int shift = high > low ? 64 - __builtin_clzll(high - low) - 11 : 0;
    if (shift < 0) shift = 0;
#define BUCKET_OF(key) (((key) - low) >> shift < BUCKETS ? (int64_t)(((key) - low) >> shift) : BUCKETS - 1)
    EACH_BLOCK(keys)
    for (int64_t j = 0; j < m; j++) counts[BUCKET_OF(keys[j])]++;
    while (k >= counts[bucket]) k -= counts[bucket++];
    EACH_BLOCK(keys)
    for (int64_t j = 0; j < m; j++) {
        e[kept] = (tp_entry){keys[j], i + j};
        kept += BUCKET_OF(keys[j]) == bucket;
    }
    return tp_select_entry(e, kept, k).index;
}
static void k_th_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const void *run) {
    *out = place_in_line(e, t, first, n, ((const tp_line_op *)run)->k - 1);
}
static void median_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const void *run) {
    uint64_t keys[BLOCK];
    int64_t missing = 0, first_nan = -1;
    EACH_BLOCK(keys)
    for (int64_t j = m - 1; j >= 0; j--) missing += keys[j] == TP_NAN_KEY;
    if (missing && (!((const tp_line_op *)run)->skip_nan || missing == n)) {
        EACH_BLOCK(keys)
        for (int64_t j = 0; first_nan < 0 && j < m; j++)
            if (keys[j] == TP_NAN_KEY) first_nan = i + j;
        *out = first_nan;
    } else *out = place_in_line(e, t, first, n, (n - missing - 1) / 2);
}
#define LONG_LINE 1024 /* from here on counting pays */
static void k_th(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const void *run) {
    (void)spare;
    *out = tp_select_entry(e, n, ((const tp_line_op *)run)->k - 1).index;
}
static int64_t check_kthvalue(tp_tensor *self, int64_t k, int64_t dim) {
    int64_t d = unsupported("kthvalue", self, true) < 0 ? -1 : checked_dim("kthvalue", self, dim);
    if (d >= 0 && (k < 1 || k > tp_size_at(tp_sizes(self), d)))
        return tp_fail(TP_RuntimeError, "kthvalue(): selected number k out of range for dimension %lld", (long long)d);
    return d;
}
/* kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 kthvalue_cpu(tp_tensor *self, int64_t k, int64_t dim, bool keepdim) {
    int64_t d = check_kthvalue(self, k, dim);
    if (d < 0) return failed;
    tp_line_op op = {.op = "kthvalue", .kind = TP_ORDER_PLACE, .width = 1, .k = k, .line = k_th};
    if (tp_size_at(tp_sizes(self), d) >= LONG_LINE) op.stream = k_th_stream, op.room = self->sizes[d] + 1;
    return tp_order_lines(&op, self, d, keepdim);
}
tp_tensor2 kthvalue_meta(tp_tensor *self, int64_t k, int64_t dim, bool keepdim) {
    int64_t d = check_kthvalue(self, k, dim);
    return d < 0 ? failed : tp_order_outputs(self, d, 1, keepdim);
}

/* ---- median ---- */

/* The lower median. A NaN is the median unless it is to be skipped; without anything else the first NaN is. */
static void median_line(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const void *run) {
    (void)spare;
    int64_t numbers = n, first_nan = -1;
    for (int64_t i = n - 1; i >= 0; i--)
        if (e[i].key == TP_NAN_KEY) first_nan = e[i].index, numbers--;
    bool skip = ((const tp_line_op *)run)->skip_nan;
    *out = first_nan >= 0 && (!skip || !numbers) ? first_nan : tp_select_entry(e, n, (numbers - 1) / 2).index;
}
static int64_t check_median(const char *op, tp_tensor *self, int64_t dim) {
    return unsupported("median", self, true) < 0 ? -1 : checked_dim(op, self, dim);
}
static tp_tensor2 median_along(const char *name, tp_tensor *self, int64_t dim, bool keepdim, bool skip_nan) {
    int64_t d = check_median(name, self, dim);
    if (d < 0) return failed;
    bool integers = !tp_is_floating(self); /* their largest key is not a NaN */
    tp_line_op op = {.op = name, .kind = TP_ORDER_MEDIAN, .width = 1, .skip_nan = skip_nan, .line = median_line};
    if (integers) op.line = k_th, op.k = (tp_size_at(tp_sizes(self), d) - 1) / 2 + 1;
    if (tp_size_at(tp_sizes(self), d) >= LONG_LINE)
        op.stream = integers ? k_th_stream : median_stream, op.room = self->sizes[d] + 1;
    return tp_order_lines(&op, self, d, keepdim);
}
static tp_tensor2 median_along_meta(const char *name, tp_tensor *self, int64_t dim, bool keepdim) {
    int64_t d = check_median(name, self, dim);
    return d < 0 ? failed : tp_order_outputs(self, d, 1, keepdim);
}
/* median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 median_dim_cpu(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along("median", self, dim, keepdim, false);
}
tp_tensor2 median_dim_meta(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along_meta("median", self, dim, keepdim);
}
/* nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 nanmedian_dim_cpu(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along("nanmedian", self, dim, keepdim, true);
}
tp_tensor2 nanmedian_dim_meta(tp_tensor *self, int64_t dim, bool keepdim) {
    return median_along_meta("nanmedian", self, dim, keepdim);
}
/* Of all elements; without any, NaN (as an integer, its smallest number). */
static tp_tensor *median_of_all(const char *name, tp_tensor *self, bool skip_nan) {
    if (unsupported("median", self, true) < 0) return NULL;
    if (self->numel == 0) {
        tp_autoref *nan =
            tp_full(TP_EMPTY_INTS, TP_SCALAR_F(__builtin_nan("")), TP_FLOAT64, TP_NO_LAYOUT, self->device, -1);
        tp_autoref *none = nan ? tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device) : NULL;
        tp_scalar least = {.kind = TP_SCALAR_INT,
                           .i = self->dtype == TP_INT64   ? INT64_MIN
                                : self->dtype == TP_INT32 ? INT32_MIN
                                                          : 0};
        if (!none) return NULL;
        int status = tp_is_floating(self) ? tp_copy_(none, nan, false) : tp_fill__Scalar(none, &least);
        return status == 0 ? tp_take(none) : NULL;
    }
    tp_autoref *line = tp_reshape(self, TP_INTS(-1));
    tp_tensor2 both = line ? median_along(name, line, 0, false, skip_nan) : failed;
    tp_release(both.v[1]);
    return both.v[0];
}
static tp_tensor *median_of_all_meta(tp_tensor *self) {
    return unsupported("median", self, true) < 0 ? NULL
                                                 : tp_new_empty(TP_EMPTY_INTS, (tp_dtype)self->dtype, self->device);
}
/* median(Tensor self) -> Tensor */
tp_tensor *median_cpu(tp_tensor *self) { return median_of_all("median", self, false); }
tp_tensor *median_meta(tp_tensor *self) { return median_of_all_meta(self); }
/* nanmedian(Tensor self) -> Tensor */
tp_tensor *nanmedian_cpu(tp_tensor *self) { return median_of_all("nanmedian", self, true); }
tp_tensor *nanmedian_meta(tp_tensor *self) { return median_of_all_meta(self); }

/* ---- mode ---- */

/* The smallest of the most frequent elements, at the last place that has it. */
static void mode_line(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const void *run) {
    bool nan_apart = ((const tp_line_op *)run)->skip_nan;
    int64_t longest = 0;
    if (tp_sort_entries(e, spare, n) < 0) return;
    for (int64_t i = 0, start = 0; i < n; i++) {
        if (e[i].key != e[start].key || (nan_apart && e[i].key == TP_NAN_KEY)) start = i;
        if (i - start + 1 > longest) longest = i - start + 1, *out = e[i].index;
    }
}
/* mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) */
tp_tensor2 mode_cpu(tp_tensor *self, int64_t dim, bool keepdim) {
    int64_t d = unsupported("mode", self, false) < 0 ? -1 : checked_dim("mode", self, dim);
    if (d < 0) return failed;
    tp_line_op op = {
        .op = "mode", .kind = TP_ORDER_MODE, .width = 1, .skip_nan = tp_is_floating(self), .line = mode_line};
    return tp_order_lines(&op, self, d, keepdim);
}
tp_tensor2 mode_meta(tp_tensor *self, int64_t dim, bool keepdim) {
    int64_t d = unsupported("mode", self, false) < 0 ? -1 : checked_dim("mode", self, dim);
    return d < 0 ? failed : tp_order_outputs(self, d, 1, keepdim);
}

/* ---- quantile ---- */

static int check_quantile(const char *op, const tp_tensor *self, const char *interpolation) {
    static const char *const known[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    if (self->numel == 0) return tp_fail(TP_RuntimeError, "%s() input tensor must be non-empty", op);
    if (self->dtype != TP_FLOAT32 && self->dtype != TP_FLOAT64)
        return tp_fail(TP_RuntimeError, "%s() input tensor must be either float or double dtype", op);
    for (int64_t i = 0; i < TP_COUNTOF(known); i++)
        if (strcmp(known[i], interpolation) == 0) return 0;
    return tp_fail(TP_RuntimeError,
                   "%s() interpolation must be one of linear, lower, higher, midpoint or nearest, but got %s", op,
                   interpolation);
}
static int check_levels(const char *op, const tp_tensor *self, tp_tensor *q) {
    if (q->ndim > 1) return tp_fail(TP_RuntimeError, "%s() q must be a scalar or 1D tensor", op);
    if (q->dtype != self->dtype)
        return tp_fail(TP_RuntimeError, "%s() q tensor must be same dtype as the input tensor", op);
    if (self->device.type == TP_DEVICE_META || q->device.type == TP_DEVICE_META) return 0;
    tp_autoref *plain = tp_detach(q), *low = plain ? tp_ge_Scalar(plain, TP_SCALAR_I(0)) : NULL,
               *high = low ? tp_le_Scalar(plain, TP_SCALAR_I(1)) : NULL;
    tp_autoref *both = high ? tp_logical_and(low, high) : NULL, *all = both ? tp_all(both) : NULL;
    tp_scalar fits;
    if (!all || tp_item(all, &fits) < 0) return -1;
    return tp_scalar_bool(&fits) ? 0 : tp_fail(TP_RuntimeError, "%s() q values must be in the range [0, 1]", op);
}
/* The levels, which lead, and the reduced dimension where they belong. */
static tp_tensor *shape_levels_steal(tp_tensor *out_steal, tp_tensor *self, bool one, tp_opt_int dim, bool keepdim) {
    tp_autoref *out = out_steal, *kept = NULL;
    if (!out) return NULL;
    if (!keepdim || self->ndim == 0) kept = tp_retain(out);
    else if (dim.has) kept = tp_unsqueeze(out, tp_wrap_dim(dim.value, self->ndim) + 1);
    else {
        int64_t sizes[TP_MAX_DIMS + 1] = {out->sizes[0]};
        for (int d = 1; d <= self->ndim; d++) sizes[d] = 1;
        kept = tp_reshape(out, (tp_ints){sizes, self->ndim + 1});
    }
    return kept && one ? tp_select_int(kept, 0, 0) : tp_take(kept);
}
#define QUANTILE(name, skip_nan)                                                                                       \
    tp_tensor *name##_composite(tp_tensor *self, tp_tensor *q, tp_opt_int dim, bool keepdim, const char *between) {    \
        if (check_quantile(#name, self, between) < 0 || check_levels(#name, self, q) < 0) return NULL;                 \
        return shape_levels_steal(tp__quantile(self, q, dim, between, skip_nan), self, q->ndim == 0, dim, keepdim);    \
    }                                                                                                                  \
    tp_tensor *name##_scalar_composite(tp_tensor *self, double q, tp_opt_int dim, bool keepdim, const char *between) { \
        if (!(q >= 0 && q <= 1))                                                                                       \
            return tp_fail_null(TP_RuntimeError, #name "() q must be in the range [0, 1] but got %g", q);              \
        if (check_quantile(#name, self, between) < 0) return NULL;                                                     \
        tp_autoref *level =                                                                                            \
            tp_full(TP_EMPTY_INTS, TP_SCALAR_F(q), (tp_dtype)self->dtype, TP_NO_LAYOUT, self->device, -1);             \
        return level ? shape_levels_steal(tp__quantile(self, level, dim, between, skip_nan), self, true, dim, keepdim) \
                     : NULL;                                                                                           \
    }
/* quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor */
QUANTILE(quantile, false)
/* nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor */
QUANTILE(nanquantile, true)
