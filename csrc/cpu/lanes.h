/* lanes.h: float32 in the CPU's vectors, for the files that are compiled once per capability (cpu/capability.h) and
 * keep their sums in registers. Without AVX2 and FMA LANES is not defined, and what needs vectors is left out. */
#pragma once

#include "core/base.h"

#define UNROLL _Pragma("GCC unroll 16")

#if defined(__AVX512F__)
#include <immintrin.h>
typedef __m512 lanes;
#define LANES 16
#define load(p) _mm512_loadu_ps(p)
#define store(p, v) _mm512_storeu_ps(p, v)
#define load_first(p, n) load_between(p, 0, n)
#define load_between(p, begin, end) _mm512_maskz_loadu_ps((__mmask16)((1u << (end)) - (1u << (begin))), p)
#define store_first(p, n, v) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), v)
#define all_lanes(x) _mm512_set1_ps(x)
#define multiply_add(a, b, c) _mm512_fmadd_ps(a, b, c)
/* p[0], p[2] and so on; nothing after the last one is read. */
TP_INLINE lanes load_even(const float *p) {
    const __m512i from = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(load(p), from, load(p + LANES - 1));
}
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
typedef __m256 lanes;
#define LANES 8
#define load(p) _mm256_loadu_ps(p)
#define store(p, v) _mm256_storeu_ps(p, v)
TP_INLINE __m256i first_lanes(int64_t n) {
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const void *)(mask + 8 - n));
}
#define load_first(p, n) _mm256_maskload_ps(p, first_lanes(n))
#define store_first(p, n, v) _mm256_maskstore_ps(p, first_lanes(n), v)
#define all_lanes(x) _mm256_set1_ps(x)
#define multiply_add(a, b, c) _mm256_fmadd_ps(a, b, c)
TP_INLINE lanes load_even(const float *p) {
    __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(load(p), load(p + LANES - 1), _MM_SHUFFLE(3, 1, 2, 0)));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, _MM_SHUFFLE(3, 1, 2, 0)));
}
#endif

#ifdef LANES
/* Eight rows of eight numbers become columns: pairs of rows, of pairs, and of fours change what they hold off the
 * diagonal. */
TP_INLINE void turn_square(__m256 *a) {
    __m256 b[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4) UNROLL for (int k = 0; k < 2; k++) {
        a[i + 2 * k] = _mm256_shuffle_ps(b[i + k], b[i + k + 2], 0x44);
        a[i + 2 * k + 1] = _mm256_shuffle_ps(b[i + k], b[i + k + 2], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++) {
        b[i] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x20);
        b[i + 4] = _mm256_permute2f128_ps(a[i], a[i + 4], 0x31);
    }
    UNROLL for (int i = 0; i < 8; i++) a[i] = b[i];
}

/* They are stored in their order, so rows that overlap end as the later ones have it. */
TP_INLINE void turn_8x8(const float *from, int64_t next, float *to, int64_t width) {
    __m256 a[8];
    UNROLL for (int i = 0; i < 8; i++) a[i] = _mm256_loadu_ps(from + i * next);
    turn_square(a);
    UNROLL for (int i = 0; i < 8; i++) _mm256_storeu_ps(to + i * width, a[i]);
}

TP_INLINE void turn_4x4(const float *from, int64_t next, float *to, int64_t width) {
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + next), c = _mm_loadu_ps(from + 2 * next),
           d = _mm_loadu_ps(from + 3 * next);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a);
    _mm_storeu_ps(to + width, b);
    _mm_storeu_ps(to + 2 * width, c);
    _mm_storeu_ps(to + 3 * width, d);
}

/* `rows` rows of n numbers, `next` apart, become columns of rows that are `width` apart. */
TP_INLINE void turn(const float *from, int64_t next, int64_t rows, int64_t n, float *to, int64_t width) {
    for (int64_t i = 0; i < n; i += 8)
        for (int64_t r = 0; r < rows; r += 8) {
            const float *square = from + r * next + i;
            float *turned = to + i * width + r;
            int64_t height = rows - r < 8 ? rows - r : 8, length = n - i < 8 ? n - i : 8, done = 0;
            if (height == 8 && length == 8) {
                turn_8x8(square, next, turned, width);
                continue;
            }
            if (height >= 4 && length == 8) {
                turn_4x4(square, next, turned, width);
                turn_4x4(square + 4, next, turned + 4 * width, width);
                done = 4;
            }
            for (int64_t k = done; k < height; k++)
                for (int64_t l = 0; l < length; l++) turned[l * width + k] = square[k * next + l];
        }
}
#endif
