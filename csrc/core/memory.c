/* memory.c: see memory.h. */
#include "core/memory.h"

#define BLOCK 64

void tp_copy_from_the_end(char *to, const char *from, size_t n) {
    for (; n >= BLOCK; n -= BLOCK) {
        char block[BLOCK];
        memcpy(block, from + n - BLOCK, BLOCK);
        memcpy(to + n - BLOCK, block, BLOCK);
    }
    memcpy(to, from, n);
}
