/* optimizer.c: the fused steps of optimizers: checks of their lists, which the primitives step.* get without gaps. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "prim/transfer.h"

#include <string.h>

#define LISTS 5

typedef struct {
    const char *op;
    tp_tensors given[LISTS]; /* parameters, gradients, states; each is written */
    tp_tensor_seq *made[LISTS];
    tp_tensors lists[LISTS]; /* as the primitive takes them */
} step_call;

static const char *const names[LISTS] = {"self", "grads", "the first states", "the second states", "the third states"};

static int check_tensor(const step_call *c, int k, int64_t i) {
    const tp_tensor *param = c->given[0].data[i], *t = c->given[k].data[i];
    if (!tp_device_equal(param->device, t->device))
        return tp_fail(TP_RuntimeError,
                       "%s: Expected all tensors to be on the same device, but place %lld of %s is not", c->op,
                       (long long)i, names[k]);
    if (param->dtype != t->dtype)
        return tp_fail(TP_RuntimeError, "%s: expected scalar type %s but found %s", c->op,
                       tp_scalar_type_name((tp_dtype)param->dtype), tp_scalar_type_name((tp_dtype)t->dtype));
    if (param->ndim != t->ndim || memcmp(param->sizes, t->sizes, sizeof(int64_t) * (size_t)t->ndim) != 0)
        return tp_fail(TP_RuntimeError, "%s: place %lld of %s has not its parameter's shape", c->op, (long long)i,
                       names[k]);
    return 0;
}

static int check_lists(const step_call *c) {
    const tp_tensors params = c->given[0];
    if (params.size == 0) return tp_fail(TP_RuntimeError, "%s: Tensor list must have at least one tensor.", c->op);
    for (int64_t i = 0; i < params.size; i++) {
        if (!tp_is_floating_dtype((tp_dtype)params.data[i]->dtype))
            return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", c->op,
                           tp_scalar_type_name((tp_dtype)params.data[i]->dtype));
        if (params.data[i]->dtype != params.data[0]->dtype ||
            !tp_device_equal(params.data[i]->device, params.data[0]->device))
            return tp_fail(TP_RuntimeError, "%s: the parameters are not of one dtype on one device", c->op);
    }
    for (int k = 1; k < LISTS; k++) {
        if (k > 1 && c->given[k].size <= 0) continue;
        if (c->given[k].size != params.size)
            return tp_fail(TP_RuntimeError, "%s: Tensor lists must have the same number of tensors, got %lld and %lld",
                           c->op, (long long)params.size, (long long)c->given[k].size);
        for (int64_t i = 0; i < params.size; i++)
            if (check_tensor(c, k, i) < 0) return -1;
    }
    return 0;
}

static int check_steps(const step_call *c, tp_tensors steps) {
    if (steps.size != c->given[0].size)
        return tp_fail(TP_RuntimeError, "%s: Tensor lists must have the same number of tensors, got %lld and %lld",
                       c->op, (long long)c->given[0].size, (long long)steps.size);
    for (int64_t i = 0; i < steps.size; i++)
        if (steps.data[i]->numel != 1)
            return tp_fail(TP_RuntimeError, "%s: place %lld of state_steps has %lld elements", c->op, (long long)i,
                           (long long)steps.data[i]->numel);
    return 0;
}

/* Whether the parameter's elements and those of what belongs to it lie in one order, without gaps. */
static bool lies_alike(const step_call *c, int64_t i) {
    const tp_tensor *param = c->given[0].data[i];
    if (!tp_is_dense(param)) return false;
    for (int k = 1; k < LISTS; k++) {
        if (c->given[k].size <= 0) continue;
        const tp_tensor *t = c->given[k].data[i];
        if (memcmp(param->strides, t->strides, sizeof(int64_t) * (size_t)t->ndim) != 0 &&
            !(tp_is_contiguous(param) && tp_is_contiguous(t)))
            return false;
    }
    return true;
}

static void end_step(step_call *c) {
    for (int k = 0; k < LISTS; k++) tp_tensor_seq_free(c->made[k]);
}

/* What does not lie alike is copied; end_copies brings it back. */
static int start_step(step_call *c) {
    for (int k = 0; k < LISTS; k++) {
        if (c->given[k].size > 0 && !(c->made[k] = tp_tensor_seq_of(c->given[k]))) return -1;
        if (c->made[k]) c->lists[k] = tp_tensor_seq_borrow(c->made[k]);
    }
    for (int64_t i = 0; i < c->given[0].size; i++) {
        if (tp_likely(lies_alike(c, i))) continue;
        for (int k = 0; k < LISTS; k++) {
            if (!c->made[k]) continue;
            tp_tensor *t = c->given[k].data[i];
            tp_tensor *plain = tp_new_empty(tp_sizes(t), (tp_dtype)t->dtype, t->device);
            if (!plain || tp_copy_data(plain, t) < 0) return tp_release(plain), -1;
            tp_release(c->made[k]->items[i]);
            c->made[k]->items[i] = plain;
        }
    }
    return 0;
}

static int copy_back(const step_call *c) {
    for (int k = 0; k < LISTS; k++)
        for (int64_t i = 0; c->made[k] && i < c->made[k]->size; i++)
            if (c->made[k]->items[i] != c->given[k].data[i] &&
                tp_copy_data(c->given[k].data[i], c->made[k]->items[i]) < 0)
                return -1;
    return 0;
}

#define RUN_STEP(c, call)                         \
    __extension__({                               \
        int status_ = start_step(c);              \
        if (status_ == 0) status_ = (call);       \
        if (status_ == 0) status_ = copy_back(c); \
        end_step(c);                              \
        status_;                                  \
    })

