/* pool.c: see pool.h. */
#include "prim/pool.h"

tp_pool_plan tp_pool_plan_of(const tp_tensor *large, const tp_tensor *small, tp_ints kernel, tp_ints stride,
                             tp_ints padding, tp_ints dilation) {
    tp_pool_plan p = {.dims = (int)stride.size, .adaptive = kernel.size == 0};
    int64_t missing = 3 - stride.size;
    for (int64_t d = 0; d < 3; d++) {
        int64_t i = d - missing;
        p.in[d] = i < 0 ? 1 : large->sizes[large->ndim - stride.size + i];
        p.out[d] = i < 0 ? 1 : small->sizes[small->ndim - stride.size + i];
        p.kernel[d] = i < 0 || p.adaptive ? 1 : kernel.data[i];
        p.stride[d] = i < 0 || p.adaptive ? 1 : stride.data[i];
        p.padding[d] = i < 0 || p.adaptive ? 0 : padding.data[i];
        p.dilation[d] = i < 0 || p.adaptive ? 1 : dilation.data[i];
    }
    return p;
}

bool tp_pool_is_by_two(const tp_pool_plan *p) {
    bool plain = !p->adaptive && p->in[0] == 1 && p->kernel[0] == 1 && !p->padding[0];
    plain = plain && p->out[2] <= 512;
    for (int d = 1; d < 3; d++)
        plain = plain && p->kernel[d] == 2 && p->stride[d] == 2 && p->dilation[d] == 1 && !p->padding[d] &&
                2 * p->out[d] <= p->in[d];
    return plain;
}
