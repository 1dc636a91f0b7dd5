/* attention.h: where attention makes its scores part by part. */
#pragma once

#include "core/base.h"

/* Scores of a head from which on that is faster than a matrix of all; with causality it leaves some out. The kernels of
 * backends decline calls with fewer: who is asked as one operator (a class of tensors) gets the bits of who is not. */
TP_INLINE bool tp_many_scores(int64_t queries, int64_t keys, bool is_causal) {
    return queries * keys >= (is_causal ? 64 * 64 : 128 * 128);
}
