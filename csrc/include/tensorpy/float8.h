/* float8.h: the floating types that are formats of memory only, with conversions that round to nearest even: five of 8
 * bits, and a complex number of two binary16. Since 1.4.
 *
 * The names of the 8-bit types say how many bits of exponent and fraction there are, and what their codes mean: "fn"
 * has no infinities, "uz" no negative zero (its code is the only NaN), "u" no sign. They follow "FP8 Formats for Deep
 * Learning" (Micikevicius et al., 2022) and the Open Compute Project's microscaling formats (e8m0fnu: a power of two).
 */
#ifndef TENSORPY_FLOAT8_H
#define TENSORPY_FLOAT8_H

#include "tensorpy/half.h"

#define TP_FLOAT8_FN static inline __attribute__((always_inline, unused))

/* Two binary16, the real part first. */
typedef struct {
    tp_half real, imag; /* as real and imaginary part */
} tp_complex32;

/* A sign, 4 bits of exponent whose bias is 7, 3 of fraction; 0x7f is NaN. */
typedef struct {
    uint8_t bits; /* from the sign down */
} tp_e4m3fn;
/* A sign, 5 bits of exponent whose bias is 15, 2 of fraction; infinities and NaN as binary16. */
typedef struct {
    uint8_t bits; /* from the sign down */
} tp_e5m2;
/* A sign, 4 bits of exponent whose bias is 8, 3 of fraction; 0x80 is NaN. */
typedef struct {
    uint8_t bits; /* from the sign down */
} tp_e4m3fnuz;
/* A sign, 5 bits of exponent whose bias is 16, 2 of fraction; 0x80 is NaN. */
typedef struct {
    uint8_t bits; /* from the sign down */
} tp_e5m2fnuz;
/* 8 bits of exponent whose bias is 127; 0xff is NaN. */
typedef struct {
    uint8_t bits; /* the exponent */
} tp_e8m0fnu;

/* The magnitude of a code without its sign: exact. `fraction` bits of it are the fraction. A code of exponent 0 is so
 * many of the smallest number, 2**(1 - bias - fraction). */
TP_FLOAT8_FN float tp_float8_magnitude(uint32_t code, int fraction, int bias) {
    float normal = tp_float_from_bits((code << (23 - fraction)) + ((uint32_t)(127 - bias) << 23));
    float subnormal = (float)(int)code * tp_float_from_bits((uint32_t)(128 - bias - fraction) << 23);
    return code >> fraction ? normal : subnormal;
}

/* The code of the magnitude nearest to a float that is given by its bits without the sign, the even one of two, and
 * `limit` for what is above all of them. Below the smallest normal number a sum with a power of two rounds. */
TP_FLOAT8_FN uint32_t tp_float8_code(uint32_t bits, int fraction, int bias, uint32_t limit) {
    uint32_t power = (uint32_t)(151 - bias - fraction) << 23; /* its last bit is the smallest number */
    uint32_t small = tp_float_bits(tp_float_from_bits(bits) + tp_float_from_bits(power)) - power;
    uint32_t odd = bits >> (23 - fraction) & 1, half = (1u << (22 - fraction)) - 1;
    uint32_t large = (bits + half + odd - ((uint32_t)(127 - bias) << 23)) >> (23 - fraction);
    uint32_t code = bits < (uint32_t)(128 - bias) << 23 ? small : large;
    return bits > 0x7f800000u || code > limit ? limit : code;
}

/* Exact; a NaN stays one. */
TP_FLOAT8_FN float tp_e4m3fn_to_float(tp_e4m3fn v) {
    uint32_t code = v.bits & 0x7fu;
    float f = code == 0x7fu ? tp_float_from_bits(0x7fc00000u) : tp_float8_magnitude(code, 3, 7);
    return v.bits & 0x80u ? -f : f;
}
/* The nearest, the even one of two; what is above 448, the largest, becomes that, infinities too. */
TP_FLOAT8_FN tp_e4m3fn tp_float_to_e4m3fn(float f) {
    uint32_t u = tp_float_bits(f);
    uint32_t m = u & 0x7fffffffu;
    tp_e4m3fn v = {(uint8_t)((u >> 24 & 0x80u) | (m > 0x7f800000u ? 0x7fu : tp_float8_code(m, 3, 7, 0x7eu)))};
    return v;
}

