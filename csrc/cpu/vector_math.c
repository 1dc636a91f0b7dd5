/* vector_math.c: what AVX-512 has instructions for and C has no words: float's logarithms and powers, sixteen at a
 * time.
 *
 * The vectoriser calls these as it calls libmvec (Note [Vector libm] in tensorpy/math.h), by names that the vector ABI
 * of x86-64 makes of tp_vector_<function>: _ZGVeN16v_ for 16 lanes, _ZGVdN8v_, _ZGVcN8v_ and _ZGVbN4v_ for fewer. The
 * polynomial is that of tensorpy/math_f32.h. vgetexp and vgetmant split any number, subnormal ones too, and give zeros,
 * infinities, negative numbers and NaN what the logarithm makes of them. */
#undef TP_CAPABILITY /* here they are made, not called */
#include "tensorpy/math.h"

#if defined(__x86_64__) && defined(TP_LIBMVEC)
#include <immintrin.h>
#include <math.h>

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

/* ---- powers ---- */

/* For each 32nd of [1, 2) a number near the reciprocal of its middle, in 64ths, so that the product with any float in
 * it is 1 and an exact rest of at most 1/32; and less its logarithm to base 2, in two parts, the first of 15 bits. The
 * ends are 1 and 1/2: near 1 all of the logarithm comes of the rest. */
static const float pow_reciprocals[32] = {
#define O(x) x / 64.0f
    O(64), O(61), O(59), O(58), O(56), O(55), O(53), O(52), O(51), O(49), O(48), O(47), O(46), O(45), O(44), O(43),
    O(42), O(41), O(41), O(40), O(39), O(38), O(38), O(37), O(36), O(36), O(35), O(34), O(34), O(33), O(33), O(32),
#undef O
};
static const float pow_logarithms[32] = {
#define O(x) x / 32768.0f
    O(0),     O(2270),  O(3846),  O(4654),  O(6313),  O(7164),  O(8916),  O(9816),  O(10734), O(12625), O(13600),
    O(14595), O(15612), O(16651), O(17713), O(18800), O(19913), O(21052), O(21052), O(22219), O(23416), O(24644),
    O(24644), O(25905), O(27200), O(27200), O(28532), O(29902), O(29902), O(31313), O(31313), O(32768),
#undef O
};
static const float pow_rests[32] = {
    0,
    -0x1.9ab4p-17f,
    -0x1.ca2e1ap-17f,
    -0x1.48f554p-17f,
    -0x1.9fd502p-17f,
    0x1.9eap-17f,
    -0x1.fd64ep-17f,
    -0x1.1c8f12p-22f,
    -0x1.134c4ep-20f,
    0x1.80abfcp-18f,
    -0x1.a39fbep-20f,
    0x1.dc2d46p-18f,
    -0x1.40358ep-19f,
    -0x1.5a32c2p-20f,
    0x1.60fe68p-17f,
    0x1.408c78p-18f,
    -0x1.d448f8p-17f,
    -0x1.0e6ce8p-17f,
    -0x1.0e6ce8p-17f,
    0x1.ed0cbap-20f,
    -0x1.eac382p-20f,
    -0x1.6b9026p-19f,
    -0x1.6b9026p-19f,
    -0x1.78b6d4p-17f,
    -0x1.a39fbep-19f,
    -0x1.a39fbep-19f,
    -0x1.62336ap-17f,
    0x1.20a6dep-21f,
    0x1.20a6dep-21f,
    0x1.2c8a72p-17f,
    0x1.2c8a72p-17f,
    0,
};
TP_VECTOR_FN __m512 entry(const float table[32], __m512i at) {
    return _mm512_permutex2var_ps(_mm512_loadu_ps(table), at, _mm512_loadu_ps(table + 16));
}

/* log2(a) for a > 0 as the sum of two numbers; with `ends` also at 0 and infinity, where the
 * first is infinite and the second 0. */
TP_VECTOR_FN __m512 log2_in_two(__m512 a, __m512 *low, const bool ends) {
    const double scale = 0x1.71547652b82fep+0;
    __m512 m = _mm512_getmant_ps(a, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_zero);
    __m512i at = _mm512_srli_epi32(_mm512_castps_si512(m), 18); /* its five highest bits; others are not looked at */
    __m512 r = _mm512_fmsub_ps(m, entry(pow_reciprocals, at), number(1));
    __m512 whole = _mm512_add_ps(_mm512_getexp_ps(a), entry(pow_logarithms, at));
    __m512 first = _mm512_mul_ps(r, number((float)scale)), sum = _mm512_add_ps(whole, first);
    __m512 p = step(number((float)(scale * -1 / 6)), r, (float)(scale / 5));
    p = step(p, r, (float)(scale * -1 / 4));
    p = step(p, r, (float)(scale / 3));
    p = step(p, r, (float)(scale * -1 / 2));
    __m512 rest = _mm512_fmsub_ps(r, number((float)scale), first);
    rest = _mm512_add_ps(fma16(r, number((float)(scale - (float)scale)), rest), entry(pow_rests, at));
    rest = fma16(_mm512_mul_ps(r, r), p, rest);
    rest = _mm512_add_ps(rest, _mm512_sub_ps(first, _mm512_sub_ps(sum, whole)));
    __m512 high = _mm512_add_ps(sum, rest);
    *low = _mm512_sub_ps(rest, _mm512_sub_ps(high, sum));
    if (!ends) return high;
    __mmask16 infinite = _mm512_cmp_ps_mask(_mm512_abs_ps(sum), number(INFINITY), _CMP_EQ_OQ);
    *low = _mm512_mask_mov_ps(*low, infinite, number(0));
    return _mm512_mask_mov_ps(high, infinite, sum);
}

