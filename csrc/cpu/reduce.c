/* reduce.c: the inner loops of reductions (iter/reduce.h), compiled once per capability.
 *
 * A sum runs in LANE_BYTES of lanes: lane i takes every element whose number is i modulo the number of lanes, and the
 * lanes are added in halves. The lanes are the same for every capability, so results are too. Integers are added as
 * unsigned, where overflow is defined. */
#include "cpu/kernels.h"
#include "iter/reduce.h"

#include <string.h>

#define LANE_BYTES 256

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define VECTORS (LANE_BYTES / VECTOR_BYTES)
#define UNROLL _Pragma("GCC unroll 16")

/* The cases of a switch over the number of vectors in a short run. */
#define MAX_VECTORS 16
#define USED(T, n) case n: T##_add_short(acc, parts, n_runs, in, stride, length, n); break;
#if VECTORS == 16
#define FOR_USED(T) USED(T, 1) USED(T, 2) USED(T, 3) USED(T, 4) USED(T, 5) USED(T, 6) USED(T, 7) USED(T, 8) USED(T, 9) \
    USED(T, 10) USED(T, 11) USED(T, 12) USED(T, 13) USED(T, 14) USED(T, 15) USED(T, 16)
#elif VECTORS == 8
#define FOR_USED(T) USED(T, 1) USED(T, 2) USED(T, 3) USED(T, 4) USED(T, 5) USED(T, 6) USED(T, 7) USED(T, 8)
#else
#define FOR_USED(T) USED(T, 1) USED(T, 2) USED(T, 3) USED(T, 4)
#endif

