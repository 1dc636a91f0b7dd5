/* convolution.c: the primitive convolution on the CPU; the products are in convolution_loops.c. */
#include "cpu/convolution.h"

#include "PrimitiveKernels.h"
#include "cpu/kernels.h"
#include "core/memory.h"

int convolution_forward_cpu(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                            tp_ints dilation, int64_t groups, tp_tensor *out) {
    tp_conv_plan p = tp_conv_plan_of(x, weight, out, stride, padding, dilation, groups);
    return tp_cpu.convolution->forward(&p, tp_data(x), tp_data(weight), bias ? tp_data(bias) : NULL, tp_data(out));
}

int convolution_data_cpu(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                         tp_ints dilation, int64_t groups, tp_tensor *out) {
    tp_conv_plan p = tp_conv_plan_of(out, weight, x, stride, padding, dilation, groups);
    return tp_cpu.convolution->data(&p, tp_data(x), tp_data(weight), bias ? tp_data(bias) : NULL, tp_data(out));
}

int convolution_weight_cpu(tp_tensor *grad, tp_tensor *x, tp_ints stride, tp_ints padding, tp_ints dilation,
                           int64_t groups, tp_tensor *out) {
    tp_conv_plan p = tp_conv_plan_of(x, out, grad, stride, padding, dilation, groups);
    return tp_cpu.convolution->weight(&p, tp_data(grad), tp_data(x), tp_data(out));
}
