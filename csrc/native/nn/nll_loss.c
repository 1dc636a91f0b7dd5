/* nll_loss.c: the negative log-likelihood of class indices, and the cross entropy on top of it.
 *
 * A row's loss is -weight[target] * self[target]; rows whose target is ignore_index count for nothing. The mean divides
 * by the sum of the weights of the rows that count. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "prim/fault.h"
#include "prim/transfer.h"

#include <math.h>
#include <string.h>

enum { NONE, MEAN, SUM };

static int64_t classes_of(const tp_tensor *self) { return self->sizes[self->ndim - 1]; }

static int check(const tp_tensor *self, const tp_tensor *target, const tp_tensor *weight) {
    if (self->ndim != 1 && self->ndim != 2) return tp_fail(TP_RuntimeError, "input tensor should be 1D or 2D");
    if (target->ndim > 1)
        return tp_fail(TP_RuntimeError, "0D or 1D target tensor expected, multi-target not supported");
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"nll_loss_out_frame\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    if (target->dtype != TP_INT64 && target->dtype != TP_UINT8)
        return tp_fail(TP_RuntimeError, "expected target dtype to be Long or Byte, but got %s",
                       tp_scalar_type_name((tp_dtype)target->dtype));
    bool rows_agree = self->ndim == 1 ? target->numel == 1 || target->ndim == 0
                                      : target->ndim == 1 && target->sizes[0] == self->sizes[0];
    if (self->ndim == 1 && target->ndim == 1 && target->numel != 1)
        return tp_fail(TP_ValueError, "For 1D input, 1D target must have size 1, but got target size: %lld",
                       (long long)target->numel);
    if (!rows_agree) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(self));
        tp_text_ints(&b, tp_sizes(target));
        return tp_fail(TP_RuntimeError, "size mismatch (got input: %s, target: %s)", a.text, b.text);
    }
    if (weight && (weight->ndim != 1 || weight->sizes[0] != classes_of(self)))
        return tp_fail(TP_RuntimeError,
                       "weight tensor should be defined either for all %lld classes or no classes but got weight "
                       "tensor of %lld elements",
                       (long long)classes_of(self), (long long)weight->numel);
    if (weight && weight->dtype != self->dtype)
        return tp_fail(TP_RuntimeError, "nll_loss: expected scalar type %s but found %s for the weight",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)weight->dtype));
    return 0;
}

int nll_loss_forward_meta(tp_meta *m, tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                          int64_t ignore_index TP_UNUSED) {
    if (check(self, target, weight) < 0) return -1;
    tp_ints sizes = reduction == NONE && self->ndim == 2 ? TP_INTS(self->sizes[0]) : TP_EMPTY_INTS;
    if (tp_meta_output(m, 0, sizes, TP_NO_INTS, (tp_dtype)self->dtype, self->device) < 0) return -1;
    return tp_meta_output(m, 1, TP_EMPTY_INTS, TP_NO_INTS, (tp_dtype)self->dtype, self->device);
}

int nll_loss_backward_meta(tp_meta *m, tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                           int64_t reduction, int64_t ignore_index TP_UNUSED, tp_tensor *total_weight TP_UNUSED) {
    if (check(self, target, weight) < 0) return -1;
    int64_t wanted = reduction == NONE ? target->numel : 1, strides[2];
    if (grad_output->numel != wanted)
        return tp_fail(TP_RuntimeError, "nll_loss_backward: expected grad_output of %lld elements, but got %lld",
                       (long long)wanted, (long long)grad_output->numel);
    tp_contiguous_strides(tp_sizes(self), strides);
    return tp_meta_output(m, 0, tp_sizes(self), (tp_ints){strides, self->ndim}, (tp_dtype)self->dtype, self->device);
}

#define OUT_OF_RANGE TP_INDEX_FAULT(TP_IndexError, "nll_loss")

/* ---- in parts: for a device that has no kernel for the whole ---- */

