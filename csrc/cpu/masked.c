/* masked.c: packing and unpacking by a mask. A mask has no pattern that a branch could be predicted from: its bytes are
 * looked at eight at a time, and packing moves on by what the mask says.
 *
 * Where a loop ends follows from the sizes of what it reads and writes, never from the mask alone: its bytes may be
 * any, and another thread may write them. */
#include "cpu/masked.h"

#include <string.h>

#define ONES UINT64_C(0x0101010101010101)
#define LOW (0x7f * ONES)

/* Eight bytes as eight truths of 0 or 1. */
TP_INLINE uint64_t truths(const uint8_t *mask) {
    uint64_t eight;
    memcpy(&eight, mask, 8);
    return (((eight & LOW) + LOW) | eight) >> 7 & ONES;
}

int64_t tp_mask_count(const uint8_t *mask, int64_t n) {
    int64_t count = 0, i = 0;
    for (; i + 8 <= n; i += 8) count += (int64_t)(truths(mask + i) * ONES >> 56);
    for (; i < n; i++) count += mask[i] != 0;
    return count;
}

typedef struct {
    uint64_t half[2];
} bytes16;

/* Eight at a time, while there is room for eight: all of them, none, or each written and kept where the mask is true.
 */
#define MASKED(suffix, T)                                                                                 \
    static int64_t pack_##suffix(T *to, int64_t count, const T *from, const uint8_t *mask, int64_t n) {   \
        int64_t i = 0, k = 0;                                                                             \
        for (; count - k >= 8 && n - i >= 8; i += 8) {                                                    \
            uint64_t eight = truths(mask + i);                                                            \
            if (eight == ONES) memcpy(to + k, from + i, 8 * sizeof(T)), k += 8;                           \
            else if (eight)                                                                               \
                for (int b = 0; b < 8; b++, eight >>= 8) to[k] = from[i + b], k += (int64_t)(eight & 1);  \
        }                                                                                                 \
        for (; k < count && i < n; i++)                                                                   \
            if (mask[i]) to[k++] = from[i];                                                               \
        return k;                                                                                         \
    }                                                                                                     \
    static int64_t unpack_##suffix(T *to, const T *from, int64_t count, const uint8_t *mask, int64_t n) { \
        int64_t k = 0;                                                                                    \
        for (int64_t i = 0; k < count && i < n; i++)                                                      \
            if (mask[i]) to[i] = from[k++];                                                               \
        return k;                                                                                         \
    }
MASKED(1, uint8_t)
MASKED(2, uint16_t)
MASKED(4, uint32_t)
MASKED(8, uint64_t)
MASKED(16, bytes16)

int64_t tp_mask_pack(void *to, int64_t count, const void *from, const uint8_t *mask, int64_t n, int64_t itemsize) {
    switch (itemsize) {
    case 1: return pack_1(to, count, from, mask, n);
    case 2: return pack_2(to, count, from, mask, n);
    case 4: return pack_4(to, count, from, mask, n);
    case 8: return pack_8(to, count, from, mask, n);
    default: return pack_16(to, count, from, mask, n);
    }
}
int64_t tp_mask_unpack(void *to, const void *from, int64_t count, const uint8_t *mask, int64_t n, int64_t itemsize) {
    switch (itemsize) {
    case 1: return unpack_1(to, from, count, mask, n);
    case 2: return unpack_2(to, from, count, mask, n);
    case 4: return unpack_4(to, from, count, mask, n);
    case 8: return unpack_8(to, from, count, mask, n);
    default: return unpack_16(to, from, count, mask, n);
    }
}

int64_t tp_mask_places(int64_t *to, int64_t count, const uint8_t *mask, int64_t first, int64_t last) {
    int64_t k = 0;
    for (int64_t i = first; k < count && i < last; i++) {
        to[k] = i;
        k += mask[i] != 0;
    }
    return k;
}
