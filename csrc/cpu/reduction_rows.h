/* reduction_rows.h: what the hand-written tables of reductions share: a row's fields, and the finish of a reduction
 * whose results are its accumulators. For reduce.c and fold.c. */
#pragma once

#include "cpu/reduction.h"

#include <string.h>

/* The folds are <folds>_fold_runs and <folds>_fold_rows. */
#define TP_REDUCTION_FIELDS(in_, out_, size_, init_, folds, combine_, finish_)            \
    .in = in_, .out = out_, .size = size_, .init = init_, .fold_runs = folds##_fold_runs, \
    .fold_rows = folds##_fold_rows, .combine = combine_, .finish = finish_

#define TP_FINISH_AS_IS(bytes)                                                                           \
    static void TP_UNUSED finish_##bytes(void *out, const void *acc, int64_t n, int64_t count TP_UNUSED, \
                                         const void *params TP_UNUSED) {                                 \
        memcpy(out, acc, (size_t)n * bytes);                                                             \
    }
TP_FINISH_AS_IS(1)
TP_FINISH_AS_IS(4)
TP_FINISH_AS_IS(8)
TP_FINISH_AS_IS(16)
