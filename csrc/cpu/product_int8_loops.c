/* product_int8_loops.c: products of bytes, compiled once per capability; all give the same bits.
 *
 * Bytes of both signs multiplied and added in pairs do not fit into 16 bits, unless those of the row are from 0 to 127,
 * or the two weights small: 255 times the sum of what is positive of them, and of what is negative, decides. A quad of
 * a panel that has no other pairs is tame; most quads are, as weights are spread like a bell, and only the others are
 * multiplied as pairs of 16-bit numbers (multiply_mixed). Few rows are widened once, a panel while it is read
 * (multiply_wide). All is exact; sums wrap around as int32 does. */
#include "cpu/product_int8.h"

#include "cpu/kernels.h"

#include <math.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define UNROLL _Pragma("GCC unroll 16")

static void widen(const void *from, bool is_signed, int64_t n, int32_t zero_point, int16_t *to) {
    const uint8_t *plain = from;
    const int8_t *both = from;
    if (is_signed)
        for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(both[i] - zero_point);
    else
        for (int64_t i = 0; i < n; i++) to[i] = (int16_t)(plain[i] - zero_point);
}

static uint8_t largest(const uint8_t *from, int64_t n) {
    uint8_t most = 0;
    for (int64_t i = 0; i < n; i++) most = from[i] > most ? from[i] : most;
    return most;
}

#if defined(__AVX512BW__)
typedef __m512i lanes;
#define VECTORS 1
#define ROWS 12
#define load(p) _mm512_loadu_si512(p)
#define store(p, x) _mm512_storeu_si512(p, x)
#define all(x) _mm512_set1_epi32(x)
#define add(a, b) _mm512_add_epi32(a, b)
#define pairs_of(a, b) _mm512_madd_epi16(a, b)
#define pairs_of_bytes(a, b) _mm512_maddubs_epi16(a, b)
#define other(a, b) _mm512_xor_si512(a, b)
#define in_each(x) _mm512_broadcast_i32x4(x)
#define widened(x, pair) _mm512_srai_epi16(_mm512_shuffle_epi8(x, pair), 8)
#define both(a, b) _mm512_and_si512(a, b)
#define up(x) _mm512_slli_epi16(x, 8)
#define down(x) _mm512_srai_epi16(x, 8)
#define down_plain(x) _mm512_srli_epi16(x, 8)
#define highest(a, b) _mm512_max_epi8(a, b)
#define lowest(a, b) _mm512_min_epi8(a, b)
#define has(x, number) (_mm512_cmpeq_epi16_mask(x, _mm512_set1_epi16(number)) != 0)
#elif defined(__AVX2__)
typedef __m256i lanes;
#define VECTORS 2
#define ROWS 6
#define load(p) _mm256_loadu_si256((const void *)(p))
#define store(p, x) _mm256_storeu_si256((void *)(p), x)
#define all(x) _mm256_set1_epi32(x)
#define add(a, b) _mm256_add_epi32(a, b)
#define pairs_of(a, b) _mm256_madd_epi16(a, b)
#define pairs_of_bytes(a, b) _mm256_maddubs_epi16(a, b)
#define other(a, b) _mm256_xor_si256(a, b)
#define in_each(x) _mm256_broadcastsi128_si256(x)
#define widened(x, pair) _mm256_srai_epi16(_mm256_shuffle_epi8(x, pair), 8)
#define both(a, b) _mm256_and_si256(a, b)
#define up(x) _mm256_slli_epi16(x, 8)
#define down(x) _mm256_srai_epi16(x, 8)
#define down_plain(x) _mm256_srli_epi16(x, 8)
#define highest(a, b) _mm256_max_epi8(a, b)
#define lowest(a, b) _mm256_min_epi8(a, b)
#define has(x, number) (_mm256_movemask_epi8(_mm256_cmpeq_epi16(x, _mm256_set1_epi16(number))) != 0)
#endif

#ifdef VECTORS
#define EACH_SUM UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < VECTORS; v++)
#define SUM_AT(r, v) (sums + (r) * TP_INT8_COLUMNS + (v) * (TP_INT8_COLUMNS / VECTORS))

/* Four bytes of a row, for all columns. */
TP_INLINE lanes broadcast(const char *at) {
    int32_t numbers;
    __builtin_memcpy(&numbers, at, sizeof numbers);
    return all(numbers);
}

