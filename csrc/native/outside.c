/* outside.c: see outside.h. A backend takes the first PrivateUse type that is free.
 *
 * What is registered for Dense runs here as on every device once the backend has the primitives that it calls: from the
 * start what asks for memory and copies only (views, new tensors, copy_). For everything else the backend's kernels
 * come first, then the host (native/host.h).
 *
 * Invariant: backends[i] is written once, before its device type is registered. */
#include "native/outside.h"

#include "core/error.h"
#include "core/lock.h"
#include "native/host.h"
#include "tensorpy/backend.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(name) #name
#define NAME_OF(macro) TEXT_OF(macro)

struct tensorpy_call {
    tp_device_type type;
    const tp_op *op;
    tp_keyset ks;
    tp_value *args, *results;
};

typedef struct {
    tp_device_type type;
    tensorpy_kernel kernel;
    void *context;
} outside_kernel;

static tensorpy_backend backends[TENSORPY_MAX_BACKENDS];
static int count;
static _Thread_local int current[TENSORPY_MAX_BACKENDS];

static tp_device_type type_of(int i) { return (tp_device_type)(TP_DEVICE_PRIVATEUSE1 + i); }
static const tensorpy_backend *backend_of(tp_device d) { return &backends[d.type - TP_DEVICE_PRIVATEUSE1]; }

/* A backend that fails without a word still gives an error. */
static int checked(const tensorpy_backend *b, int status, const char *what) {
    if (status == 0 || tp_error_pending()) return status == 0 ? 0 : -1;
    return tp_fail(TP_RuntimeError, "%s: %s failed", b->name, what);
}

/* ---- the device ---- */

static void *allocate(tp_device d, size_t nbytes, void **context) {
    const tensorpy_backend *b = backend_of(d);
    void *data = b->allocate(d.index, nbytes, context);
    if (!data && !tp_error_pending())
        tp_fail(TP_RuntimeError, "%s out of memory: %zu bytes cannot be allocated", b->name, nbytes);
    return data;
}
static void release(tp_device d, void *data, size_t nbytes, void *context) {
    backend_of(d)->release(d.index, data, nbytes, context);
}
static int copy_from_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = backend_of(d);
    return nbytes ? checked(b, b->copy_from_host(d.index, dst, src, nbytes), "a copy from the host") : 0;
}
static int copy_to_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = backend_of(d);
    return nbytes ? checked(b, b->copy_to_host(d.index, dst, src, nbytes), "a copy to the host") : 0;
}
static int copy_inside(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = backend_of(d);
    return nbytes ? checked(b, b->copy_inside(d.index, dst, src, nbytes), "a copy") : 0;
}
static int synchronize(tp_device d) {
    const tensorpy_backend *b = backend_of(d);
    return checked(b, b->synchronize(d.index), "synchronize");
}

static int set_current(int i, int index) {
    int n = backends[i].device_count();
    if (index < 0 || index >= n)
        return tp_fail(TP_RuntimeError, "invalid device ordinal: %s:%d, but there are %d devices of that type",
                       backends[i].name, index, n);
    current[i] = index;
    return 0;
}

#define DEVICE_OPS(i)                                                       \
    static int count_##i(void) { return backends[i].device_count(); }       \
    static int current_##i(void) { return current[i]; }                     \
    static int set_##i(int index) { return set_current(i, index); }         \
    static const tp_device_ops ops_##i = {.allocate = allocate,             \
                                          .release = release,               \
                                          .copy_from_host = copy_from_host, \
                                          .copy_to_host = copy_to_host,     \
                                          .copy_inside = copy_inside,       \
                                          .device_count = count_##i,        \
                                          .current_device = current_##i,    \
                                          .set_device = set_##i,            \
                                          .synchronize = synchronize};
DEVICE_OPS(0)
DEVICE_OPS(1)
DEVICE_OPS(2)
static const tp_device_ops *const device_ops[TENSORPY_MAX_BACKENDS] = {&ops_0, &ops_1, &ops_2};

/* ---- its operators ---- */

static int fall_back(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const tensorpy_backend *b = context;
    tp_device_type type = type_of((int)(b - backends));
    tp_count_host_call(type);
    return tp_call_on_host(type, op, ks, args, results);
}

static int run_kernel(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const outside_kernel *k = context;
    tensorpy_call call = {k->type, op, ks, args, results};
    return checked(&backends[k->type - TP_DEVICE_PRIVATEUSE1], k->kernel(&call, k->context), op->info->name);
}

static bool is_whole(const tensorpy_backend *b) {
    return b->size >= sizeof *b && b->name && b->allocate && b->release && b->copy_from_host && b->copy_to_host &&
           b->copy_inside && b->device_count && b->synchronize;
}

static int register_locked(const tensorpy_backend *b) {
    if (count == TENSORPY_MAX_BACKENDS)
        return tp_fail(TP_RuntimeError, "%s cannot be registered: there are %d backends already", b->name, count);
    tp_device_type type = type_of(count);
    if (tp_rename_device(type, b->name) < 0) return -1;
    backends[count] = *b;
    backends[count].name = tp_device_type_name(type);
    tp_register_device(type, device_ops[count]);
    if (tp_register_fallback(tp_backend_key(type), fall_back, &backends[count], NULL, "native/outside.c: on the CPU") <
        0)
        return -1;
    count++;
    return 0;
}

static int register_backend(const tensorpy_backend *b) {
    if (!b || !is_whole(b)) return tp_fail(TP_RuntimeError, "a backend that does not fill in all of tensorpy_backend");
    tp_lock(TP_LOCK_Backends);
    int status = register_locked(b);
    tp_unlock(TP_LOCK_Backends);
    return status;
}

static int find_backend(const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(backends[i].name, name) == 0) return i;
    return tp_fail(TP_RuntimeError, "there is no backend %s", name);
}

static int register_kernel(const char *backend, const char *operator_, tensorpy_kernel kernel, void *context) {
    int i = find_backend(backend);
    tp_op *op = i < 0 ? NULL : tp_find_op_qualified(operator_);
    if (i < 0) return -1;
    if (!op) return tp_fail(TP_RuntimeError, "%s: there is no operator %s", backend, operator_);
    outside_kernel *k = malloc(sizeof *k);
    if (!k) return tp_fail_memory((int64_t)sizeof *k);
    *k = (outside_kernel){type_of(i), kernel, context};
    if (tp_register(op, tp_backend_key(k->type), NULL, run_kernel, k, free, backend, true) > 0) return 0;
    free(k);
    return -1;
}

static int on_cpu(tensorpy_call *c) { return tp_call_on_host(c->type, c->op, c->ks, c->args, c->results); }

static int fail(const char *message) { return tp_fail(TP_RuntimeError, "%s", message); }

static const tensorpy_functions functions = {
    .version = TENSORPY_BACKEND_VERSION,
    .register_backend = register_backend,
    .register_kernel = register_kernel,
    .on_cpu = on_cpu,
    .fail = fail,
};

int tp_load_backend(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return tp_fail(TP_RuntimeError, "the backend cannot be opened: %s", dlerror());
    tensorpy_backend_entry entry;
    *(void **)&entry = dlsym(library, NAME_OF(TENSORPY_BACKEND_ENTRY));
    if (!entry) return tp_fail(TP_RuntimeError, "%s has no %s", path, NAME_OF(TENSORPY_BACKEND_ENTRY));
    if (entry(&functions) == 0) return 0;
    return tp_error_pending() ? -1 : tp_fail(TP_RuntimeError, "%s failed in %s", path, NAME_OF(TENSORPY_BACKEND_ENTRY));
}