/* Exact; a NaN stays one. */
TP_FLOAT8_FN float tp_e5m2_to_float(tp_e5m2 v) {
    tp_half h = {(uint16_t)(v.bits << 8)};
    return tp_half_to_float(h);
}
/* The nearest, the even one of two; infinity for what is nearer to 65536 than to 57344, the largest. */
TP_FLOAT8_FN tp_e5m2 tp_float_to_e5m2(float f) {
    uint32_t u = tp_float_bits(f), m = u & 0x7fffffffu;
    tp_e5m2 v = {(uint8_t)((u >> 24 & 0x80u) | (m > 0x7f800000u ? 0x7fu : tp_float8_code(m, 2, 15, 0x7cu)))};
    return v;
}

/* A code of a type without negative zero, whose code is NaN: exact. */
TP_FLOAT8_FN float tp_float8_uz_to_float(uint8_t bits, int fraction, int bias) {
    if (bits == 0x80u) return tp_float_from_bits(0x7fc00000u);
    float f = tp_float8_magnitude(bits & 0x7fu, fraction, bias);
    return bits & 0x80u ? -f : f;
}
/* The code nearest to a float in a type without negative zero; NaN for what is above all of them. */
TP_FLOAT8_FN uint8_t tp_float_to_float8_uz(float f, int fraction, int bias) {
    uint32_t u = tp_float_bits(f), code = tp_float8_code(u & 0x7fffffffu, fraction, bias, 0x80u);
    return (uint8_t)(code ? (u >> 24 & 0x80u) | code : 0);
}

/* Exact; a NaN stays one. */
TP_FLOAT8_FN float tp_e4m3fnuz_to_float(tp_e4m3fnuz v) { return tp_float8_uz_to_float(v.bits, 3, 8); }
/* The nearest, the even one of two; NaN for what is nearer to 256 than to 240, the largest. */
TP_FLOAT8_FN tp_e4m3fnuz tp_float_to_e4m3fnuz(float f) {
    tp_e4m3fnuz v = {tp_float_to_float8_uz(f, 3, 8)};
    return v;
}
/* Exact; a NaN stays one. */
TP_FLOAT8_FN float tp_e5m2fnuz_to_float(tp_e5m2fnuz v) { return tp_float8_uz_to_float(v.bits, 2, 16); }
/* The nearest, the even one of two; NaN for what is nearer to 65536 than to 57344, the largest. */
TP_FLOAT8_FN tp_e5m2fnuz tp_float_to_e5m2fnuz(float f) {
    tp_e5m2fnuz v = {tp_float_to_float8_uz(f, 2, 16)};
    return v;
}

/* Exact; a NaN stays one. */
TP_FLOAT8_FN float tp_e8m0fnu_to_float(tp_e8m0fnu v) {
    if (v.bits == 0xffu) return tp_float_from_bits(0x7fc00000u);
    return tp_float_from_bits(v.bits ? (uint32_t)v.bits << 23 : 0x400000u);
}
/* The nearest of the magnitude, the even fraction of two: from the middle of two powers to the larger, but for the
 * smallest two. NaN for what is not finite. */
TP_FLOAT8_FN tp_e8m0fnu tp_float_to_e8m0fnu(float f) {
    uint32_t u = tp_float_bits(f), exponent = u >> 23 & 0xffu, rest = u & 0x7fffffu;
    tp_e8m0fnu v = {(uint8_t)(exponent == 0xffu ? 0xffu : exponent + (rest + (exponent > 0) > 0x400000u))};
    return v;
}

#undef TP_FLOAT8_FN
#endif