/* `rows` is known where this is called. A quad of weights is widened as two pairs, one after the other. */
TP_INLINE void multiply_wide(const tp_int8_rows *a, const int8_t *panel, bool more, int32_t *sums, const int rows) {
    const lanes turn = all(0x02000200); /* from the bytes (-, 0, -, 1) of a quad to (-, 2, -, 3), and back */
    lanes sum[ROWS][VECTORS], pair = in_each(_mm_setr_epi32(0x01800080, 0x05800480, 0x09800880, 0x0d800c80));
    EACH_SUM sum[r][v] = more ? load(SUM_AT(r, v)) : all(0);
    const int64_t apart = a->apart;
    for (int64_t p = 0; p < a->pieces; p++, panel += a->quads * 4 * TP_INT8_COLUMNS) {
        const char *at = a->at + a->offsets[p];
        for (int64_t i = 0; i < 2 * a->quads; i++, pair = other(pair, turn)) {
            lanes x[VECTORS];
            UNROLL for (int v = 0; v < VECTORS; v++) x[v] =
                widened(load(panel + i / 2 * 4 * TP_INT8_COLUMNS + v * (int)sizeof(lanes)), pair);
            UNROLL for (int r = 0; r < rows; r++) {
                lanes one = broadcast(at + r * apart + 4 * i);
                UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = add(sum[r][v], pairs_of(one, x[v]));
            }
        }
    }
    EACH_SUM store(SUM_AT(r, v), sum[r][v]);
}

#define ADD_QUAD(at, panel)                                                                     \
    {                                                                                           \
        lanes x[VECTORS];                                                                       \
        UNROLL for (int v = 0; v < VECTORS; v++) x[v] = load((panel) + v * (int)sizeof(lanes)); \
        UNROLL for (int r = 0; r < rows; r++) {                                                 \
            lanes one = broadcast((at) + r * apart);                                            \
            UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] =                                \
                add(sum[r][v], pairs_of(ones, pairs_of_bytes(one, x[v])));                      \
        }                                                                                       \
    }
TP_INLINE void multiply_plain(const tp_int8_rows *a, const int8_t *panel, bool more, int32_t *sums, const int rows) {
    const lanes ones = all(0x00010001);
    lanes sum[ROWS][VECTORS];
    EACH_SUM sum[r][v] = more ? load(SUM_AT(r, v)) : all(0);
    const int64_t apart = a->apart;
    for (int64_t p = 0; p < a->pieces; p++) {
        const char *at = a->at + a->offsets[p];
        for (int64_t i = 0; i < a->quads; i++, panel += 4 * TP_INT8_COLUMNS) ADD_QUAD(at + 4 * i, panel)
    }
    EACH_SUM store(SUM_AT(r, v), sum[r][v]);
}

/* A quad as two pairs of 16-bit numbers, its first and third, then its second and fourth. */
#define ADD_PAIRS(weights, numbers)                                                                \
    UNROLL for (int v = 0; v < VECTORS; v++) {                                                     \
        lanes bytes = load(weight + v * (int)sizeof(lanes));                                       \
        x[v] = weights;                                                                            \
    }                                                                                              \
    UNROLL for (int r = 0; r < rows; r++) {                                                        \
        lanes bytes = broadcast(at + r * apart), pair = numbers;                                   \
        UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = add(sum[r][v], pairs_of(pair, x[v])); \
    }
TP_INLINE void multiply_in_order(const tp_int8_rows *a, const tp_int8_order *order, const int8_t *panel, bool more,
                                 int32_t *sums, const int rows) {
    const lanes ones = all(0x00010001), low = all(0x00ff00ff);
    lanes sum[ROWS][VECTORS];
    EACH_SUM sum[r][v] = more ? load(SUM_AT(r, v)) : all(0);
    const int64_t apart = a->apart;
    int64_t i = 0;
    for (; i < order->tame; i++) ADD_QUAD(a->at + order->quads[i].row, panel + order->quads[i].panel)
    for (; i < order->count; i++) {
        const char *at = a->at + order->quads[i].row;
        const int8_t *weight = panel + order->quads[i].panel;
        lanes x[VECTORS];
        ADD_PAIRS(down(up(bytes)), both(bytes, low))
        ADD_PAIRS(down(bytes), down_plain(bytes))
    }
    EACH_SUM store(SUM_AT(r, v), sum[r][v]);
}
#undef ADD_PAIRS
#undef ADD_QUAD

