/* scalar.c: conversions of numbers, each total: no value of a scalar leads to undefined behaviour. */
#include "core/scalar.h"

#include "core/error.h"

#include <float.h>
#include <math.h>

#define TWO_63 0x1p63
#define TWO_64 0x1p64
#define HALF_MAX 65504.0
#define BFLOAT_MAX 0x1.FEp127

static int64_t double_to_int(double f) {
    if (f != f) return 0;
    if (f >= TWO_63) return INT64_MAX;
    return f < -TWO_63 ? INT64_MIN : (int64_t)f;
}

/* Negative values go through int64, so that -1.0 as a uint8 is 255, as in PyTorch. */
static uint64_t double_to_uint(double f) {
    if (f != f) return 0;
    if (f >= TWO_64) return UINT64_MAX;
    return f < 0 ? (uint64_t)double_to_int(f) : (uint64_t)f;
}

int64_t tp_scalar_int(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_BOOL: return s->b;
    case TP_SCALAR_INT: return s->i;
    case TP_SCALAR_UINT: return (int64_t)s->u;
    case TP_SCALAR_FLOAT: return double_to_int(s->f);
    default: return double_to_int(creal(s->c));
    }
}

uint64_t tp_scalar_uint(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_FLOAT: return double_to_uint(s->f);
    case TP_SCALAR_COMPLEX: return double_to_uint(creal(s->c));
    default: return (uint64_t)tp_scalar_int(s);
    }
}

double tp_scalar_double(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_BOOL: return s->b;
    case TP_SCALAR_INT: return (double)s->i;
    case TP_SCALAR_UINT: return (double)s->u;
    case TP_SCALAR_FLOAT: return s->f;
    default: return creal(s->c);
    }
}

tp_complex128 tp_scalar_complex(const tp_scalar *s) {
    return s->kind == TP_SCALAR_COMPLEX ? s->c : (tp_complex128)tp_scalar_double(s);
}

bool tp_scalar_bool(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_FLOAT: return s->f != 0;
    case TP_SCALAR_COMPLEX: return creal(s->c) != 0 || cimag(s->c) != 0;
    default: return tp_scalar_int(s) != 0;
    }
}

bool tp_scalar_equals_int(const tp_scalar *s, int64_t value) {
    switch (s->kind) {
    case TP_SCALAR_BOOL:
    case TP_SCALAR_INT: return tp_scalar_int(s) == value;
    case TP_SCALAR_UINT: return value >= 0 && s->u == (uint64_t)value;
    case TP_SCALAR_COMPLEX:
        if (cimag(s->c) != 0) return false; /* fall through */
    default: {
        double f = tp_scalar_double(s); /* exact: a double that is integral and in range goes to int64 and back */
        return f == trunc(f) && f >= -TWO_63 && f < TWO_63 && (int64_t)f == value;
    }
    }
}

tp_dtype tp_scalar_dtype(const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_BOOL: return TP_BOOL;
    case TP_SCALAR_INT: return TP_INT64;
    case TP_SCALAR_UINT: return TP_UINT64;
    case TP_SCALAR_FLOAT: return tp_default_dtype();
    default: return tp_to_complex_dtype(tp_default_dtype());
    }
}

/* ---- range checks ---- */

static uint64_t largest_integer(tp_dtype d) {
    int bits = 8 * (int)tp_itemsize(d) - (tp_dtype_categories[d] == TP_SIGNED);
    return UINT64_MAX >> (64 - bits);
}

/* A negative integer down to -max wraps into an unsigned type, so that `a - b` can be written `a + 255 * b`. */
static bool integer_fits(const tp_scalar *s, tp_dtype d) {
    uint64_t max = largest_integer(d);
    if (s->kind == TP_SCALAR_UINT) return s->u <= max;
    int64_t value = tp_scalar_int(s);
    if (value >= 0) return (uint64_t)value <= max;
    uint64_t magnitude = -(uint64_t)value;
    return tp_dtype_categories[d] == TP_SIGNED ? magnitude - 1 <= max : magnitude <= max;
}

/* Where the largest integer is not a double, `f < max + 1` says the same. */
static bool double_fits_integer(double f, tp_dtype d) {
    uint64_t max = largest_integer(d);
    double above_max = (double)(max / 2 + 1) * 2;
    double low = tp_dtype_categories[d] == TP_SIGNED ? -above_max : 0;
    return f >= low && (max >> 53 ? f < above_max : f <= (double)max);
}

