/* pool.h: pooling of one plane on the CPU. */
#pragma once

#include "prim/pool.h"

enum { TP_POOL_F32, TP_POOL_F64, TP_POOL_I64, TP_POOL_TYPES };

typedef struct {
    void (*max[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out, int64_t *index);
    /* Windows of 2x2 side by side. */
    void (*max22[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out, int64_t *index);
    void (*max_backward[TP_POOL_TYPES])(const tp_pool_plan *p, const void *grad, const int64_t *index, void *in);
    void (*average[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out);
    void (*average_backward[TP_POOL_TYPES])(const tp_pool_plan *p, const void *grad, void *in);
} tp_pool_kernels;
