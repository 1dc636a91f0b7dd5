/* random.cl: random draws: element i of a draw from (seed, offset, i), as tensorpy/philox.h lays the words out, and by the
 * same steps as cpu/random_loops.c.
 *
 * Defined in front: OUT_* (element.h), MADE (the type a draw is made in), DRAW_<kind>, WORDS (words for each element),
 * BLOCKS. Each work-item makes the four words of BLOCKS Philox blocks and the elements that they serve: one on a GPU, on
 * a CPU device enough of them for loops over vectors. */
#include "tensorpy/math.h"

typedef struct {
    ulong seed, offset, range;
    long base;
    WIDEST a, b;
    int bits, unused; /* whole words: drivers differ in whether padding at the end counts (launch.h) */
} draw;

/* Ten rounds, on numbers or on vectors of them. */
#define PHILOX(W, L, convert_W, convert_L)                                                        \
    for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {                          \
        const L p0 = convert_L(c0) * 0xD2511F53u, p1 = convert_L(c2) * 0xCD9E8D57u;               \
        c0 = convert_W(p1 >> 32) ^ c1 ^ k0, c1 = convert_W(p1);                                   \
        c2 = convert_W(p0 >> 32) ^ c3 ^ k1, c3 = convert_W(p0);                                   \
    }

static inline void words_of(const draw *d, ulong index, uint *out) {
    uint k0 = (uint)d->seed, k1 = (uint)(d->seed >> 32), c0 = (uint)index, c1 = (uint)(index >> 32);
    uint c2 = (uint)d->offset, c3 = (uint)(d->offset >> 32);
    PHILOX(uint, ulong, (uint), (ulong))
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#ifdef TP_CPU_DEVICE
/* The words of eight blocks. */
static inline void words_of_eight(const draw *d, ulong index, uint *out) {
    const ulong8 i = index + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
    uint k0 = (uint)d->seed, k1 = (uint)(d->seed >> 32);
    uint8 c0 = convert_uint8(i), c1 = convert_uint8(i >> 32), c2 = (uint)d->offset, c3 = (uint)(d->offset >> 32);
    PHILOX(uint8, ulong8, convert_uint8, convert_ulong8)
    uint w[4][8];
    vstore8(c0, 0, w[0]), vstore8(c1, 0, w[1]), vstore8(c2, 0, w[2]), vstore8(c3, 0, w[3]);
    for (int j = 0; j < 8; j++)
        for (int k = 0; k < 4; k++) out[4 * j + k] = w[k][j];
}
#endif

static inline float unit_float(uint w) { return (float)(w >> 8) * 0x1p-24f; }
#ifdef TP_HAVE_F64
static inline double unit_double(uint low, uint high) { return (double)(((ulong)high << 32 | low) >> 11) * 0x1p-53; }
#define CIRCLE_HALF M_PI
#define unit_widest unit_double
#else
#define CIRCLE_HALF M_PI_F
static inline float unit_widest(uint low, uint high) { return unit_float(high); }
#endif

#ifndef SAMPLES
/* Sine and cosine of 2 pi u: a whole number of quarters, and a rest for the series around 0. */
static inline void turn_float(float u, float *sine, float *cosine) {
    float quarter = (float)(int)(4.0f * u + 0.5f), r = 4.0f * u - quarter, r2 = r * r;
    float s = fma(0x1.507834p-13f, r2, -0x1.32d2ccp-8f), c = fma(-0x1.a6d1f2p-16f, r2, 0x1.e1f506p-11f);
    s = fma(s, r2, 0x1.466bc6p-4f);
    s = fma(s, r2, -0x1.4abbcep-1f);
    s = fma(s, r2, 0x1.921fb6p+0f) * r;
    c = fma(c, r2, -0x1.55d3c8p-6f);
    c = fma(c, r2, 0x1.03c1f0p-2f);
    c = fma(c, r2, -0x1.3bd3ccp+0f);
    c = fma(c, r2, 1.0f);
    int q = (int)quarter;
    float at_sine = q & 1 ? c : s, at_cosine = q & 1 ? s : c;
    *sine = q & 2 ? -at_sine : at_sine;
    *cosine = (q + 1) & 2 ? -at_cosine : at_cosine;
}

static inline long integer_of(const draw *d, uint w0, uint w1) {
    if (d->range == 0) return (long)(((ulong)w1 << 32 | w0) + (ulong)d->base);
    if (d->range <= 0xffffffffu) {
        ulong low = (ulong)w0 * (uint)d->range >> 32;
        return (long)((((ulong)w1 * (uint)d->range + low) >> 32) + (ulong)d->base);
    }
    return (long)(mul_hi((ulong)w1 << 32 | w0, d->range) + (ulong)d->base);
}

#define MOST (4 / WORDS * BLOCKS)
/* The elements of the words. */
static inline void make(const draw *d, const uint *w, MADE *out) {
#if defined(DRAW_UNIFORM_FLOAT)
    float unit = ldexp(1.0f, -d->bits), a = (float)d->a, span = (float)(d->b - d->a);
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) out[i] = (float)(w[i] >> (32 - d->bits)) * unit * span + a;
#elif defined(DRAW_UNIFORM_DOUBLE)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) out[i] = unit_double(w[2 * i], w[2 * i + 1]) * (d->b - d->a) + d->a;
#elif defined(DRAW_NORMAL_FLOAT)
    OVER_VECTORS
    for (int j = 0; j < MOST / 2; j++) {
        float radius = sqrt(-2.0f * tp_log_f32(1.0f - unit_float(w[2 * j]))), sine, cosine;
        turn_float(unit_float(w[2 * j + 1]), &sine, &cosine);
        out[2 * j] = fma(radius * cosine, (float)d->b, (float)d->a);
        out[2 * j + 1] = fma(radius * sine, (float)d->b, (float)d->a);
    }
#elif defined(DRAW_NORMAL_DOUBLE)
    for (int j = 0; j < MOST; j += 2, w += 4) {
        double radius = sqrt(-2.0 * log(1.0 - unit_double(w[0], w[1]))), angle = 2.0 * unit_double(w[2], w[3]);
        out[j] = radius * cospi(angle) * d->b + d->a;
        out[j + 1] = radius * sinpi(angle) * d->b + d->a;
    }
#elif defined(DRAW_EXPONENTIAL_FLOAT)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) {
        float u = 1.0f - unit_float(w[i]);
        out[i] = (u == 1.0f ? 0x1p-25f : -tp_log_f32(u)) / (float)d->a;
    }
