/* loop.h: what the generated inner loops are written in terms of (C, for the CPU).
 *
 * A loop reads its parameters once per call and knows nothing of tensors; see tp_loop_fn in expressions.h. The
 * functions that read numbers (tp_scalar_int, ...) are core/scalar.h's in the tree, and generated.h's outside. */
#ifndef TENSORPY_LOOP_H
#define TENSORPY_LOOP_H

#include "tensorpy/math.h"
#include "tensorpy/expressions.h"

#include <string.h>

#ifndef TP_INLINE
#define TP_INLINE static inline __attribute__((always_inline, unused))
#endif
#ifndef TP_UNUSED
#define TP_UNUSED __attribute__((unused))
#endif

/* No iteration depends on an earlier one: an output is an input exactly, or does not overlap it. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wpass-failed" /* it need not succeed */
#define TP_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TP_IVDEP _Pragma("GCC ivdep")
#endif

/* In a loop's body: keeps the vectoriser away from it. */
#define TP_ONE_BY_ONE __asm__ volatile("")

/* Element i of an operand with any stride. */
#define TP_AT(type, data, strides, k) (*(const type *)((data)[k] + i * (strides)[k]))
#define TP_TO(type, data, strides, k) ((type *)((data)[k] + i * (strides)[k]))

TP_INLINE bool tp_param_is_none(const tp_value *v) { return v->tag == TP_NONE || (v->tag == TP_SCALAR && !v->scalar); }
TP_INLINE bool tp_param_is_str(const tp_value *v, const char *text) {
    return v->tag == TP_STR && v->str && !strcmp(v->str, text);
}

/* A parameter as the loop's type; None reads as 0, which no expression uses without an `is None` before. */
#define TP_PARAM_SCALAR(suffix, convert)                                  \
    TP_INLINE tp_##suffix tp_param_scalar_##suffix(const tp_value *v) {   \
        return tp_param_is_none(v) ? 0 : (tp_##suffix)convert(v->scalar); \
    }
TP_PARAM_SCALAR(bool, tp_scalar_bool)
TP_PARAM_SCALAR(u8, tp_scalar_int)
TP_PARAM_SCALAR(u16, tp_scalar_int)
TP_PARAM_SCALAR(u32, tp_scalar_int)
TP_PARAM_SCALAR(u64, tp_scalar_uint)
TP_PARAM_SCALAR(i8, tp_scalar_int)
TP_PARAM_SCALAR(i16, tp_scalar_int)
TP_PARAM_SCALAR(i32, tp_scalar_int)
TP_PARAM_SCALAR(i64, tp_scalar_int)
TP_PARAM_SCALAR(f32, tp_scalar_double)
TP_PARAM_SCALAR(f64, tp_scalar_double)
TP_PARAM_SCALAR(c64, tp_scalar_complex)
TP_PARAM_SCALAR(c128, tp_scalar_complex)
#undef TP_PARAM_SCALAR

TP_INLINE tp_f32 tp_param_float_f32(const tp_value *v) { return tp_param_is_none(v) ? 0 : (tp_f32)v->f; }
TP_INLINE tp_f64 tp_param_float_f64(const tp_value *v) { return tp_param_is_none(v) ? 0 : v->f; }
TP_INLINE tp_i64 tp_param_int_i64(const tp_value *v) { return tp_param_is_none(v) ? 0 : v->i; }
TP_INLINE bool tp_param_bool_bool(const tp_value *v) { return !tp_param_is_none(v) && v->b; }

/* Note [Blocks]
 * A vector math function may differ from its scalar form in the last bit, so an element's result would depend on where
 * the work was split. Loops over expensive functions therefore run only on whole blocks, which have no scalar
 * remainder; what is left over, or not contiguous, is gathered into a block, filled up with its last element. */
#define TP_BLOCK 32

TP_UNUSED static void tp_block_gather(void *block, int64_t size, const char *from, int64_t stride, int64_t m) {
    char *to = block;
    for (int64_t i = 0; i < m; i++, from += stride, to += size) {
        if (size == 4) memcpy(to, from, 4);
        else if (size == 8) memcpy(to, from, 8);
        else memcpy(to, from, (size_t)size);
    }
    for (int64_t i = m; i < TP_BLOCK; i++, to += size) memcpy(to, to - size, (size_t)size);
}
/* Where a block's elements of an operand lie side by side: in place, or gathered. One that is a number is gathered for
 * the first block. */
TP_UNUSED static const void *tp_block_of(void *block, int64_t size, const char *from, int64_t stride, int64_t m,
                                         bool first) {
    if (stride == size && m == TP_BLOCK) return from;
    if (stride || first) tp_block_gather(block, size, from, stride, m);
    return block;
}
TP_UNUSED static void tp_block_scatter(const void *block, int64_t size, char *to, int64_t stride, int64_t m) {
    const char *from = block;
    for (int64_t i = 0; i < m; i++, from += size, to += stride) {
        if (size == 4) memcpy(to, from, 4);
        else if (size == 8) memcpy(to, from, 8);
        else memcpy(to, from, (size_t)size);
    }
}

#endif
