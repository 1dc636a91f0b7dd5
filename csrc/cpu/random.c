/* random.c: random draws and samples on the CPU: threads share the blocks of a draw; the loops are in random_loops.c.
 */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/parallel.h"
#include "tensorpy/philox.h"
#include "cpu/kernels.h"
#include "prim/plain.h"
#include "cpu/run.h"
#include "core/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is made of a block of uniform doubles where a kind has no loop of its own; NULL: nothing. */
typedef void (*transform_fn)(double *v, int64_t n, double a, double b);

typedef struct {
    tp_draw draw;
    void (*make)(const tp_draw *d, int64_t first, void *out);
    transform_fn transform;
    double a, b;     /* of the transform */
    tp_loop_fn cast; /* NULL: made in place */
    int64_t made_size, to_size, n;
    char *to;
} draw_run;

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const draw_run *r = context;
    _Alignas(64) char made[TP_DRAW_BLOCK * 8];
    for (int64_t b = begin; b < end; b++) {
        int64_t first = b * TP_DRAW_BLOCK, count = r->n - first < TP_DRAW_BLOCK ? r->n - first : TP_DRAW_BLOCK;
        char *to = r->to + first * r->to_size;
        if (!r->cast && !r->transform && count == TP_DRAW_BLOCK) {
            r->make(&r->draw, first, to);
            continue;
        }
        r->make(&r->draw, first, made);
        if (r->transform) r->transform((double *)made, count, r->a, r->b);
        if (r->cast) r->cast((char *const[]){to, made}, (const int64_t[]){r->to_size, r->made_size}, count, NULL);
        else memcpy(to, made, (size_t)(count * r->to_size));
    }
}

static int run(draw_run *r, tp_draw_kind kind, tp_dtype made, int64_t seed, int64_t offset, tp_tensor *out) {
    tp_dtype dtype = (tp_dtype)out->dtype;
    r->draw.state = (tp_philox_state){(uint64_t)seed, (uint64_t)offset};
    r->draw.bits = dtype == TP_FLOAT16 ? 11 : dtype == TP_BFLOAT16 ? 8 : 24;
    r->make = tp_cpu.random->make[kind];
    r->cast = made == dtype ? NULL : tp_cast_loop(made, dtype);
    r->made_size = tp_itemsize(made);
    r->to_size = tp_itemsize(dtype);
    r->n = out->numel;
    r->to = tp_data(out);
    return tp_parallel_unlocked(r->n > TP_GRAIN, (r->n + TP_DRAW_BLOCK - 1) / TP_DRAW_BLOCK,
                                TP_GRAIN / TP_DRAW_BLOCK / 4, run_blocks, r);
}

/* `single` is the kind for float; the next one serves double. */
static int run_real(tp_draw_kind single, double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    bool wide = out->dtype == TP_FLOAT64;
    draw_run r = {.draw = {.a = a, .b = b}};
    return run(&r, (tp_draw_kind)(single + wide), wide ? TP_FLOAT64 : TP_FLOAT32, seed, offset, out);
}
int draw_uniform_cpu(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_UNIFORM_FLOAT, a, b, seed, offset, out);
}
int draw_normal_cpu(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_NORMAL_FLOAT, a, b, seed, offset, out);
}
int draw_exponential_cpu(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_EXPONENTIAL_FLOAT, a, b, seed, offset, out);
}
int draw_bernoulli_cpu(double a, double b TP_UNUSED, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(&(draw_run){.draw = {.a = a}}, TP_DRAW_BERNOULLI, TP_BOOL, seed, offset, out);
}
int draw_integers_cpu(int64_t base, int64_t range, int64_t seed, int64_t offset, tp_tensor *out) {
    draw_run r = {.draw = {.base = base, .range = (uint64_t)range}};
    return run(&r, TP_DRAW_INTEGERS, TP_INT64, seed, offset, out);
}

/* ---- from uniform doubles ---- */

static void to_cauchy(double *v, int64_t n, double median, double scale) {
    for (int64_t i = 0; i < n; i++) v[i] = median + scale * tan(M_PI * (v[i] - 0.5));
}

/* How many trials a success takes: at least one. 1 - u is in (0, 1]. */
static void to_geometric(double *v, int64_t n, double log_failure, double unused TP_UNUSED) {
    for (int64_t i = 0; i < n; i++) {
        double trials = ceil(log1p(-v[i]) / log_failure);
        v[i] = trials < 1 ? 1 : trials;
    }
}

