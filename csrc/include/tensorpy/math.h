/* math.h: the math helpers of pointwise expressions: one text that is valid C11 and valid OpenCL C 1.2.
 *
 * `tp_<function>_<type>`, with the types f32 f64 c64 c128 i8..i64 u8..u64 bool; codegen/scalar_math.py lists which
 * functions an expression may call for which types. The parts:
 *   math_f32.h        float's own elementary functions: branch-free polynomials that the compiler vectorises
 *   math_real.inc     everything else on f32 and f64, included once for each
 *   math_special.inc  special functions with loops; float's are computed in double where there is one
 *   math_gamma.inc    the incomplete gamma functions, in the same way
 *   math_bessel.inc, math_polynomial.inc  Bessel functions, and orthogonal polynomials, in the same way
 *   math_int.inc, math_complex.inc
 *
 * Invariants: NaN, infinities and signed zeros come out as IEEE 754 and C Annex F say, without any relaxed-math flag
 * but -fno-math-errno and -fno-trapping-math, which keep them. Helpers marked vectorisable in the table have no loop,
 * and no call but to functions that have a vector form. */
#ifndef TENSORPY_MATH_H
#define TENSORPY_MATH_H

/* ---- types ---- */

#if defined(__OPENCL_VERSION__) || defined(__OPENCL_C_VERSION__)
#define TP_OPENCL 1
#endif

/* The compiler makes this CPU's code at once, so its own functions are there: it makes vectors of them, and not of the
 * driver's. The architecture is asked for, since the names of intermediate languages differ: a compiler that goes
 * through SPIR defines __SPIR__, __SPIR64__ or both, and its translator may end the process at such a function. */
#if defined(TP_CPU_DEVICE) && (defined(__x86_64__) || defined(__i386__) || defined(__aarch64__) || defined(__arm__) || \
                               defined(__powerpc64__) || defined(__riscv))
#define TP_CPU_COMPILER 1
#endif

#ifdef TP_OPENCL

#define TP_FN static inline __attribute__((always_inline)) /* a loop with a call is no vector loop */
#define TP_SLOW static
#define TP_ROUNDED(product) (product)
#ifndef TP_INLINE
#define TP_INLINE static inline
#endif
#if defined(cl_khr_fp64) || defined(__opencl_c_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#define TP_HAVE_F64 1
#endif

typedef bool tp_bool;
typedef uchar tp_u8;
typedef ushort tp_u16;
typedef uint tp_u32;
typedef ulong tp_u64;
typedef char tp_i8;
typedef short tp_i16;
typedef int tp_i32;
typedef long tp_i64;
typedef float tp_f32;
typedef float2 tp_c64;
#ifdef TP_HAVE_F64
typedef double tp_f64;
typedef double2 tp_c128;
#endif

#define TP_BITS_f32(x) as_uint(x)
#define TP_FROM_BITS_f32(u) as_float(u)
#define TP_BITS_f64(x) as_ulong(x)
#define TP_FROM_BITS_f64(u) as_double(u)
#if defined(FP_FAST_FMAF) || defined(__FMA__) /* the latter is told by CPU devices' compilers only */
#define TP_FUSED 1
#define TP_FMA(a, b, c) fma(a, b, c)
#else
#define TP_FMA(a, b, c) mad(a, b, c)
#endif
#define TP_ABS_f32(x) fabs(x)
#define TP_COPYSIGN_f32(x, y) copysign(x, y)
#define TP_SQRT_f32(x) sqrt(x)
#define TP_INF_f32 INFINITY
#define TP_NAN_f32 NAN
#define TP_INF_f64 ((tp_f64)INFINITY)
#define TP_NAN_f64 ((tp_f64)NAN)
#define TP_MAX_f32 FLT_MAX
#define TP_MAX_f64 DBL_MAX

