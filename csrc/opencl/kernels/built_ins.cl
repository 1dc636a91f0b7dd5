/* built_ins.cl: the functions of OpenCL C that kernels of the tree call, in front of the sources of programs that are
 * built without the compiler's own header of all of them (TP_BUILT_INS; program.c).
 *
 * Invariant: a call finds the overload that it would find in the whole header. So a function has all its overloads of
 * scalars that a call of the tree could be converted to; of vectors, which are not converted, it has those that are
 * called. Attributes are the header's.
 *
 * A product and a sum keep their two roundings in every program, so that calls have the same bits in a kernel of their
 * own and in one with others (fused.c); what is to be one rounding says fma. */
#pragma OPENCL FP_CONTRACT OFF
#ifdef TP_BUILT_INS
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define IF_F64(...) __VA_ARGS__
#else
#define IF_F64(...)
#endif
#define OVERLOAD __attribute__((overloadable))
#define OF_VALUES __attribute__((overloadable, const))
#define OF_MEMORY __attribute__((overloadable, pure))
#define TOGETHER __attribute__((overloadable, convergent))

/* X(name, type): the scalars and, of floats, the vectors. */
#define EACH_INTEGER(X, name) \
    X(name, char) X(name, uchar) X(name, short) X(name, ushort) X(name, int) X(name, uint) X(name, long) X(name, ulong)
#define EACH_FLOAT(X, name) \
    X(name, float) X(name, float8) X(name, float16) \
    IF_F64(X(name, double) X(name, double8))

/* ---- work-items ---- */

OF_VALUES size_t get_global_id(uint);
OF_VALUES size_t get_global_size(uint);
OF_VALUES size_t get_local_size(uint);
OF_VALUES size_t get_group_id(uint);
OF_VALUES size_t get_local_id(uint);
TOGETHER void barrier(cl_mem_fence_flags);
#define ATOMIC(space, type) \
    OVERLOAD type atomic_inc(volatile space type *); \
    OVERLOAD type atomic_min(volatile space type *, type); \
    OVERLOAD type atomic_cmpxchg(volatile space type *, type, type);
ATOMIC(__global, int) ATOMIC(__global, uint) ATOMIC(__local, int) ATOMIC(__local, uint)

/* ---- numbers ---- */

#define OF_ONE(name, type) OF_VALUES type name(type);
#define OF_TWO(name, type) OF_VALUES type name(type, type);
#define OF_THREE(name, type) OF_VALUES type name(type, type, type);
EACH_FLOAT(OF_ONE, acos) EACH_FLOAT(OF_ONE, acosh) EACH_FLOAT(OF_ONE, asin) EACH_FLOAT(OF_ONE, asinh)
EACH_FLOAT(OF_ONE, atan) EACH_FLOAT(OF_ONE, atanh) EACH_FLOAT(OF_ONE, cbrt) EACH_FLOAT(OF_ONE, ceil)
EACH_FLOAT(OF_ONE, cos) EACH_FLOAT(OF_ONE, cosh) EACH_FLOAT(OF_ONE, cospi) EACH_FLOAT(OF_ONE, erf)
EACH_FLOAT(OF_ONE, erfc) EACH_FLOAT(OF_ONE, exp) EACH_FLOAT(OF_ONE, exp2) EACH_FLOAT(OF_ONE, expm1)
EACH_FLOAT(OF_ONE, fabs) EACH_FLOAT(OF_ONE, floor) EACH_FLOAT(OF_ONE, lgamma) EACH_FLOAT(OF_ONE, log)
EACH_FLOAT(OF_ONE, log10) EACH_FLOAT(OF_ONE, log1p) EACH_FLOAT(OF_ONE, log2) EACH_FLOAT(OF_ONE, rint)
EACH_FLOAT(OF_ONE, round) EACH_FLOAT(OF_ONE, rsqrt) EACH_FLOAT(OF_ONE, sin) EACH_FLOAT(OF_ONE, sinh)
EACH_FLOAT(OF_ONE, sinpi) EACH_FLOAT(OF_ONE, sqrt) EACH_FLOAT(OF_ONE, tan) EACH_FLOAT(OF_ONE, tanh)
EACH_FLOAT(OF_ONE, trunc)
EACH_FLOAT(OF_TWO, atan2) EACH_FLOAT(OF_TWO, copysign) EACH_FLOAT(OF_TWO, fmax) EACH_FLOAT(OF_TWO, fmin)
EACH_FLOAT(OF_TWO, fmod) EACH_FLOAT(OF_TWO, hypot) EACH_FLOAT(OF_TWO, nextafter) EACH_FLOAT(OF_TWO, pow)
EACH_FLOAT(OF_TWO, remainder) EACH_FLOAT(OF_TWO, max) EACH_FLOAT(OF_TWO, min)
EACH_FLOAT(OF_THREE, fma) EACH_FLOAT(OF_THREE, mad) EACH_FLOAT(OF_THREE, clamp)
EACH_INTEGER(OF_TWO, max) EACH_INTEGER(OF_TWO, min) EACH_INTEGER(OF_TWO, mul_hi) EACH_INTEGER(OF_THREE, clamp)
OF_VALUES float ldexp(float, int);
OVERLOAD float lgamma_r(float, int *);
IF_F64(OF_VALUES double ldexp(double, int); OVERLOAD double lgamma_r(double, int *);)

