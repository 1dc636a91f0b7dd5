/* extreme.c: largest and smallest elements, and where they are, compiled once per capability.
 *
 * One rule makes all of them: x replaces the best so far, b, if !(x <= b) and b is a number. So a NaN replaces any
 * number and nothing replaces a NaN: the first NaN wins, and among equals the first element does. Minima turn the
 * comparison round.
 *
 * Along a run, a place is looked for only in a block whose best replaces the best so far: for most data that is a few
 * blocks. Down columns, each lane of values has a lane of row numbers of the same width beside it; int8 lanes bear
 * FEW_ROWS. The kernels of one dtype and direction are in extreme_of.h. */
#include "cpu/kernels.h"

#include <float.h>
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define UNROLL _Pragma("GCC unroll 16")
#if defined(__AVX512F__) /* worked on side by side, as far as there are registers */
#define VECTORS 8
#else
#define VECTORS 4
#endif
/* For floats the instruction, which compilers do not find: a where a > b, else b. */
#if defined(__AVX512F__)
#include <immintrin.h>
#define MAX_F32(a, b) ((__typeof__(b))_mm512_max_ps((__m512)(a), (__m512)(b)))
#define MIN_F32(a, b) ((__typeof__(b))_mm512_min_ps((__m512)(a), (__m512)(b)))
#define MAX_F64(a, b) ((__typeof__(b))_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define MIN_F64(a, b) ((__typeof__(b))_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#elif defined(__AVX2__)
#include <immintrin.h>
#define MAX_F32(a, b) ((__typeof__(b))_mm256_max_ps((__m256)(a), (__m256)(b)))
#define MIN_F32(a, b) ((__typeof__(b))_mm256_min_ps((__m256)(a), (__m256)(b)))
#define MAX_F64(a, b) ((__typeof__(b))_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define MIN_F64(a, b) ((__typeof__(b))_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#elif defined(__SSE2__)
#include <emmintrin.h>
#define MAX_F32(a, b) ((__typeof__(b))_mm_max_ps((__m128)(a), (__m128)(b)))
#define MIN_F32(a, b) ((__typeof__(b))_mm_min_ps((__m128)(a), (__m128)(b)))
#define MAX_F64(a, b) ((__typeof__(b))_mm_max_pd((__m128d)(a), (__m128d)(b)))
#define MIN_F64(a, b) ((__typeof__(b))_mm_min_pd((__m128d)(a), (__m128d)(b)))
#else
#define MAX_F32(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define MIN_F32(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define MAX_F64 MAX_F32
#define MIN_F64 MIN_F32
#endif

/* Whether lanes of a or b are NaN, to be gathered by |: of AVX-512 a mask, which tells of two vectors at once. */
#if defined(__AVX512F__)
#define ODDS(lanes) int
#define ODD_F32(a, b) (int)_mm512_cmp_ps_mask((__m512)(a), (__m512)(b), _CMP_UNORD_Q)
#define ODD_F64(a, b) (int)_mm512_cmp_pd_mask((__m512d)(a), (__m512d)(b), _CMP_UNORD_Q)
#define SOME_ODD(some, odds) ((odds) != 0)
#else
#define ODDS(lanes) lanes
#define ODD_F32(a, b) (((a) != (a)) | ((b) != (b)))
#define ODD_F64 ODD_F32
#define SOME_ODD(some, odds) some(odds)
#endif
#define ODD_INT(a, b) ((ODDS(NAME(i))){0})

#define COLUMNS 512 /* of rows, worked on together */
#define FEW_ROWS 64 /* so many fit an int8 */
#define MANY_ROWS 256
#define SMALL_BLOCK 256 /* elements, searched for their best and then for its place */
#define LARGE_BLOCK 4096
#define LEAF 65536 /* elements of a run in one accumulator: nothing is rounded, so the fewer leaves, the better */

/* a where the mask is set, else b: compilers know this form and blend. */
#define SELECT(M, mask, a, b) ((__typeof__(b))(((M)(a) & (mask)) | ((M)(b) & ~(mask))))

