/* pool.h: the geometry of pooling, as its primitives derive it from their operands: one plane of up to three
 * dimensions; fewer are preceded by dimensions of size one. */
#pragma once

#include "core/tensor.h"

typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    int dims;               /* how many of them there are */
    bool adaptive;          /* the windows divide the plane evenly; kernel, stride and padding do not matter */
    bool count_include_pad; /* an average's divisor counts the border */
    int64_t divisor;        /* or is this, if not 0 */
} tp_pool_plan;

/* What a window covers along one dimension: [begin, end) in steps, and its length with the border. */
typedef struct {
    int64_t begin, end, step, padded;
} tp_pool_range;

TP_INLINE tp_pool_range tp_pool_range_at(const tp_pool_plan *p, int d, int64_t o) {
    tp_pool_range r = {.step = 1};
    if (p->adaptive) {
        r.begin = o * p->in[d] / p->out[d], r.end = ((o + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
        r.padded = r.end - r.begin;
        return r;
    }
    r.step = p->dilation[d];
    r.begin = o * p->stride[d] - p->padding[d];
    r.end = r.begin + (p->kernel[d] - 1) * r.step + 1;
    if (r.end > p->in[d] + p->padding[d]) r.end = p->in[d] + p->padding[d];
    r.padded = r.end - r.begin;
    if (r.begin < 0) r.begin += (r.step - 1 - r.begin) / r.step * r.step;
    if (r.end > p->in[d]) r.end = p->in[d];
    return r;
}

/* How far apart n windows begin that are to fill `room`, the places that a window may begin at but the first. */
TP_INLINE double tp_pool_pace(int64_t room, int64_t n) { return n > 1 ? (double)room / (double)(n - 1) : 0; }

/* Which of a plane's numbers is for dimension d of three, of which the last `dims` are there: those of an image stand
 * backwards, those of a volume forwards, as in PyTorch. */
TP_INLINE int tp_pool_number(int dims, int d) { return dims == 3 ? d : 2 - d; }

/* Where window o of n begins among random ones (Graham 2014, by one number u from [0, 1) and the pace, in the dtype T
 * of what is pooled): the last at the end, none outside, whatever u is. */
#define TP_POOL_BEGIN(T, name)                                                \
    TP_INLINE int64_t name(T u, T pace, int64_t o, int64_t n, int64_t room) { \
        if (o == n - 1) return room;                                          \
        T begin = trunc(((T)o + u) * pace) - trunc(u * pace);                 \
        return !(begin > 0) ? 0 : begin < (T)room ? (int64_t)begin : room;    \
    }

/* What an average over a window divides by. */
TP_INLINE int64_t tp_pool_divisor(const tp_pool_plan *p, tp_pool_range z, tp_pool_range y, tp_pool_range x) {
    if (p->divisor) return p->divisor;
    int64_t n = p->count_include_pad ? z.padded * y.padded * x.padded
                                     : (z.end - z.begin) * (y.end - y.begin) * (x.end - x.begin);
    return n ? n : 1;
}

/* Between the large side of a pooling, its input, and the small one. The lists have a number for each dimension; an
 * empty kernel: adaptive. */
tp_pool_plan tp_pool_plan_of(const tp_tensor *large, const tp_tensor *small, tp_ints kernel, tp_ints stride,
                             tp_ints padding, tp_ints dilation);
/* Whether the windows are of 2x2, side by side. */
bool tp_pool_is_by_two(const tp_pool_plan *p);
