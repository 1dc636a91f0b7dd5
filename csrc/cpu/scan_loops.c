/* scan_loops.c: running sums, products, extremes, log-sum-exps, compiled once per capability.
 *
 * The data are contiguous as (outer, n, inner); a call does `width` neighbouring columns of one outer index, `stride`
 * elements apart from step to step. Sums and products run in double (complex ones too), integers modulo 2**64. A line
 * of numbers (inner 1) is scanned a vector at a time: each lane takes in those below it in log2(LANES) steps, and then
 * what came before the vector. */
#include "core/host.h"
#include "cpu/kernels.h"

#include <math.h>
#include <string.h>

#define COLUMNS TP_SCAN_COLUMNS

/* Lanes of 8 bytes. MOVED: those of x a few lanes up, and below them those of `start`; LAST: the last in all. */
#if defined(__AVX512F__)
#define LANES 8
#define TAKEN_IN(start, x, OP)                               \
    x = OP(MOVED(start, x, 0, 8, 9, 10, 11, 12, 13, 14), x); \
    x = OP(MOVED(start, x, 0, 0, 8, 9, 10, 11, 12, 13), x);  \
    x = OP(MOVED(start, x, 0, 0, 0, 0, 8, 9, 10, 11), x);
#define LAST(x) MOVED(x, x, 7, 7, 7, 7, 7, 7, 7, 7)
#elif defined(__AVX2__)
#define LANES 4
#define TAKEN_IN(start, x, OP)              \
    x = OP(MOVED(start, x, 0, 4, 5, 6), x); \
    x = OP(MOVED(start, x, 0, 0, 4, 5), x);
#define LAST(x) MOVED(x, x, 3, 3, 3, 3)
#else
#define LANES 2
#define TAKEN_IN(start, x, OP) x = OP(MOVED(start, x, 0, 2), x);
#define LAST(x) MOVED(x, x, 1, 1)
#endif
#if defined(__clang__) || __GNUC__ >= 12
#define MOVED(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef int64_t lane_numbers __attribute__((vector_size(8 * LANES)));
#define MOVED(a, b, ...) __builtin_shuffle(a, b, (lane_numbers){__VA_ARGS__})
#endif

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))

#define OF cumsum_f32
#define T float
#define A double
#define OP PLUS
#define START 0
#include "cpu/scan_of.h"

#define OF cumsum_f64
#define T double
#define A double
#define OP PLUS
#define START 0
#include "cpu/scan_of.h"

#define OF cumsum_i64
#define T uint64_t
#define A uint64_t
#define OP PLUS
#define START 0
#include "cpu/scan_of.h"

#define OF cumprod_f32
#define T float
#define A double
#define OP TIMES
#define START 1
#include "cpu/scan_of.h"

#define OF cumprod_f64
#define T double
#define A double
#define OP TIMES
#define START 1
#include "cpu/scan_of.h"

#define OF cumprod_i64
#define T uint64_t
#define A uint64_t
#define OP TIMES
#define START 1
#include "cpu/scan_of.h"

/* Complex numbers as pairs. */
#define SCAN_PAIRS(name, T, product)                                                                        \
    static void name(void *out_, void *unused, const void *in_, int64_t n, int64_t stride, int64_t width) { \
        T *out = out_;                                                                                      \
        const T *in = in_;                                                                                  \
        (void)unused;                                                                                       \
        for (int64_t k = 0; k < width; k++) {                                                               \
            double re = product, im = 0;                                                                    \
            for (int64_t i = 0; i < n && !tp_ends_at(i); i++) {                                             \
                const T *x = in + 2 * (i * stride + k);                                                     \
                double r = product ? re * x[0] - im * x[1] : re + x[0],                                     \
                       m = product ? re * x[1] + im * x[0] : im + x[1];                                     \
                re = r;                                                                                     \
                im = m;                                                                                     \
                out[2 * (i * stride + k)] = (T)re;                                                          \
                out[2 * (i * stride + k) + 1] = (T)im;                                                      \
            }                                                                                               \
        }                                                                                                   \
    }
SCAN_PAIRS(cumsum_c64, float, 0)
SCAN_PAIRS(cumsum_c128, double, 0)
SCAN_PAIRS(cumprod_c64, float, 1)
SCAN_PAIRS(cumprod_c128, double, 1)

/* Equal values move the place on to the last one, as in PyTorch; a NaN stays. Of one column the extreme changes seldom:
 * a branch is foretold, where a choice would wait for the one before. */
#define SCAN_EXTREME(name, T, READ, ge)                                                                  \
    static void name(void *out_, void *at_, const void *in_, int64_t n, int64_t stride, int64_t width) { \
        T *out = out_, best[COLUMNS];                                                                    \
        int64_t *at = at_, place[COLUMNS];                                                               \
        const T *in = in_;                                                                               \
        if (width == 1) {                                                                                \
            T one = 0;                                                                                   \
            for (int64_t i = 0, where = 0; i < n && !tp_ends_at(i); i++) {                               \
                const T x = READ(in[i * stride]);                                                        \
                if (tp_unlikely(i == 0 || (x ge one) || x != x)) one = x, where = i;                     \
                out[i * stride] = one;                                                                   \
                at[i * stride] = where;                                                                  \
            }                                                                                            \
            return;                                                                                      \
        }                                                                                                \
        for (int64_t i = 0; i < n && !tp_ends_at(i); i++, in += stride, out += stride, at += stride)     \
            for (int64_t k = 0; k < width; k++) {                                                        \
                const T x = READ(in[k]);                                                                 \
                bool take = i == 0 || (x ge best[k]) || x != x;                                          \
                best[k] = take ? x : best[k];                                                            \
                place[k] = take ? i : place[k];                                                          \
                out[k] = best[k];                                                                        \
                at[k] = place[k];                                                                        \
            }                                                                                            \
    }
