/* moments.c: variances and sums of squares, compiled once per capability.
 *
 * A leaf is short enough for the cache, so its mean is found first and the squared distances from it in a second pass;
 * leaves are put together by the count, mean and distances of each (Chan's formula). All of it in double, in lanes
 * whose number does not depend on the vectors' width. A complex number counts as its two parts. */
#include "cpu/kernels.h"

#include <math.h>
#include <string.h>

#define LANES 32
#define COLUMNS 512
#define UNROLL _Pragma("GCC unroll 32")

typedef struct {
    double mean[2], distance; /* the sum of squared distances from the mean */
    int64_t n;
} moments;

static void moments_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n * sizeof(moments)); }

TP_INLINE void join(moments *into, const double *mean, double distance, int64_t n) {
    if (into->n == 0) {
        *into = (moments){{mean[0], mean[1]}, distance, n};
        return;
    }
    double total = (double)(into->n + n), share = (double)n / total, gap = 0;
    for (int c = 0; c < 2; c++) {
        double d = mean[c] - into->mean[c];
        gap += d * d;
        into->mean[c] += d * share;
    }
    into->distance += distance + gap * (double)into->n * share;
    into->n += n;
}

static void moments_combine(void *into, const void *from_, int64_t n) {
    const moments *from = from_;
    for (int64_t i = 0; i < n; i++)
        if (from[i].n) join((moments *)into + i, from[i].mean, from[i].distance, from[i].n);
}

TP_INLINE double add_lanes(double *lane) {
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++) lane[k] += lane[k + half];
    return lane[0];
}

/* name: of the dtype; T: a part of an element. */
#define MOMENTS(name, T, parts)                                                                                     \
    static void name##_strided(moments *acc, const char *in, int64_t step, int64_t n) {                             \
        double mean[2] = {0}, distance = 0;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                                             \
            for (int c = 0; c < parts; c++) mean[c] += ((const T *)(in + i * step))[c];                             \
        for (int c = 0; c < parts; c++) mean[c] /= (double)n;                                                       \
        for (int64_t i = 0; i < n; i++)                                                                             \
            for (int c = 0; c < parts; c++) {                                                                       \
                double d = ((const T *)(in + i * step))[c] - mean[c];                                               \
                distance += d * d;                                                                                  \
            }                                                                                                       \
        join(acc, mean, distance, n);                                                                               \
    }                                                                                                               \
    TP_INLINE void name##_run(moments *acc, const T *p, int64_t n) {                                                \
        double lane[LANES] = {0}, mean[2] = {0};                                                                    \
        int64_t i = 0;                                                                                              \
        for (; i + LANES <= n; i += LANES) UNROLL for (int k = 0; k < LANES; k++) lane[k] += (double)p[i + k];      \
        for (int k = 0; i + k < n; k++) lane[k] += (double)p[i + k];                                                \
        mean[0] = add_lanes(lane) / (double)n;                                                                      \
        memset(lane, 0, sizeof lane);                                                                               \
        for (i = 0; i + LANES <= n; i += LANES) UNROLL for (int k = 0; k < LANES; k++) {                            \
                double d = (double)p[i + k] - mean[0];                                                              \
                lane[k] += d * d;                                                                                   \
            }                                                                                                       \
        for (int k = 0; i + k < n; k++) {                                                                           \
            double d = (double)p[i + k] - mean[0];                                                                  \
            lane[k] += d * d;                                                                                       \
        }                                                                                                           \
        join(acc, mean, add_lanes(lane), n);                                                                        \
    }                                                                                                               \
    static void name##_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,         \
                                 int64_t length, int64_t index) {                                                   \
        (void)index;                                                                                                \
        moments *acc = acc_;                                                                                        \
        for (int64_t run = 0; length && run < n; run++, in += stride) {                                             \
            if (parts == 1 && run_stride == sizeof(T)) name##_run(acc + run, (const T *)in, length);                \
            else name##_strided(acc + run, in, run_stride, length);                                                 \
        }                                                                                                           \
    }                                                                                                               \
    static void name##_columns(moments *acc, int64_t n, const char *in, int64_t row_stride, int64_t rows) {         \
        double mean[COLUMNS] = {0}, distance[COLUMNS] = {0};                                                        \
        for (int64_t row = 0; row < rows; row++) {                                                                  \
            const T *p = (const T *)(in + row * row_stride);                                                        \
            for (int64_t i = 0; i < n; i++) mean[i] += (double)p[i];                                                \
        }                                                                                                           \
        for (int64_t i = 0; i < n; i++) mean[i] /= (double)rows;                                                    \
        for (int64_t row = 0; row < rows; row++) {                                                                  \
            const T *p = (const T *)(in + row * row_stride);                                                        \
            for (int64_t i = 0; i < n; i++) distance[i] += ((double)p[i] - mean[i]) * ((double)p[i] - mean[i]);     \
        }                                                                                                           \
        for (int64_t i = 0; i < n; i++) join(acc + i, (const double[]){mean[i], 0}, distance[i], rows);             \
    }                                                                                                               \
    static void name##_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,         \
                                 int64_t rows, int64_t index) {                                                     \
        (void)index;                                                                                                \
        moments *acc = acc_;                                                                                        \
        bool columns = parts == 1 && stride == sizeof(T) && rows > 1;                                               \
        for (int64_t i = 0; columns && i < n; i += COLUMNS)                                                         \
            name##_columns(acc + i, n - i < COLUMNS ? n - i : COLUMNS, in + i * stride, row_stride, rows);          \
        for (int64_t i = 0; !columns && rows && i < n; i++)                                                         \
            name##_strided(acc + i, in + i * stride, row_stride, rows);                                             \
    }                                                                                                               \
    static void name##_finish(void *out, const void *acc_, int64_t n, int64_t count, const void *params) {          \
        const tp_moments_params *p = params;                                                                        \
        const moments *acc = acc_;                                                                                  \
        double by = (double)count - p->correction;                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                                           \
            double variance = acc[i].distance / (by > 0 ? by : 0);                                                  \
            ((T *)out)[i] = (T)(p->root ? sqrt(variance) : variance);                                               \
        }                                                                                                           \
    }                                                                                                               \
                                                                                                                    \
    /* ---- the root of the sum of squares ---- */                                                                  \
    static void name##_squares_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, \
                                         int64_t length, int64_t index) {                                           \
        (void)index;                                                                                                \
        double *acc = acc_;                                                                                         \
        for (int64_t run = 0; run < n; run++, in += stride) {                                                       \
            double lane[LANES] = {0};                                                                               \
            int64_t i = 0, flat = length * parts;                                                                   \
            const T *p = (const T *)in;                                                                             \
            if (run_stride == parts * sizeof(T)) {                                                                  \
                for (; i + LANES <= flat; i += LANES)                                                               \
                    UNROLL for (int k = 0; k < LANES; k++) lane[k] += (double)p[i + k] * (double)p[i + k];          \
                for (int k = 0; i + k < flat; k++) lane[k] += (double)p[i + k] * (double)p[i + k];                  \
            } else {                                                                                                \
                for (; i < length; i++)                                                                             \
                    for (int c = 0; c < parts; c++) {                                                               \
                        double x = ((const T *)(in + i * run_stride))[c];                                           \
                        lane[i % LANES] += x * x;                                                                   \
                    }                                                                                               \
            }                                                                                                       \
            acc[run] += add_lanes(lane);                                                                            \
        }                                                                                                           \
    }                                                                                                               \
    static void name##_squares_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, \
                                         int64_t rows, int64_t index) {                                             \
        (void)index;                                                                                                \
        double *acc = acc_;                                                                                         \
        for (int64_t row = 0; row < rows; row++, in += row_stride) {                                                \
            if (parts == 1 && stride == sizeof(T)) {                                                                \
                const T *p = (const T *)in;                                                                         \
                for (int64_t i = 0; i < n; i++) acc[i] += (double)p[i] * (double)p[i];                              \
                continue;                                                                                           \
            }                                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                                         \
                for (int c = 0; c < parts; c++) {                                                                   \
                    double x = ((const T *)(in + i * stride))[c];                                                   \
                    acc[i] += x * x;                                                                                \
                }                                                                                                   \
        }                                                                                                           \
    }                                                                                                               \
    static void name##_squares_finish(void *out, const void *acc, int64_t n, int64_t count, const void *params) {   \
        (void)count;                                                                                                \
        (void)params;                                                                                               \
        for (int64_t i = 0; i < n; i++) ((T *)out)[i] = (T)sqrt(((const double *)acc)[i]);                          \
    }