#else

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#define TP_HAVE_F64 1
#define TP_FN static inline __attribute__((always_inline, unused))
/* A product that is rounded before it is added or subtracted. From version 12 on gcc makes one instruction of a sum
 * and a difference of products side by side (vfmaddsub), even where contraction is off, in whole vectors alone: bits
 * would depend on where an element lies. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define TP_ROUNDED(product) __builtin_assoc_barrier(product)
#else
#define TP_ROUNDED(product) (product)
#endif
#define TP_SLOW static __attribute__((noinline, unused))

typedef bool tp_bool;
typedef uint8_t tp_u8;
typedef uint16_t tp_u16;
typedef uint32_t tp_u32;
typedef uint64_t tp_u64;
typedef int8_t tp_i8;
typedef int16_t tp_i16;
typedef int32_t tp_i32;
typedef int64_t tp_i64;
typedef float tp_f32;
typedef double tp_f64;
__extension__ typedef float _Complex tp_c64;
__extension__ typedef double _Complex tp_c128;

#define TP_BITS_f32(x)     \
    (__extension__(union { \
         tp_f32 f;         \
         tp_u32 u;         \
     }){x}                 \
         .u)
#define TP_FROM_BITS_f32(b) \
    (__extension__(union {  \
         tp_u32 u;          \
         tp_f32 f;          \
     }){b}                  \
         .f)
#define TP_BITS_f64(x)     \
    (__extension__(union { \
         tp_f64 f;         \
         tp_u64 u;         \
     }){x}                 \
         .u)
#define TP_FROM_BITS_f64(b) \
    (__extension__(union {  \
         tp_u64 u;          \
         tp_f64 f;          \
     }){b}                  \
         .f)
/* Fused where the CPU does it in one instruction; elsewhere fma() would be a call, and two roundings must do. */
#if defined(__FMA__) || defined(__aarch64__)
#define TP_FUSED 1
#define TP_FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define TP_FMA(a, b, c) ((a) * (b) + (c))
#endif
#define TP_ABS_f32(x) __builtin_fabsf(x)
#define TP_COPYSIGN_f32(x, y) __builtin_copysignf(x, y)
#define TP_SQRT_f32(x) __builtin_sqrtf(x)
#define TP_INF_f32 __builtin_inff()
#define TP_NAN_f32 __builtin_nanf("")
#define TP_INF_f64 __builtin_inf()
#define TP_NAN_f64 __builtin_nan("")
#define TP_MAX_f32 __FLT_MAX__
#define TP_MAX_f64 __DBL_MAX__

/* Note [Vector libm]
 * Declared with the simd attribute, a libm function may be called by gcc's vectoriser through glibc's libmvec. Under
 * any other compiler or C library the same text calls the scalar function, but for those that math_f32.h has for
 * float. The first list is in every glibc that has libmvec on x86-64 (2.22), the second came with 2.35. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__) && !defined(TP_NO_LIBMVEC)
#define TP_SIMD(name)                                                \
    __attribute__((simd("notinbranch"), const)) double name(double); \
    __attribute__((simd("notinbranch"), const)) float name##f(float);
#define TP_SIMD2(name)                                                       \
    __attribute__((simd("notinbranch"), const)) double name(double, double); \
    __attribute__((simd("notinbranch"), const)) float name##f(float, float);
TP_SIMD(sin)
TP_SIMD(cos)
TP_SIMD(exp)
TP_SIMD(log)
TP_SIMD2(pow)
/* cos under a name that gcc does not join with sin of the same number to one call, which has no vector form. */
#define TP_LONE_COS 1
__attribute__((simd("notinbranch"), const)) double tp_lone_cos(double) __asm__("cos");
#if __GLIBC_PREREQ(2, 35)
#define TP_LIBMVEC 1
TP_SIMD(exp2)
TP_SIMD(expm1)
TP_SIMD(log2)
TP_SIMD(log10)
TP_SIMD(log1p)
TP_SIMD(tan)
TP_SIMD(asin)
TP_SIMD(acos)
TP_SIMD(atan)
TP_SIMD(sinh)
TP_SIMD(cosh)
TP_SIMD(tanh)
TP_SIMD(asinh)
TP_SIMD(acosh)
TP_SIMD(atanh)
TP_SIMD(erf)
TP_SIMD(erfc)
TP_SIMD2(atan2)
TP_SIMD2(hypot)
#if defined(__AVX512F__) && defined(TP_FOLDER_cpu)
/* Functions of cpu/vector_math.c, called likewise by the tree's own kernels. */
#define TP_VECTOR_MATH 1
#define TP_VECTOR(name) __attribute__((simd("notinbranch"), const)) float tp_vector_##name(float);
TP_VECTOR(log)
TP_VECTOR(log2)
TP_VECTOR(log10)
#undef TP_VECTOR
__attribute__((simd("notinbranch"), const)) float tp_vector_pow(float, float);
#endif
#endif
#undef TP_SIMD
#undef TP_SIMD2
#endif

#endif
#ifndef TP_LONE_COS
#define tp_lone_cos(x) cos(x)
#endif

#define TP_PASTE_(a, b) a##b
#define TP_PASTE(a, b) TP_PASTE_(a, b)

#ifndef TP_ENDS_AT /* whether step k of a long loop is to be the last */
#define TP_ENDS_AT(k) false
#endif

/* ---- real numbers ---- */

#include "tensorpy/math_f32.h"