/* A bit for each byte of a comparison's lanes, the first byte lowest. */
typedef int8_t bytes __attribute__((vector_size(VECTOR_BYTES)));
TP_INLINE uint64_t bits_of(bytes mask) {
#if defined(__AVX512F__)
    __m256i half[2];
    memcpy(half, &mask, sizeof mask);
    return (uint32_t)_mm256_movemask_epi8(half[0]) | (uint64_t)(uint32_t)_mm256_movemask_epi8(half[1]) << 32;
#elif defined(__AVX2__)
    return (uint32_t)_mm256_movemask_epi8((__m256i)mask);
#elif defined(__SSE2__)
    return (uint32_t)_mm_movemask_epi8((__m128i)mask);
#else
    uint64_t bits = 0;
    for (int k = 0; k < VECTOR_BYTES; k++) bits |= (uint64_t)(mask[k] & 1) << k;
    return bits;
#endif
}

/* Integers are compared with themselves as floats are, and equal themselves. */
#pragma GCC diagnostic ignored "-Wtautological-compare"

/* The largest of signed integers is the one search of a width: with bits turned over, the smallest is the largest, and
 * unsigned numbers are signed ones. */
#define OF i8
#define T int8_t
#define S int8_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define ODD_V(a, b) ODD_INT(a, b)
#define WORST INT8_MIN
#define NAN_OF_T 0
#define KEY(x) ((x) ^ flip)
#include "cpu/extreme_of.h"

#define OF i16
#define T int16_t
#define S int16_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define ODD_V(a, b) ODD_INT(a, b)
#define WORST INT16_MIN
#define NAN_OF_T 0
#define KEY(x) ((x) ^ flip)
#include "cpu/extreme_of.h"

#define OF i32
#define T int32_t
#define S int32_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define ODD_V(a, b) ODD_INT(a, b)
#define WORST INT32_MIN
#define NAN_OF_T 0
#define KEY(x) ((x) ^ flip)
#include "cpu/extreme_of.h"

#define OF i64
#define T int64_t
#define S int64_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define ODD_V(a, b) ODD_INT(a, b)
#define WORST INT64_MIN
#define NAN_OF_T 0
#define KEY(x) ((x) ^ flip)
#include "cpu/extreme_of.h"

#define OF f32_max
#define T float
#define S int32_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) MAX_F32(a, b)
#define ODD_V(a, b) ODD_F32(a, b)
#define WORST (-__builtin_inff())
#define NAN_OF_T __builtin_nanf("")
#define KEY(x) (x)
#include "cpu/extreme_of.h"

#define OF f32_min
#define T float
#define S int32_t
#define BETTER <
#define LE >=
#define BETTER_V(a, b) MIN_F32(a, b)
#define ODD_V(a, b) ODD_F32(a, b)
#define WORST __builtin_inff()
#define NAN_OF_T __builtin_nanf("")
#define KEY(x) (x)
#include "cpu/extreme_of.h"

#define OF f64_max
#define T double
#define S int64_t
#define BETTER >
#define LE <=
#define BETTER_V(a, b) MAX_F64(a, b)
#define ODD_V(a, b) ODD_F64(a, b)
#define WORST (-__builtin_inf())
#define NAN_OF_T __builtin_nan("")
#define KEY(x) (x)
#include "cpu/extreme_of.h"

#define OF f64_min
#define T double
#define S int64_t
#define BETTER <
#define LE >=
#define BETTER_V(a, b) MIN_F64(a, b)
#define ODD_V(a, b) ODD_F64(a, b)
#define WORST __builtin_inf()
#define NAN_OF_T __builtin_nan("")
#define KEY(x) (x)
#include "cpu/extreme_of.h"

/* ---- the kernels of each dtype and direction ---- */

