/* norm.c: normalisations; the kernels are in norm.cl. On a CPU device a work-item takes a row, on a GPU a work-group
 * where rows are long enough.
 */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/norm.h"

#define GROUP 128
#define LARGE_GROUP 1024 /* where rows are few and long */
#define COLUMNS 64
#define VECTOR_BYTES 64

typedef enum { FORWARD, BACKWARD, COLUMNS_OF, CHANNELS } norm_kernel;

/* A call of one of the kernels; what is NULL is not there. */
typedef struct {
    tp_norm_rows w;
    bool frozen; /* forward from running_mean and running_var; backward with the variance as rstd */
    int64_t parts;
    double eps, momentum;
    const tp_tensor *input, *grad, *weight, *bias, *mean, *rstd, *running_mean, *running_var, *out, *to_weight,
        *to_bias;
} norm_job;

static const char *const kernels[] = {
    [FORWARD] = "forward", [BACKWARD] = "backward", [COLUMNS_OF] = "columns", [CHANNELS] = "channels"};

typedef struct {
    uint8_t dtype, what;
    uint16_t group;
    bool each, small, about_zero;
    uint8_t rest;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    const char *type = tp_cl_type(dtype), *sum = d->has_fp64 ? "double" : type;
    int w = VECTOR_BYTES / (int)tp_itemsize(dtype);
    tp_text_add(s, "#define KERNEL_%s\n", kernels[v->what]);
    tp_text_add(s, "#define T %s\n#define S %s\n#define GROUP %d\n%s", type, sum, v->group,
                v->each ? "#define EACH\n" : "");
    tp_text_add(s, "#define ABOUT_ZERO %d\n", v->about_zero);
    if (v->group > 1) return tp_text_add(s, "#define index %s\n", v->small ? "uint" : "long");
    tp_text_add(s, "#define W %d\n#define V %s%d\n#define VS %s%d\n#define VLOAD vload%d\n#define VSTORE vstore%d\n", w,
                dtype == TP_FLOAT64 ? "double" : "float", w, d->has_fp64 ? "double" : "float", w, w, w);
    tp_text_add(s, "#define VSTORE_S vstore%d\n#define WIDEN(v) convert_%s%d(v)\n", w, d->has_fp64 ? "double" : "float",
                w);
}

static const tp_cl_family family = {"norm.cl", define, .size = TP_CL_SIZE(variant)};

static void pass_geometry(tp_cl_call *c, const norm_job *j) {
    const tp_norm_rows *w = &j->w;
    const int64_t words[] = {w->rows,   w->runs,    w->length,  w->first,  w->next,
                             w->groups, w->per_row, w->per_run, j->frozen, j->parts};
    tp_cl_pass(c, sizeof words, words);
}

static void pass_number(tp_cl_call *c, double value) {
    if (c->device->has_fp64) tp_cl_pass(c, sizeof value, &value);
    else tp_cl_pass_float(c, (float)value);
}

/* A buffer that the kernel does not look at stands for a tensor that is not there. */
static void pass_or(tp_cl_call *c, const tp_tensor *t, const norm_job *j) {
    tp_cl_pass_tensor(c, t && t->numel ? t : j->input);
}

static void pass_tensors(tp_cl_call *c, norm_kernel what, const norm_job *j) {
    bool forward = what == FORWARD, backward = what == BACKWARD;
    if (!forward) tp_cl_pass_tensor(c, j->grad);
    tp_cl_pass_tensor(c, j->input);
    if (forward || backward) pass_or(c, j->weight, j);
    if (forward) pass_or(c, j->bias, j);
    pass_or(c, j->mean, j);
    pass_or(c, j->rstd, j);
    if (forward) pass_or(c, j->running_mean, j);
    if (forward) pass_or(c, j->running_var, j);
    if (forward || backward) pass_or(c, j->out, j);
    if (!forward) pass_or(c, j->to_weight, j);
    if (!forward) pass_or(c, j->to_bias, j);
    if (forward || backward) pass_number(c, j->eps);
    if (forward) pass_number(c, j->momentum);
    const tp_tensor *const there[] = {j->weight,  j->bias,         j->out,        j->to_weight,
                                      j->to_bias, j->running_mean, j->running_var};
    int has = 0;
    for (int i = 0; i < TP_COUNTOF(there); i++) has |= (there[i] != NULL) << i;
    tp_cl_pass_int(c, has);
}

