/* random_of.c: draws with a parameter for each element on the CPU: gamma, Poisson, binomial; and how a beta draw moves.
 *
 * Each is made by rejection: try number t of element i takes the words of the Philox block i + t * 2**40, so that the
 * numbers depend on nothing but (seed, offset, i). */
#include "PrimitiveKernels.h"
#include "core/generator.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "tensorpy/math.h"
#include "tensorpy/philox.h"

#include <math.h>

/* The words of the next try of an element. */
typedef struct {
    tp_philox_state state;
    uint64_t index;
    uint32_t w[4];
} tries;

static void next_words(tries *t) {
    tp_philox(t->state.seed, t->state.offset, t->index, t->w);
    t->index += UINT64_C(1) << 40;
}
/* In (0, 1), from one word. */
static double open_unit(uint32_t w) { return ((double)w + 0.5) * 0x1p-32; }

/* ---- gamma ---- */

/* G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000: the cube of a shifted normal draw;
 * below 1 the draw for alpha + 1 times u^(1 / alpha). */
static double gamma_draw(double alpha, double unused TP_UNUSED, tries *t) {
    if (alpha == 0) return 0;
    if (!(alpha > 0) || isinf(alpha)) return NAN;
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        next_words(t);
        double x = sqrt(-2 * log(open_unit(t->w[0]))) * cos(2 * M_PI * open_unit(t->w[1])), v = 1 + c * x;
        if (v <= 0) continue;
        v = v * v * v;
        const double u = open_unit(t->w[2]);
        if (u >= 1 - 0.0331 * x * x * x * x && log(u) >= 0.5 * x * x + d * (1 - v + log(v))) continue;
        return d * v * (alpha < 1 ? pow(open_unit(t->w[3]), 1 / alpha) : 1);
    }
}

/* ---- Poisson ---- */

/* The first k whose distribution function is above a uniform draw. */
static double poisson_by_search(double rate, tries *t) {
    next_words(t);
    double u = tp_uniform_double(t->w[0], t->w[1]), share = exp(-rate), k = 0;
    while (u >= share && share > 0) {
        u -= share;
        share *= rate / ++k;
    }
    return k;
}

/* W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993: PTRS. */
static double poisson_by_rejection(double rate, tries *t) {
    const double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, logarithm = log(rate);
    const double inverse = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        next_words(t);
        const double u = tp_uniform_double(t->w[0], t->w[1]) - 0.5, v = 1 - tp_uniform_double(t->w[2], t->w[3]);
        const double away = 0.5 - fabs(u), k = floor((2 * a / away + b) * u + rate + 0.43);
        if (away >= 0.07 && v <= quick) return k;
        if (k < 0 || (away < 0.013 && v > away)) continue;
        if (log(v * inverse / (a / (away * away) + b)) <= k * logarithm - rate - tp_lgamma_f64(k + 1)) return k;
    }
}

static double poisson_draw(double rate, double unused TP_UNUSED, tries *t) {
    if (!(rate >= 0)) {
        tp_fail(TP_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
        return NAN;
    }
    if (isinf(rate)) return rate;
    return rate < 10 ? poisson_by_search(rate, t) : poisson_by_rejection(rate, t);
}

/* ---- binomial ---- */

/* As poisson_by_search; p is at most 1/2 and n p below 10. */
static double binomial_by_search(double n, double p, tries *t) {
    next_words(t);
    const double odds = p / (1 - p);
    double u = tp_uniform_double(t->w[0], t->w[1]), share = exp(n * log1p(-p)), k = 0;
    while (u >= share && share > 0 && k < n) {
        u -= share;
        k++;
        share *= (n - k + 1) / k * odds;
    }
    return k;
}

/* W. Hoermann, "The generation of binomial random variates", 1993: BTRS. */
static double binomial_by_rejection(double n, double p, tries *t) {
    const double spread = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double middle = n * p + 0.5, quick = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * spread;
    const double odds = log(p / (1 - p)), mode = floor((n + 1) * p);
    const double most = tp_lgamma_f64(mode + 1) + tp_lgamma_f64(n - mode + 1);
    for (;;) {
        next_words(t);
        const double u = tp_uniform_double(t->w[0], t->w[1]) - 0.5, v = 1 - tp_uniform_double(t->w[2], t->w[3]);
        const double away = 0.5 - fabs(u), k = floor((2 * a / away + b) * u + middle);
        if (away >= 0.07 && v <= quick) return k;
        if (k < 0 || k > n) continue;
        const double density = most - tp_lgamma_f64(k + 1) - tp_lgamma_f64(n - k + 1) + (k - mode) * odds;
        if (log(v * alpha / (a / (away * away) + b)) <= density) return k;
    }
}

static double binomial_draw(double n, double p, tries *t) {
    if (isnan(n) || isnan(p) || isinf(n)) return NAN;
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1) return n;
    n = floor(n);
    const double rarer = p > 0.5 ? 1 - p : p;
    const double k = n * rarer < 10 ? binomial_by_search(n, rarer, t) : binomial_by_rejection(n, rarer, t);
    return p > 0.5 ? n - k : k;
}

