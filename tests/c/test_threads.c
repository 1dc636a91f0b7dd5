/* test_threads.c: several threads dispatch, record, run backward over one leaf, allocate, draw and register, without a
 * host lock: what they share is the library's own. Meant for ThreadSanitizer (make tsan). */
#include "check.h"

#include "Functions.h"
#include "PointwiseTable.h"
#include "ReductionTable.h"
#include "autograd/engine.h"
#include "core/generator.h"
#include "core/parallel.h"
#include "cpu/capability.h"
#include "dispatch/generated.h"
#include "dispatch/op.h"
#include "core/memory.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 200

static tp_tensor *leaf;
static _Atomic int64_t added;

static void load(void) {
    tp_pointwise_select(tp_cpu_capability());
    tp_reduction_select(tp_cpu_capability());
    CHECK_INT(tp_register_generated(), 0);
    tp_compute_all_tables();
}

static tp_tensor *ones(int64_t n) { return tp_ones(TP_INTS(n), TP_FLOAT32, TP_NO_LAYOUT, TP_CPU, -1); }

/* Each thread has a graph of its own down to the shared leaf. */
static void *run_backwards(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        tp_autoref *twice = tp_mul_Scalar(leaf, TP_SCALAR_I(2)), *sum = twice ? tp_sum(twice, TP_NO_DTYPE) : NULL;
        CHECK(sum != NULL);
        CHECK_INT(tp_backward((tp_tensors){(tp_tensor *[]){sum}, 1}, (tp_tensors){NULL, -1}, false, false,
                              (tp_tensors){NULL, -1}, NULL),
                  0);
        added++;
    }
    return unused;
}

static void *drop_grads(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        tp_autoref *grad = tp_grad(leaf);
        if (i % 10 == 0) tp_put_grad_steal(leaf, NULL);
    }
    return unused;
}

static void *call_operators(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        tp_autoref *a = ones(100 + i), *b = ones(70000), *c = tp_add_Tensor(a, a, TP_SCALAR_I(1)),
                   *d = tp_add_Tensor(b, b, TP_SCALAR_I(1));
        tp_philox_state state;
        CHECK(c && d && *(float *)tp_data(c) == 2 && *(float *)tp_data(d) == 2);
        CHECK_INT(tp_generator_reserve(NULL, 1, &state), 0);
        CHECK(tp_find_op_qualified("add.Tensor") != NULL);
        tp_alloc_stats();
    }
    return unused;
}

static int pass_on(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)context;
    return tp_redispatch_boxed(op, ks & TP_BELOW(Profiler), args, results);
}
static void *register_layers(void *unused) {
    tp_op *op = tp_find_op_qualified("add.Tensor");
    for (int i = 0; i < ROUNDS; i++) {
        int64_t handle = tp_register(op, TP_KEY_Profiler, NULL, pass_on, NULL, NULL, "test_threads.c", true);
        tp_origin origin;
        CHECK(handle > 0);
        CHECK(tp_find_origin(op, TP_KEY_Profiler, &origin) && origin.is_boxed);
        CHECK_INT(tp_deregister(handle), 0);
    }
    return unused;
}
static void *call_through_layers(void *unused) {
    tp_include_guard guard = tp_include(TP_BIT(Profiler));
    return call_operators(unused);
}

static void run_together(void *(*const *bodies)(void *), int n) {
    pthread_t threads[8];
    for (int i = 0; i < n; i++) pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void test_one_leaf(void) {
    void *(*const bodies[])(void *) = {run_backwards, run_backwards, run_backwards, call_operators};
    leaf = ones(64);
    CHECK_INT(tp_set_requires_grad(leaf, true), 0);
    run_together(bodies, THREADS);
    tp_autoref *grad = tp_grad(leaf);
    CHECK(grad && *(float *)tp_data(grad) == 2.0f * (float)added);
}

static void test_grads_dropped(void) {
    void *(*const bodies[])(void *) = {run_backwards, run_backwards, drop_grads, drop_grads};
    run_together(bodies, THREADS);
    tp_release(tp_take(leaf));
}

static void test_layers_come_and_go(void) {
    void *(*const bodies[])(void *) = {call_through_layers, call_through_layers, register_layers, call_operators};
    run_together(bodies, THREADS);
}

int main(void) {
    tp_set_num_threads(1); /* libgomp's own synchronisation is invisible to ThreadSanitizer */
    load();
    test_one_leaf();
    test_grads_dropped();
    test_layers_come_and_go();
    return check_report();
}
