/* out.c: see out.h. */
#include "native/common/out.h"

#include "core/determinism.h"
#include "core/scalar_math.h"
#include "iter/iter.h"

static int warn_of_sizes(const tp_tensor *out, tp_ints sizes) {
    tp_autotext had = {0}, wanted = {0};
    tp_text_ints(&had, tp_sizes(out));
    tp_text_ints(&wanted, sizes);
    return tp_warn(
        "An output with one or more elements was resized since it had shape %s, which does not match the required "
        "output shape %s. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
        "unless they have zero elements. Give out= a tensor of that shape, or one without elements: out.resize_(0).",
        had.text ? had.text : "", wanted.text ? wanted.text : "");
}

int tp_resize_out(tp_tensor *out, tp_ints sizes, tp_ints strides) {
    if (out->numel && warn_of_sizes(out, sizes) < 0) return -1;
    return tp_tensor_resize(out, sizes, strides);
}

int tp_check_takes(const tp_tensor *t, tp_ints read) {
    int64_t sizes[TP_MAX_DIMS];
    int n = tp_broadcast_sizes(tp_sizes(t), read, sizes);
    if (n < 0) return -1;
    if (tp_ints_equal(tp_sizes(t), (tp_ints){sizes, n})) return 0;
    tp_autotext own = {0}, whole = {0};
    tp_text_ints(&own, tp_sizes(t));
    tp_text_ints(&whole, (tp_ints){sizes, n});
    return tp_fail(TP_RuntimeError, "output with shape %s doesn't match the broadcast shape %s",
                   own.text ? own.text : "", whole.text ? whole.text : "");
}

const char *tp_c_type_name(tp_dtype d) {
    static const char *const names[TP_NUM_DTYPES] = {
        [TP_BOOL] = "bool",
        [TP_UINT8] = "unsigned char",
        [TP_INT8] = "signed char",
        [TP_INT16] = "short int",
        [TP_INT32] = "int",
        [TP_INT64] = "long int",
        [TP_FLOAT16] = "c10::Half",
        [TP_BFLOAT16] = "c10::BFloat16",
        [TP_FLOAT32] = "float",
        [TP_FLOAT64] = "double",
        [TP_COMPLEX64] = "c10::complex<float>",
        [TP_COMPLEX128] = "c10::complex<double>",
        [TP_COMPLEX32] = "c10::complex<c10::Half>",
    };
    return names[d] ? names[d] : tp_dtype_names[d];
}

int tp_check_given_dtype(const tp_tensor *given, tp_variant variant, tp_dtype dtype) {
    tp_dtype own = (tp_dtype)given->dtype;
    const char *wanted = tp_scalar_type_name(dtype), *found = tp_scalar_type_name(own);
    if (variant == TP_VARIANT_OUT_CAST && !tp_can_cast(dtype, own))
        return tp_fail(TP_RuntimeError,
                       "Expected result to be safely castable from %s dtype, but got result with dtype %s: result type "
                       "%s can't be cast to the desired output type %s",
                       wanted, found, wanted, found);
    if (variant != TP_VARIANT_OUT) return tp_check_castable(dtype, own);
    if (own == dtype) return 0;
    return tp_fail(
        TP_RuntimeError,
        "Expected out tensor to have dtype %s, but got %s instead. Expected object of scalar type %s but got "
        "scalar type %s for argument 'out': the operation's result requires dtype %s",
        tp_c_type_name(dtype), tp_c_type_name(own), wanted, found, wanted);
}

int tp_check_given(const tp_tensor *given, tp_variant variant, tp_dtype dtype, tp_device device) {
    char wanted[40], found[40];
    if (tp_device_equal(given->device, device)) return tp_check_given_dtype(given, variant, dtype);
    return tp_fail(TP_RuntimeError, "Expected out tensor to have device %s, but got %s instead",
                   tp_device_print(device, wanted), tp_device_print(given->device, found));
}
