/* rounding.h: what the generated wrappers of operators that compute in steps call: 16-bit tensors become float32 on the
 * way in, and results are rounded once on the way out (codegen/rounding.py). The casts go through the layers that are
 * on: those of an operator made of others are differentiated, those below autograd are not. */
#pragma once

#include "core/tensor.h"

bool tp_has_reduced(tp_tensors list);
/* The 16-bit dtype that all floating tensors share; TP_NO_DTYPE if there is none. NULL counts for none. */
tp_dtype tp_rounded_dtype(tp_tensor *const *tensors, int n, const tp_tensors *lists, int nlists);
/* float32 for a 16-bit tensor, others as they are. New; NULL for NULL, or with the error set. */
tp_tensor *tp_widened(tp_tensor *t);
tp_tensor *tp_widened_steal(tp_tensor *t);
tp_tensor_seq *tp_widened_list(tp_tensors list);
int tp_widen_list(tp_tensor_seq *list); /* in place */
/* A float32 result as the 16-bit dtype, others as they are; NULL for NULL. */
tp_tensor *tp_rounded_steal(tp_tensor *t, tp_dtype to);
tp_tensor_seq *tp_rounded_list_steal(tp_tensor_seq *list, tp_dtype to);
/* Each of several results in its place; on failure all are released, and the first of a failed call is NULL. */
int tp_round_all(tp_tensor **made, int n, tp_dtype to);
/* What an in-place operator below autograd made of the wide copy, into the tensor itself; nothing if it was not
 * widened. */
int tp_round_into(tp_tensor *self, tp_tensor *wide);
