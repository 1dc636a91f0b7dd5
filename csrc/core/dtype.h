/* dtype.h: element types, their properties and promotion.
 *
 * TP_FORALL_DTYPES is the only list of dtypes in the C tree: X(enumerator, name, C type, category). The order inside a
 * category is the order of width. The C type is that of memory: a bool is read as its byte, which a view of other
 * memory may have set to anything, and is true when it is not 0. `ScalarType` in a schema and `tensorpy.<name>` in
 * Python use the names. */
#pragma once

#include "core/base.h"
#include "core/half.h"

#include <complex.h>

typedef float _Complex tp_complex64;
typedef double _Complex tp_complex128;

#define TP_FORALL_DTYPES(X)                        \
    X(BOOL, bool, uint8_t, BOOLEAN)                \
    X(UINT8, uint8, uint8_t, UNSIGNED)             \
    X(UINT16, uint16, uint16_t, UNSIGNED)          \
    X(UINT32, uint32, uint32_t, UNSIGNED)          \
    X(UINT64, uint64, uint64_t, UNSIGNED)          \
    X(INT8, int8, int8_t, SIGNED)                  \
    X(INT16, int16, int16_t, SIGNED)               \
    X(INT32, int32, int32_t, SIGNED)               \
    X(INT64, int64, int64_t, SIGNED)               \
    X(FLOAT16, float16, tp_half, FLOATING)         \
    X(BFLOAT16, bfloat16, tp_bfloat, FLOATING)     \
    X(FLOAT32, float32, float, FLOATING)           \
    X(FLOAT64, float64, double, FLOATING)          \
    X(COMPLEX64, complex64, tp_complex64, COMPLEX) \
    X(COMPLEX128, complex128, tp_complex128, COMPLEX)

typedef enum {
#define TP_DTYPE_ENUM(id, name, ctype, category) TP_##id,
    TP_FORALL_DTYPES(TP_DTYPE_ENUM)
#undef TP_DTYPE_ENUM
        TP_NUM_DTYPES,
    TP_NO_DTYPE = -1 /* None of a `ScalarType?` */
} tp_dtype;

typedef enum { TP_BOOLEAN, TP_UNSIGNED, TP_SIGNED, TP_FLOATING, TP_COMPLEX } tp_category;

extern const uint8_t tp_dtype_sizes[TP_NUM_DTYPES];
extern const uint8_t tp_dtype_categories[TP_NUM_DTYPES];
extern const char *const tp_dtype_names[TP_NUM_DTYPES]; /* "float32" */

TP_INLINE int64_t tp_itemsize(tp_dtype d) { return tp_dtype_sizes[d]; }
TP_INLINE bool tp_is_complex_dtype(tp_dtype d) { return tp_dtype_categories[d] == TP_COMPLEX; }
TP_INLINE bool tp_is_floating_dtype(tp_dtype d) { return tp_dtype_categories[d] == TP_FLOATING; }
TP_INLINE bool tp_is_integral_dtype(tp_dtype d) { /* bool excluded */
    return tp_dtype_categories[d] == TP_UNSIGNED || tp_dtype_categories[d] == TP_SIGNED;
}
TP_INLINE bool tp_is_reduced_dtype(tp_dtype d) { return d == TP_FLOAT16 || d == TP_BFLOAT16; }

/* The type that arithmetic on d is done in: float32 for the 16-bit floats, d for all others. */
TP_INLINE tp_dtype tp_compute_dtype(tp_dtype d) { return tp_is_reduced_dtype(d) ? TP_FLOAT32 : d; }
/* complex64 -> float32, complex128 -> float64, others unchanged; and the way back (float16/32 -> complex64). */
tp_dtype tp_to_real_dtype(tp_dtype d);
tp_dtype tp_to_complex_dtype(tp_dtype d);

/* PyTorch's promotion of two dtypes; commutative. Unsigned types wider than 8 bits with a signed one have no common
 * type in PyTorch 2.13: TP_NO_DTYPE, with the error set. */
tp_dtype tp_promote_dtypes(tp_dtype a, tp_dtype b);
/* Whether a result of dtype `from` may be written to a tensor of dtype `to` (category order bool < int < float <
 * complex). */
bool tp_can_cast(tp_dtype from, tp_dtype to);

/* The default floating dtype of the process (float32 at start). */
tp_dtype tp_default_dtype(void);
void tp_set_default_dtype(tp_dtype d);
