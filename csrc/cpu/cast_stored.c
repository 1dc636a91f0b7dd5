/* cast_stored.c: which loop converts between two dtypes, and conversion from and to complex32 and the 8-bit floats.
 *
 * Each of the latter has two loops, from and to the one that it is computed in, float32 or complex64. Any other
 * conversion goes through that, a block at a time: a pair of dtypes has a function, since a loop is given no dtypes,
 * but none has a loop of its own. A float is rounded once, but a double twice, as in PyTorch.
 *
 * A small library (codegen/only.py) of what has none of these dtypes is TP_WITHOUT_STORED. */
#include "cpu/kernels.h"
#include "cpu/loop.h"
#include "cpu/run.h"

#include <stdalign.h>

#define BLOCK 256

#ifndef TP_WITHOUT_STORED
/* ---- from and to what is computed in ---- */

TP_INLINE tp_complex64 complex32_to_complex64(tp_complex32 v) {
    tp_complex64 wide;
    __real__ wide = tp_half_to_float(v.real);
    __imag__ wide = tp_half_to_float(v.imag);
    return wide;
}
TP_INLINE tp_complex32 complex64_to_complex32(tp_complex64 v) {
    return (tp_complex32){tp_float_to_half(__real__ v), tp_float_to_half(__imag__ v)};
}

#define CONVERT(name, to_type, from_type, convert)                                                         \
    static void name(char *const *data, const int64_t *strides, int64_t n, const void *params TP_UNUSED) { \
        if (strides[0] == sizeof(to_type) && strides[1] == sizeof(from_type)) {                            \
            to_type *to = (to_type *)data[0];                                                              \
            const from_type *from = (const from_type *)data[1];                                            \
            for (int64_t i = 0; i < n; i++) to[i] = convert(from[i]);                                      \
        } else {                                                                                           \
            TP_OPERAND(data, strides, 0)                                                                   \
            TP_OPERAND(data, strides, 1)                                                                   \
            for (int64_t i = 0; i < n; i++) *TP_TO(to_type, 0) = convert(TP_AT(from_type, 1));             \
        }                                                                                                  \
    }
