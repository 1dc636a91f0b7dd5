/* masked.c: packing and unpacking by a mask. A mask has no pattern that a branch could be predicted from: bools are
 * counted eight at a time, and packing moves on by what the mask says. */
#include "cpu/masked.h"

#include <string.h>

int64_t tp_mask_count(const bool *mask, int64_t n) {
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t eight;
        memcpy(&eight, mask + i, 8);
        count += (int64_t)(eight * UINT64_C(0x0101010101010101) >> 56);
    }
    for (; i < n; i++) count += mask[i];
    return count;
}

typedef struct {
    uint64_t half[2];
} bytes16;

/* Packing writes every element, and its place moves on where the mask is true; it stops before room runs out. */
#define MASKED(suffix, T)                                                              \
    static void pack_##suffix(T *to, const T *from, const bool *mask, int64_t count) { \
        int64_t k = 0;                                                                 \
        for (int64_t i = 0; k < count; i++) {                                          \
            to[k] = from[i];                                                           \
            k += mask[i];                                                              \
        }                                                                              \
    }                                                                                  \
    static void unpack_##suffix(T *to, const T *from, const bool *mask, int64_t n) {   \
        for (int64_t i = 0, k = 0; i < n; i++)                                         \
            if (mask[i]) to[i] = from[k++];                                            \
    }
MASKED(1, uint8_t)
MASKED(2, uint16_t)
MASKED(4, uint32_t)
MASKED(8, uint64_t)
MASKED(16, bytes16)

void tp_mask_pack(void *to, const void *from, const bool *mask, int64_t n, int64_t itemsize) {
    int64_t count = tp_mask_count(mask, n);
    switch (itemsize) {
    case 1: pack_1(to, from, mask, count); break;
    case 2: pack_2(to, from, mask, count); break;
    case 4: pack_4(to, from, mask, count); break;
    case 8: pack_8(to, from, mask, count); break;
    default: pack_16(to, from, mask, count);
    }
}
void tp_mask_unpack(void *to, const void *from, const bool *mask, int64_t n, int64_t itemsize) {
    switch (itemsize) {
    case 1: unpack_1(to, from, mask, n); break;
    case 2: unpack_2(to, from, mask, n); break;
    case 4: unpack_4(to, from, mask, n); break;
    case 8: unpack_8(to, from, mask, n); break;
    default: unpack_16(to, from, mask, n);
    }
}