/* They give integers as wide as the floats of a vector, and an int of a double. */
#define TEST(type, result) \
    OF_VALUES result isfinite(type); OF_VALUES result isinf(type); OF_VALUES result isnan(type); \
    OF_VALUES result isnormal(type); OF_VALUES result signbit(type);
TEST(float, int) TEST(float8, int8) TEST(float16, int16)
IF_F64(TEST(double, int) TEST(double8, long8))

/* ---- conversions ---- */

#define TO_INTEGERS(from) \
    OF_VALUES int convert_int_sat_rtz(from); OF_VALUES long convert_long_sat_rtz(from); \
    OF_VALUES ulong convert_ulong_sat_rtz(from);
TO_INTEGERS(float) IF_F64(TO_INTEGERS(double))
#define CONVERT(to, from) OF_VALUES to convert_##to(from);
#define CONVERT_WIDE(n) \
    CONVERT(ushort##n, uint##n) CONVERT(uint##n, ushort##n) CONVERT(uint##n, uint##n) \
    CONVERT(uint##n, ulong##n) CONVERT(ulong##n, uint##n) CONVERT(long##n, int##n) CONVERT(long##n, long##n) \
    CONVERT(float##n, float##n) \
    IF_F64(CONVERT(float##n, double##n) CONVERT(double##n, float##n) CONVERT(double##n, double##n)) \
    OF_VALUES uint##n select(uint##n, uint##n, int##n);
CONVERT_WIDE(2) CONVERT_WIDE(4) CONVERT_WIDE(8) CONVERT_WIDE(16)

/* ---- memory ---- */

#define LOAD_AND_STORE(n, type) \
    OF_MEMORY type##n vload##n(size_t, const __global type *); \
    OF_MEMORY type##n vload##n(size_t, const __local type *); \
    OF_MEMORY type##n vload##n(size_t, const type *); \
    OVERLOAD void vstore##n(type##n, size_t, __global type *); \
    OVERLOAD void vstore##n(type##n, size_t, __local type *); \
    OVERLOAD void vstore##n(type##n, size_t, type *);
#define EACH_MEMORY(n) \
    LOAD_AND_STORE(n, ushort) LOAD_AND_STORE(n, uint) LOAD_AND_STORE(n, long) LOAD_AND_STORE(n, float) \
    IF_F64(LOAD_AND_STORE(n, double)) \
    OF_MEMORY float##n vload_half##n(size_t, const __global half *); \
    OVERLOAD void vstore_half##n##_rte(float##n, size_t, __global half *); \
    IF_F64(OVERLOAD void vstore_half##n##_rte(double##n, size_t, __global half *);)
EACH_MEMORY(4) EACH_MEMORY(8) EACH_MEMORY(16)
OF_MEMORY float vload_half(size_t, const half *);
OVERLOAD void vstore_half_rte(float, size_t, half *);
IF_F64(OVERLOAD void vstore_half_rte(double, size_t, half *);)
#endif