#define BOTH(id, type, wide, widen, narrow) \
    CONVERT(widen_##id, wide, type, widen)  \
    CONVERT(narrow_##id, type, wide, narrow)
BOTH(COMPLEX32, tp_complex32, tp_complex64, complex32_to_complex64, complex64_to_complex32)
BOTH(FLOAT8_E4M3FN, tp_e4m3fn, float, tp_e4m3fn_to_float, tp_float_to_e4m3fn)
BOTH(FLOAT8_E5M2, tp_e5m2, float, tp_e5m2_to_float, tp_float_to_e5m2)
BOTH(FLOAT8_E4M3FNUZ, tp_e4m3fnuz, float, tp_e4m3fnuz_to_float, tp_float_to_e4m3fnuz)
BOTH(FLOAT8_E5M2FNUZ, tp_e5m2fnuz, float, tp_e5m2fnuz_to_float, tp_float_to_e5m2fnuz)
BOTH(FLOAT8_E8M0FNU, tp_e8m0fnu, float, tp_e8m0fnu_to_float, tp_float_to_e8m0fnu)

#define WIDEN(id, name, ctype, category) [TP_##id] = widen_##id,
#define NARROW(id, name, ctype, category) [TP_##id] = narrow_##id,
static const tp_loop_fn widening[TP_NUM_DTYPES] = {TP_FORALL_STORED_DTYPES(WIDEN)};
static const tp_loop_fn narrowing[TP_NUM_DTYPES] = {TP_FORALL_STORED_DTYPES(NARROW)};

/* ---- the way of a pair ---- */

typedef struct {
    tp_dtype dtype[4]; /* from, what it is computed in, what the other is computed in, to: each once */
    int n;
} way;

static void add(way *w, tp_dtype d) {
    if (w->n == 0 || w->dtype[w->n - 1] != d) w->dtype[w->n++] = d;
}

static way way_of(tp_dtype to, tp_dtype from) {
    way w = {.n = 0};
    add(&w, from);
    if (tp_is_stored_dtype(from)) add(&w, tp_compute_dtype(from));
    if (tp_is_stored_dtype(to)) add(&w, tp_compute_dtype(to));
    add(&w, to);
    return w;
}

static tp_loop_fn step_of(tp_dtype from, tp_dtype to) {
    if (tp_is_stored_dtype(from)) return widening[from];
    return tp_is_stored_dtype(to) ? narrowing[to] : (*tp_cpu.cast)[to][from];
}

static void convert(tp_dtype to, tp_dtype from, char *const *data, const int64_t *strides, int64_t n) {
    alignas(16) char blocks[2][BLOCK * sizeof(tp_complex128)];
    way w = way_of(to, from);
    int64_t block = w.n == 2 ? n : BLOCK;
    for (int64_t at = 0; at < n; at += block) {
        int64_t count = n - at < block ? n - at : block, stride = strides[1];
        char *source = data[1] + at * strides[1];
        for (int i = 1; i < w.n; i++) {
            bool last = i == w.n - 1;
            char *const pair[] = {last ? data[0] + at * strides[0] : blocks[i & 1], source};
            const int64_t steps[] = {last ? strides[0] : tp_itemsize(w.dtype[i]), stride};
            step_of(w.dtype[i - 1], w.dtype[i])(pair, steps, count, NULL);
            source = pair[0];
            stride = steps[0];
        }
    }
}

/* ---- a function for each pair ---- */

#define PAIR(to, from)                                                                      \
    static void from_##from##_to_##to(char *const *data, const int64_t *strides, int64_t n, \
                                      const void *params TP_UNUSED) {                       \
        convert(TP_##to, TP_##from, data, strides, n);                                      \
    }

#define TO_COMPLEX32(id, name, ctype, category) PAIR(COMPLEX32, id)
#define FROM_COMPLEX32(id, name, ctype, category) PAIR(id, COMPLEX32)
#define TO_COMPLEX32_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_COMPLEX32,
#define FROM_COMPLEX32_ENTRY(id, name, ctype, category) [TP_##id] = from_COMPLEX32_to_##id,
#define TO_FLOAT8_E4M3FN(id, name, ctype, category) PAIR(FLOAT8_E4M3FN, id)
#define FROM_FLOAT8_E4M3FN(id, name, ctype, category) PAIR(id, FLOAT8_E4M3FN)
#define TO_FLOAT8_E4M3FN_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_FLOAT8_E4M3FN,
#define FROM_FLOAT8_E4M3FN_ENTRY(id, name, ctype, category) [TP_##id] = from_FLOAT8_E4M3FN_to_##id,
#define TO_FLOAT8_E5M2(id, name, ctype, category) PAIR(FLOAT8_E5M2, id)
#define FROM_FLOAT8_E5M2(id, name, ctype, category) PAIR(id, FLOAT8_E5M2)
#define TO_FLOAT8_E5M2_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_FLOAT8_E5M2,
#define FROM_FLOAT8_E5M2_ENTRY(id, name, ctype, category) [TP_##id] = from_FLOAT8_E5M2_to_##id,
#define TO_FLOAT8_E4M3FNUZ(id, name, ctype, category) PAIR(FLOAT8_E4M3FNUZ, id)
#define FROM_FLOAT8_E4M3FNUZ(id, name, ctype, category) PAIR(id, FLOAT8_E4M3FNUZ)
#define TO_FLOAT8_E4M3FNUZ_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_FLOAT8_E4M3FNUZ,
#define FROM_FLOAT8_E4M3FNUZ_ENTRY(id, name, ctype, category) [TP_##id] = from_FLOAT8_E4M3FNUZ_to_##id,
#define TO_FLOAT8_E5M2FNUZ(id, name, ctype, category) PAIR(FLOAT8_E5M2FNUZ, id)
#define FROM_FLOAT8_E5M2FNUZ(id, name, ctype, category) PAIR(id, FLOAT8_E5M2FNUZ)
#define TO_FLOAT8_E5M2FNUZ_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_FLOAT8_E5M2FNUZ,
#define FROM_FLOAT8_E5M2FNUZ_ENTRY(id, name, ctype, category) [TP_##id] = from_FLOAT8_E5M2FNUZ_to_##id,
#define TO_FLOAT8_E8M0FNU(id, name, ctype, category) PAIR(FLOAT8_E8M0FNU, id)
#define FROM_FLOAT8_E8M0FNU(id, name, ctype, category) PAIR(id, FLOAT8_E8M0FNU)
#define TO_FLOAT8_E8M0FNU_ENTRY(id, name, ctype, category) [TP_##id] = from_##id##_to_FLOAT8_E8M0FNU,
#define FROM_FLOAT8_E8M0FNU_ENTRY(id, name, ctype, category) [TP_##id] = from_FLOAT8_E8M0FNU_to_##id,

TP_FORALL_DTYPES(TO_COMPLEX32)
TP_FORALL_COMPUTED_DTYPES(FROM_COMPLEX32)
TP_FORALL_DTYPES(TO_FLOAT8_E4M3FN)
TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E4M3FN)
TP_FORALL_DTYPES(TO_FLOAT8_E5M2)
TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E5M2)
TP_FORALL_DTYPES(TO_FLOAT8_E4M3FNUZ)
TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E4M3FNUZ)
TP_FORALL_DTYPES(TO_FLOAT8_E5M2FNUZ)
TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E5M2FNUZ)
TP_FORALL_DTYPES(TO_FLOAT8_E8M0FNU)
TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E8M0FNU)

