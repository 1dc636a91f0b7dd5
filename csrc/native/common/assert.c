/* assert.c: conditions that hold of values: an error where they do not, and nothing where there are no values. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "core/text.h"
#include "native/common/checks.h"

#include <math.h>
#include <stdio.h>

/* _assert_async.msg(Tensor self, str assert_msg) -> () */
int _assert_async_msg_dense(tp_tensor *self, const char *assert_msg) {
    bool holds = true;
    if (tp_has_values(self) && tp_holds(self, &holds) < 0) return -1;
    return holds ? 0 : tp_fail(TP_RuntimeError, "%s", assert_msg);
}
/* _assert_async(Tensor self) -> () */
int _assert_async_dense(tp_tensor *self) {
    return _assert_async_msg_dense(self, "Expected Tensor with single nonzero value, but got zero");
}

/* _assert_finite_range(Tensor low, Tensor high, str what) -> () */
int _assert_finite_range_dense(tp_tensor *low, tp_tensor *high, const char *what) {
    tp_scalar from, to;
    if (!tp_has_values(low) || !tp_has_values(high)) return 0;
    if (tp_item(low, &from) < 0 || tp_item(high, &to) < 0) return -1;
    double first = tp_scalar_double(&from), last = tp_scalar_double(&to);
    return isfinite(first) && isfinite(last)
               ? 0
               : tp_fail(TP_RuntimeError, "%s: range of [%g, %g] is not finite", what, first, last);
}

/* ---- of numbers, and of what a tensor is ---- */

/* _assert_scalar(Scalar self, str assert_msg) -> () */
int _assert_scalar_composite(const tp_scalar *self, const char *assert_msg) {
    return tp_scalar_bool(self) ? 0 : tp_fail(TP_RuntimeError, "%s", assert_msg);
}

static int mismatched(const char *what, tp_ints expected, tp_ints got) {
    if (expected.size < 0 || tp_ints_equal(expected, got)) return 0;
    tp_autotext a = {0}, b = {0};
    tp_text_ints(&a, expected);
    tp_text_ints(&b, got);
    return tp_fail(TP_RuntimeError, "Tensor %s mismatch! Expected: %s, Got: %s", what, a.text, b.text);
}
/* _assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device?
 * device=None, Layout? layout=None) -> () */
int _assert_tensor_metadata_composite(tp_tensor *a, tp_ints size, tp_ints stride, tp_dtype dtype, tp_device device,
                                      tp_layout layout) {
    char wanted[40], own[40];
    if (mismatched("sizes", size, tp_sizes(a)) < 0 || mismatched("strides", stride, tp_strides(a)) < 0) return -1;
    if (dtype != TP_NO_DTYPE && dtype != (tp_dtype)a->dtype)
        return tp_fail(TP_RuntimeError, "Tensor dtype mismatch! Expected: %s, Got: %s", tp_dtype_names[dtype],
                       tp_dtype_names[a->dtype]);
    if (device.type >= 0 && !tp_device_equal(device, a->device))
        return tp_fail(TP_RuntimeError, "Tensor device mismatch! Expected: %s, Got: %s",
                       tp_device_print(device, wanted), tp_device_print(a->device, own));
    if (layout != TP_NO_LAYOUT && layout != TP_STRIDED)
        return tp_fail(TP_RuntimeError, "Tensor layout mismatch! Expected another one, Got: Strided");
    return 0;
}

static int check_range(const tp_scalar *size, int64_t low, tp_opt_int max) {
    int64_t n = tp_scalar_int(size), high = max.has ? max.value : INT64_MAX;
    if (high < low)
        return tp_fail(TP_RuntimeError, "Max must be greater than or equal to min. Got min=%lld max=%lld",
                       (long long)low, (long long)high);
    if (n >= low && n <= high) return 0;
    return tp_fail(TP_RuntimeError, "Invalid value range for %lld between [%lld, %lld].", (long long)n, (long long)low,
                   (long long)high);
}
/* sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> () */
int sym_constrain_range_composite(const tp_scalar *size, tp_opt_int min, tp_opt_int max) {
    return check_range(size, min.has ? min.value : INT64_MIN, max);
}
/* sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> () */
int sym_constrain_range_for_size_composite(const tp_scalar *size, tp_opt_int min, tp_opt_int max) {
    if (max.has && max.value <= 2)
        return tp_fail(TP_RuntimeError, "Max value to constrain_range_for_size must be greater than 2. got: %lld",
                       (long long)max.value);
    return check_range(size, min.has ? min.value : 0, max);
}
/* _print(str s) -> () */
int _print_composite(const char *s) { return puts(s) < 0 ? tp_fail(TP_RuntimeError, "_print: stdout is closed") : 0; }
