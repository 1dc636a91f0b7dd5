/* order_loops.c: the loops behind topk, searchsorted, flip and sort's keys, compiled once per capability.
 *
 * Elements become keys whose unsigned order is theirs: NaN is greater than all, -0 equals 0. A 32-bit element has a key
 * of 32 bits, so a radix sort finds nothing to do in the upper half. */
#include "cpu/kernels.h"

#include <string.h>

/* ---- keys ---- */

static void keys_float(const void *in_, int64_t n, uint64_t flip, uint64_t *keys) {
    const float *in = in_;
    for (int64_t i = 0; i < n; i++) {
        float v = in[i] == 0 ? 0.0f : in[i];
        uint32_t bits;
        memcpy(&bits, &v, 4);
        uint64_t key = bits ^ ((uint32_t)((int32_t)bits >> 31) | 0x80000000u);
        keys[i] = (v == v ? key : UINT64_MAX) ^ flip;
    }
}
static void keys_double(const void *in_, int64_t n, uint64_t flip, uint64_t *keys) {
    const double *in = in_;
    for (int64_t i = 0; i < n; i++) {
        double v = in[i] == 0 ? 0.0 : in[i];
        uint64_t bits;
        memcpy(&bits, &v, 8);
        uint64_t key = bits ^ ((0 - (bits >> 63)) | UINT64_C(1) << 63);
        keys[i] = (v == v ? key : UINT64_MAX) ^ flip;
    }
}
#define KEYS(name, T, U, sign)                                                             \
    static void keys_##name(const void *in_, int64_t n, uint64_t flip, uint64_t *keys) {   \
        const T *in = in_;                                                                 \
        for (int64_t i = 0; i < n; i++) keys[i] = (uint64_t)((U)in[i] ^ (U)(sign)) ^ flip; \
    }
static void keys_bool(const void *in_, int64_t n, uint64_t flip, uint64_t *keys) {
    const uint8_t *in = in_;
    for (int64_t i = 0; i < n; i++) keys[i] = (uint64_t)(in[i] != 0) ^ flip;
}
KEYS(u8, uint8_t, uint8_t, 0)
KEYS(u16, uint16_t, uint16_t, 0)
KEYS(u32, uint32_t, uint32_t, 0)
KEYS(u64, uint64_t, uint64_t, 0)
KEYS(i8, int8_t, uint8_t, 0x80)
KEYS(i16, int16_t, uint16_t, 0x8000)
KEYS(i32, int32_t, uint32_t, 0x80000000u)
KEYS(i64, int64_t, uint64_t, UINT64_C(1) << 63)

static bool any_below(const uint64_t *keys, int64_t n, uint64_t bound) {
    uint64_t least = UINT64_MAX;
    for (int64_t i = 0; i < n; i++) least = keys[i] < least ? keys[i] : least;
    return least < bound;
}

/* ---- searchsorted ---- */

/* Several values go through the sequence side by side: the next step of one need not wait for another's memory. */
#define LANES 16
#define SEARCH(name, T, RIGHT)                                                                             \
    static void name(const void *sequence_, int64_t n, const void *values_, int64_t count, int64_t *out) { \
        const T *sequence = sequence_, *values = values_;                                                  \
        if (n == 0) memset(out, 0, (size_t)count * sizeof *out);                                           \
        for (int64_t i = 0; n && i < count; i += LANES) {                                                  \
            int64_t m = count - i < LANES ? count - i : LANES;                                             \
            T v[LANES];                                                                                    \
            uint32_t at[LANES] = {0};                                                                      \
            for (int64_t j = 0; j < LANES; j++) v[j] = values[i + (j < m ? j : 0)];                        \
            for (int64_t left = n; left > 1; left -= left / 2) {                                           \
                uint32_t half = (uint32_t)(left / 2);                                                      \
                for (int j = 0; j < LANES; j++)                                                            \
                    at[j] += half & (0u - (uint32_t)RIGHT(sequence[at[j] + half - 1], v[j]));              \
            }                                                                                              \
            for (int j = 0; j < m; j++) out[i + j] = (int64_t)at[j] + RIGHT(sequence[at[j]], v[j]);        \
        }                                                                                                  \
    }
/* Whether the place is right of an element: NaN is right of all numbers. */
#define FLOAT_LEFT(s, v) (((s) < (v)) | (((v) != (v)) & ((s) == (s))))
#define FLOAT_RIGHT(s, v) (((s) <= (v)) | ((v) != (v)))
#define WHOLE_LEFT(s, v) ((s) < (v))
#define WHOLE_RIGHT(s, v) ((s) <= (v))
#define SEARCH_BOTH(suffix, T, kind)      \
    SEARCH(left_##suffix, T, kind##_LEFT) \
    SEARCH(right_##suffix, T, kind##_RIGHT)
SEARCH_BOTH(f32, float, FLOAT)
SEARCH_BOTH(f64, double, FLOAT)
SEARCH_BOTH(i32, int32_t, WHOLE)
SEARCH_BOTH(i64, int64_t, WHOLE)
SEARCH_BOTH(u64, uint64_t, WHOLE)

/* ---- flip ---- */

#define REVERSE(bits, T)                                                 \
    static void reverse_##bits(void *to_, const void *last, int64_t n) { \
        T *restrict to = to_;                                            \
        const T *restrict from = (const T *)last - (n - 1);              \
        for (int64_t i = 0; i < n; i++) to[i] = from[n - 1 - i];         \
    }
REVERSE(8, uint8_t)
REVERSE(16, uint16_t)
REVERSE(32, uint32_t)
REVERSE(64, uint64_t)
REVERSE(128, tp_complex128)

const tp_order_kernels TP_CAP(tp_order) = {
    .keys = {[TP_BOOL] = keys_bool,
             [TP_UINT8] = keys_u8,
             [TP_UINT16] = keys_u16,
             [TP_UINT32] = keys_u32,
             [TP_UINT64] = keys_u64,
             [TP_INT8] = keys_i8,
             [TP_INT16] = keys_i16,
             [TP_INT32] = keys_i32,
             [TP_INT64] = keys_i64,
             [TP_FLOAT32] = keys_float,
             [TP_FLOAT64] = keys_double},
    .any_below = any_below,
    .reverse = {reverse_8, reverse_16, reverse_32, reverse_64, reverse_128},
    .left = {[TP_FLOAT32] = left_f32,
             [TP_FLOAT64] = left_f64,
             [TP_INT32] = left_i32,
             [TP_INT64] = left_i64,
             [TP_UINT64] = left_u64},
    .right = {[TP_FLOAT32] = right_f32,
              [TP_FLOAT64] = right_f64,
              [TP_INT32] = right_i32,
              [TP_INT64] = right_i64,
              [TP_UINT64] = right_u64},
};
