/* optimizer_of.h: the loops of one dtype, T; included once for each by optimizer_loops.c. `largest` and `nesterov` are
 * constants in each loop. */

static void OF(scale)(T *g, int64_t n, T scale) {
    for (int64_t i = 0; i < n; i++) g[i] *= scale;
}

TP_INLINE void OF(adam_of)(T *restrict p, const T *restrict g, T *restrict m, T *restrict v, T *restrict top, int64_t n,
                           const tp_step_numbers *c, bool largest) {
    const T sign = (T)c->sign, shrink = (T)c->shrink, decay = (T)c->decay, size = (T)c->size;
    const T first = (T)c->first, beta = (T)c->beta, second = (T)c->second, correction = (T)c->correction;
    const T eps = (T)c->eps;
    int64_t i = 0;
#ifdef ADAM_VECTORS
    i = ADAM_VECTORS(p, g, m, v, top, n, c, largest);
#endif
    for (; i < n; i++) {
        T param = p[i] * shrink, grad = sign * g[i] + decay * param;
        T mean = m[i] + first * (grad - m[i]);
        T square = beta * v[i] + second * grad * grad;
        m[i] = mean, v[i] = square;
        if (largest) top[i] = square = square > top[i] || square != square ? square : top[i];
        p[i] = param - size * mean / (ROOT(square) * correction + eps);
    }
}

static void OF(descend)(T *restrict p, const T *restrict g, int64_t n, const tp_step_numbers *c) {
    const T sign = (T)c->sign, decay = (T)c->decay, size = (T)c->size;
    for (int64_t i = 0; i < n; i++) p[i] -= size * (sign * g[i] + decay * p[i]);
}

TP_INLINE void OF(sgd_of)(T *restrict p, const T *restrict g, T *restrict m, int64_t n, const tp_step_numbers *c,
                          bool nesterov) {
    const T sign = (T)c->sign, decay = (T)c->decay, size = (T)c->size, momentum = (T)c->beta, share = (T)c->first;
    for (int64_t i = 0; i < n; i++) {
        T grad = sign * g[i] + decay * p[i], velocity = momentum * m[i] + share * grad;
        m[i] = velocity;
        p[i] -= size * (nesterov ? grad + momentum * velocity : velocity);
    }
}

static void OF(adam)(void *const *d, int64_t n, const tp_step_numbers *c) {
    if (c->scale != 1) OF(scale)(d[1], n, (T)c->scale);
    if (d[4]) OF(adam_of)(d[0], d[1], d[2], d[3], d[4], n, c, true);
    else OF(adam_of)(d[0], d[1], d[2], d[3], NULL, n, c, false);
}

static void OF(sgd)(void *const *d, int64_t n, const tp_step_numbers *c) {
    if (c->scale != 1) OF(scale)(d[1], n, (T)c->scale);
    if (d[2] && c->starts) memset(d[2], 0, (size_t)n * sizeof(T)); /* what was there is no momentum */
    if (!d[2]) OF(descend)(d[0], d[1], n, c);
    else if (c->nesterov) OF(sgd_of)(d[0], d[1], d[2], n, c, true);
    else OF(sgd_of)(d[0], d[1], d[2], n, c, false);
}

static void OF(adagrad)(void *const *d, int64_t n, const tp_step_numbers *c) {
    const T sign = (T)c->sign, decay = (T)c->decay, size = (T)c->size, eps = (T)c->eps;
    T *restrict p = d[0], *restrict sums = d[2];
    const T *restrict g = d[1];
    if (c->scale != 1) OF(scale)(d[1], n, (T)c->scale);
    for (int64_t i = 0; i < n; i++) {
        T grad = sign * g[i] + decay * p[i], sum = sums[i] + grad * grad;
        sums[i] = sum;
        p[i] -= size * grad / (ROOT(sum) + eps);
    }
}
