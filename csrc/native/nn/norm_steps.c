/* norm_steps.c: batch_norm in the steps of a layer whose batch is on several devices, and its gradient by another name.
 */
#include "NativeFunctions.h"

/* Running statistics, if there are any, move towards the batch's. */
static int towards(tp_tensor *running, tp_tensor *found, double momentum) {
    if (!running) return 0;
    tp_autoref *as_running = tp_to_dtype(found, (tp_dtype)running->dtype, false, false, TP_NO_FORMAT);
    return as_running ? tp_lerp__Scalar(running, as_running, TP_SCALAR_F(momentum)) : -1;
}

/* batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> (Tensor, Tensor)
 */
tp_tensor2 batch_norm_update_stats_composite(tp_tensor *input, tp_tensor *running_mean, tp_tensor *running_var,
                                             double momentum) {
    tp_tensor3 found = tp__channel_statistics(input);
    tp_autoref *mean = found.v[0], *spread = found.v[1], *unbiased = found.v[2];
    if (!mean || towards(running_mean, mean, momentum) < 0 || towards(running_var, unbiased, momentum) < 0)
        return (tp_tensor2){{NULL, NULL}};
    return (tp_tensor2){{tp_take(mean), tp_take(spread)}};
}

/* batch_norm_gather_stats_with_counts(Tensor input, Tensor mean, Tensor invstd, Tensor? running_mean, Tensor?
 * running_var, float momentum, float eps, Tensor counts) -> (Tensor, Tensor) */
tp_tensor2 batch_norm_gather_stats_with_counts_composite(tp_tensor *input TP_UNUSED, tp_tensor *mean, tp_tensor *invstd,
                                                         tp_tensor *running_mean, tp_tensor *running_var,
                                                         double momentum, double eps, tp_tensor *counts) {
    const tp_tensor2 failed = {{NULL, NULL}};
    tp_tensor3 found = tp__joined_statistics(mean, invstd, counts, eps);
    tp_autoref *joined = found.v[0], *spread = found.v[1], *unbiased = found.v[2];
    if (!joined || towards(running_mean, joined, momentum) < 0 || towards(running_var, unbiased, momentum) < 0)
        return failed;
    tp_autoref *shifted = tp_add_Scalar(spread, TP_SCALAR_F(eps), TP_SCALAR_I(1)),
               *root = shifted ? tp_rsqrt(shifted) : NULL;
    return root ? (tp_tensor2){{tp_take(joined), tp_take(root)}} : failed;
}

/* batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? running_var, Tensor?
 * save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor reserve) -> (Tensor, Tensor, Tensor)
 */
tp_tensor3 batch_norm_backward_composite(tp_tensor *grad_out, tp_tensor *input, tp_tensor *weight,
                                         tp_tensor *running_mean, tp_tensor *running_var, tp_tensor *save_mean,
                                         tp_tensor *save_var, bool update, double eps, tp_bools output_mask,
                                         tp_tensor *reserve TP_UNUSED) {
    return tp_native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_var,
                                         update, eps, output_mask);
}