static const tp_loop_fn to_stored[][TP_NUM_DTYPES] = {
    {TP_FORALL_DTYPES(TO_COMPLEX32_ENTRY)},       {TP_FORALL_DTYPES(TO_FLOAT8_E4M3FN_ENTRY)},
    {TP_FORALL_DTYPES(TO_FLOAT8_E5M2_ENTRY)},     {TP_FORALL_DTYPES(TO_FLOAT8_E4M3FNUZ_ENTRY)},
    {TP_FORALL_DTYPES(TO_FLOAT8_E5M2FNUZ_ENTRY)}, {TP_FORALL_DTYPES(TO_FLOAT8_E8M0FNU_ENTRY)},
};
static const tp_loop_fn from_stored[][TP_NUM_DTYPES] = {
    {TP_FORALL_COMPUTED_DTYPES(FROM_COMPLEX32_ENTRY)},       {TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E4M3FN_ENTRY)},
    {TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E5M2_ENTRY)},     {TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E4M3FNUZ_ENTRY)},
    {TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E5M2FNUZ_ENTRY)}, {TP_FORALL_COMPUTED_DTYPES(FROM_FLOAT8_E8M0FNU_ENTRY)},
};

static tp_loop_fn stored_cast(tp_dtype from, tp_dtype to) {
    return tp_is_stored_dtype(to) ? to_stored[to - TP_COMPLEX32][from] : from_stored[from - TP_COMPLEX32][to];
}

#else
static tp_loop_fn stored_cast(tp_dtype from TP_UNUSED, tp_dtype to TP_UNUSED) { return NULL; }
#endif

/* ---- what the iterator asks for ---- */

/* A copy without conversion only moves bytes, which keeps the bits of a NaN. */
static tp_dtype moved_as(tp_dtype d) {
    switch (tp_itemsize(d)) {
    case 1: return TP_UINT8;
    case 2: return TP_UINT16;
    case 4: return TP_UINT32;
    case 8: return TP_UINT64;
    default: return TP_COMPLEX128;
    }
}

tp_loop_fn tp_cast_loop(tp_dtype from, tp_dtype to) {
    if (from == to) from = to = moved_as(to);
    if (tp_unlikely(tp_is_stored_dtype(from) || tp_is_stored_dtype(to))) return stored_cast(from, to);
    return (*tp_cpu.cast)[to][from];
}
