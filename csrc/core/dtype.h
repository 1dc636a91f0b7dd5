/* dtype.h: element types, their properties and promotion.
 *
 * The list itself, TP_FORALL_DTYPES, stands in tensorpy/types.h. */
#pragma once

#include "core/base.h"
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