static bool double_fits_floating(double f, tp_dtype d) {
    if (isinf(f) || f != f || d == TP_COMPLEX32) return true;
    switch (tp_to_real_dtype(d)) {
    case TP_FLOAT16: return fabs(f) <= HALF_MAX;
    case TP_BFLOAT16: return fabs(f) <= BFLOAT_MAX;
    case TP_FLOAT32: return fabs(f) <= FLT_MAX;
    case TP_FLOAT8_E4M3FN: return fabs(f) <= 448;
    case TP_FLOAT8_E4M3FNUZ: return fabs(f) <= 240;
    case TP_FLOAT8_E5M2:
    case TP_FLOAT8_E5M2FNUZ: return fabs(f) <= 57344;
    case TP_FLOAT8_E8M0FNU: return f >= 0x1p-127 && f <= 0x1p127;
    default: return true;
    }
}

static bool scalar_fits(const tp_scalar *s, tp_dtype d) {
    if (d == TP_BOOL) return true;
    bool is_complex = s->kind == TP_SCALAR_COMPLEX;
    if (is_complex && cimag(s->c) != 0 && !tp_is_complex_dtype(d)) return false;
    if (!tp_is_integral_dtype(d))
        return double_fits_floating(tp_scalar_double(s), d) && (!is_complex || double_fits_floating(cimag(s->c), d));
    return is_complex || s->kind == TP_SCALAR_FLOAT ? double_fits_integer(tp_scalar_double(s), d) : integer_fits(s, d);
}

static void text_scalar(tp_text *text, const tp_scalar *s) {
    switch (s->kind) {
    case TP_SCALAR_BOOL: tp_text_add(text, "%s", s->b ? "True" : "False"); break;
    case TP_SCALAR_INT: tp_text_add(text, "%lld", (long long)s->i); break;
    case TP_SCALAR_UINT: tp_text_add(text, "%llu", (unsigned long long)s->u); break;
    case TP_SCALAR_FLOAT: tp_text_add(text, "%.17g", s->f); break;
    default: tp_text_add(text, "(%.17g%+.17gj)", creal(s->c), cimag(s->c));
    }
}

/* PyTorch's message names the C++ type: uint8_t, int, float, ... */
static const char *c_type_name(tp_dtype d) {
    static const char *const names[TP_NUM_DTYPES] = {
        [TP_UINT8] = "uint8_t", [TP_UINT16] = "uint16_t", [TP_UINT32] = "uint32_t", [TP_UINT64] = "uint64_t",
        [TP_INT8] = "int8_t",   [TP_INT16] = "int16_t",   [TP_INT32] = "int",       [TP_INT64] = "int64_t",
        [TP_FLOAT32] = "float", [TP_FLOAT64] = "double",
    };
    return names[d] ? names[d] : tp_dtype_names[d];
}

int tp_scalar_check_fits(const tp_scalar *s, tp_dtype d) {
    if (tp_likely(scalar_fits(s, d))) return 0;
    tp_autotext value = {0};
    text_scalar(&value, s);
    return tp_fail(TP_RuntimeError, "value cannot be converted to type %s without overflow: %s", c_type_name(d),
                   value.text ? value.text : "");
}

/* ---- elements ---- */

static tp_scalar from_double(double f) { return (tp_scalar){.kind = TP_SCALAR_FLOAT, .f = f}; }
static tp_scalar from_complex(tp_complex128 c) { return (tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = c}; }
static tp_scalar from_complex32(tp_complex32 c) {
    tp_complex128 wide;
    __real__ wide = (double)tp_half_to_float(c.real);
    __imag__ wide = (double)tp_half_to_float(c.imag);
    return from_complex(wide);
}
static tp_scalar from_int(int64_t i) { return (tp_scalar){.kind = TP_SCALAR_INT, .i = i}; }
static tp_scalar from_uint(uint64_t u) {
    return u > INT64_MAX ? (tp_scalar){.kind = TP_SCALAR_UINT, .u = u} : from_int((int64_t)u);
}

/* Apart, so that the switch over what is common stays without a stack. */
static tp_scalar TP_COLD load_stored(const void *p, tp_dtype d) {
    switch (d) {
    case TP_FLOAT8_E4M3FN: return from_double((double)tp_e4m3fn_to_float(*(const tp_e4m3fn *)p));
    case TP_FLOAT8_E5M2: return from_double((double)tp_e5m2_to_float(*(const tp_e5m2 *)p));
    case TP_FLOAT8_E4M3FNUZ: return from_double((double)tp_e4m3fnuz_to_float(*(const tp_e4m3fnuz *)p));
    case TP_FLOAT8_E5M2FNUZ: return from_double((double)tp_e5m2fnuz_to_float(*(const tp_e5m2fnuz *)p));
    case TP_FLOAT8_E8M0FNU: return from_double((double)tp_e8m0fnu_to_float(*(const tp_e8m0fnu *)p));
    default: return from_complex32(*(const tp_complex32 *)p);
    }
}