#elif defined(DRAW_EXPONENTIAL_DOUBLE)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) {
        double u = 1.0 - unit_double(w[2 * i], w[2 * i + 1]);
        out[i] = (u == 1.0 ? 0x1p-54 : -log(u)) / d->a;
    }
#elif defined(DRAW_INTEGERS)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) out[i] = integer_of(d, w[2 * i], w[2 * i + 1]);
#elif defined(DRAW_CAUCHY)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) out[i] = d->a + d->b * tan(CIRCLE_HALF * (unit_widest(w[2 * i], w[2 * i + 1]) - (WIDEST)0.5));
#elif defined(DRAW_GEOMETRIC)
    OVER_VECTORS
    for (int i = 0; i < MOST; i++)
        out[i] = max(ceil(log1p(-unit_widest(w[2 * i], w[2 * i + 1])) / d->a), (WIDEST)1);
#else /* DRAW_BERNOULLI: below range of 2**32 */
    OVER_VECTORS
    for (int i = 0; i < MOST; i++) out[i] = (ulong)w[i] < d->range;
#endif
}

__kernel void random(draw d, __global OUT_S *out, long offset, long n) {
    const long block = (long)get_global_id(0) * BLOCKS, first = block * (4 / WORDS);
    if (first >= n) return;
    const int count = (int)min(n - first, (long)MOST);
    uint w[4 * BLOCKS];
    MADE made[MOST];
#ifdef TP_CPU_DEVICE
    for (int j = 0; j < BLOCKS; j += 8) words_of_eight(&d, (ulong)(block + j), w + 4 * j);
#else
    words_of(&d, (ulong)block, w);
#endif
    make(&d, w, made);
    out += offset + first;
    OVER_VECTORS
    for (int i = 0; i < count; i++) out[i] = OUT_STORE(made[i]);
}
#endif

/* ---- samples of given weights (native/random/random_new.c) ---- */

#ifdef SAMPLES
/* Number `element` of a draw of reals, in [0, 1). */
static inline WIDEST unit_at(const draw *d, ulong element) {
    uint w[4];
    words_of(d, element / 2, w);
    return element % 2 ? unit_widest(w[2], w[3]) : unit_widest(w[0], w[1]);
}

/* The sums of a row one after the other, as the CPU has them. */
__kernel void sum_weights(draw d, __global const W_S *weights, long weights_offset, __global WIDEST *sums,
                          long sums_offset, __global long *last, long last_offset, long rows, long n) {
    long row = get_global_id(0), at = 0;
    if (row >= rows) return;
    weights += weights_offset + row * n;
    sums += sums_offset + row * n;
    WIDEST sum = 0;
    for (long i = 0; i < n; i++) {
        WIDEST p = (WIDEST)W_LOAD(weights[i]);
        sum += p;
        sums[i] = sum;
        if (p > 0) at = i;
    }
    last[last_offset + row] = at;
}

__kernel void sample(draw d, __global const WIDEST *sums, long sums_offset, __global const long *last, long last_offset,
                     __global long *out, long out_offset, long rows, long n, long wanted) {
    long id = get_global_id(0), row = id / wanted;
    if (row >= rows) return;
    sums += sums_offset + row * n;
    WIDEST u = unit_at(&d, (ulong)id) * sums[n - 1];
    long low = 0, high = last[last_offset + row];
    while (low < high) {
        long middle = (low + high) / 2;
        if (sums[middle] > u) high = middle;
        else low = middle + 1;
    }
    out[out_offset + id] = low;
}

__kernel void arrivals(draw d, __global const W_S *weights, long weights_offset, __global WIDEST *times,
                       long times_offset, long n) {
    long i = get_global_id(0);
    if (i >= n) return;
    WIDEST p = (WIDEST)W_LOAD(weights[weights_offset + i]);
    times[times_offset + i] = p > 0 ? -log(1 - unit_at(&d, (ulong)i)) / p : (WIDEST)INFINITY;
}
#endif
