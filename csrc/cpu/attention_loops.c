/* attention_loops.c: the loops of attention over a block of scores, compiled once per capability. */
#include "cpu/attention.h"

#include "cpu/kernels.h"
#include "cpu/loop.h"

#define LANES 32

static int64_t seen_by(const tp_scores *b, int64_t row) {
    int64_t n = b->visible < 0 ? b->keys : b->visible + row;
    return n < 0 ? 0 : n > b->keys ? b->keys : n;
}

/* The first n scores of a row scaled, with the mask, and the largest of them. */
static float weigh(const tp_scores *b, int64_t row, int64_t n) {
    float *s = b->scores + row * b->ld, lanes[LANES], top = -TP_INF_f32;
    const float *mask = b->mask ? b->mask + row * b->mask_row : NULL, scale = b->scale;
    for (int k = 0; k < LANES; k++) lanes[k] = top;
    if (mask && b->mask_key == 1)
        for (int64_t i = 0; i < n; i++) s[i] = s[i] * scale + mask[i];
    else
        for (int64_t i = 0; i < n; i++) s[i] = s[i] * scale + (mask ? mask[i * b->mask_key] : 0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] = s[i + k] > lanes[k] ? s[i + k] : lanes[k];
    for (int k = 0; k < LANES; k++) top = lanes[k] > top ? lanes[k] : top;
    for (; i < n; i++) top = s[i] > top ? s[i] : top;
    return top;
}

static float total(float lanes[LANES]) {
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
    return lanes[0];
}

/* n scores become exp(score - shift); their sum. */
static float exponentials(float *s, int64_t n, float shift) {
    float lanes[LANES] = {0}, block[LANES];
    TP_ABREAST_LANES_BEGIN
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        TP_IVDEP for (int k = 0; k < LANES; k++) {
            TP_ABREAST_LANE(s + i, k); /* Note [Vectors abreast] */
            s[i + k] = tp_exp_f32(s[i + k] - shift);
        }
        for (int k = 0; k < LANES; k++) lanes[k] += s[i + k];
    }
    TP_ABREAST_LANES_END
    int64_t rest = n - i;
    for (int k = 0; k < LANES; k++) block[k] = k < rest ? s[i + k] - shift : -TP_INF_f32;
    TP_IVDEP for (int k = 0; k < LANES; k++) block[k] = tp_exp_f32(block[k]);
    for (int64_t k = 0; k < rest; k++) {
        s[i + k] = block[k];
        lanes[k] += block[k];
    }
    return total(lanes);
}

static void hide(const tp_scores *b, int64_t row, int64_t from) {
    for (int64_t i = from; i < b->keys; i++) b->scores[row * b->ld + i] = 0;
}

static void shares(const tp_scores *b, float *top, float *sum, float *rescale) {
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t n = seen_by(b, r);
        float here = weigh(b, r, n), now = here > top[r] ? here : top[r];
        bool none = now == -TP_INF_f32;
        rescale[r] = none ? 1 : tp_exp_f32(top[r] - now);
        sum[r] = sum[r] * rescale[r] + exponentials(b->scores + r * b->ld, n, none ? 0 : now);
        top[r] = now;
        hide(b, r, n);
    }
}

static void shares_again(const tp_scores *b, const float *logsumexp) {
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t n = seen_by(b, r);
        weigh(b, r, n);
        exponentials(b->scores + r * b->ld, n, logsumexp[r]);
        hide(b, r, n);
    }
}

static void slopes(const tp_scores *b, float *slope, const float *mean) {
    for (int64_t r = 0; r < b->rows; r++) {
        const float *p = b->scores + r * b->ld, m = mean[r], scale = b->scale;
        float *restrict s = slope + r * b->ld;
        for (int64_t i = 0; i < b->keys; i++) s[i] = p[i] * (s[i] - m) * scale;
    }
}

static float dot(const float *a, const float *b, int64_t n) {
    float lanes[LANES] = {0}, rest = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] += a[i + k] * b[i + k];
    for (; i < n; i++) rest += a[i] * b[i];
    return total(lanes) + rest;
}

static void multiply(float *x, float by, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] *= by;
}

const tp_attention_kernels TP_CAP(tp_attention) = {shares, shares_again, slopes, dot, multiply};
