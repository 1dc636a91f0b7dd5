/* panels_loops.c: products of a few rows with a panel of a matrix, compiled once per capability.
 *
 * BLAS rearranges the matrix at each call, which for a few rows takes as long as the product. A panel lies as its rows
 * are read, so ROWS rows of sums stay in registers and the panel runs through once for each ROWS rows, CHUNK of its
 * rows at a time, which stay in the L1 cache meanwhile; the next ones are asked for in the shadow of the
 * multiplications. */
#include "cpu/panels.h"

#include "cpu/kernels.h"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>

#define CHUNK 128
#define UNROLL _Pragma("GCC unroll 16")

#ifdef __AVX512F__
typedef __m512 lanes;
#define LANES 16
#define ROWS 12
#define FEW 4 /* of what ROWS leaves over */
#define load(p) _mm512_loadu_ps(p)
#define store(p, x) _mm512_storeu_ps(p, x)
#define all_lanes(x) _mm512_set1_ps(x)
#define multiply_add(a, b, c) _mm512_fmadd_ps(a, b, c)
#else
typedef __m256 lanes;
#define LANES 8
#define ROWS 3
#define FEW 2
#define load(p) _mm256_loadu_ps(p)
#define store(p, x) _mm256_storeu_ps(p, x)
#define all_lanes(x) _mm256_set1_ps(x)
#define multiply_add(a, b, c) _mm256_fmadd_ps(a, b, c)
#endif
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
#else
#define rows_times_panel NULL
#endif

const tp_panels_kernels TP_CAP(tp_panels) = {.multiply = rows_times_panel};
