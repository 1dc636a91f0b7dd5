/* optimizer.c: steps of optimizers, a launch for each parameter; the kernel is in optimizer.cl.
 *
 * Values on the device are read there (counts of steps, the scale of gradients, whether one is infinite), so that
 * nothing waits; values on the host come as numbers. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/plain.h"

#include <math.h>

#define LISTS 5

typedef enum { SGD, ADAM, ADAGRAD } step_rule;

/* The words of the kernel's `settings`. `second` is Adagrad's decay of the rate; the logarithms are of Adam's betas. */
typedef struct {
    double sign, shrink, decay, lr, first, beta, second, eps, log1, log2;
} settings;
#define SETTINGS (sizeof(settings) / sizeof(double))

enum { NESTEROV = 1, STARTS = 2, SCALED = 4, GUARDED = 8 };

typedef struct {
    uint8_t dtype, rule, lists, flags; /* lists: a bit for each that there is */
} variant;

static int each_on(const tp_cl_device *d) { return d->is_cpu ? 1024 : 4; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    static const char *const rules[] = {"sgd", "adam", "adagrad"};
    static const char *const flags[] = {"NESTEROV", "STARTS", "SCALED", "GUARDED"};
    const variant *v = given;
    tp_dtype compute = tp_compute_dtype((tp_dtype)v->dtype);
    tp_cl_define(s, "X", (tp_dtype)v->dtype, compute);
    tp_text_add(s, "#define T %s\n#define RULE_%s\n#define EACH %d\n", tp_cl_type(compute), rules[v->rule], each_on(d));
    for (int k = 2; k < LISTS; k++)
        if (v->lists & 1 << k) tp_text_add(s, "#define HAS_%c\n", 'a' + k - 2);
    for (int k = 0; k < 4; k++)
        if (v->flags & 1 << k) tp_text_add(s, "#define %s\n", flags[k]);
}

static const tp_cl_family family = {"optimizer.cl", define, .size = TP_CL_SIZE(variant)};

typedef struct {
    step_rule rule;
    tp_tensors lists[LISTS], steps; /* empty: not there */
    settings settings;
    uint8_t flags;
    tp_tensor *grad_scale, *found_inf;
} step_call;

static void pass_settings(tp_cl_call *c, const settings *s, bool wide) {
    const double *values = (const double *)s;
    float narrow[SETTINGS];
    for (size_t i = 0; i < SETTINGS; i++) narrow[i] = (float)values[i];
    if (wide) tp_cl_pass(c, sizeof *s, s);
    else tp_cl_pass(c, sizeof narrow, narrow);
}

/* A tensor of one element, or NULL; made float32 where it is on the device, read where it is not. */
typedef struct {
    tp_tensor *there; /* owned */
    float value;
} number;

static void free_number(number *n) { tp_release(n->there); }

static int take_number(number *n, tp_tensor *t, const tp_tensor *param) {
    tp_scalar value;
    if (!t) return 0;
    if (tp_device_equal(t->device, param->device)) return (n->there = tp_plain(t, TP_FLOAT32)) ? 0 : -1;
    if (tp_read_number(t, &value) < 0) return -1;
    n->value = (float)tp_scalar_double(&value);
    return 0;
}

static void pass_number(tp_cl_call *c, const number *n, const tp_tensor *param) {
    tp_cl_pass_tensor(c, n->there ? n->there : param);
    tp_cl_pass_float(c, n->value);
    tp_cl_pass_int(c, n->there != NULL);
}

static int run_one(tp_cl_device *d, const step_call *call, int64_t i, const number *scale, const number *found) {
    tp_tensor *param = call->lists[0].data[i];
    TP_CLEANUP(free_number) number count = {0};
    if (call->steps.size > 0 && take_number(&count, call->steps.data[i], param) < 0) return -1;
    variant v = {param->dtype, (uint8_t)call->rule, 0, call->flags};
    for (int k = 0; k < LISTS; k++) v.lists |= (uint8_t)((call->lists[k].size > 0) << k);
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "advance", &v));
    pass_settings(&c, &call->settings, param->dtype == TP_FLOAT64);
    for (int k = 0; k < LISTS; k++) tp_cl_pass_tensor(&c, v.lists & 1 << k ? call->lists[k].data[i] : param);
    pass_number(&c, &count, param);
    pass_number(&c, scale, param);
    pass_number(&c, found, param);
    tp_cl_pass_long(&c, param->numel);
    int each = each_on(d);
    return tp_cl_run(&c, (param->numel + each - 1) / each, d->is_cpu ? 1 : 64);
}

static int run_step(step_call *call) {
    const tp_tensors params = call->lists[0];
    TP_CLEANUP(free_number) number scale = {0};
    TP_CLEANUP(free_number) number found = {0};
    tp_cl_device *d = tp_cl_device_of(params.data, 1);
    if (!d || take_number(&scale, call->grad_scale, params.data[0]) < 0 ||
        take_number(&found, call->found_inf, params.data[0]) < 0)
        return -1;
    call->flags |= (uint8_t)((call->grad_scale ? SCALED : 0) | (call->found_inf ? GUARDED : 0));
    for (int64_t i = 0; i < params.size; i++)
        if (params.data[i]->numel && run_one(d, call, i, &scale, &found) < 0) return -1;
    return 0;
}

int step_sgd_opencl(tp_tensors params, tp_tensors grads, tp_tensors momenta, double lr, double weight_decay,
                    double momentum, double dampening, bool nesterov, bool maximize, bool first, tp_tensor *grad_scale,
                    tp_tensor *found_inf) {
    return run_step(&(step_call){.rule = SGD,
                                 .lists = {params, grads, momenta},
                                 .settings = {.sign = maximize ? -1 : 1,
                                              .decay = weight_decay,
                                              .lr = lr,
                                              .first = first ? 1 : 1 - dampening,
                                              .beta = momentum},
                                 .flags = (uint8_t)((nesterov ? NESTEROV : 0) | (first ? STARTS : 0)),
                                 .grad_scale = grad_scale,
                                 .found_inf = found_inf});
}

int step_adam_opencl(tp_tensors params, tp_tensors grads, tp_tensors means, tp_tensors squares, tp_tensors largest,
                     tp_tensors steps, double lr, double beta1, double beta2, double weight_decay, double eps,
                     bool decoupled, bool maximize, tp_tensor *grad_scale, tp_tensor *found_inf) {
    return run_step(&(step_call){.rule = ADAM,
                                 .lists = {params, grads, means, squares, largest},
                                 .steps = steps,
                                 .settings = {.sign = maximize ? -1 : 1,
                                              .shrink = decoupled ? 1 - lr * weight_decay : 1,
                                              .decay = decoupled ? 0 : weight_decay,
                                              .lr = lr,
                                              .first = 1 - beta1,
                                              .beta = beta2,
                                              .second = 1 - beta2,
                                              .eps = eps,
                                              .log1 = log(beta1),
                                              .log2 = log(beta2)},
                                 .grad_scale = grad_scale,
                                 .found_inf = found_inf});
}

int step_adagrad_opencl(tp_tensors params, tp_tensors grads, tp_tensors sums, tp_tensors steps, double lr,
                        double lr_decay, double weight_decay, double eps, bool maximize, tp_tensor *grad_scale,
                        tp_tensor *found_inf) {
    return run_step(&(step_call){
        .rule = ADAGRAD,
        .lists = {params, grads, sums},
        .steps = steps,
        .settings = {.sign = maximize ? -1 : 1, .decay = weight_decay, .lr = lr, .second = lr_decay, .eps = eps},
        .grad_scale = grad_scale,
        .found_inf = found_inf});
}