/* Sums n numbers into lanes and those, by halves, into the first `parts` of them. A tail fills up with zeros. */
#define LANES(T)                                                                                                     \
    typedef T T##_vector __attribute__((vector_size(VECTOR_BYTES)));                                                 \
    typedef T T##_unaligned __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));               \
    enum { T##_PER_VECTOR = VECTOR_BYTES / sizeof(T), T##_LANES = LANE_BYTES / sizeof(T) };                          \
                                                                                                                     \
    static void T##_add_tail(T##_vector *sum, const T *in, int64_t n) {                                              \
        int64_t whole = n / T##_PER_VECTOR, rest = n % T##_PER_VECTOR;                                               \
        for (int64_t k = 0; k < whole; k++) sum[k] += ((const T##_unaligned *)in)[k];                                \
        if (!rest) return;                                                                                           \
        T last[T##_PER_VECTOR] = {0};                                                                                \
        for (int64_t k = 0; k < rest; k++) last[k] = in[whole * T##_PER_VECTOR + k];                                 \
        sum[whole] += *(const T##_unaligned *)last;                                                                  \
    }                                                                                                                \
                                                                                                                     \
    /* Adds up the first `used` vectors, the others being zero. */                                                   \
    TP_INLINE void T##_halve(T *out, int parts, T##_vector *sum, const int used) {                                   \
        T lanes[T##_PER_VECTOR];                                                                                     \
        UNROLL for (int half = VECTORS / 2; half; half /= 2) {                                                       \
            UNROLL for (int k = 0; k < half; k++) if (k + half < used) sum[k] += sum[k + half];                      \
        }                                                                                                            \
        *(T##_unaligned *)lanes = sum[0];                                                                            \
        UNROLL for (int half = T##_PER_VECTOR / 2; half >= parts; half /= 2) {                                       \
            UNROLL for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];                                       \
        }                                                                                                            \
        for (int k = 0; k < parts; k++) out[k] += lanes[k];                                                          \
    }                                                                                                                \
                                                                                                                     \
    /* Runs that fit into the lanes, of `used` vectors, which is a constant where this is expanded. */               \
    TP_INLINE void T##_add_short(T *acc, int parts, int64_t n, const char *in, int64_t stride, int64_t length,       \
                                 const int used) {                                                                   \
        int64_t rest = length % T##_PER_VECTOR;                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                            \
            const T##_unaligned *run = (const T##_unaligned *)(in + i * stride);                                     \
            T##_vector sum[MAX_VECTORS];                                                                             \
            UNROLL for (int k = 0; k < used - 1; k++) sum[k] = run[k];                                               \
            if (rest) {                                                                                              \
                T last[T##_PER_VECTOR] = {0};                                                                        \
                for (int64_t k = 0; k < rest; k++) last[k] = ((const T *)(run + used - 1))[k];                       \
                sum[used - 1] = *(const T##_unaligned *)last;                                                        \
            } else {                                                                                                 \
                sum[used - 1] = run[used - 1];                                                                       \
            }                                                                                                        \
            T##_halve(acc + i * parts, parts, sum, used);                                                            \
        }                                                                                                            \
    }                                                                                                                \
                                                                                                                     \
    static void T##_add_short_runs(T *acc, int parts, int64_t n_runs, const char *in, int64_t stride, int64_t length) {   \
        switch ((length + T##_PER_VECTOR - 1) / T##_PER_VECTOR) {                                                    \
            FOR_USED(T)                                                                                              \
        }                                                                                                            \
    }                                                                                                                \
                                                                                                                     \
    static void T##_add(T *out, int parts, const T *in, int64_t n) {                                                 \
        T##_vector sum[VECTORS], run[VECTORS] = {{0}}; /* run's address is not taken, so that it stays in registers */ \
        int64_t i = 0;                                                                                               \
        for (; i + T##_LANES <= n; i += T##_LANES) {                                                                 \
            UNROLL for (int k = 0; k < VECTORS; k++) run[k] += ((const T##_unaligned *)(in + i))[k];                 \
        }                                                                                                            \
        UNROLL for (int k = 0; k < VECTORS; k++) sum[k] = run[k];                                                    \
        if (i < n) T##_add_tail(sum, in + i, n - i);                                                                 \
        T##_halve(out, parts, sum, VECTORS);                                                                         \
    }
LANES(float)
LANES(double)
LANES(uint64_t)

#define FEW 8 /* numbers that are not worth the lanes */

/* T: the number type; an element is `parts` of them (2 for complex). */
#define SUM(name, T, parts)                                                                                          \
    static void name##_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n * parts * sizeof(T)); }                 \
                                                                                                                     \
    /* Elements any distance apart, in interleaved sums. */                                                          \
    static void name##_strided(T *acc, const char *in, int64_t stride, int64_t n) {                                  \
        T sum[8][parts] = {{0}};                                                                                     \
        int64_t i = 0;                                                                                               \
        for (; i + 8 <= n; i += 8)                                                                                   \
            for (int k = 0; k < 8; k++)                                                                              \
                for (int c = 0; c < parts; c++) sum[k][c] += ((const T *)(in + (i + k) * stride))[c];                \
        for (; i < n; i++)                                                                                           \
            for (int c = 0; c < parts; c++) sum[i & 7][c] += ((const T *)(in + i * stride))[c];                      \
        for (int half = 4; half; half /= 2)                                                                          \
            for (int k = 0; k < half; k++)                                                                           \
                for (int c = 0; c < parts; c++) sum[k][c] += sum[k + half][c];                                       \
        for (int c = 0; c < parts; c++) acc[c] += sum[0][c];                                                         \
    }                                                                                                                \
                                                                                                                     \
    static void name##_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,          \
                                 int64_t length, int64_t index) {                                                    \
        (void)index;                                                                                                 \
        T *acc = acc_;                                                                                               \
        if (run_stride != parts * sizeof(T) || length < FEW) {                                                       \
            for (int64_t i = 0; i < n; i++) name##_strided(acc + i * parts, in + i * stride, run_stride, length);    \
        } else if (length * parts <= T##_LANES) {                                                                    \
            T##_add_short_runs(acc, parts, n, in, stride, length * parts);                                           \
        } else {                                                                                                     \
            for (int64_t i = 0; i < n; i++)                                                                          \
                T##_add(acc + i * parts, parts, (const T *)(in + i * stride), length * parts);                       \
        }                                                                                                            \
    }                                                                                                                \
                                                                                                                     \
    static void name##_combine(void *into_, const void *from_, int64_t n) {                                          \
        T *into = into_;                                                                                             \
        const T *from = from_;                                                                                       \
        for (int64_t i = 0; i < n * parts; i++) into[i] += from[i];                                                  \
    }                                                                                                                \
                                                                                                                     \
    static void name##_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,          \
                                 int64_t rows, int64_t index) {                                                      \
        (void)index;                                                                                                 \
        T *acc = acc_;                                                                                               \
        bool contiguous = stride == parts * sizeof(T);                                                               \
        int64_t row = 0;                                                                                             \
        for (; contiguous && row + 4 <= rows; row += 4, in += 4 * row_stride) {                                      \
            const T *a = (const T *)in, *b = (const T *)(in + row_stride);                                           \
            const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);                    \
            for (int64_t i = 0; i < n * parts; i++) acc[i] += (a[i] + b[i]) + (c[i] + d[i]);                         \
        }                                                                                                            \
        for (; row < rows; row++, in += row_stride) {                                                                \
            if (contiguous) {                                                                                        \
                name##_combine(acc, in, n);                                                                          \
                continue;                                                                                            \
            }                                                                                                        \
            for (int64_t i = 0; i < n; i++)                                                                          \
                for (int c = 0; c < parts; c++) acc[i * parts + c] += ((const T *)(in + i * stride))[c];             \
        }                                                                                                            \
    }

SUM(sum_f32, float, 1)
SUM(sum_f64, double, 1)
SUM(sum_c64, float, 2)
SUM(sum_c128, double, 2)
SUM(sum_i64, uint64_t, 1)

/* The results are the accumulators. */
#define FINISH(name, bytes)                                                                                  \
    static void name(void *out, const void *acc, int64_t n, int64_t count, const void *params) {             \
        (void)count;                                                                                         \
        (void)params;                                                                                        \
        memcpy(out, acc, (size_t)n * bytes);                                                                 \
    }
FINISH(finish_1, 1)
FINISH(finish_4, 4)
FINISH(finish_8, 8)
FINISH(finish_16, 16)

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
        if (stride == 1)
            any_combine(acc, in, n);
        else
            for (int64_t i = 0; i < n; i++) ((uint8_t *)acc)[i] |= (uint8_t)in[i * stride];
}

/* ---- the table ---- */

#define REDUCTION(dtype, bytes, name, finish_)                                                         \
    [dtype] = {.in = dtype, .out = dtype, .size = bytes, .init = name##_init, .fold_runs = name##_fold_runs, \
               .fold_rows = name##_fold_rows, .combine = name##_combine, .finish = finish_}

const tp_reduce_kernels TP_CAP(tp_reduce) = {
    .sum = {
        REDUCTION(TP_BOOL, 1, any, finish_1),
        REDUCTION(TP_INT64, 8, sum_i64, finish_8),
        REDUCTION(TP_FLOAT32, 4, sum_f32, finish_4),
        REDUCTION(TP_FLOAT64, 8, sum_f64, finish_8),
        REDUCTION(TP_COMPLEX64, 8, sum_c64, finish_8),
        REDUCTION(TP_COMPLEX128, 16, sum_c128, finish_16),
    },
};
