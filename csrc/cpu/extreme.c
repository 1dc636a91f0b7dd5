/* extreme.c: largest and smallest elements, and where they are, compiled once per capability.
 *
 * One rule makes all of them: x replaces the best so far, b, if !(x <= b) and b is a number. So a NaN replaces any
 * number and nothing replaces a NaN: the first NaN wins, and among equals the first element does. Minima turn the
 * comparison round.
 *
 * The kernels that look for a place keep, beside each lane of values, a lane of numbers of vectors (or of rows), of the
 * same width; they are turned into places at the end of a run. A chunk has few enough vectors for int8 lanes. */
#include "cpu/kernels.h"

#include <float.h>
#include <string.h>

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define UNROLL _Pragma("GCC unroll 16")
#if defined(__AVX512F__) /* worked on side by side, as far as there are registers */
#define VECTORS 8
#else
#define VECTORS 4
#endif
#define COLUMNS 512 /* of rows, worked on together */
#define FEW_ROWS 64 /* so many fit an int8 */
#define MANY_ROWS 256

/* a where the mask is set, else b: compilers know this form and blend. */
#define SELECT(M, mask, a, b) ((__typeof__(b))(((M)(a) & (mask)) | ((M)(b) & ~(mask))))

/* T: the elements; I: signed integers as wide; le: what an element that does not replace b stands to it in. */
#define EXTREME(name, T, I, le, worst)                                                                                \
    enum { name##_PER = VECTOR_BYTES / sizeof(T), name##_CHUNK = name##_PER * (sizeof(T) == 1 ? 64 : 4096) };         \
    typedef T name##_v __attribute__((vector_size(VECTOR_BYTES)));                                                    \
    typedef I name##_i __attribute__((vector_size(VECTOR_BYTES)));                                                    \
    typedef T name##_u __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(T)), may_alias));                     \
    typedef struct {                                                                                                  \
        T value;                                                                                                      \
        int64_t index; /* -1: nothing yet */                                                                          \
    } name##_place;                                                                                                   \
                                                                                                                      \
    TP_INLINE bool name##_replaces(T x, T b) { return !(x le b) & (b == b); }                                         \
    TP_INLINE T name##_pick(T b, T x) { return name##_replaces(x, b) ? x : b; }                                       \
    TP_INLINE name##_i name##_mask(name##_v x, name##_v b) { return ~(x le b) & (b == b); }                           \
    TP_INLINE name##_v name##_pick_v(name##_v b, name##_v x) {                                                        \
        name##_i mask = name##_mask(x, b);                                                                            \
        return SELECT(name##_i, mask, x, b);                                                                          \
    }                                                                                                                 \
    /* The best of a vector's lanes. */                                                                               \
    TP_INLINE T name##_of_lanes(name##_v v) {                                                                         \
        T lanes[name##_PER];                                                                                          \
        *(name##_u *)lanes = v;                                                                                       \
        UNROLL for (int half = name##_PER / 2; half; half /= 2) for (int k = 0; k < half; k++) lanes[k] =             \
            name##_pick(lanes[k], lanes[k + half]);                                                                   \
        return lanes[0];                                                                                              \
    }                                                                                                                 \
                                                                                                                      \
    /* ---- values ---- */                                                                                            \
    static void name##_init(void *acc, int64_t n) {                                                                   \
        for (int64_t i = 0; i < n; i++) ((T *)acc)[i] = worst;                                                        \
    }                                                                                                                 \
    TP_INLINE T name##_of_run(T best, const T *p, int64_t n) {                                                        \
        if (n < name##_PER) {                                                                                         \
            for (int64_t i = 0; i < n; i++) best = name##_pick(best, p[i]);                                           \
            return best;                                                                                              \
        }                                                                                                             \
        const name##_u *v = (const name##_u *)p;                                                                      \
        int64_t count = n / name##_PER, i = 0;                                                                        \
        name##_v b = *(const name##_u *)(p + n - name##_PER); /* may overlap others, which does no harm */            \
        if (count >= 2 * VECTORS) {                                                                                   \
            name##_v side[VECTORS];                                                                                   \
            UNROLL for (int k = 0; k < VECTORS; k++) side[k] = v[k];                                                  \
            for (i = VECTORS; i + VECTORS <= count; i += VECTORS) {                                                   \
                UNROLL for (int k = 0; k < VECTORS; k++) side[k] = name##_pick_v(side[k], v[i + k]);                  \
            }                                                                                                         \
            UNROLL for (int k = 0; k < VECTORS; k++) b = name##_pick_v(b, side[k]);                                   \
        }                                                                                                             \
        for (; i < count; i++) b = name##_pick_v(b, v[i]);                                                            \
        return name##_pick(best, name##_of_lanes(b));                                                                 \
    }                                                                                                                 \
    static void name##_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,           \
                                 int64_t length, int64_t index) {                                                     \
        (void)index;                                                                                                  \
        T *acc = acc_;                                                                                                \
        for (int64_t run = 0; run < n; run++, in += stride) {                                                         \
            if (run_stride == sizeof(T)) {                                                                            \
                acc[run] = name##_of_run(acc[run], (const T *)in, length);                                            \
                continue;                                                                                             \
            }                                                                                                         \
            T best = acc[run];                                                                                        \
            for (int64_t i = 0; i < length; i++) best = name##_pick(best, *(const T *)(in + i * run_stride));         \
            acc[run] = best;                                                                                          \
        }                                                                                                             \
    }                                                                                                                 \
    static void name##_combine(void *into_, const void *from_, int64_t n) {                                           \
        T *into = into_;                                                                                              \
        const T *from = from_;                                                                                        \
        for (int64_t i = 0; i < n; i++) into[i] = name##_pick(into[i], from[i]);                                      \
    }                                                                                                                 \
    static void name##_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,           \
                                 int64_t rows, int64_t index) {                                                       \
        (void)index;                                                                                                  \
        T *acc = acc_;                                                                                                \
        int64_t row = 0;                                                                                              \
        for (; stride == sizeof(T) && row + 4 <= rows; row += 4, in += 4 * row_stride) {                              \
            const T *a = (const T *)in, *b = (const T *)(in + row_stride);                                            \
            const T *c = (const T *)(in + 2 * row_stride), *d = (const T *)(in + 3 * row_stride);                     \
            int64_t i = 0;                                                                                            \
            for (; i + name##_PER <= n; i += name##_PER) {                                                            \
                name##_v best = *(name##_u *)(acc + i);                                                               \
                best = name##_pick_v(best, *(const name##_u *)(a + i));                                               \
                best = name##_pick_v(best, *(const name##_u *)(b + i));                                               \
                best = name##_pick_v(best, *(const name##_u *)(c + i));                                               \
                *(name##_u *)(acc + i) = name##_pick_v(best, *(const name##_u *)(d + i));                             \
            }                                                                                                         \
            for (; i < n; i++)                                                                                        \
                acc[i] = name##_pick(name##_pick(name##_pick(name##_pick(acc[i], a[i]), b[i]), c[i]), d[i]);          \
        }                                                                                                             \
        for (; row < rows; row++, in += row_stride)                                                                   \
            for (int64_t i = 0; i < n; i++) acc[i] = name##_pick(acc[i], *(const T *)(in + i * stride));              \
    }                                                                                                                 \
    static void name##_finish(void *out, const void *acc, int64_t n, int64_t count, const void *params) {             \
        (void)count;                                                                                                  \
        (void)params;                                                                                                 \
        memcpy(out, acc, (size_t)n * sizeof(T));                                                                      \
    }                                                                                                                 \
                                                                                                                      \
    /* ---- places ---- */                                                                                            \
    static void name##_place_init(void *acc, int64_t n) {                                                             \
        for (int64_t i = 0; i < n; i++) ((name##_place *)acc)[i] = (name##_place){worst, -1};                         \
    }                                                                                                                 \
    TP_INLINE void name##_offer(name##_place *acc, T value, int64_t index) {                                          \
        if (acc->index >= 0 && !name##_replaces(value, acc->value)) return;                                           \
        acc->value = value;                                                                                           \
        acc->index = index;                                                                                           \
    }                                                                                                                 \
    TP_INLINE void name##_chunk(name##_place *acc, const T *p, int64_t n, int64_t index) {                            \
        const name##_u *v = (const name##_u *)p;                                                                      \
        int64_t count = n / name##_PER, i = 1;                                                                        \
        if (count) {                                                                                                  \
            name##_v b = v[0];                                                                                        \
            name##_i at = {0};                                                                                        \
            if (count >= 2 * VECTORS) {                                                                               \
                name##_v side[VECTORS];                                                                               \
                name##_i place[VECTORS], now = {0};                                                                   \
                UNROLL for (int k = 0; k < VECTORS; k++) {                                                            \
                    side[k] = v[k];                                                                                   \
                    place[k] = now;                                                                                   \
                }                                                                                                     \
                for (i = VECTORS; i + VECTORS <= count; i += VECTORS) {                                               \
                    now += VECTORS;                                                                                   \
                    UNROLL for (int k = 0; k < VECTORS; k++) {                                                        \
                        name##_v x = v[i + k];                                                                        \
                        name##_i mask = name##_mask(x, side[k]);                                                      \
                        side[k] = SELECT(name##_i, mask, x, side[k]);                                                 \
                        place[k] = SELECT(name##_i, mask, now, place[k]);                                             \
                    }                                                                                                 \
                }                                                                                                     \
                b = side[0];                                                                                          \
                at = place[0];                                                                                        \
                UNROLL for (int k = 1; k < VECTORS; k++) {                                                            \
                    place[k] += (I)k;                                                                                 \
                    name##_i same = (side[k] == b) | ((side[k] != side[k]) & (b != b));                               \
                    name##_i mask = name##_mask(side[k], b) | (same & (place[k] < at));                               \
                    b = SELECT(name##_i, mask, side[k], b);                                                           \
                    at = SELECT(name##_i, mask, place[k], at);                                                        \
                }                                                                                                     \
            }                                                                                                         \
            for (; i < count; i++) {                                                                                  \
                name##_v x = v[i];                                                                                    \
                name##_i mask = name##_mask(x, b);                                                                    \
                b = SELECT(name##_i, mask, x, b);                                                                     \
                at = SELECT(name##_i, mask, (name##_i){0} + (I)i, at);                                                \
            }                                                                                                         \
            T lanes[name##_PER], best = name##_of_lanes(b);                                                           \
            I numbers[name##_PER];                                                                                    \
            int32_t places[name##_PER];                                                                               \
            memcpy(lanes, &b, sizeof b);                                                                              \
            memcpy(numbers, &at, sizeof at);                                                                          \
            for (int k = 0; k < name##_PER; k++) {                                                                    \
                bool found = lanes[k] == best || (lanes[k] != lanes[k] && best != best);                              \
                places[k] = found ? (int32_t)numbers[k] * name##_PER + k : INT32_MAX;                                 \
            }                                                                                                         \
            int32_t first = INT32_MAX;                                                                                \
            for (int k = 0; k < name##_PER; k++) first = places[k] < first ? places[k] : first;                       \
            name##_offer(acc, best, index + first);                                                                   \
        }                                                                                                             \
        for (i = count * name##_PER; i < n; i++) name##_offer(acc, p[i], index + i);                                  \
    }                                                                                                                 \
    static void name##_place_fold_runs(void *acc_, int64_t n, const char *in, int64_t stride, int64_t run_stride,     \
                                       int64_t length, int64_t index) {                                               \
        name##_place *acc = acc_;                                                                                     \
        for (int64_t run = 0; run < n; run++, in += stride) {                                                         \
            if (run_stride == sizeof(T)) {                                                                            \
                for (int64_t i = 0; i < length; i += name##_CHUNK)                                                    \
                    name##_chunk(acc + run, (const T *)in + i, length - i < name##_CHUNK ? length - i : name##_CHUNK, \
                                 index + i);                                                                          \
                continue;                                                                                             \
            }                                                                                                         \
            for (int64_t i = 0; i < length; i++)                                                                      \
                name##_offer(acc + run, *(const T *)(in + i * run_stride), index + i);                                \
        }                                                                                                             \
    }                                                                                                                 \
    /* At most COLUMNS columns and FEW_ROWS or MANY_ROWS rows. */                                                     \
    static void name##_columns(name##_place *acc, int64_t n, const char *in, int64_t row_stride, int64_t rows,        \
                               int64_t index) {                                                                       \
        T best[COLUMNS];                                                                                              \
        I at[COLUMNS];                                                                                                \
        memcpy(best, in, (size_t)n * sizeof(T));                                                                      \
        memset(at, 0, (size_t)n * sizeof(I));                                                                         \
        int64_t row = 1;                                                                                              \
        for (; row + 4 <= rows; row += 4) {                                                                           \
            const T *r0 = (const T *)(in + row * row_stride), *r1 = (const T *)(in + (row + 1) * row_stride);         \
            const T *r2 = (const T *)(in + (row + 2) * row_stride), *r3 = (const T *)(in + (row + 3) * row_stride);   \
            int64_t i = 0;                                                                                            \
            for (; i + name##_PER <= n; i += name##_PER) {                                                            \
                name##_v b = *(name##_u *)(best + i);                                                                 \
                name##_i a, mask;                                                                                     \
                memcpy(&a, at + i, sizeof a);                                                                         \
                name##_v x[4] = {*(const name##_u *)(r0 + i), *(const name##_u *)(r1 + i),                            \
                                 *(const name##_u *)(r2 + i), *(const name##_u *)(r3 + i)};                           \
                UNROLL for (int k = 0; k < 4; k++) {                                                                  \
                    mask = name##_mask(x[k], b);                                                                      \
                    b = SELECT(name##_i, mask, x[k], b);                                                              \
                    a = SELECT(name##_i, mask, (name##_i){0} + (I)(row + k), a);                                      \
                }                                                                                                     \
                *(name##_u *)(best + i) = b;                                                                          \
                memcpy(at + i, &a, sizeof a);                                                                         \
            }                                                                                                         \
            for (; i < n; i++) {                                                                                      \
                const T x[4] = {r0[i], r1[i], r2[i], r3[i]};                                                          \
                for (int k = 0; k < 4; k++) {                                                                         \
                    at[i] = name##_replaces(x[k], best[i]) ? (I)(row + k) : at[i];                                    \
                    best[i] = name##_pick(best[i], x[k]);                                                             \
                }                                                                                                     \
            }                                                                                                         \
        }                                                                                                             \
        for (; row < rows; row++) {                                                                                   \
            const T *r = (const T *)(in + row * row_stride);                                                          \
            for (int64_t i = 0; i < n; i++) {                                                                         \
                at[i] = name##_replaces(r[i], best[i]) ? (I)row : at[i];                                              \
                best[i] = name##_pick(best[i], r[i]);                                                                 \
            }                                                                                                         \
        }                                                                                                             \
        for (int64_t i = 0; i < n; i++) name##_offer(acc + i, best[i], index + at[i]);                                \
    }                                                                                                                 \
    static void name##_place_fold_rows(void *acc_, int64_t n, const char *in, int64_t stride, int64_t row_stride,     \
                                       int64_t rows, int64_t index) {                                                 \
        name##_place *acc = acc_;                                                                                     \
        if (stride == sizeof(T) && rows > 1) {                                                                        \
            for (int64_t i = 0; i < n; i += COLUMNS)                                                                  \
                name##_columns(acc + i, n - i < COLUMNS ? n - i : COLUMNS, in + i * stride, row_stride, rows, index); \
            return;                                                                                                   \
        }                                                                                                             \
        for (int64_t row = 0; row < rows; row++, in += row_stride)                                                    \
            for (int64_t i = 0; i < n; i++) name##_offer(acc + i, *(const T *)(in + i * stride), index + row);        \
    }                                                                                                                 \
    static void name##_place_combine(void *into_, const void *from_, int64_t n) {                                     \
        name##_place *into = into_;                                                                                   \
        const name##_place *from = from_;                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                             \
            bool take = from[i].index >= 0 && (into[i].index < 0 || name##_replaces(from[i].value, into[i].value));   \
            into[i].value = take ? from[i].value : into[i].value;                                                     \
            into[i].index = take ? from[i].index : into[i].index;                                                     \
        }                                                                                                             \
    }                                                                                                                 \
    static void name##_place_finish(void *out, const void *acc, int64_t n, int64_t count, const void *params) {       \
        (void)count;                                                                                                  \
        (void)params;                                                                                                 \
        for (int64_t i = 0; i < n; i++) ((int64_t *)out)[i] = ((const name##_place *)acc)[i].index;                   \
    }

#define BOTH(suffix, T, I, lowest, highest) \
    EXTREME(max_##suffix, T, I, <=, lowest) EXTREME(min_##suffix, T, I, >=, highest)

BOTH(u8, uint8_t, int8_t, 0, UINT8_MAX)
BOTH(u16, uint16_t, int16_t, 0, UINT16_MAX)
BOTH(u32, uint32_t, int32_t, 0, UINT32_MAX)
BOTH(u64, uint64_t, int64_t, 0, UINT64_MAX)
BOTH(i8, int8_t, int8_t, INT8_MIN, INT8_MAX)
BOTH(i16, int16_t, int16_t, INT16_MIN, INT16_MAX)
BOTH(i32, int32_t, int32_t, INT32_MIN, INT32_MAX)
BOTH(i64, int64_t, int64_t, INT64_MIN, INT64_MAX)
BOTH(f32, float, int32_t, -__builtin_inff(), __builtin_inff())
BOTH(f64, double, int64_t, -__builtin_inf(), __builtin_inf())

/* ---- the table ---- */

#define VALUE(dtype, name)                                         \
    [dtype] = {.in = dtype,                                        \
               .out = dtype,                                       \
               .size = name##_PER ? VECTOR_BYTES / name##_PER : 0, \
               .init = name##_init,                                \
               .fold_runs = name##_fold_runs,                      \
               .fold_rows = name##_fold_rows,                      \
               .combine = name##_combine,                          \
               .finish = name##_finish}
#define PLACE(dtype, name)                                                     \
    [dtype] = {.in = dtype,                                                    \
               .out = TP_INT64,                                                \
               .size = sizeof(name##_place),                                   \
               .leaf_rows = name##_PER == VECTOR_BYTES ? FEW_ROWS : MANY_ROWS, \
               .indexed = true,                                                \
               .init = name##_place_init,                                      \
               .fold_runs = name##_place_fold_runs,                            \
               .fold_rows = name##_place_fold_rows,                            \
               .combine = name##_place_combine,                                \
               .finish = name##_place_finish}
#define ALL(ROW, which)                                                                          \
    {                                                                                            \
        ROW(TP_BOOL, which##_u8),     ROW(TP_UINT8, which##_u8),    ROW(TP_UINT16, which##_u16), \
        ROW(TP_UINT32, which##_u32),  ROW(TP_UINT64, which##_u64),  ROW(TP_INT8, which##_i8),    \
        ROW(TP_INT16, which##_i16),   ROW(TP_INT32, which##_i32),   ROW(TP_INT64, which##_i64),  \
        ROW(TP_FLOAT32, which##_f32), ROW(TP_FLOAT64, which##_f64),                              \
    }

const tp_extreme_kernels TP_CAP(tp_extreme) = {
    .largest = ALL(VALUE, max),
    .smallest = ALL(VALUE, min),
    .largest_at = ALL(PLACE, max),
    .smallest_at = ALL(PLACE, min),
};
