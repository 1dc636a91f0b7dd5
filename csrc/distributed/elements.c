/* elements.c: see elements.h. 16-bit floats are computed in float32 and rounded at each step, as a sum over processes
 * is handed on in their format. */
#include "distributed/elements.h"

#include <math.h>

bool tp_elements_narrow;

/* The greater of two equal numbers, which may be zeros of two signs, is the one without a sign. A NaN stays one, and
 * always the same one. */
#define ORDERED(T, suffix, nan_of)                           \
    static inline T max_##suffix(T a, T b) {                 \
        if (a != a || b != b) return nan_of;                 \
        return a > b || (a == b && !signbit(a)) ? a : b;     \
    }                                                        \
    static inline T min_##suffix(T a, T b) {                 \
        if (a != a || b != b) return nan_of;                 \
        return a < b || (a == b && signbit(a)) ? a : b;      \
    }                                                        \
    static inline T sum_##suffix(T a, T b) { return a + b; } \
    static inline T product_##suffix(T a, T b) { return a * b; }
ORDERED(float, float, NAN)
ORDERED(double, double, (double)NAN)

#define LOOP(name, stored, get, put, f)                                                           \
    static void name(void *in, void *inout, int64_t *count, struct mpi_object **type TP_UNUSED) { \
        const stored *restrict a = in;                                                            \
        stored *restrict b = inout;                                                               \
        int64_t n = tp_elements_narrow ? *(const int *)count : *count;                            \
        for (int64_t i = 0; i < n; i++) b[i] = put(f(get(a[i]), get(b[i])));                      \
    }
#define SAME(x) (x)
#define LOOPS(type, stored, get, put, suffix)                   \
    LOOP(sum_of_##type, stored, get, put, sum_##suffix)         \
    LOOP(product_of_##type, stored, get, put, product_##suffix) \
    LOOP(min_of_##type, stored, get, put, min_##suffix)         \
    LOOP(max_of_##type, stored, get, put, max_##suffix)
LOOPS(float16, tp_half, tp_half_to_float, tp_float_to_half, float)
LOOPS(bfloat16, tp_bfloat, tp_bfloat_to_float, tp_float_to_bfloat, float)
LOOP(min_of_float32, float, SAME, SAME, min_float)
LOOP(max_of_float32, float, SAME, SAME, max_float)
LOOP(min_of_float64, double, SAME, SAME, min_double)
LOOP(max_of_float64, double, SAME, SAME, max_double)

tp_elements_fn tp_elements_loop(tp_dtype dtype, tp_reduce_op op) {
    static const tp_elements_fn loops[TP_NUM_DTYPES][TP_NUM_OPS] = {
        [TP_FLOAT16] = {sum_of_float16, product_of_float16, min_of_float16, max_of_float16},
        [TP_BFLOAT16] = {sum_of_bfloat16, product_of_bfloat16, min_of_bfloat16, max_of_bfloat16},
        [TP_FLOAT32] = {[TP_OP_MIN] = min_of_float32, [TP_OP_MAX] = max_of_float32},
        [TP_FLOAT64] = {[TP_OP_MIN] = min_of_float64, [TP_OP_MAX] = max_of_float64},
    };
    return loops[dtype][op];
}
