/* permuted.h: copies between tensors of one dtype whose dimensions lie in another order. */
#pragma once

#include "iter/iter.h"

/* Runs the plan of a copy (operand 1 to operand 0, elements of `itemsize` bytes) where rows are short or the source
 * lies across. False: a loop along rows is as good; else *status is 0, or -1 and the error. */
bool tp_copy_permuted(const tp_iter *it, int64_t itemsize, int *status);

/* `rows` rows of n elements from `from_row` bytes apart, whose elements are `step` bytes apart, to `to_row` apart,
 * where their elements follow each other. */
void tp_copy_rectangle(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t step, int64_t itemsize,
                       int64_t n, int64_t rows);
