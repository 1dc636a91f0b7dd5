/* dtype.c: the tables made from TP_FORALL_DTYPES, and promotion by rule. */
#include "core/dtype.h"

#include "core/error.h"

#include <stdatomic.h>

const uint8_t tp_dtype_sizes[TP_NUM_DTYPES] = {
#define SIZE(id, name, ctype, category) sizeof(ctype),
    TP_FORALL_DTYPES(SIZE)
#undef SIZE
};

const uint8_t tp_dtype_categories[TP_NUM_DTYPES] = {
#define CATEGORY(id, name, ctype, category) TP_##category,
    TP_FORALL_DTYPES(CATEGORY)
#undef CATEGORY
};

const char *const tp_dtype_names[TP_NUM_DTYPES] = {
#define NAME(id, name, ctype, category) #name,
    TP_FORALL_DTYPES(NAME)
#undef NAME
};

static _Atomic int default_dtype = TP_FLOAT32;

tp_dtype tp_default_dtype(void) { return (tp_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed); }
void tp_set_default_dtype(tp_dtype d) { atomic_store_explicit(&default_dtype, (int)d, memory_order_relaxed); }

tp_dtype tp_to_real_dtype(tp_dtype d) {
    if (d == TP_COMPLEX64) return TP_FLOAT32;
    return d == TP_COMPLEX128 ? TP_FLOAT64 : d;
}

tp_dtype tp_to_complex_dtype(tp_dtype d) {
    if (tp_is_complex_dtype(d)) return d;
    if (!tp_is_floating_dtype(d)) d = tp_default_dtype();
    return d == TP_FLOAT64 ? TP_COMPLEX128 : TP_COMPLEX64;
}

static bool is_wide_unsigned(tp_dtype d) { return tp_dtype_categories[d] == TP_UNSIGNED && d != TP_UINT8; }

static tp_dtype fail_promotion(tp_dtype a, tp_dtype b) {
    tp_fail(TP_RuntimeError,
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s",
            tp_dtype_names[a], tp_dtype_names[b]);
    return TP_NO_DTYPE;
}

/* The enumerators ascend by category and, inside one, by width, so after ordering a < b the answer is nearly always
 * b. */
tp_dtype tp_promote_dtypes(tp_dtype a, tp_dtype b) {
    if (a == b) return a;
    if (a > b) return tp_promote_dtypes(b, a);
    if (is_wide_unsigned(a) || is_wide_unsigned(b)) return tp_is_floating_dtype(b) ? b : fail_promotion(a, b);
    if (a == TP_UINT8 && b == TP_INT8) return TP_INT16;
    if (a == TP_FLOAT16 && b == TP_BFLOAT16) return TP_FLOAT32;
    if (a == TP_FLOAT64) return TP_COMPLEX128; /* with a complex type, the only ones above it */
    return b;
}

bool tp_can_cast(tp_dtype from, tp_dtype to) {
    static const uint8_t rank[] = {
        [TP_BOOLEAN] = 0, [TP_UNSIGNED] = 1, [TP_SIGNED] = 1, [TP_FLOATING] = 2, [TP_COMPLEX] = 3};
    return rank[tp_dtype_categories[from]] <= rank[tp_dtype_categories[to]];
}
