/* list.h: writing the list and optional types of schema arguments (tensorpy/types.h) in C. */
#pragma once

#include "core/base.h"
#include "core/scalar.h"

/* Member by member, for arguments that layers pass on: after a caller's stores of the members, the wide load of a
 * whole struct would wait until they have left the store buffer. */
TP_INLINE tp_opt_int tp_pass_opt_int(tp_opt_int o) { return (tp_opt_int){o.has, o.value}; }
TP_INLINE tp_opt_float tp_pass_opt_float(tp_opt_float o) { return (tp_opt_float){o.has, o.value}; }

#define TP_INTS(...) ((tp_ints){(const int64_t[]){__VA_ARGS__}, TP_COUNTOF(((const int64_t[]){__VA_ARGS__}))})
#define TP_NO_INTS ((tp_ints){NULL, -1})
#define TP_EMPTY_INTS ((tp_ints){NULL, 0})
#define TP_SOME_INT(v) ((tp_opt_int){true, (v)})
#define TP_NO_INT ((tp_opt_int){false, 0})
#define TP_SOME_FLOAT(v) ((tp_opt_float){true, (v)})
#define TP_NO_FLOAT ((tp_opt_float){false, 0})
