/* fold.c: sums without NaN, and questions of zero, compiled once per capability.
 *
 * Sums are reduction_of.h around a few functions.
 * `any` and `all` read whole chunks and stop behind the one that settles the answer. */
#include "cpu/kernels.h"
#include "cpu/reduction_rows.h"

#include <string.h>

#define CHUNK 128 /* so many counts fit a byte */

typedef struct {
    float re, im;
} c64;
typedef struct {
    double re, im;
} c128;

/* ---- nansum ---- */

/* The four functions that reduction_of.h is written around. */
#define FOLD(name, T, start, APPLY, JOIN)                         \
    TP_INLINE T name##_start(void) { return start; }              \
    TP_INLINE T name##_step(T acc, T x) { return APPLY(acc, x); } \
    TP_INLINE T name##_join(T a, T b) { return JOIN(a, b); }      \
    TP_INLINE T name##_finish_one(T acc, T count) {               \
        (void)count;                                              \
        return acc;                                               \
    }
#define PLUS(a, b) ((a) + (b))
#define PLUS_NUMBER(a, b) ((a) + ((b) == (b) ? (b) : 0)) /* a NaN counts as nothing */
FOLD(nansum_f32, float, 0, PLUS_NUMBER, PLUS)
FOLD(nansum_f64, double, 0, PLUS_NUMBER, PLUS)

#define OF nansum_f32
#define ELEMENT float
#define ACC float
#define COUNT(n) ((float){0})
#include "cpu/reduction_of.h"

#define OF nansum_f64
#define ELEMENT double
#define ACC double
#define COUNT(n) ((double){0})
#include "cpu/reduction_of.h"

/* ---- any, all, count_nonzero ---- */

/* IS(x): whether an element says yes. C: as wide as T, to count in. */
#define QUESTION(name, T, C, IS)                                                                                \
    TP_INLINE C name##_count(const T *p, int64_t n) {                                                           \
        C count = 0;                                                                                            \
        for (int64_t i = 0; i < n; i++) count += IS(p[i]);                                                      \
        return count;                                                                                           \
    }                                                                                                           \
    static void name##_any_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, \
                                     int64_t length, int64_t index) {                                           \
        (void)index;                                                                                            \
        uint8_t *acc = acc_;                                                                                    \
        for (int64_t run = 0; run < n; run++, in += stride) {                                                   \
            bool found = acc[run];                                                                              \
            int64_t i = 0;                                                                                      \
            for (; run_stride == sizeof(T) && !found && i + CHUNK <= length; i += CHUNK)                        \
                found = name##_count((const T *)in + i, CHUNK) != 0;                                            \
            for (; !found && i < length; i++) found = IS(*(const T *)(in + i * run_stride));                    \
            acc[run] = found;                                                                                   \
        }                                                                                                       \
    }                                                                                                           \
    static void name##_any_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, \
                                     int64_t rows, int64_t index) {                                             \
        (void)index;                                                                                            \
        uint8_t *acc = acc_;                                                                                    \
        for (int64_t row = 0; row < rows; row++, in += row_stride) {                                            \
            if (stride == sizeof(T))                                                                            \
                for (int64_t i = 0; i < n; i++) acc[i] |= IS(((const T *)in)[i]);                               \
            else                                                                                                \
                for (int64_t i = 0; i < n; i++) acc[i] |= IS(*(const T *)(in + i * stride));                    \
        }                                                                                                       \
    }
#define COUNTER(name, T)                                                                                        \
    static void name##_sum_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, \
                                     int64_t length, int64_t index) {                                           \
        (void)index;                                                                                            \
        int64_t *acc = acc_;                                                                                    \
        for (int64_t run = 0; run < n; run++, in += stride) {                                                   \
            int64_t i = 0;                                                                                      \
            for (; run_stride == sizeof(T) && i + CHUNK <= length; i += CHUNK)                                  \
                acc[run] += (int64_t)name##_count((const T *)in + i, CHUNK);                                    \
            for (; i < length; i++) acc[run] += name##_count((const T *)(in + i * run_stride), 1) != 0;         \
        }                                                                                                       \
    }                                                                                                           \
    static void name##_sum_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, \
                                     int64_t rows, int64_t index) {                                             \
        (void)index;                                                                                            \
        int64_t *acc = acc_;                                                                                    \
        for (int64_t row = 0; row < rows; row++, in += row_stride)                                              \
            for (int64_t i = 0; i < n; i++) acc[i] += name##_count((const T *)(in + i * stride), 1) != 0;       \
    }