tp_scalar tp_scalar_load(const void *p, tp_dtype d) {
    switch (d) {
    case TP_BOOL: return (tp_scalar){.kind = TP_SCALAR_BOOL, .b = *(const uint8_t *)p != 0};
    case TP_UINT8: return from_int(*(const uint8_t *)p);
    case TP_UINT16: return from_int(*(const uint16_t *)p);
    case TP_UINT32: return from_int(*(const uint32_t *)p);
    case TP_UINT64: return from_uint(*(const uint64_t *)p);
    case TP_INT8: return from_int(*(const int8_t *)p);
    case TP_INT16: return from_int(*(const int16_t *)p);
    case TP_INT32: return from_int(*(const int32_t *)p);
    case TP_INT64: return from_int(*(const int64_t *)p);
    case TP_FLOAT16: return from_double((double)tp_half_to_float(*(const tp_half *)p));
    case TP_BFLOAT16: return from_double((double)tp_bfloat_to_float(*(const tp_bfloat *)p));
    case TP_FLOAT32: return from_double((double)*(const float *)p);
    case TP_FLOAT64: return from_double(*(const double *)p);
    case TP_COMPLEX64: return from_complex((tp_complex128) * (const tp_complex64 *)p);
    case TP_COMPLEX128: return from_complex(*(const tp_complex128 *)p);
    default: return load_stored(p, d);
    }
}

static tp_complex32 to_complex32(tp_complex128 c) {
    return (tp_complex32){tp_float_to_half((float)creal(c)), tp_float_to_half((float)cimag(c))};
}

static void TP_COLD store_stored(const tp_scalar *s, tp_dtype d, void *p) {
    switch (d) {
    case TP_FLOAT8_E4M3FN: *(tp_e4m3fn *)p = tp_float_to_e4m3fn((float)tp_scalar_double(s)); break;
    case TP_FLOAT8_E5M2: *(tp_e5m2 *)p = tp_float_to_e5m2((float)tp_scalar_double(s)); break;
    case TP_FLOAT8_E4M3FNUZ: *(tp_e4m3fnuz *)p = tp_float_to_e4m3fnuz((float)tp_scalar_double(s)); break;
    case TP_FLOAT8_E5M2FNUZ: *(tp_e5m2fnuz *)p = tp_float_to_e5m2fnuz((float)tp_scalar_double(s)); break;
    case TP_FLOAT8_E8M0FNU: *(tp_e8m0fnu *)p = tp_float_to_e8m0fnu((float)tp_scalar_double(s)); break;
    default: *(tp_complex32 *)p = to_complex32(tp_scalar_complex(s)); break;
    }
}

void tp_scalar_store(const tp_scalar *s, tp_dtype d, void *p) {
    switch (d) {
    case TP_BOOL: *(bool *)p = tp_scalar_bool(s); break;
    case TP_UINT8: *(uint8_t *)p = (uint8_t)tp_scalar_uint(s); break;
    case TP_UINT16: *(uint16_t *)p = (uint16_t)tp_scalar_uint(s); break;
    case TP_UINT32: *(uint32_t *)p = (uint32_t)tp_scalar_uint(s); break;
    case TP_UINT64: *(uint64_t *)p = tp_scalar_uint(s); break;
    case TP_INT8: *(int8_t *)p = (int8_t)tp_scalar_int(s); break;
    case TP_INT16: *(int16_t *)p = (int16_t)tp_scalar_int(s); break;
    case TP_INT32: *(int32_t *)p = (int32_t)tp_scalar_int(s); break;
    case TP_INT64: *(int64_t *)p = tp_scalar_int(s); break;
    case TP_FLOAT16: *(tp_half *)p = tp_float_to_half((float)tp_scalar_double(s)); break;
    case TP_BFLOAT16: *(tp_bfloat *)p = tp_float_to_bfloat((float)tp_scalar_double(s)); break;
    case TP_FLOAT32: *(float *)p = (float)tp_scalar_double(s); break;
    case TP_FLOAT64: *(double *)p = tp_scalar_double(s); break;
    case TP_COMPLEX64: *(tp_complex64 *)p = (tp_complex64)tp_scalar_complex(s); break;
    case TP_COMPLEX128: *(tp_complex128 *)p = tp_scalar_complex(s); break;
    default: store_stored(s, d, p);
    }
}

tp_scalar tp_scalar_narrow(const tp_scalar *s, tp_dtype d) {
    uint16_t bits;
    if (s->kind == TP_SCALAR_COMPLEX || (d != TP_FLOAT16 && d != TP_BFLOAT16)) return *s;
    tp_scalar_store(s, d, &bits);
    return tp_scalar_load(&bits, d);
}
