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
 * Functions give 0, or -1 with the error set (tp_fail). They are called with the host lock held, which one that waits
 * gives up meanwhile (tp_host_lock_release), if nothing else is said. */
#ifndef TENSORPY_BACKEND_H
#define TENSORPY_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many there may be in a process. */
#define TENSORPY_MAX_BACKENDS 3

/* The figures of a device's memory, in bytes. */
typedef struct {
    size_t size;                       /* of the struct, filled in by the caller */
    int64_t allocated, peak_allocated; /* of the blocks that tensors have; the most since the last reset */
    int64_t reserved, peak_reserved;   /* with what is kept for later; likewise */
    int64_t blocks;                    /* how many blocks tensors have */
} tensorpy_memory_stats;

/* What a device is. The name lives as long as the process. */
typedef struct {
    size_t size;                   /* of the struct, filled in by the caller */
    const char *name;              /* of the hardware, for people */
    int64_t total_memory;          /* bytes; 0: not known */
    int64_t multi_processor_count; /* 0: not known */
} tensorpy_device_properties;

/* The device's memory. An address need not be readable by the host, but arithmetic on it stays inside a block.
 * From copy_inside on a function may be left out; those of a group ("all of these or none") only together. */
typedef struct {
    size_t size;      /* sizeof(tensorpy_backend); filled in by TENSORPY_BACKEND, as the name is */
    const char *name; /* letters, digits, underscores; of no other device, nor of one that PyTorch has ("cuda") */
    void *(*allocate)(int device, size_t nbytes, void **context); /* NULL: failed; `*context` comes back at release */
    /* Once for each block, with what it was made of; cannot fail. Any thread may call it, without the lock. */
    void (*release)(int device, void *data, size_t nbytes, void *context);
    /* `from` may be written again when it is back. */
    int (*copy_from_host)(int device, void *to, const void *from, size_t nbytes);
    /* `to` holds the bytes when it is back, whatever the device had been told to do before. */
    int (*copy_to_host)(int device, void *to, const void *from, size_t nbytes);
    int (*copy_inside)(int device, void *to, const void *from, size_t nbytes); /* NULL: by way of the host */
    int (*device_count)(void);                                                 /* at least 1; NULL: 1 */
    int (*synchronize)(int device);                                            /* NULL: there is nothing to wait for */

    /* ---- streams: all of these or none ---- (see tensorpy.Stream)
     * A thread's current stream of a device is kept for the backend, whose kernels and copies ask for it with
     * tp_current_stream; 0 is the default one. A device enqueues its kernels in it; copies to and from the host are
     * complete on return, in its order. There are at most 16 devices then. What `synchronize` waits for is all streams.
     */
    int64_t (*stream_new)(int device, int priority);       /* the number of a stream beside the default one: 1 to 255 */
    int (*stream_query)(int device, int64_t stream);       /* 1: all that it was given is done; 0: not yet */
    int (*stream_synchronize)(int device, int64_t stream); /* waits until that is so */
    /* A mark after all that the stream was given; NULL: failed. With timing event_elapsed may be asked of it. */
    void *(*event_record)(int device, int64_t stream, bool timing);
    void (*event_release)(void *event);                               /* once for each; nothing waits for it any more */
    int (*event_query)(void *event);                                  /* 1: it was reached; 0: not yet */
    int (*event_synchronize)(void *event);                            /* waits until that is so */
    int (*event_wait)(void *event, int device, int64_t stream);       /* the stream goes on when it was reached */
    int (*event_elapsed)(void *from, void *to, double *milliseconds); /* both were reached */
    /* A block's memory is used by a stream, too, for which the next owner has to wait. */
    void (*record_stream)(int device, void *context, int64_t stream);

    /* ---- figures of the memory: all of these or none ---- */
    int (*memory_stats)(int device, tensorpy_memory_stats *out); /* fills in as much as out->size has */
    int (*reset_peak_memory_stats)(int device);                  /* the peaks are what there is now */
    int (*empty_cache)(int device);                              /* gives back what no tensor holds */

    /* ---- memory of the host that copies need not wait for: all of these or none ---- */
    void *(*pin)(size_t nbytes);              /* NULL: failed */
    void (*unpin)(void *data, size_t nbytes); /* once for each; copies of it have ended */
    /* Enqueues a copy between such memory and the device in the current stream, and calls done(context) after it, from
     * any thread, without the host lock. */
    int (*copy_async)(int device, void *to, const void *from, size_t nbytes, bool to_device, void (*done)(void *),
                      void *context);

    int (*properties)(int device, tensorpy_device_properties *out); /* NULL: its name is the device type's */
    /* 1: what `allocate` gives is a handle and no address (Note [Opaque tensors] in core/storage.h). The functions get
     * it as it was given, and all of its bytes; a tensor is the whole of a handle, in the order of rows, and has no
     * views. Operators are kernels of the backend's own for whole operators, or the host's; primitives are not asked.
     * 0: an address. */
    int opaque;
} tensorpy_backend;

#endif
