/* dtype.c: the tables made from TP_FORALL_DTYPES, and promotion by rule. */
#include "core/dtype.h"

#include "core/error.h"

#include <stdatomic.h>

const uint8_t tp_dtype_sizes[TP_NUM_DTYPES] = {
#define SIZE(id, name, ctype, category) sizeof(ctype),
    TP_FORALL_DTYPES(SIZE) TP_FORALL_QUANTIZED_DTYPES(SIZE)
#undef SIZE
};

const uint8_t tp_dtype_categories[TP_NUM_DTYPES] = {
#define CATEGORY(id, name, ctype, category) TP_##category,
    TP_FORALL_DTYPES(CATEGORY) TP_FORALL_QUANTIZED_DTYPES(CATEGORY)
#undef CATEGORY
};

const char *const tp_dtype_names[TP_NUM_DTYPES] = {
#define NAME(id, name, ctype, category) #name,
    TP_FORALL_DTYPES(NAME) TP_FORALL_QUANTIZED_DTYPES(NAME)
#undef NAME
};

static _Atomic int default_dtype = TP_FLOAT32;

tp_dtype tp_default_dtype(void) { return (tp_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed); }
void tp_set_default_dtype(tp_dtype d) { atomic_store_explicit(&default_dtype, (int)d, memory_order_relaxed); }

/* The names of C++ types that PyTorch's messages use. */
const char *tp_scalar_type_name(tp_dtype d) {
    static const char *const names[TP_NUM_DTYPES] = {
        [TP_BOOL] = "Bool",
        [TP_UINT8] = "Byte",
        [TP_UINT16] = "UInt16",
        [TP_UINT32] = "UInt32",
        [TP_UINT64] = "UInt64",
        [TP_INT8] = "Char",
        [TP_INT16] = "Short",
        [TP_INT32] = "Int",
        [TP_INT64] = "Long",
        [TP_FLOAT16] = "Half",
        [TP_BFLOAT16] = "BFloat16",
        [TP_FLOAT32] = "Float",
        [TP_FLOAT64] = "Double",
        [TP_COMPLEX64] = "ComplexFloat",
        [TP_COMPLEX128] = "ComplexDouble",
        [TP_COMPLEX32] = "ComplexHalf",
        [TP_FLOAT8_E4M3FN] = "Float8_e4m3fn",
        [TP_FLOAT8_E5M2] = "Float8_e5m2",
        [TP_FLOAT8_E4M3FNUZ] = "Float8_e4m3fnuz",
        [TP_FLOAT8_E5M2FNUZ] = "Float8_e5m2fnuz",
        [TP_FLOAT8_E8M0FNU] = "Float8_e8m0fnu",
        [TP_QUINT8] = "QUInt8",
        [TP_QINT8] = "QInt8",
        [TP_QINT32] = "QInt32",
        [TP_QUINT4X2] = "QUInt4x2",
        [TP_QUINT2X4] = "QUInt2x4",
    };
    return names[d];
}

tp_dtype tp_to_real_dtype(tp_dtype d) {
    if (d == TP_COMPLEX64) return TP_FLOAT32;
    if (d == TP_COMPLEX128) return TP_FLOAT64;
    return d == TP_COMPLEX32 ? TP_FLOAT16 : d;
}

tp_dtype tp_to_complex_dtype(tp_dtype d) {
    if (tp_is_complex_dtype(d)) return d;
    if (!tp_is_floating_dtype(d)) d = tp_default_dtype();
    if (d == TP_FLOAT16) return TP_COMPLEX32;
    return d == TP_FLOAT64 ? TP_COMPLEX128 : TP_COMPLEX64;
}

static bool is_wide_unsigned(tp_dtype d) { return tp_dtype_categories[d] == TP_UNSIGNED && d != TP_UINT8; }

static tp_dtype fail_promotion(tp_dtype a, tp_dtype b) {
    if (tp_is_quantized_dtype(a) || tp_is_quantized_dtype(b)) {
        tp_fail(TP_RuntimeError, "Promotion for quantized dtypes is not supported, attempted to promote %s and %s",
                tp_scalar_type_name(a), tp_scalar_type_name(b));
        return TP_NO_DTYPE;
    }
    bool small = tp_is_float8_dtype(a) || tp_is_float8_dtype(b);
    tp_fail(TP_RuntimeError, "Promotion for %s is not supported, attempted to promote %s and %s",
            small ? "Float8 Types" : "uint16, uint32, uint64 types", tp_scalar_type_name(a), tp_scalar_type_name(b));
    return TP_NO_DTYPE;
}

/* One of two dtypes is stored: complex32 is the narrowest complex type. */
static tp_dtype promote_stored(tp_dtype a, tp_dtype b) {
    if (tp_is_float8_dtype(a) || tp_is_float8_dtype(b)) return fail_promotion(a, b);
    tp_dtype other = a == TP_COMPLEX32 ? b : a;
    if (is_wide_unsigned(other)) return fail_promotion(a, b);
    if (tp_is_complex_dtype(other)) return other;
    return tp_is_floating_dtype(other) ? tp_to_complex_dtype(other) : TP_COMPLEX32;
}

/* The enumerators of what is computed in ascend by category and, inside one, by width, so of a < b the answer is nearly
 * always b. */
tp_dtype tp_promote_dtypes(tp_dtype a, tp_dtype b) {
    if (a == b) return a;
    tp_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (tp_is_stored_dtype(high)) return promote_stored(a, b);
    if (is_wide_unsigned(low) || is_wide_unsigned(high))
        return tp_is_floating_dtype(high) ? high : fail_promotion(a, b);
    if (low == TP_UINT8 && high == TP_INT8) return TP_INT16;
    if (low == TP_FLOAT16 && high == TP_BFLOAT16) return TP_FLOAT32;
    if (low == TP_FLOAT64) return TP_COMPLEX128; /* with a complex type, the only ones above it */
    return high;
}

bool tp_can_cast(tp_dtype from, tp_dtype to) {
    static const uint8_t rank[] = {
        [TP_BOOLEAN] = 0, [TP_UNSIGNED] = 1, [TP_SIGNED] = 1, [TP_FLOATING] = 2, [TP_COMPLEX] = 3};
    return rank[tp_dtype_categories[from]] <= rank[tp_dtype_categories[to]];
}
