/* reduce.c: the inner loops of reductions (iter/reduce.h), compiled once per capability.
 *
 * A sum runs in LANE_BYTES of lanes: lane i takes every element whose number is i modulo the number of lanes, and the
 * lanes are added in halves. The lanes are the same for every capability, so results are too. Integers are added as
 * unsigned, where overflow is defined. */
#include "cpu/kernels.h"
#include "cpu/reduction_rows.h"

#include <string.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif

#define LANE_BYTES 256

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS (LANE_BYTES / VECTOR_BYTES)
#define UNROLL _Pragma("GCC unroll 16")

/* The first bytes of a vector, and zeros; no byte behind them is touched. Whole 32-bit words, at least one. */
typedef int32_t words __attribute__((vector_size(VECTOR_BYTES)));
TP_INLINE words first_bytes(const void *p, size_t bytes) {
#if defined(__AVX512F__)
    return (words)_mm512_maskz_loadu_epi32((__mmask16)((1u << (bytes / 4)) - 1), p);
#elif defined(__AVX2__)
    static const int32_t mask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return (words)_mm256_maskload_epi32(p, _mm256_loadu_si256((const void *)(mask + 8 - bytes / 4)));
#else
    words w = {0};
    memcpy(&w, p, bytes);
    return w;
#endif
}

/* A run is whole sets of lanes and a tail of 1 to VECTORS vectors; a switch makes that number a constant. */
#define TAIL(T, n) \
    case n: T##_add_runs(acc, parts, runs, in, stride, length, n); break;
#define TAILS_4(T) TAIL(T, 1) TAIL(T, 2) TAIL(T, 3) TAIL(T, 4)
#define TAILS_8(T) TAILS_4(T) TAIL(T, 5) TAIL(T, 6) TAIL(T, 7) TAIL(T, 8)
#if VECTORS == 4
#define TAILS TAILS_4
#elif VECTORS == 8
#define TAILS TAILS_8
#else
#define TAILS(T) \
    TAILS_8(T) TAIL(T, 9) TAIL(T, 10) TAIL(T, 11) TAIL(T, 12) TAIL(T, 13) TAIL(T, 14) TAIL(T, 15) TAIL(T, 16)
#endif

/* Sums runs of numbers into lanes, and the lanes by halves into the first `parts` of them. */
#define LANES(T)                                                                                                    \
    typedef T T##_vector __attribute__((vector_size(VECTOR_BYTES)));                                                \
    typedef T T##_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));              \
    enum { T##_PER_VECTOR = VECTOR_BYTES / sizeof(T), T##_LANES = LANE_BYTES / sizeof(T) };                         \
                                                                                                                    \
    /* Adds up the first `used` vectors, the others being zero. */                                                  \
    TP_INLINE void T##_halve(T *out, int parts, T##_vector *sum, const int used) {                                  \
        T lanes[T##_PER_VECTOR];                                                                                    \
        UNROLL for (int half = VECTORS / 2; half; half /= 2) {                                                      \
            UNROLL for (int k = 0; k < half; k++) if (k + half < used) sum[k] += sum[k + half];                     \
        }                                                                                                           \
        *(T##_unaligned *)lanes = sum[0];                                                                           \
        UNROLL for (int half = T##_PER_VECTOR / 2; half >= parts; half /= 2) {                                      \
            UNROLL for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];                                      \
        }                                                                                                           \
        for (int k = 0; k < parts; k++) out[k] += lanes[k];                                                         \
    }                                                                                                               \
                                                                                                                    \
    TP_INLINE void T##_add_runs(T *acc, int parts, int64_t runs, const char *in, int64_t stride, int64_t length,    \
                                const int used) {                                                                   \
        const int64_t whole = (length - 1) / T##_LANES, last = (length - 1) % T##_PER_VECTOR + 1;                   \
        for (int64_t i = 0; i < runs; i++) {                                                                        \
            const T##_unaligned *run = (const T##_unaligned *)(in + i * stride), *tail = run + whole * VECTORS;     \
            T##_vector sum[VECTORS];                                                                                \
            UNROLL for (int k = 0; k < VECTORS; k++) sum[k] = k < used - 1 ? (T##_vector)tail[k] : (T##_vector){0}; \
            sum[used - 1] = (T##_vector)first_bytes(tail + used - 1, last * sizeof(T));                             \
            for (; run < tail; run += VECTORS) {                                                                    \
                UNROLL for (int k = 0; k < VECTORS; k++) sum[k] += run[k];                                          \
            }                                                                                                       \
            if (whole) T##_halve(acc + i * parts, parts, sum, VECTORS);                                             \
            else T##_halve(acc + i * parts, parts, sum, used);                                                      \
        }                                                                                                           \
    }                                                                                                               \
                                                                                                                    \
    static void T##_add(T *acc, int parts, int64_t runs, const char *in, int64_t stride, int64_t length) {          \
        switch ((length - 1) % T##_LANES / T##_PER_VECTOR + 1) { TAILS(T) }                                         \
    }
LANES(float)
LANES(double)
LANES(uint64_t)

#define FEW 8 /* numbers that are not worth the lanes */

/* T: the number type; an element is `parts` of them (2 for complex). */
#define SUM(name, T, parts)                                                                                       \
    static void name##_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n * parts * sizeof(T)); }              \
                                                                                                                  \
    /* Elements any distance apart, in interleaved sums. */                                                       \
    static void name##_strided(T *acc, const char *in, int64_t stride, int64_t n) {                               \
        T sum[8][parts] = {{0}};                                                                                  \
        int64_t i = 0;                                                                                            \
        for (; i + 8 <= n; i += 8)                                                                                \
            for (int k = 0; k < 8; k++)                                                                           \
                for (int c = 0; c < parts; c++) sum[k][c] += ((const T *)(in + (i + k) * stride))[c];             \
        for (; i < n; i++)                                                                                        \
            for (int c = 0; c < parts; c++) sum[i & 7][c] += ((const T *)(in + i * stride))[c];                   \
        for (int half = 4; half; half /= 2)                                                                       \
            for (int k = 0; k < half; k++)                                                                        \
                for (int c = 0; c < parts; c++) sum[k][c] += sum[k + half][c];                                    \
        for (int c = 0; c < parts; c++) acc[c] += sum[0][c];                                                      \
    }                                                                                                             \
                                                                                                                  \
    static void name##_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,       \
                                 int64_t length, int64_t index) {                                                 \
        (void)index;                                                                                              \
        T *acc = acc_;                                                                                            \
        if (run_stride != parts * sizeof(T) || length < FEW) {                                                    \
            for (int64_t i = 0; i < n; i++) name##_strided(acc + i * parts, in + i * stride, run_stride, length); \
        } else {                                                                                                  \
            T##_add(acc, parts, n, in, stride, length * parts);                                                   \
        }                                                                                                         \
    }                                                                                                             \
                                                                                                                  \
    static void name##_combine(void *into_, const void *from_, int64_t n) {                                       \
        T *into = into_;                                                                                          \
        const T *from = from_;                                                                                    \
        for (int64_t i = 0; i < n * parts; i++) into[i] += from[i];                                               \
    }                                                                                                             \
                                                                                                                  \
    static void name##_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,       \
                                 int64_t rows, int64_t index) {                                                   \
        (void)index;                                                                                              \
        T *acc = acc_;                                                                                            \
        bool contiguous = stride == parts * sizeof(T);                                                            \
        int64_t row = 0;                                                                                          \
        for (; contiguous && row + 4 <= rows; row += 4, in += 4 * row_stride) {                                   \
            const T *a = (const T *)in, *b = (const T *)(in + row_stride);                                        \
            const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);                 \
            for (int64_t i = 0; i < n * parts; i++) acc[i] += (a[i] + b[i]) + (c[i] + d[i]);                      \
        }                                                                                                         \
        for (; row < rows; row++, in += row_stride) {                                                             \
            if (contiguous) {                                                                                     \
                name##_combine(acc, in, n);                                                                       \
                continue;                                                                                         \
            }                                                                                                     \
            for (int64_t i = 0; i < n; i++)                                                                       \
                for (int c = 0; c < parts; c++) acc[i * parts + c] += ((const T *)(in + i * stride))[c];          \
        }                                                                                                         \
    }

