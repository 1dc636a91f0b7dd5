/* each.h: operators over lists of tensors: what the generator's kernels of them call (codegen/each.py). */
#pragma once

#include "dispatch/op.h"

/* Calls an operator for each place of the lists among `args`, which stand where its tensors and numbers stand; a tensor
 * of one dimension in the place of a number is a list of numbers, too. New. */
tp_tensor_seq *tp_each_new(const char *called, const tp_value *args, int nargs);
/* The same for an operator that writes its first argument. */
int tp_each_into(const char *called, const tp_value *args, int nargs);
