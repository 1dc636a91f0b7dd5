/* binary.c: see binary.h. */
#include "opencl/runtime/binary.h"

#include "core/clock.h"
#include "core/lock.h"

#include <stdlib.h>

#define END_SECONDS 5 /* that a process's end may take: a few programs, or the first of many */

typedef struct put_off {
    struct put_off *next;
    cl_program program; /* owned */
    tp_cl_hash key;
} put_off;

/* Under the lock ClPrograms; in the order of the builds. */
static put_off *first, **last = &first;
static _Atomic int count;

double tp_cl_now(void) { return 1e-9 * (double)tp_clock_ns(); }

cl_program tp_cl_binary_read(tp_cl_device *d, tp_cl_hash key, const char *options) {
    size_t size = 0;
    cl_int status, binary_status;
    unsigned char *bytes = tp_cl_disk_read(key, &size);
    const unsigned char *given = bytes;
    if (!given) return NULL;
    cl_program p = tp_cl.clCreateProgramWithBinary(d->context, 1, &d->id, &size, &given, &binary_status, &status);
    free(bytes);
    if (p && status == CL_SUCCESS && tp_cl.clBuildProgram(p, 1, &d->id, options, NULL, NULL) == CL_SUCCESS) return p;
    if (p) tp_cl.clReleaseProgram(p);
    return NULL;
}

static void write_binary(cl_program p, tp_cl_hash key) {
    size_t size = 0;
    if (tp_cl.clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || !size) return;
    unsigned char *bytes = malloc(size);
    if (bytes && tp_cl.clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL) == CL_SUCCESS)
        tp_cl_disk_write(key, bytes, size);
    free(bytes);
}

void tp_cl_binary_put_off(cl_program p, tp_cl_hash key) {
    put_off *one = tp_cl_disk_is_there() ? malloc(sizeof *one) : NULL;
    if (!one) return; /* it is not kept */
    tp_cl.clRetainProgram(p);
    *one = (put_off){NULL, p, key};
    tp_lock(TP_LOCK_ClPrograms);
    *last = one;
    last = &one->next;
    count++;
    tp_unlock(TP_LOCK_ClPrograms);
}

int tp_cl_binaries_put_off(void) { return count; }

static put_off *take(void) {
    tp_lock(TP_LOCK_ClPrograms);
    put_off *one = first;
    if (one) {
        first = one->next;
        if (!first) last = &first;
        count--;
    }
    tp_unlock(TP_LOCK_ClPrograms);
    return one;
}

void tp_cl_binaries_write(bool ends) {
    const double end = tp_cl_now() + END_SECONDS;
    do {
        put_off *one = take();
        if (!one) return;
        write_binary(one->program, one->key);
        tp_cl.clReleaseProgram(one->program);
        free(one);
    } while (ends && tp_cl_now() < end);
}