SUM(sum_f32, float, 1)
SUM(sum_f64, double, 1)
SUM(sum_c64, float, 2)
SUM(sum_c128, double, 2)
SUM(sum_i64, uint64_t, 1)

/* A mean divides the sum. `parts` numbers a result. */
#define MEAN(name, T, parts)                                                                     \
    static void name(void *out, const void *acc, int64_t n, int64_t count, const void *params) { \
        (void)params;                                                                            \
        for (int64_t i = 0; i < n * parts; i++) ((T *)out)[i] = ((const T *)acc)[i] / (T)count;  \
    }
MEAN(mean_f32, float, 1)
MEAN(mean_f64, double, 1)
MEAN(mean_c64, float, 2)
MEAN(mean_c128, double, 2)

/* ---- any: the sum of bools ---- */

static void any_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n); }

static void any_fold_runs(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                          int64_t index) {
    (void)index;
    for (int64_t run = 0; run < n; run++, in += stride) {
        uint8_t found = 0;
        if (run_stride == 1)
            for (int64_t i = 0; i < length; i++) found |= (uint8_t)in[i];
        else
            for (int64_t i = 0; i < length; i++) found |= (uint8_t)in[i * run_stride];
        ((uint8_t *)acc)[run] |= found;
    }
}

static void any_combine(void *into, const void *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((uint8_t *)into)[i] |= ((const uint8_t *)from)[i];
}

static void any_fold_rows(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                          int64_t index) {
    (void)index;
    for (int64_t row = 0; row < rows; row++, in += row_stride)
        if (stride == 1) any_combine(acc, in, n);
        else
            for (int64_t i = 0; i < n; i++) ((uint8_t *)acc)[i] |= (uint8_t)in[i * stride];
}

/* ---- the table ---- */

#define REDUCTION(dtype, bytes, name, finish_) \
    [dtype] = {TP_REDUCTION_FIELDS(dtype, dtype, bytes, name##_init, name, name##_combine, finish_)}

const tp_reduce_kernels TP_CAP(tp_reduce) = {
    .sum =
        {
            REDUCTION(TP_BOOL, 1, any, finish_1),
            REDUCTION(TP_INT64, 8, sum_i64, finish_8),
            REDUCTION(TP_FLOAT32, 4, sum_f32, finish_4),
            REDUCTION(TP_FLOAT64, 8, sum_f64, finish_8),
            REDUCTION(TP_COMPLEX64, 8, sum_c64, finish_8),
            REDUCTION(TP_COMPLEX128, 16, sum_c128, finish_16),
        },
    .mean =
        {
            REDUCTION(TP_FLOAT32, 4, sum_f32, mean_f32),
            REDUCTION(TP_FLOAT64, 8, sum_f64, mean_f64),
            REDUCTION(TP_COMPLEX64, 8, sum_c64, mean_c64),
            REDUCTION(TP_COMPLEX128, 16, sum_c128, mean_c128),
        },
};