/* What a loss and its gradient are made of: rows [n, classes], and of each row whether it counts (used), its class (0
 * where it does not), and its weight in the compute dtype (0 where it does not count). */
typedef struct {
    tp_tensor *rows, *ignored, *classes, *share;
} loss_rows;
static void free_rows(loss_rows *r) {
    tp_release(r->rows), tp_release(r->ignored), tp_release(r->classes), tp_release(r->share);
}

static tp_tensor *as_rows(tp_tensor *self) { return self->ndim == 2 ? tp_retain(self) : tp_unsqueeze(self, 0); }

/* Elements of a line by their places, as the compute dtype. */
static tp_tensor *take_wide(tp_tensor *from, int64_t dim, tp_tensor *places) {
    tp_dtype dtype = (tp_dtype)from->dtype;
    tp_autoref *taken = tp_new_empty(tp_sizes(places), dtype, from->device);
    if (!taken || (taken->numel && tp_prim_take(from, dim, places, OUT_OF_RANGE, false, taken) < 0)) return NULL;
    return tp_to_dtype(taken, tp_compute_dtype(dtype), false, false, TP_NO_FORMAT);
}

static int start_rows(loss_rows *r, tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t ignore_index) {
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    tp_autoref *line = tp_reshape(target, TP_INTS(-1)),
               *given = line ? tp_to_dtype(line, TP_INT64, false, false, TP_NO_FORMAT) : NULL;
    r->rows = given ? as_rows(self) : NULL;
    r->ignored = r->rows ? tp_eq_Scalar(given, TP_SCALAR_I(ignore_index)) : NULL;
    r->classes = r->ignored ? tp_masked_fill_Scalar(given, r->ignored, TP_SCALAR_I(0)) : NULL;
    if (!r->classes) return -1;
    tp_autoref *of = weight ? take_wide(weight, 0, r->classes) : tp_new_empty(tp_sizes(given), dtype, self->device);
    if (!of || (!weight && tp_fill_data(of, TP_SCALAR_I(1)) < 0)) return -1;
    r->share = tp_masked_fill_Scalar(of, r->ignored, TP_SCALAR_I(0));
    return r->share ? 0 : -1;
}

static int forward_in_parts(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                            int64_t ignore_index, tp_tensor *output, tp_tensor *total_weight) {
    TP_CLEANUP(free_rows) loss_rows r = {0};
    if (start_rows(&r, self, target, weight, ignore_index) < 0) return -1;
    tp_autoref *places = tp_unsqueeze(r.classes, 1), *picked = places ? take_wide(r.rows, 1, places) : NULL,
               *line = picked ? tp_squeeze_dim(picked, 1) : NULL, *product = line ? tp_mul_Tensor(line, r.share) : NULL,
               *loss = product ? tp_neg(product) : NULL,
               *losses = loss ? tp_masked_fill_Scalar(loss, r.ignored, TP_SCALAR_I(0)) : NULL;
    if (!losses) return -1;
    if (reduction == NONE) {
        tp_autoref *shaped = tp_reshape(losses, tp_sizes(output));
        return shaped && tp_copy_data(output, shaped) == 0 ? tp_fill_data(total_weight, TP_SCALAR_I(0)) : -1;
    }
    tp_autoref *total = tp_sum(r.share, TP_NO_DTYPE), *sum = total ? tp_sum(losses, TP_NO_DTYPE) : NULL,
               *result = !sum                ? NULL
                         : reduction == MEAN ? tp_div_Tensor(sum, total)
                                             : tp_retain(sum);
    return result && tp_copy_data(output, result) == 0 ? tp_copy_data(total_weight, total) : -1;
}

