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

#define OF max_u8
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T uint8_t
#define S int8_t
#define BETTER >
#define LE <=
#define WORST 0
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_u8
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T uint8_t
#define S int8_t
#define BETTER <
#define LE >=
#define WORST UINT8_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_u16
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T uint16_t
#define S int16_t
#define BETTER >
#define LE <=
#define WORST 0
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_u16
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T uint16_t
#define S int16_t
#define BETTER <
#define LE >=
#define WORST UINT16_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_u32
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T uint32_t
#define S int32_t
#define BETTER >
#define LE <=
#define WORST 0
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_u32
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T uint32_t
#define S int32_t
#define BETTER <
#define LE >=
#define WORST UINT32_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_u64
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T uint64_t
#define S int64_t
#define BETTER >
#define LE <=
#define WORST 0
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_u64
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T uint64_t
#define S int64_t
#define BETTER <
#define LE >=
#define WORST UINT64_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_i8
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T int8_t
#define S int8_t
#define BETTER >
#define LE <=
#define WORST INT8_MIN
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_i8
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T int8_t
#define S int8_t
#define BETTER <
#define LE >=
#define WORST INT8_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_i16
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T int16_t
#define S int16_t
#define BETTER >
#define LE <=
#define WORST INT16_MIN
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_i16
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T int16_t
#define S int16_t
#define BETTER <
#define LE >=
#define WORST INT16_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_i32
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T int32_t
#define S int32_t
#define BETTER >
#define LE <=
#define WORST INT32_MIN
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_i32
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T int32_t
#define S int32_t
#define BETTER <
#define LE >=
#define WORST INT32_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_i64
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) > (b), a, b)
#define T int64_t
#define S int64_t
#define BETTER >
#define LE <=
#define WORST INT64_MIN
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF min_i64
#define ODD_V(a, b) ODD_INT(a, b)
#define BETTER_V(a, b) SELECT(NAME(i), (a) < (b), a, b)
#define T int64_t
#define S int64_t
#define BETTER <
#define LE >=
#define WORST INT64_MAX
#define NAN_OF_T 0
#include "cpu/extreme_of.h"

#define OF max_f32
#define ODD_V(a, b) ODD_F32(a, b)
#define BETTER_V(a, b) MAX_F32(a, b)
#define T float
#define S int32_t
#define BETTER >
#define LE <=
#define WORST (-__builtin_inff())
#define NAN_OF_T __builtin_nanf("")
#include "cpu/extreme_of.h"

#define OF min_f32
#define ODD_V(a, b) ODD_F32(a, b)
#define BETTER_V(a, b) MIN_F32(a, b)
#define T float
#define S int32_t
#define BETTER <
#define LE >=
#define WORST __builtin_inff()
#define NAN_OF_T __builtin_nanf("")
#include "cpu/extreme_of.h"

#define OF max_f64
#define ODD_V(a, b) ODD_F64(a, b)
#define BETTER_V(a, b) MAX_F64(a, b)
#define T double
#define S int64_t
#define BETTER >
#define LE <=
#define WORST (-__builtin_inf())
#define NAN_OF_T __builtin_nan("")
#include "cpu/extreme_of.h"

#define OF min_f64
#define ODD_V(a, b) ODD_F64(a, b)
#define BETTER_V(a, b) MIN_F64(a, b)
#define T double
#define S int64_t
#define BETTER <
#define LE >=
#define WORST __builtin_inf()
#define NAN_OF_T __builtin_nan("")
#include "cpu/extreme_of.h"

/* ---- the table ---- */

#define VALUE(dtype, name)                     \
    [dtype] = {.in = dtype,                    \
               .out = dtype,                   \
               .size = sizeof(name##_element), \
               .leaf = LEAF,                   \
               .init = name##_init,            \
               .fold_runs = name##_fold_runs,  \
               .fold_rows = name##_fold_rows,  \
               .combine = name##_combine,      \
               .finish = name##_finish}
#define PLACE_OF(dtype, as, name)                                               \
    [dtype] = {.in = as,                                                        \
               .out = TP_INT64,                                                 \
               .size = sizeof(name##_place),                                    \
               .leaf = LEAF,                                                    \
               .leaf_rows = sizeof(name##_element) == 1 ? FEW_ROWS : MANY_ROWS, \
               .indexed = true,                                                 \
               .init = name##_place_init,                                       \
               .fold_runs = name##_place_fold_runs,                             \
               .fold_rows = name##_place_fold_rows,                             \
               .combine = name##_place_combine,                                 \
               .finish = name##_place_finish}
#define PLACE(dtype, name) PLACE_OF(dtype, dtype, name)
/* A true byte may be larger than another: the place of a bool is looked for among the numbers 0 and 1. */
#define PLACE_OF_BOOL(which) PLACE_OF(TP_BOOL, TP_UINT8, which##_u8)
#define VALUE_OF_BOOL(which) VALUE(TP_BOOL, which##_u8)
#define ALL(ROW, which)                                                                          \
    {                                                                                            \
        ROW##_OF_BOOL(which),         ROW(TP_UINT8, which##_u8),    ROW(TP_UINT16, which##_u16), \
        ROW(TP_UINT32, which##_u32),  ROW(TP_UINT64, which##_u64),  ROW(TP_INT8, which##_i8),    \
        ROW(TP_INT16, which##_i16),   ROW(TP_INT32, which##_i32),   ROW(TP_INT64, which##_i64),  \
        ROW(TP_FLOAT32, which##_f32), ROW(TP_FLOAT64, which##_f64),                              \
    }

const tp_extreme_kernels TP_CAP(tp_extreme) = {
    .largest = ALL(VALUE, max),
    .smallest = ALL(VALUE, min),
    .largest_at = ALL(PLACE, max),
    .smallest_at = ALL(PLACE, min),
};
