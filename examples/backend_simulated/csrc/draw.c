/* draw.c: random draws: element i from the words of (seed, offset, i) (tensorpy/philox.h). */
#include "device.h"
#include "tensorpy/philox.h"

#include <math.h>
#include <stdlib.h>

/* What an element is made of. */
typedef struct {
    uint64_t seed, offset;
    double a, b;
    uint64_t range;
    int64_t base;
    tp_dtype dtype;
} draw;

static uint32_t word(const draw *d, int64_t w) {
    uint32_t four[4];
    tp_philox(d->seed, d->offset, (uint64_t)w / 4, four);
    return four[w % 4];
}
static double uniform_53(const draw *d, int64_t i) { return tp_uniform_double(word(d, 2 * i), word(d, 2 * i + 1)); }
static float uniform_24(const draw *d, int64_t i) { return tp_uniform_float(word(d, i)); }

static double uniform(const draw *d, int64_t i) {
    int bits = d->dtype == TP_FLOAT16 ? 11 : d->dtype == TP_BFLOAT16 ? 8 : 24;
    if (d->dtype == TP_FLOAT64) return uniform_53(d, i) * (d->b - d->a) + d->a;
    return (float)(word(d, i) >> (32 - bits)) * ldexpf(1, -bits) * (float)(d->b - d->a) + (float)d->a;
}
static double normal(const draw *d, int64_t i) {
    int64_t pair = i - i % 2;
    if (d->dtype == TP_FLOAT64) {
        double two[2];
        uint32_t w[4] = {word(d, 2 * pair), word(d, 2 * pair + 1), word(d, 2 * pair + 2), word(d, 2 * pair + 3)};
        tp_normal_double(w, two);
        return two[i % 2] * d->b + d->a;
    }
    float two[2];
    tp_normal_float(word(d, pair), word(d, pair + 1), two);
    return two[i % 2] * (float)d->b + (float)d->a;
}
static double exponential(const draw *d, int64_t i) {
    if (d->dtype == TP_FLOAT64) {
        double u = 1 - uniform_53(d, i);
        return (u == 1 ? 0x1p-54 : -log(u)) / d->a;
    }
    float u = 1 - uniform_24(d, i);
    return (u == 1 ? 0x1p-25f : -logf(u)) / (float)d->a;
}
static double cauchy(const draw *d, int64_t i) { return d->a + d->b * tan(M_PI * (uniform_53(d, i) - 0.5)); }
static double geometric(const draw *d, int64_t i) {
    double trials = ceil(log1p(-uniform_53(d, i)) / d->a);
    return trials < 1 ? 1 : trials;
}
static double bernoulli(const draw *d, int64_t i) { return (double)word(d, i) < floor(d->a * 0x1p32); }

static draw draw_of(const argument *a) {
    return (draw){
        .seed = (uint64_t)a[2].i, .offset = (uint64_t)a[3].i, .a = a[0].f, .b = a[1].f, .dtype = a[4].tensors->dtype};
}

/* draw.uniform(float a, float b, int seed, int offset, *, Tensor(a!) out) -> (), and those shaped like it */
static void each(const argument *a, double (*make)(const draw *d, int64_t i)) {
    const view *out = a[4].tensors;
    draw d = draw_of(a);
    for (int64_t i = 0; i < out->numel; i++) put(out, i, converted((number){.f = make(&d, i)}, TP_FLOAT64, out->dtype));
}
static void draw_uniform(const argument *a) { each(a, uniform); }
static void draw_normal(const argument *a) { each(a, normal); }
static void draw_exponential(const argument *a) { each(a, exponential); }
static void draw_cauchy(const argument *a) { each(a, cauchy); }
static void draw_geometric(const argument *a) { each(a, geometric); }
static void draw_bernoulli(const argument *a) { each(a, bernoulli); }

/* draw.integers(int base, int range, int seed, int offset, *, Tensor(a!) out) -> () */
static void draw_integers(const argument *a) {
    const view *out = a[4].tensors;
    draw d = draw_of(a);
    uint64_t range = (uint64_t)a[1].i;
    for (int64_t i = 0; i < out->numel; i++) {
        uint64_t random = tp_random_u64(word(&d, 2 * i), word(&d, 2 * i + 1));
        uint64_t below = range ? (uint64_t)((unsigned __int128)random * range >> 64) : random;
        put(out, i, converted((number){.u = below + (uint64_t)a[0].i}, TP_INT64, out->dtype));
    }
}

/* ---- samples ---- */

typedef struct {
    double time;
    int64_t index;
} arrival;
static int by_time(const void *a, const void *b) {
    double x = ((const arrival *)a)->time, y = ((const arrival *)b)->time;
    return (x > y) - (x < y);
}

/* multinomial(Tensor weights, bool replacement, int seed, int offset, *, Tensor(a!) out) -> () */
static void multinomial(const argument *a) {
    const view *weights = a[0].tensors, *out = a[4].tensors;
    int64_t rows = weights->sizes[0], n = weights->sizes[1], wanted = out->numel / rows;
    draw d = draw_of(a);
    double *sums = malloc((size_t)n * sizeof *sums);
    arrival *order = malloc((size_t)n * sizeof *order);
    for (int64_t r = 0; sums && order && r < rows; r++) {
        double sum = 0;
        int64_t last = 0, first = r * (a[1].b ? wanted : n);
        for (int64_t i = 0; i < n; i++) {
            double p = get(weights, r * n + i).f;
            sums[i] = sum += p;
            if (p > 0) last = i;
            if (!a[1].b) order[i] = (arrival){p > 0 ? -log(1 - uniform_53(&d, first + i)) / p : HUGE_VAL, i};
        }
        if (!a[1].b)
            qsort(order, (size_t)n, sizeof *order, by_time); /* exponential arrivals: the first are the sample */
        for (int64_t k = 0; k < wanted; k++) {
            int64_t chosen = 0;
            double u = a[1].b ? uniform_53(&d, first + k) * sum : 0;
            while (a[1].b && chosen < last && sums[chosen] <= u) chosen++;
            put(out, r * wanted + k, (number){.i = a[1].b ? chosen : order[k].index});
        }
    }
    free(sums);
    free(order);
}

PRIMITIVES({"draw.uniform", draw_uniform}, {"draw.normal", draw_normal}, {"draw.exponential", draw_exponential},
           {"draw.cauchy", draw_cauchy}, {"draw.geometric", draw_geometric}, {"draw.bernoulli", draw_bernoulli},
           {"draw.integers", draw_integers}, {"multinomial", multinomial})
