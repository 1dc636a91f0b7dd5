/* test_regions.c: several threads follow functions of their own, run backward, write what nodes have saved, and read
 * what another thread has noted, with a host lock as an interpreter has one. Meant for ThreadSanitizer (make tsan). */
#include "check.h"

#include "Functions.h"
#include "PointwiseTable.h"
#include "ReductionTable.h"
#include "autograd/engine.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/capability.h"
#include "dispatch/generated.h"
#include "plan/plan.h"

#include <pthread.h>
#include <sched.h>

#define THREADS 3
#define ROUNDS 30
#define ROWS 100
#define COLUMNS 1024 /* work that gives the host lock up */

/* ---- the host ---- */

static pthread_mutex_t interpreter = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool has_interpreter;

static void take(void) {
    pthread_mutex_lock(&interpreter);
    has_interpreter = true;
}
static void give(void) {
    has_interpreter = false;
    pthread_mutex_unlock(&interpreter);
}
static void *release(void) {
    give();
    return &interpreter;
}
static void acquire(void *state) {
    (void)state;
    take();
}
static bool held(void) { return has_interpreter; }
static int interrupted(void) { return 0; }

/* Lets the other threads go on, as an interpreter does between two lines. */
static void line(void) {
    give();
    sched_yield();
    take();
}

static void load(void) {
    tp_set_host_lock((tp_host_lock){release, acquire, held, interrupted});
    tp_pointwise_select(tp_cpu_capability());
    tp_reduction_select(tp_cpu_capability());
    CHECK_INT(tp_register_generated(), 0);
    CHECK_INT(tp_plan_load(), 0);
    tp_compute_all_tables();
}

/* ---- what the threads do ---- */

static tp_tensor *leaf, *met; /* `met`: what a thread has noted and not run yet; NULL: nothing */

static tp_tensor *filled(double value) {
    return tp_full(TP_INTS(ROWS, COLUMNS), TP_SCALAR_F(value), TP_FLOAT32, TP_NO_LAYOUT, TP_CPU, -1);
}
static float first(tp_tensor *t) {
    tp_scalar value = {0};
    tp_autoref *sum = tp_amax(t, (tp_ints){NULL, 0}, false);
    CHECK(sum != NULL && tp_item(sum, &value) == 0);
    return (float)tp_scalar_double(&value);
}

/* Maps, a softmax of rows, a sum; a value that is read in the middle every other time. */
static float compute(int i) {
    tp_autoref *x = filled(1), *y = tp_mul_Scalar(x, TP_SCALAR_I(3)), *z = tp_add_Tensor(y, x, TP_SCALAR_I(1));
    line();
    if (i & 1) CHECK(first(z) == 4);
    tp_autoref *p = tp_softmax_int(z, -1, TP_NO_DTYPE), *q = tp_mul_Scalar(p, TP_SCALAR_I(COLUMNS));
    line();
    tp_autoref *sum = tp_mean(q, TP_NO_DTYPE);
    CHECK(sum != NULL);
    return first(sum);
}

/* What is saved is computed again, and some of it written. */
static void differentiate(int i) {
    tp_autoref *a = tp_mul_Scalar(leaf, TP_SCALAR_I(2)), *b = tp_exp(a), *c = tp_mul_Tensor(b, b);
    line();
    if (i & 1) {
        tp_autoref *d = tp_mul_Tensor(a, b); /* of which nobody needs backward */
        CHECK(d && tp_mul__Tensor(a, d) == 0);
    }
    tp_autoref *sum = tp_sum(c, TP_NO_DTYPE);
    line();
    CHECK_INT(tp_backward((tp_tensors){(tp_tensor *[]){sum}, 1}, (tp_tensors){NULL, -1}, false, false,
                          (tp_tensors){NULL, -1}, NULL),
              0);
}

static void show(int i) {
    tp_autoref *x = filled(i), *y = tp_add_Tensor(x, x, TP_SCALAR_I(1));
    if (met) tp_release(met);
    met = tp_retain(y);
    line();
}
static void meet(void) {
    tp_autoref *mine = met ? tp_retain(met) : NULL;
    if (mine) CHECK(((int)first(mine) & 1) == 0);
}

static void *run(void *number) {
    const bool outside = *(int *)number == THREADS - 1; /* of the last thread, no function is compiled */
    take();
    for (int i = 0; i < ROUNDS; i++) {
        tp_region_options options = {.fuses = i % 3 > 0, .tile = i % 2 ? 192 * 1024 : 8192, .recomputes = true};
        tp_region_report report;
        if (!outside) CHECK_INT(tp_region_enter(&options), 0);
        CHECK(compute(i) > 0.99f);
        differentiate(i);
        if (!outside) show(i);
        line();
        meet();
        if (!outside) CHECK_INT(tp_region_leave(&report), 0);
        line();
    }
    give();
    return NULL;
}

static void test_threads_that_follow(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    take();
    leaf = filled(0.25);
    CHECK_INT(tp_set_requires_grad(leaf, true), 0);
    give();
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, run, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    take();
    tp_autoref *grad = tp_grad(leaf);
    CHECK(grad && first(grad) / (4 * 2.7182818f) > 0.999f * THREADS * ROUNDS);
    tp_release(tp_take(leaf));
    tp_release(tp_take(met));
    give();
}

int main(void) {
    tp_set_num_threads(1); /* libgomp's own synchronisation is invisible to ThreadSanitizer */
    take();
    load();
    give();
    test_threads_that_follow();
    return check_report();
}
