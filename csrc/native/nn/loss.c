/* loss.c: what the losses share, and those that look at dtypes. Most losses are formulas in the YAML. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/common/out.h"
#include "native/common/variants.h"

/* _reduce_loss(Tensor self, int reduction) -> Tensor: 0 leaves the losses, 1 is their mean, 2 their sum. */
tp_tensor *_reduce_loss_composite(tp_tensor *self, int64_t reduction) {
    if (reduction < 0 || reduction > 2)
        return tp_fail_null(TP_RuntimeError, "reduction: 0 (none), 1 (mean) or 2 (sum) is expected, got %lld",
                            (long long)reduction);
    if (reduction == 0) return tp_retain(self);
    return reduction == 1 ? tp_mean(self, TP_NO_DTYPE) : tp_sum(self, TP_NO_DTYPE);
}

/* Losses with a gradient operator of their own: the elements' losses, reduced. */
static tp_tensor *reduced_steal(tp_tensor *losses, int64_t reduction) {
    tp_autoref *own = losses;
    return own ? tp__reduce_loss(own, reduction) : NULL;
}

/* Some losses have the dtype of their input, whatever that of the target is. */
static tp_tensor *as_input_steal(tp_tensor *losses, const tp_tensor *self) {
    tp_autoref *own = losses;
    if (!own || tp_check_castable((tp_dtype)own->dtype, (tp_dtype)self->dtype) < 0) return NULL;
    return tp_to_dtype(own, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT);
}

/* mse_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor */
tp_tensor *mse_loss_composite(tp_tensor *self, tp_tensor *target, int64_t reduction) {
    return reduced_steal(tp__mse_elements(self, target), reduction);
}

/* smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0) -> Tensor */
tp_tensor *smooth_l1_loss_composite(tp_tensor *self, tp_tensor *target, int64_t reduction, double beta) {
    if (beta < 0) return tp_fail_null(TP_RuntimeError, "smooth_l1_loss does not support negative values for beta.");
    return reduced_steal(tp__smooth_l1_elements(self, target, beta), reduction);
}

/* huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0) -> Tensor */
tp_tensor *huber_loss_composite(tp_tensor *self, tp_tensor *target, int64_t reduction, double delta) {
    if (!(delta > 0))
        return tp_fail_null(TP_RuntimeError, "huber_loss does not support non-positive values for delta.");
    return reduced_steal(as_input_steal(tp__huber_elements(self, target, delta), self), reduction);
}

/* Whether all elements are probabilities; NaN counts as one. */
static int check_probabilities(tp_tensor *self) {
    if (self->numel == 0 || !tp_has_values(self) || !tp_is_floating(self)) return 0;
    tp_tensor2 ends = tp_aminmax(self, TP_NO_INT, false);
    tp_autoref *least = ends.v[0], *most = ends.v[1];
    tp_scalar low, high;
    if (!least || tp__local_scalar_dense(least, &low) < 0 || tp__local_scalar_dense(most, &high) < 0) return -1;
    if (low.f < 0 || high.f > 1)
        return tp_fail(TP_RuntimeError, "all elements of input should be between 0 and 1, but they reach from %g to %g",
                       low.f, high.f);
    return 0;
}

/* binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean) -> Tensor */
tp_tensor *binary_cross_entropy_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction) {
    if (target->dtype != self->dtype)
        return tp_fail_null(TP_RuntimeError, "binary_cross_entropy: found dtype %s but expected %s",
                            tp_scalar_type_name((tp_dtype)target->dtype), tp_scalar_type_name((tp_dtype)self->dtype));
    if (check_probabilities(self) < 0) return NULL;
    tp_autoref *losses = tp__bce_elements(self, target);
    if (!losses || !weight) return reduced_steal(tp_take(losses), reduction);
    if (tp_check_takes(losses, tp_sizes(weight)) < 0) return NULL;
    return reduced_steal(tp_mul_Tensor(losses, weight), reduction);
}

/* soft_margin_loss(Tensor self, Tensor target, int reduction=Mean) -> Tensor: log(1 + exp(-target * self)) */
tp_tensor *soft_margin_loss_composite(tp_tensor *self, tp_tensor *target, int64_t reduction) {
    if (tp_check_castable((tp_dtype)target->dtype, (tp_dtype)self->dtype) < 0) return NULL;
    if (tp_check_takes(self, tp_sizes(target)) < 0) return NULL; /* the losses are as many as the scores */
    tp_autoref *y = tp_to_dtype(target, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT),
               *margin = y ? tp_mul_Tensor(self, y) : NULL, *turned = margin ? tp_neg(margin) : NULL,
               *power = turned ? tp_exp(turned) : NULL;
    return reduced_steal(power ? as_input_steal(tp_log1p(power), self) : NULL, reduction);
}

/* kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False) -> Tensor */
tp_tensor *kl_div_composite(tp_tensor *self, tp_tensor *target, int64_t reduction, bool log_target) {
    if (self->dtype < TP_FLOAT16 || target->dtype < TP_FLOAT16)
        return tp_fail_null(TP_RuntimeError, "kl_div: Integral inputs not supported.");
    if (tp_is_complex(self) || tp_is_complex(target))
        return tp_fail_null(TP_RuntimeError, "kl_div: Complex inputs not supported.");
    if (log_target) {
        tp_autoref *gap = tp_sub_Tensor(target, self, TP_SCALAR_I(1)), *weight = gap ? tp_exp(target) : NULL;
        return reduced_steal(weight ? tp_mul_Tensor(weight, gap) : NULL, reduction);
    }
    tp_autoref *own = tp_xlogy_Tensor(target, target), *cross = own ? tp_mul_Tensor(target, self) : NULL;
    return reduced_steal(cross ? tp_sub_Tensor(own, cross, TP_SCALAR_I(1)) : NULL, reduction);
}