/* ---- over all elements ---- */

typedef struct {
    double (*draw)(double a, double b, tries *t);
    const double *a, *b;
    double *out;
    tp_philox_state state;
} draws;

static void run_range(int64_t begin, int64_t end, void *context) {
    const draws *d = context;
    for (int64_t i = begin; i < end; i++) {
        tries t = {.state = d->state, .index = (uint64_t)i};
        d->out[i] = d->draw(d->a[i], d->b[i], &t);
    }
}

#define DRAW_GRAIN 2048 /* a draw costs some ten times what an element of a light operation does */

static int run(draws *d, int64_t seed, int64_t offset, tp_tensor *out) {
    d->out = tp_data(out);
    d->state = (tp_philox_state){(uint64_t)seed, (uint64_t)offset};
    return tp_parallel_unlocked(out->numel > DRAW_GRAIN, out->numel, DRAW_GRAIN, run_range, d);
}

int draw_gamma_cpu(tp_tensor *alpha, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = gamma_draw, .a = tp_data(alpha), .b = tp_data(alpha)}, seed, offset, out);
}
int draw_poisson_cpu(tp_tensor *rate, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = poisson_draw, .a = tp_data(rate), .b = tp_data(rate)}, seed, offset, out);
}
int draw_binomial_cpu(tp_tensor *count, tp_tensor *chance, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = binomial_draw, .a = tp_data(count), .b = tp_data(chance)}, seed, offset, out);
}

/* ---- the slope of beta draws ---- */

#define FRACTION_STEPS 20000

/* The continued fraction of the incomplete beta function I_x(a, b) (DLMF 8.17.22) for x below (a + 1) / (a + b + 2),
 * and its derivative by a where `first`, else by b: W. J. Lentz's method. */
static double beta_fraction(double a, double b, double x, bool first, double *slope) {
    const double da = first, db = !first;
    double c_inverse = 0, dc_inverse = 0, d = 1, dd = 0, h = 1, dh = 0;
    for (int m = 0; m < FRACTION_STEPS; m++) {
        for (int odd = 0; odd < 2; odd++) {
            if (m == 0 && !odd) continue; /* the first part is 1 */
            const double low = a + 2 * m - !odd, high = a + 2 * m + odd;
            /* above / ((a + 2m)(a + 2m +- 1)) */
            const double above = odd ? -(a + m) * (a + b + m) * x : m * (b - m) * x;
            const double by = odd ? -x * (da * (a + b + m) + (a + m) * (da + db)) : m * db * x;
            const double below = low * high, part = above / below;
            const double dpart = (by - part * da * (low + high)) / below;
            const double c = 1 + part * c_inverse, dc = dpart * c_inverse + part * dc_inverse;
            const double e = 1 + part * d, de = dpart * d + part * dd;
            d = 1 / e, dd = -de * d * d;
            c_inverse = 1 / c, dc_inverse = -dc * c_inverse * c_inverse;
            const double step = c * d, dstep = dc * d + c * dd;
            dh = dh * step + h * dstep;
            h *= step;
            if (odd && m && fabs(step - 1) < 4e-16 && fabs(h * dstep) <= 4e-16 * fabs(dh)) return *slope = dh, h;
        }
    }
    *slope = dh;
    return h;
}

/* -(dI/da) / (dI/dx) / (1 - x) for I = I_x(a, b) = x^a (1 - x)^b / (a B(a, b)) times the fraction, or one minus that of
 * the other side. */
static double beta_slope(double x, double a, double b) {
    double by;
    if (!(a > 0) || !(b > 0) || isnan(x)) return NAN;
    if (x <= 0) return 0;
    if (x > 1) x = 1;
    if (x < (a + 1) / (a + b + 2)) {
        const double h = beta_fraction(a, b, x, true, &by);
        return -(x / a) * (h * (log(x) - tp_digamma_f64(a + 1) + tp_digamma_f64(a + b)) + by);
    }
    const double h = beta_fraction(b, a, 1 - x, false, &by);
    return x / b * (h * (log(x) - tp_digamma_f64(a) + tp_digamma_f64(a + b)) + by);
}

typedef struct {
    const double *x, *alpha, *total;
    double *out;
} slopes;

static void run_slopes(int64_t begin, int64_t end, void *context) {
    const slopes *s = context;
    for (int64_t i = begin; i < end; i++) s->out[i] = beta_slope(s->x[i], s->alpha[i], s->total[i] - s->alpha[i]);
}
int beta_slope_cpu(tp_tensor *x, tp_tensor *alpha, tp_tensor *total, tp_tensor *out) {
    slopes s = {tp_data(x), tp_data(alpha), tp_data(total), tp_data(out)};
    return tp_parallel_for(out->numel, DRAW_GRAIN / 4, run_slopes, &s);
}
