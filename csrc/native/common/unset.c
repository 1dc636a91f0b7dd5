/* unset.c: elements that nobody has written get a value that shows: NaN, the largest integer, True. */
#include "native/common/unset.h"

#include "Functions.h"
#include "core/scalar.h"

#include <math.h>

static tp_scalar value_for(tp_dtype dtype) {
    if (dtype == TP_BOOL) return *TP_SCALAR_B(true);
    if (!tp_is_integral_dtype(dtype)) return *TP_SCALAR_F(NAN);
    bool is_unsigned = tp_dtype_categories[dtype] == TP_UNSIGNED;
    return *TP_SCALAR_I(is_unsigned ? -1 : (int64_t)(UINT64_MAX >> (65 - 8 * tp_itemsize(dtype))));
}

int tp_fill_unset_elements(tp_tensor *t) {
    if (!tp_has_values(t) || t->numel == 0) return 0;
    tp_scalar value = value_for((tp_dtype)t->dtype);
    return tp_fill__Scalar(t, &value);
}

/* Fills what a storage has grown by, from nbytes on: what was there stays. */
int tp_fill_unset_from(tp_tensor *t, size_t nbytes) {
    int64_t size = tp_itemsize((tp_dtype)t->dtype), first = ((int64_t)nbytes + size - 1) / size;
    int64_t n = (int64_t)t->storage->nbytes / size - first;
    if (n <= 0) return 0;
    tp_autoref *fresh = tp_new_alias(t, TP_INTS(n), TP_INTS(1), first * size);
    return fresh ? tp_fill_unset_elements(fresh) : -1;
}
