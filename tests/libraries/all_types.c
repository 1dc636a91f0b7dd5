/* all_types.c: every C type of a parameter, in one operator that prints what it was given. */
#include "tensorpy/library.h"
#include <stdio.h>
#define SCHEMA                                                                                                  \
    "f(Tensor a, Tensor? b, Tensor[] c, Scalar d, int e, int? f, float g, float? h, bool i, bool? j, int[] k, " \
    "float[] l, bool[] m, str n, ScalarType? o, Layout? p, MemoryFormat? q, Device? r) -> (int, float, bool)"
TENSORPY_KERNEL(int, f, (tp_keyset, ks), (tp_tensor *, a), (tp_tensor *, b), (tp_tensors, c), (const tp_scalar *, d),
                (int64_t, e), (tp_opt_int, f_), (double, g), (tp_opt_float, h), (bool, i), (tp_opt_bool, j),
                (tp_ints, k), (tp_floats, l), (tp_bools, m), (const char *, n), (tp_dtype, o), (tp_layout, p),
                (tp_memory_format, q), (tp_device, r), (int64_t *, first), (double *, second), (bool *, third)) {
    tp_view v = tp_view_of(a);
    printf("%d %lld %d %lld %g %lld %d %lld %g %d %g %d %d %lld %g %d %s %d %d %d %d %d\n", ks != 0, (long long)v.numel,
           b != NULL, (long long)c.size, tp_scalar_double(d), (long long)e, f_.has, (long long)f_.value, g, h.has,
           h.value, i, j, (long long)k.size, l.size > 0 ? l.data[0] : -1, (int)m.size, n, (int)o, (int)p, (int)q,
           (int)r.type, (int)r.index);
    fflush(stdout);
    *first = e, *second = g, *third = i;
    return 0;
}
TENSORPY_LIBRARY(all_types, m) { return tp_def(m, SCHEMA); }
TENSORPY_LIBRARY_IMPL(all_types, CPU, m) { return tp_impl(m, "f", f); }
