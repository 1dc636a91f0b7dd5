/* mirror.c: a device outside of tensorpy's tree, small enough to read: "mirror", two devices of the host's memory.
 *
 *     cc -shared -fPIC -I "$(python -c 'import tensorpy; print(tensorpy.backends.include())')" mirror.c -o mirror.so
 *
 * What it hands out as addresses lies FAR away from the memory behind them, as a device's would: whoever took one for
 * the host's would crash. Some of its kernels wrap the CPU's, one refuses, and the rest is left to the fallback. */
#include "tensorpy/backend.h"

#include <stdlib.h>
#include <string.h>

#define FAR ((uintptr_t)1 << 46)

static const tensorpy_functions *tensorpy;

static char *near(const void *address) { return (char *)((uintptr_t)address - FAR); }

static void *allocate(int device, size_t nbytes, void **context) {
    (void)device;
    *context = aligned_alloc(64, (nbytes + 63) / 64 * 64);
    return *context ? (char *)*context + FAR : NULL;
}

static void release(int device, void *data, size_t nbytes, void *context) {
    (void)device, (void)data, (void)nbytes;
    free(context);
}

static int from_host(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    memcpy(near(to), from, nbytes);
    return 0;
}

static int to_host(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    memcpy(to, near(from), nbytes);
    return 0;
}

static int inside(int device, void *to, const void *from, size_t nbytes) {
    (void)device;
    memmove(near(to), near(from), nbytes);
    return 0;
}

static int two(void) { return 2; }

static int nothing_to_wait_for(int device) {
    (void)device;
    return 0;
}

static int wrapped(tensorpy_call *call, void *context) {
    (void)context;
    return tensorpy->on_cpu(call);
}

static int refused(tensorpy_call *call, void *context) {
    (void)call;
    return tensorpy->fail(context);
}

int TENSORPY_BACKEND_ENTRY(const tensorpy_functions *given) {
    static const tensorpy_backend backend = {
        sizeof backend, "mirror", allocate, release, from_host, to_host, inside, two, nothing_to_wait_for,
    };
    static const char *const kernels[] = {"add.Tensor", "sub.Tensor", "mul.Tensor", "mm", "exp", "relu"};
    tensorpy = given;
    if (tensorpy->register_backend(&backend) < 0) return -1;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        if (tensorpy->register_kernel("mirror", kernels[i], wrapped, NULL) < 0) return -1;
    return tensorpy->register_kernel("mirror", "lgamma", refused, "mirror: lgamma is not written yet");
}
