/* value.h: the boxed value (tp_value, in tensorpy/types.h).
 *
 * The boxed calling convention serves custom operators, fallbacks, tracing and profiling. A value inside an argument
 * array is borrowed; a result value is new and released with tp_value_release. */
#pragma once

#include "core/list.h"
#include "core/tensor.h"

void tp_value_release(tp_value *v);
/* The tensors of an argument; none for another kind of value. */
TP_INLINE tp_tensors tp_value_tensors(const tp_value *v) {
    if (v->tag == TP_TENSORS) return v->tensors;
    return v->tag == TP_TENSOR ? (tp_tensors){&v->tensor, 1} : (tp_tensors){NULL, 0};
}
