/* convolution.h: the three products of a convolution on contiguous memory.
 *
 * Every convolution has three spatial dimensions; fewer are preceded by dimensions of size one. Channels are counted
 * per group. A transposed convolution is the plan of the convolution whose data gradient it is. */
#pragma once

#include "core/tensor.h"

typedef struct {
    tp_dtype dtype; /* float32, float64, complex64, complex128, int64 */
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} tp_conv_plan;

typedef enum { TP_CONV_FORWARD, TP_CONV_DATA, TP_CONV_WEIGHT } tp_conv_product;

typedef struct {
    /* out[n, g*O + o, :] = bias[g*O + o] + sum over the window of weight * in; bias may be NULL. */
    int (*forward)(const tp_conv_plan *p, const void *in, const void *weight, const void *bias, void *out);
    /* The adjoint in `in`: spreads `out` over the windows. bias (one per input channel) may be NULL. */
    int (*data)(const tp_conv_plan *p, const void *out, const void *weight, const void *bias, void *in);
    /* The adjoint in `weight`. */
    int (*weight)(const tp_conv_plan *p, const void *out, const void *in, void *weight);
} tp_convolution_kernels;
