/* pointwise_special.c: the in-place polygamma, whose arguments are in another order than those of polygamma. */
#include "NativeFunctions.h"
#include "native/common/variants.h"

/* polygamma_(Tensor(a!) self, int n) -> Tensor(a!): its arguments are in another order than polygamma's. */
int polygamma__composite(tp_tensor *self, int64_t n) {
    tp_autoref *before = tp_unwritten(self, &self, 1);
    if (!before) return -1;
    tp_autoref *made = tp_polygamma(n, before);
    return made ? tp_copy_into_self_recorded(self, made) : -1;
}
