/* cast.c: conversion between any two dtypes that are computed in, one loop per pair (tp_loop_fn: operand 0 from operand
 * 1); those that are formats of memory only have cpu/cast_stored.c.
 *
 * A float goes to an integer as in C where it fits. Outside, where C has no answer, and for NaN it is what x86's
 * instruction gives, the smallest int64 (int32 for the narrower types), cut to the integer's width: in every loop and
 * on every CPU the same, which is PyTorch's answer on x86. A complex number gives its real part, and true where any
 * part is not zero. */
#include "cpu/kernels.h"
#include "cpu/loop.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define READ_PLAIN(v) (v)
/* Any byte but 0 is true. Compilers make a jump of `!= 0` before a conversion, which random numbers mislead. */
#define READ_BOOL(v) ((int)(((unsigned)(v) + 0xff) >> 8))
#define READ_UINT8 READ_PLAIN
#define READ_UINT16 READ_PLAIN
#define READ_UINT32 READ_PLAIN
#define READ_UINT64 READ_PLAIN
#define READ_INT8 READ_PLAIN
#define READ_INT16 READ_PLAIN
#define READ_INT32 READ_PLAIN
#define READ_INT64 READ_PLAIN
#define READ_FLOAT16 tp_half_to_float
#define READ_BFLOAT16 tp_bfloat_to_float
#define READ_FLOAT32 READ_PLAIN
#define READ_FLOAT64 READ_PLAIN
#define READ_COMPLEX64 READ_PLAIN
#define READ_COMPLEX128 READ_PLAIN

#define WHOLE(name, from, to, low, high) \
    TP_INLINE to name(from v) { return v >= low && v < high ? (to)v : to##_MIN_; }
#define int32_t_MIN_ INT32_MIN
#define int64_t_MIN_ INT64_MIN
WHOLE(f32_to_i32, float, int32_t, -0x1p31f, 0x1p31f)
WHOLE(f64_to_i32, double, int32_t, -0x1p31, 0x1p31)
#if defined(__SSE2__) && defined(__x86_64__) && !defined(__AVX512DQ__)
/* Without vectors of this conversion the instruction itself is best: what does not fit gives INT64_MIN. */
TP_INLINE int64_t f64_to_i64(double v) { return _mm_cvttsd_si64(_mm_set_sd(v)); }
TP_INLINE int64_t f32_to_i64(float v) { return f64_to_i64((double)v); }
#else
WHOLE(f32_to_i64, float, int64_t, -0x1p63f, 0x1p63f)
WHOLE(f64_to_i64, double, int64_t, -0x1p63, 0x1p63)
#endif

/* A negative float goes through int64, so that -1.0 is the largest value; what is too large gives 0. */
TP_INLINE uint64_t f64_to_u64(double v) {
    if (v >= 0x1p63) return v >= 0x1p64 ? 0 : (uint64_t)v;
    return (uint64_t)f64_to_i64(v);
}
TP_INLINE uint64_t f32_to_u64(float v) { return f64_to_u64((double)v); }

/* __real__ of a real number is the number. */
#define TO_INTEGER(type, v, from_float, from_double)    \
    _Generic(__real__(v),                               \
        float: (type)from_float((float)__real__(v)),    \
        double: (type)from_double((double)__real__(v)), \
        default: (type) __real__(v))
#define TO_SMALL(type, v) TO_INTEGER(type, v, f32_to_i32, f64_to_i32)
#define TO_WIDE(type, v) TO_INTEGER(type, v, f32_to_i64, f64_to_i64)

/* ---- 16-bit floats ---- */

#ifdef __AVX2__
/* 8 floats as the upper halves of words, rounded to even; a NaN stays one, with its quiet bit set. */
TP_INLINE __m256i bfloats_of(__m256 v) {
    const __m256i bits = _mm256_castps_si256(v), odd = _mm256_srli_epi32(_mm256_slli_epi32(bits, 15), 31);
    const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 chosen =
        _mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), _mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    return _mm256_srli_epi32(_mm256_castps_si256(chosen), 16);
}
#endif

