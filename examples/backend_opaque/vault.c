/* vault.c: a device that shows no memory: "vault". What it hands out are numbers of a table, not addresses, and what
 * lies in the table is in a form of its own: every value is kept as its complement. A remote machine, a graph compiler
 * or an enclave would look like this.
 *
 *     cc -shared -fPIC -I "$(python -c 'import tensorpy; print(tensorpy.backends.include())')" vault.c -o vault.so
 *
 * With `opaque` set, the core gives a handle back as it got it, and asks for all of its bytes; copies to and from the
 * host are where the form changes. There are no views. Two operators are computed here, the rest by the host. */
#include "tensorpy/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MOST 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* handles are released by any thread */
static struct {
    unsigned char *hidden;
    size_t nbytes;
} entries[MOST]; /* handle h is entry h; 0 is none */
static size_t last;

/* ---- handles ---- */

static size_t free_entry(void) {
    for (size_t tried = 0; tried < MOST; tried++) {
        last = last % (MOST - 1) + 1;
        if (!entries[last].hidden) return last;
    }
    return 0;
}

static void *allocate(int device, size_t nbytes, void **context) {
    (void)device, (void)context;
    unsigned char *hidden = malloc(nbytes);
    pthread_mutex_lock(&lock);
    size_t handle = hidden ? free_entry() : 0;
    if (handle) {
        entries[handle].hidden = hidden;
        entries[handle].nbytes = nbytes;
    }
    pthread_mutex_unlock(&lock);
    if (!handle) free(hidden);
    return (void *)(uintptr_t)handle; /* NULL: there is no room */
}

static void release(int device, void *handle, size_t nbytes, void *context) {
    (void)device, (void)nbytes, (void)context;
    pthread_mutex_lock(&lock);
    free(entries[(uintptr_t)handle].hidden);
    entries[(uintptr_t)handle].hidden = NULL;
    pthread_mutex_unlock(&lock);
}

/* The entry after a handle; NULL and the error set for what is none, or for a part of one. */
static unsigned char *open_entry(const void *handle, size_t nbytes) {
    uintptr_t h = (uintptr_t)handle;
    if (h < MOST && entries[h].hidden && entries[h].nbytes == nbytes) return entries[h].hidden;
    return (unsigned char *)tp_fail_null(TP_RuntimeError, "vault: %zu is no handle of %zu bytes", (size_t)h, nbytes);
}

/* ---- copies: the form changes ---- */

static void complement(unsigned char *to, const unsigned char *from, size_t nbytes) {
    for (size_t i = 0; i < nbytes; i++) to[i] = (unsigned char)~from[i];
}

static int from_host(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    unsigned char *hidden = open_entry(to, nbytes);
    if (hidden) complement(hidden, (const unsigned char *)from, nbytes);
    return hidden ? 0 : -1;
}

static int to_host(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    const unsigned char *hidden = open_entry(from, nbytes);
    if (hidden) complement((unsigned char *)to, hidden, nbytes);
    return hidden ? 0 : -1;
}

static int inside(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    unsigned char *hidden = open_entry(to, nbytes);
    const unsigned char *other = hidden ? open_entry(from, nbytes) : NULL;
    if (other) memmove(hidden, other, nbytes);
    return other ? 0 : -1;
}

TENSORPY_BACKEND(vault, b) {
    b->allocate = allocate;
    b->release = release;
    b->copy_from_host = from_host;
    b->copy_to_host = to_host;
    b->copy_inside = inside;
    b->opaque = 1;
}

/* ---- two operators, in the device's own form ---- */

static unsigned char *entry_of(const tp_view *v) {
    return open_entry(v->data, (size_t)(v->numel * tp_itemsize(v->dtype)));
}

/* The call by the host: for dtypes that a kernel does not take. */
static tp_tensor *by_host(const tp_op *op, tp_keyset ks, tp_tensor *self) {
    tp_value argument = tensorpy_give_tensor(self), result = {TP_NONE, {NULL}};
    return op && tp_call_on_host(op, ks, &argument, &result) == 0 ? result.tensor : NULL;
}

/* The complement of what is hidden is hidden twice: an integer's bits turned. */
TENSORPY_HANDLE(tp_tensor *, inverted, "aten::bitwise_not", (tp_tensor *, self))

TENSORPY_KERNEL(tp_tensor *, bitwise_not, (tp_keyset, ks), (tp_tensor *, self)) {
    tp_view in = tp_view_of(self);
    if (in.dtype == TP_BOOL || in.dtype >= TP_FLOAT16) return by_host(inverted_op(), ks, self);
    tp_tensor *out = tp_new_empty_like(self, in.dtype);
    if (!out || in.numel == 0) return out;
    tp_view result = tp_view_of(out);
    unsigned char *to = entry_of(&result), *from = entry_of(&in);
    if (!to || !from) return tp_release(out), (tp_tensor *)NULL;
    complement(to, from, (size_t)(in.numel * tp_itemsize(in.dtype)));
    return out;
}

TENSORPY_HANDLE(tp_tensor *, rectified, "aten::relu", (tp_tensor *, self))

TENSORPY_KERNEL(tp_tensor *, relu, (tp_keyset, ks), (tp_tensor *, self)) {
    tp_view in = tp_view_of(self);
    if (in.dtype != TP_FLOAT32) return by_host(rectified_op(), ks, self);
    tp_tensor *out = tp_new_empty_like(self, in.dtype);
    if (!out || in.numel == 0) return out;
    tp_view result = tp_view_of(out);
    unsigned char *to = entry_of(&result), *from = entry_of(&in);
    if (!to || !from) return tp_release(out), (tp_tensor *)NULL;
    for (int64_t i = 0; i < in.numel; i++) {
        float x;
        complement((unsigned char *)&x, from + 4 * i, 4);
        x = x < 0 ? 0 : x; /* a NaN stays */
        complement(to + 4 * i, (const unsigned char *)&x, 4);
    }
    return out;
}

TENSORPY_LIBRARY_IMPL(aten, vault, m) {
    return tp_impl(m, "bitwise_not", bitwise_not) < 0 || tp_impl(m, "relu", relu) < 0 ? -1 : 0;
}
