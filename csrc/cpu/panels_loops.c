/* panels_loops.c: products of a few rows with a panel of a matrix, compiled once per capability.
 *
 * BLAS rearranges the matrix at each call, which for a few rows takes as long as the product. A panel lies as its rows
 * are read, so ROWS rows of sums stay in registers and the panel runs through once for each ROWS rows, CHUNK of its
 * rows at a time, which stay in the L1 cache meanwhile; the next ones are asked for in the shadow of the
 * multiplications. */
#include "cpu/panels.h"

#include "cpu/kernels.h"
#include "cpu/lanes.h"

#ifdef LANES
#define CHUNK 128
#define ROWS (LANES == 16 ? 12 : 3)
#define FEW (LANES == 16 ? 4 : 2) /* of what ROWS leaves over */
#define VECTORS (TP_PANEL / LANES)

/* `rows` is known where this is called. Along with each row of the panel `step` bytes from `ahead` on are asked for. */
TP_INLINE void multiply_rows(const float *a, int64_t lda, const float *panel, int64_t k, float *out, int64_t ldc,
                             bool more, const char *ahead, int64_t step, const int rows) {
    lanes sum[ROWS][VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =
        more ? load(out + r * ldc + v * LANES) : (lanes){0};
    for (int64_t i = 0; i < k; i++, panel += TP_PANEL) {
        lanes x[VECTORS];
        __builtin_prefetch(ahead + i * step);
        UNROLL for (int v = 0; v < VECTORS; v++) x[v] = load(panel + v * LANES);
        UNROLL for (int r = 0; r < rows; r++) {
            lanes one = all_lanes(a[r * lda + i]);
            UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = multiply_add(one, x[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < VECTORS; v++)
        store(out + r * ldc + v * LANES, sum[r][v]);
}

static void rows_times_panel(const float *a, int64_t lda, int64_t rows, const float *panel, int64_t k, float *out,
                             int64_t ldc, bool more) {
    int64_t groups = (rows + ROWS - 1) / ROWS, step = TP_PANEL * (int64_t)sizeof(float) / groups;
    for (int64_t first = 0; first < k; first += CHUNK, panel += CHUNK * TP_PANEL, more = true) {
        int64_t n = k - first < CHUNK ? k - first : CHUNK, r = 0;
        const char *ahead = (const char *)(panel + n * TP_PANEL);
        for (; r + ROWS <= rows; r += ROWS, ahead += n * step)
            multiply_rows(a + r * lda + first, lda, panel, n, out + r * ldc, ldc, more, ahead, step, ROWS);
        for (; r + FEW <= rows; r += FEW)
            multiply_rows(a + r * lda + first, lda, panel, n, out + r * ldc, ldc, more, ahead, step, FEW);
        for (; r < rows; r++)
            multiply_rows(a + r * lda + first, lda, panel, n, out + r * ldc, ldc, more, ahead, step, 1);
    }
}

/* ---- rows with columns that are contiguous ----
 *
 * The matrix is read once, as fast as memory gives it: BLAS would copy it to rearrange it. COLUMNS dot products at a
 * time for each row. */

#define MOST_ROWS (LANES == 16 ? 8 : 7)
#define COLUMNS 4
#define AHEAD 4 /* columns */

#ifdef __AVX512F__
#define sum_of(x) _mm512_reduce_add_ps(x)
#else
TP_INLINE float sum_of(lanes x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
#endif

/* `rows` and `columns` are known where this is called. */
TP_INLINE void dot_block(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, float alpha, float beta,
                         float *out, int64_t ldc, int64_t next, const int rows, const int columns) {
    lanes sum[TP_FEW_ROWS][COLUMNS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) sum[r][c] = (lanes){0};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES) {
        lanes x[COLUMNS];
        UNROLL for (int c = 0; c < columns; c++) {
            __builtin_prefetch(b + (c + AHEAD) * ldb + i);
            x[c] = load(b + c * ldb + i);
        }
        UNROLL for (int r = 0; r < rows; r++) {
            lanes one = load(a + r * lda + i);
            UNROLL for (int c = 0; c < columns; c++) sum[r][c] = multiply_add(one, x[c], sum[r][c]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int c = 0; c < columns; c++) {
        float total = sum_of(sum[r][c]), *to = out + r * ldc + c * next;
        for (int64_t j = i; j < k; j++) total += a[r * lda + j] * b[c * ldb + j];
        *to = alpha * total + (beta == 0 ? 0 : beta * *to);
    }
}

#define DOTS(rows)                                                                                                  \
    static void dots_##rows(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t n, int64_t k,         \
                            float alpha, float beta, float *out, int64_t ldc, int64_t next) {                       \
        int64_t c = 0;                                                                                              \
        for (; c + COLUMNS <= n; c += COLUMNS)                                                                      \
            dot_block(a, lda, b + c * ldb, ldb, k, alpha, beta, out + c * next, ldc, next, rows, COLUMNS);          \
        for (; c < n; c++) dot_block(a, lda, b + c * ldb, ldb, k, alpha, beta, out + c * next, ldc, next, rows, 1); \
    }
DOTS(1)
DOTS(2)
DOTS(3)
DOTS(4)

static void rows_dots(const float *a, int64_t lda, int64_t rows, const float *b, int64_t ldb, int64_t n, int64_t k,
                      float alpha, float beta, float *out, int64_t ldc, int64_t next) {
    switch (rows) {
    case 1: dots_1(a, lda, b, ldb, n, k, alpha, beta, out, ldc, next); break;
    case 2: dots_2(a, lda, b, ldb, n, k, alpha, beta, out, ldc, next); break;
    case 3: dots_3(a, lda, b, ldb, n, k, alpha, beta, out, ldc, next); break;
    default: dots_4(a, lda, b, ldb, n, k, alpha, beta, out, ldc, next); break;
    }
}

/* ---- rows with rows that are contiguous ----
 *
 * Here too the matrix is read once: `deep` of its rows at a time run through side by side, while the sums stay in the
 * L1 cache. Those rows are summed before they come to the sums, whose additions are a `deep`th so. */

#define DEEP (LANES == 16 ? 16 : 8) /* rows of a times rows of b, which are in registers */

/* Sums of `columns` numbers of each row, at most LANES. `rows` and `deep` are known where this is called. */
TP_INLINE void sum_lanes(lanes ones[][DEEP], const float *b, int64_t ldb, int64_t columns, float beta, float *out,
                         int64_t ldc, const int rows, const int deep) {
    lanes x[DEEP];
    UNROLL for (int i = 0; i < deep; i++) x[i] =
        columns == LANES ? load(b + i * ldb) : load_first(b + i * ldb, columns);
    UNROLL for (int r = 0; r < rows; r++) {
        lanes sum = {0};
        if (beta != 0)
            sum = all_lanes(beta) * (columns == LANES ? load(out + r * ldc) : load_first(out + r * ldc, columns));
        lanes here = ones[r][0] * x[0];
        UNROLL for (int i = 1; i < deep; i++) here = multiply_add(ones[r][i], x[i], here);
        sum += here;
        if (columns == LANES) store(out + r * ldc, sum);
        else store_first(out + r * ldc, columns, sum);
    }
}

TP_INLINE void sum_rows(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t n, float alpha, float beta,
                        float *out, int64_t ldc, const int rows, const int deep) {
    lanes ones[TP_FEW_ROWS][DEEP];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int i = 0; i < deep; i++) ones[r][i] =
        all_lanes(alpha * a[r * lda + i]);
    int64_t c = 0;
    for (; c + LANES <= n; c += LANES) sum_lanes(ones, b + c, ldb, LANES, beta, out + c, ldc, rows, deep);
    if (c < n) sum_lanes(ones, b + c, ldb, n - c, beta, out + c, ldc, rows, deep);
}

#define SUMS(rows, deep)                                                                                        \
    static void sums_##rows(const float *a, int64_t lda, const float *b, int64_t ldb, int64_t n, int64_t k,     \
                            float alpha, float beta, float *out, int64_t ldc) {                                 \
        int64_t i = 0;                                                                                          \
        for (; i + (deep) <= k; i += (deep), beta = 1)                                                          \
            sum_rows(a + i, lda, b + i * ldb, ldb, n, alpha, beta, out, ldc, rows, deep);                       \
        for (; i < k; i++, beta = 1) sum_rows(a + i, lda, b + i * ldb, ldb, n, alpha, beta, out, ldc, rows, 1); \
    }
SUMS(1, 8)
SUMS(2, DEEP / 2)
SUMS(3, DEEP / 4)
SUMS(4, DEEP / 4)

static void rows_sums(const float *a, int64_t lda, int64_t rows, const float *b, int64_t ldb, int64_t n, int64_t k,
                      float alpha, float beta, float *out, int64_t ldc) {
    switch (rows) {
    case 1: sums_1(a, lda, b, ldb, n, k, alpha, beta, out, ldc); break;
    case 2: sums_2(a, lda, b, ldb, n, k, alpha, beta, out, ldc); break;
    case 3: sums_3(a, lda, b, ldb, n, k, alpha, beta, out, ldc); break;
    default: sums_4(a, lda, b, ldb, n, k, alpha, beta, out, ldc); break;
    }
}
#else
#define rows_times_panel NULL
#define rows_dots NULL
#define rows_sums NULL
#define MOST_ROWS 0
#endif

const tp_panels_kernels TP_CAP(tp_panels) = {
    .multiply = rows_times_panel, .dots = rows_dots, .most_rows = MOST_ROWS, .sums = rows_sums};
