/* nll_loss.c: the negative log-likelihood of class indices; the kernels are in nll_loss.cl.
 *
 * The forward notes a class that is out of range (fault.h); both pass over such rows. */
#include "PrimitiveKernels.h"
#include "prim/transfer.h"
#include "prim/plain.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"

#define GROUP 128

enum { NONE, MEAN, SUM };

typedef struct {
    uint8_t self, weight, given, total; /* dtypes */
    uint8_t reduction;
} variant;

static int group_on(const tp_cl_device *d) { return d->is_cpu ? 1 : GROUP; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype compute = tp_compute_dtype((tp_dtype)v->self);
    tp_cl_define(s, "X", (tp_dtype)v->self, compute);
    tp_cl_define(s, "WEIGHT", (tp_dtype)v->weight, compute);
    tp_cl_define(s, "GIVEN", (tp_dtype)v->given, compute);
    tp_cl_define(s, "TOTAL", (tp_dtype)v->total, compute);
    tp_text_add(s, "#define T %s\n#define S %s\n#define GROUP %d\n#define WHOLE %d\n%s", tp_cl_type(compute),
                d->has_fp64 ? "double" : "float", group_on(d), d->is_cpu,
                v->reduction == MEAN  ? "#define MEAN\n"
                : v->reduction == SUM ? "#define SUM\n"
                                      : "");
}

static const tp_cl_family family = {"nll_loss.cl", define, .size = TP_CL_SIZE(variant)};

typedef struct {
    tp_cl_device *device;
    tp_dtype dtype;
    tp_tensor *target, *weight; /* owned; contiguous, int64 and self's dtype */
    int64_t n, classes, ignored;
    int group;
    variant variant;
} job;

static void end_job(job *j) {
    tp_release(j->target);
    tp_release(j->weight);
}

static int start_job(job *j, tp_tensor *self, tp_tensor *target, tp_tensor *weight, tp_tensor *given, tp_tensor *total,
                     int64_t reduction) {
    tp_tensor *const tensors[] = {self, given, total};
    j->device = tp_cl_device_of(tensors, 3);
    j->dtype = tp_compute_dtype((tp_dtype)self->dtype);
    j->target = tp_plain(target, TP_INT64);
    j->weight = weight ? tp_plain(weight, (tp_dtype)weight->dtype) : NULL;
    if (!j->device || !j->target || (weight && !j->weight)) return -1;
    j->n = target->numel, j->classes = self->sizes[self->ndim - 1];
    j->group = group_on(j->device);
    j->variant =
        (variant){self->dtype, (weight ? weight : self)->dtype, given->dtype, total->dtype, (uint8_t)reduction};
    return 0;
}

static tp_cl_call begin(const job *j, const char *kernel) {
    return tp_cl_begin(j->device, tp_cl_plan(j->device, &family, kernel, &j->variant));
}

static void pass_weight(tp_cl_call *c, const job *j, const tp_tensor *other) {
    tp_cl_pass_tensor(c, j->weight ? j->weight : other);
    tp_cl_pass_int(c, j->weight != NULL);
}

static void pass_rest(tp_cl_call *c, const job *j) {
    tp_cl_pass_long(c, j->n);
    tp_cl_pass_long(c, j->classes);
    tp_cl_pass_long(c, j->ignored);
}

static int run_rows(const job *j, const tp_tensor *self, tp_tensor *losses, tp_tensor *weights, int64_t fault) {
    tp_cl_call c = begin(j, "rows");
    if (self->numel == 0) self = j->target; /* without classes it is not looked at, but has to be a buffer */
    tp_cl_pass_tensor(&c, self);
    tp_cl_pass_tensor(&c, j->target);
    pass_weight(&c, j, self);
    tp_cl_pass_tensor(&c, losses);
    tp_cl_pass_tensor(&c, weights);
    pass_rest(&c, j);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, j->n, 64);
}

static int run_sums(const job *j, tp_tensor *losses, tp_tensor *weights, tp_tensor *output, tp_tensor *total) {
    tp_cl_call c = begin(j, "sums");
    tp_cl_pass_tensor(&c, losses);
    tp_cl_pass_tensor(&c, weights);
    tp_cl_pass_tensor(&c, output);
    tp_cl_pass_tensor(&c, total);
    tp_cl_pass_long(&c, j->n);
    return tp_cl_run(&c, j->group, (size_t)j->group);
}

/* nll_loss.forward(Tensor x, Tensor target, Tensor? weight, int reduction, int ignore_index, int fault, *,
 *                  Tensor(a!) out, Tensor(b!) total_weight) -> () */
int nll_loss_forward_opencl(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                            int64_t ignore_index, int64_t fault, tp_tensor *output, tp_tensor *total_weight) {
    TP_CLEANUP(end_job) job j = {.ignored = ignore_index};
    if (start_job(&j, self, target, weight, output, total_weight, reduction) < 0) return -1;
    tp_autoref *x = tp_plain(self, (tp_dtype)self->dtype);
    tp_autoref *losses = x ? tp_new_empty(TP_INTS(j.n), j.dtype, self->device) : NULL;
    tp_autoref *weights = losses ? tp_new_empty(TP_INTS(j.n), j.dtype, self->device) : NULL;
    if (!weights || run_rows(&j, x, losses, weights, fault) < 0) return -1;
    if (run_sums(&j, losses, weights, output, total_weight) < 0) return -1;
    if (reduction != NONE) return 0;
    tp_autoref *shaped =
        tp_new_alias(losses, tp_sizes(output), (tp_ints){losses->strides, output->ndim}, losses->byte_offset);
    return shaped ? tp_copy_data(output, shaped) : -1;
}

/* nll_loss.backward(Tensor grad, Tensor x, Tensor target, Tensor? weight, int reduction, int ignore_index,
 *                   Tensor total_weight, int fault, *, Tensor(a!) out) -> () */
int nll_loss_backward_opencl(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                             int64_t reduction, int64_t ignore_index, tp_tensor *total_weight, int64_t fault TP_UNUSED,
                             tp_tensor *grad_input) {
    TP_CLEANUP(end_job) job j = {.ignored = ignore_index};
    if (start_job(&j, grad_input, target, weight, grad_output, total_weight, reduction) < 0) return -1;
    tp_autoref *grad = tp_plain(grad_output, (tp_dtype)grad_output->dtype);
    tp_autoref *made = tp_is_contiguous(grad_input)
                           ? tp_retain(grad_input)
                           : tp_new_empty(tp_sizes(grad_input), (tp_dtype)grad_input->dtype, grad_input->device);
    if (!grad || !made) return -1;
    tp_cl_call c = begin(&j, "backward");
    tp_cl_pass_tensor(&c, grad);
    tp_cl_pass_tensor(&c, j.target);
    pass_weight(&c, &j, made);
    tp_cl_pass_tensor(&c, total_weight);
    tp_cl_pass_tensor(&c, made);
    pass_rest(&c, &j);
    if (tp_cl_run(&c, j.device->is_cpu ? j.n : made->numel, j.device->is_cpu ? 16 : 64) < 0) return -1;
    (void)self;
    return made == grad_input ? 0 : tp_copy_data(grad_input, made);
}
