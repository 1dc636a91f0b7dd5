/* random_loops.c: the inner loops of random draws: blocks of numbers from (seed, offset, element number), compiled once
 * per capability.
 *
 * A kernel always makes a whole block, so an element's value does not depend on how much of the block is wanted or on
 * how the work was split. The words are laid out by Note [Words of an element] in tensorpy/philox.h. */
#include "tensorpy/philox.h"
#include "cpu/kernels.h"
#include "tensorpy/math.h"

#include <math.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define LANES                                                                                               \
    64 /* Philox blocks side by side: enough of them that gcc vectorises the loops and does not unroll them \
        */

/* 4 * LANES words, those of the Philox blocks from `index` on. */
#ifdef __AVX2__
/* A word lies in 64 bits, of which the upper half is anything: products of 32 bits look at the lower alone. */
typedef struct {
    __m256i c0, c1, c2, c3;
} four_blocks;

static inline four_blocks after_round(four_blocks b, __m256i k0, __m256i k1) {
    const __m256i m0 = _mm256_set1_epi64x(0xD2511F53), m1 = _mm256_set1_epi64x(0xCD9E8D57);
    __m256i p0 = _mm256_mul_epu32(m0, b.c0), p1 = _mm256_mul_epu32(m1, b.c2);
    return (four_blocks){_mm256_xor_si256(_mm256_srli_epi64(p1, 32), _mm256_xor_si256(b.c1, k0)), p1,
                         _mm256_xor_si256(_mm256_srli_epi64(p0, 32), _mm256_xor_si256(b.c3, k1)), p0};
}
static inline void put_blocks(four_blocks b, uint32_t *out) {
    __m256i low = _mm256_blend_epi32(b.c0, _mm256_slli_epi64(b.c1, 32), 0xAA);  /* c0 and c1 of each block */
    __m256i high = _mm256_blend_epi32(b.c2, _mm256_slli_epi64(b.c3, 32), 0xAA); /* c2 and c3 */
    __m256i even = _mm256_unpacklo_epi64(low, high), odd = _mm256_unpackhi_epi64(low, high);
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(even, odd, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}
static void philox_lanes(tp_philox_state s, uint64_t index, uint32_t *out) {
    __m256i offset = _mm256_set1_epi64x((int64_t)s.offset), offset_high = _mm256_srli_epi64(offset, 32);
    for (int l = 0; l < LANES; l += 8, out += 32) {
        __m256i i =
            _mm256_add_epi64(_mm256_set1_epi64x((int64_t)(index + (uint64_t)l)), _mm256_setr_epi64x(0, 1, 2, 3));
        __m256i j = _mm256_add_epi64(i, _mm256_set1_epi64x(4));
        four_blocks a = {i, _mm256_srli_epi64(i, 32), offset, offset_high},
                    b = {j, _mm256_srli_epi64(j, 32), offset, offset_high};
        uint32_t k0 = (uint32_t)s.seed, k1 = (uint32_t)(s.seed >> 32);
        for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
            __m256i key0 = _mm256_set1_epi32((int)k0), key1 = _mm256_set1_epi32((int)k1);
            a = after_round(a, key0, key1);
            b = after_round(b, key0, key1);
        }
        put_blocks(a, out);
        put_blocks(b, out + 16);
    }
}
#else
static void philox_lanes(tp_philox_state s, uint64_t index, uint32_t *out) {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
    uint32_t k0 = (uint32_t)s.seed, k1 = (uint32_t)(s.seed >> 32);
    for (int l = 0; l < LANES; l++) {
        c0[l] = (uint32_t)(index + (uint64_t)l);
        c1[l] = (uint32_t)((index + (uint64_t)l) >> 32);
        c2[l] = (uint32_t)s.offset;
        c3[l] = (uint32_t)(s.offset >> 32);
    }
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
        for (int l = 0; l < LANES; l++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[l], p1 = (uint64_t)0xCD9E8D57u * c2[l];
            c0[l] = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
            c1[l] = (uint32_t)p1;
            c2[l] = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
            c3[l] = (uint32_t)p0;
        }
    }
    for (int l = 0; l < LANES; l++) {
        out[4 * l] = c0[l];
        out[4 * l + 1] = c1[l];
        out[4 * l + 2] = c2[l];
        out[4 * l + 3] = c3[l];
    }
}
#endif

