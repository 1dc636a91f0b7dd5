/* memory.c: the device's memory: what tensorpy asks of every backend.
 *
 * All goes through one queue, in order: memory that is released is freed after the kernels that use it, and a copy to
 * the host waits for what came before. */
#include "driver.h"

static void *allocate(int device, size_t nbytes, void **context) {
    (void)context;
    return cl.clSVMAlloc(gpu_at(device)->context, CL_MEM_READ_WRITE, nbytes, 0); /* NULL: out of memory */
}

static void release(int device, void *data, size_t nbytes, void *context) {
    (void)nbytes, (void)context;
    cl.clEnqueueSVMFree(gpu_at(device)->queue, 1, &data, NULL, NULL, 0, NULL, NULL);
}

/* Waits, so others may run Python meanwhile. */
static int copy_and_wait(int device, void *to, const void *from, size_t nbytes) {
    void *held = tp_host_lock_release();
    int status = cl.clEnqueueSVMMemcpy(gpu_at(device)->queue, 1, to, from, nbytes, 0, NULL, NULL);
    tp_host_lock_acquire(held);
    return gpu_fail(status, "clEnqueueSVMMemcpy");
}

static int inside(int device, void *to, const void *from, size_t nbytes) {
    return gpu_fail(cl.clEnqueueSVMMemcpy(gpu_at(device)->queue, 0, to, from, nbytes, 0, NULL, NULL),
                    "clEnqueueSVMMemcpy");
}

static int synchronize(int device) {
    void *held = tp_host_lock_release();
    int status = cl.clFinish(gpu_at(device)->queue);
    tp_host_lock_acquire(held);
    return gpu_fail(status, "clFinish");
}

TENSORPY_BACKEND(ocl, b) {
    b->allocate = allocate;
    b->release = release;
    b->copy_from_host = copy_and_wait;
    b->copy_to_host = copy_and_wait;
    b->copy_inside = inside;
    b->device_count = gpu_count;
    b->synchronize = synchronize;
}
