/* masked.h: elements in line, picked by a mask: bytes, of which all but 0 are true. The walks say how many were. */
#pragma once

#include "core/base.h"

int64_t tp_mask_count(const uint8_t *mask, int64_t n);
/* The elements of `from` whose mask is true, one after the other, as far as the room for `count` of them goes. */
int64_t tp_mask_pack(void *to, int64_t count, const void *from, const uint8_t *mask, int64_t n, int64_t itemsize);
/* The other way: the elements of `to` whose mask is true get the next one of `from`, as long as it has `count`. */
int64_t tp_mask_unpack(void *to, const void *from, int64_t count, const uint8_t *mask, int64_t n, int64_t itemsize);
/* The places of the true bytes from `first` to `last`, as far as the room for `count` goes. */
int64_t tp_mask_places(int64_t *to, int64_t count, const uint8_t *mask, int64_t first, int64_t last);
