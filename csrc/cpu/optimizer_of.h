/* optimizer_of.h: the loops of one dtype, T; included once for each by optimizer_loops.c. What is there and what is not
 * is a constant in each loop. */

/* The gradient as the rule takes it; it is kept where it was scaled. */
TP_INLINE T OF(gradient)(T *g, T param, T scale, T sign, T decay, bool scaled, bool decays) {
    T grad = *g;
    if (scaled) *g = grad *= scale;
    grad *= sign;
    return decays ? grad + decay * param : grad;
}

TP_INLINE void OF(adam_of)(T *restrict p, T *restrict g, T *restrict m, T *restrict v, T *restrict top, int64_t n,
                           const tp_step_numbers *c, bool scaled, bool decays, bool largest) {
    const T scale = (T)c->scale, sign = (T)c->sign, shrink = (T)c->shrink, decay = (T)c->decay, size = (T)c->size;
    const T first = (T)c->first, beta = (T)c->beta, second = (T)c->second, correction = (T)c->correction;
    const T eps = (T)c->eps;
    for (int64_t i = 0; i < n; i++) {
        T param = p[i] * shrink;
        T grad = OF(gradient)(g + i, param, scale, sign, decay, scaled, decays);
        T mean = m[i] + first * (grad - m[i]);
        T square = beta * v[i] + second * grad * grad;
        m[i] = mean, v[i] = square;
        if (largest) top[i] = square = square > top[i] || square != square ? square : top[i];
        p[i] = param - size * mean / (ROOT(square) * correction + eps);
    }
}

TP_INLINE void OF(sgd_of)(T *restrict p, T *restrict g, T *restrict m, int64_t n, const tp_step_numbers *c, bool scaled,
                          bool moves) {
    const T scale = (T)c->scale, sign = (T)c->sign, decay = (T)c->decay, size = (T)c->size;
    const T momentum = (T)c->beta, share = (T)c->first;
    const bool decays = c->decay != 0, nesterov = c->nesterov, starts = c->starts;
    for (int64_t i = 0; i < n; i++) {
        T grad = OF(gradient)(g + i, p[i], scale, sign, decay, scaled, decays);
        if (moves) {
            T velocity = starts ? grad : momentum * m[i] + share * grad;
            m[i] = velocity;
            grad = nesterov ? grad + momentum * velocity : velocity;
        }
        p[i] -= size * grad;
    }
}

TP_INLINE void OF(adagrad_of)(T *restrict p, T *restrict g, T *restrict sums, int64_t n, const tp_step_numbers *c,
                              bool scaled) {
    const T scale = (T)c->scale, sign = (T)c->sign, decay = (T)c->decay, size = (T)c->size, eps = (T)c->eps;
    const bool decays = c->decay != 0;
    for (int64_t i = 0; i < n; i++) {
        T grad = OF(gradient)(g + i, p[i], scale, sign, decay, scaled, decays);
        T sum = sums[i] + grad * grad;
        sums[i] = sum;
        p[i] -= size * grad / (ROOT(sum) + eps);
    }
}

static void OF(adam)(void *const *d, int64_t n, const tp_step_numbers *c) {
    bool scaled = c->scale != 1, decays = c->decay != 0, largest = d[4] != NULL;
    if (!scaled && !decays && !largest) OF(adam_of)(d[0], d[1], d[2], d[3], NULL, n, c, false, false, false);
    else if (!scaled && !largest) OF(adam_of)(d[0], d[1], d[2], d[3], NULL, n, c, false, true, false);
    else if (!largest) OF(adam_of)(d[0], d[1], d[2], d[3], NULL, n, c, true, true, false);
    else OF(adam_of)(d[0], d[1], d[2], d[3], d[4], n, c, true, true, true);
}

static void OF(sgd)(void *const *d, int64_t n, const tp_step_numbers *c) {
    if (c->scale != 1) OF(sgd_of)(d[0], d[1], d[2], n, c, true, d[2] != NULL);
    else if (d[2]) OF(sgd_of)(d[0], d[1], d[2], n, c, false, true);
    else OF(sgd_of)(d[0], d[1], NULL, n, c, false, false);
}

static void OF(adagrad)(void *const *d, int64_t n, const tp_step_numbers *c) {
    OF(adagrad_of)(d[0], d[1], d[2], n, c, c->scale != 1);
}