static int run_transform(transform_fn transform, double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    draw_run r = {.draw = {.a = 0, .b = 1}, .transform = transform, .a = a, .b = b};
    return run(&r, TP_DRAW_UNIFORM_DOUBLE, TP_FLOAT64, seed, offset, out);
}
int draw_cauchy_cpu(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_transform(to_cauchy, a, b, seed, offset, out);
}
int draw_geometric_cpu(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_transform(to_geometric, a, b, seed, offset, out);
}

/* ---- samples of given weights ---- */

/* Number `element` of a draw of doubles, in [0, 1). */
static double uniform_at(tp_philox_state s, uint64_t element) {
    uint32_t w[4];
    tp_philox(s.seed, s.offset, element / 2, w);
    return tp_uniform_double(w[2 * (element % 2)], w[2 * (element % 2) + 1]);
}

#define LOOK_SAMPLES (1 << 16) /* between two looks for signals */

static int sample_with(const double *p, double *sums, int64_t n, int64_t *out, int64_t wanted, tp_philox_state s,
                       uint64_t first) {
    double sum = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++) {
        sums[i] = sum += p[i];
        if (p[i] > 0) last = i;
    }
    for (int64_t k = 0; k < wanted; k++) {
        double u = uniform_at(s, first + (uint64_t)k) * sum;
        int64_t low = 0, high = last;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (sums[middle] > u) high = middle;
            else low = middle + 1;
        }
        out[k] = low;
        if (tp_unlikely(k % LOOK_SAMPLES == LOOK_SAMPLES - 1) && tp_host_look() < 0) return -1;
    }
    return 0;
}

typedef struct {
    double time;
    int64_t index;
} arrival;
static int by_time(const void *a_, const void *b_) {
    const arrival *a = a_, *b = b_;
    return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
                              : (a->index > b->index) - (a->index < b->index);
}
/* Puts x among the first `count` of at most `wanted` arrivals, which are in order. Gives how many there are then. */
static int64_t arrive(arrival *first, int64_t count, int64_t wanted, arrival x) {
    if (count == wanted && !(x.time < first[count - 1].time)) return count;
    int64_t k = count < wanted ? count++ : count - 1;
    for (; k > 0 && x.time < first[k - 1].time; k--) first[k] = first[k - 1];
    first[k] = x;
    return count;
}
/* Exponential arrivals of rate p: the first `wanted` are a sample without replacement (Efraimidis and Spirakis, 2006).
 */
static void sample_without(const double *p, arrival *order, int64_t n, int64_t *out, int64_t wanted, tp_philox_state s,
                           uint64_t first) {
    bool few = wanted <= 8 || wanted < n / 64; /* of whom most come too late to be moved */
    for (int64_t i = 0, count = 0; i < n; i++) {
        arrival x = {p[i] > 0 ? -log(1.0 - uniform_at(s, first + (uint64_t)i)) / p[i] : HUGE_VAL, i};
        if (few) count = arrive(order, count, wanted, x);
        else order[i] = x;
    }
    if (!few) qsort(order, (size_t)n, sizeof *order, by_time);
    for (int64_t k = 0; k < wanted; k++) out[k] = order[k].index;
}

int multinomial_cpu(tp_tensor *weights, bool replacement, int64_t seed, int64_t offset, tp_tensor *out) {
    int64_t nrows = weights->sizes[0], n = weights->sizes[1], wanted = out->numel / nrows, *to = tp_data(out);
    tp_philox_state state = {(uint64_t)seed, (uint64_t)offset};
    tp_autoref *rows = tp_plain(weights, TP_FLOAT64);
    tp_autoref *work = rows ? tp_new_empty(TP_INTS(2 * n), TP_FLOAT64, TP_CPU) : NULL;
    if (!work) return -1;
    const double *p = tp_data(rows);
    for (int64_t r = 0; r < nrows; r++, to += wanted) {
        uint64_t first = (uint64_t)(r * (replacement ? wanted : n));
        if (!replacement) sample_without(p + r * n, tp_data(work), n, to, wanted, state, first);
        else if (sample_with(p + r * n, tp_data(work), n, to, wanted, state, first) < 0) return -1;
    }
    return 0;
}