/* The first elements of contiguous ones by the CPU's own instructions; how many it did. */
TP_INLINE int64_t by_instruction(tp_dtype to_dtype, tp_dtype from_dtype, void *to, const void *from, int64_t n) {
    int64_t whole = 0;
#ifdef __F16C__
    if (to_dtype == TP_FLOAT32 && from_dtype == TP_FLOAT16) {
        for (; whole + 8 <= n; whole += 8)
            _mm256_storeu_ps((float *)to + whole,
                             _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const tp_half *)from + whole))));
    } else if (to_dtype == TP_FLOAT16 && from_dtype == TP_FLOAT32) {
        for (; whole + 8 <= n; whole += 8)
            _mm_storeu_si128((__m128i *)((tp_half *)to + whole),
                             _mm256_cvtps_ph(_mm256_loadu_ps((const float *)from + whole), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
#ifdef __AVX2__
    if (to_dtype == TP_BFLOAT16 && from_dtype == TP_FLOAT32) {
        for (const float *v = from; whole + 16 <= n; whole += 16) {
            __m256i low = bfloats_of(_mm256_loadu_ps(v + whole)), high = bfloats_of(_mm256_loadu_ps(v + whole + 8));
            _mm256_storeu_si256((__m256i *)((tp_bfloat *)to + whole),
                                _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8));
        }
    }
#endif
    return whole;
}

/* Between a 16-bit float and anything but float there is a float: in two steps, a block at a time. */
TP_INLINE bool is_half(tp_dtype d) { return d == TP_FLOAT16 || d == TP_BFLOAT16; }
TP_INLINE bool has_two_steps(tp_dtype to, tp_dtype from) {
    return (is_half(to) && from != TP_FLOAT32) || (is_half(from) && to != TP_FLOAT32);
}
static void in_two_steps(tp_loop_fn to_float, tp_loop_fn from_float, char *const *data, const int64_t *strides,
                         int64_t n) {
    float block[256];
    char *to = data[0], *from = data[1];
    for (int64_t m; n > 0; n -= m, to += m * strides[0], from += m * strides[1]) {
        m = n < 256 ? n : 256;
        to_float((char *const[]){(char *)block, from}, (const int64_t[]){sizeof *block, strides[1]}, m, NULL);
        from_float((char *const[]){to, (char *)block}, (const int64_t[]){strides[0], sizeof *block}, m, NULL);
    }
}

/* ---- the loops; those to float first, which others are made of ---- */

#define TO FLOAT32
#define TO_TYPE float
#define TO_VALUE(v) ((float)__real__(v))
#include "cpu/cast_to.h"
#define TO BOOL
#define TO_TYPE bool
#define TO_VALUE(v) ((v) != 0)
#include "cpu/cast_to.h"
#define TO UINT8
#define TO_TYPE uint8_t
#define TO_VALUE(v) TO_SMALL(uint8_t, v)
#include "cpu/cast_to.h"
#define TO UINT16
#define TO_TYPE uint16_t
#define TO_VALUE(v) TO_SMALL(uint16_t, v)
#include "cpu/cast_to.h"
#define TO UINT32
#define TO_TYPE uint32_t
#define TO_VALUE(v) TO_WIDE(uint32_t, v)
#include "cpu/cast_to.h"
#define TO UINT64
#define TO_TYPE uint64_t
#define TO_VALUE(v) TO_INTEGER(uint64_t, v, f32_to_u64, f64_to_u64)
#include "cpu/cast_to.h"
#define TO INT8
#define TO_TYPE int8_t
#define TO_VALUE(v) TO_SMALL(int8_t, v)
#include "cpu/cast_to.h"
#define TO INT16
#define TO_TYPE int16_t
#define TO_VALUE(v) TO_SMALL(int16_t, v)
#include "cpu/cast_to.h"
#define TO INT32
#define TO_TYPE int32_t
#define TO_VALUE(v) TO_SMALL(int32_t, v)
#include "cpu/cast_to.h"
#define TO INT64
#define TO_TYPE int64_t
#define TO_VALUE(v) TO_WIDE(int64_t, v)
#include "cpu/cast_to.h"
#define TO FLOAT16
#define TO_TYPE tp_half
#define TO_VALUE(v) tp_float_to_half((float)__real__(v))
#include "cpu/cast_to.h"
#define TO BFLOAT16
#define TO_TYPE tp_bfloat
#define TO_VALUE(v) tp_float_to_bfloat((float)__real__(v))
#include "cpu/cast_to.h"
#define TO FLOAT64
#define TO_TYPE double
#define TO_VALUE(v) ((double)__real__(v))
#include "cpu/cast_to.h"
#define TO COMPLEX64
#define TO_TYPE tp_complex64
#define TO_VALUE(v) ((tp_complex64)(v))
#include "cpu/cast_to.h"
#define TO COMPLEX128
#define TO_TYPE tp_complex128
#define TO_VALUE(v) ((tp_complex128)(v))
#include "cpu/cast_to.h"

#define ROW(id, name, ctype, category) [TP_##id] = to_##id##_from_any,
const tp_cast_kernels TP_CAP(tp_cast) = {TP_FORALL_COMPUTED_DTYPES(ROW)};
