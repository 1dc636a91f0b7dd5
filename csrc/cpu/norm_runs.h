/* norm_runs.h: the loops of norm.h in one dtype; part of norm_loops.c, which includes it per dtype with T (the dtype)
 * and OF(name) (name with the dtype's suffix) defined. */

static void OF(elements)(const void *x_, void *y_, int64_t n, double mean, double rstd, const void *weight,
                         const void *bias) {
    const T *x = x_, *w = weight, *b = bias;
    T *restrict y = y_, m = (T)mean, r = (T)rstd;
    if (w && b)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * w[i] + b[i];
    else if (w)
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r * w[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * r + (b ? b[i] : 0);
}

static void OF(run)(const void *x_, void *y_, int64_t n, double mean, double rstd, double weight, double bias) {
    const T *x = x_;
    T *restrict y = y_, m = (T)mean, a = (T)(rstd * weight), b = (T)bias;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - m) * a + b;
}

/* weighted is known where this is called, so that no multiplication by one is left. */
TP_INLINE void OF(add_products)(four *first, four *second, const T *g, const T *x, const T *w, int64_t i, bool weighted,
                                double mean) {
    four v, u;
    OF(load)(&v, g + i);
    if (weighted) {
        OF(load)(&u, w + i);
        v *= u;
    }
    OF(load)(&u, x + i);
    *first += v;
    *second += v * (u - mean);
}
TP_INLINE void OF(products_of)(const T *g, const T *x, const T *w, bool weighted, int64_t n, int64_t runs, int64_t next,
                               double mean, double sums[2]) {
    four first[FOURS] = {0}, second[FOURS] = {0};
    for (int64_t r = 0; r < runs; r++, g += next, x += next) {
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            for (int k = 0; k < FOURS; k++) OF(add_products)(&first[k], &second[k], g, x, w, i + 4 * k, weighted, mean);
        for (; i + 4 <= n; i += 4) OF(add_products)(&first[0], &second[0], g, x, w, i, weighted, mean);
        for (; i < n; i++) {
            double v = weighted ? (double)g[i] * (double)w[i] : (double)g[i];
            sums[0] += v;
            sums[1] += v * ((double)x[i] - mean);
        }
    }
    sums[0] += total(first);
    sums[1] += total(second);
}

static void OF(products)(const void *grad, const void *x, const void *weight, int64_t n, int64_t runs, int64_t next,
                         double mean, double sums[2]) {
    if (weight) OF(products_of)(grad, x, weight, true, n, runs, next, mean, sums);
    else OF(products_of)(grad, x, NULL, false, n, runs, next, mean, sums);
}

static void OF(spread)(const void *grad, const void *x_, const void *weight, void *out_, int64_t n, double mean,
                       double scale, double shift, double slope) {
    const T *g = grad, *x = x_, *w = weight;
    T *restrict out = out_, m = (T)mean, a = (T)scale, b = (T)shift, c = (T)slope;
    if (w)
        for (int64_t i = 0; i < n; i++) out[i] = a * g[i] * w[i] - b - c * (x[i] - m);
    else
        for (int64_t i = 0; i < n; i++) out[i] = a * g[i] - b - c * (x[i] - m);
}

static void OF(accumulate)(const void *grad, const void *x_, int64_t n, double mean, double rstd, void *to_weight,
                           void *to_bias) {
    const T *g = grad, *x = x_;
    T *restrict w = to_weight, *restrict b = to_bias, m = (T)mean, r = (T)rstd;
    for (int64_t i = 0; w && i < n; i++) w[i] += g[i] * ((x[i] - m) * r);
    for (int64_t i = 0; b && i < n; i++) b[i] += g[i];
}

static double OF(get)(const void *x, int64_t i) { return (double)((const T *)x)[i]; }
static void OF(put)(void *x, int64_t i, double value) { ((T *)x)[i] = (T)value; }
