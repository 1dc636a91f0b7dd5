/* pointwise.h: everything between a pointwise operator's registration and the primitive map: result type, broadcast
 * shape, output, overlap. */
#pragma once

#include "native/common/out.h"
#include "prim/pointwise.h"

/* The operator itself, or the one that takes its place for these inputs. */
const tp_pointwise *tp_pointwise_case_of(const tp_pointwise *p, const tp_operand *inputs);
/* The functional variant, and the in-place and out= variants. `params` are boxed, in schema order. */
tp_tensor *tp_pointwise_new(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params);
int tp_pointwise_into(const tp_pointwise *p, const tp_operand *inputs, const tp_value *params, tp_tensor *out,
                      tp_variant variant);
