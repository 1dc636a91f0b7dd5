/* product.c: matrix products, and convolutions as sums over windows. */
#include "device.h"

#include <stdlib.h>

/* ---- products ---- */

/* product(Tensor a, Tensor b, Scalar alpha, Scalar beta, *, Tensor(a!) out) -> () */
static void product(const argument *a) {
    const view *x = a[0].tensors, *y = a[1].tensors, *out = a[4].tensors;
    tp_dtype d = compute_of(out->dtype);
    int64_t rows = out->sizes[out->ndim - 2], columns = out->sizes[out->ndim - 1], inner = x->sizes[x->ndim - 1];
    number alpha = number_of(a[2].scalars[0], d), beta = number_of(a[3].scalars[0], d);
    for (int64_t i = 0; i < out->numel; i++) {
        int64_t batch = i / columns / rows, r = i / columns % rows, c = i % columns;
        number sum = {.c = 0};
        for (int64_t k = 0; k < inner; k++) {
            number p = get(x, (batch * rows + r) * inner + k), q = get(y, (batch * inner + k) * columns + c);
            sum = plus(sum, times(p, q, d), d);
        }
        sum = times(alpha, sum, d);
        if (!is_zero(beta, d)) sum = plus(sum, times(beta, get(out, i), d), d);
        put(out, i, converted(narrowed(sum, d), d, out->dtype));
    }
}

/* ---- convolutions ---- */

/* Between a large side, the input, and a small one, the result; fewer than three dimensions are preceded by ones. */
typedef struct {
    int64_t batch, groups, in_channels, out_channels; /* channels of a group */
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} plan;

static plan plan_of(const view *large, const view *weight, const view *small, const argument *lists, int64_t groups) {
    plan p = {large->sizes[0], groups,    weight->sizes[1], weight->sizes[0] / groups, {1, 1, 1}, {1, 1, 1}, {1, 1, 1},
              {1, 1, 1},       {0, 0, 0}, {1, 1, 1}};
    for (int d = 5 - weight->ndim, i = 0; d < 3; d++, i++) {
        p.in[d] = large->sizes[i + 2], p.out[d] = small->sizes[i + 2], p.kernel[d] = weight->sizes[i + 2];
        p.stride[d] = lists[0].ints[i], p.padding[d] = lists[1].ints[i], p.dilation[d] = lists[2].ints[i];
    }
    return p;
}

/* Splits a number into places of an array of these sizes. */
static void split(int64_t i, const int64_t sizes[3], int64_t at[3]) {
    for (int d = 2; d >= 0; d--) at[d] = i % sizes[d], i /= sizes[d];
}
static int64_t area(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

/* Calls `visit` for each pair of an element of the small side and one of the large side that meet, and the weight they
 * meet by: their numbers in contiguous tensors. */
typedef struct {
    const view *large, *small, *weight;
    number *sums; /* of what is computed */
    tp_dtype d;
} convolution;
typedef void (*visitor)(const convolution *c, int64_t large, int64_t small, int64_t weight);

static void each_pair(const plan *p, const convolution *c, visitor visit) {
    int64_t windows = area(p->out), taps = area(p->kernel), out_channels = p->groups * p->out_channels;
    for (int64_t o = 0; o < p->batch * out_channels * windows; o++) {
        int64_t image = o / windows / out_channels, channel = o / windows % out_channels, at[3];
        int64_t first = channel / p->out_channels * p->in_channels;
        split(o % windows, p->out, at);
        for (int64_t k = 0; k < p->in_channels * taps; k++) {
            int64_t tap[3], place = 0;
            bool inside = true;
            split(k % taps, p->kernel, tap);
            for (int d = 0; d < 3; d++) {
                int64_t x = at[d] * p->stride[d] - p->padding[d] + tap[d] * p->dilation[d];
                inside = inside && x >= 0 && x < p->in[d];
                place = place * p->in[d] + x;
            }
            int64_t plane = image * p->groups * p->in_channels + first + k / taps;
            if (inside) visit(c, plane * area(p->in) + place, o, channel * p->in_channels * taps + k);
        }
    }
}

static void to_small(const convolution *c, int64_t large, int64_t small, int64_t weight) {
    c->sums[small] = plus(c->sums[small], times(get(c->large, large), get(c->weight, weight), c->d), c->d);
}
static void to_large(const convolution *c, int64_t large, int64_t small, int64_t weight) {
    c->sums[large] = plus(c->sums[large], times(get(c->small, small), get(c->weight, weight), c->d), c->d);
}
static void to_weight(const convolution *c, int64_t large, int64_t small, int64_t weight) {
    c->sums[weight] = plus(c->sums[weight], times(get(c->large, large), get(c->small, small), c->d), c->d);
}

static void run(const plan *p, convolution c, visitor visit, const view *out, const view *bias) {
    c.sums = calloc((size_t)out->numel, sizeof *c.sums);
    if (!c.sums) return;
    each_pair(p, &c, visit);
    int64_t plane = out->ndim > 2 ? out->numel / out->sizes[0] / out->sizes[1] : 1;
    for (int64_t i = 0; i < out->numel; i++) {
        if (bias) c.sums[i] = plus(c.sums[i], get(bias, i / plane % out->sizes[1]), c.d);
        put(out, i, narrowed(c.sums[i], c.d));
    }
    free(c.sums);
}

/* convolution.forward(Tensor x, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups,
 * *, Tensor(a!) out) -> () */
static void forward(const argument *a) {
    const view *x = a[0].tensors, *weight = a[1].tensors, *out = a[7].tensors;
    plan p = plan_of(x, weight, out, a + 3, a[6].i);
    run(&p, (convolution){x, NULL, weight, NULL, out->dtype}, to_small, out, a[2].n ? a[2].tensors : NULL);
}
/* convolution.data: shaped like it, where x is the small side and out the large one */
static void data(const argument *a) {
    const view *x = a[0].tensors, *weight = a[1].tensors, *out = a[7].tensors;
    plan p = plan_of(out, weight, x, a + 3, a[6].i);
    run(&p, (convolution){NULL, x, weight, NULL, out->dtype}, to_large, out, a[2].n ? a[2].tensors : NULL);
}
/* convolution.weight(Tensor grad, Tensor x, int[] stride, int[] padding, int[] dilation, int groups, *, Tensor(a!) out)
 * -> () */
static void weight(const argument *a) {
    const view *grad = a[0].tensors, *x = a[1].tensors, *out = a[6].tensors;
    plan p = plan_of(x, out, grad, a + 2, a[5].i);
    run(&p, (convolution){x, grad, NULL, NULL, out->dtype}, to_weight, out, NULL);
}

PRIMITIVES({"product", product}, {"convolution.forward", forward}, {"convolution.data", data},
           {"convolution.weight", weight})
