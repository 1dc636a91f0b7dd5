/* optimizer.c: steps of optimizers over lists of tensors; the loops are in optimizer_loops.c.
 *
 * The elements of all parameters count as one range, which the threads share: many small parameters are as fast as one
 * large one. 16-bit floats pass through blocks of float32. */
#include "PrimitiveKernels.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "cpu/run.h"
#include "core/scalar.h"
#include "prim/transfer.h"

#include <math.h>
#include <stdlib.h>

#define BLOCK 512
#define STEP_GRAIN (TP_GRAIN / 4) /* a step is a dozen operations, two of them slow */

typedef struct {
    tp_step_fn loop;
    tp_tensors lists[TP_STEP_TENSORS]; /* empty: not there */
    tp_dtype dtype;
    const tp_step_numbers *numbers; /* by parameter */
    const int64_t *starts;          /* of the parameters in the range of all elements, and the end of it */
} step_job;

static void run_16_bit(const step_job *j, char *const *data, int64_t n, const tp_step_numbers *c) {
    float blocks[TP_STEP_TENSORS][BLOCK];
    const int64_t stride[] = {4, 2}, back[] = {2, 4};
    tp_loop_fn widen = tp_cast_loop(j->dtype, TP_FLOAT32), narrow = tp_cast_loop(TP_FLOAT32, j->dtype);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
        void *wide[TP_STEP_TENSORS] = {NULL};
        for (int k = 0; k < TP_STEP_TENSORS; k++) {
            if (!data[k]) continue;
            wide[k] = blocks[k];
            widen((char *const[]){wide[k], data[k] + 2 * at}, stride, count, NULL);
        }
        j->loop(wide, count, c);
        for (int k = 0; k < TP_STEP_TENSORS; k++)
            if (data[k]) narrow((char *const[]){data[k] + 2 * at, wide[k]}, back, count, NULL);
    }
}

/* Elements [from, to) of parameter i. */
static void run_part(const step_job *j, int64_t i, int64_t from, int64_t to) {
    char *data[TP_STEP_TENSORS];
    int64_t itemsize = tp_itemsize(j->dtype);
    for (int k = 0; k < TP_STEP_TENSORS; k++)
        data[k] = j->lists[k].size > 0 ? (char *)tp_data(j->lists[k].data[i]) + from * itemsize : NULL;
    if (itemsize == 2) run_16_bit(j, data, to - from, &j->numbers[i]);
    else j->loop((void *const *)data, to - from, &j->numbers[i]);
}

static void run_range(int64_t begin, int64_t end, void *context) {
    const step_job *j = context;
    int64_t low = 0, high = j->lists[0].size;
    while (high - low > 1) { /* the last parameter that starts at or before `begin` */
        int64_t middle = (low + high) / 2;
        if (j->starts[middle] <= begin) low = middle;
        else high = middle;
    }
    for (int64_t i = low; begin < end; i++) {
        int64_t stop = j->starts[i + 1] < end ? j->starts[i + 1] : end;
        if (stop > begin) run_part(j, i, begin - j->starts[i], stop - j->starts[i]);
        begin = stop > begin ? stop : begin;
    }
}

static int read_double(const tp_tensor *t, double *value) {
    tp_scalar number;
    if (tp_read_number(t, &number) < 0) return -1;
    *value = tp_scalar_double(&number);
    return 0;
}

/* What the numbers of a parameter are at its step; `context`: the rule's own. */
typedef void (*numbers_fn)(tp_step_numbers *c, double step, const void *context);

typedef struct {
    tp_step_rule rule;
    tp_tensors lists[TP_STEP_TENSORS], steps;
    numbers_fn numbers;
    const void *context;
    bool maximize;
    const tp_tensor *grad_scale, *found_inf;
} step_call;

static int fill_numbers(const step_call *call, double scale, tp_step_numbers *numbers) {
    double step = 0;
    for (int64_t i = 0; i < call->lists[0].size; i++) {
        double before = step;
        if (call->steps.size > 0 && read_double(call->steps.data[i], &step) < 0) return -1;
        if (i && step == before) { /* as for nearly all */
            numbers[i] = numbers[i - 1];
            continue;
        }
        numbers[i] = (tp_step_numbers){.scale = 1 / scale, .sign = call->maximize ? -1 : 1, .shrink = 1};
        call->numbers(&numbers[i], step, call->context);
    }
    return 0;
}

