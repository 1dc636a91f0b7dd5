/* softmax.h: softmax and its kin over the middle of [outer, n, inner]. */
#pragma once

#include "core/base.h"

/* Rows of n elements `inner` apart; [first, last) counts rows as outer * inner. */
typedef struct {
    void (*forward)(const void *in, void *out, int64_t n, int64_t inner, int64_t first, int64_t last, bool log);
    /* grad_input from grad_output and the forward's output. */
    void (*backward)(const void *grad, const void *output, void *out, int64_t n, int64_t inner, int64_t first,
                     int64_t last, bool log);
} tp_softmax_loops;

typedef struct {
    tp_softmax_loops f32, f64;
} tp_softmax_kernels;
