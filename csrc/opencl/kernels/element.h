/* element.h: elements of any dtype in OpenCL C: how one is stored, read and written.
 *
 * bool is stored as a byte and the 16-bit floats as their bits, so no extension is needed for either; a kernel computes
 * in a dtype that OpenCL C has (`compute`). The conversions are those of cpu/cast.c. */
#pragma once

#include "core/dtype.h"
#include "core/error.h"

/* "tp_f32": what a kernel computes in; NULL for the 16-bit floats. */
const char *tp_cl_type(tp_dtype d);
/* "ushort" of float16: what lies in memory. */
const char *tp_cl_storage(tp_dtype d);

/* An expression of dtype `to` for the stored value `text` of dtype `from`, and one to be stored for a computed value.
 */
void tp_cl_add_load(tp_text *s, tp_dtype from, tp_dtype to, const char *text);
void tp_cl_add_store(tp_text *s, tp_dtype from, tp_dtype to, const char *text);

/* Definitions for a file of csrc/opencl: NAME_S, the stored type; NAME_LOAD(v), which converts a stored value to the
 * dtype `compute`; NAME_STORE(v), the way back; and NAME_T, the computing type. */
void tp_cl_define(tp_text *s, const char *name, tp_dtype stored, tp_dtype compute);
/* The same for vectors of `width` elements in a contiguous row: NAME_VLOAD(p) and NAME_VSTORE(v, p), the vector's type
 * NAME_V. Floating dtypes, computed in float32 or float64. */
void tp_cl_define_vectors(tp_text *s, const char *name, tp_dtype stored, int width);
