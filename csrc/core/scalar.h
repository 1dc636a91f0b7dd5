/* scalar.h: a Python number (tp_scalar, in tensorpy/types.h) made, read and stored. */
#pragma once

#include "core/dtype.h"

#define TP_SCALAR_I(value) (&(const tp_scalar){.kind = TP_SCALAR_INT, .i = (value)})
#define TP_SCALAR_F(value) (&(const tp_scalar){.kind = TP_SCALAR_FLOAT, .f = (value)})
#define TP_SCALAR_B(value) (&(const tp_scalar){.kind = TP_SCALAR_BOOL, .b = (value)})
#define TP_SCALAR_C(value) (&(const tp_scalar){.kind = TP_SCALAR_COMPLEX, .c = (value)})

/* The value in another type. Integers wrap modulo 2**64, a float goes to an integer as C does for values in range and
 * saturates outside (NaN gives 0; a negative float goes to unsigned through int64); a complex number gives its real
 * part. */
int64_t tp_scalar_int(const tp_scalar *s);
uint64_t tp_scalar_uint(const tp_scalar *s);
double tp_scalar_double(const tp_scalar *s);
tp_complex128 tp_scalar_complex(const tp_scalar *s);
bool tp_scalar_bool(const tp_scalar *s);
bool tp_scalar_equals_int(const tp_scalar *s, int64_t value);

/* The dtype that the number has as an operand: bool, int64 (uint64 above its range), the default float, or its complex
 * type. */
tp_dtype tp_scalar_dtype(const tp_scalar *s);
/* 0 if converting to d loses nothing but precision (10**30 or NaN as an int does), else -1 and a RuntimeError.
 * As in PyTorch, a negative int wraps into an unsigned type down to -max, and everything fits bool. */
int tp_scalar_check_fits(const tp_scalar *s, tp_dtype d);
/* Reads and writes one element of dtype d at an address. */
tp_scalar tp_scalar_load(const void *p, tp_dtype d);
void tp_scalar_store(const tp_scalar *s, tp_dtype d, void *p);
/* What an element of a 16-bit float has of a real number: where it is too large, infinity. Of another dtype, s. */
tp_scalar tp_scalar_narrow(const tp_scalar *s, tp_dtype d);
