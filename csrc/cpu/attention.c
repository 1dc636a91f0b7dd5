/* attention.c: scaled dot-product attention on the CPU without a matrix of all scores (Dao et al., FlashAttention,
 * 2022).
 *
 * QUERIES queries of one head meet KEYS keys at a time: their scores become shares in a buffer that stays in the L2
 * cache, and are multiplied with the values at once. A query's shares are relative to the largest score so far; sums
 * and outputs are brought to a larger one when it comes. The backward pass makes the shares again from the
 * scores' logarithmic sum. What causality hides from all queries of a block is not computed. Threads share blocks
 * forwards and heads backwards, so nothing depends on their number. */
#include "cpu/attention.h"

#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/gemm.h"
#include "cpu/kernels.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define QUERIES 64
#define KEYS 512

/* A tensor [batch, heads, length, features] by its strides; features lie side by side. */
typedef struct {
    float *data;
    int64_t batch, head, row;
} view;

static view view_of(const tp_tensor *t) { return (view){tp_data(t), t->strides[0], t->strides[1], t->strides[2]}; }

typedef struct {
    view q, k, v, out, grad, to_q, to_k, to_v;
    const float *mask;
    int64_t mask_strides[4];
    float *logsumexp; /* [batch, heads, queries] */
    int64_t heads, queries, keys, features, value_features, blocks;
    int64_t pitch; /* of the buffer's rows: no power of two, whose rows would share a few lines of the cache */
    float scale;
    bool causal;
} job;

static float *row_at(const job *j, const view *v, int64_t head, int64_t row) {
    return v->data + head / j->heads * v->batch + head % j->heads * v->head + row * v->row;
}

/* Scores of `rows` queries from `first` on with the keys from `from` on, before they are scaled. */
static tp_scores scores_of(const job *j, float *room, int64_t head, int64_t first, int64_t rows, int64_t from,
                           int64_t count) {
    tp_scores b = {room,
                   rows,
                   count,
                   j->pitch,
                   j->scale,
                   NULL,
                   j->mask_strides[2],
                   j->mask_strides[3],
                   j->causal ? first - from + 1 : -1};
    if (j->mask)
        b.mask = j->mask + head / j->heads * j->mask_strides[0] + head % j->heads * j->mask_strides[1] +
                 first * j->mask_strides[2] + from * j->mask_strides[3];
    return b;
}

static int gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                int64_t ldb, int add, float *c, int64_t ldc) {
    return tp_gemm_raw(TP_FLOAT32, ta, tb, m, n, k, a, lda, b, ldb, add, c, ldc);
}

/* ---- forwards ---- */

static int forward_block(const job *j, float *room, int64_t head, int64_t first) {
    int64_t rows = tp_at_most(QUERIES, j->queries - first),
            keys = j->causal ? tp_at_most(j->keys, first + rows) : j->keys;
    float top[QUERIES], sum[QUERIES], rescale[QUERIES];
    float *out = row_at(j, &j->out, head, first), *lse = j->logsumexp + head * j->queries + first;
    const float *q = row_at(j, &j->q, head, first);
    for (int64_t r = 0; r < rows; r++) top[r] = -INFINITY, sum[r] = 0;
    for (int64_t from = 0; from < keys; from += KEYS) {
        tp_scores b = scores_of(j, room, head, first, rows, from, tp_at_most(KEYS, keys - from));
        if (gemm(false, true, rows, b.keys, j->features, q, j->q.row, row_at(j, &j->k, head, from), j->k.row, 0, room,
                 j->pitch) < 0)
            return -1;
        tp_cpu.attention->shares(&b, top, sum, rescale);
        for (int64_t r = 0; from && r < rows; r++)
            tp_cpu.attention->multiply(out + r * j->out.row, rescale[r], j->value_features);
        if (gemm(false, false, rows, j->value_features, b.keys, room, j->pitch, row_at(j, &j->v, head, from), j->v.row,
                 from > 0, out, j->out.row) < 0)
            return -1;
    }
    for (int64_t r = 0; r < rows; r++) {
        bool none = top[r] == -INFINITY && sum[r] == 0; /* nothing is seen: 0, and shares of 0 on the way back */
        tp_cpu.attention->multiply(out + r * j->out.row, none ? 0 : 1 / sum[r], j->value_features);
        lse[r] = none ? INFINITY : top[r] + logf(sum[r]);
    }
    return 0;
}

static void forward_blocks(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const size_t bytes = QUERIES * (size_t)j->pitch * sizeof(float);
    float *room = tp_alloc(bytes);
    for (int64_t i = begin; room && i < end; i++)
        if (forward_block(j, room, i / j->blocks, i % j->blocks * QUERIES) < 0 || tp_host_look() < 0) break;
    tp_free(room, bytes);
}

/* ---- backwards ---- */

