/* memory.h: where a tensor's elements lie. For kernels, and for what moves bytes: operators are made of primitives. */
#pragma once

#if defined(TP_FOLDER_native) || defined(TP_FOLDER_autograd) || defined(TP_FOLDER_autocast) || \
    defined(TP_FOLDER_dispatch)
#error "what is the same on every device reads no memory: call a primitive, or use a table of the host (prim/table.h)"
#endif

#include "core/tensor.h"

/* The first element; on another device than the host an address of that device. Through an integer, since without data
 * (Meta, no elements) there is only an offset from NULL. */
TP_INLINE void *tp_data(const tp_tensor *t) {
    return (void *)((uintptr_t)t->storage->data + (uintptr_t)t->byte_offset);
}
