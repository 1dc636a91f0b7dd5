/* convolution.h: the three products of a convolution on contiguous memory. */
#pragma once

#include "prim/convolution.h"

typedef struct {
    /* out[n, g*O + o, :] = bias[g*O + o] + sum over the window of weight * in; bias may be NULL. */
    int (*forward)(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out);
    /* The adjoint in `in`: spreads `out` over the windows. bias (one per input channel) may be NULL. */
    int (*data)(const tp_conv_plan *p, const void *out, const void *weight, const void *bias, void *in);
    /* The adjoint in `weight`. */
    int (*weight)(const tp_conv_plan *p, const void *out, const void *in, void *weight);
} tp_convolution_kernels;
