/* upsample.h: what the two families of resizing share. */
#pragma once

#include "core/tensor.h"

/* The sizes that `.vec` overloads name by a list or by factors (of which one has data), and the factors as scales;
 * `dims` of each are written. */
int tp_sizes_of_vec(const tp_tensor *input, tp_ints output_size, tp_floats factors, int dims, int64_t *sizes,
                    tp_opt_float *scales);
