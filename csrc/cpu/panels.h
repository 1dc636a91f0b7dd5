/* panels.h: products of a few rows with a matrix that lies in panels. */
#pragma once

#include "core/base.h"
#include "prim/panels.h"

typedef struct {
    /* out[rows, TP_PANEL] = a[rows, k] @ panel[k, TP_PANEL], the rows of a and out lda and ldc apart; `more`: onto out.
     * NULL where there are no vectors for it. */
    void (*multiply)(const float *a, int64_t lda, int64_t rows, const float *panel, int64_t k, float *out, int64_t ldc,
                     bool more);
} tp_panels_kernels;
