/* pack.c: the primitives pack, unpack and nonzero on the CPU; the walks along a mask are in masked.c. */
#include "PrimitiveKernels.h"
#include "cpu/masked.h"
#include "prim/fault.h"
#include "core/memory.h"

tp_tensor *pack_cpu(tp_tensor *from, tp_tensor *mask) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel);
    tp_tensor *out = tp_new_empty(TP_INTS(n), (tp_dtype)from->dtype, TP_CPU);
    if (out)
        tp_mask_pack(tp_data(out), n, tp_data(from), tp_data(mask), mask->numel, tp_itemsize((tp_dtype)from->dtype));
    return out;
}

int unpack_cpu(tp_tensor *from, tp_tensor *mask, int64_t fault, tp_tensor *out) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel);
    if (n > from->numel) return tp_raise_fault((int)fault, from->numel, 0, n, "");
    tp_mask_unpack(tp_data(out), tp_data(from), from->numel, tp_data(mask), mask->numel,
                   tp_itemsize((tp_dtype)from->dtype));
    return 0;
}

tp_tensor *nonzero_cpu(tp_tensor *mask) {
    int64_t n = tp_mask_count(tp_data(mask), mask->numel);
    int last = mask->ndim - 1;
    tp_tensor *out = tp_new_empty_strided(TP_INTS(n, mask->ndim), TP_INTS(1, n > 0 ? n : 1), TP_INT64, TP_CPU);
    if (!out || mask->ndim == 0 || n == 0) return out;
    int64_t *columns = tp_data(out), *flat = columns + last * n;
    tp_mask_places(flat, n, tp_data(mask), mask->numel);
    for (int64_t k = 0; last > 0 && k < n; k++) {
        int64_t rest = flat[k];
        for (int d = last; d >= 0; rest /= mask->sizes[d--]) columns[d * n + k] = rest % mask->sizes[d];
    }
    return out;
}
