/* ctc.h: the loops of connectionist temporal classification over the states of one time. */
#pragma once

#include "core/base.h"

typedef struct {
    /* out = log(exp(a) + exp(b) + exp(c + skip)) + add; minus infinity stands for zero. */
    void (*join)(const void *a, const void *b, const void *c, const void *skip, const void *add, int64_t n, void *out);
    /* out = exp(a + b + shift) */
    void (*shares)(const void *a, const void *b, double shift, int64_t n, void *out);
    /* out = exp(a) * factor */
    void (*exponentials)(const void *a, double factor, int64_t n, void *out);
} tp_ctc_loops;

typedef struct {
    tp_ctc_loops f32, f64;
} tp_ctc_kernels;
