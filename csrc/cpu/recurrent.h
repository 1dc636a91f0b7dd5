/* recurrent.h: the loops of one step of recurrent cells, over rows of `n` hidden units. */
#pragma once

#include "core/base.h"

typedef struct {
    /* Each on rows [first, last); `saved`, `bias` may be NULL. */
    void (*lstm)(const void *input, const void *hidden, void *cell, void *out, void *saved, int64_t n, int64_t first,
                 int64_t last);
    void (*lstm_backward)(const void *grad, const void *saved, void *grad_cell, void *out, int64_t n, int64_t first,
                          int64_t last);
    void (*gru)(const void *input, const void *hidden, const void *bias, void *state, void *saved, int64_t n,
                int64_t first, int64_t last);
    void (*gru_backward)(const void *saved, const void *before, void *grad, void *to_input, void *to_hidden, int64_t n,
                         int64_t first, int64_t last);
} tp_recurrent_loops;

typedef struct {
    tp_recurrent_loops f32, f64;
} tp_recurrent_kernels;