static tp_tensor *cosine_of(tp_tensor *a, tp_tensor *b, tp_ints dim) {
    tp_autoref *ab = tp_mul_Tensor(a, b), *aa = tp_mul_Tensor(a, a), *bb = tp_mul_Tensor(b, b);
    tp_autoref *product = ab ? tp_sum_dim_IntList(ab, dim, false, TP_NO_DTYPE) : NULL,
               *first = aa ? tp_sum_dim_IntList(aa, dim, false, TP_NO_DTYPE) : NULL,
               *second = bb ? tp_sum_dim_IntList(bb, dim, false, TP_NO_DTYPE) : NULL;
    tp_autoref *x = first ? tp_add_Scalar(first, TP_SCALAR_F(1e-12), TP_SCALAR_I(1)) : NULL,
               *y = second ? tp_add_Scalar(second, TP_SCALAR_F(1e-12), TP_SCALAR_I(1)) : NULL;
    tp_autoref *square = x && y ? tp_mul_Tensor(x, y) : NULL, *root = square ? tp_sqrt(square) : NULL;
    return product && root ? tp_div_Tensor(product, root) : NULL;
}

/* cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean) -> Tensor:
 * 1 - cos where the target is 1, cos - margin if that is positive where it is -1. */
tp_tensor *cosine_embedding_loss_composite(tp_tensor *input1, tp_tensor *input2, tp_tensor *target, double margin,
                                           int64_t reduction) {
    if (target->ndim > 1 || input1->ndim != target->ndim + 1 || input2->ndim != input1->ndim) {
        tp_autotext a = {0}, b = {0}, t = {0};
        tp_text_ints(&a, tp_sizes(input1));
        tp_text_ints(&b, tp_sizes(input2));
        tp_text_ints(&t, tp_sizes(target));
        return tp_fail_null(TP_RuntimeError,
                            "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s",
                            target->ndim, target->ndim + 1, a.text, b.text);
    }
    tp_autoref *cosine = cosine_of(input1, input2, TP_INTS(target->ndim));
    tp_autoref *same = cosine ? tp_rsub_Scalar(cosine, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL,
               *above = same ? tp_sub_Scalar(cosine, TP_SCALAR_F(margin), TP_SCALAR_I(1)) : NULL,
               *other = above ? tp_clamp_min(above, TP_SCALAR_I(0)) : NULL;
    tp_autoref *is_same = other ? tp_eq_Scalar(target, TP_SCALAR_I(1)) : NULL,
               *is_other = is_same ? tp_eq_Scalar(target, TP_SCALAR_I(-1)) : NULL;
    tp_autoref *rest = is_other ? tp_where_ScalarOther(is_other, other, TP_SCALAR_I(0)) : NULL;
    return reduced_steal(rest ? tp_where_self(is_same, same, rest) : NULL, reduction);
}

/* triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2, float eps=1e-06,
 * bool swap=False, int reduction=Mean) -> Tensor */
tp_tensor *triplet_margin_loss_composite(tp_tensor *anchor, tp_tensor *positive, tp_tensor *negative, double margin,
                                         double p, double eps, bool swap, int64_t reduction) {
    if (anchor->ndim != positive->ndim || positive->ndim != negative->ndim)
        return tp_fail_null(TP_RuntimeError,
                            "The anchor, positive, and negative tensors are expected to have the same number of "
                            "dimensions, but got: anchor %dD, positive %dD, and negative %dD inputs",
                            anchor->ndim, positive->ndim, negative->ndim);
    if (!(margin > 0)) return tp_fail_null(TP_RuntimeError, "margin must be greater than 0, got %g", margin);
    tp_autoref *near = tp_pairwise_distance(anchor, positive, p, eps, false),
               *far = near ? tp_pairwise_distance(anchor, negative, p, eps, false) : NULL;
    if (far && swap) {
        tp_autoref *between = tp_pairwise_distance(positive, negative, p, eps, false);
        tp_tensor *least = between ? tp_minimum(far, between) : NULL;
        tp_release(far);
        far = least;
    }
    tp_autoref *gap = far ? tp_sub_Tensor(near, far, TP_SCALAR_I(1)) : NULL,
               *shifted = gap ? tp_add_Scalar(gap, TP_SCALAR_F(margin), TP_SCALAR_I(1)) : NULL;
    return reduced_steal(shifted ? tp_clamp_min(shifted, TP_SCALAR_I(0)) : NULL, reduction);
}

/* ---- out= variants whose outputs have names of their own ---- */

int huber_loss_backward_out_composite(tp_tensor *grad_output, tp_tensor *self, tp_tensor *target, int64_t reduction,
                                      double delta, tp_tensor *grad_input) {
    tp_autoref *made = tp_huber_loss_backward(grad_output, self, target, reduction, delta);
    return made ? tp_copy_into_out(grad_input, made) : -1;
}

int nll_loss2d_forward_output_composite(tp_tensor *self, tp_tensor *target, tp_tensor *weight, int64_t reduction,
                                        int64_t ignore_index, tp_tensor *output, tp_tensor *total_weight) {
    tp_tensor2 made = tp_nll_loss2d_forward(self, target, weight, reduction, ignore_index);
    return made.v[0] ? tp_copy_into_outs_steal((tp_tensor *const[]){output, total_weight}, made.v, 2) : -1;
}