static int backward_keys(const job *j, float *room, int64_t head, int64_t first, int64_t rows, int64_t from,
                         int64_t count, const float *mean) {
    tp_scores b = scores_of(j, room, head, first, rows, from, count);
    float *slopes = room + QUERIES * j->pitch, *q = row_at(j, &j->q, head, first), *k = row_at(j, &j->k, head, from),
          *v = row_at(j, &j->v, head, from), *grad = row_at(j, &j->grad, head, first);
    const int64_t d = j->features, e = j->value_features;
    bool more = first > 0; /* the first block of queries sees some of all keys, or clears them (clear_rest) */
    if (gemm(false, true, rows, count, d, q, j->q.row, k, j->k.row, 0, room, j->pitch) < 0) return -1;
    tp_cpu.attention->shares_again(&b, j->logsumexp + head * j->queries + first);
    if (gemm(true, false, count, e, rows, room, j->pitch, grad, j->grad.row, more, row_at(j, &j->to_v, head, from),
             j->to_v.row) < 0 ||
        gemm(false, true, rows, count, e, grad, j->grad.row, v, j->v.row, 0, slopes, j->pitch) < 0)
        return -1;
    tp_cpu.attention->slopes(&b, slopes, mean);
    if (gemm(false, false, rows, d, count, slopes, j->pitch, k, j->k.row, from > 0, row_at(j, &j->to_q, head, first),
             j->to_q.row) < 0)
        return -1;
    return gemm(true, false, count, d, rows, slopes, j->pitch, q, j->q.row, more, row_at(j, &j->to_k, head, from),
                j->to_k.row);
}

/* The gradients of keys that the first block of queries does not see. */
static void clear_rest(const job *j, int64_t head, int64_t from) {
    for (int64_t i = from; i < j->keys; i++) {
        memset(row_at(j, &j->to_k, head, i), 0, (size_t)j->features * sizeof(float));
        memset(row_at(j, &j->to_v, head, i), 0, (size_t)j->value_features * sizeof(float));
    }
}

static int backward_head(const job *j, float *room, int64_t head) {
    float mean[QUERIES];
    for (int64_t first = 0; first < j->queries; first += QUERIES) {
        int64_t rows = tp_at_most(QUERIES, j->queries - first),
                keys = j->causal ? tp_at_most(j->keys, first + rows) : j->keys;
        if (first == 0) clear_rest(j, head, keys);
        for (int64_t r = 0; r < rows; r++)
            mean[r] = tp_cpu.attention->dot(row_at(j, &j->grad, head, first + r), row_at(j, &j->out, head, first + r),
                                            j->value_features);
        for (int64_t from = 0; from < keys; from += KEYS)
            if (backward_keys(j, room, head, first, rows, from, tp_at_most(KEYS, keys - from), mean) < 0) return -1;
    }
    return 0;
}

static void backward_heads(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const size_t bytes = 2 * QUERIES * (size_t)j->pitch * sizeof(float);
    float *room = tp_alloc(bytes);
    for (int64_t i = begin; room && i < end; i++)
        if (backward_head(j, room, i) < 0 || tp_host_look() < 0) break;
    tp_free(room, bytes);
}

/* ---- calls ---- */

/* The mask as strides over [batch, heads, queries, keys]. */
static void take_mask(job *j, const tp_tensor *mask) {
    if (!mask) return;
    for (int i = 0; i < mask->ndim; i++)
        j->mask_strides[4 - mask->ndim + i] = mask->sizes[i] == 1 ? 0 : mask->strides[i];
    j->mask = tp_data(mask);
}

static job start(const tp_tensor *q, const tp_tensor *k, const tp_tensor *v, bool causal, double scale) {
    return (job){.q = view_of(q),
                 .k = view_of(k),
                 .v = view_of(v),
                 .heads = q->sizes[1],
                 .queries = q->sizes[2],
                 .keys = k->sizes[2],
                 .features = q->sizes[3],
                 .value_features = v->sizes[3],
                 .causal = causal,
                 .blocks = (q->sizes[2] + QUERIES - 1) / QUERIES,
                 .pitch = tp_at_most(KEYS, (k->sizes[2] + 15) / 16 * 16) + 16,
                 .scale = (float)scale};
}

static int run(job *j, int64_t count, tp_range_fn fn) { return tp_parallel_unlocked(true, count, 1, fn, j); }

/* attention.forward(Tensor query, Tensor key, Tensor value, Tensor? mask, bool is_causal, float scale, *,
 *                   Tensor(a!) out, Tensor(b!) logsumexp) -> () */
int attention_forward_cpu(tp_tensor *query, tp_tensor *key, tp_tensor *value, tp_tensor *mask, bool is_causal,
                          double scale, tp_tensor *out, tp_tensor *logsumexp) {
    job j = start(query, key, value, is_causal, scale);
    take_mask(&j, mask);
    j.out = view_of(out);
    j.logsumexp = tp_data(logsumexp);
    return run(&j, query->sizes[0] * j.heads * j.blocks, forward_blocks);
}

/* attention.backward(Tensor grad, Tensor query, Tensor key, Tensor value, Tensor result, Tensor logsumexp, Tensor?
 * mask, bool is_causal, float scale, *, Tensor(a!) to_query, Tensor(b!) to_key, Tensor(c!) to_value)
 *                    -> () */
int attention_backward_cpu(tp_tensor *grad, tp_tensor *query, tp_tensor *key, tp_tensor *value, tp_tensor *result,
                           tp_tensor *logsumexp, tp_tensor *mask, bool is_causal, double scale, tp_tensor *to_query,
                           tp_tensor *to_key, tp_tensor *to_value) {
    job j = start(query, key, value, is_causal, scale);
    take_mask(&j, mask);
    j.out = view_of(result);
    j.grad = view_of(grad);
    j.to_q = view_of(to_query), j.to_k = view_of(to_key), j.to_v = view_of(to_value);
    j.logsumexp = tp_data(logsumexp);
    return run(&j, query->sizes[0] * j.heads, backward_heads);
}
