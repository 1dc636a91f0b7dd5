/* cast_stored.h: conversion from and to complex32 and the 8-bit floats. */
#pragma once

#include "core/dtype.h"
#include "tensorpy/expressions.h"

/* The loop that converts operand 1 to operand 0 (tp_loop_fn); one of the two dtypes is a format of memory only. */
tp_loop_fn tp_cast_stored(tp_dtype from, tp_dtype to);
