/* backend.h: a device that is built outside of tensorpy's tree: what it brings.
 *
 *     TENSORPY_BACKEND(mirror, b) {
 *         b->allocate = allocate;
 *         ...
 *     }
 *
 * in a library (tensorpy/library.h) makes "mirror" a device type as "cpu" is. With its memory alone every operator
 * works on it: views, factories, autograd and autocast are the core's, and what has no kernel of the backend's own is
 * computed by the CPU, with copies there and back, and counted (tensorpy.backends.fallback_calls). Its kernels are
 * registered as those of any library, TENSORPY_LIBRARY_IMPL(aten, mirror, m); those of the namespace `prim`,
 * yaml/primitives.yaml, take all operators that are made of them off the host. tensorpy.testing.device tests it.
 *
 * The struct only grows at its end, and `size` says how much of it a library knows: what lies beyond counts as NULL.
 * Functions give 0, or -1 with the error set (tp_fail). */
#ifndef TENSORPY_BACKEND_H
#define TENSORPY_BACKEND_H

#include <stddef.h>

/* How many there may be in a process. */
#define TENSORPY_MAX_BACKENDS 3

/* The device's memory. An address need not be readable by the host, but arithmetic on it stays inside a block.
 * From copy_inside on a function may be left out. */
typedef struct {
    size_t size;      /* sizeof(tensorpy_backend); filled in by TENSORPY_BACKEND, as the name is */
    const char *name; /* letters, digits, underscores; of no other device, nor of one that PyTorch has ("cuda") */
    void *(*allocate)(int device, size_t nbytes, void **context); /* NULL: failed; `*context` comes back at release */
    /* Once for each block, with what it was made of; cannot fail. */
    void (*release)(int device, void *data, size_t nbytes, void *context);
    /* `from` may be written again when it is back. */
    int (*copy_from_host)(int device, void *to, const void *from, size_t nbytes);
    /* `to` holds the bytes when it is back, whatever the device had been told to do before. */
    int (*copy_to_host)(int device, void *to, const void *from, size_t nbytes);
    int (*copy_inside)(int device, void *to, const void *from, size_t nbytes); /* NULL: by way of the host */
    int (*device_count)(void);                                                 /* at least 1; NULL: 1 */
    int (*synchronize)(int device);                                            /* NULL: there is nothing to wait for */
    /* 1: what `allocate` gives is a handle and no address (Note [Opaque tensors] in core/storage.h). The functions get
     * it as it was given, and all of its bytes; a tensor is the whole of a handle, in the order of rows, and has no
     * views. Operators are kernels of the backend's own for whole operators, or the host's; primitives are not asked.
     * 0: an address. Since 0.1. */
    int opaque;
} tensorpy_backend;

#endif
