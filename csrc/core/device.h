/* device.h: devices and what a device must be able to do.
 *
 * A device is a type and an index. Everything that the core asks of a device (memory, copies to and from the host) goes
 * through its tp_device_ops, registered once per type: the CPU and Meta register theirs at load, OpenCL and outside
 * backends when they are opened. */
#pragma once

#include "core/base.h"
#include "core/key_list.h"
#include "tensorpy/backend.h"
#include "tensorpy/types.h"

#define TP_CPU ((tp_device){TP_DEVICE_CPU, -1})
#define TP_META ((tp_device){TP_DEVICE_META, -1})
#define TP_NO_DEVICE ((tp_device){-1, -1})
#define TP_NO_STREAM ((tp_stream){TP_NO_DEVICE, 0})

TP_INLINE bool tp_device_equal(tp_device a, tp_device b) { return a.type == b.type && a.index == b.index; }

/* The set of dispatch keys of a new dense tensor on each device type. The core does not know what the keys mean: the
 * dispatcher fills the array at load, the core copies from it when it makes a tensor. */
extern tp_keyset tp_device_keys[TP_NUM_DEVICES];
/* Whether a device shows no memory: Note [Opaque tensors] in storage.h. */
extern bool tp_device_opaque[TP_NUM_DEVICES];
TP_INLINE bool tp_is_opaque_device(tp_device d) {
    return d.type >= TP_DEVICE_PRIVATEUSE1 && d.type < TP_NUM_DEVICES && tp_device_opaque[d.type];
}

struct tp_stream_ops;
struct tp_memory_ops; /* both in core/stream.h */

typedef struct tp_device_ops {
    /* Memory of at least nbytes, 64-byte aligned; `*context` comes back at release. NULL and the error set on
     * failure. */
    void *(*allocate)(tp_device d, size_t nbytes, void **context);
    void (*release)(tp_device d, void *data, size_t nbytes, void *context);
    /* Copies bytes between the host and the device, or inside the device; complete on return. */
    int (*copy_from_host)(tp_device d, void *dst, const void *src, size_t nbytes);
    int (*copy_to_host)(tp_device d, void *dst, const void *src, size_t nbytes);
    int (*copy_inside)(tp_device d, void *dst, const void *src, size_t nbytes);
    int (*device_count)(void);
    int (*current_device)(void);
    int (*set_device)(int index);
    int (*synchronize)(tp_device d);
    /* Optional, all three. Host memory that copies to and from the device need not wait for: a storage of the CPU; and
     * a copy between such a storage and the device (same sizes, strides and dtype) that is only enqueued and keeps both
     * storages until it is done: 1, or 0 where these two cannot be copied so. */
    tp_storage *(*pin)(tp_device d, size_t nbytes);
    bool (*is_pinned)(const tp_storage *s);
    int (*copy_async)(tp_tensor *dst, const tp_tensor *src);
    /* Optional: NULL where the device has none. */
    const struct tp_stream_ops *streams;
    const struct tp_memory_ops *memory;
    int (*properties)(tp_device d, tensorpy_device_properties *out);
    bool (*has_double)(tp_device d); /* NULL: it has */
} tp_device_ops;

void tp_register_device(tp_device_type type, const tp_device_ops *ops);
const tp_device_ops *tp_device_get_ops(tp_device_type type);  /* NULL and the error set if none is registered */
const tp_device_ops *tp_device_find_ops(tp_device_type type); /* NULL if none is registered */
bool tp_device_has_double(tp_device d);                       /* whether float64 can be computed in */

/* The device with its index filled in: the current one for -1, always -1 for the CPU and Meta, which have no index.
 * Fails for a device that is not registered or not there. */
int tp_device_resolve(tp_device d, tp_device *out);

const char *tp_device_type_name(tp_device_type type); /* "cpu"; a renamed PrivateUse type has its new name */
/* Whether a device from outside may be called so: RuntimeError for what is no identifier, or is taken. */
int tp_check_device_name(const char *name);
/* Names a PrivateUse type, once; RuntimeError for another type, a name that is taken, or a second name. */
int tp_rename_device(tp_device_type type, const char *name);
/* What programs call OpenCL's devices, printed and parsed, beside their own name, which is parsed still: a name that
 * may be PyTorch's ("cuda"). NULL takes it back. */
void tp_call_opencl(const char *name);
/* Looks for a type that nobody has registered: 1 if it may be there now, 0 if not, -1: error. NULL: nobody looks.
 * The caller of tp_device_parse holds the host lock then. */
extern int (*tp_find_device_type)(const char *name);
/* For the error about an unknown name: devices that could be had ("a, b"); a long text is cut. */
void tp_set_installed_devices(const char *names);
/* Parses "cpu", "opencl:1", and names of PyTorch's devices that are not here ("cuda"), whose use fails; RuntimeError
 * for an unknown name or a bad index. */
int tp_device_parse(const char *text, tp_device *out);
/* Writes "cpu" or "opencl:0" into a buffer of at least 40 bytes and returns it. */
const char *tp_device_print(tp_device d, char *buffer);

/* Where a factory makes its tensor when it is told no device: the thread's own default while it has one, else the
 * process's: the CPU, until set. */
tp_device tp_default_device(void);
void tp_set_default_device(tp_device d);
/* Gives this thread a default (TP_NO_DEVICE: none); what it had before. */
tp_device tp_swap_scoped_device(tp_device d);
