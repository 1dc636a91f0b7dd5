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
/* The 8-bit floats, as tensorpy/float8.h has them. */
static inline float float8_magnitude(uint code, int fraction, int bias) {
    return code >> fraction ? as_float((code << (23 - fraction)) + ((uint)(127 - bias) << 23))
                            : (float)(int)code * as_float((uint)(128 - bias - fraction) << 23);
}
static inline uint float8_code(uint bits, int fraction, int bias, uint limit) {
    uint power = (uint)(151 - bias - fraction) << 23;
    uint small = as_uint(as_float(bits) + as_float(power)) - power;
    uint odd = bits >> (23 - fraction) & 1, half_way = (1u << (22 - fraction)) - 1;
    uint large = (bits + half_way + odd - ((uint)(127 - bias) << 23)) >> (23 - fraction);
    uint code = bits < (uint)(128 - bias) << 23 ? small : large;
    return bits > 0x7f800000u || code > limit ? limit : code;
}
static inline float signed_as(uchar bits, float f) { return bits & 0x80 ? -f : f; }
static inline float load_uz(uchar bits, int fraction, int bias) {
    return bits == 0x80 ? as_float(0x7fc00000u) : signed_as(bits, float8_magnitude(bits & 0x7f, fraction, bias));
}
static inline uchar store_uz(float x, int fraction, int bias) {
    uint code = float8_code(as_uint(x) & 0x7fffffff, fraction, bias, 0x80);
    return (uchar)(code ? (as_uint(x) >> 24 & 0x80) | code : 0);
}
static inline float load_e4m3fn(uchar bits) {
    uint code = bits & 0x7f;
    return signed_as(bits, code == 0x7f ? as_float(0x7fc00000u) : float8_magnitude(code, 3, 7));
}
static inline uchar store_e4m3fn(float x) {
    uint m = as_uint(x) & 0x7fffffff;
    return (uchar)((as_uint(x) >> 24 & 0x80) | (m > 0x7f800000u ? 0x7f : float8_code(m, 3, 7, 0x7e)));
}
static inline float load_e5m2(uchar bits) { return load_f16((ushort)(bits << 8)); }
static inline uchar store_e5m2(float x) {
    uint m = as_uint(x) & 0x7fffffff;
    return (uchar)((as_uint(x) >> 24 & 0x80) | (m > 0x7f800000u ? 0x7f : float8_code(m, 2, 15, 0x7c)));
}
static inline float load_e4m3fnuz(uchar bits) { return load_uz(bits, 3, 8); }
static inline uchar store_e4m3fnuz(float x) { return store_uz(x, 3, 8); }
static inline float load_e5m2fnuz(uchar bits) { return load_uz(bits, 2, 16); }
static inline uchar store_e5m2fnuz(float x) { return store_uz(x, 2, 16); }
static inline float load_e8m0fnu(uchar bits) {
    return as_float(bits == 0xff ? 0x7fc00000u : bits ? (uint)bits << 23 : 0x400000u);
}
static inline uchar store_e8m0fnu(float x) {
    uint exponent = as_uint(x) >> 23 & 0xff, rest = as_uint(x) & 0x7fffff;
    return (uchar)(exponent == 0xff ? 0xff : exponent + (rest + (exponent > 0) > 0x400000u));
}
/* complex32: two binary16, the real part in the low half. */
static inline float2 load_c32(uint bits) { return (float2)(load_f16((ushort)bits), load_f16((ushort)(bits >> 16))); }
static inline uint store_c32(float2 x) { return (uint)store_f16(x.x) | (uint)store_f16(x.y) << 16; }
#define STORE_BF16_VECTOR(v, n)                                                       \
    convert_ushort##n(select((as_uint##n(v) + 0x7fff + ((as_uint##n(v) >> 16) & 1)) >> 16, \
                             (as_uint##n(v) >> 16) | 64, isnan(v)))
#ifdef TP_HAVE_F64
#define WIDEST double
#else
#define WIDEST float
#endif
/* In front of a loop whose turns are independent of each other: a CPU device's compiler makes vectors of them. And of one
 * with few turns, as over what is left of vectors: it stays as it is, which takes the compiler half the time. */
#ifdef TP_CPU_DEVICE
#define OVER_VECTORS _Pragma("clang loop vectorize(assume_safety)")
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
#define FEW_TURNS _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define OVER_VECTORS
#define ONE_BY_ONE
#define FEW_TURNS
#endif
/* A negative float goes through long, so that -1.0 is the largest value; what is too large gives 0, as on the CPU. */
static inline ulong to_ulong(WIDEST v) {
    if (v >= 18446744073709551616.0f) return 0;
    return v >= 0 ? convert_ulong_sat_rtz(v) : (ulong)convert_long_sat_rtz(v);
}

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
