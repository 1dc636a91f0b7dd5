/* outside.c: see outside.h. A backend takes the first PrivateUse type that is free.
 *
 * What is registered for Dense runs here as on every device once the backend has the primitives that it calls: from the
 * start what asks for memory and copies only (views, new tensors, copy_). For everything else the backend's kernels
 * come first, then the host (native/host.h).
 *
 * A load is a transaction: what a library registers is only noted under its keys, which no tensor has yet, until its
 * entry has returned 0; then its devices appear. After a failure all of it is taken out again.
 *
 * Invariant: backends[i] is written before its device type is registered, and then stays. */
#define _GNU_SOURCE /* dladdr */
#include "native/outside.h"

#include "core/error.h"
#include "core/lock.h"
#include "native/host.h"
#include "tensorpy/backend.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
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
static char names[TENSORPY_MAX_BACKENDS][64];
static int count; /* of those whose devices are there */

/* What the library that is being loaded has registered. */
static struct {
    bool running;
    int nbackends; /* from `count` on */
    int64_t nhandles, capacity, *handles;
} load;

static _Thread_local int current[TENSORPY_MAX_BACKENDS];

static tp_device_type type_of(int i) { return (tp_device_type)(TP_DEVICE_PRIVATEUSE1 + i); }
static const tensorpy_backend *backend_of(tp_device d) { return &backends[d.type - TP_DEVICE_PRIVATEUSE1]; }

#define PLACE 256

/* "mirror: relu in ./mirror.so", where the code of a kernel is. */
static void place_of(const char *backend, const void *code, char *out) {
    Dl_info info;
    if (!dladdr(code, &info) || !info.dli_fname) snprintf(out, PLACE, "%s", backend);
    else if (info.dli_sname && info.dli_saddr == code)
        snprintf(out, PLACE, "%s: %s in %s", backend, info.dli_sname, info.dli_fname);
    else snprintf(out, PLACE, "%s: %s+0x%zx", backend, info.dli_fname, (size_t)((char *)code - (char *)info.dli_fbase));
}

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
static int through_host(tp_device d, void *dst, const void *src, size_t nbytes) {
    void *buffer = malloc(nbytes);
    int status = buffer ? copy_to_host(d, buffer, src, nbytes) : tp_fail_memory((int64_t)nbytes);
    if (status == 0) status = copy_from_host(d, dst, buffer, nbytes);
    free(buffer);
    return status;
}
static int copy_inside(tp_device d, void *dst, const void *src, size_t nbytes) {
    const tensorpy_backend *b = backend_of(d);
    if (!nbytes) return 0;
    return b->copy_inside ? checked(b, b->copy_inside(d.index, dst, src, nbytes), "a copy")
                          : through_host(d, dst, src, nbytes);
}
static int synchronize(tp_device d) {
    const tensorpy_backend *b = backend_of(d);
    return b->synchronize ? checked(b, b->synchronize(d.index), "synchronize") : 0;
}

static int devices_of(const tensorpy_backend *b) { return b->device_count ? b->device_count() : 1; }

static int set_current(int i, int index) {
    int n = devices_of(&backends[i]);
    if (index < 0 || index >= n)
        return tp_fail(TP_RuntimeError, "invalid device ordinal: %s:%d, but there are %d devices of that type",
                       backends[i].name, index, n);
    current[i] = index;
    return 0;
}

#define DEVICE_OPS(i)                                                       \
    static int count_##i(void) { return devices_of(&backends[i]); }         \
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

/* An operator that returns its arguments alone gives no results (op.h); every other gives all of them. */
static bool has_results(const tp_op *op, const tp_value *results) {
    for (int i = 0; i < op->info->nreturns; i++) {
        const tp_argument *wanted = &op->info->returns[i];
        if (wanted->is_write && results[i].tag == TP_NONE) continue;
        if (results[i].tag != wanted->tag || (wanted->tag == TP_TENSOR && !results[i].tensor)) return false;
    }
    return true;
}

static void drop_results(const tp_op *op, tp_value *results) {
    for (int i = 0; i < op->info->nreturns; i++) tp_value_release(&results[i]);
}

