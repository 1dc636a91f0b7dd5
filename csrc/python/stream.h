/* stream.h: tensorpy.Stream as an argument of an operator. */
#pragma once

#include "python/common.h"

/* 1: o is a stream; 0: it is none; -1: an exception is set. */
int tp_py_to_stream(PyObject *o, tp_stream *out);
PyObject *tp_py_stream_object(tp_stream s);
