/* masked.h: elements in line, picked by a mask of bools. */
#pragma once

#include "core/base.h"

int64_t tp_mask_count(const bool *mask, int64_t n);
/* The elements of `from` whose mask is true, one after the other; `to` has room for those and no more. */
void tp_mask_pack(void *to, const void *from, const bool *mask, int64_t n, int64_t itemsize);
/* The other way: the elements of `to` whose mask is true get the next one of `from`. */
void tp_mask_unpack(void *to, const void *from, const bool *mask, int64_t n, int64_t itemsize);