static int backward_in_parts(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                             int64_t reduction, int64_t ignore_index, tp_tensor *total_weight, tp_tensor *grad_input) {
    TP_CLEANUP(free_rows) loss_rows r = {0};
    tp_dtype dtype = tp_compute_dtype((tp_dtype)self->dtype);
    if (tp_fill_data(grad_input, TP_SCALAR_I(0)) < 0) return -1;
    if (start_rows(&r, self, target, weight, ignore_index) < 0) return -1;
    tp_autoref *grad = tp_to_dtype(grad_output, dtype, false, false, TP_NO_FORMAT),
               *line = grad ? tp_reshape(grad, reduction == NONE ? TP_INTS(-1) : TP_EMPTY_INTS) : NULL,
               *product = line ? tp_mul_Tensor(r.share, line) : NULL, *slope = product ? tp_neg(product) : NULL,
               *total = slope ? tp_to_dtype(total_weight, dtype, false, false, TP_NO_FORMAT) : NULL,
               *scaled = !total              ? NULL
                         : reduction == MEAN ? tp_div_Tensor(slope, total)
                                             : tp_retain(slope),
               *kept = scaled ? tp_masked_fill_Scalar(scaled, r.ignored, TP_SCALAR_I(0)) : NULL,
               *narrow = kept ? tp_to_dtype(kept, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    tp_autoref *places = narrow ? tp_unsqueeze(r.classes, 1) : NULL, *src = places ? tp_unsqueeze(narrow, 1) : NULL,
               *to = src ? as_rows(grad_input) : NULL;
    if (!to || !places->numel) return to ? 0 : -1;
    return tp_prim_put_set(to, 1, places, src, OUT_OF_RANGE, false);
}

/* ---- as a whole ---- */

int nll_loss_forward_dense(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                           int64_t ignore_index, tp_tensor *output, tp_tensor *total_weight) {
    if (target->numel && tp_has_primitive(TP_PRIM_nll_loss_forward, self->device)) {
        int status =
            tp_prim_nll_loss_forward(self, target, weight, reduction, ignore_index, OUT_OF_RANGE, output, total_weight);
        if (status == 0 || !tp_take_decline()) return status;
    }
    return forward_in_parts(self, target, weight, reduction, ignore_index, output, total_weight);
}

int nll_loss_backward_dense(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, tp_tensor *weight,
                            int64_t reduction, int64_t ignore_index, tp_tensor *total_weight, tp_tensor *grad_input) {
    if (!grad_input->numel) return 0;
    if (tp_has_primitive(TP_PRIM_nll_loss_backward, self->device)) {
        int status = tp_prim_nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight,
                                               OUT_OF_RANGE, grad_input);
        if (status == 0 || !tp_take_decline()) return status;
    }
    return backward_in_parts(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input);
}

/* ---- the user's forms ---- */

/* nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor */
tp_tensor *nll_loss_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                              int64_t ignore_index) {
    tp_tensor2 r = tp_nll_loss_forward(self, target, weight, reduction, ignore_index);
    tp_release(r.v[1]);
    return r.v[0];
}

/* Classes are dimension 1: it is brought to the end, and the rest becomes rows. */
static tp_tensor *by_rows(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                          int64_t ignore_index) {
    int64_t order[TP_MAX_DIMS], n = self->ndim;
    bool fits = target->ndim == n - 1 && target->sizes[0] == self->sizes[0];
    for (int64_t i = 2; fits && i < n; i++) fits = target->sizes[i - 1] == self->sizes[i];
    if (!fits) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(self));
        tp_text_ints(&b, tp_sizes(target));
        if (n == 4) return tp_fail_null(TP_RuntimeError, "size mismatch (got input: %s, target: %s)", a.text, b.text);
        int64_t wanted[TP_MAX_DIMS] = {self->sizes[0]};
        memcpy(wanted + 1, self->sizes + 2, (size_t)(n - 2) * sizeof *wanted);
        tp_autotext w = {0};
        tp_text_ints(&w, (tp_ints){wanted, n - 1});
        return tp_fail_null(TP_RuntimeError, "Expected target size %s, got %s", w.text, b.text);
    }
    order[0] = 0, order[n - 1] = 1;
    for (int64_t i = 1; i < n - 1; i++) order[i] = i + 1;
    tp_autoref *last = tp_permute(self, (tp_ints){order, n}), *classes = tp_reshape(target, TP_INTS(-1));
    tp_autoref *rows = last ? tp_reshape(last, TP_INTS(target->numel, self->sizes[1])) : NULL;
    if (!rows || !classes) return NULL;
    tp_autoref *loss = tp_nll_loss(rows, classes, weight, reduction, ignore_index);
    return loss && reduction == NONE ? tp_reshape(loss, tp_sizes(target)) : tp_take(loss);
}

/* nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor
 */
tp_tensor *nll_loss2d_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                int64_t ignore_index) {
    if (self->ndim != 4)
        return tp_fail_null(TP_RuntimeError,
                            "only batches of spatial inputs supported (4D tensors), but got input of dimension: %d",
                            self->ndim);
    return by_rows(self, target, weight, reduction, ignore_index);
}

static int check_batch(const tp_tensor *self, const tp_tensor *target) {
    if (self->ndim <= 1 || (target->ndim >= 1 && self->sizes[0] == target->sizes[0])) return 0;
    return tp_fail(TP_ValueError, "Expected input batch_size (%lld) to match target batch_size (%lld).",
                   (long long)self->sizes[0], (long long)(target->ndim ? target->sizes[0] : 1));
}

/* nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100) -> Tensor
 */
tp_tensor *nll_loss_nd_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                 int64_t ignore_index) {
    if (self->ndim < 1) return tp_fail_null(TP_ValueError, "Expected 1 or more dimensions (got %d)", self->ndim);
    if (check_batch(self, target) < 0) return NULL;
    if (self->ndim <= 2) return tp_nll_loss(self, target, weight, reduction, ignore_index);
    return by_rows(self, target, weight, reduction, ignore_index);
}

/* ---- cross entropy ---- */

/* Losses, or their sum or mean; `count` is what a mean divides by. */
static tp_tensor *reduced(tp_tensor *loss, int64_t reduction, double count) {
    if (reduction == NONE) return tp_retain(loss);
    tp_autoref *sum = tp_sum(loss, TP_NO_DTYPE);
    return sum && reduction == MEAN ? tp_div_Scalar(sum, TP_SCALAR_F(count)) : tp_take(sum);
}

/* The class weights as they broadcast over `like`, whose classes are in dimension `dim`; new. */
static tp_tensor *weights_along(tp_tensor *weight, const tp_tensor *like, int64_t dim) {
    int64_t sizes[TP_MAX_DIMS];
    for (int64_t i = 0; i < like->ndim; i++) sizes[i] = i == dim ? weight->numel : 1;
    return tp_reshape(weight, (tp_ints){sizes, like->ndim});
}

static tp_tensor *with_probabilities(tp_tensor *logs, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                     int64_t dim, double smoothing) {
    tp_autoref *p = tp_retain(target);
    double classes = (double)logs->sizes[dim];
    if (smoothing > 0) {
        tp_autoref *less = tp_mul_Scalar(target, TP_SCALAR_F(1 - smoothing));
        tp_tensor *smooth = less ? tp_add_Scalar(less, TP_SCALAR_F(smoothing / classes), TP_SCALAR_I(1)) : NULL;
        if (!smooth) return NULL;
        tp_release(p);
        p = smooth;
    }
    tp_autoref *product = tp_mul_Tensor(logs, p);
    if (product && weight) {
        tp_autoref *w = weights_along(weight, logs, dim);
        tp_tensor *weighted = w ? tp_mul_Tensor(product, w) : NULL;
        if (!weighted) return NULL;
        tp_release(product);
        product = weighted;
    }
    tp_autoref *sum = product ? tp_sum_dim_IntList(product, TP_INTS(dim), false, TP_NO_DTYPE) : NULL;
    tp_autoref *loss = sum ? tp_neg(sum) : NULL;
    return loss ? reduced(loss, reduction, (double)logs->numel / classes) : NULL;
}

