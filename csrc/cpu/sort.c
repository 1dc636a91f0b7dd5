/* sort.c: the primitives that find places of lines in order: topk, kth, median, mode.
 *
 * Each line becomes entries (lines.h) from which indices are picked; few of a long line are picked while it is read.
 * Threads share the lines. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "cpu/lines.h"
#include "core/memory.h"
#include "prim/transfer.h"

/* What is made of each line: `width` indices, by `line` from its entries, or by `stream` from the elements themselves,
 * with room for `room` entries. */
typedef struct line_op {
    int64_t width, k, room;
    bool descending, skip_nan;
    void (*line)(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const struct line_op *op);
    void (*stream)(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const struct line_op *op);
} line_op;

typedef struct {
    const line_op *op;
    const tp_tensor *lines;
    int64_t n, *out;
    _Atomic bool failed;
} line_run;

static void run_lines(int64_t begin, int64_t end, void *context) {
    line_run *r = context;
    const line_op *op = r->op;
    size_t bytes = (size_t)(op->stream ? op->room : r->n * 2) * sizeof(tp_entry);
    tp_entry *e = tp_alloc(bytes);
    if (!e) r->failed = true;
    for (int64_t line = begin; e && line < end; line++) {
        if (op->stream) {
            op->stream(e, r->lines, line * r->n, r->n, r->out + line * op->width, op);
            continue;
        }
        tp_make_entries(e, r->lines, line * r->n, r->n, op->descending);
        op->line(e, e + r->n, r->n, r->out + line * op->width, op);
    }
    tp_free(e, bytes);
}

static int64_t length_of(const tp_tensor *lines) { return lines->ndim ? lines->sizes[lines->ndim - 1] : 1; }

static int run(const line_op *op, const tp_tensor *lines, tp_tensor *out) {
    int64_t n = length_of(lines);
    if (n == 1) return tp_fill_data(out, TP_SCALAR_I(0));
    line_run r = {op, lines, n, tp_data(out), false};
    int status = tp_parallel_unlocked(lines->numel >= TP_GRAIN, lines->numel / n, TP_GRAIN / 16 / n + 1, run_lines, &r);
    if (status < 0) return -1;
    return r.failed ? tp_fail_memory(n * 2 * (int64_t)sizeof(tp_entry)) : 0;
}

/* ---- topk ---- */

static void k_first(tp_entry *e, tp_entry *spare TP_UNUSED, int64_t n, int64_t *out, const line_op *op) {
    tp_first_entries(e, n, op->k);
    for (int64_t i = 0; i < op->k; i++) out[i] = e[i].index;
}
/* The same for few of many: what is not before the k-th so far is passed over, block by block. */
static void k_first_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const line_op *op) {
    uint64_t keys[256], bound = UINT64_MAX;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i += 256) {
        if (tp_ends_at(i)) return;
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
    tp_first_entries(e, kept, op->k);
    for (int64_t i = 0; i < op->k; i++) out[i] = e[i].index;
}
/* And for a handful, which are kept in order all the time. */
#define HANDFUL 32
static void k_first_few(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const line_op *op) {
    uint64_t keys[256];
    int64_t kept = 0, k = op->k;
    for (int64_t i = 0; i < n; i += 256) {
        if (tp_ends_at(i)) return;
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
int topk_cpu(tp_tensor *lines, int64_t k, bool largest, tp_tensor *out) {
    line_op op = {.width = k, .k = k, .descending = largest, .line = k_first};
    if (k <= length_of(lines) / 8) op.stream = k <= HANDFUL ? k_first_few : k_first_stream, op.room = 2 * k + 256;
    return run(&op, lines, out);
}

/* ---- kth, median ---- */

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
static void k_th_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const line_op *op) {
    *out = place_in_line(e, t, first, n, op->k);
}
static void median_stream(tp_entry *e, const tp_tensor *t, int64_t first, int64_t n, int64_t *out, const line_op *op) {
    uint64_t keys[BLOCK];
    int64_t missing = 0, first_nan = -1;
    EACH_BLOCK(keys)
    for (int64_t j = m - 1; j >= 0; j--) missing += keys[j] == TP_NAN_KEY;
    if (missing && (!op->skip_nan || missing == n)) {
        EACH_BLOCK(keys)
        for (int64_t j = 0; first_nan < 0 && j < m; j++)
            if (keys[j] == TP_NAN_KEY) first_nan = i + j;
        *out = first_nan;
    } else *out = place_in_line(e, t, first, n, (n - missing - 1) / 2);
}
#define LONG_LINE 1024 /* from here on counting pays */
static void k_th(tp_entry *e, tp_entry *spare TP_UNUSED, int64_t n, int64_t *out, const line_op *op) {
    *out = tp_select_entry(e, n, op->k).index;
}
int kth_cpu(tp_tensor *lines, int64_t k, tp_tensor *out) {
    line_op op = {.width = 1, .k = k, .line = k_th};
    if (length_of(lines) >= LONG_LINE) op.stream = k_th_stream, op.room = length_of(lines) + 1;
    return run(&op, lines, out);
}

static void median_line(tp_entry *e, tp_entry *spare TP_UNUSED, int64_t n, int64_t *out, const line_op *op) {
    int64_t numbers = n, first_nan = -1;
    for (int64_t i = n - 1; i >= 0; i--)
        if (e[i].key == TP_NAN_KEY) first_nan = e[i].index, numbers--;
    *out = first_nan >= 0 && (!op->skip_nan || !numbers) ? first_nan : tp_select_entry(e, n, (numbers - 1) / 2).index;
}
int median_cpu(tp_tensor *lines, bool skip_nan, tp_tensor *out) {
    int64_t n = length_of(lines);
    if (!tp_is_floating(lines)) return kth_cpu(lines, (n - 1) / 2, out); /* the largest key is not a NaN */
    line_op op = {.width = 1, .skip_nan = skip_nan, .line = median_line};
    if (n >= LONG_LINE) op.stream = median_stream, op.room = n + 1;
    return run(&op, lines, out);
}

/* ---- mode ---- */

static void mode_line(tp_entry *e, tp_entry *spare, int64_t n, int64_t *out, const line_op *op) {
    int64_t longest = 0;
    if (tp_sort_entries(e, spare, n) < 0) return;
    for (int64_t i = 0, start = 0; i < n; i++) {
        if (e[i].key != e[start].key || (op->skip_nan && e[i].key == TP_NAN_KEY)) start = i;
        if (i - start + 1 > longest) longest = i - start + 1, *out = e[i].index;
    }
}
int mode_cpu(tp_tensor *lines, tp_tensor *out) {
    return run(&(line_op){.width = 1, .skip_nan = tp_is_floating(lines), .line = mode_line}, lines, out);
}
