/* softmax_rows.h: softmax, log_softmax and their gradients in one dtype; part of softmax.c, which includes it per dtype
 * with T (the dtype) and OF(name) (name with the dtype's suffix) defined. */

TP_INLINE T OF(largest)(const T *in, int64_t n) {
    T lanes[LANES], best = in[0];
    for (int k = 0; k < LANES; k++) lanes[k] = in[0];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lanes[k] = in[i + k] > lanes[k] ? in[i + k] : lanes[k];
    for (int k = 0; i && k < LANES; k++) best = lanes[k] > best ? lanes[k] : best;
    for (; i < n; i++) best = in[i] > best ? in[i] : best;
    return best;
}

TP_INLINE T OF(sum_of_lanes)(T lanes[LANES]) {
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
    return lanes[0];
}

/* out = exp(in - shift), and the sum of that; `out` may be NULL. */
TP_INLINE T OF(exp_sum)(T *out, const T *in, T shift, int64_t n) {
    T lanes[LANES] = {0}, block[LANES];
    for (int64_t i = 0; i < n && !tp_ends_at(i); i += LANES) {
        int64_t m = n - i < LANES ? n - i : LANES;
        if (m == LANES)
            for (int k = 0; k < LANES; k++) block[k] = in[i + k] - shift;
        else
            for (int k = 0; k < LANES; k++) block[k] = k < m ? in[i + k] - shift : -OF(TP_INF);
        TP_IVDEP for (int k = 0; k < LANES; k++) block[k] = OF(tp_exp)(block[k]);
        for (int k = 0; k < LANES; k++) lanes[k] += block[k];
        for (int64_t k = 0; out && k < m; k++) out[i + k] = block[k];
    }
    return OF(sum_of_lanes)(lanes);
}

static void OF(row)(const T *in, T *out, int64_t n, bool log) {
    T shift = OF(largest)(in, n), sum = OF(exp_sum)(log ? NULL : out, in, shift, n);
    T less = log ? OF(tp_log)(sum) : 0, scale = 1 / sum;
    if (was_interrupted(n)) return;
    for (int64_t first = 0, last; first < n && !tp_ends_at(first); first = last) {
        last = n - first < TP_STRETCH ? n : first + TP_STRETCH;
        if (log)
            for (int64_t i = first; i < last; i++) out[i] = in[i] - shift - less;
        else
            for (int64_t i = first; i < last; i++) out[i] *= scale;
    }
}

/* At most SHORT elements, as one block with -inf after them. */
static void OF(short_row)(const T *in, T *out, int64_t n, bool log) {
    T x[SHORT], fold[SHORT], e[SHORT];
    for (int k = 0; k < SHORT; k++) x[k] = k < n ? in[k] : -OF(TP_INF);
    for (int k = 0; k < SHORT; k++) fold[k] = x[k];
    for (int half = SHORT / 2; half; half /= 2)
        for (int k = 0; k < half; k++) fold[k] = fold[k + half] > fold[k] ? fold[k + half] : fold[k];
    T top = fold[0];
    TP_IVDEP for (int k = 0; k < SHORT; k++) e[k] = OF(tp_exp)(x[k] - top);
    for (int k = 0; k < SHORT; k++) fold[k] = k < n ? e[k] : 0;
    for (int half = SHORT / 2; half; half /= 2)
        for (int k = 0; k < half; k++) fold[k] += fold[k + half];
    T less = log ? OF(tp_log)(fold[0]) : 0, scale = 1 / fold[0];
    if (log)
        for (int64_t k = 0; k < n; k++) out[k] = x[k] - top - less; /* a large top would swallow what is subtracted */
    else
        for (int64_t k = 0; k < n; k++) out[k] = e[k] * scale;
}

/* m <= COLUMNS neighbouring columns, elements `inner` apart. */
static void OF(columns)(const T *in, T *out, int64_t n, int64_t inner, int64_t m, bool log) {
    T top[COLUMNS], sum[COLUMNS];
    for (int64_t k = 0; k < m; k++) top[k] = in[k], sum[k] = 0;
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = 0; k < m; k++) top[k] = in[i * inner + k] > top[k] ? in[i * inner + k] : top[k];
    for (int64_t i = 0; i < n && !tp_ends_at(i); i++) {
        T e[COLUMNS];
        TP_IVDEP for (int64_t k = 0; k < m; k++) e[k] = OF(tp_exp)(in[i * inner + k] - top[k]);
        for (int64_t k = 0; k < m; k++) sum[k] += e[k];
        for (int64_t k = 0; !log && k < m; k++) out[i * inner + k] = e[k];
    }
    if (was_interrupted(n)) return;
    for (int64_t k = 0; k < m; k++) sum[k] = log ? OF(tp_log)(sum[k]) : 1 / sum[k];
    for (int64_t i = 0; i < n; i++)
        if (log)
            for (int64_t k = 0; k < m; k++) out[i * inner + k] = in[i * inner + k] - top[k] - sum[k];
        else
            for (int64_t k = 0; k < m; k++) out[i * inner + k] *= sum[k];
}

static void OF(backward_row)(const T *g, const T *y, T *out, int64_t n, bool log) {
    T lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        if (log)
            for (int k = 0; k < LANES; k++) lanes[k] += g[i + k];
        else
            for (int k = 0; k < LANES; k++) lanes[k] += g[i + k] * y[i + k];
    for (; i < n; i++) lanes[0] += log ? g[i] : g[i] * y[i];
    T sum = OF(sum_of_lanes)(lanes);
    if (log) {
        TP_IVDEP for (i = 0; i < n; i++) out[i] = g[i] - OF(tp_exp)(y[i]) * sum;
    } else {
        for (i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);
    }
}

static void OF(backward_columns)(const T *g, const T *y, T *out, int64_t n, int64_t inner, int64_t m, bool log) {
    T sum[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < m; k++) sum[k] += log ? g[i * inner + k] : g[i * inner + k] * y[i * inner + k];
    for (int64_t i = 0; i < n && !tp_ends_at(i); i++) {
        int64_t at = i * inner;
        if (log) {
            TP_IVDEP for (int64_t k = 0; k < m; k++) out[at + k] = g[at + k] - OF(tp_exp)(y[at + k]) * sum[k];
        } else {
            for (int64_t k = 0; k < m; k++) out[at + k] = y[at + k] * (g[at + k] - sum[k]);
        }
    }
}

static void OF(forward)(const void *in_, void *out_, int64_t n, int64_t inner, int64_t first, int64_t last, bool log) {
    const T *in = in_;
    T *out = out_;
    for (int64_t i = first, m; i < last; i += m) {
        int64_t at = start_of(i, n, inner);
        m = columns_from(i, inner, last);
        if (inner == 1 && n <= SHORT) OF(short_row)(in + at, out + at, n, log);
        else if (inner == 1) OF(row)(in + at, out + at, n, log);
        else OF(columns)(in + at, out + at, n, inner, m, log);
        if (was_interrupted(n)) return;
    }
}

static void OF(backward)(const void *grad_, const void *output_, void *out_, int64_t n, int64_t inner, int64_t first,
                         int64_t last, bool log) {
    const T *grad = grad_, *output = output_;
    T *out = out_;
    for (int64_t i = first, m; i < last; i += m) {
        int64_t at = start_of(i, n, inner);
        m = columns_from(i, inner, last);
        if (inner == 1) OF(backward_row)(grad + at, output + at, out + at, n, log);
        else OF(backward_columns)(grad + at, output + at, out + at, n, inner, m, log);
        if (was_interrupted(n)) return;
    }
}