/* (1 - s) * nll + s / classes * sum over the classes, where ignored rows count for nothing and weights weigh both. */
static tp_tensor *with_smoothing(tp_tensor *logs, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                 int64_t ignore_index, int64_t dim, double smoothing) {
    double classes = (double)logs->sizes[dim];
    tp_autoref *nll = tp_nll_loss_nd(logs, target, weight, reduction, ignore_index),
               *w = weight ? weights_along(weight, logs, dim) : NULL;
    if (!nll || (weight && !w)) return NULL;
    tp_autoref *weighted = w ? tp_mul_Tensor(logs, w) : tp_retain(logs);
    tp_autoref *sum = weighted ? tp_sum_dim_IntList(weighted, TP_INTS(dim), false, TP_NO_DTYPE) : NULL;
    tp_autoref *loss = sum ? tp_neg(sum) : NULL;
    tp_autoref *ignored = loss ? tp_eq_Scalar(target, TP_SCALAR_I(ignore_index)) : NULL;
    tp_autoref *smooth = ignored ? tp_masked_fill_Scalar(loss, ignored, TP_SCALAR_I(0)) : NULL;
    if (!smooth) return NULL;
    tp_autoref *part = NULL;
    if (reduction == MEAN) {
        /* What nll_loss divides by: the weights of the rows that count. */
        tp_autoref *total = NULL, *all = tp_sum(smooth, TP_NO_DTYPE);
        tp_autoref *ones = tp_ones_like(logs, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
        tp_autoref *counted = ones ? tp_nll_loss_nd(ones, target, weight, SUM, ignore_index) : NULL;
        total = counted ? tp_neg(counted) : NULL;
        part = all && total ? tp_div_Tensor(all, total) : NULL;
    } else {
        part = reduced(smooth, reduction, 1);
    }
    tp_autoref *a = part ? tp_mul_Scalar(nll, TP_SCALAR_F(1 - smoothing)) : NULL;
    return a ? tp_add_Tensor(a, part, TP_SCALAR_F(smoothing / classes)) : NULL;
}

/* cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100,
 * float label_smoothing=0.0) -> Tensor */
tp_tensor *cross_entropy_loss_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                        int64_t ignore_index, double label_smoothing) {
    int64_t dim = self->ndim == 1 ? 0 : 1;
    if (label_smoothing < 0 || label_smoothing > 1)
        return tp_fail_null(TP_RuntimeError, "label_smoothing must be between 0.0 and 1.0. Got: %g", label_smoothing);
    if (self->ndim < 1)
        return tp_fail_null(TP_RuntimeError, "cross_entropy_loss: input must have at least one dimension");
    bool probabilities = tp_same_sizes(self, target);
    if (probabilities && !tp_is_floating(target))
        return tp_fail_null(TP_RuntimeError, "Expected floating point type for target with class probabilities, got %s",
                            tp_scalar_type_name((tp_dtype)target->dtype));
    if (probabilities && ignore_index >= 0)
        return tp_fail_null(TP_RuntimeError, "ignore_index is not supported for floating point target");
    if (!probabilities && check_batch(self, target) < 0) return NULL;
    if (weight && (weight->ndim != 1 || weight->numel != self->sizes[dim]))
        return tp_fail_null(TP_RuntimeError,
                            "cross_entropy: weight tensor should be defined either for all %lld classes or no classes "
                            "but got weight tensor of %lld elements",
                            (long long)self->sizes[dim], (long long)weight->numel);
    tp_autoref *logs = tp_log_softmax_int(self, dim, TP_NO_DTYPE);
    if (!logs) return NULL;
    if (probabilities) return with_probabilities(logs, target, weight, reduction, dim, label_smoothing);
    if (label_smoothing > 0) return with_smoothing(logs, target, weight, reduction, ignore_index, dim, label_smoothing);
    return tp_nll_loss_nd(logs, target, weight, reduction, ignore_index);
}
