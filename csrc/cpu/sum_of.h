/* sum_of.h: the sums of one dtype; included once for each by reduce_loops.c, with OF what the names begin with
 * (sum_f32), T a number, PARTS how many numbers an element has (2 for complex). */

#define NAME(x) NAME_(OF, x)
#define NAME_(of, x) NAME__(of, x)
#define NAME__(of, x) of##_##x

/* ---- contiguous runs, in lanes ---- */

typedef T NAME(vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef T NAME(unaligned) __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));
enum { NAME(PER_VECTOR) = VECTOR_BYTES / sizeof(T), NAME(LANES) = LANE_BYTES / sizeof(T) };

/* Adds up the first `used` vectors, the others being zero. */
TP_INLINE void NAME(halve)(T *out, NAME(vector) * sum, const int used) {
    T lanes[NAME(PER_VECTOR)];
    UNROLL for (int half = VECTORS / 2; half; half /= 2) {
        UNROLL for (int k = 0; k < half; k++) if (k + half < used) sum[k] += sum[k + half];
    }
    *(NAME(unaligned) *)lanes = sum[0];
    UNROLL for (int half = NAME(PER_VECTOR) / 2; half >= PARTS; half /= 2) {
        UNROLL for (int k = 0; k < half; k++) lanes[k] += lanes[k + half];
    }
    for (int k = 0; k < PARTS; k++) out[k] += lanes[k];
}

TP_INLINE void NAME(add_runs)(T *acc, int64_t runs, const char *in, int64_t stride, int64_t length, const int used) {
    const int64_t whole = (length - 1) / NAME(LANES), last = (length - 1) % NAME(PER_VECTOR) + 1;
    for (int64_t i = 0; i < runs; i++) {
        const NAME(unaligned) *run = (const NAME(unaligned) *)(in + i * stride), *tail = run + whole * VECTORS;
        NAME(vector) sum[VECTORS];
        if (!whole) {
            UNROLL for (int k = 0; k < used - 1; k++) sum[k] = tail[k];
            sum[used - 1] = (NAME(vector))first_bytes(tail + used - 1, last * sizeof(T));
            NAME(halve)(acc + i * PARTS, sum, used);
            continue;
        }
        UNROLL for (int k = 0; k < VECTORS; k++) sum[k] = run[k];
        for (run += VECTORS; run < tail; run += VECTORS) {
            UNROLL for (int k = 0; k < VECTORS; k++) {
                if (k * VECTOR_BYTES % 64 == 0) TP_FETCH_AHEAD(run + k);
                sum[k] += run[k];
            }
        }
        UNROLL for (int k = 0; k < used - 1; k++) sum[k] += tail[k];
        sum[used - 1] += (NAME(vector))first_bytes(tail + used - 1, last * sizeof(T));
        NAME(halve)(acc + i * PARTS, sum, VECTORS);
    }
}

static void NAME(add)(T *acc, int64_t runs, const char *in, int64_t stride, int64_t length) {
    switch ((length - 1) % NAME(LANES) / NAME(PER_VECTOR) + 1) { TAILS }
}

/* ---- the folds ---- */

static void NAME(init)(void *acc, int64_t n) { memset(acc, 0, (size_t)n * PARTS * sizeof(T)); }

/* Elements any distance apart, in interleaved sums. */
static void NAME(strided)(T *acc, const char *in, int64_t stride, int64_t n) {
    T sum[8][PARTS] = {{0}};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            for (int c = 0; c < PARTS; c++) sum[k][c] += ((const T *)(in + (i + k) * stride))[c];
    for (; i < n; i++)
        for (int c = 0; c < PARTS; c++) sum[i & 7][c] += ((const T *)(in + i * stride))[c];
    for (int half = 4; half; half /= 2)
        for (int k = 0; k < half; k++)
            for (int c = 0; c < PARTS; c++) sum[k][c] += sum[k + half][c];
    for (int c = 0; c < PARTS; c++) acc[c] += sum[0][c];
}

static void NAME(short_runs)(T *acc, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length) {
    if (run_stride != PARTS * sizeof(T) || length < FEW) {
        for (int64_t i = 0; i < n; i++) NAME(strided)(acc + i * PARTS, in + i * stride, run_stride, length);
    } else {
        NAME(add)(acc, n, in, stride, length * PARTS);
    }
}

/* A long run is summed in pieces, and these in halves. */
static void NAME(fold_runs)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride, int64_t length,
                            int64_t index) {
    (void)index;
    T *acc = acc_;
    if (length <= TP_REDUCE_LEAF) {
        NAME(short_runs)(acc, n, in, stride, run_stride, length);
        return;
    }
    for (int64_t i = 0; i < n; i++, in += stride) {
        T piece[PIECES][PARTS] = {{0}};
        for (int64_t k = 0, begin = 0; begin < length; k++, begin += TP_REDUCE_LEAF) {
            int64_t left = length - begin < TP_REDUCE_LEAF ? length - begin : TP_REDUCE_LEAF;
            NAME(short_runs)(piece[k], 1, in + begin * run_stride, 0, run_stride, left);
        }
        for (int half = PIECES / 2; half; half /= 2)
            for (int k = 0; k < half; k++)
                for (int c = 0; c < PARTS; c++) piece[k][c] += piece[k + half][c];
        for (int c = 0; c < PARTS; c++) acc[i * PARTS + c] += piece[0][c];
    }
}

static void NAME(combine)(void *into_, const void *from_, int64_t n) {
    T *into = into_;
    const T *from = from_;
    for (int64_t i = 0; i < n * PARTS; i++) into[i] += from[i];
}

static void NAME(fold_rows)(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride, int64_t rows,
                            int64_t index) {
    (void)index;
    T *acc = acc_;
    bool contiguous = stride == PARTS * sizeof(T);
    int64_t row = 0;
    for (; contiguous && row + 4 <= rows; row += 4, in += 4 * row_stride) {
        const T *a = (const T *)in, *b = (const T *)(in + row_stride);
        const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);
        for (int64_t i = 0; i < n * PARTS; i++) acc[i] += (a[i] + b[i]) + (c[i] + d[i]);
    }
    for (; row < rows; row++, in += row_stride) {
        if (contiguous) {
            NAME(combine)(acc, in, n);
            continue;
        }
        for (int64_t i = 0; i < n; i++)
            for (int c = 0; c < PARTS; c++) acc[i * PARTS + c] += ((const T *)(in + i * stride))[c];
    }
}

#undef NAME
#undef NAME_
#undef NAME__
#undef OF
#undef T
#undef PARTS