/* 2**(high + low) where low is small. */
TP_VECTOR_FN __m512 two_to(__m512 high, __m512 low) {
    __m512 whole = _mm512_roundscale_ps(high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 f = _mm512_add_ps(_mm512_sub_ps(high, whole), low);
    __m512 p = step(number(0x1.00c0eap-16f), f, 0x1.44400ap-13f);
    p = step(p, f, 0x1.5d8776p-10f);
    p = step(p, f, 0x1.3b2a1cp-7f);
    p = step(p, f, 0x1.c6b08ep-5f);
    p = step(p, f, 0x1.ebfbe0p-3f);
    p = step(p, f, 0x1.62e430p-1f);
    return _mm512_scalef_ps(step(p, f, 1), whole);
}

/* a**y is 2**(y * log2(a)), y times which in two parts. */
TP_VECTOR_FN __m512 power_of(__m512 a, __m512 y, const bool ends) {
    const __m512 limit = number(200);
    __m512 low, log = log2_in_two(a, &low, ends), high = _mm512_mul_ps(y, log);
    low = fma16(y, low, _mm512_fmsub_ps(y, log, high));
    low = _mm512_mask_mov_ps(low, _mm512_cmp_ps_mask(_mm512_abs_ps(high), limit, _CMP_GE_OQ), number(0));
    high = _mm512_max_ps(number(-200), _mm512_min_ps(limit, high)); /* a NaN stays, as the second operand */
    return two_to(high, low);
}

/* What C's pow says of signs, zeros and infinities. */
AVX512 static __attribute__((noinline)) __m512 pow_with_ends(__m512 x, __m512 y) {
    __m512 a = _mm512_abs_ps(x), made = power_of(a, y, true);
    __mmask16 whole = _mm512_cmp_ps_mask(_mm512_roundscale_ps(y, _MM_FROUND_TO_ZERO), y, _CMP_EQ_OQ);
    __mmask16 odd = _mm512_mask_test_epi32_mask(whole, _mm512_cvttps_epi32(y), _mm512_set1_epi32(1));
    made = _mm512_mask_xor_ps(made, odd, made, _mm512_and_ps(x, number(-0.0f)));
    __mmask16 finite = _mm512_cmp_ps_mask(a, number(INFINITY), _CMP_LT_OQ);
    __mmask16 negative = _mm512_mask_cmp_ps_mask(finite, x, number(0), _CMP_LT_OQ);
    made = _mm512_mask_mov_ps(made, negative & (__mmask16)~whole, number(NAN));
    __mmask16 one = _mm512_cmp_ps_mask(y, number(0), _CMP_EQ_OQ) | _mm512_cmp_ps_mask(x, number(1), _CMP_EQ_OQ);
    __mmask16 endless = _mm512_cmp_ps_mask(_mm512_abs_ps(y), number(INFINITY), _CMP_EQ_OQ);
    one |= _mm512_mask_cmp_ps_mask(endless, a, number(1), _CMP_EQ_OQ);
    return _mm512_mask_mov_ps(made, one, number(1));
}

/* Classes of numbers as vfpclass has them: NaN of both kinds, zeros, infinities, and what is negative. */
#define NAN_ZERO_INFINITE (0x01 | 0x80 | 0x02 | 0x04 | 0x08 | 0x10)
#define NEGATIVE 0x40
TP_VECTOR_FN __m512 pow16(__m512 x, __m512 y) {
    __mmask16 at_ends =
        _mm512_fpclass_ps_mask(x, NAN_ZERO_INFINITE | NEGATIVE) | _mm512_fpclass_ps_mask(y, NAN_ZERO_INFINITE);
    return at_ends ? pow_with_ends(x, y) : power_of(x, y, false);
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
#define VARIANTS_OF_TWO(name, of)                                                                             \
    AVX512 __m512 _ZGVeN16vv_tp_vector_##name(__m512 x, __m512 y);                                            \
    AVX512 __m256 _ZGVdN8vv_tp_vector_##name(__m256 x, __m256 y);                                             \
    AVX512 __m256 _ZGVcN8vv_tp_vector_##name(__m256 x, __m256 y);                                             \
    AVX512 __m128 _ZGVbN4vv_tp_vector_##name(__m128 x, __m128 y);                                             \
    AVX512 __m512 _ZGVeN16vv_tp_vector_##name(__m512 x, __m512 y) { return of(x, y); }                        \
    AVX512 __m256 _ZGVdN8vv_tp_vector_##name(__m256 x, __m256 y) {                                            \
        return _mm512_castps512_ps256(of(_mm512_zextps256_ps512(x), _mm512_zextps256_ps512(y)));              \
    }                                                                                                         \
    AVX512 __m256 _ZGVcN8vv_tp_vector_##name(__m256 x, __m256 y) { return _ZGVdN8vv_tp_vector_##name(x, y); } \
    AVX512 __m128 _ZGVbN4vv_tp_vector_##name(__m128 x, __m128 y) {                                            \
        return _mm512_castps512_ps128(of(_mm512_zextps128_ps512(x), _mm512_zextps128_ps512(y)));              \
    }                                                                                                         \
    AVX512 float tp_vector_##name(float x, float y) { return _mm512_cvtss_f32(of(number(x), number(y))); }
VARIANTS(log, log16)
VARIANTS(log2, log2_16)
VARIANTS(log10, log10_16)
VARIANTS_OF_TWO(pow, pow16)
#endif
