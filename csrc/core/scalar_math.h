/* scalar_math.h: what lowered formulas (codegen/formula.py) compute with besides tensors: numbers of any kind, int
 * lists and strings.
 *
 * Every function on numbers is total: ints wrap, a division by zero gives what floats give (0 for floor_div and
 * floor_mod). A result has the wider kind of its operands, as in Python: bool < int < float < complex; `div` is true
 * division. Indices and lists can fail: Note [Status]. */
#pragma once

#include "core/tensor.h"

#include <math.h>
#include <string.h>

tp_scalar tp_scalar_add(const tp_scalar *a, const tp_scalar *b);
tp_scalar tp_scalar_sub(const tp_scalar *a, const tp_scalar *b);
tp_scalar tp_scalar_mul(const tp_scalar *a, const tp_scalar *b);
tp_scalar tp_scalar_div(const tp_scalar *a, const tp_scalar *b);
tp_scalar tp_scalar_pow(const tp_scalar *a, const tp_scalar *b); /* ints too are raised as floats */
tp_scalar tp_scalar_neg(const tp_scalar *a);
tp_scalar tp_scalar_conj(const tp_scalar *a);
tp_scalar tp_scalar_exp(const tp_scalar *a);
tp_scalar tp_scalar_log(const tp_scalar *a);
tp_scalar tp_scalar_sqrt(const tp_scalar *a);
bool tp_scalar_equal(const tp_scalar *a, const tp_scalar *b);
/* By the real parts. */
bool tp_scalar_less(const tp_scalar *a, const tp_scalar *b);
bool tp_scalar_less_equal(const tp_scalar *a, const tp_scalar *b);

TP_INLINE int64_t tp_floor_mod(int64_t a, int64_t b) {
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return r && (r < 0) != (b < 0) ? r + b : r;
}
TP_INLINE int64_t tp_floor_div(int64_t a, int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return (int64_t)(0 - (uint64_t)a);
    return a / b - (a % b && (a < 0) != (b < 0));
}
TP_INLINE int64_t tp_abs_int(int64_t a) { return a < 0 ? (int64_t)(0 - (uint64_t)a) : a; }
TP_INLINE double tp_abs_double(double a) { return fabs(a); }
TP_INLINE int64_t tp_min_int(int64_t a, int64_t b) { return b < a ? b : a; }
TP_INLINE int64_t tp_max_int(int64_t a, int64_t b) { return b > a ? b : a; }
/* n / by, rounded up, for n >= 0 and by > 0. */
TP_INLINE int64_t tp_divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
TP_INLINE double tp_min_double(double a, double b) { return b < a ? b : a; }
TP_INLINE double tp_max_double(double a, double b) { return b > a ? b : a; }

/* NULL (None) equals NULL only. */
TP_INLINE bool tp_str_equal(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

/* ---- int lists ---- */
bool tp_ints_equal(tp_ints a, tp_ints b);
int64_t tp_ints_numel(tp_ints sizes);
/* The place of item i, counted from the end if negative; -1 and an IndexError outside. */
int64_t tp_list_index(int64_t size, int64_t i);
/* v[low:high] as in Python; shares v's memory. */
tp_ints tp_ints_slice(tp_ints v, int64_t low, int64_t high);
/* a + b, in `room` for TP_MAX_DIMS; size -1 and a RuntimeError if that is too little. */
tp_ints tp_ints_join(int64_t *room, tp_ints a, tp_ints b);
/* The size of a wrapped dimension; the one dimension that a 0-dimensional tensor pretends to have is 1. */
TP_INLINE int64_t tp_size_at(tp_ints sizes, int64_t dim) { return dim < sizes.size ? sizes.data[dim] : 1; }
