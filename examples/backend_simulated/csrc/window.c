/* window.c: pooling and fold: sums, averages and maxima over windows of planes. */
#include "device.h"

#include <math.h>
#include <string.h>

/* ---- pooling ---- */

typedef struct {
    int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
    bool adaptive, pad_counts;
    int64_t divisor, planes;
} plan;

/* Between the large side of a pooling and its small one; fewer than three dimensions are preceded by ones. */
static plan plan_of(const view *large, const view *small, const argument *kernel, const argument *stride,
                    const argument *padding, const argument *dilation) {
    plan p = {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}, kernel->n == 0, false, 0, 0};
    int n = (int)stride->n;
    for (int d = 3 - n, i = 0; d < 3; d++, i++) {
        p.in[d] = large->sizes[large->ndim - n + i], p.out[d] = small->sizes[small->ndim - n + i];
        if (p.adaptive) continue;
        p.kernel[d] = kernel->ints[i], p.stride[d] = stride->ints[i], p.padding[d] = padding->ints[i];
        if (dilation) p.dilation[d] = dilation->ints[i];
    }
    p.planes = large->numel / (p.in[0] * p.in[1] * p.in[2]);
    return p;
}

/* What a window covers along a dimension: [begin, end) in steps, and its length with the border. */
typedef struct {
    int64_t begin, end, step, padded;
} range;

static range range_at(const plan *p, int d, int64_t o) {
    range r = {.step = 1};
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
    while (r.begin < 0) r.begin += r.step;
    if (r.end > p->in[d]) r.end = p->in[d];
    return r;
}

/* What is done with a window: its element in the small side, the first one of its plane in the large side, ranges. */
typedef void (*visitor)(const plan *p, const argument *a, int64_t small, int64_t plane, const range r[3]);

static void each_window(const plan *p, const argument *a, visitor visit) {
    int64_t windows = p->out[0] * p->out[1] * p->out[2];
    for (int64_t i = 0; i < p->planes * windows; i++) {
        int64_t o = i % windows;
        range r[3] = {range_at(p, 0, o / p->out[2] / p->out[1]), range_at(p, 1, o / p->out[2] % p->out[1]),
                      range_at(p, 2, o % p->out[2])};
        visit(p, a, i, i / windows * p->in[0] * p->in[1] * p->in[2], r);
    }
}
#define EACH_PLACE(p, r, at)                                               \
    for (int64_t z = r[0].begin; z < r[0].end; z += r[0].step)             \
        for (int64_t y = r[1].begin; y < r[1].end; y += r[1].step)         \
            for (int64_t x = r[2].begin, at; x < r[2].end; x += r[2].step) \
                if (at = (z * p->in[1] + y) * p->in[2] + x, true)

/* pool.max(Tensor x, int[] kernel, int[] stride, int[] padding, int[] dilation, *, Tensor(a!) out, Tensor(b!) at) -> ()
 */
static void max_of_window(const plan *p, const argument *a, int64_t small, int64_t plane, const range r[3]) {
    const view *x_ = a[0].tensors;
    tp_dtype d = x_->dtype;
    int64_t where = (r[0].begin * p->in[1] + r[1].begin) * p->in[2] + r[2].begin;
    number best = is_floating(d) ? (number){.f = -INFINITY} : (number){.i = INT64_MIN};
    EACH_PLACE(p, r, at_) {
        number v = get(x_, plane + at_);
        bool first_nan = is_nan(v, d);
        if (first_nan || (!is_nan(best, d) && compared(v, best, d) > 0)) best = v, where = at_;
    }
    put(a[5].tensors, small, best);
    put(a[6].tensors, small, (number){.i = where});
}
static void pool_max(const argument *a) {
    plan p = plan_of(a[0].tensors, a[5].tensors, &a[1], &a[2], &a[3], &a[4]);
    each_window(&p, a, max_of_window);
}

/* pool.fractional(Tensor x, Tensor samples, int[] kernel, *, Tensor(a!) out, Tensor(b!) at) -> () */
static int64_t begin_of(const plan *p, const argument *a, int64_t plane, int d, int64_t o) {
    int64_t room = p->in[d] - p->kernel[d], dims = a[2].n, n = p->out[d];
    if (d < 3 - dims) return 0;
    if (o == n - 1) return room;
    double u = get(a[1].tensors, plane * dims + (dims == 3 ? d : 2 - d)).f, pace = (double)room / (double)(n - 1),
           first, second;
    if (a[0].tensors->dtype == TP_FLOAT64) first = ((double)o + u) * pace, second = u * pace;
    else first = ((float)o + (float)u) * (float)pace, second = (float)u * (float)pace;
    double begin = trunc(first) - trunc(second);
    return !(begin > 0) ? 0 : begin < (double)room ? (int64_t)begin : room;
}
static void pool_fractional(const argument *a) {
    int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};
    const argument one = {.n = a[2].n, .ints = ones}, zero = {.n = a[2].n, .ints = zeros};
    const argument as_max[7] = {a[0], {0}, {0}, {0}, {0}, a[3], a[4]};
    plan p = plan_of(a[0].tensors, a[3].tensors, &a[2], &one, &zero, &one);
    int64_t windows = p.out[0] * p.out[1] * p.out[2];
    for (int64_t i = 0; i < p.planes * windows; i++) {
        int64_t plane = i / windows,
                o[3] = {i % windows / p.out[2] / p.out[1], i % windows / p.out[2] % p.out[1], i % windows % p.out[2]};
        range r[3];
        for (int d = 0; d < 3; d++) {
            int64_t begin = begin_of(&p, a, plane, d, o[d]);
            r[d] = (range){begin, begin + p.kernel[d], 1, p.kernel[d]};
        }
        max_of_window(&p, as_max, i, plane * p.in[0] * p.in[1] * p.in[2], r);
    }
}

