/* elements.h: loops that make one of two rows of elements, for what an engine has not: 16-bit floats, and a MIN and MAX
 * of floats that keep NaN. All of them give the same bits with their operands exchanged. */
#pragma once

#include "distributed/engine.h"

struct mpi_object;
/* inout[i] = in[i] op inout[i]; the signature of an engine's own operations. */
typedef void (*tp_elements_fn)(void *in, void *inout, int64_t *n, struct mpi_object **type);

/* Whether an engine counts in ints: *n is one then. */
extern bool tp_elements_narrow;

/* NULL: the engine's own operation does. */
tp_elements_fn tp_elements_loop(tp_dtype dtype, tp_reduce_op op);
