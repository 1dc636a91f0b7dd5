/* memory.h: where a tensor's elements lie. For kernels, and for what moves bytes: operators are made of primitives. */
#pragma once

#if defined(TP_FOLDER_native) || defined(TP_FOLDER_autograd) || defined(TP_FOLDER_autocast) || \
    defined(TP_FOLDER_dispatch)
#error "what is the same on every device reads no memory: call a primitive, or use a table of the host (prim/table.h)"
#endif

#include "core/tensor.h"

#include <string.h>

/* The first element; on another device than the host an address of that device. Through an integer, since without data
 * (Meta, no elements) there is only an offset from NULL. */
TP_INLINE void *tp_data(const tp_tensor *t) {
    return (void *)((uintptr_t)t->storage->data + (uintptr_t)t->byte_offset);
}

/* memcpy. On AMD's Zen 3 and 4 glibc copies from 2 KB up to about a megabyte with `rep movsb`, which takes ten to
 * twenty times as long where the destination lies 1 to 31 bytes after the source, counted modulo a page: in a slice
 * from the second byte on of one new block, read from another (glibc's bug 30994). Such copies go by blocks from the
 * end. */
#define TP_MOVSB_LEAST 2048
#define TP_MOVSB_MOST ((size_t)1 << 20)

void tp_copy_from_the_end(char *to, const char *from, size_t n);

TP_INLINE void tp_copy_bytes(void *to, const void *from, size_t n) {
    const uintptr_t after = ((uintptr_t)to - (uintptr_t)from) % 4096;
    if (n >= TP_MOVSB_LEAST && n < TP_MOVSB_MOST && after - 1 < 31) tp_copy_from_the_end(to, from, n);
    else memcpy(to, from, n);
}