static void weights(const int8_t *panel, int64_t quads, int32_t *sums) {
    const lanes ones = all(0x00010001), bytes = all(0x01010101);
    lanes sum[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) sum[v] = all(0);
    for (int64_t i = 0; i < quads; i++, panel += 4 * TP_INT8_COLUMNS)
        UNROLL for (int v = 0; v < VECTORS; v++) sum[v] =
            add(sum[v], pairs_of(ones, pairs_of_bytes(bytes, load(panel + v * (int)sizeof(lanes)))));
    UNROLL for (int v = 0; v < VECTORS; v++) store(SUM_AT(0, v), sum[v]);
}

/* 255 times a pair of weights, of which only the positive ones are left, or only the negative ones: if that does not
 * fit into 16 bits, it is the bound. */
static void find_wild(const int8_t *panel, int64_t quads, uint8_t *wild) {
    const lanes most = all(-1), none = all(0);
    for (int64_t i = 0; i < quads; i++, panel += 4 * TP_INT8_COLUMNS) {
        bool found = false;
        UNROLL for (int v = 0; v < VECTORS; v++) {
            lanes x = load(panel + v * (int)sizeof(lanes));
            found |= has(pairs_of_bytes(most, highest(x, none)), INT16_MAX) |
                     has(pairs_of_bytes(most, lowest(x, none)), INT16_MIN);
        }
        wild[i] = found;
    }
}

/* Calls with a number of rows that the compiler knows, as many as are kept in registers. */
#if ROWS > 6
#define BY_ROWS(call)                           \
    tp_int8_rows some = *a;                     \
    if (rows == ROWS) {                         \
        call(ROWS);                             \
        return;                                 \
    }                                           \
    if (rows > 6) {                             \
        call(6);                                \
        rows -= 6, sums += 6 * TP_INT8_COLUMNS; \
        some.at += 6 * some.apart;              \
    }                                           \
    FEW_ROWS(call)
#else
#define BY_ROWS(call)             \
    const tp_int8_rows some = *a; \
    FEW_ROWS(call)
#endif
#define FEW_ROWS(call)      \
    switch (rows) {         \
    case 6: call(6); break; \
    case 5: call(5); break; \
    case 4: call(4); break; \
    case 3: call(3); break; \
    case 2: call(2); break; \
    default: call(1);       \
    }
#define WIDE(n) multiply_wide(&some, panel, more, sums, n)
#define PLAIN(n) multiply_plain(&some, panel, more, sums, n)
#define MIXED(n) multiply_in_order(&some, order, panel, more, sums, n)
static void multiply(const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more, int32_t *sums) {
    BY_ROWS(WIDE)
}
static void multiply_bytes(tp_int8_part *part, const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more,
                           int32_t *sums) {
    BY_ROWS(PLAIN)
}
static void multiply_mixed(const tp_int8_rows *a, const tp_int8_order *order, int64_t rows, const int8_t *panel,
                           bool more, int32_t *sums) {
    BY_ROWS(MIXED)
}

/* Sums of two products with bytes up to 127 fit into 16 bits. */
static const tp_int8_bytes plain_bytes = {ROWS,  TP_INT8_QUADS,  0,    INT8_MAX,
                                          false, multiply_bytes, NULL, multiply_mixed};
#if defined(__AVX512BW__)
static const tp_int8_bytes *bytes(void) {
    const tp_int8_bytes *dots = tp_int8_dots();
    return dots ? dots : &plain_bytes;
}
#else
static const tp_int8_bytes *bytes(void) { return &plain_bytes; }
#endif
#else
#define ROWS 4
static const tp_int8_bytes *bytes(void) { return NULL; }
#define weights NULL
#define find_wild NULL
static void multiply(const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more, int32_t *sums) {
    for (int64_t r = 0; r < rows; r++, sums += TP_INT8_COLUMNS) {
        uint32_t sum[TP_INT8_COLUMNS] = {0};
        if (more) __builtin_memcpy(sum, sums, sizeof sum);
        const int8_t *b = panel;
        for (int64_t p = 0; p < a->pieces; p++) {
            const int16_t *at = (const int16_t *)(a->at + r * a->apart + a->offsets[p]);
            for (int64_t i = 0; i < a->quads; i++, at += 4)
                for (int c = 0; c < TP_INT8_COLUMNS; c++, b += 4)
                    sum[c] += (uint32_t)(at[0] * b[0] + at[1] * b[1] + at[2] * b[2] + at[3] * b[3]);
        }
        __builtin_memcpy(sums, sum, sizeof sum);
    }
}
#endif

