/* convolution.c: see convolution.h. */
#include "prim/convolution.h"

tp_conv_plan tp_conv_plan_of(const tp_tensor *large, const tp_tensor *weight, const tp_tensor *small, tp_ints stride,
                             tp_ints padding, tp_ints dilation, int64_t groups) {
    tp_conv_plan p = {.dtype = (tp_dtype)large->dtype,
                      .batch = large->sizes[0],
                      .groups = groups,
                      .in_channels = weight->sizes[1],
                      .out_channels = weight->sizes[0] / groups};
    int64_t skipped = 5 - weight->ndim;
    for (int64_t d = 0; d < 3; d++) {
        int64_t i = d - skipped;
        p.in[d] = i < 0 ? 1 : large->sizes[i + 2];
        p.out[d] = i < 0 ? 1 : small->sizes[i + 2];
        p.kernel[d] = i < 0 ? 1 : weight->sizes[i + 2];
        p.stride[d] = i < 0 ? 1 : stride.data[i];
        p.padding[d] = i < 0 ? 0 : padding.data[i];
        p.dilation[d] = i < 0 ? 1 : dilation.data[i];
    }
    return p;
}
