/* backend.h: a device that is built outside of tensorpy's tree: what it brings, and what it is given.
 *
 * A backend is a shared library with one entry, TENSORPY_BACKEND_ENTRY, that tensorpy.backends.load() calls with the
 * table of functions below. It registers itself there: its name, which then is a device type as "cpu" is, and its
 * memory. From then on every operator works on its tensors: views, factories, autograd and autocast are the core's;
 * what has no kernel of the backend's own is computed by the CPU's, with copies there and back, and counted
 * (tensorpy.backends.fallback_calls). tensorpy.testing.device tests it.
 *
 * A load is a transaction: devices appear when the entry has returned 0; if it fails, nothing of what it registered
 * stays.
 *
 * Versioning: both structs begin with what says how much of them there is, and only grow at their ends, so that a
 * backend built against one release loads in the next: what lies beyond its `size` counts as NULL. Functions give 0, or
 * -1 with the error set (`fail`). */
#ifndef TENSORPY_BACKEND_H
#define TENSORPY_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#define TENSORPY_BACKEND_VERSION 1
#define TENSORPY_BACKEND_ENTRY tensorpy_backend_load
#define TENSORPY_MAX_BACKENDS 3

/* The device's memory. An address need not be readable by the host, but arithmetic on it stays inside a block.
 * From copy_inside on a function may be left out. */
typedef struct {
    size_t size;      /* sizeof(tensorpy_backend) */
    const char *name; /* letters, digits, underscores; of no other device, nor of one that PyTorch has ("cuda") */
    void *(*allocate)(int device, size_t nbytes, void **context); /* NULL: failed; `*context` comes back at release */
    void (*release)(int device, void *data, size_t nbytes, void *context);
    int (*copy_from_host)(int device, void *to, const void *from, size_t nbytes);
    int (*copy_to_host)(int device, void *to, const void *from, size_t nbytes);
    int (*copy_inside)(int device, void *to, const void *from, size_t nbytes); /* NULL: by way of the host */
    int (*device_count)(void);                                                 /* at least 1; NULL: 1 */
    int (*synchronize)(int device);                                            /* NULL: there is nothing to wait for */
} tensorpy_backend;

/* One call of an operator, alive while the kernel runs. A kernel that returns 0 has given all results (`on_cpu` does).
 */
typedef struct tensorpy_call tensorpy_call;
typedef int (*tensorpy_kernel)(tensorpy_call *call, void *context);

typedef struct {
    uint32_t version; /* of the tensorpy that is running: TENSORPY_BACKEND_VERSION or later */
    int (*register_backend)(const tensorpy_backend *backend); /* in the entry; it is copied, its functions stay */
    /* A kernel for an operator by its full name, "add.Tensor"; one for each. */
    int (*register_kernel)(const char *backend, const char *operator_, tensorpy_kernel kernel, void *context);
    /* Inside a kernel: has the CPU compute the call, on copies. */
    int (*on_cpu)(tensorpy_call *call);
    /* Sets a RuntimeError; always -1. */
    int (*fail)(const char *message);
} tensorpy_functions;

typedef int (*tensorpy_backend_entry)(const tensorpy_functions *tensorpy);

#endif
