/* pool.h: 2-dimensional pooling of one plane. */
#pragma once

#include "core/tensor.h"

typedef struct {
    int64_t in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
    bool adaptive;          /* the windows divide the plane evenly; kernel, stride and padding do not matter */
    bool count_include_pad; /* an average's divisor counts the border */
    int64_t divisor;        /* or is this, if not 0 */
} tp_pool_plan;

typedef struct {
    int64_t y0, y1, x0, x1, divisor;
} tp_pool_window;

enum { TP_POOL_F32, TP_POOL_F64, TP_POOL_I64, TP_POOL_TYPES };

typedef struct {
    void (*max[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out, int64_t *index);
    void (*max22[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out, int64_t *index);
    void (*max_backward[TP_POOL_TYPES])(const tp_pool_plan *p, const void *grad, const int64_t *index, void *in);
    /* Forward, or with `backward` from out (the gradient) to in. */
    void (*average[TP_POOL_TYPES])(const tp_pool_plan *p, const void *in, void *out, bool backward);
} tp_pool_kernels;

/* The clipped window of an output, and what an average divides by. */
TP_INLINE tp_pool_window tp_pool_window_at(const tp_pool_plan *p, int64_t oy, int64_t ox) {
    tp_pool_window w;
    if (p->adaptive) {
        w.y0 = oy * p->in[0] / p->out[0], w.y1 = ((oy + 1) * p->in[0] + p->out[0] - 1) / p->out[0];
        w.x0 = ox * p->in[1] / p->out[1], w.x1 = ((ox + 1) * p->in[1] + p->out[1] - 1) / p->out[1];
        w.divisor = (w.y1 - w.y0) * (w.x1 - w.x0);
        return w;
    }
    w.y0 = oy * p->stride[0] - p->padding[0], w.x0 = ox * p->stride[1] - p->padding[1];
    w.y1 = w.y0 + p->kernel[0], w.x1 = w.x0 + p->kernel[1];
    if (w.y1 > p->in[0] + p->padding[0]) w.y1 = p->in[0] + p->padding[0];
    if (w.x1 > p->in[1] + p->padding[1]) w.x1 = p->in[1] + p->padding[1];
    int64_t with_border = (w.y1 - w.y0) * (w.x1 - w.x0);
    if (w.y0 < 0) w.y0 = 0;
    if (w.x0 < 0) w.x0 = 0;
    if (w.y1 > p->in[0]) w.y1 = p->in[0];
    if (w.x1 > p->in[1]) w.x1 = p->in[1];
    int64_t inside = (w.y1 - w.y0) * (w.x1 - w.x0);
    w.divisor = p->divisor ? p->divisor : p->count_include_pad ? with_border : inside;
    if (w.divisor == 0) w.divisor = 1;
    return w;
}
