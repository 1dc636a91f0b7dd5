/* repeat_interleave.c: repeat_interleave on the CPU as a whole: each number as often as it is said, without a search.
 */
#include "NativeFunctions.h"
#include "core/memory.h"

/* repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor */
tp_tensor *repeat_interleave_Tensor_cpu(tp_tensor *repeats, tp_opt_int output_size) {
    if (repeats->ndim != 1) return tp_fail_null(TP_RuntimeError, "repeat_interleave only accept 1D vector as repeat");
    if (repeats->dtype != TP_INT64 && repeats->dtype != TP_INT32)
        return tp_fail_null(TP_RuntimeError, "repeats has to be Long or Int tensor");
    tp_autoref *wide = tp_to_dtype(repeats, TP_INT64, false, false, TP_NO_FORMAT),
               *counts = wide ? tp_contiguous(wide, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!counts) return NULL;
    const int64_t *n = tp_data(counts);
    int64_t total = 0;
    for (int64_t i = 0; i < counts->numel; i++) {
        if (n[i] < 0) return tp_fail_null(TP_RuntimeError, "repeats can not be negative");
        if (__builtin_add_overflow(total, n[i], &total))
            return tp_fail_null(TP_RuntimeError, "repeat_interleave: the sizes overflow");
    }
    if (output_size.has && output_size.value != total)
        return tp_fail_null(TP_RuntimeError, "repeat_interleave: the sum of repeats is %lld, but output_size is %lld",
                            (long long)total, (long long)output_size.value);
    tp_autoref *out = tp_new_empty(TP_INTS(total), (tp_dtype)repeats->dtype, TP_CPU);
    if (!out) return NULL;
    for (int64_t i = 0, at = 0; i < counts->numel; i++)
        for (int64_t k = 0; k < n[i]; k++, at++) {
            if (out->dtype == TP_INT64) ((int64_t *)tp_data(out))[at] = i;
            else ((int32_t *)tp_data(out))[at] = (int32_t)i;
        }
    return tp_take(out);
}
