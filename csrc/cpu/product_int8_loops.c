/* product_int8_loops.c: products of bytes, compiled once per capability; all give the same bits.
 *
 * Bytes of both signs multiplied and added in pairs do not fit into 16 bits, so rows are widened once, a panel while it
 * is read: pairs of 16-bit numbers are multiplied and added in 32 bits, exactly. Sums wrap around as int32 does. */
#include "cpu/product_int8.h"

#include "cpu/kernels.h"

#include <math.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 16")

static int32_t widen(const void *from, bool is_signed, int64_t n, int32_t zero_point, int16_t *to) {
    const uint8_t *plain = from;
    const int8_t *both = from;
    int32_t sum = 0;
    if (is_signed)
        for (int64_t i = 0; i < n; i++) sum += to[i] = (int16_t)(both[i] - zero_point);
    else
        for (int64_t i = 0; i < n; i++) sum += to[i] = (int16_t)(plain[i] - zero_point);
    if (n % 2) to[n] = 0;
    return sum;
}

#if defined(__AVX512BW__)
typedef __m512i lanes;
#define VECTORS 1
#define ROWS 12
#define load_panel(p, v) _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(p)))
#define all_pairs(x) _mm512_set1_epi32(x)
#define add_products(sum, a, b) _mm512_add_epi32(sum, _mm512_madd_epi16(a, b))
#define store(p, x) _mm512_storeu_si512(p, x)
#define no_sum() _mm512_setzero_si512()
#elif defined(__AVX2__)
typedef __m256i lanes;
#define VECTORS 2
#define ROWS 6
#define load_panel(p, v) _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)((p) + 16 * (v))))
#define all_pairs(x) _mm256_set1_epi32(x)
#define add_products(sum, a, b) _mm256_add_epi32(sum, _mm256_madd_epi16(a, b))
#define store(p, x) _mm256_storeu_si256((void *)(p), x)
#define no_sum() _mm256_setzero_si256()
#endif

#ifdef VECTORS
/* `rows` is known where this is called. */
TP_INLINE void multiply_rows(const int16_t *a, int64_t lda, int64_t pairs, const int8_t *panel, int32_t *sums,
                             const int rows) {
    lanes sum[ROWS][VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = no_sum();
    for (int64_t i = 0; i < pairs; i++, panel += 2 * TP_INT8_COLUMNS) {
        lanes x[VECTORS];
        UNROLL for (int v = 0; v < VECTORS; v++) x[v] = load_panel(panel, v);
        UNROLL for (int r = 0; r < rows; r++) {
            int32_t pair;
            __builtin_memcpy(&pair, a + r * lda + 2 * i, sizeof pair);
            lanes one = all_pairs(pair);
            UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = add_products(sum[r][v], one, x[v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < VECTORS; v++)
        store(sums + r * TP_INT8_COLUMNS + v * (TP_INT8_COLUMNS / VECTORS), sum[r][v]);
}

static void multiply(const int16_t *a, int64_t lda, int64_t rows, int64_t pairs, const int8_t *panel, int32_t *sums) {
    for (; rows >= ROWS; rows -= ROWS, a += ROWS * lda, sums += ROWS * TP_INT8_COLUMNS)
        multiply_rows(a, lda, pairs, panel, sums, ROWS);
    for (; rows >= 4; rows -= 4, a += 4 * lda, sums += 4 * TP_INT8_COLUMNS)
        multiply_rows(a, lda, pairs, panel, sums, 4);
    for (; rows >= 2; rows -= 2, a += 2 * lda, sums += 2 * TP_INT8_COLUMNS)
        multiply_rows(a, lda, pairs, panel, sums, 2);
    if (rows) multiply_rows(a, lda, pairs, panel, sums, 1);
}
#else
#define ROWS 4
static void multiply(const int16_t *a, int64_t lda, int64_t rows, int64_t pairs, const int8_t *panel, int32_t *sums) {
    for (int64_t r = 0; r < rows; r++, a += lda, sums += TP_INT8_COLUMNS) {
        uint32_t sum[TP_INT8_COLUMNS] = {0};
        for (int64_t i = 0; i < pairs; i++)
            for (int c = 0; c < TP_INT8_COLUMNS; c++) {
                const int8_t *b = panel + 2 * (i * TP_INT8_COLUMNS + c);
                sum[c] += (uint32_t)(a[2 * i] * b[0] + a[2 * i + 1] * b[1]);
            }
        for (int c = 0; c < TP_INT8_COLUMNS; c++) sums[c] = (int32_t)sum[c];
    }
}
#endif

/* The nearest integer, the even one of two, of a number that fits into 22 bits: adding 1.5 * 2**23 leaves no fraction.
 */
#define WHOLE 12582912.0f

static void to_bytes(const int32_t *sums, const float *shift, const float *factor, int32_t zero_point, int32_t low,
                     int32_t high, int64_t n, uint8_t *out) {
    const float least = (float)(low - zero_point), most = (float)(high - zero_point);
    for (int64_t i = 0; i < n; i++) {
        float x = ((float)sums[i] + shift[i]) * factor[i];
        x = x > least ? x : least;
        x = x < most ? x : most;
        out[i] = (uint8_t)((int32_t)((x + WHOLE) - WHOLE) + zero_point);
    }
}

static void to_floats(const int32_t *sums, const float *shift, const float *factor, float least, int64_t n,
                      float *out) {
    for (int64_t i = 0; i < n; i++) {
        float x = fmaf((float)sums[i], factor[i], shift[i]);
        out[i] = x < least ? least : x;
    }
}

const tp_product_int8_kernels TP_CAP(tp_product_int8) = {ROWS, widen, multiply, to_bytes, to_floats};
