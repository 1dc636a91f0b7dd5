/* clblast.c: see clblast.h. */
#include "opencl/runtime/clblast.h"

#include "opencl/runtime/launch.h"
#include "core/memory.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Values of CLBlast's enumerations, which are the CBLAS's. */
enum { ROW_MAJOR = 101, PLAIN = 111, TRANSPOSED = 112 };

typedef struct {
    int transposed;
    size_t offset, line, step; /* in elements; step: from one matrix of a batch to the next */
    cl_mem buffer;
} operand;

#define GEMM(real)                                                                                                \
    (int, int, int, size_t, size_t, size_t, real, cl_mem, size_t, size_t, size_t, cl_mem, size_t, size_t, size_t, \
     real, cl_mem, size_t, size_t, size_t, size_t, cl_command_queue *, cl_event *)
static int(*sgemm) GEMM(float);
static int(*dgemm) GEMM(double);
static char missing[512]; /* what is wrong with the library that was named */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_library(void) {
    const char *wanted = getenv("TENSORPY_CLBLAST");
    if (!wanted || !*wanted) return;
    void *library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
    *(void **)&sgemm = dlsym(library, "CLBlastSgemmStridedBatched");
    *(void **)&dgemm = dlsym(library, "CLBlastDgemmStridedBatched");
}

/* False where neither dimension lies side by side in memory. */
static bool describe(const tp_tensor *t, operand *o) {
    int64_t rows = t->sizes[t->ndim - 2], columns = t->sizes[t->ndim - 1];
    int64_t down = t->strides[t->ndim - 2], across = t->strides[t->ndim - 1];
    bool by_rows = (across == 1 || columns == 1) && (rows == 1 || down >= columns);
    bool by_columns = (down == 1 || rows == 1) && (columns == 1 || across >= rows);
    if (!by_rows && !by_columns) return false;
    tp_cl_place p = tp_cl_place_of(t, tp_data(t));
    int64_t line = by_rows ? (rows == 1 ? columns : down) : columns == 1 ? rows : across;
    int64_t step = t->ndim == 3 ? t->strides[0] : line * (by_rows ? rows : columns); /* it refuses 0 for the output */
    if (step < 0) return false;
    *o = (operand){by_rows ? PLAIN : TRANSPOSED, (size_t)(p.offset / tp_itemsize((tp_dtype)t->dtype)), (size_t)line,
                   (size_t)step, p.buffer};
    return true;
}

int tp_cl_clblast(tp_cl_device *d, const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha,
                  const tp_scalar *beta) {
    operand x, y, z;
    pthread_once(&once, open_library);
    if (missing[0])
        return tp_fail(TP_RuntimeError, "OpenCL: the library that TENSORPY_CLBLAST names cannot be opened: %s",
                       missing);
    bool single = out->dtype == TP_FLOAT32;
    if (single ? !sgemm : out->dtype != TP_FLOAT64 || !dgemm) return 0;
    if (!describe(a, &x) || !describe(b, &y) || !describe(out, &z) || z.transposed != PLAIN) return 0;
    size_t m = (size_t)out->sizes[out->ndim - 2], n = (size_t)out->sizes[out->ndim - 1];
    size_t k = (size_t)a->sizes[a->ndim - 1], batches = out->ndim == 3 ? (size_t)out->sizes[0] : 1;
    cl_command_queue queue = tp_cl_queue(d);
    double by = tp_scalar_double(alpha), keep = tp_scalar_double(beta);
    tp_cl_lock(d);
    int status =
        single ? sgemm(ROW_MAJOR, x.transposed, y.transposed, m, n, k, (float)by, x.buffer, x.offset, x.line, x.step,
                       y.buffer, y.offset, y.line, y.step, (float)keep, z.buffer, z.offset, z.line, z.step, batches,
                       &queue, NULL)
               : dgemm(ROW_MAJOR, x.transposed, y.transposed, m, n, k, by, x.buffer, x.offset, x.line, x.step, y.buffer,
                       y.offset, y.line, y.step, keep, z.buffer, z.offset, z.line, z.step, batches, &queue, NULL);
    tp_cl_unlock(d);
    return status == CL_SUCCESS ? 1 : tp_fail(TP_RuntimeError, "OpenCL: CLBlast's matrix product failed (%d)", status);
}
