/* fold.c: sums without NaN, and questions of zero, compiled once per capability.
 *
 * Sums are reduction_of.h around a few functions.
 * `any` and `all` read whole chunks and stop after the one that settles the answer. */
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
#include "tensorpy/reduction_of.inc"

#define OF nansum_f64
#define ELEMENT double
#define ACC double
#define COUNT(n) ((double){0})
#include "tensorpy/reduction_of.inc"

/* ---- any, all, count_nonzero ---- */

#define ZERO(x) ((x) == 0)
#define ZERO_16(x) (((x) & 0x7fff) == 0) /* both 16-bit floats have their sign on top */
#define ZERO_C(x) (((x).re == 0) & ((x).im == 0))

#define OF u8
#define T uint8_t
#define C uint8_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF u16
#define T uint16_t
#define C uint16_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF u32
#define T uint32_t
#define C uint32_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF u64
#define T uint64_t
#define C uint64_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF f16
#define T uint16_t
#define C uint16_t
#define IS_ZERO ZERO_16
#include "cpu/question_of.h"

#define OF f32
#define T float
#define C uint32_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF f64
#define T double
#define C uint64_t
#define IS_ZERO ZERO
#include "cpu/question_of.h"

#define OF c64
#define T c64
#define C uint32_t
#define IS_ZERO ZERO_C
#include "cpu/question_of.h"

#define OF c128
#define T c128
#define C uint64_t
#define IS_ZERO ZERO_C
#include "cpu/question_of.h"

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
#define FOUND(dtype, name, finish_)                                                              \
    [dtype] = {TP_REDUCTION_FIELDS(dtype, TP_BOOL, 1, found_init, name, found_combine, finish_), \
               .settled = found_everywhere}
#define ANY(dtype, suffix) FOUND(dtype, suffix##_any, finish_1)
#define EVERY(dtype, suffix) FOUND(dtype, suffix##_all, finish_not)
#define COUNT(dtype, suffix) \
    [dtype] = {TP_REDUCTION_FIELDS(dtype, TP_INT64, 8, count_init, suffix##_count, count_combine, finish_8)}
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