#define TP_R f32
#define TP_T tp_f32
#define TP_BITS_T tp_u32
#define TP_SIGNED_T tp_i32
#define TP_C(x) x##f
#if !defined(TP_OPENCL) || defined(TP_CPU_DEVICE)
#define TP_OWN_ELEMENTARY 1
#endif
#ifdef TP_OPENCL
#define TP_LIBM(name) name
#else
#define TP_LIBM(name) name##f
#endif
#ifdef TP_CPU_COMPILER
#define TP_ROUNDING(name) __builtin_##name##f
#else
#define TP_ROUNDING TP_LIBM
#endif
#if defined(TP_OPENCL) && !defined(TP_CPU_DEVICE)
/* A GPU's quotients are not rounded exactly. */
#elif defined(TP_FUSED)
/* With one rounding the remainder of a whole quotient below 2**23 is exact; in double that of one below 2**29 is. */
#define TP_FMOD_FAST tp_f32
#define TP_FMOD_IN TP_ROUNDING
#define TP_FMOD_LIMIT 0x1p23f
#define TP_FMOD_STEP(q, b, a) TP_FMA(q, b, a)
#elif defined(TP_HAVE_F64)
#define TP_FMOD_FAST tp_f64
#define TP_FMOD_IN(name) name
#define TP_FMOD_LIMIT 0x1p29
#define TP_FMOD_STEP(q, b, a) ((q) * (b) + (a))
#endif
#ifdef TP_HAVE_F64
#define TP_WIDE tp_f64
#ifdef TP_CPU_COMPILER
#define TP_WIDE_FLOOR __builtin_floor
#else
#define TP_WIDE_FLOOR floor
#endif
#endif
#include "tensorpy/math_real.inc"
#ifdef TP_OPENCL
#define TP_STEP(a, b, c) TP_FMA(a, b, c)
#define TP_FMA_ONCE(a, b, c) fma(a, b, c) /* with one rounding, however slow */
#include "tensorpy/math_bessel.inc"
#include "tensorpy/math_special.inc"
#include "tensorpy/math_gamma.inc"
#include "tensorpy/math_polynomial.inc"
#undef TP_STEP
#undef TP_FMA_ONCE
#endif
#undef TP_R
#undef TP_T
#undef TP_BITS_T
#undef TP_SIGNED_T
#undef TP_C
#undef TP_LIBM
#undef TP_ROUNDING
#undef TP_OWN_ELEMENTARY
#undef TP_FMOD_FAST
#undef TP_FMOD_IN
#undef TP_FMOD_LIMIT
#undef TP_FMOD_STEP
#undef TP_WIDE
#undef TP_WIDE_FLOOR

#ifdef TP_HAVE_F64
#define TP_R f64
#define TP_T tp_f64
#define TP_BITS_T tp_u64
#define TP_SIGNED_T tp_i64
#define TP_C(x) x
#define TP_LIBM(name) name
#ifdef TP_CPU_COMPILER
#define TP_ROUNDING(name) __builtin_##name
#else
#define TP_ROUNDING TP_LIBM
#endif
#if !defined(TP_OPENCL) && defined(TP_FUSED)
#define TP_FMOD_FAST tp_f64
#define TP_FMOD_IN TP_ROUNDING
#define TP_FMOD_LIMIT 0x1p52
#define TP_FMOD_STEP(q, b, a) __builtin_fma(q, b, a)
#endif
#if defined(TP_OPENCL)
#define TP_STEP(a, b, c) TP_FMA(a, b, c)
#elif defined(TP_FUSED)
#define TP_STEP(a, b, c) __builtin_fma(a, b, c)
#else
#define TP_STEP(a, b, c) ((a) * (b) + (c))
#endif
#include "tensorpy/math_real.inc"
#include "tensorpy/math_bessel.inc"
#include "tensorpy/math_special.inc"
#include "tensorpy/math_gamma.inc"
#include "tensorpy/math_polynomial.inc"
#undef TP_STEP
#undef TP_FMOD_FAST
#undef TP_FMOD_IN
#undef TP_FMOD_LIMIT
#undef TP_FMOD_STEP
#undef TP_R
#undef TP_T
#undef TP_BITS_T
#undef TP_SIGNED_T
#undef TP_C
#undef TP_LIBM
#undef TP_ROUNDING
#endif

#ifndef TP_OPENCL
TP_SLOW tp_f32 tp_lgamma_f32(tp_f32 x) {
    int sign;
    extern float lgammaf_r(float, int *);
    return lgammaf_r(x, &sign);
}
#define TP_THROUGH_F64(name) \
    TP_FN tp_f32 tp_##name##_f32(tp_f32 x) { return (tp_f32)tp_##name##_f64(x); }
