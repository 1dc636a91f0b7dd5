/* range.h: sequences written into a tensor in blocks. */
#pragma once

#include "core/tensor.h"

/* Element i is a + b * i in int64 (whole), or in double; from `half` on, `last - b * (n - 1 - i)`, which ends at last
 * exactly, with one rounding in float64. `base`, if not 0, is raised to it. The tensor is contiguous, or has no
 * elements. */
typedef struct {
    bool whole;
    int64_t first, step;
    double a, b, last, base;
    int64_t half;
    bool single; /* exponents in float32, as PyTorch has them for integers */
} tp_sequence;
int tp_fill_range(tp_tensor *t, const tp_sequence *r);
