/* loss.c: what the losses share. The losses themselves are formulas in the YAML. */
#include "NativeFunctions.h"

/* _reduce_loss(Tensor self, int reduction) -> Tensor: 0 leaves the losses, 1 is their mean, 2 their sum. */
tp_tensor *_reduce_loss_composite(tp_tensor *self, int64_t reduction) {
    if (reduction < 0 || reduction > 2)
        return tp_fail_null(TP_RuntimeError, "reduction: 0 (none), 1 (mean) or 2 (sum) is expected, got %lld",
                            (long long)reduction);
    if (reduction == 0) return tp_retain(self);
    tp_autoref *sum = tp_sum(self, TP_NO_DTYPE);
    return sum && reduction == 1 ? tp_div_Scalar(sum, TP_SCALAR_F((double)self->numel)) : tp_take(sum);
}
