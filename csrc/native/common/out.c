/* out.c: see out.h. */
#include "native/common/out.h"

#include "iter/iter.h"

int tp_check_given_dtype(const tp_tensor *given, tp_variant variant, tp_dtype dtype) {
    if (variant != TP_VARIANT_OUT) return tp_check_castable(dtype, (tp_dtype)given->dtype);
    if ((tp_dtype)given->dtype == dtype) return 0;
    return tp_fail(
        TP_RuntimeError,
        "Expected out tensor to have dtype %s, but got %s instead. Expected object of scalar type %s but got "
        "scalar type %s for argument 'out'",
        tp_dtype_names[dtype], tp_dtype_names[given->dtype], tp_scalar_type_name(dtype),
        tp_scalar_type_name((tp_dtype)given->dtype));
}

int tp_check_given(const tp_tensor *given, tp_variant variant, tp_dtype dtype, tp_device device) {
    char wanted[40], found[40];
    if (tp_device_equal(given->device, device)) return tp_check_given_dtype(given, variant, dtype);
    return tp_fail(TP_RuntimeError, "Expected out tensor to have device %s, but got %s instead",
                   tp_device_print(device, wanted), tp_device_print(given->device, found));
}