/* n words from word `first` on; both are multiples of 4 * LANES. */
static void words(const tp_draw *d, int64_t first, int64_t n, uint32_t *out) {
    for (int64_t i = 0; i < n; i += 4 * LANES) philox_lanes(d->state, (uint64_t)(first + i) / 4, out + i);
}
#define WORDS(name, per_element)                \
    uint32_t name[TP_DRAW_BLOCK * per_element]; \
    words(d, first *per_element, TP_DRAW_BLOCK *per_element, name)

/* tp_uniform_double in conversions that every CPU has as vectors. */
TP_INLINE double uniform_of(uint32_t low, uint32_t high) {
    double upper = (double)(int32_t)(high ^ 0x80000000u) + 0x1p31;
    return (upper * 0x1p21 + (double)(int32_t)(low >> 11)) * 0x1p-53;
}

static void uniform_float(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 1);
    float *out = out_, unit = ldexpf(1.0f, -d->bits), a = (float)d->a, span = (float)(d->b - d->a);
    int shift = 32 - d->bits;
    for (int i = 0; i < TP_DRAW_BLOCK; i++) out[i] = (float)(int32_t)(w[i] >> shift) * unit * span + a;
}

static void uniform_double(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 2);
    double *out = out_, a = d->a, span = d->b - d->a;
    for (int i = 0; i < TP_DRAW_BLOCK; i++) out[i] = uniform_of(w[2 * i], w[2 * i + 1]) * span + a;
}

/* sin and cos of 2 pi u for u a multiple of 2**-24 in [0, 1): a whole number of quarters, and a rest r (in quarters,
 * exact) for the series around 0. */
TP_INLINE void turn(float u, float *sine, float *cosine) {
    float quarter = (float)(int32_t)(4.0f * u + 0.5f), r = 4.0f * u - quarter, r2 = r * r;
    float s = TP_FMA(0x1.507834p-13f, r2, -0x1.32d2ccp-8f), c = TP_FMA(-0x1.a6d1f2p-16f, r2, 0x1.e1f506p-11f);
    s = TP_FMA(s, r2, 0x1.466bc6p-4f);
    s = TP_FMA(s, r2, -0x1.4abbcep-1f);
    s = TP_FMA(s, r2, 0x1.921fb6p+0f) * r;
    c = TP_FMA(c, r2, -0x1.55d3c8p-6f);
    c = TP_FMA(c, r2, 0x1.03c1f0p-2f);
    c = TP_FMA(c, r2, -0x1.3bd3ccp+0f);
    c = TP_FMA(c, r2, 1.0f);
    int32_t q = (int32_t)quarter;
    float at_sine = q & 1 ? c : s, at_cosine = q & 1 ? s : c;
    *sine = q & 2 ? -at_sine : at_sine;
    *cosine = (q + 1) & 2 ? -at_cosine : at_cosine;
}

/* Box and Muller, as tp_normal_float does it, with functions that vectorise. */
static void normal_float(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 1);
    float *out = out_, mean = (float)d->a, deviation = (float)d->b;
    float radius[TP_DRAW_BLOCK / 2], sine[TP_DRAW_BLOCK / 2], cosine[TP_DRAW_BLOCK / 2];
    for (int j = 0; j < TP_DRAW_BLOCK / 2; j++) {
        float u = (float)(int32_t)(w[2 * j] >> 8) * 0x1p-24f, v = (float)(int32_t)(w[2 * j + 1] >> 8) * 0x1p-24f;
        radius[j] = __builtin_sqrtf(-2.0f * tp_log_f32(1.0f - u));
        turn(v, &sine[j], &cosine[j]);
    }
    for (int j = 0; j < TP_DRAW_BLOCK / 2; j++) {
        out[2 * j] = TP_FMA(radius[j] * cosine[j], deviation, mean);
        out[2 * j + 1] = TP_FMA(radius[j] * sine[j], deviation, mean);
    }
}

/* turn in double: Taylor's series of x = pi r / 2, |x| <= pi / 4. (sin and cos of one argument would become one call of
 * sincos, which has no vector form.) */
