/* softmax_rows.h: softmax, log_softmax and their gradients in one dtype; part of softmax.c, which includes it per dtype
 * with T (the dtype) and OF(name) (name with the dtype's suffix) defined. */

/* The first `width` lanes, 32 or 64, are joined with the half behind them, until one is left. */
#define FOLD(width, half)          \
    if ((width) > 32) half(x, 32); \
    half(x, 16);                   \
    half(x, 8);                    \
    half(x, 4);                    \
    half(x, 2);                    \
    half(x, 1);                    \
    return x[0]
TP_INLINE void OF(add_half)(T *x, const int half) { VECTORISED for (int k = 0; k < half; k++) x[k] += x[k + half]; }
TP_INLINE void OF(top_half)(T *x, const int half) {
    VECTORISED for (int k = 0; k < half; k++) x[k] = x[k + half] > x[k] ? x[k + half] : x[k];
}
TP_INLINE T OF(sum_of_lanes)(T *x, const int width) { FOLD(width, OF(add_half)); }
TP_INLINE T OF(top_of_lanes)(T *x, const int width) { FOLD(width, OF(top_half)); }
#undef FOLD

/* The first m <= width elements, with `rest` after them. */
TP_INLINE void OF(take_some)(T *to, const T *in, int m, const int width, T rest) {
    VECTORISED for (int k = 0; k < width; k++) to[k] = k < m ? in[k] : rest;
}

/* More than LANES elements. */
TP_INLINE T OF(largest)(const T *in, int64_t n) {
    T lanes[LANES], block[LANES];
    memcpy(lanes, in, sizeof lanes);
    int64_t i = LANES;
    for (; i + LANES <= n; i += LANES)
        VECTORISED for (int k = 0; k < LANES; k++) lanes[k] = in[i + k] > lanes[k] ? in[i + k] : lanes[k];
    OF(take_some)(block, in + i, (int)(n - i), LANES, in[0]);
    VECTORISED for (int k = 0; k < LANES; k++) lanes[k] = block[k] > lanes[k] ? block[k] : lanes[k];
    return OF(top_of_lanes)(lanes, LANES);
}

/* out = exp(in - shift), and the sum of that; `out` may be NULL. */
TP_INLINE T OF(exp_sum)(T *out, const T *in, T shift, int64_t n) {
    T lanes[LANES] = {0}, block[LANES];
    TP_ABREAST_LANES_BEGIN
    int64_t i = 0;
    for (; i + LANES <= n && !tp_ends_at(i); i += LANES) {
        VECTORISED TP_IVDEP for (int k = 0; k < LANES; k++) {
            if (sizeof(T) == 4) TP_ABREAST_LANE(in + i, k); /* Note [Vectors abreast] */
            block[k] = OF(tp_exp)(in[i + k] - shift);
        }
        VECTORISED for (int k = 0; k < LANES; k++) lanes[k] += block[k];
        if (out) memcpy(out + i, block, sizeof block);
    }
    TP_ABREAST_LANES_END
    if (i < n && n - i < LANES) {
        const int m = (int)(n - i);
        OF(take_some)(block, in + i, m, LANES, shift); /* an exp that is no normal number takes long */
        VECTORISED TP_IVDEP for (int k = 0; k < LANES; k++) block[k] = OF(tp_exp)(block[k] - shift);
        VECTORISED for (int k = 0; k < LANES; k++) lanes[k] += k < m ? block[k] : 0;
        if (out) memcpy(out + i, block, (size_t)m * sizeof *block);
    }
    return OF(sum_of_lanes)(lanes, LANES);
}

/* At most `width` elements, as one block, e: exp(in - *top), and the sum of that, in the order of longer rows. */
TP_INLINE T OF(short_sum)(const T *in, int n, T *e, T *top, const int width) {
    T x[2 * LANES], fold[2 * LANES];
    OF(take_some)(x, in, n, width, -OF(TP_INF));
    memcpy(fold, x, (size_t)width * sizeof *x);
    *top = OF(top_of_lanes)(fold, width);
    OF(take_some)(e, x, n, width, *top); /* an exp that is no normal number takes long */
    VECTORISED TP_IVDEP for (int k = 0; k < width; k++) e[k] = OF(tp_exp)(e[k] - *top);
    OF(take_some)(fold, e, n, width, 0);
    return OF(sum_of_lanes)(fold, width);
}

TP_INLINE void OF(short_row)(const T *in, T *out, int n, const int width) {
    T e[2 * LANES], top, scale = 1 / OF(short_sum)(in, n, e, &top, width);
    VECTORISED for (int k = 0; k < width; k++) e[k] *= scale;
    memcpy(out, e, (size_t)n * sizeof *e);
}

