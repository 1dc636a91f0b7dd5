/* convolution.h: the geometry of a convolution, as its primitives derive it from their operands.
 *
 * Every plan has three spatial dimensions; fewer are preceded by dimensions of size one. Channels are counted per
 * group. A transposed convolution is the plan of the convolution whose data gradient it is. */
#pragma once

#include "core/tensor.h"

typedef struct {
    tp_dtype dtype; /* float32, float64, complex64, complex128, int64 */
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} tp_conv_plan;

/* The geometry of the (not transposed) convolution with this weight between a large side, its input, and a small side,
 * its result. The lists have a number for each dimension after the channels. */
tp_conv_plan tp_conv_plan_of(const tp_tensor *large, const tp_tensor *weight, const tp_tensor *small, tp_ints stride,
                             tp_ints padding, tp_ints dilation, int64_t groups);