static void clear(const view *out) {
    for (int64_t i = 0; i < out->numel; i++) put(out, i, (number){.c = 0});
}
static void add_to(const view *out, int64_t i, number x) { put(out, i, plus(get(out, i), x, out->dtype)); }

/* pool.max_backward(Tensor grad, Tensor at, int[] kernel, int[] stride, int[] padding, int[] dilation, int fault, *,
 * Tensor(a!) out) -> () */
static void pool_max_backward(const argument *a) {
    const view *grad = a[0].tensors, *out = a[7].tensors;
    plan p = plan_of(out, grad, &a[2], &a[3], &a[4], &a[5]);
    int64_t size = p.in[0] * p.in[1] * p.in[2], windows = p.out[0] * p.out[1] * p.out[2];
    clear(out);
    for (int64_t i = 0; i < grad->numel; i++) {
        int64_t to = place(get_int(a[1].tensors, i), size, false, a[6].i, 0);
        if (to >= 0) add_to(out, i / windows * size + to, get(grad, i));
    }
}

static number divided(number x, tp_dtype d, const plan *p, const range r[3]) {
    int64_t n = p->divisor      ? p->divisor
                : p->pad_counts ? r[0].padded * r[1].padded * r[2].padded
                                : (r[0].end - r[0].begin) * (r[1].end - r[1].begin) * (r[2].end - r[2].begin);
    if (!n) n = 1;
    return is_floating(d) ? (number){.f = x.f / (double)n} : (number){.i = x.i / n};
}

/* pool.average(Tensor x, int[] kernel, int[] stride, int[] padding, bool pad_counts, int divisor, *, Tensor(a!) out)
 * -> () */
static void average_of_window(const plan *p, const argument *a, int64_t small, int64_t plane, const range r[3]) {
    tp_dtype d = a[0].tensors->dtype;
    number sum = {.c = 0};
    EACH_PLACE(p, r, at_) sum = plus(sum, get(a[0].tensors, plane + at_), d);
    put(a[6].tensors, small, divided(sum, d, p, r));
}
static void pool_average(const argument *a) {
    plan p = plan_of(a[0].tensors, a[6].tensors, &a[1], &a[2], &a[3], NULL);
    p.pad_counts = a[4].b, p.divisor = a[5].i;
    each_window(&p, a, average_of_window);
}

/* pool.average_backward(Tensor grad, int[] kernel, int[] stride, int[] padding, bool pad_counts, int divisor, *,
 * Tensor(a!) out) -> () */
static void share_of_window(const plan *p, const argument *a, int64_t small, int64_t plane, const range r[3]) {
    number share = divided(get(a[0].tensors, small), a[0].tensors->dtype, p, r);
    EACH_PLACE(p, r, at_) add_to(a[6].tensors, plane + at_, share);
}
static void pool_average_backward(const argument *a) {
    plan p = plan_of(a[6].tensors, a[0].tensors, &a[1], &a[2], &a[3], NULL);
    p.pad_counts = a[4].b, p.divisor = a[5].i;
    clear(a[6].tensors);
    each_window(&p, a, share_of_window);
}

/* ---- fold ---- */

/* fold(Tensor columns, int[2] kernel, int[2] dilation, int[2] padding, int[2] stride, *, Tensor(a!) out) -> () */
static void fold(const argument *a) {
    const view *columns = a[0].tensors, *out = a[5].tensors;
    const int64_t *kernel = a[1].ints, *dilation = a[2].ints, *padding = a[3].ints, *stride = a[4].ints;
    int64_t height = out->sizes[2], width = out->sizes[3];
    int64_t across_ = (width + 2 * padding[1] - dilation[1] * (kernel[1] - 1) - 1) / stride[1] + 1;
    int64_t windows = columns->sizes[2], taps = kernel[0] * kernel[1];
    clear(out);
    for (int64_t i = 0; i < columns->numel; i++) {
        int64_t window = i % windows, tap = i / windows % taps, plane = i / windows / taps;
        int64_t y = window / across_ * stride[0] - padding[0] + tap / kernel[1] * dilation[0];
        int64_t x = window % across_ * stride[1] - padding[1] + tap % kernel[1] * dilation[1];
        if (y < 0 || y >= height || x < 0 || x >= width) continue;
        add_to(out, (plane * height + y) * width + x, get(columns, i));
    }
}

PRIMITIVES({"pool.fractional", pool_fractional}, {"pool.max", pool_max}, {"pool.max_backward", pool_max_backward},
           {"pool.average", pool_average}, {"pool.average_backward", pool_average_backward}, {"fold", fold})