static void multiply_each(const tp_int8_rows *a, int64_t rows, const int8_t *panel, int32_t *sums) {
    for (int64_t r = 0; r < rows; r++, sums += TP_INT8_COLUMNS) {
        uint32_t sum[TP_INT8_COLUMNS] = {0};
        for (int64_t p = 0; p < a->pieces; p++) {
            const int16_t *at = (const int16_t *)(a->at + r * a->apart + a->offsets[p]);
            const int8_t *b = panel + p * TP_INT8_COLUMNS;
            UNROLL for (int c = 0; c < TP_INT8_COLUMNS; c++) sum[c] += (uint32_t)(at[c] * b[c]);
        }
        __builtin_memcpy(sums, sum, sizeof sum);
    }
}

static void centre(const tp_int8_rows *a, int64_t rows, const tp_int8_columns *columns, int32_t *sums) {
    for (int64_t r = 0; r < rows; r++, sums += TP_INT8_COLUMNS) {
        uint32_t total = 0;
        for (int64_t p = 0; p < a->pieces; p++) {
            const int16_t *at = (const int16_t *)(a->at + r * a->apart + a->offsets[p]);
            for (int64_t i = 0; i < a->numbers; i++) total += (uint32_t)at[i];
        }
        for (int c = 0; c < TP_INT8_COLUMNS; c++)
            sums[c] = (int32_t)((uint32_t)sums[c] - (uint32_t)columns->zero_points[c] * total);
    }
}

/* The nearest integer, the even one of two, of a number that fits into 22 bits: adding 1.5 * 2**23 leaves no fraction.
 */
#define WHOLE 12582912.0f

TP_INLINE void low_bytes(const int32_t *from, uint8_t *to) {
#if defined(__AVX512F__)
    _mm_storeu_si128((void *)to, _mm512_cvtepi32_epi8(_mm512_loadu_si512(from)));
#else
    VECTORISED for (int i = 0; i < TP_INT8_COLUMNS; i++) to[i] = (uint8_t)from[i];
#endif
}

TP_INLINE int32_t started(const tp_int8_columns *c, const int32_t *sums, int i) {
    return (int32_t)((uint32_t)sums[i] + (uint32_t)c->starts[i]);
}

/* All columns of a panel are computed, n are kept: what is written beside them may be the next row. */
static void to_bytes(const int32_t *sums, const tp_int8_columns *c, int32_t zero_point, int32_t low, int32_t high,
                     int64_t rows, int64_t n, uint8_t *out, int64_t step) {
    const float least = (float)(low - zero_point), most = (float)(high - zero_point);
    for (int64_t r = 0; r < rows; r++, sums += TP_INT8_COLUMNS, out += step) {
        int32_t whole[TP_INT8_COLUMNS]; /* in a loop of their own, since one that makes bytes has short vectors */
        uint8_t row[TP_INT8_COLUMNS];
        VECTORISED for (int i = 0; i < TP_INT8_COLUMNS; i++) {
            float x = ((float)started(c, sums, i) + c->shift[i]) * c->factor[i];
            x = x > least ? x : least;
            x = x < most ? x : most;
            whole[i] = (int32_t)((x + WHOLE) - WHOLE) + zero_point;
        }
        low_bytes(whole, row);
        if (n == TP_INT8_COLUMNS) __builtin_memcpy(out, row, sizeof row);
        else __builtin_memcpy(out, row, (size_t)n);
    }
}

static void to_floats(const int32_t *sums, const tp_int8_columns *c, float least, int64_t rows, int64_t n, float *out,
                      int64_t step) {
    for (int64_t r = 0; r < rows; r++, sums += TP_INT8_COLUMNS, out += step) {
        float row[TP_INT8_COLUMNS];
        VECTORISED for (int i = 0; i < TP_INT8_COLUMNS; i++) {
            float x = fmaf((float)started(c, sums, i), c->factor[i], c->shift[i]);
            row[i] = x < least ? least : x;
        }
        if (n == TP_INT8_COLUMNS) __builtin_memcpy(out, row, sizeof row);
        else __builtin_memcpy(out, row, (size_t)n * sizeof *out);
    }
}

const tp_product_int8_kernels TP_CAP(tp_product_int8) = {ROWS,      widen,   multiply, bytes,    multiply_each, weights,
                                                         find_wild, largest, centre,   to_bytes, to_floats};