/* The work-items that share a row. */
static uint16_t group_of(const tp_cl_device *d, const tp_norm_rows *w) {
    int64_t n = w->runs * w->length, group = GROUP, most = (int64_t)d->max_group;
    if (d->is_cpu || n < GROUP / 4) return 1;
    if (w->rows < 8 * (int64_t)d->compute_units)
        while (group * 2 <= most && group < LARGE_GROUP && group * 8 <= n) group *= 2;
    return (uint16_t)group;
}

static int run(norm_kernel what, const norm_job *j) {
    tp_tensor *const tensors[] = {(tp_tensor *)j->input};
    tp_cl_device *d = tp_cl_device_of(tensors, 1);
    if (!d) return -1;
    uint16_t group = group_of(d, &j->w);
    const variant v = {.dtype = j->input->dtype,
                       .what = (uint8_t)what,
                       .group = group,
                       .each = j->w.each != 0,
                       .small = j->w.runs * j->w.length < INT32_MAX,
                       .about_zero = !j->mean && !j->frozen};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernels[what], &v));
    pass_geometry(&c, j);
    pass_tensors(&c, what, j);
    if (what == COLUMNS_OF) {
        int64_t columns = group > 1 ? 1 : COLUMNS;
        return tp_cl_run(&c, (j->w.length + columns - 1) / columns * j->parts, group > 1 ? 64 : 1);
    }
    return tp_cl_run(&c, j->w.rows * group, group > 1 ? (size_t)group : j->w.rows < 64 ? 1 : 4);
}

int norm_forward_opencl(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints rows, double eps, double momentum,
                        tp_tensor *out, tp_tensor *mean, tp_tensor *rstd, tp_tensor *running_mean,
                        tp_tensor *running_var) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .eps = eps,
                        .momentum = momentum,
                        .input = x,
                        .weight = weight,
                        .bias = bias,
                        .mean = mean,
                        .rstd = rstd,
                        .running_mean = running_mean,
                        .running_var = running_var,
                        .out = out};
    return run(FORWARD, &j);
}

int norm_rms_opencl(tp_tensor *x, tp_tensor *weight, tp_ints rows, double eps, tp_tensor *out, tp_tensor *rstd) {
    return norm_forward_opencl(x, weight, NULL, rows, eps, 0, out, NULL, rstd, NULL, NULL);
}

int norm_rms_backward_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *rstd, tp_ints rows,
                             tp_tensor *out) {
    return norm_backward_opencl(grad, x, weight, NULL, rstd, rows, out, NULL, NULL);
}

int norm_frozen_opencl(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_tensor *mean, tp_tensor *var, tp_ints rows,
                       double eps, tp_tensor *out) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .frozen = true,
                        .eps = eps,
                        .input = x,
                        .weight = weight,
                        .bias = bias,
                        .running_mean = mean,
                        .running_var = var,
                        .out = out};
    return run(FORWARD, &j);
}

int norm_backward_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *mean, tp_tensor *rstd,
                         tp_ints rows, tp_tensor *out, tp_tensor *to_weight, tp_tensor *to_bias) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .input = x,
                        .grad = grad,
                        .weight = weight,
                        .mean = mean,
                        .rstd = rstd,
                        .out = out,
                        .to_weight = to_weight,
                        .to_bias = to_bias};
    return run(BACKWARD, &j);
}

int norm_frozen_backward_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *weight, tp_tensor *mean, tp_tensor *var,
                                tp_ints rows, double eps, tp_tensor *out, tp_tensor *to_weight, tp_tensor *to_bias) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .frozen = true,
                        .eps = eps,
                        .input = x,
                        .grad = grad,
                        .weight = weight,
                        .mean = mean,
                        .rstd = var,
                        .out = out,
                        .to_weight = to_weight,
                        .to_bias = to_bias};
    return run(BACKWARD, &j);
}

int norm_columns_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *mean, tp_tensor *rstd, tp_ints rows,
                        tp_tensor *to_weight, tp_tensor *to_bias) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .parts = (to_weight ? to_weight : to_bias)->sizes[0],
                        .input = x,
                        .grad = grad,
                        .mean = mean,
                        .rstd = rstd,
                        .to_weight = to_weight,
                        .to_bias = to_bias};
    return run(COLUMNS_OF, &j);
}

int norm_channels_opencl(tp_tensor *grad, tp_tensor *x, tp_tensor *mean, tp_tensor *rstd, tp_ints rows,
                         tp_tensor *to_weight, tp_tensor *to_bias) {
    const norm_job j = {.w = tp_norm_rows_of(rows),
                        .input = x,
                        .grad = grad,
                        .mean = mean,
                        .rstd = rstd,
                        .to_weight = to_weight,
                        .to_bias = to_bias};
    return run(CHANNELS, &j);
}