#define PLAIN(v) (v)
#define TRUTH(v) ((v) != 0)
#define BOTH_OF(suffix, T, READ) SCAN_EXTREME(cummax_##suffix, T, READ, >=) SCAN_EXTREME(cummin_##suffix, T, READ, <=)
#define BOTH(suffix, T) BOTH_OF(suffix, T, PLAIN)
BOTH_OF(bool, uint8_t, TRUTH)
BOTH(u8, uint8_t)
BOTH(u16, uint16_t)
BOTH(u32, uint32_t)
BOTH(u64, uint64_t)
BOTH(i8, int8_t)
BOTH(i16, int16_t)
BOTH(i32, int32_t)
BOTH(i64, int64_t)
BOTH(f32, float)
BOTH(f64, double)

#define SCAN_LOG(name, T)                                                                                       \
    static void name(void *out_, void *unused, const void *in_, int64_t n, int64_t stride, int64_t width) {     \
        T *out = out_;                                                                                          \
        const T *in = in_;                                                                                      \
        (void)unused;                                                                                           \
        for (int64_t k = 0; k < width; k++) {                                                                   \
            double acc = -INFINITY;                                                                             \
            for (int64_t i = 0; i < n && !tp_ends_at(i); i++) {                                                 \
                double x = in[i * stride + k], high = x > acc || x != x ? x : acc, low = high == acc ? x : acc; \
                acc = isinf(high) && high == low ? high : high + log1p(exp(low - high));                        \
                if (x != x || acc != acc) acc = NAN;                                                            \
                out[i * stride + k] = (T)acc;                                                                   \
            }                                                                                                   \
        }                                                                                                       \
    }
SCAN_LOG(logcumsumexp_f32, float)
SCAN_LOG(logcumsumexp_f64, double)

/* log(exp(a) + exp(b)) of complex numbers, from the one with the larger real part. */
TP_INLINE tp_complex128 log_add_complex(tp_complex128 a, tp_complex128 b) {
    if (creal(a) == -INFINITY) return b;
    if (creal(b) == -INFINITY) return a;
    if (isnan(creal(a)) || isnan(cimag(a)) || isnan(creal(b)) || isnan(cimag(b))) return CMPLX(NAN, NAN);
    bool first = creal(a) >= creal(b);
    tp_complex128 high = first ? a : b, low = first ? b : a;
    if (isinf(creal(high))) return high;
    return high + clog(1.0 + cexp(low - high));
}
#define SCAN_LOG_COMPLEX(name, T)                                                                           \
    static void name(void *out_, void *unused, const void *in_, int64_t n, int64_t stride, int64_t width) { \
        T *out = out_;                                                                                      \
        const T *in = in_;                                                                                  \
        (void)unused;                                                                                       \
        for (int64_t k = 0; k < width; k++) {                                                               \
            tp_complex128 acc = CMPLX(-INFINITY, 0);                                                        \
            for (int64_t i = 0; i < n && !tp_ends_at(i); i++) {                                             \
                acc = log_add_complex(acc, in[i * stride + k]);                                             \
                out[i * stride + k] = (T)acc;                                                               \
            }                                                                                               \
        }                                                                                                   \
    }
SCAN_LOG_COMPLEX(logcumsumexp_c64, tp_complex64)
SCAN_LOG_COMPLEX(logcumsumexp_c128, tp_complex128)

/* ---- the table ---- */

#define NUMBERS(name)                                                                          \
    {                                                                                          \
        [TP_INT64] = name##_i64,     [TP_FLOAT32] = name##_f32,     [TP_FLOAT64] = name##_f64, \
        [TP_COMPLEX64] = name##_c64, [TP_COMPLEX128] = name##_c128,                            \
    }
#define ORDERED(name)                                                                                             \
    {                                                                                                             \
        [TP_BOOL] = name##_bool,  [TP_UINT8] = name##_u8,    [TP_UINT16] = name##_u16,  [TP_UINT32] = name##_u32, \
        [TP_UINT64] = name##_u64, [TP_INT8] = name##_i8,     [TP_INT16] = name##_i16,   [TP_INT32] = name##_i32,  \
        [TP_INT64] = name##_i64,  [TP_FLOAT32] = name##_f32, [TP_FLOAT64] = name##_f64,                           \
    }

const tp_scan_kernels TP_CAP(tp_scan) = {
    .cumsum = NUMBERS(cumsum),
    .cumprod = NUMBERS(cumprod),
    .cummax = ORDERED(cummax),
    .cummin = ORDERED(cummin),
    .logcumsumexp = {[TP_FLOAT32] = logcumsumexp_f32,
                     [TP_FLOAT64] = logcumsumexp_f64,
                     [TP_COMPLEX64] = logcumsumexp_c64,
                     [TP_COMPLEX128] = logcumsumexp_c128},
};
