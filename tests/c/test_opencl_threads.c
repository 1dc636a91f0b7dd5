/* test_opencl_threads.c: several threads use one OpenCL device, without a host lock: the first use of the driver,
 * building programs, allocating, launching, copying back and looking at the figures. Meant for ThreadSanitizer (make
 * tsan). */
#include "check.h"

#include "Functions.h"
#include "PointwiseTable.h"
#include "ReductionTable.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/capability.h"
#include "dispatch/generated.h"
#include "opencl/runtime/backend.h"
#include "opencl/runtime/fault.h"
#include "opencl/runtime/memory.h"
#include "opencl/runtime/program.h"
#include "opencl/runtime/runtime.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 20

static const tp_device opencl = {TP_DEVICE_OPENCL, 0};
static tp_tensor *shared;

static double sum_of(tp_tensor *t) {
    tp_autoref *sum = t ? tp_sum(t, TP_NO_DTYPE) : NULL;
    tp_autoref *here = sum ? tp_to_device(sum, TP_CPU, TP_FLOAT32, false, false, TP_NO_FORMAT) : NULL;
    return here ? *(const float *)tp_data(here) : -1;
}

/* Each its own tensors, and one of all; every operator's program is built by whoever comes first. */
static void *compute(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        tp_autoref *a = tp_ones(TP_INTS(64 + i), TP_FLOAT32, TP_NO_LAYOUT, opencl, -1);
        tp_autoref *b = a ? tp_add_Scalar(a, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL;
        tp_autoref *c = b ? tp_mul_Tensor(b, b) : NULL, *d = tp_exp(shared);
        CHECK(sum_of(c) == 4.0 * (64 + i));
        CHECK(d != NULL && sum_of(shared) == 128);
    }
    return unused;
}

static void *look(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        tp_cl_programs();
        CHECK(tp_cl_get(0) != NULL);
        CHECK(tp_cl_available() > 0);
    }
    return unused;
}

int main(void) {
    tp_set_num_threads(1); /* libgomp's own synchronisation is invisible to ThreadSanitizer */
    tp_pointwise_select(tp_cpu_capability());
    tp_reduction_select(tp_cpu_capability());
    CHECK_INT(tp_register_generated(), 0);
    CHECK_INT(tp_cl_load(), 0);
    tp_compute_all_tables();
    if (!tp_cl_available()) {
        printf("no OpenCL device: nothing is tested\n");
        return check_report();
    }
    void *(*const bodies[THREADS])(void *) = {compute, compute, compute, look};
    pthread_t threads[THREADS];
    shared = tp_ones(TP_INTS(128), TP_FLOAT32, TP_NO_LAYOUT, opencl, -1);
    CHECK(shared != NULL);
    for (int i = 0; shared && i < THREADS; i++) pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; shared && i < THREADS; i++) pthread_join(threads[i], NULL);
    tp_release(shared);
    tp_cl_shut_down();
    return check_report();
}
