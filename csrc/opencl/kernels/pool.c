/* pool.c: pooling; the kernels are in pool.cl. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/pool.h"

#include <string.h>

typedef enum { MAX, MAX_BACKWARD, AVERAGE, AVERAGE_BACKWARD } pooling;

#define BAND 16 /* as in pool.cl */

enum { LARGEST, LARGEST_BY_TWO, TO_LARGEST, SCATTER_LARGEST, MEAN, TO_MEAN, FRACTIONAL };
static const char *const kernels[] = {"largest", "largest_by_two", "to_largest", "scatter_largest",
                                      "average", "to_average",     "fractional"};

typedef struct {
    uint8_t dtype, kernel;
    bool adaptive;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    bool whole = dtype == TP_INT64;
    tp_text_add(s, "#define T %s\n#define WHOLE %d\n#define LOWEST %s\n#define IS_NAN(v) %s\n", tp_cl_type(dtype),
                d->is_cpu, whole ? "LONG_MIN" : "(-INFINITY)", whole ? "false" : "((v) != (v))");
    tp_text_add(s, "#define KERNEL_%s\n", kernels[v->kernel]);
    const char *type = dtype == TP_FLOAT64 ? "double" : "float";
    if (d->is_cpu && !whole)
        tp_text_add(s, "#define EIGHT %s8\n#define SIXTEEN %s16\n#define MASK %s8\n", type, type,
                    dtype == TP_FLOAT64 ? "long" : "int");
    if (v->adaptive) tp_text_add(s, "#define ADAPTIVE\n");
}

static const tp_cl_family family = {"pool.cl", define, .size = TP_CL_SIZE(variant)};

static void pass_geometry(tp_cl_call *c, const tp_pool_plan *p, int64_t planes) {
    const int64_t *const triples[] = {p->in, p->out, p->kernel, p->stride, p->padding, p->dilation};
    int64_t words[21] = {planes};
    for (int i = 0; i < 6; i++) memcpy(words + 1 + 3 * i, triples[i], 3 * sizeof *words);
    words[19] = p->count_include_pad;
    words[20] = p->divisor;
    tp_cl_pass(c, sizeof words, words);
}

static int kernel_of(const tp_cl_device *d, pooling what, bool by_two) {
    switch (what) {
    case MAX: return by_two ? LARGEST_BY_TWO : LARGEST;
    case MAX_BACKWARD: return d->is_cpu ? SCATTER_LARGEST : TO_LARGEST;
    case AVERAGE: return MEAN;
    default: return TO_MEAN;
    }
}

/* Between the large side, `in`, and the small one. */
static int run(const tp_pool_plan *p, pooling what, tp_tensor *in, tp_tensor *out, tp_tensor *index) {
    bool by_two = what == MAX && tp_pool_is_by_two(p);
    tp_tensor *const tensors[] = {in, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d) return -1;
    bool backward = what == MAX_BACKWARD || what == AVERAGE_BACKWARD;
    tp_tensor *made = backward ? in : out;
    const variant v = {in->dtype, (uint8_t)kernel_of(d, what, by_two), p->adaptive};
    int64_t planes = in->numel / (p->in[0] * p->in[1] * p->in[2]), rows = made->numel / (backward ? p->in : p->out)[2];
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernels[v.kernel], &v));
    pass_geometry(&c, p, planes);
    tp_cl_pass_tensor(&c, in);
    tp_cl_pass_tensor(&c, out);
    if (index) tp_cl_pass_tensor(&c, index);
    if (what == MAX_BACKWARD && d->is_cpu) return tp_cl_run(&c, planes, 16);
    if (by_two && d->is_cpu) return tp_cl_run(&c, planes * ((p->out[1] + BAND - 1) / BAND), 1);
    return tp_cl_run(&c, d->is_cpu ? rows : made->numel, d->is_cpu ? 16 : 64);
}

/* The same kernel with places that come from numbers. */
int pool_fractional_opencl(tp_tensor *x, tp_tensor *samples, tp_ints kernel, tp_tensor *out, tp_tensor *at) {
    static const int64_t ones[] = {1, 1, 1}, none[] = {0, 0, 0};
    tp_ints one = {ones, kernel.size}, zero = {none, kernel.size};
    tp_pool_plan p = tp_pool_plan_of(x, out, kernel, one, zero, one);
    tp_tensor *const tensors[] = {x, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d) return -1;
    const variant v = {x->dtype, FRACTIONAL, false};
    double pace[3];
    float narrow[3];
    for (int i = 0; i < 3; i++) narrow[i] = (float)(pace[i] = tp_pool_pace(p.in[i] - p.kernel[i], p.out[i]));
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernels[v.kernel], &v));
    pass_geometry(&c, &p, x->numel / (p.in[0] * p.in[1] * p.in[2]));
    tp_cl_pass_tensor(&c, x);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, at);
    tp_cl_pass_tensor(&c, samples);
    bool wide = x->dtype == TP_FLOAT64;
    tp_cl_pass(&c, wide ? sizeof pace : sizeof narrow, wide ? (const void *)pace : narrow);
    tp_cl_pass(&c, sizeof(int64_t), &kernel.size);
    return tp_cl_run(&c, d->is_cpu ? out->numel / p.out[2] : out->numel, d->is_cpu ? 16 : 64);
}

int pool_max_opencl(tp_tensor *x, tp_ints kernel, tp_ints stride, tp_ints padding, tp_ints dilation, tp_tensor *out,
                    tp_tensor *at) {
    tp_pool_plan p = tp_pool_plan_of(x, out, kernel, stride, padding, dilation);
    return run(&p, MAX, x, out, at);
}

/* Places outside of the plane are passed over, so that nothing waits for them. */
int pool_max_backward_opencl(tp_tensor *grad, tp_tensor *at, tp_ints kernel, tp_ints stride, tp_ints padding,
                             tp_ints dilation, int64_t fault TP_UNUSED, tp_tensor *out) {
    tp_pool_plan p = tp_pool_plan_of(out, grad, kernel, stride, padding, dilation);
    return run(&p, MAX_BACKWARD, out, grad, at);
}

static tp_pool_plan average_plan(const tp_tensor *large, const tp_tensor *small, tp_ints kernel, tp_ints stride,
                                 tp_ints padding, bool pad_counts, int64_t divisor) {
    tp_pool_plan p = tp_pool_plan_of(large, small, kernel, stride, padding, TP_INTS(1, 1, 1));
    p.count_include_pad = pad_counts;
    p.divisor = divisor;
    return p;
}

int pool_average_opencl(tp_tensor *x, tp_ints kernel, tp_ints stride, tp_ints padding, bool pad_counts, int64_t divisor,
                        tp_tensor *out) {
    tp_pool_plan p = average_plan(x, out, kernel, stride, padding, pad_counts, divisor);
    return run(&p, AVERAGE, x, out, NULL);
}

int pool_average_backward_opencl(tp_tensor *grad, tp_ints kernel, tp_ints stride, tp_ints padding, bool pad_counts,
                                 int64_t divisor, tp_tensor *out) {
    tp_pool_plan p = average_plan(out, grad, kernel, stride, padding, pad_counts, divisor);
    return run(&p, AVERAGE_BACKWARD, out, grad, NULL);
}
