/* convert.c: to(), contiguous(), item(): the composites around _to_copy and copy_. */
#include "NativeFunctions.h"
#include "prim/transfer.h"

tp_tensor *contiguous_composite(tp_tensor *self, tp_memory_format memory_format) {
    bool preserve = memory_format == TP_PRESERVE_FORMAT;
    if (tp_is_contiguous_in(self, preserve ? TP_CONTIGUOUS_FORMAT : memory_format)) return tp_retain(self);
    if (preserve)
        return tp_fail_null(TP_RuntimeError, "preserve memory format is unsupported by the contiguous operator");
    return tp_clone(self, memory_format);
}

static bool same_device(tp_device a, tp_device b) {
    return a.type == b.type && (a.index == b.index || a.index < 0 || b.index < 0);
}

/* self where nothing changes and no copy is asked for. */
static tp_tensor *to_if_needed(tp_tensor *self, tp_dtype dtype, tp_device device, bool non_blocking, bool copy,
                               tp_memory_format format) {
    bool same_dtype = dtype == TP_NO_DTYPE || dtype == (tp_dtype)self->dtype;
    bool stays = device.type < 0 || same_device(device, self->device);
    bool same_format =
        format == TP_NO_FORMAT || format == TP_PRESERVE_FORMAT || tp_suggest_memory_format(self) == format;
    if (same_dtype && stays && same_format && !copy) return tp_retain(self);
    return tp__to_copy(self, dtype, TP_NO_LAYOUT, device, -1, non_blocking, format);
}

tp_tensor *to_dtype_composite(tp_tensor *self, tp_dtype dtype, bool non_blocking, bool copy,
                              tp_memory_format memory_format) {
    return to_if_needed(self, dtype, TP_NO_DEVICE, non_blocking, copy, memory_format);
}
tp_tensor *to_device_composite(tp_tensor *self, tp_device device, tp_dtype dtype, bool non_blocking, bool copy,
                               tp_memory_format memory_format) {
    return to_if_needed(self, dtype, device, non_blocking, copy, memory_format);
}
tp_tensor *to_other_composite(tp_tensor *self, tp_tensor *other, bool non_blocking, bool copy,
                              tp_memory_format memory_format) {
    return to_if_needed(self, (tp_dtype)other->dtype, other->device, non_blocking, copy, memory_format);
}
tp_tensor *to_dtype_layout_composite(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                                     tp_opt_bool pin_memory, bool non_blocking, bool copy,
                                     tp_memory_format memory_format) {
    if (layout != TP_NO_LAYOUT && layout != TP_STRIDED)
        return tp_fail_null(TP_RuntimeError, "to: only the strided layout is supported");
    if (pin_memory == 1) {
        tp_autoref *made = to_if_needed(self, dtype, device, non_blocking, copy, memory_format);
        return made ? tp_pin_memory(made, TP_NO_DEVICE) : NULL;
    }
    return to_if_needed(self, dtype, device, non_blocking, copy, memory_format);
}

/* ---- one number ---- */

int _local_scalar_dense_dense(tp_tensor *self, tp_scalar *result) {
    if (self->numel != 1)
        return tp_fail(TP_RuntimeError, "_local_scalar_dense: a Tensor with %lld elements is not one number",
                       (long long)self->numel);
    return tp_read_number(self, result);
}

int item_composite(tp_tensor *self, tp_scalar *result) {
    if (self->numel != 1)
        return tp_fail(TP_RuntimeError, "a Tensor with %lld elements cannot be converted to Scalar",
                       (long long)self->numel);
    return tp__local_scalar_dense(self, result);
}

int is_nonzero_composite(tp_tensor *self, bool *result) {
    tp_scalar value;
    if (self->numel == 0) return tp_fail(TP_RuntimeError, "Boolean value of Tensor with no values is ambiguous");
    if (self->numel > 1)
        return tp_fail(TP_RuntimeError, "Boolean value of Tensor with more than one value is ambiguous");
    if (tp_decides(self) < 0) return -1;
    if (tp__local_scalar_dense(self, &value) < 0) return -1;
    *result = tp_scalar_bool(&value);
    return 0;
}
