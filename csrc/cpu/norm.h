/* norm.h: what normalisations do with runs of neighbours. Statistics are doubles, whatever the dtype. */
#pragma once

#include "core/base.h"

/* `runs` of them, each `next` elements after the one before. */
typedef struct {
    double (*sum)(const void *x, int64_t n, int64_t runs, int64_t next);
    /* The sum of the squares of the distances from the mean. */
    double (*squares)(const void *x, int64_t n, int64_t runs, int64_t next, double mean);
    /* y = (x - mean) * rstd * weight + bias, element by element; both may be NULL. */
    void (*elements)(const void *x, void *y, int64_t n, double mean, double rstd, const void *weight, const void *bias);
    /* The same with one weight and one bias for the run. */
    void (*run)(const void *x, void *y, int64_t n, double mean, double rstd, double weight, double bias);
    /* Adds to sums: of grad * weight, and of grad * weight * (x - mean). weight may be NULL. */
    void (*products)(const void *grad, const void *x, const void *weight, int64_t n, int64_t runs, int64_t next,
                     double mean, double sums[2]);
    /* out = scale * grad * weight - shift - slope * (x - mean); weight may be NULL. */
    void (*spread)(const void *grad, const void *x, const void *weight, void *out, int64_t n, double mean, double scale,
                   double shift, double slope);
    /* Adds grad * (x - mean) * rstd to to_weight and grad to to_bias; either may be NULL. */
    void (*accumulate)(const void *grad, const void *x, int64_t n, double mean, double rstd, void *to_weight,
                       void *to_bias);
    double (*get)(const void *x, int64_t i);
    void (*put)(void *x, int64_t i, double value);
} tp_norm_loops;

typedef struct {
    tp_norm_loops f32, f64;
} tp_norm_kernels;
