/* order.h: elements as the primitives that compare them take them: shared by sort.c, order.c and unique.c. */
#pragma once

#include "core/tensor.h"

/* Contiguous, with dim last, 16-bit floats as float32; new. Complex ones are refused. */
tp_tensor *tp_comparable(const char *op, tp_tensor *self, int64_t dim);
/* The elements of self at places along dimension d, into values, which has the places' shape. */
int tp_take_along(tp_tensor *self, int64_t d, tp_tensor *places, tp_tensor *values);