static int run_all(const step_call *call, double scale, tp_step_numbers *numbers, int64_t *starts) {
    const tp_tensors params = call->lists[0];
    tp_dtype dtype = (tp_dtype)params.data[0]->dtype;
    const tp_step_fn *loops = dtype == TP_FLOAT64 ? tp_cpu.optimizer->f64 : tp_cpu.optimizer->f32;
    step_job job = {.loop = loops[call->rule], .dtype = dtype, .numbers = numbers, .starts = starts};
    for (int k = 0; k < TP_STEP_TENSORS; k++) job.lists[k] = call->lists[k];
    starts[0] = 0;
    for (int64_t i = 0; i < params.size; i++) starts[i + 1] = starts[i] + params.data[i]->numel;
    if (fill_numbers(call, scale, numbers) < 0) return -1;
    int64_t all = starts[params.size];
    return tp_parallel_unlocked(all > TP_GRAIN, all, STEP_GRAIN, run_range, &job);
}

static int run_step(const step_call *call) {
    double scale = 1, infinite = 0;
    if (call->found_inf && read_double(call->found_inf, &infinite) < 0) return -1;
    if (infinite == 1) return 0;
    if (call->grad_scale && read_double(call->grad_scale, &scale) < 0) return -1;
    size_t n = (size_t)call->lists[0].size;
    tp_step_numbers *numbers = malloc(n * sizeof *numbers);
    int64_t *starts = malloc((n + 1) * sizeof *starts);
    int status = numbers && starts ? run_all(call, scale, numbers, starts)
                                   : tp_fail(TP_MemoryError, "no memory for a step of %zu parameters", n);
    free(numbers);
    free(starts);
    return status;
}

/* ---- the rules ---- */

typedef struct {
    double lr, weight_decay, momentum, dampening;
    bool nesterov, first;
} sgd_settings;

static void sgd_numbers(tp_step_numbers *c, double step, const void *context) {
    const sgd_settings *s = context;
    (void)step;
    c->decay = s->weight_decay, c->size = s->lr, c->beta = s->momentum, c->first = s->first ? 1 : 1 - s->dampening;
    c->nesterov = s->nesterov, c->starts = s->first;
}

int step_sgd_cpu(tp_tensors params, tp_tensors grads, tp_tensors momenta, double lr, double weight_decay,
                 double momentum, double dampening, bool nesterov, bool maximize, bool first, tp_tensor *grad_scale,
                 tp_tensor *found_inf) {
    const sgd_settings settings = {lr, weight_decay, momentum, dampening, nesterov, first};
    return run_step(&(step_call){.rule = TP_STEP_SGD,
                                 .lists = {params, grads, momenta},
                                 .numbers = sgd_numbers,
                                 .context = &settings,
                                 .maximize = maximize,
                                 .grad_scale = grad_scale,
                                 .found_inf = found_inf});
}

typedef struct {
    double lr, beta1, beta2, weight_decay, eps;
    bool decoupled;
} adam_settings;

static void adam_numbers(tp_step_numbers *c, double step, const void *context) {
    const adam_settings *s = context;
    if (s->decoupled) c->shrink = 1 - s->lr * s->weight_decay;
    else c->decay = s->weight_decay;
    c->first = 1 - s->beta1, c->beta = s->beta2, c->second = 1 - s->beta2, c->eps = s->eps;
    c->size = s->lr / (1 - pow(s->beta1, step));
    c->correction = 1 / sqrt(1 - pow(s->beta2, step));
}

int step_adam_cpu(tp_tensors params, tp_tensors grads, tp_tensors means, tp_tensors squares, tp_tensors largest,
                  tp_tensors steps, double lr, double beta1, double beta2, double weight_decay, double eps,
                  bool decoupled, bool maximize, tp_tensor *grad_scale, tp_tensor *found_inf) {
    const adam_settings settings = {lr, beta1, beta2, weight_decay, eps, decoupled};
    return run_step(&(step_call){.rule = TP_STEP_ADAM,
                                 .lists = {params, grads, means, squares, largest},
                                 .steps = steps,
                                 .numbers = adam_numbers,
                                 .context = &settings,
                                 .maximize = maximize,
                                 .grad_scale = grad_scale,
                                 .found_inf = found_inf});
}

typedef struct {
    double lr, lr_decay, weight_decay, eps;
} adagrad_settings;

static void adagrad_numbers(tp_step_numbers *c, double step, const void *context) {
    const adagrad_settings *s = context;
    c->decay = s->weight_decay, c->size = s->lr / (1 + (step - 1) * s->lr_decay), c->eps = s->eps;
}

int step_adagrad_cpu(tp_tensors params, tp_tensors grads, tp_tensors sums, tp_tensors steps, double lr, double lr_decay,
                     double weight_decay, double eps, bool maximize, tp_tensor *grad_scale, tp_tensor *found_inf) {
    const adagrad_settings settings = {lr, lr_decay, weight_decay, eps};
    return run_step(&(step_call){.rule = TP_STEP_ADAGRAD,
                                 .lists = {params, grads, sums},
                                 .steps = steps,
                                 .numbers = adagrad_numbers,
                                 .context = &settings,
                                 .maximize = maximize,
                                 .grad_scale = grad_scale,
                                 .found_inf = found_inf});
}
