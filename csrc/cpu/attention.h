/* attention.h: the loops of attention over a block of scores: rows are queries, columns keys. */
#pragma once

#include "core/base.h"

/* Where a block of scores lies among all of them, and what is added to them. */
typedef struct {
    float *scores; /* [rows, ld], of which the first `keys` of a row count */
    int64_t rows, keys, ld;
    float scale;
    const float *mask; /* of the block's first score, or NULL */
    int64_t mask_row, mask_key;
    int64_t visible; /* how many keys the first row sees, each row one more than the last; -1: all */
} tp_scores;

typedef struct {
    /* The scores become exp(score - top), where top is the largest of a query's so far; sums of these so far, and what
     * the former ones are multiplied by, to `rescale`. */
    void (*shares)(const tp_scores *b, float *top, float *sum, float *rescale);
    /* The scores become exp(score - logsumexp). */
    void (*shares_again)(const tp_scores *b, const float *logsumexp);
    /* The scores of b are shares; slopes, those of the shares, become those of the scores. */
    void (*slopes)(const tp_scores *b, float *slopes, const float *mean);
    float (*dot)(const float *a, const float *b, int64_t n);
    void (*multiply)(float *x, float by, int64_t n);
} tp_attention_kernels;
