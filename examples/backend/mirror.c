/* mirror.c: a device outside of tensorpy's tree, small enough to read: "mirror", two devices of the host's memory.
 *
 *     cc -shared -fPIC -I "$(python -c 'import tensorpy; print(tensorpy.backends.include())')" mirror.c -o mirror.so
 *
 * What it hands out as addresses lies FAR away from the memory after them, as a device's would: whoever took one for
 * the host's would crash. One of its kernels computes, some wrap the CPU's, one refuses, and the rest is left to the
 * fallback. */
#include "tensorpy/library.h"

#include <stdlib.h>
#include <string.h>

#define FAR ((uintptr_t)1 << 46)

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

/* float32 without gaps; the CPU takes the rest. */
TENSORPY_HANDLE(tp_tensor *, on_cpu, "aten::neg", (tp_tensor *, self))

TENSORPY_KERNEL(tp_tensor *, neg, (tp_keyset, ks), (tp_tensor *, self)) {
    tp_view in = tp_view_of(self);
    if (in.dtype != TP_FLOAT32 || !in.is_contiguous) {
        tp_value argument = tensorpy_give_tensor(self), result = {TP_NONE, {NULL}};
        return tp_call_on_host(on_cpu_op(), ks, &argument, &result) < 0 ? NULL : result.tensor;
    }
    tp_tensor *out = tp_new_empty_like(self, in.dtype);
    if (!out || in.numel == 0) return out;
    const float *from = (const float *)near(in.data);
    float *to = (float *)near(tp_view_of(out).data);
    for (int64_t i = 0; i < in.numel; i++) to[i] = -from[i];
    return out;
}

static int wrapped(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    return tp_call_on_host(op, ks, args, results);
}

static int refused(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)op, (void)ks, (void)args, (void)results;
    return tp_fail(TP_RuntimeError, "%s", (const char *)context);
}

TENSORPY_BACKEND(mirror, b) {
    b->allocate = allocate;
    b->release = release;
    b->copy_from_host = from_host;
    b->copy_to_host = to_host;
    b->copy_inside = inside;
    b->device_count = two;
    b->synchronize = nothing_to_wait_for;
}

TENSORPY_LIBRARY_IMPL(aten, mirror, m) {
    static const char *const wrappers[] = {"add.Tensor", "sub.Tensor", "mul.Tensor", "mm", "exp", "relu"};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++)
        if (tp_impl_boxed(m, wrappers[i], wrapped, NULL, NULL) < 0) return -1;
    if (tp_impl_boxed(m, "lgamma", refused, "mirror: lgamma is not written yet", NULL) < 0) return -1;
    return tp_impl(m, "neg", neg);
}