static int run_kernel(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    const outside_kernel *k = context;
    const tensorpy_backend *b = &backends[k->type - TP_DEVICE_PRIVATEUSE1];
    tensorpy_call call = {k->type, op, ks, args, results};
    char name[128], place[PLACE];
    tp_error_clear();
    int status = k->kernel(&call, k->context);
    if (status == 0 && has_results(op, results)) return tp_error_clear(), 0;
    drop_results(op, results);
    if (tp_error_pending()) return -1;
    place_of(b->name, (const void *)(uintptr_t)k->kernel, place);
    return tp_fail(TP_RuntimeError, status ? "%s failed in its kernel of %s" : "%s: its kernel of %s gave no results",
                   tp_op_name(op, name), place);
}

/* ---- registration ---- */

/* What has to be there: everything up to the copies from and to the host. A library that was built with an older or a
 * newer header says by its size which part of the struct it has. */
static int take_backend(const tensorpy_backend *given, tensorpy_backend *b) {
    size_t least = offsetof(tensorpy_backend, copy_to_host) + sizeof given->copy_to_host;
    if (!given) return tp_fail(TP_RuntimeError, "register_backend() takes a tensorpy_backend, not NULL");
    if (given->size < least)
        return tp_fail(TP_RuntimeError, "register_backend(): size is %zu; a tensorpy_backend has at least %zu bytes",
                       given->size, least);
    *b = (tensorpy_backend){0};
    memcpy(b, given, given->size < sizeof *b ? given->size : sizeof *b);
    const char *missing = !b->name             ? "name"
                          : !b->allocate       ? "allocate"
                          : !b->release        ? "release"
                          : !b->copy_from_host ? "copy_from_host"
                          : !b->copy_to_host   ? "copy_to_host"
                                               : NULL;
    if (missing) return tp_fail(TP_RuntimeError, "register_backend(): %s is not filled in", missing);
    int n = devices_of(b);
    if (n < 1 || n > INT8_MAX)
        return tp_fail(TP_RuntimeError, "register_backend(): %s has %d devices, not 1 to %d", b->name, n, INT8_MAX);
    return tp_check_device_name(b->name);
}

/* Room for one more handle comes before the registration, so that nothing is registered that could not be undone. */
static int reserve_handle(void) {
    if (!load.running || load.nhandles < load.capacity) return 0;
    int64_t capacity = 2 * load.capacity + 16;
    int64_t *grown = realloc(load.handles, (size_t)capacity * sizeof *grown);
    if (!grown) return tp_fail_memory(capacity * (int64_t)sizeof *grown);
    load.handles = grown;
    load.capacity = capacity;
    return 0;
}
static int note_handle(int64_t handle) {
    if (handle > 0 && load.running) load.handles[load.nhandles++] = handle;
    return handle > 0 ? 0 : -1;
}

static int find_locked(const char *name) {
    for (int i = 0; i < count + load.nbackends; i++)
        if (strcmp(backends[i].name, name) == 0) return i;
    return -1;
}

static int register_locked(const tensorpy_backend *b) {
    int i = count + load.nbackends;
    if (!load.running)
        return tp_fail(TP_RuntimeError, "%s cannot be registered: register_backend() is for the entry of a library",
                       b->name);
    if (i == TENSORPY_MAX_BACKENDS)
        return tp_fail(TP_RuntimeError, "%s cannot be registered: there are %d backends already", b->name, i);
    if (find_locked(b->name) >= 0) return tp_fail(TP_RuntimeError, "there is a backend %s already", b->name);
    if (reserve_handle() < 0) return -1;
    backends[i] = *b;
    strcpy(names[i], b->name);
    backends[i].name = names[i];
    if (note_handle(tp_register_fallback(tp_backend_key(type_of(i)), fall_back, &backends[i], NULL,
                                         "native/outside.c: on the CPU")) < 0)
        return -1;
    load.nbackends++;
    return 0;
}

