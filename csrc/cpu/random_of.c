/* random_of.c: draws with a parameter for each element on the CPU: gamma, Poisson, binomial; and how a beta draw moves.
 * How each is made is in prim/draw_of.inc. */
#include "PrimitiveKernels.h"
#include "core/generator.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "tensorpy/math.h"
#include "tensorpy/philox.h"

#include <math.h>

#define REAL double
#define UNIFORM tp_uniform_double
#define LGAMMA tp_lgamma_f64
#define DIGAMMA tp_digamma_f64
#define FRACTION_END 4e-16
#include "prim/draw_of.inc"

typedef struct {
    double (*draw)(double a, double b, tries *t);
    const double *a, *b;
    double *out;
    tp_philox_state state;
} draws;

static void run_range(int64_t begin, int64_t end, void *context) {
    const draws *d = context;
    for (int64_t i = begin; i < end; i++) {
        tries t = {.seed = d->state.seed, .offset = d->state.offset, .index = (uint64_t)i};
        d->out[i] = d->draw(d->a[i], d->b[i], &t);
    }
}

/* A rate that is refused gives NaN. */
static void run_rates(int64_t begin, int64_t end, void *context) {
    const draws *d = context;
    run_range(begin, end, context);
    for (int64_t i = begin; i < end; i++)
        if (isnan(d->out[i])) tp_fail(TP_RuntimeError, "invalid Poisson rate, expected rate to be non-negative");
}

#define DRAW_GRAIN 2048 /* a draw costs some ten times what an element of a light operation does */

static int run(draws *d, tp_range_fn range, int64_t seed, int64_t offset, tp_tensor *out) {
    d->out = tp_data(out);
    d->state = (tp_philox_state){(uint64_t)seed, (uint64_t)offset};
    return tp_parallel_unlocked(out->numel > DRAW_GRAIN, out->numel, DRAW_GRAIN, range, d);
}

int draw_gamma_cpu(tp_tensor *alpha, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = gamma_draw, .a = tp_data(alpha), .b = tp_data(alpha)}, run_range, seed, offset, out);
}
int draw_poisson_cpu(tp_tensor *rate, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = poisson_draw, .a = tp_data(rate), .b = tp_data(rate)}, run_rates, seed, offset, out);
}
int draw_binomial_cpu(tp_tensor *count, tp_tensor *chance, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draws){.draw = binomial_draw, .a = tp_data(count), .b = tp_data(chance)}, run_range, seed, offset,
               out);
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