/* x[0] becomes the fold of x[0] to x[n - 1] in the order of sum_of_lanes, for TURNED rows at once. */
#define FOLD_TURNED(join)                                           \
    for (int half = n > LANES ? LANES : LANES / 2; half; half /= 2) \
        for (int k = 0; k < half && k + half < n; k++)              \
            VECTORISED for (int r = 0; r < TURNED; r++) x[k][r] = join(x[k][r], x[k + half][r]);
#define SUM(a, b) ((a) + (b))
#define TOP(a, b) ((b) > (a) ? (b) : (a))
TP_INLINE void OF(fold_sums)(T (*x)[TURNED], int n){FOLD_TURNED(SUM)} TP_INLINE
    void OF(fold_tops)(T (*x)[TURNED], int n){FOLD_TURNED(TOP)}
#undef FOLD_TURNED
#undef SUM
#undef TOP

/* m <= TURNED neighbouring rows of n <= 2 * LANES elements, turned: elements of all rows lie side by side, where a row
 * of ten alone is all waiting. Lanes that are left over hold the last row. The bits are those of one row at a time. */
TP_INLINE void OF(turn)(T (*x)[TURNED], const T *in, int n, int m) {
    for (int r = 0; r < TURNED; r++) VECTORISED for (int k = 0; k < n; k++) x[k][r] = in[(r < m ? r : m - 1) * n + k];
}

static void OF(turned_rows)(const T *in, T *out, int n, int m, bool log) {
    T x[2 * LANES][TURNED], fold[2 * LANES][TURNED], top[TURNED];
    TP_ABREAST_LANES_BEGIN
    OF(turn)(x, in, n, m);
    memcpy(fold, x, (size_t)n * sizeof *x);
    OF(fold_tops)(fold, n);
    memcpy(top, fold, sizeof top);
    for (int k = 0; k < n; k++) VECTORISED TP_IVDEP for (int r = 0; r < TURNED; r++) {
            if (sizeof(T) == 4) TP_ABREAST_LANE(x[k], r); /* Note [Vectors abreast] */
            x[k][r] = OF(tp_exp)(x[k][r] - top[r]);
        }
    TP_ABREAST_LANES_END
    memcpy(fold, x, (size_t)n * sizeof *x);
    OF(fold_sums)(fold, n);
    T *sum = fold[0];
    if (log) {
        VECTORISED TP_IVDEP for (int r = 0; r < TURNED; r++) sum[r] = OF(tp_log)(sum[r]);
        for (int r = 0; r < m; r++)
            for (int k = 0; k < n; k++) out[r * n + k] = in[r * n + k] - top[r] - sum[r];
        return;
    }
    VECTORISED for (int r = 0; r < TURNED; r++) sum[r] = 1 / sum[r];
    for (int k = 0; k < n; k++) VECTORISED for (int r = 0; r < TURNED; r++) x[k][r] *= sum[r];
    for (int r = 0; r < m; r++)
        for (int k = 0; k < n; k++) out[r * n + k] = x[k][r];
}

static void OF(row)(const T *in, T *out, int64_t n) {
    T scale = 1 / OF(exp_sum)(out, in, OF(largest)(in, n), n);
    for (int64_t first = 0, last; first < n && !tp_ends_at(first); first = last) {
        last = n - first < TP_STRETCH ? n : first + TP_STRETCH;
        for (int64_t i = first; i < last; i++) out[i] *= scale;
    }
}

/* Rows along memory, of one length. */
static void OF(rows)(const T *in, T *out, int64_t n, int64_t count) {
    int64_t i = 0;
    for (int m; (m = turned_of(n, count - i)); i += m, in += m * n, out += m * n)
        OF(turned_rows)(in, out, (int)n, m, false);
    for (; i < count && !was_interrupted(n); i++, in += n, out += n)
        if (n <= LANES) OF(short_row)(in, out, (int)n, LANES);
        else if (n <= 2 * LANES) OF(short_row)(in, out, (int)n, 2 * LANES);
        else OF(row)(in, out, n);
}

TP_INLINE void OF(less)(const T *in, T *out, int64_t n, T top, T less) {
    for (int64_t first = 0, last; first < n && !tp_ends_at(first); first = last) {
        last = n - first < TP_STRETCH ? n : first + TP_STRETCH;
        for (int64_t i = first; i < last; i++) out[i] = in[i] - top - less; /* top + less may be no more than top */
    }
}

