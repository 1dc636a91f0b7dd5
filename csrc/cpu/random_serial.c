/* random_serial.c: draws from a serial generator (core/mersenne.h): PyTorch's numbers on the CPU, for the same seed. An
 * element's number depends on those before it, so nothing is shared between threads, and the host lock stays held. */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/mersenne.h"
#include "prim/plain.h"
#include "prim/serial.h"
#include "core/memory.h"

#include <math.h>

#define LOOK 65536 /* elements between two looks for signals */

static tp_mersenne *engine(tp_tensor *state) { return tp_data(state); }

static double normal_of(tp_mersenne *m) {
    if (m->has_normal) {
        const double kept = m->normal_y;
        m->has_normal = 0;
        m->normal_y = 0;
        return kept;
    }
    const double turn = 2 * M_PI * tp_mersenne_double(m), radius = sqrt(-2 * log1p(-tp_mersenne_double(m)));
    m->has_normal = 1;
    m->normal_y = radius * sin(turn);
    return radius * cos(turn);
}

static double draw(tp_mersenne *m, tp_serial_kind kind, double a, double b) {
    switch (kind) {
    case TP_SERIAL_NORMAL: return normal_of(m) * b + a;
    case TP_SERIAL_EXPONENTIAL: return -1 / a * log1p(-tp_mersenne_double(m));
    case TP_SERIAL_CAUCHY: return a + b * tan(M_PI * (tp_mersenne_double(m) - 0.5));
    case TP_SERIAL_LOG_NORMAL: return exp(normal_of(m) * b + a);
    case TP_SERIAL_GEOMETRIC: return ceil(log(tp_mersenne_double(m)) / a);
    case TP_SERIAL_BERNOULLI: return tp_mersenne_double(m) < a;
    default: return tp_mersenne_double(m) * (b - a) + a;
    }
}

/* In [0, 1). */
static float single_of(tp_mersenne *m) { return (float)(tp_mersenne_word(m) & ((1u << 24) - 1)) * 0x1p-24f; }

/* G. E. P. Box, M. E. Muller, "A note on the generation of random normal deviates", 1958: eight pairs at once. */
#define SIXTEEN(name, type, log, sqrt, cos, sin)                                              \
    static void name(type *v, type mean, type deviation) {                                    \
        for (int i = 0; i < 8; i++) {                                                         \
            const type radius = sqrt(-2 * log(1 - v[i])), turn = (type)(2 * M_PI) * v[i + 8]; \
            v[i] = radius * cos(turn) * deviation + mean;                                     \
            v[i + 8] = radius * sin(turn) * deviation + mean;                                 \
        }                                                                                     \
    }
SIXTEEN(sixteen_floats, float, logf, sqrtf, cosf, sinf)
SIXTEEN(sixteen_doubles, double, log, sqrt, cos, sin)

#define FILL_NORMAL(name, type, uniform, sixteen)                                            \
    static int name(tp_mersenne *m, type *v, int64_t n, double a, double b) {                \
        for (int64_t i = 0; i < n; i++) {                                                    \
            v[i] = uniform;                                                                  \
            if (tp_unlikely(i % LOOK == LOOK - 1) && tp_host_look() < 0) return -1;          \
        }                                                                                    \
        for (int64_t i = 0; i + 16 <= n; i += 16) sixteen(v + i, (type)a, (type)b);          \
        for (int64_t i = n - 16; n % 16 && i < n; i++) v[i] = uniform; /* the last, again */ \
        if (n % 16) sixteen(v + n - 16, (type)a, (type)b);                                   \
        return 0;                                                                            \
    }
FILL_NORMAL(fill_floats, float, single_of(m), sixteen_floats)
FILL_NORMAL(fill_doubles, double, tp_mersenne_double(m), sixteen_doubles)

static int fill(tp_mersenne *m, tp_serial_kind kind, double a, double b, tp_tensor *to) {
    const int64_t n = to->numel;
    float *v = tp_data(to);
    double *wide = tp_data(to);
    if (kind == TP_SERIAL_NORMAL_FILL)
        return to->dtype == TP_FLOAT32 ? fill_floats(m, v, n, a, b) : fill_doubles(m, wide, n, a, b);
    for (int64_t i = 0; i < n; i++) {
        if (to->dtype == TP_FLOAT32) v[i] = single_of(m) * ((float)b - (float)a) + (float)a;
        else wide[i] = draw(m, kind, a, b);
        if (tp_unlikely(i % LOOK == LOOK - 1) && tp_host_look() < 0) return -1;
    }
    return 0;
}

