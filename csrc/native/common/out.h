/* out.h: where an operator's result goes, and what a tensor that is given for it has to be. */
#pragma once

#include "core/tensor.h"

/* A new tensor, self, or an out= tensor: of the result's own dtype, or of any that it can be cast to, as the YAML's
 * `out_dtype` says. */
typedef enum { TP_VARIANT_NEW, TP_VARIANT_INPLACE, TP_VARIANT_OUT, TP_VARIANT_OUT_CAST } tp_variant;

/* Gives an out= tensor the result's sizes, and strides (TP_NO_INTS: contiguous). Warns where it had elements. */
int tp_resize_out(tp_tensor *out, tp_ints sizes, tp_ints strides);
/* RuntimeError where what is read with t, of these sizes, would not keep t's shape, as if it were written to t. */
int tp_check_takes(const tp_tensor *t, tp_ints read);
/* Whether a result of `dtype` may be written to `given`; the shape is not looked at. */
int tp_check_given(const tp_tensor *given, tp_variant variant, tp_dtype dtype, tp_device device);
int tp_check_given_dtype(const tp_tensor *given, tp_variant variant, tp_dtype dtype);
/* What PyTorch's messages call the C type of an element: "long int". */
const char *tp_c_type_name(tp_dtype d);
