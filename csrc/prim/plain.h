/* plain.h: operands as kernels without strides want them. */
#pragma once

#include "core/tensor.h"
#include "prim/transfer.h"

/* Whether a kernel without strides that computes in `dtype` needs a copy of t, or one to write instead of t. */
TP_INLINE bool tp_needs_copy(const tp_tensor *t, tp_dtype dtype) {
    return (tp_dtype)t->dtype != dtype || !tp_is_contiguous(t);
}

/* t itself if it is contiguous and of the dtype, else a contiguous copy; new. NULL stays NULL, without an error. */
TP_INLINE tp_tensor *tp_plain(tp_tensor *t, tp_dtype dtype) {
    if (!t || !tp_needs_copy(t, dtype)) return tp_retain(t);
    tp_tensor *copy = tp_new_empty(tp_sizes(t), dtype, t->device);
    if (copy && tp_copy_data(copy, t) < 0) {
        tp_release(copy);
        return NULL;
    }
    return copy;
}

/* What a kernel without strides writes instead of out: out itself where it can, else a new one, which tp_finish copies
 * over. */
TP_INLINE tp_tensor *tp_target(tp_tensor *out, tp_dtype dtype) {
    return tp_needs_copy(out, dtype) ? tp_new_empty(tp_sizes(out), dtype, out->device) : tp_retain(out);
}
TP_INLINE int tp_finish(tp_tensor *made, tp_tensor *out) { return made == out ? 0 : tp_copy_data(out, made); }

/* What a kernel computed into `made` (contiguous) in another memory format; takes made over. */
TP_INLINE tp_tensor *tp_in_format_steal(tp_tensor *made, tp_memory_format format) {
    if (!made || (format != TP_CHANNELS_LAST && format != TP_CHANNELS_LAST_3D)) return made;
    tp_tensor *copy = tp_new_empty_format(tp_sizes(made), (tp_dtype)made->dtype, made->device, format);
    if (copy && tp_copy_data(copy, made) < 0) {
        tp_release(copy);
        copy = NULL;
    }
    tp_release(made);
    return copy;
}

/* What a kernel computed into `made` (contiguous, compute dtype), as the operator's dtype; takes made over. */
TP_INLINE tp_tensor *tp_narrow_steal(tp_tensor *made, tp_dtype dtype) {
    if (!made || (tp_dtype)made->dtype == dtype) return made;
    tp_tensor *copy = tp_new_empty(tp_sizes(made), dtype, made->device);
    if (copy && tp_copy_data(copy, made) < 0) {
        tp_release(copy);
        copy = NULL;
    }
    tp_release(made);
    return copy;
}
