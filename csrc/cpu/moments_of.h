/* moments_of.h: the folds of one dtype; included once for each by moments.c, with OF what the names begin with (f32), T
 * a part of an element, PARTS how many parts an element has. */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

static void NAME(strided)(moments *acc, const char *in, int64_t step, int64_t n) {
    double mean[2] = {0}, distance = 0;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < PARTS; c++) mean[c] += ((const T *)(in + i * step))[c];
    for (int c = 0; c < PARTS; c++) mean[c] /= (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < PARTS; c++) {
            double d = ((const T *)(in + i * step))[c] - mean[c];
            distance += d * d;
        }
    join(acc, mean, distance, n);
}

TP_INLINE void NAME(run)(moments *acc, const T *p, int64_t n) {
    double mean[2] = {SUM(p, n) / (double)n};
    join(acc, mean, SQUARES(p, n, mean[0]), n);
}

static void NAME(fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                            int64_t index) {
    (void)index;
    moments *acc = acc_;
    for (int64_t run = 0; length && run < n; run++, in += stride) {
        if (PARTS == 1 && run_stride == sizeof(T)) NAME(run)(acc + run, (const T *)in, length);
        else NAME(strided)(acc + run, in, run_stride, length);
    }
}

static void NAME(columns)(moments *acc, int64_t n, const char *in, int64_t row_stride, int64_t rows) {
    double mean[COLUMNS] = {0}, distance[COLUMNS] = {0};
    for (int64_t row = 0; row < rows; row++) {
        const T *p = (const T *)(in + row * row_stride);
        for (int64_t i = 0; i < n; i++) mean[i] += (double)p[i];
    }
    for (int64_t i = 0; i < n; i++) mean[i] /= (double)rows;
    for (int64_t row = 0; row < rows; row++) {
        const T *p = (const T *)(in + row * row_stride);
        for (int64_t i = 0; i < n; i++) distance[i] += ((double)p[i] - mean[i]) * ((double)p[i] - mean[i]);
    }
    for (int64_t i = 0; i < n; i++) join(acc + i, (const double[]){mean[i], 0}, distance[i], rows);
}

static void NAME(fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                            int64_t index) {
    (void)index;
    moments *acc = acc_;
    bool columns = PARTS == 1 && stride == sizeof(T) && rows > 1;
    for (int64_t i = 0; columns && i < n; i += COLUMNS)
        NAME(columns)(acc + i, n - i < COLUMNS ? n - i : COLUMNS, in + i * stride, row_stride, rows);
    for (int64_t i = 0; !columns && rows && i < n; i++) NAME(strided)(acc + i, in + i * stride, row_stride, rows);
}

static void NAME(finish)(void *out, const void *acc_, int64_t n, int64_t count, const void *params) {
    const tp_moments_params *p = params;
    const moments *acc = acc_;
    double by = (double)count - p->correction;
    for (int64_t i = 0; i < n; i++) {
        double variance = acc[i].distance / (by > 0 ? by : 0);
        ((T *)out)[i] = (T)(p->root ? sqrt(variance) : variance);
    }
}

/* ---- the root of the sum of squares ---- */

static double NAME(squares_apart)(const char *in, int64_t step, int64_t n) {
    double sum[4] = {0};
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < PARTS; c++) {
            double x = ((const T *)(in + i * step))[c];
            sum[i & 3] += x * x;
        }
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static void NAME(squares_fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,
                                    int64_t length, int64_t index) {
    (void)index;
    double *acc = acc_;
    for (int64_t run = 0; run < n; run++, in += stride) {
        bool together = run_stride == PARTS * sizeof(T);
        acc[run] += together ? SQUARES((const T *)in, length * PARTS, 0) : NAME(squares_apart)(in, run_stride, length);
    }
}

static void NAME(squares_fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,
                                    int64_t rows, int64_t index) {
    (void)index;
    double *acc = acc_;
    for (int64_t row = 0; row < rows; row++, in += row_stride) {
        if (PARTS == 1 && stride == sizeof(T)) {
            const T *p = (const T *)in;
            for (int64_t i = 0; i < n; i++) acc[i] += (double)p[i] * (double)p[i];
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < PARTS; c++) {
                double x = ((const T *)(in + i * stride))[c];
                acc[i] += x * x;
            }
    }
}

static void NAME(squares_finish)(void *out, const void *acc, int64_t n, int64_t count, const void *params) {
    (void)count;
    (void)params;
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = (T)sqrt(((const double *)acc)[i]);
}

#undef NAME
#undef NAME_
#undef NAME__
#undef OF
#undef T
#undef PARTS
