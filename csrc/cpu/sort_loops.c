/* sort_loops.c: lines of words in order, and elements as such words and back; compiled once per capability.
 *
 * A word is a signed integer, which vectors compare best. Signed zeros are different words, so that they come back; of
 * a NaN the sign is lost. */
#include "core/host.h"
#include "cpu/kernels.h"

#include <string.h>

#define PER_LOOK ((int64_t)1 << 20) /* words that are moved until a signal is heard */
#define MANY 4096                   /* words from which on larger digits pay */
#define RANKED 64                   /* words that are sorted by rank */

/* Up to how many words lie side by side; beyond that the other ways are as fast. */
#if defined(__AVX2__)
#include <immintrin.h>
#define BY_VECTORS
#define SHORT_32 32
#define SHORT_64 32
#else
#define SHORT_32 512
#define SHORT_64 64
#endif

#if defined(__AVX2__) && !(defined(__AVX512F__) && defined(__AVX512DQ__))
/* The lanes of a vector of eight whose bit is set, and then the others, a byte each: for every set of bits. */
#define BELOW(set, lane) __builtin_popcount((set) & ((1 << (lane)) - 1))
#define RANK(set, lane) ((set) >> (lane) & 1 ? BELOW(set, lane) : BELOW(set, 8) + (lane) - BELOW(set, lane))
#define LANE(set, lane) ((uint64_t)(lane) << 8 * (RANK(set, lane)))
#define ORDER(set)                                                                                           \
    LANE(set, 0) | LANE(set, 1) | LANE(set, 2) | LANE(set, 3) | LANE(set, 4) | LANE(set, 5) | LANE(set, 6) | \
        LANE(set, 7)
#define ORDERS_4(set) ORDER(set), ORDER((set) + 1), ORDER((set) + 2), ORDER((set) + 3)
#define ORDERS_16(set) ORDERS_4(set), ORDERS_4((set) + 4), ORDERS_4((set) + 8), ORDERS_4((set) + 12)
#define ORDERS_64(set) ORDERS_16(set), ORDERS_16((set) + 16), ORDERS_16((set) + 32), ORDERS_16((set) + 48)
static const uint64_t lane_orders[256] = {ORDERS_64(0), ORDERS_64(64), ORDERS_64(128), ORDERS_64(192)};
#endif

#define NAME(x) x##_32
#define WORD int32_t
#define UNSIGNED uint32_t
#define WORD_BITS 32
#define SHORT SHORT_32
#define MOST INT32_MAX
#include "cpu/sort_words.h"
#undef NAME
#undef WORD
#undef UNSIGNED
#undef WORD_BITS
#undef SHORT
#undef MOST

#define NAME(x) x##_64
#define WORD int64_t
#define UNSIGNED uint64_t
#define WORD_BITS 64
#define SHORT SHORT_64
#define MOST INT64_MAX
#include "cpu/sort_words.h"

/* ---- elements as words ---- */

#define WORDS(name, T, WORD, to, from)                                                    \
    static void to_##name(const void *in_, int64_t n, bool descending, void *words_) {    \
        const T *in = in_;                                                                \
        WORD *words = words_, flip = -(WORD)descending;                                   \
        for (int64_t i = 0; i < n; i++) words[i] = (WORD)(to(in[i])) ^ flip;              \
    }                                                                                     \
    static void from_##name(const void *words_, int64_t n, bool descending, void *out_) { \
        T *out = out_;                                                                    \
        const WORD *words = words_;                                                       \
        WORD flip = -(WORD)descending;                                                    \
        for (int64_t i = 0; i < n; i++) out[i] = (T)(from(words[i] ^ flip));              \
    }
#define ITSELF(x) (x)
#define IS_TRUE(x) ((x) != 0)
#define TURN_32(x) ((uint32_t)(x) ^ UINT32_C(1) << 31)
#define TURN_64(x) ((uint64_t)(x) ^ UINT64_C(1) << 63)
WORDS(bool, uint8_t, int32_t, IS_TRUE, ITSELF)
WORDS(u8, uint8_t, int32_t, ITSELF, ITSELF)
WORDS(i8, int8_t, int32_t, ITSELF, ITSELF)
WORDS(u16, uint16_t, int32_t, ITSELF, ITSELF)
WORDS(i16, int16_t, int32_t, ITSELF, ITSELF)
WORDS(i32, int32_t, int32_t, ITSELF, ITSELF)
WORDS(u32, uint32_t, int32_t, TURN_32, TURN_32)
WORDS(i64, int64_t, int64_t, ITSELF, ITSELF)
WORDS(u64, uint64_t, int64_t, TURN_64, TURN_64)

/* The bits of a negative number but for the sign are turned round; a NaN is taken as positive. */
#define FLOAT_WORDS(bits)                                                                         \
    TP_INLINE int##bits##_t word_of_##bits(int##bits##_t x, bool nan) {                           \
        int##bits##_t magnitude = x & INT##bits##_MAX;                                            \
        return nan ? magnitude : x ^ (int##bits##_t)((uint##bits##_t)(x >> (bits - 1)) >> 1);     \
    }                                                                                             \
    static void to_f##bits(const void *in_, int64_t n, bool descending, void *words_) {           \
        const int##bits##_t *in = in_;                                                            \
        int##bits##_t *words = words_, flip = -(int##bits##_t)descending;                         \
        for (int64_t i = 0; i < n; i++)                                                           \
            words[i] = word_of_##bits(in[i], (in[i] & INT##bits##_MAX) > INFINITE_##bits) ^ flip; \
    }                                                                                             \
    static void from_f##bits(const void *words_, int64_t n, bool descending, void *out_) {        \
        const int##bits##_t *words = words_;                                                      \
        int##bits##_t *out = out_, flip = -(int##bits##_t)descending;                             \
        for (int64_t i = 0; i < n; i++) out[i] = word_of_##bits(words[i] ^ flip, false);          \
    }
#define INFINITE_32 0x7f800000
#define INFINITE_64 INT64_C(0x7ff0000000000000)
FLOAT_WORDS(32)
FLOAT_WORDS(64)

#define BY_DTYPE(way)                                                                                     \
    {[TP_BOOL] = way##_bool,  [TP_UINT8] = way##_u8,    [TP_INT8] = way##_i8,    [TP_UINT16] = way##_u16, \
     [TP_INT16] = way##_i16,  [TP_INT32] = way##_i32,   [TP_UINT32] = way##_u32, [TP_INT64] = way##_i64,  \
     [TP_UINT64] = way##_u64, [TP_FLOAT32] = way##_f32, [TP_FLOAT64] = way##_f64}
const tp_sort_kernels TP_CAP(tp_sort) = {
    .lines_32 = sort_lines_32, .lines_64 = sort_lines_64, .to_words = BY_DTYPE(to), .from_words = BY_DTYPE(from)};