static int register_backend(const tensorpy_backend *given) {
    tensorpy_backend b;
    if (take_backend(given, &b) < 0) return -1;
    tp_lock(TP_LOCK_Backends);
    int status = register_locked(&b);
    tp_unlock(TP_LOCK_Backends);
    return status;
}

static int register_kernel_locked(const char *backend, tp_op *op, tensorpy_kernel kernel, void *context) {
    int i = find_locked(backend);
    if (i < 0) return tp_fail(TP_RuntimeError, "register_kernel(): there is no backend %s", backend);
    if (reserve_handle() < 0) return -1;
    outside_kernel *k = malloc(sizeof *k);
    if (!k) return tp_fail_memory((int64_t)sizeof *k);
    *k = (outside_kernel){type_of(i), kernel, context};
    char place[PLACE];
    place_of(backend, (const void *)(uintptr_t)kernel, place);
    int64_t handle = tp_register(op, tp_backend_key(k->type), NULL, run_kernel, k, free, place, false);
    if (handle <= 0) free(k);
    return note_handle(handle);
}

static int register_kernel(const char *backend, const char *operator_, tensorpy_kernel kernel, void *context) {
    const char *missing = !backend ? "backend" : !operator_ ? "operator" : !kernel ? "kernel" : NULL;
    if (missing)
        return tp_fail(TP_RuntimeError, "register_kernel(%s, %s): the %s is NULL", backend ? backend : "NULL",
                       operator_ ? operator_ : "NULL", missing);
    tp_op *op = tp_find_op_qualified(operator_);
    if (!op) return tp_fail(TP_RuntimeError, "%s: there is no operator %s", backend, operator_);
    tp_lock(TP_LOCK_Backends);
    int status = register_kernel_locked(backend, op, kernel, context);
    tp_unlock(TP_LOCK_Backends);
    return status;
}

static int on_cpu(tensorpy_call *c) {
    drop_results(c->op, c->results); /* of an earlier try */
    return tp_call_on_host(c->type, c->op, c->ks, c->args, c->results);
}

static int fail(const char *message) { return tp_fail(TP_RuntimeError, "%s", message ? message : "a backend failed"); }

static const tensorpy_functions functions = {
    .version = TENSORPY_BACKEND_VERSION,
    .register_backend = register_backend,
    .register_kernel = register_kernel,
    .on_cpu = on_cpu,
    .fail = fail,
};

/* ---- loading ---- */

/* The devices appear. */
static int publish(void) {
    for (; load.nbackends; load.nbackends--, count++) {
        if (tp_rename_device(type_of(count), names[count]) < 0) return -1;
        tp_register_device(type_of(count), device_ops[count]);
    }
    return 0;
}

static void take_back(void) {
    while (load.nhandles) tp_deregister(load.handles[--load.nhandles]);
    load.nbackends = 0;
}

static int run_entry(tensorpy_backend_entry entry, const char *path) {
    tp_error_clear();
    load.running = true;
    int status = entry(&functions);
    bool failed = status != 0 || publish() < 0;
    load.running = false;
    if (!failed) return tp_error_clear(), load.nhandles = 0, 0;
    tp_saved_error failure = tp_error_take();
    take_back();
    tp_error_restore_steal(&failure);
    return tp_error_pending() ? -1 : tp_fail(TP_RuntimeError, "%s failed in %s", path, NAME_OF(TENSORPY_BACKEND_ENTRY));
}

int tp_load_backend(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return tp_fail(TP_RuntimeError, "the backend cannot be opened: %s", dlerror());
    tensorpy_backend_entry entry;
    *(void **)&entry = dlsym(library, NAME_OF(TENSORPY_BACKEND_ENTRY));
    if (!entry) return tp_fail(TP_RuntimeError, "%s has no %s", path, NAME_OF(TENSORPY_BACKEND_ENTRY));
    static tp_turn loading;
    if (tp_turn_take(&loading) < 0) return -1;
    int status = load.running ? tp_fail(TP_RuntimeError, "%s is loaded by the entry of another backend", path)
                              : run_entry(entry, path);
    tp_turn_pass(&loading);
    return status;
}
