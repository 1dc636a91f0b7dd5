/* dtype.h: element types, their properties and promotion.
 *
 * The list itself, TP_FORALL_DTYPES, stands in tensorpy/types.h. */
#pragma once

#include "core/base.h"
#include "tensorpy/float8.h"
#include "tensorpy/half.h"
#include "tensorpy/types.h"

#include <complex.h>

extern const uint8_t tp_dtype_sizes[TP_NUM_DTYPES];
extern const uint8_t tp_dtype_categories[TP_NUM_DTYPES];
extern const char *const tp_dtype_names[TP_NUM_DTYPES]; /* "float32" */

TP_INLINE int64_t tp_itemsize(tp_dtype d) { return tp_dtype_sizes[d]; }
TP_INLINE bool tp_is_complex_dtype(tp_dtype d) { return tp_dtype_categories[d] == TP_COMPLEX; }
TP_INLINE bool tp_is_floating_dtype(tp_dtype d) { return tp_dtype_categories[d] == TP_FLOATING; }
TP_INLINE bool tp_is_integral_dtype(tp_dtype d) { /* bool excluded */
    return tp_dtype_categories[d] == TP_UNSIGNED || tp_dtype_categories[d] == TP_SIGNED;
}
/* A format of memory that nothing is computed in but by way of a wider one; complex32 and the 8-bit floats. */
TP_INLINE bool tp_is_stored_dtype(tp_dtype d) { return d >= TP_COMPLEX32; }
TP_INLINE bool tp_is_float8_dtype(tp_dtype d) { return d >= TP_FLOAT8_E4M3FN; }
/* Quantized tensors alone are of it: no memory has it, no kernel and no loop meets it. Whoever takes a dtype from
 * outside asks (tp_py_to_dtype in python/types.c). */
TP_INLINE bool tp_is_quantized_dtype(tp_dtype d) { return d >= TP_QUINT8; }
TP_INLINE bool tp_is_half_dtype(tp_dtype d) { return d == TP_FLOAT16 || d == TP_BFLOAT16; }
/* Arithmetic takes them by way of a wider one: the 16-bit floats and complex32. */
TP_INLINE bool tp_is_reduced_dtype(tp_dtype d) { return tp_is_half_dtype(d) || d == TP_COMPLEX32; }

TP_INLINE bool tp_is_signed_dtype(tp_dtype d) { return tp_dtype_categories[d] >= TP_SIGNED && d != TP_FLOAT8_E8M0FNU; }

/* The type that arithmetic on d is done in: float32 for the 8- and 16-bit floats, complex64 for complex32, d for all
 * others. */
TP_INLINE tp_dtype tp_compute_dtype(tp_dtype d) {
    if (tp_unlikely(tp_is_stored_dtype(d))) return d == TP_COMPLEX32 ? TP_COMPLEX64 : TP_FLOAT32;
    return tp_is_half_dtype(d) ? TP_FLOAT32 : d;
}
/* The unsigned type of the same size, whose bytes a stored dtype is moved as; d for all others. */
TP_INLINE tp_dtype tp_moved_dtype(tp_dtype d) {
    if (!tp_is_stored_dtype(d)) return d;
    return d == TP_COMPLEX32 ? TP_UINT32 : TP_UINT8;
}
/* complex32 -> float16, complex64 -> float32, complex128 -> float64, others unchanged; and the way back (bfloat16 and
 * float8 -> complex64). */
tp_dtype tp_to_real_dtype(tp_dtype d);
tp_dtype tp_to_complex_dtype(tp_dtype d);

/* PyTorch's promotion of two dtypes; commutative but for the message. Unsigned types wider than 8 bits with another
 * integer, and the 8-bit floats with anything else, have no common type in PyTorch 2.13: TP_NO_DTYPE, with the error
 * set. */
tp_dtype tp_promote_dtypes(tp_dtype a, tp_dtype b);
/* Whether a result of dtype `from` may be written to a tensor of dtype `to` (category order bool < int < float <
 * complex). */
bool tp_can_cast(tp_dtype from, tp_dtype to);

/* The names of C++ types that PyTorch's messages use: "Float". */
const char *tp_scalar_type_name(tp_dtype d);

/* The default floating dtype of the process (float32 at start). */
tp_dtype tp_default_dtype(void);
void tp_set_default_dtype(tp_dtype d);
