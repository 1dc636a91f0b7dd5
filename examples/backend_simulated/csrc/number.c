/* number.c: elements of any dtype as numbers. */
#include "device.h"
#include "tensorpy/float8.h"
#include "tensorpy/half.h"

#include <complex.h>
#include <math.h>
#include <string.h>

bool is_floating(tp_dtype d) { return (d >= TP_FLOAT16 && d <= TP_FLOAT64) || d >= TP_FLOAT8_E4M3FN; }
bool is_complex(tp_dtype d) { return d == TP_COMPLEX32 || d == TP_COMPLEX64 || d == TP_COMPLEX128; }
bool is_unsigned_64(tp_dtype d) { return d == TP_UINT64; }
tp_dtype real_of(tp_dtype d) {
    if (d == TP_COMPLEX32) return TP_FLOAT16;
    return d == TP_COMPLEX64 ? TP_FLOAT32 : d == TP_COMPLEX128 ? TP_FLOAT64 : d;
}
tp_dtype compute_of(tp_dtype d) {
    if (d == TP_COMPLEX32) return TP_COMPLEX64;
    return d == TP_FLOAT16 || d == TP_BFLOAT16 || d >= TP_FLOAT8_E4M3FN ? TP_FLOAT32 : d;
}

/* ---- memory ---- */

number number_at(const void *p, tp_dtype d) {
    switch (d) {
    case TP_BOOL: return (number){.i = *(const uint8_t *)p != 0};
    case TP_UINT8: return (number){.i = *(const uint8_t *)p};
    case TP_UINT16: return (number){.i = *(const uint16_t *)p};
    case TP_UINT32: return (number){.i = *(const uint32_t *)p};
    case TP_INT8: return (number){.i = *(const int8_t *)p};
    case TP_INT16: return (number){.i = *(const int16_t *)p};
    case TP_INT32: return (number){.i = *(const int32_t *)p};
    case TP_FLOAT16: return (number){.f = (double)tp_half_to_float(*(const tp_half *)p)};
    case TP_BFLOAT16: return (number){.f = (double)tp_bfloat_to_float(*(const tp_bfloat *)p)};
    case TP_FLOAT32: return (number){.f = (double)*(const float *)p};
    case TP_FLOAT64: return (number){.f = *(const double *)p};
    case TP_FLOAT8_E4M3FN: return (number){.f = (double)tp_e4m3fn_to_float(*(const tp_e4m3fn *)p)};
    case TP_FLOAT8_E5M2: return (number){.f = (double)tp_e5m2_to_float(*(const tp_e5m2 *)p)};
    case TP_FLOAT8_E4M3FNUZ: return (number){.f = (double)tp_e4m3fnuz_to_float(*(const tp_e4m3fnuz *)p)};
    case TP_FLOAT8_E5M2FNUZ: return (number){.f = (double)tp_e5m2fnuz_to_float(*(const tp_e5m2fnuz *)p)};
    case TP_FLOAT8_E8M0FNU: return (number){.f = (double)tp_e8m0fnu_to_float(*(const tp_e8m0fnu *)p)};
    case TP_COMPLEX32: {
        const tp_complex32 *c = p;
        return (number){.c = (double)tp_half_to_float(c->real) + I * (double)tp_half_to_float(c->imag)};
    }
    case TP_COMPLEX64: return (number){.c = *(const tp_complex64 *)p};
    case TP_COMPLEX128: return (number){.c = *(const tp_complex128 *)p};
    default: return (number){.i = *(const int64_t *)p};
    }
}

void number_to(void *p, tp_dtype d, number x) {
    switch (d) {
    case TP_BOOL: *(uint8_t *)p = x.i != 0; return;
    case TP_UINT8:
    case TP_INT8: *(int8_t *)p = (int8_t)x.i; return;
    case TP_UINT16:
    case TP_INT16: *(int16_t *)p = (int16_t)x.i; return;
    case TP_UINT32:
    case TP_INT32: *(int32_t *)p = (int32_t)x.i; return;
    case TP_FLOAT16: *(tp_half *)p = tp_float_to_half((float)x.f); return;
    case TP_BFLOAT16: *(tp_bfloat *)p = tp_float_to_bfloat((float)x.f); return;
    case TP_FLOAT32: *(float *)p = (float)x.f; return;
    case TP_FLOAT64: *(double *)p = x.f; return;
    case TP_FLOAT8_E4M3FN: *(tp_e4m3fn *)p = tp_float_to_e4m3fn((float)x.f); return;
    case TP_FLOAT8_E5M2: *(tp_e5m2 *)p = tp_float_to_e5m2((float)x.f); return;
    case TP_FLOAT8_E4M3FNUZ: *(tp_e4m3fnuz *)p = tp_float_to_e4m3fnuz((float)x.f); return;
    case TP_FLOAT8_E5M2FNUZ: *(tp_e5m2fnuz *)p = tp_float_to_e5m2fnuz((float)x.f); return;
    case TP_FLOAT8_E8M0FNU: *(tp_e8m0fnu *)p = tp_float_to_e8m0fnu((float)x.f); return;
    case TP_COMPLEX32:
        *(tp_complex32 *)p = (tp_complex32){tp_float_to_half((float)creal(x.c)), tp_float_to_half((float)cimag(x.c))};
        return;
    case TP_COMPLEX64: *(tp_complex64 *)p = (tp_complex64)x.c; return;
    case TP_COMPLEX128: *(tp_complex128 *)p = x.c; return;
    default: *(int64_t *)p = x.i; return;
    }
}