/* The logarithms of several rows are taken together. */
static void OF(log_rows)(const T *in, T *out, int64_t n, int64_t count) {
    T top[ROWS], sum[ROWS], e[2 * LANES];
    int64_t i = 0, most = n <= LONG ? ROWS : 1;
    for (int m; (m = turned_of(n, count - i)); i += m, in += m * n, out += m * n)
        OF(turned_rows)(in, out, (int)n, m, true);
    for (int64_t m; i < count && !was_interrupted(n); i += m, in += m * n, out += m * n) {
        m = count - i < most ? count - i : most;
        for (int64_t r = 0; r < m; r++) {
            const T *x = in + r * n;
            if (n <= LANES) sum[r] = OF(short_sum)(x, (int)n, e, &top[r], LANES);
            else if (n <= 2 * LANES) sum[r] = OF(short_sum)(x, (int)n, e, &top[r], 2 * LANES);
            else sum[r] = OF(exp_sum)(NULL, x, top[r] = OF(largest)(x, n), n);
        }
        for (int64_t r = m; r < ROWS; r++) sum[r] = 1;
        VECTORISED TP_IVDEP for (int r = 0; r < ROWS; r++) sum[r] = OF(tp_log)(sum[r]);
        for (int64_t r = 0; r < m; r++) OF(less)(in + r * n, out + r * n, n, top[r], sum[r]);
    }
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
    T lanes[LANES] = {0}, last_g[LANES], last_y[LANES];
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        VECTORISED for (int k = 0; k < LANES; k++) lanes[k] += log ? g[i + k] : g[i + k] * y[i + k];
    if (i < n) {
        OF(take_some)(last_g, g + i, (int)(n - i), LANES, 0);
        OF(take_some)(last_y, y + i, (int)(n - i), LANES, 0);
        VECTORISED for (int k = 0; k < LANES; k++) lanes[k] += log ? last_g[k] : last_g[k] * last_y[k];
    }
    T sum = OF(sum_of_lanes)(lanes, LANES);
    if (log) {
        TP_IVDEP for (i = 0; i < n; i++) out[i] = g[i] - OF(tp_exp)(y[i]) * sum;
    } else {
        for (i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);
    }
}

/* As turned_rows. The logarithm's exponentials stay exp's own of a row in double, where a vector's differ. */
static void OF(backward_turned)(const T *g, const T *y, T *out, int n, int m, bool log) {
    T a[2 * LANES][TURNED], b[2 * LANES][TURNED], fold[2 * LANES][TURNED];
    OF(turn)(a, g, n, m);
    OF(turn)(b, y, n, m);
    for (int k = 0; k < n; k++)
        VECTORISED for (int r = 0; r < TURNED; r++) fold[k][r] = 0 + (log ? a[k][r] : a[k][r] * b[k][r]);
    OF(fold_sums)(fold, n);
    const T *sum = fold[0];
    for (int k = 0; k < n; k++)
        if (log) VECTORISED TP_IVDEP for (int r = 0; r < TURNED; r++) a[k][r] -= OF(tp_exp)(b[k][r]) * sum[r];
        else VECTORISED for (int r = 0; r < TURNED; r++) a[k][r] = b[k][r] * (a[k][r] - sum[r]);
    for (int r = 0; r < m; r++)
        for (int k = 0; k < n; k++) out[r * n + k] = a[k][r];
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
    if (inner == 1) {
        (log ? OF(log_rows) : OF(rows))(in + first * n, out + first * n, n, last - first);
        return;
    }
    for (int64_t i = first, m; i < last; i += m) {
        int64_t at = start_of(i, n, inner);
        m = columns_from(i, inner, last);
        OF(columns)(in + at, out + at, n, inner, m, log);
        if (was_interrupted(n)) return;
    }
}

static void OF(backward)(const void *grad_, const void *output_, void *out_, int64_t n, int64_t inner, int64_t first,
                         int64_t last, bool log) {
    const T *grad = grad_, *output = output_;
    T *out = out_;
    for (int64_t i = first, m; i < last; i += m) {
        int64_t at = start_of(i, n, inner);
        int turned = inner == 1 && n <= 16 && last - i >= 16 && (sizeof(T) == 4 || !log) ? turned_of(n, last - i) : 0;
        m = turned ? turned : columns_from(i, inner, last);
        if (turned) OF(backward_turned)(grad + at, output + at, out + at, (int)n, turned, log);
        else if (inner == 1) OF(backward_row)(grad + at, output + at, out + at, n, log);
        else OF(backward_columns)(grad + at, output + at, out + at, n, inner, m, log);
        if (was_interrupted(n)) return;
    }
}
