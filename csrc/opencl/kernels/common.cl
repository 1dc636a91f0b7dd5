/* common.cl: in front of every kernel, after the math helpers: elements that OpenCL C has no arithmetic for, and
 * conversions that C leaves open. */
static inline float load_f16(ushort bits) { return vload_half(0, (const half *)&bits); }
static inline ushort store_f16(float x) {
    ushort bits;
    vstore_half_rte(x, 0, (half *)&bits);
    return bits;
}
static inline float load_bf16(ushort bits) { return as_float((uint)bits << 16); }
static inline ushort store_bf16(float x) {
    uint u = as_uint(x);
    return isnan(x) ? (ushort)((u >> 16) | 64) : (ushort)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
#define STORE_BF16_VECTOR(v, n)                                                       \
    convert_ushort##n(select((as_uint##n(v) + 0x7fff + ((as_uint##n(v) >> 16) & 1)) >> 16, \
                             (as_uint##n(v) >> 16) | 64, isnan(v)))
#ifdef TP_HAVE_F64
#define WIDEST double
#else
#define WIDEST float
#endif
/* In front of a loop whose turns are independent of each other: a CPU device's compiler makes vectors of them. */
#ifdef TP_CPU_DEVICE
#define OVER_VECTORS _Pragma("clang loop vectorize(assume_safety)")
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
#else
#define OVER_VECTORS
#define ONE_BY_ONE
#endif
/* A negative float goes through long, so that -1.0 is the largest value. */
static inline ulong to_ulong(WIDEST v) { return v >= 0 ? convert_ulong_sat_rtz(v) : (ulong)convert_long_sat_rtz(v); }

/* Leaves a note of what is wrong, unless there is one already; see fault.h. */
static inline void report(volatile __global int *fault, int kind, long value, long dim, long size) {
    if (atomic_cmpxchg(fault, 0, kind) != 0) return;
    volatile __global long *words = (volatile __global long *)fault;
    words[1] = value;
    words[2] = dim;
    words[3] = size;
}
/* An index in [0, size), where `wrap` takes a negative one from the end; -1, and a note, for one that is out of range.
 */
static inline long checked(long i, long size, int wrap, long dim, volatile __global int *fault, int kind) {
    long at = wrap && i < 0 ? i + size : i;
    if (at >= 0 && at < size) return at;
    report(fault, kind, i, dim, size);
    return -1;
}
