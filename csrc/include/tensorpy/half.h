/* half.h: the two 16-bit floating types as storage formats, with conversions that round to nearest even.
 *
 * IEEE 754 binary16 (`tp_half`) and bfloat16 (`tp_bfloat`, the upper half of a binary32). Arithmetic is always done in
 * float. */
#ifndef TENSORPY_HALF_H
#define TENSORPY_HALF_H

#include <stdint.h>
#include <string.h>

#define TP_HALF_FN static inline __attribute__((always_inline, unused))

/* binary16: a sign, 5 bits of exponent, 10 of fraction. */
typedef struct {
    uint16_t bits; /* from the sign down */
} tp_half;
/* bfloat16: a sign, 8 bits of exponent, 7 of fraction. */
typedef struct {
    uint16_t bits; /* from the sign down */
} tp_bfloat;

/* A float as its bits, and back. */
TP_HALF_FN uint32_t tp_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
/* The float of these bits. */
TP_HALF_FN float tp_float_from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

/* Exact. */
TP_HALF_FN float tp_bfloat_to_float(tp_bfloat b) { return tp_float_from_bits((uint32_t)b.bits << 16); }
/* The nearest, the even one of two; a NaN stays one. */
TP_HALF_FN tp_bfloat tp_float_to_bfloat(float f) {
    uint32_t u = tp_float_bits(f);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    tp_bfloat b = {(uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded)};
    return b;
}

/* 2**n: no C++ before 17 has it as a number. */
#define TP_HALF_POWER(n) tp_float_from_bits((uint32_t)(127 + (n)) << 23)

/* Exact. The magnitude is scaled through float arithmetic, which gets subnormals and rounding right without branches
 * (the method of M. Dukhan's FP16 library). */
TP_HALF_FN float tp_half_to_float(tp_half h) {
    uint32_t w = (uint32_t)h.bits << 16, sign = w & 0x80000000u, two_w = w + w;
    float normal = tp_float_from_bits((two_w >> 4) + (0xE0u << 23)) * TP_HALF_POWER(-112);
    float subnormal = tp_float_from_bits((two_w >> 17) | (126u << 23)) - 0.5f;
    return tp_float_from_bits(sign | tp_float_bits(two_w < (1u << 27) ? subnormal : normal));
}
/* The nearest, the even one of two; a NaN stays one. */
TP_HALF_FN tp_half tp_float_to_half(float f) {
    uint32_t w = tp_float_bits(f), two_w = w + w, sign = w & 0x80000000u;
    float base = (tp_float_from_bits(w & 0x7fffffffu) * TP_HALF_POWER(112)) * TP_HALF_POWER(-110);
    uint32_t bias = two_w & 0xFF000000u;
    if (bias < 0x71000000u) bias = 0x71000000u;
    base = tp_float_from_bits((bias >> 1) + 0x07800000u) + base;
    uint32_t bits = tp_float_bits(base);
    uint32_t nonsign = ((bits >> 13) & 0x7C00u) + (bits & 0x0FFFu);
    tp_half h = {(uint16_t)((sign >> 16) | (two_w > 0xFF000000u ? 0x7E00u : nonsign))};
    return h;
}

#undef TP_HALF_FN
#undef TP_HALF_POWER
#endif
