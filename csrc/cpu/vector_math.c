/* vector_math.c: what AVX-512 has instructions for and C has no words: float's logarithms, sixteen at a time.
 *
 * The vectoriser calls these as it calls libmvec (Note [Vector libm] in tensorpy/math.h), by names that the vector ABI
 * of x86-64 makes of tp_vector_<function>: _ZGVeN16v_ for 16 lanes, _ZGVdN8v_, _ZGVcN8v_ and _ZGVbN4v_ for fewer. The
 * polynomial is that of tensorpy/math_f32.h. vgetexp and vgetmant split any number, subnormal ones too, and give zeros,
 * infinities, negative numbers and NaN what the logarithm makes of them. */
#undef TP_CAPABILITY /* here they are made, not called */
#include "tensorpy/math.h"

#if defined(__x86_64__) && defined(TP_LIBMVEC)
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma")))
#define TP_VECTOR_FN static inline AVX512 __attribute__((always_inline))

TP_VECTOR_FN __m512 number(float x) { return _mm512_set1_ps(x); }
TP_VECTOR_FN __m512 fma16(__m512 a, __m512 b, __m512 c) { return _mm512_fmadd_ps(a, b, c); }
TP_VECTOR_FN __m512 step(__m512 p, __m512 x, float c) { return fma16(p, x, number(c)); }

/* x = 2**e * (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); e is what shows that x is 0 or infinite, f that it is NaN. */
TP_VECTOR_FN __m512 split(__m512 x, __m512 *e) {
    __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    __mmask16 high = _mm512_cmp_ps_mask(m, number(0x1.6a09e6p+0f), _CMP_GT_OQ);
    __m512 exponent = _mm512_getexp_ps(x);
    *e = _mm512_mask_add_ps(exponent, high, exponent, number(1));
    return _mm512_sub_ps(_mm512_mask_mul_ps(m, high, m, number(0.5f)), number(1));
}

/* (log(1 + f) - f) / log(base), as tp_log_tail_f32: scale is 1 / log(base). */
TP_VECTOR_FN __m512 log_tail(__m512 f, const double scale) {
    __m512 p = step(number((float)(scale * 0x1.16a74cp-4)), f, (float)(scale * -0x1.e02110p-4));
    p = step(p, f, (float)(scale * 0x1.e6d1b6p-4));
    p = step(p, f, (float)(scale * -0x1.fbbf34p-4));
    p = step(p, f, (float)(scale * 0x1.233318p-3));
    p = step(p, f, (float)(scale * -0x1.555fbep-3));
    p = step(p, f, (float)(scale * 0x1.99a524p-3));
    p = step(p, f, (float)(scale * -0x1.fffff8p-3));
    p = step(p, f, (float)(scale * 0x1.555546p-2));
    p = step(p, f, (float)(scale * -0.5));
    return _mm512_mul_ps(p, _mm512_mul_ps(f, f));
}

TP_VECTOR_FN __m512 log16(__m512 x) {
    __m512 e, f = split(x, &e), low = fma16(e, number(TP_LN2_LO_f32), log_tail(f, 1));
    return fma16(e, number(TP_LN2_HI_f32), _mm512_add_ps(f, low));
}

/* Other bases: f / log(base) in two parts, and for base 10 log(2) / log(base) too, the first of 11 bits. */
TP_VECTOR_FN __m512 log2_16(__m512 x) {
    const double scale = 0x1.71547652b82fep+0;
    __m512 e, f = split(x, &e), low = fma16(f, number((float)(scale - (float)scale)), log_tail(f, scale));
    return _mm512_add_ps(fma16(f, number((float)scale), low), e);
}
TP_VECTOR_FN __m512 log10_16(__m512 x) {
    const double scale = 0x1.bcb7b1526e50ep-2;
    __m512 e, f = split(x, &e), low = fma16(f, number((float)(scale - (float)scale)), log_tail(f, scale));
    low = fma16(f, number((float)scale), fma16(e, number(0x1.3509f8p-18f), low));
    return fma16(e, number(0x1.344p-2f), low);
}

/* The names; lanes that are not there are computed as 0 or as the first. */
#define VARIANTS(name, of)                                                                     \
    AVX512 __m512 _ZGVeN16v_tp_vector_##name(__m512 x);                                        \
    AVX512 __m256 _ZGVdN8v_tp_vector_##name(__m256 x);                                         \
    AVX512 __m256 _ZGVcN8v_tp_vector_##name(__m256 x);                                         \
    AVX512 __m128 _ZGVbN4v_tp_vector_##name(__m128 x);                                         \
    AVX512 __m512 _ZGVeN16v_tp_vector_##name(__m512 x) { return of(x); }                       \
    AVX512 __m256 _ZGVdN8v_tp_vector_##name(__m256 x) {                                        \
        return _mm512_castps512_ps256(of(_mm512_zextps256_ps512(x)));                          \
    }                                                                                          \
    AVX512 __m256 _ZGVcN8v_tp_vector_##name(__m256 x) { return _ZGVdN8v_tp_vector_##name(x); } \
    AVX512 __m128 _ZGVbN4v_tp_vector_##name(__m128 x) {                                        \
        return _mm512_castps512_ps128(of(_mm512_zextps128_ps512(x)));                          \
    }                                                                                          \
    AVX512 float tp_vector_##name(float x) { return _mm512_cvtss_f32(of(number(x))); }
VARIANTS(log, log16)
VARIANTS(log2, log2_16)
VARIANTS(log10, log10_16)
#endif
