/* amp.c: gradients back from the factor of a GradScaler. */
#include "NativeFunctions.h"

static int check_one(const char *name, const tp_tensor *t) {
    if (t->numel == 1 && t->dtype == TP_FLOAT32) return 0;
    return tp_fail(TP_RuntimeError, "_amp_foreach_non_finite_check_and_unscale_: %s must be a 1-element float32 tensor",
                   name);
}

/* What is not finite times zero is NaN, and nothing else is: one sum says it of a whole tensor. */
static int note_non_finite(tp_tensor *t, tp_tensor *found_inf) {
    tp_autoref *none = tp_mul_Scalar(t, TP_SCALAR_F(0.0)), *sum = none ? tp_sum(none, TP_NO_DTYPE) : NULL;
    tp_autoref *bad = sum ? tp_ne_Tensor(sum, sum) : NULL;
    tp_autoref *flat = bad ? tp_reshape(bad, tp_sizes(found_inf)) : NULL;
    return flat ? tp_masked_fill__Scalar(found_inf, flat, TP_SCALAR_F(1.0)) : -1;
}

/* _amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor inv_scale) -> () */
int amp_foreach_unscale(tp_tensors self, tp_tensor *found_inf, tp_tensor *inv_scale) {
    if (check_one("found_inf", found_inf) < 0 || check_one("inv_scale", inv_scale) < 0) return -1;
    for (int64_t i = 0; i < self.size; i++)
        if (note_non_finite(self.data[i], found_inf) < 0) return -1;
    tp_autoref *scale = tp_reshape(inv_scale, TP_EMPTY_INTS);
    return scale ? tp__foreach_mul__Tensor(self, scale) : -1;
}
