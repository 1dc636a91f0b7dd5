/* value.h: the boxed value (tp_value, in tensorpy/types.h).
 *
 * The boxed calling convention serves custom operators, fallbacks, tracing and profiling. A value inside an argument
 * array is borrowed; a result value is new and released with tp_value_release. */
#pragma once

#include "core/list.h"
#include "core/tensor.h"

void tp_value_release(tp_value *v);