/* ---- conversions ---- */

static int64_t saturated(double v, double limit) {
    if (v != v) return 0;
    if (v >= limit) return limit > 0x1p31 ? INT64_MAX : INT32_MAX;
    return v < -limit ? (limit > 0x1p31 ? INT64_MIN : INT32_MIN) : (int64_t)v;
}

static number from_double(double v, tp_dtype to) {
    if (to == TP_BOOL) return (number){.i = v != 0};
    if (is_complex(to)) return (number){.c = to == TP_COMPLEX64 ? (double)(float)v : v};
    if (to == TP_FLOAT64) return (number){.f = v};
    if (is_floating(to)) return (number){.f = (double)(float)v};
    if (to == TP_UINT64 && v >= 0x1p63) return (number){.u = v >= 0x1p64 ? UINT64_MAX : (uint64_t)v};
    bool wide = to == TP_UINT32 || to == TP_UINT64 || to == TP_INT64;
    return narrowed((number){.i = saturated(v, wide ? 0x1p63 : 0x1p31)}, to);
}

static number from_integer(number x, tp_dtype from, tp_dtype to) {
    if (to == TP_BOOL) return (number){.i = x.i != 0};
    if (!is_floating(to) && !is_complex(to)) return narrowed(x, to);
    double v = from == TP_UINT64 ? (double)x.u : (double)x.i;
    if (to != TP_FLOAT64 && to != TP_COMPLEX128) v = (double)(from == TP_UINT64 ? (float)x.u : (float)x.i);
    return is_complex(to) ? (number){.c = v} : (number){.f = v};
}

number converted(number x, tp_dtype from, tp_dtype to) {
    if (from == to) return x;
    if (is_complex(from)) {
        if (to == TP_BOOL) return (number){.i = creal(x.c) != 0 || cimag(x.c) != 0};
        return is_complex(to) ? narrowed(x, to) : from_double(creal(x.c), to);
    }
    return is_floating(from) ? from_double(x.f, to) : from_integer(x, from, to);
}

number narrowed(number x, tp_dtype d) {
    char room[16];
    if (is_floating(d)) return d == TP_FLOAT64 ? x : (number){.f = (double)(float)x.f};
    if (is_complex(d)) return d == TP_COMPLEX128 ? x : (number){.c = (tp_complex64)x.c};
    number_to(room, d, x);
    return number_at(room, d);
}

number number_of(tp_scalar s, tp_dtype d) {
    switch (s.kind) {
    case TP_SCALAR_BOOL: return converted((number){.i = s.b}, TP_BOOL, d);
    case TP_SCALAR_INT: return converted((number){.i = s.i}, TP_INT64, d);
    case TP_SCALAR_UINT: return converted((number){.u = s.u}, TP_UINT64, d);
    case TP_SCALAR_FLOAT:
        /* A number goes to every integer by way of the widest. */
        if (!is_floating(d) && !is_complex(d) && d != TP_BOOL && d != TP_UINT64)
            return narrowed(from_double(s.f, TP_INT64), d);
        return from_double(s.f, d);
    default: return converted((number){.c = s.c}, TP_COMPLEX128, d);
    }
}

/* ---- arithmetic ---- */

number plus(number a, number b, tp_dtype d) {
    if (is_complex(d)) return (number){.c = a.c + b.c};
    if (d == TP_BOOL) return (number){.i = a.i | b.i};
    return is_floating(d) ? (number){.f = a.f + b.f} : (number){.u = a.u + b.u};
}

number times(number a, number b, tp_dtype d) {
    if (is_complex(d)) {
        double x = creal(a.c), y = cimag(a.c), z = creal(b.c), w = cimag(b.c);
        return (number){.c = CMPLX(x * z - y * w, x * w + y * z)};
    }
    if (d == TP_BOOL) return (number){.i = a.i & b.i};
    return is_floating(d) ? (number){.f = a.f * b.f} : (number){.u = a.u * b.u};
}

/* ---- questions ---- */

bool is_zero(number x, tp_dtype d) {
    return is_complex(d) ? creal(x.c) == 0 && cimag(x.c) == 0 : is_floating(d) ? x.f == 0 : x.i == 0;
}

bool is_nan(number x, tp_dtype d) {
    return is_complex(d) ? isnan(creal(x.c)) || isnan(cimag(x.c)) : is_floating(d) && isnan(x.f);
}

int compared(number a, number b, tp_dtype d) {
    if (is_floating(d)) {
        if (a.f != a.f || b.f != b.f) return (a.f != a.f) - (b.f != b.f);
        return (a.f > b.f) - (a.f < b.f);
    }
    return d == TP_UINT64 ? (a.u > b.u) - (a.u < b.u) : (a.i > b.i) - (a.i < b.i);
}