MOMENTS(f32, float, 1)
MOMENTS(f64, double, 1)
MOMENTS(c64, float, 2)
MOMENTS(c128, double, 2)

static void squares_init(void *acc, int64_t n) { memset(acc, 0, (size_t)n * sizeof(double)); }
static void squares_combine(void *into, const void *from, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((double *)into)[i] += ((const double *)from)[i];
}

/* ---- the table ---- */

#define VARIANCE(in_, out_, name)           \
    [in_] = {.in = in_,                     \
             .out = out_,                   \
             .size = sizeof(moments),       \
             .init = moments_init,          \
             .fold_runs = name##_fold_runs, \
             .fold_rows = name##_fold_rows, \
             .combine = moments_combine,    \
             .finish = name##_finish}
#define LENGTH(in_, out_, name)                     \
    [in_] = {.in = in_,                             \
             .out = out_,                           \
             .size = sizeof(double),                \
             .init = squares_init,                  \
             .fold_runs = name##_squares_fold_runs, \
             .fold_rows = name##_squares_fold_rows, \
             .combine = squares_combine,            \
             .finish = name##_squares_finish}
#define ALL(ROW)                              \
    {                                         \
        ROW(TP_FLOAT32, TP_FLOAT32, f32),     \
        ROW(TP_FLOAT64, TP_FLOAT64, f64),     \
        ROW(TP_COMPLEX64, TP_FLOAT32, c64),   \
        ROW(TP_COMPLEX128, TP_FLOAT64, c128), \
    }

const tp_moments_kernels TP_CAP(tp_moments) = {.variance = ALL(VARIANCE), .length = ALL(LENGTH)};