#define IS_NONZERO(x) ((x) != 0)
#define IS_ZERO(x) ((x) == 0)
#define IS_NONZERO_16(x) (((x) & 0x7fff) != 0) /* both 16-bit floats have their sign on top */
#define IS_ZERO_16(x) (((x) & 0x7fff) == 0)
#define IS_NONZERO_C(x) (((x).re != 0) | ((x).im != 0))
#define IS_ZERO_C(x) (((x).re == 0) & ((x).im == 0))
#define QUESTIONS(suffix, T, C, YES, NO) \
    QUESTION(nonzero_##suffix, T, C, YES) QUESTION(zero_##suffix, T, C, NO) COUNTER(nonzero_##suffix, T)

QUESTIONS(u8, uint8_t, uint8_t, IS_NONZERO, IS_ZERO)
QUESTIONS(u16, uint16_t, uint16_t, IS_NONZERO, IS_ZERO)
QUESTIONS(u32, uint32_t, uint32_t, IS_NONZERO, IS_ZERO)
QUESTIONS(u64, uint64_t, uint64_t, IS_NONZERO, IS_ZERO)
QUESTIONS(f16, uint16_t, uint16_t, IS_NONZERO_16, IS_ZERO_16)
QUESTIONS(f32, float, uint32_t, IS_NONZERO, IS_ZERO)
QUESTIONS(f64, double, uint64_t, IS_NONZERO, IS_ZERO)
QUESTIONS(c64, c64, uint32_t, IS_NONZERO_C, IS_ZERO_C)
QUESTIONS(c128, c128, uint64_t, IS_NONZERO_C, IS_ZERO_C)

static void found_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n); }
static void found_combine(void *into, const void *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((uint8_t *)into)[i] |= ((const uint8_t *)from)[i];
}
static bool found_everywhere(const void *acc, int64_t n) { return !memchr(acc, 0, (size_t)n); }
/* all: no element is zero. */
static void finish_not(void *out, const void *acc, int64_t n, int64_t count, const void *params) {
    (void)count;
    (void)params;
    for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = !((const uint8_t *)acc)[i];
}

static void count_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n * sizeof(int64_t)); }
static void count_combine(void *into, const void *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((int64_t *)into)[i] += ((const int64_t *)from)[i];
}

/* ---- the table ---- */

#define REDUCTION(dtype, bytes, name) [dtype] = TP_REDUCTION_ROW(name, dtype, dtype, bytes)
#define FOUND(dtype, name, finish_)                                                                    \
    [dtype] = {TP_REDUCTION_FIELDS(dtype, TP_BOOL, 1, found_init, name##_any, found_combine, finish_), \
               .settled = found_everywhere}
#define ANY(dtype, suffix) FOUND(dtype, nonzero_##suffix, finish_1)
#define EVERY(dtype, suffix) FOUND(dtype, zero_##suffix, finish_not)
#define COUNT(dtype, suffix) \
    [dtype] = {TP_REDUCTION_FIELDS(dtype, TP_INT64, 8, count_init, nonzero_##suffix##_sum, count_combine, finish_8)}
#define ALL_DTYPES(ROW)                                                                               \
    {                                                                                                 \
        ROW(TP_BOOL, u8),     ROW(TP_UINT8, u8),      ROW(TP_UINT16, u16),      ROW(TP_UINT32, u32),  \
        ROW(TP_UINT64, u64),  ROW(TP_INT8, u8),       ROW(TP_INT16, u16),       ROW(TP_INT32, u32),   \
        ROW(TP_INT64, u64),   ROW(TP_FLOAT16, f16),   ROW(TP_BFLOAT16, f16),    ROW(TP_FLOAT32, f32), \
        ROW(TP_FLOAT64, f64), ROW(TP_COMPLEX64, c64), ROW(TP_COMPLEX128, c128),                       \
    }

const tp_fold_kernels TP_CAP(tp_fold) = {
    .nansum =
        {
            REDUCTION(TP_FLOAT32, 4, nansum_f32),
            REDUCTION(TP_FLOAT64, 8, nansum_f64),
        },
    .any = ALL_DTYPES(ANY),
    .all = ALL_DTYPES(EVERY),
    .nonzero = ALL_DTYPES(COUNT),
};
