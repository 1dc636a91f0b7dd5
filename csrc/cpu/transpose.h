/* transpose.h: rows and columns exchanged, for copies and for loops over operands that lie across (run.c). */
#pragma once

#include <stdint.h>

/* Element j of line i at `from` goes to element i of line j at `to`, for n lines of m elements, whose elements follow
 * each other on both sides. Strides lead from line to line, in bytes. The two do not overlap. */
typedef void (*tp_transpose_fn)(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n,
                                int64_t m);
/* For elements of 1, 2, 4, 8 or 16 bytes. */
tp_transpose_fn tp_transpose_of(int64_t itemsize);
