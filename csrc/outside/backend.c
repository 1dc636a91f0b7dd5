/* backend.c: devices from outside. A backend takes the first PrivateUse type that is free.
 *
 * A kernel registered for Dense runs here, as on every device, once the backend has the primitives that it calls: from
 * the start those that ask for memory and copies only (views, new tensors, copy_). For everything else the backend's
 * kernels come first, then the host (prim/host.h).
 *
 * Invariant: tp_backends[i] is written before its device type is registered, and then stays. The entries from `count`
 * on belong to the library that is being loaded, which has the turn. */
#include "outside/backend.h"

#include "core/error.h"
#include "core/lock.h"
#include "prim/host.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char names[TENSORPY_MAX_BACKENDS][64];
static int count, begun; /* of those whose devices are there; and that the library at hand brings */

static _Thread_local int current[TENSORPY_MAX_BACKENDS];

static tp_device_type type_of(int i) { return (tp_device_type)(TP_DEVICE_PRIVATEUSE1 + i); }

static int checked(const tensorpy_backend *b, int status, const char *what) {
    return (int)tp_backend_checked(b, status == 0 ? 0 : -1, what);
}

/* ---- the device ---- */

static void *allocate(tp_device d, size_t nbytes, void **context) {
    const tensorpy_backend *b = tp_backend_of(d);
    void *data = b->allocate(d.index, nbytes, context);
    if (!data && !tp_error_pending())
        tp_fail(TP_RuntimeError, "%s out of memory: %zu bytes cannot be allocated", b->name, nbytes);
    return data;
}
static void release(tp_device d, void *data, size_t nbytes, void *context) {
    tp_backend_of(d)->release(d.index, data, nbytes, context);
}
static int copy_from_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = tp_backend_of(d);
    return nbytes ? checked(b, b->copy_from_host(d.index, dst, src, nbytes), "a copy from the host") : 0;
}
static int copy_to_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = tp_backend_of(d);
    return nbytes ? checked(b, b->copy_to_host(d.index, dst, src, nbytes), "a copy to the host") : 0;
}
static int through_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    void *buffer = malloc(nbytes);
    int status = buffer ? copy_to_host(d, buffer, src, nbytes) : tp_fail_memory((int64_t)nbytes);
    if (status == 0) status = copy_from_host(d, dst, buffer, nbytes);
    free(buffer);
    return status;
}
static int copy_inside(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = tp_backend_of(d);
    if (!nbytes) return 0;
    return b->copy_inside ? checked(b, b->copy_inside(d.index, dst, src, nbytes), "a copy")
                          : through_host(d, dst, src, nbytes);
}
static int synchronize(tp_device d) {
    const tensorpy_backend *b = tp_backend_of(d);
    return b->synchronize ? checked(b, b->synchronize(d.index), "synchronize") : 0;
}

static int devices_of(const tensorpy_backend *b) { return b->device_count ? b->device_count() : 1; }

static int set_current(int i, int index) {
    int n = devices_of(&tp_backends[i]);
    if (index < 0 || index >= n)
        return tp_fail(TP_RuntimeError, "invalid device ordinal: %s:%d, but there are %d devices of that type",
                       tp_backends[i].name, index, n);
    current[i] = index;
    return 0;
}

/* What is optional is filled in when the backend is registered. */
#define DEVICE_OPS(i)                                                  \
    static int count_##i(void) { return devices_of(&tp_backends[i]); } \
    static int current_##i(void) { return current[i]; }                \
    static int set_##i(int index) { return set_current(i, index); }    \
    static tp_device_ops ops_##i = {.allocate = allocate,              \
                                    .release = release,                \
                                    .copy_from_host = copy_from_host,  \
                                    .copy_to_host = copy_to_host,      \
                                    .copy_inside = copy_inside,        \
                                    .device_count = count_##i,         \
                                    .current_device = current_##i,     \
                                    .set_device = set_##i,             \
                                    .synchronize = synchronize};
DEVICE_OPS(0)
DEVICE_OPS(1)
DEVICE_OPS(2)
static tp_device_ops *const device_ops[TENSORPY_MAX_BACKENDS] = {&ops_0, &ops_1, &ops_2};

