/* pool.c: the primitive pool on the CPU: threads share the planes; the loops over one plane are in pool_loops.c. */
#include "cpu/pool.h"

#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "prim/fault.h"
#include "core/memory.h"

typedef enum { MAX, MAX_BACKWARD, AVERAGE, AVERAGE_BACKWARD } pooling;

typedef struct {
    const tp_pool_plan *plan;
    char *in, *out;
    int64_t *index;
    int64_t item, n_in, n_out;
    int type;
    pooling what;
    bool by_two, looks; /* for signals, within a plane */
} job;

static void run_planes(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    const tp_pool_plan *p = j->plan;
    const tp_pool_kernels *k = tp_cpu.pool;
    for (int64_t i = begin; i < end; i++) {
        char *in = j->in + i * j->n_in * j->item, *out = j->out + i * j->n_out * j->item;
        int64_t *index = j->index ? j->index + i * j->n_out : NULL;
        switch (j->what) {
        case MAX: (j->by_two ? k->max22 : k->max)[j->type](p, in, out, index); break;
        case MAX_BACKWARD: k->max_backward[j->type](p, out, index, in); break;
        case AVERAGE: k->average[j->type](p, in, out); break;
        case AVERAGE_BACKWARD: k->average_backward[j->type](p, out, in); break;
        }
        if (j->looks && tp_error_pending() != TP_NoError) return;
    }
}

/* Between the large side, `in`, and the small one. */
static int run(const tp_pool_plan *p, pooling what, tp_tensor *in, tp_tensor *out, tp_tensor *index) {
    int type = in->dtype == TP_FLOAT32 ? TP_POOL_F32 : in->dtype == TP_FLOAT64 ? TP_POOL_F64 : TP_POOL_I64;
    job j = {.plan = p,
             .in = tp_data(in),
             .out = tp_data(out),
             .index = index ? tp_data(index) : NULL,
             .item = tp_itemsize((tp_dtype)in->dtype),
             .n_in = p->in[0] * p->in[1] * p->in[2],
             .n_out = p->out[0] * p->out[1] * p->out[2],
             .type = type,
             .what = what,
             .by_two = what == MAX && tp_pool_is_by_two(p)};
    int64_t window = p->adaptive || what == MAX_BACKWARD ? 1 : p->kernel[0] * p->kernel[1] * p->kernel[2];
    int64_t work = j.n_out * window + j.n_in, planes = in->numel / j.n_in;
    j.looks = work >= 1 << 20;
    bool long_work = (double)work * (double)planes > 1e6;
    return tp_parallel_unlocked(long_work, planes, 1 + TP_GRAIN / work, run_planes, &j);
}

int pool_max_cpu(tp_tensor *x, tp_ints kernel, tp_ints stride, tp_ints padding, tp_ints dilation, tp_tensor *out,
                 tp_tensor *at) {
    tp_pool_plan p = tp_pool_plan_of(x, out, kernel, stride, padding, dilation);
    return run(&p, MAX, x, out, at);
}

int pool_max_backward_cpu(tp_tensor *grad, tp_tensor *at, tp_ints kernel, tp_ints stride, tp_ints padding,
                          tp_ints dilation, int64_t fault, tp_tensor *out) {
    tp_pool_plan p = tp_pool_plan_of(out, grad, kernel, stride, padding, dilation);
    const int64_t *v = tp_data(at), plane = p.in[0] * p.in[1] * p.in[2];
    for (int64_t i = 0; i < at->numel; i++)
        if ((uint64_t)v[i] >= (uint64_t)plane) return tp_raise_fault((int)fault, v[i], 0, plane, "");
    return run(&p, MAX_BACKWARD, out, grad, at);
}

static tp_pool_plan average_plan(const tp_tensor *large, const tp_tensor *small, tp_ints kernel, tp_ints stride,
                                 tp_ints padding, bool pad_counts, int64_t divisor) {
    tp_pool_plan p = tp_pool_plan_of(large, small, kernel, stride, padding, TP_INTS(1, 1, 1));
    p.count_include_pad = pad_counts;
    p.divisor = divisor;
    return p;
}

int pool_average_cpu(tp_tensor *x, tp_ints kernel, tp_ints stride, tp_ints padding, bool pad_counts, int64_t divisor,
                     tp_tensor *out) {
    tp_pool_plan p = average_plan(x, out, kernel, stride, padding, pad_counts, divisor);
    return run(&p, AVERAGE, x, out, NULL);
}

int pool_average_backward_cpu(tp_tensor *grad, tp_ints kernel, tp_ints stride, tp_ints padding, bool pad_counts,
                              int64_t divisor, tp_tensor *out) {
    tp_pool_plan p = average_plan(out, grad, kernel, stride, padding, pad_counts, divisor);
    return run(&p, AVERAGE_BACKWARD, out, grad, NULL);
}
