/* fft_loops.c: Fourier transforms of some lines, compiled once per capability; the loops are in fft_of.h. */
#include "cpu/kernels.h"
#include "cpu/lanes.h"

#include <math.h>
#include <string.h>

#if defined(__clang__)
#define PRAGMA_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PRAGMA_IVDEP _Pragma("GCC ivdep")
#endif

enum { BLOCK = 64 };
/* A call whose loops over L lines are unrolled where these are as many as mostly. */
#define OF_LINES(call)           \
    if (lines == 16) {           \
        enum { L = 16 };         \
        call;                    \
    } else if (lines == 8) {     \
        enum { L = 8 };          \
        call;                    \
    } else {                     \
        const int64_t L = lines; \
        call;                    \
    }

#ifdef LANES
/* Rows become columns, times a scale. */
static inline void turn_f32(float *const *from, float *const *to, float scale) {
    __m256 rows[8];
    UNROLL for (int k = 0; k < 8; k++) rows[k] = _mm256_loadu_ps(from[k]);
    turn_square(rows);
    UNROLL for (int k = 0; k < 8; k++) _mm256_storeu_ps(to[k], _mm256_mul_ps(rows[k], _mm256_set1_ps(scale)));
}
static inline void turn_f64(double *const *from, double *const *to, double scale) {
    __m256d a[4], b[4], all = _mm256_set1_pd(scale);
    UNROLL for (int k = 0; k < 4; k++) a[k] = _mm256_loadu_pd(from[k]);
    UNROLL for (int k = 0; k < 4; k += 2) b[k] = _mm256_unpacklo_pd(a[k], a[k + 1]);
    UNROLL for (int k = 0; k < 4; k += 2) b[k + 1] = _mm256_unpackhi_pd(a[k], a[k + 1]);
    UNROLL for (int k = 0; k < 2; k++) {
        _mm256_storeu_pd(to[k], _mm256_mul_pd(_mm256_permute2f128_pd(b[k], b[k + 2], 0x20), all));
        _mm256_storeu_pd(to[k + 2], _mm256_mul_pd(_mm256_permute2f128_pd(b[k], b[k + 2], 0x31), all));
    }
}
#define TURNS 8
#endif
#define T float
#define N(x) x##_f32
#include "cpu/fft_of.h"
#undef T
#undef N
#ifdef TURNS
#undef TURNS
#define TURNS 4
#endif
#define T double
#define N(x) x##_f64
#include "cpu/fft_of.h"

const tp_fft_kernels TP_CAP(tp_fft) = {
    .make = {make_numbers_f32, make_numbers_f64},
    .run = {{complex_lines_f32, complex_lines_f64},
            {real_lines_f32, real_lines_f64},
            {hermitian_lines_f32, hermitian_lines_f64}},
};
