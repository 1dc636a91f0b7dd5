/* moments.c: variances and sums of squares, compiled once per capability.
 *
 * A leaf is short enough for the cache, so its mean is found first and the squared distances from it in a second pass;
 * leaves are put together by the count, mean and distances of each (Chan's formula). All of it in double, in lanes
 * whose number does not depend on the vectors' width. A complex number counts as its two parts. */
#include "cpu/kernels.h"
#include "cpu/sums.h"

#include <math.h>
#include <string.h>

#define COLUMNS 512
/* The sums of sums.h, by the dtype of what p points at. */
#define SUM(p, n) _Generic(*(p), float: sum_f32, double: sum_f64)(p, n, 1, 0)
#define SQUARES(p, n, mean) _Generic(*(p), float: squares_f32, double: squares_f64)(p, n, 1, 0, mean)

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

#define OF f32
#define T float
#define PARTS 1
#include "cpu/moments_of.h"

#define OF f64
#define T double
#define PARTS 1
#include "cpu/moments_of.h"

#define OF c64
#define T float
#define PARTS 2
#include "cpu/moments_of.h"

#define OF c128
#define T double
#define PARTS 2
#include "cpu/moments_of.h"

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