#define KERNELS(name, of, flip)                                                                                  \
    static void name##_fold_runs(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride,       \
                                 int64_t length, int64_t index) {                                                \
        (void)index;                                                                                             \
        of##_fold_runs(acc, n, in, stride, run_stride, length, flip);                                            \
    }                                                                                                            \
    static void name##_fold_rows(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride,       \
                                 int64_t rows, int64_t index) {                                                  \
        (void)index;                                                                                             \
        of##_fold_rows(acc, n, in, stride, row_stride, rows, flip);                                              \
    }                                                                                                            \
    static void name##_finish(void *out, const void *acc, int64_t n, int64_t count, const void *params) {        \
        (void)count;                                                                                             \
        (void)params;                                                                                            \
        of##_finish(out, acc, n, flip);                                                                          \
    }                                                                                                            \
    static void name##_place_fold_runs(void *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride, \
                                       int64_t length, int64_t index) {                                          \
        of##_place_fold_runs(acc, n, in, stride, run_stride, length, index, flip);                               \
    }                                                                                                            \
    static void name##_place_fold_rows(void *acc, int64_t n, const char *in, int64_t stride, int64_t row_stride, \
                                       int64_t rows, int64_t index) {                                            \
        of##_place_fold_rows(acc, n, in, stride, row_stride, rows, index, flip);                                 \
    }
#define KERNELS_OF_WIDTH(w)               \
    KERNELS(max_i##w, i##w, 0)            \
    KERNELS(min_i##w, i##w, -1)           \
    KERNELS(max_u##w, i##w, INT##w##_MIN) \
    KERNELS(min_u##w, i##w, INT##w##_MAX)
KERNELS_OF_WIDTH(8)
KERNELS_OF_WIDTH(16)
KERNELS_OF_WIDTH(32)
KERNELS_OF_WIDTH(64)
KERNELS(max_f32, f32_max, 0)
KERNELS(min_f32, f32_min, 0)
KERNELS(max_f64, f64_max, 0)
KERNELS(min_f64, f64_min, 0)

/* ---- the table ---- */

#define VALUE(dtype, of, name)                \
    [dtype] = {.in = dtype,                   \
               .out = dtype,                  \
               .size = sizeof(of##_element),  \
               .leaf = LEAF,                  \
               .init = of##_init,             \
               .fold_runs = name##_fold_runs, \
               .fold_rows = name##_fold_rows, \
               .combine = of##_combine,       \
               .finish = name##_finish},
#define PLACE_OF(dtype, as, of, name)                                         \
    [dtype] = {.in = as,                                                      \
               .out = TP_INT64,                                               \
               .size = sizeof(of##_place),                                    \
               .leaf = LEAF,                                                  \
               .leaf_rows = sizeof(of##_element) == 1 ? FEW_ROWS : MANY_ROWS, \
               .indexed = true,                                               \
               .init = of##_place_init,                                       \
               .fold_runs = name##_place_fold_runs,                           \
               .fold_rows = name##_place_fold_rows,                           \
               .combine = of##_place_combine,                                 \
               .finish = of##_place_finish},
#define PLACE(dtype, of, name) PLACE_OF(dtype, dtype, of, name)
#define INTEGERS(ROW, which, w) ROW(TP_UINT##w, i##w, which##_u##w) ROW(TP_INT##w, i##w, which##_i##w)
#define NUMBERS(ROW, which)                   \
    INTEGERS(ROW, which, 8)                   \
    INTEGERS(ROW, which, 16)                  \
    INTEGERS(ROW, which, 32)                  \
    INTEGERS(ROW, which, 64)                  \
    ROW(TP_FLOAT32, f32_##which, which##_f32) \
    ROW(TP_FLOAT64, f64_##which, which##_f64)
#define VALUES(which) {VALUE(TP_BOOL, i8, which##_u8) NUMBERS(VALUE, which)}
/* A true byte may be larger than another: the place of a bool is looked for among the numbers 0 and 1. */
#define PLACES(which) {PLACE_OF(TP_BOOL, TP_UINT8, i8, which##_u8) NUMBERS(PLACE, which)}

const tp_extreme_kernels TP_CAP(tp_extreme) = {
    .largest = VALUES(max),
    .smallest = VALUES(min),
    .largest_at = PLACES(max),
    .smallest_at = PLACES(min),
};
