/* copy.h: filling tensors without the dispatcher. (tp_copy_data is in iter/iter.h, which needs it too.) */
#pragma once

#include "core/scalar.h"
#include "core/tensor.h"

/* Every element becomes the value, converted as tp_scalar_store does; any device and strides. */
int tp_fill_data(tp_tensor *t, const tp_scalar *value);