TP_THROUGH_F64(digamma)
TP_THROUGH_F64(trigamma)
TP_THROUGH_F64(log_ndtr)
TP_THROUGH_F64(erfcx)
TP_THROUGH_F64(i0)
TP_THROUGH_F64(i0e)
TP_THROUGH_F64(i1)
TP_THROUGH_F64(i1e)
TP_THROUGH_F64(bessel_j0)
TP_THROUGH_F64(bessel_j1)
TP_THROUGH_F64(bessel_y0)
TP_THROUGH_F64(bessel_y1)
TP_THROUGH_F64(quick_bessel_j0)
TP_THROUGH_F64(quick_bessel_j1)
TP_THROUGH_F64(quick_bessel_y0)
TP_THROUGH_F64(quick_bessel_y1)
TP_THROUGH_F64(bessel_k0)
TP_THROUGH_F64(bessel_k1)
TP_THROUGH_F64(bessel_k0e)
TP_THROUGH_F64(bessel_k1e)
TP_THROUGH_F64(airy_ai)
#undef TP_THROUGH_F64
/* A finite value that is too large for a float ends as NaN, as one that is too large for a double does. */
TP_FN tp_f32 tp_narrow_polynomial_f32(tp_f64 value) {
    const tp_f32 narrow = (tp_f32)value;
    return value - value == 0 && narrow - narrow != 0 ? TP_NAN_f32 : narrow;
}
#define TP_THROUGH_F64(name) \
    TP_FN tp_f32 tp_##name##_f32(tp_f32 x, tp_f32 n) { return tp_narrow_polynomial_f32(tp_##name##_f64(x, n)); }
TP_THROUGH_F64(chebyshev_t)
TP_THROUGH_F64(chebyshev_u)
TP_THROUGH_F64(chebyshev_v)
TP_THROUGH_F64(chebyshev_w)
TP_THROUGH_F64(laguerre_l)
TP_THROUGH_F64(legendre_p)
#undef TP_THROUGH_F64
TP_FN tp_f32 tp_hermite_h_f32(tp_f32 x, tp_f32 n) {
    const tp_f32 value = tp_narrow_polynomial_f32(tp_hermite_h_f64(x, n));
    return (n >= 129) & (value != 0) ? TP_NAN_f32 : value;
}
TP_FN tp_f32 tp_hermite_he_f32(tp_f32 x, tp_f32 n) {
    const tp_f32 value = tp_narrow_polynomial_f32(tp_hermite_he_f64(x, n));
    return (n >= 129) & (value != 0) ? TP_NAN_f32 : value;
}
TP_FN tp_f32 tp_zeta_f32(tp_f32 s, tp_f32 q) { return (tp_f32)tp_zeta_f64(s, q); }
TP_FN tp_f32 tp_polygamma_f32(tp_f32 n, tp_f32 x) { return (tp_f32)tp_polygamma_f64(n, x); }
TP_FN tp_f32 tp_gamma_p_f32(tp_f32 a, tp_f32 x) { return (tp_f32)tp_gamma_p_f64(a, x); }
TP_FN tp_f32 tp_gamma_q_f32(tp_f32 a, tp_f32 x) { return (tp_f32)tp_gamma_q_f64(a, x); }
TP_FN tp_f32 tp_gamma_slope_f32(tp_f32 a, tp_f32 x) { return (tp_f32)tp_gamma_slope_f64(a, x); }
#endif

/* ---- integers and bool ---- */

TP_FN tp_bool tp_maximum_bool(tp_bool a, tp_bool b) { return a | b; }
TP_FN tp_bool tp_minimum_bool(tp_bool a, tp_bool b) { return a & b; }
TP_FN tp_bool tp_fmax_bool(tp_bool a, tp_bool b) { return a | b; }
TP_FN tp_bool tp_fmin_bool(tp_bool a, tp_bool b) { return a & b; }

#define TP_I i8
#define TP_U u8
#define TP_WIDTH 8
#include "tensorpy/math_int.inc"
#define TP_I i16
#define TP_U u16
#define TP_WIDTH 16
#include "tensorpy/math_int.inc"
#define TP_I i32
#define TP_U u32
#define TP_WIDTH 32
#include "tensorpy/math_int.inc"
#define TP_I i64
#define TP_U u64
#define TP_WIDTH 64
#include "tensorpy/math_int.inc"

/* ---- complex numbers ---- */

#define TP_R f32
#define TP_T tp_f32
#define TP_Z c64
#define TP_CT tp_c64
#define TP_C(x) x##f
#define TP_LIBC(name) __builtin_##name##f
#include "tensorpy/math_complex.inc"
#undef TP_R
#undef TP_T
#undef TP_Z
#undef TP_CT
#undef TP_C
#undef TP_LIBC

#ifdef TP_HAVE_F64
#define TP_R f64
#define TP_T tp_f64
#define TP_Z c128
#define TP_CT tp_c128
#define TP_C(x) x
#define TP_LIBC(name) __builtin_##name
#include "tensorpy/math_complex.inc"
#undef TP_R
#undef TP_T
#undef TP_Z
#undef TP_CT
#undef TP_C
#undef TP_LIBC
#endif

#endif
