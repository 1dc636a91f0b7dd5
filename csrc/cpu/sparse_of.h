/* sparse_of.h: the loops of products of sparse matrices for one dtype T, named by OF; VECTOR is its vector of LANES
 * elements, where there is one. Each element is the sum over the values in their order, whatever shares the work. */

#define AHEAD 8 /* values: the rows that they multiply lie anywhere */

TP_INLINE T OF(value)(const tp_sparse_job *job, int64_t j) { return job->values ? ((const T *)job->values)[j] : (T)1; }

TP_INLINE void OF(fetch)(const tp_sparse_job *job, int64_t j, int64_t columns) {
    if (j + AHEAD >= job->n) return;
    const T *row = (const T *)job->dense + job->columns[j + AHEAD] * job->width;
    for (int64_t c = 0; c < columns; c += 64 / (int64_t)sizeof(T)) __builtin_prefetch(row + c);
}

#ifdef VECTOR
/* `count` vectors of a row's sums, which stay in registers; `count` is known where this is called. */
TP_INLINE void OF(sum_vectors)(const tp_sparse_job *job, int64_t row, int64_t at, const int count) {
    const T *dense = (const T *)job->dense + at;
    VECTOR sums[BLOCK] = {0};
    for (int64_t j = job->begins[row]; j < job->begins[row + 1]; j++) {
        const T v = OF(value)(job, j);
        const T *from = dense + job->columns[j] * job->width;
        if (at == 0) OF(fetch)(job, j, job->width < 2 * BLOCK * LANES ? job->width : 2 * BLOCK * LANES);
        UNROLL for (int k = 0; k < count; k++) sums[k] += v * *(const VECTOR *)(from + k * LANES);
    }
    UNROLL for (int k = 0; k < count; k++) * (VECTOR *)((T *)job->out + row * job->width + at + k * LANES) = sums[k];
}
#endif

/* At most as many columns as a vector has. */
static void OF(sum_few)(const tp_sparse_job *job, int64_t row, int64_t at, int64_t count) {
    const T *dense = (const T *)job->dense + at;
    T sums[LANES] = {0}, *out = (T *)job->out + row * job->width + at;
    for (int64_t j = job->begins[row]; j < job->begins[row + 1]; j++) {
        const T v = OF(value)(job, j), *from = dense + job->columns[j] * job->width;
        for (int64_t c = 0; c < count; c++) sums[c] += v * from[c];
    }
    for (int64_t c = 0; c < count; c++) out[c] = sums[c];
}

static void OF(sum_columns)(const tp_sparse_job *job, int64_t first, int64_t end) {
    const T *dense = job->dense;
    for (int64_t row = first; row < end; row++) {
        T sum = 0;
        for (int64_t j = job->begins[row]; j < job->begins[row + 1]; j++) {
            OF(fetch)(job, j, 1);
            sum += OF(value)(job, j) * dense[job->columns[j]];
        }
        ((T *)job->out)[row] = sum;
    }
}

static void OF(rows)(const tp_sparse_job *job, int64_t first, int64_t end) {
    if (job->width == 1) {
        OF(sum_columns)(job, first, end);
        return;
    }
    for (int64_t row = first; row < end; row++) {
        int64_t at = 0;
#ifdef VECTOR
        for (; at + BLOCK * LANES <= job->width; at += BLOCK * LANES) OF(sum_vectors)(job, row, at, BLOCK);
        for (; at + BLOCK / 2 * LANES <= job->width; at += BLOCK / 2 * LANES) OF(sum_vectors)(job, row, at, BLOCK / 2);
        for (; at + LANES <= job->width; at += LANES) OF(sum_vectors)(job, row, at, 1);
#endif
        for (; at < job->width; at += LANES)
            OF(sum_few)(job, row, at, job->width - at < LANES ? job->width - at : LANES);
    }
}

static void OF(places)(const tp_sparse_job *job, int64_t first, int64_t end, int64_t low, int64_t high) {
    const int64_t width = job->width;
    for (int64_t j = first; j < end; j++) {
        const int64_t row = job->rows[j];
        if (row < low || row >= high) continue;
        const T v = OF(value)(job, j);
        T *restrict to = (T *)job->out + row * width;
        const T *restrict from = (const T *)job->dense + job->columns[j] * width;
        for (int64_t c = 0; c < width; c++) to[c] += v * from[c];
    }
}

static void OF(dots)(const tp_sparse_job *job, int64_t first, int64_t end) {
    const int64_t width = job->width;
    for (int64_t j = first; j < end; j++) {
        const T *a = (const T *)job->dense + job->rows[j] * width, *b = (const T *)job->other + job->columns[j] * width;
        T sum = 0;
        int64_t c = 0;
#ifdef VECTOR
        VECTOR parts = {0};
        for (; c + LANES <= width; c += LANES) parts += *(const VECTOR *)(a + c) * *(const VECTOR *)(b + c);
        for (int k = 0; k < LANES; k++) sum += parts[k];
#endif
        for (; c < width; c++) sum += a[c] * b[c];
        ((T *)job->out)[j] = sum;
    }
}
#undef AHEAD