int serial_fill_cpu(int64_t kind, double a, double b, tp_tensor *state, tp_tensor *out) {
    bool single = (kind == TP_SERIAL_UNIFORM || kind == TP_SERIAL_NORMAL_FILL) && out->dtype != TP_FLOAT64;
    tp_dtype dtype = single ? TP_FLOAT32 : TP_FLOAT64;
    tp_autoref *made = tp_target(out, dtype);
    if (!made || fill(engine(state), (tp_serial_kind)kind, a, b, made) < 0) return -1;
    return tp_finish(made, out);
}

int serial_integers_cpu(int64_t base, int64_t range, bool two_words, tp_tensor *state, tp_tensor *out) {
    tp_mersenne *m = engine(state);
    const uint64_t n = (uint64_t)range; /* 0: 2**64 */
    tp_autoref *made = tp_target(out, TP_INT64);
    if (!made) return -1;
    int64_t *to = tp_data(made);
    for (int64_t i = 0; i < out->numel; i++) {
        uint64_t x = two_words ? tp_mersenne_two_words(m) : tp_mersenne_word(m);
        to[i] = (int64_t)(n ? (uint64_t)base + x % n : x);
        if (tp_unlikely(i % LOOK == LOOK - 1) && tp_host_look() < 0) return -1;
    }
    return tp_finish(made, out);
}

int serial_permutation_cpu(tp_tensor *state, tp_tensor *out) {
    tp_mersenne *m = engine(state);
    int64_t n = out->numel, *order = tp_data(out);
    const bool wide = n >= (int64_t)(UINT32_MAX / 20);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        int64_t k = i + (int64_t)((wide ? tp_mersenne_two_words(m) : tp_mersenne_word(m)) % (uint64_t)(n - i));
        int64_t x = order[i];
        order[i] = order[k];
        order[k] = x;
        if (tp_unlikely(i % LOOK == LOOK - 1) && tp_host_look() < 0) return -1;
    }
    return 0;
}

/* ---- with a parameter for each element (what they are: prim/draw_of.inc) ---- */

static double gamma_of(tp_mersenne *m, double alpha) {
    double scale = 1;
    if (alpha == 0) return 0;
    if (!(alpha > 0) || isinf(alpha)) return NAN;
    if (alpha < 1) {
        scale = pow(1 - tp_mersenne_double(m), 1 / alpha);
        alpha += 1;
    }
    const double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x, y;
        do {
            x = normal_of(m);
            y = 1 + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - tp_mersenne_double(m), square = x * x;
        if (u < 1 - 0.0331 * square * square || log(u) < 0.5 * square + d * (1 - v + log(v))) return scale * d * v;
    }
}

static double poisson_of(tp_mersenne *m, double rate) {
    if (rate == 0 || isinf(rate)) return rate;
    if (rate < 10) {
        double k = 0, product = 1;
        const double least = exp(-rate);
        for (;; k++)
            if ((product *= tp_mersenne_double(m)) <= least) return k;
    }
    const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, logarithm = log(rate);
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = tp_mersenne_double(m) - 0.5, v = tp_mersenne_double(m), away = 0.5 - fabs(u);
        const double k = floor((2 * a / away + b) * u + rate + 0.43);
        if (away >= 0.07 && v <= quick) return k;
        if (k < 0 || (away < 0.013 && v > away)) continue;
        if (log(v) + log(inverse) - log(a / (away * away) + b) <= k * logarithm - rate - lgamma(k + 1)) return k;
    }
}

int serial_fill_of_cpu(int64_t kind, tp_tensor *a, tp_tensor *state, tp_tensor *out) {
    const double *x = tp_data(a);
    double *to = tp_data(out);
    for (int64_t i = 0; i < out->numel; i++) {
        if (kind == TP_SERIAL_POISSON && !(x[i] >= 0))
            return tp_fail(TP_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
        to[i] = (kind == TP_SERIAL_GAMMA ? gamma_of : poisson_of)(engine(state), x[i]);
        if (tp_unlikely(i % LOOK == LOOK - 1) && tp_host_look() < 0) return -1;
    }
    return 0;
}
