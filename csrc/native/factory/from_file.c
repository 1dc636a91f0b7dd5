/* from_file.c: tensors whose memory is a file; on other devices than the CPU, of its elements. */
#include "NativeFunctions.h"
#include "core/error.h"
#include "core/mapped.h"

/* from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, Device?
 * device=None, bool? pin_memory=None) -> Tensor */
tp_tensor *from_file_composite(const char *filename, tp_opt_bool shared, tp_opt_int size, tp_dtype dtype,
                               tp_layout layout, tp_device device, tp_opt_bool pin_memory) {
    int64_t n = size.has ? size.value : 0, nbytes;
    tp_dtype made = dtype == TP_NO_DTYPE ? tp_default_dtype() : dtype;
    if (pin_memory == 1) return tp_fail_null(TP_RuntimeError, "tensors constructed from a file cannot be pinned");
    if (layout != TP_NO_LAYOUT && layout != TP_STRIDED)
        return tp_fail_null(TP_RuntimeError, "from_file: only the strided layout is supported");
    if (n < 0 || __builtin_mul_overflow(n, tp_itemsize(made), &nbytes))
        return tp_fail_null(TP_RuntimeError, "unable to mmap a number of %lld elements from file <%s>", (long long)n,
                            filename);
    tp_device where = device.type < 0 ? tp_default_device() : device;
    if (shared == 1 && !tp_device_equal(where, TP_CPU))
        return tp_fail_null(TP_RuntimeError, "from_file: the memory of %s cannot be that of a file",
                            tp_device_type_name((tp_device_type)where.type));
    tp_storage *storage = tp_map_file(filename, shared == 1, (size_t)nbytes);
    tp_autoref *t = storage ? tp_new_on_storage(storage, TP_INTS(n), TP_INTS(1), 0, made) : NULL;
    tp_storage_release(storage);
    if (!t || tp_device_equal(where, TP_CPU)) return tp_take(t);
    return tp_to_device(t, where, made, false, false, TP_NO_FORMAT);
}