/* ---- its operators ---- */

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const tensorpy_backend *b = context;
    tp_device_type type = type_of((int)(b - tp_backends));
    tp_count_host_call(type, op);
    return tp_call_on_host(type, op, ks, args, results);
}

/* ---- registration ---- */

/* What has to be there: everything up to the copies from and to the host. A library that was built with an older or a
 * newer header says by its size which part of the struct it has. */
static int take_backend(const tensorpy_backend *given, tensorpy_backend *b) {
    size_t least = offsetof(tensorpy_backend, copy_to_host) + sizeof given->copy_to_host;
    if (!given) return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND takes a tensorpy_backend, not NULL");
    if (given->size < least)
        return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND: size is %zu; a tensorpy_backend has at least %zu bytes",
                       given->size, least);
    *b = (tensorpy_backend){0};
    memcpy(b, given, given->size < sizeof *b ? given->size : sizeof *b);
    const char *missing = !b->name             ? "name"
                          : !b->allocate       ? "allocate"
                          : !b->release        ? "release"
                          : !b->copy_from_host ? "copy_from_host"
                          : !b->copy_to_host   ? "copy_to_host"
                                               : NULL;
    if (missing) return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND: %s is not filled in", missing);
    if (tp_check_backend_groups(b) < 0) return -1;
    int n = devices_of(b);
    if (n < 1 || n > INT8_MAX)
        return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND: %s has %d devices, not 1 to %d", b->name, n, INT8_MAX);
    if (b->stream_new && n > TP_STREAM_DEVICES)
        return tp_fail(TP_RuntimeError, "TENSORPY_BACKEND: %s has streams, and %d devices: at most %d then", b->name, n,
                       TP_STREAM_DEVICES);
    return tp_check_device_name(b->name);
}

static int find_backend(const char *name) {
    for (int i = 0; i < count + begun; i++)
        if (strcmp(tp_backends[i].name, name) == 0) return i;
    return -1;
}

tp_key tp_find_slot(const char *name) {
    tp_key slot = tp_slot_parse(name);
    if (slot != TP_KEY_Undefined) return slot;
    static const struct {
        const char *prefix;
        tp_key key;
    } groups[] = {
        {"Autograd_", TP_KEY_AutogradPrivateUse1}, {"Autocast_", TP_KEY_AutocastPrivateUse1}, {"", TP_KEY_PrivateUse1}};
    for (size_t g = 0; g < TP_COUNTOF(groups); g++) {
        size_t n = strlen(groups[g].prefix);
        int i = strncmp(name, groups[g].prefix, n) == 0 ? find_backend(name + n) : -1;
        if (i >= 0) return (tp_key)(groups[g].key + i);
    }
    return TP_KEY_Undefined;
}

int tp_begin_backend(tp_library *l, void (*fill)(tensorpy_backend *), const char *name) {
    int i = count + begun;
    tensorpy_backend given = {.size = sizeof given, .name = name}, b;
    fill(&given);
    if (take_backend(&given, &b) < 0) return -1;
    if (i == TENSORPY_MAX_BACKENDS)
        return tp_fail(TP_RuntimeError, "%s cannot be registered: there are %d backends already", b.name, i);
    if (find_backend(b.name) >= 0) return tp_fail(TP_RuntimeError, "there is a backend %s already", b.name);
    if (tp_library_reserve(l) < 0) return -1;
    snprintf(names[i], sizeof names[i], "%s", b.name);
    tp_backends[i] = b;
    tp_backends[i].name = names[i];
    if (tp_library_note(l, tp_register_fallback(tp_backend_key(type_of(i)), fall_back, &tp_backends[i], NULL,
                                                "outside/backend.c: on the CPU")) < 0)
        return -1;
    begun++;
    l->nbackends++;
    return 0;
}

/* The devices appear. */
int tp_publish_backends(void) {
    for (; begun; begun--, count++) {
        if (tp_rename_device(type_of(count), names[count]) < 0) return -1;
        if (tp_backends[count].opaque && tp_make_opaque(type_of(count)) < 0) return -1;
        tp_backend_optional(count, device_ops[count]);
        tp_register_device(type_of(count), device_ops[count]);
    }
    return 0;
}

void tp_forget_backends(void) { begun = 0; }