TP_INLINE void turn_double(double u, double *sine, double *cosine) {
    double quarter = (double)(int32_t)(4.0 * u + 0.5), x = (4.0 * u - quarter) * 1.57079632679489661923, x2 = x * x;
    double s = 1.0, c = 1.0;
    for (int k = 8; k > 0; k--) s = 1.0 - s * x2 * (1.0 / (2 * k * (2 * k + 1)));
    for (int k = 9; k > 0; k--) c = 1.0 - c * x2 * (1.0 / ((2 * k - 1) * 2 * k));
    s *= x;
    int32_t q = (int32_t)quarter;
    double at_sine = q & 1 ? c : s, at_cosine = q & 1 ? s : c;
    *sine = q & 2 ? -at_sine : at_sine;
    *cosine = (q + 1) & 2 ? -at_cosine : at_cosine;
}

static void normal_double(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 2);
    double *out = out_;
    double radius[TP_DRAW_BLOCK / 2], sine[TP_DRAW_BLOCK / 2], cosine[TP_DRAW_BLOCK / 2];
    for (int j = 0; j < TP_DRAW_BLOCK / 2; j++) {
        double u = uniform_of(w[4 * j], w[4 * j + 1]), v = uniform_of(w[4 * j + 2], w[4 * j + 3]);
        radius[j] = __builtin_sqrt(-2.0 * log(1.0 - u));
        turn_double(v, &sine[j], &cosine[j]);
    }
    for (int j = 0; j < TP_DRAW_BLOCK / 2; j++) {
        out[2 * j] = radius[j] * cosine[j] * d->b + d->a;
        out[2 * j + 1] = radius[j] * sine[j] * d->b + d->a;
    }
}

/* -log(u) / rate for u in (0, 1]; never 0, so that it can be divided by. */
static void exponential_float(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 1);
    float *out = out_, rate = (float)d->a;
    for (int i = 0; i < TP_DRAW_BLOCK; i++) {
        float u = 1.0f - (float)(int32_t)(w[i] >> 8) * 0x1p-24f;
        out[i] = (u == 1.0f ? 0x1p-25f : -tp_log_f32(u)) / rate;
    }
}

static void exponential_double(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 2);
    double *out = out_, rate = d->a;
    for (int i = 0; i < TP_DRAW_BLOCK; i++) {
        double u = 1.0 - uniform_of(w[2 * i], w[2 * i + 1]);
        out[i] = (u == 1.0 ? 0x1p-54 : -log(u)) / rate;
    }
}

/* The upper half of word * range (D. Lemire, "Fast random integer generation in an interval", 2019, without rejection:
 * the bias is at most range / 2**64). */
static void integers(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 2);
    int64_t *out = out_;
    uint64_t range = d->range, base = (uint64_t)d->base;
    if (range == 0) {
        for (int i = 0; i < TP_DRAW_BLOCK; i++) out[i] = (int64_t)(tp_random_u64(w[2 * i], w[2 * i + 1]) + base);
    } else if (range <= UINT32_MAX) {
        for (int i = 0; i < TP_DRAW_BLOCK; i++) {
            uint64_t low = (uint64_t)w[2 * i] * (uint32_t)range >> 32;
            out[i] = (int64_t)((((uint64_t)w[2 * i + 1] * (uint32_t)range + low) >> 32) + base);
        }
    } else {
        for (int i = 0; i < TP_DRAW_BLOCK; i++) {
            unsigned __int128 product = (unsigned __int128)tp_random_u64(w[2 * i], w[2 * i + 1]) * range;
            out[i] = (int64_t)((uint64_t)(product >> 64) + base);
        }
    }
}

static void bernoulli(const tp_draw *d, int64_t first, void *out_) {
    WORDS(w, 1);
    bool *out = out_;
    uint64_t below = (uint64_t)(d->a * 0x1p32);
    uint32_t last = (uint32_t)(below - 1);
    for (int i = 0; i < TP_DRAW_BLOCK; i++) out[i] = below != 0 && w[i] <= last;
}

const tp_random_kernels TP_CAP(tp_random) = {{uniform_float, uniform_double, normal_float, normal_double,
                                              exponential_float, exponential_double, integers, bernoulli}};