static int read_rate(const tp_tensor *lr, double *rate) {
    tp_scalar number;
    if (tp_read_number(lr, &number) < 0) return -1;
    *rate = tp_scalar_double(&number);
    return 0;
}

/* ---- gradient descent ---- */

/* _fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, ...) */
int fused_sgd__dense(tp_tensors self, tp_tensors grads, tp_tensors momentum_buffer_list, double weight_decay,
                     double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first_step,
                     tp_tensor *grad_scale, tp_tensor *found_inf) {
    step_call c = {.op = "_fused_sgd_", .given = {self, grads, momentum_buffer_list}};
    if (check_lists(&c) < 0) return -1;
    return RUN_STEP(&c, tp_prim_step_sgd(c.lists[0], c.lists[1], c.lists[2], lr, weight_decay, momentum, dampening,
                                         nesterov, maximize, is_first_step, grad_scale, found_inf));
}

int fused_sgd__tensor_lr_dense(tp_tensors self, tp_tensors grads, tp_tensors momentum_buffer_list, double weight_decay,
                               double momentum, tp_tensor *lr, double dampening, bool nesterov, bool maximize,
                               bool is_first_step, tp_tensor *grad_scale, tp_tensor *found_inf) {
    double rate;
    if (read_rate(lr, &rate) < 0) return -1;
    return fused_sgd__dense(self, grads, momentum_buffer_list, weight_decay, momentum, rate, dampening, nesterov,
                            maximize, is_first_step, grad_scale, found_inf);
}

/* ---- Adam ---- */

typedef struct {
    double lr, beta1, beta2, weight_decay, eps;
    bool amsgrad, maximize, decoupled;
    tp_tensor *grad_scale, *found_inf;
} adam_settings;

static int step_adam(step_call c, tp_tensors steps, const adam_settings *s) {
    if (check_lists(&c) < 0 || check_steps(&c, steps) < 0) return -1;
    for (int k = 2; k < 4 + s->amsgrad; k++)
        if (c.given[k].size <= 0) return tp_fail(TP_RuntimeError, "%s: %s are missing", c.op, names[k]);
    return RUN_STEP(&c, tp_prim_step_adam(c.lists[0], c.lists[1], c.lists[2], c.lists[3], c.lists[4], steps, s->lr,
                                          s->beta1, s->beta2, s->weight_decay, s->eps, s->decoupled, s->maximize,
                                          s->grad_scale, s->found_inf));
}

/* _fused_adam_, _fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs,
 * Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, ...), and with a tensor as lr */
#define ADAM(name, rate_type, read, is_decoupled)                                                              \
    int name(tp_tensors self, tp_tensors grads, tp_tensors exp_avgs, tp_tensors exp_avg_sqs,                   \
             tp_tensors max_exp_avg_sqs, tp_tensors state_steps, rate_type lr, double beta1, double beta2,     \
             double weight_decay, double eps, bool amsgrad, bool maximize, tp_tensor *grad_scale,              \
             tp_tensor *found_inf) {                                                                           \
        const step_call c = {                                                                                  \
            .op = is_decoupled ? "_fused_adamw_" : "_fused_adam_",                                             \
            .given = {self, grads, exp_avgs, exp_avg_sqs, amsgrad ? max_exp_avg_sqs : (tp_tensors){NULL, 0}}}; \
        adam_settings s = {.beta1 = beta1,                                                                     \
                           .beta2 = beta2,                                                                     \
                           .weight_decay = weight_decay,                                                       \
                           .eps = eps,                                                                         \
                           .amsgrad = amsgrad,                                                                 \
                           .maximize = maximize,                                                               \
                           .decoupled = is_decoupled,                                                          \
                           .grad_scale = grad_scale,                                                           \
                           .found_inf = found_inf};                                                            \
        return read(lr, &s.lr) < 0 ? -1 : step_adam(c, state_steps, &s);                                       \
    }

static int take_rate(double lr, double *rate) { return *rate = lr, 0; }

ADAM(fused_adam__dense, double, take_rate, false)
ADAM(fused_adam__tensor_lr_dense, tp_tensor *, read_rate, false)
ADAM(fused_adamw__dense, double, take_rate, true)
ADAM(fused_adamw__tensor_lr_dense, tp_tensor *, read_rate, true)

/* ---- Adagrad ---- */

/* _fused_adagrad_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor(d!)[] state_steps, *, ...) */
int fused_adagrad__dense(tp_tensors self, tp_tensors grads, tp_tensors state_sums, tp_tensors state_steps, double lr,
                         double lr_decay, double weight_decay, double eps, bool maximize, tp_tensor *grad_scale,
                         tp_tensor *found_inf) {
    step_call c = {.op = "_fused_adagrad_", .given = {self, grads, state_sums}};
    if (check_lists(&c) < 0 || check_steps(&c, state_steps) < 0) return -1;
    return RUN_STEP(&c, tp_prim_step_adagrad(c.lists[0], c.lists[1], c.lists[2], state_steps, lr, lr_decay,
                                             weight_decay, eps, maximize, grad_scale, found_inf));
}

int fused_adagrad__tensor_lr_dense(tp_tensors self, tp_tensors grads, tp_tensors state_sums, tp_tensors state_steps,
                                   tp_tensor *lr, double lr_decay, double weight_decay, double eps, bool maximize,
                                   tp_tensor *grad_scale, tp_tensor *found_inf) {
    double rate;
    if (read_rate(lr, &rate) < 0) return -1;
    return fused_adagrad__dense(self, grads, state_sums, state_steps, rate, lr_decay, weight_decay, eps, maximize,
                                grad_scale, found_inf);
}
