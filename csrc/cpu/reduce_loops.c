/* reduce_loops.c: the inner loops of reductions (reduction.h), compiled once per capability.
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

/* The first bytes of a vector, and zeros; no byte after them is touched. Whole 32-bit words, at least one. */
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
#define TAIL(n) \
    case n: NAME(add_runs)(acc, runs, in, stride, length, n); break;
#define TAILS_4 TAIL(1) TAIL(2) TAIL(3) TAIL(4)
#define TAILS_8 TAILS_4 TAIL(5) TAIL(6) TAIL(7) TAIL(8)
#if VECTORS == 4
#define TAILS TAILS_4
#elif VECTORS == 8
#define TAILS TAILS_8
#else
#define TAILS TAILS_8 TAIL(9) TAIL(10) TAIL(11) TAIL(12) TAIL(13) TAIL(14) TAIL(15) TAIL(16)
#endif

#define PIECES 8 /* of TP_REDUCE_LEAF elements in a run that is summed at once */
#define FEW 8    /* numbers that are not worth the lanes */

#define OF sum_f32
#define T float
#define PARTS 1
#include "cpu/sum_of.h"

#define OF sum_f64
#define T double
#define PARTS 1
#include "cpu/sum_of.h"

#define OF sum_c64
#define T float
#define PARTS 2
#include "cpu/sum_of.h"

#define OF sum_c128
#define T double
#define PARTS 2
#include "cpu/sum_of.h"

#define OF sum_i64
#define T uint64_t
#define PARTS 1
#include "cpu/sum_of.h"

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

#define REDUCTION(dtype, bytes, name, finish_)  \
    [dtype] = {.leaf = PIECES * TP_REDUCE_LEAF, \
               TP_REDUCTION_FIELDS(dtype, dtype, bytes, name##_init, name, name##_combine, finish_)}

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
