/* test_cell.c: a boxed kernel is taken out while calls are inside. */
#include "check.h"

#include "dispatch/op.h"

#include <pthread.h>
#include <stdlib.h>

#define ALIVE 0x5eed
#define CALLERS 3

static const tp_op_info info = {.name = "cell_test", .overload = "", .schema = "cell_test() -> ()"};
static tp_op op;
static int64_t handle;
static _Atomic int freed, called, missing, wrong;
static _Atomic bool stop;

static void free_context(void *context) {
    *(_Atomic int *)context = 0;
    freed++;
    free(context);
}

static _Atomic int *new_context(void) {
    _Atomic int *context = malloc(sizeof *context);
    *context = ALIVE;
    return context;
}

static int kernel(const tp_op *o, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)o, (void)ks, (void)args, (void)results;
    called++;
    for (int i = 0; i < 20; i++) wrong += *(_Atomic int *)context != ALIVE;
    return 0;
}

static int take_out_self(const tp_op *o, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    CHECK_INT(tp_deregister(handle), 0);
    CHECK_INT(freed, 0);
    return kernel(o, ks, args, results, context);
}

static int64_t add(tp_boxed_fn boxed) {
    return tp_register(&op, TP_KEY_CPU, NULL, boxed, new_context(), free_context, "test_cell.c", true);
}

static int call(void) {
    tp_value none[1] = {{TP_NONE}};
    return tp_redispatch_boxed(&op, TP_BIT(CPU), none, none);
}

static void test_takes_itself_out(void) {
    freed = wrong = 0;
    handle = add(take_out_self);
    CHECK_INT(call(), 0);
    CHECK_INT(freed, 1);
    CHECK_INT(wrong, 0);
    CHECK_INT(call(), -1);
    CHECK_ERROR(NotImplementedError, "cell_test");
}

static void test_override_and_fallback(void) {
    freed = called = 0;
    int64_t fallback = tp_register_fallback(TP_KEY_CPU, kernel, new_context(), free_context, "fallback");
    CHECK(fallback > 0);
    CHECK_INT(call(), 0);
    int64_t first = add(kernel), second = add(kernel);
    CHECK_INT(call(), 0);
    CHECK_INT(tp_deregister(first), 0);
    CHECK_INT(call(), 0);
    CHECK_INT(tp_deregister(second), 0);
    CHECK_INT(freed, 2);
    CHECK_INT(call(), 0);
    CHECK_INT(called, 4);
    CHECK_INT(tp_deregister(fallback), 0);
    CHECK_INT(freed, 3);
    CHECK_INT(tp_deregister(fallback), -1);
    CHECK_ERROR(RuntimeError, "no registration has the handle");
}

static void *keep_calling(void *unused) {
    while (!stop)
        if (call() < 0) {
            missing++;
            tp_error_clear();
        }
    return unused;
}

static void test_taken_out_under_calls(void) {
    enum { TIMES = 20000 };
    pthread_t callers[CALLERS];
    freed = called = wrong = missing = 0;
    for (int i = 0; i < CALLERS; i++) pthread_create(&callers[i], NULL, keep_calling, NULL);
    for (int i = 0; i < TIMES; i++) {
        int64_t one = add(kernel);
        if (i % 3 == 0) call();
        CHECK_INT(tp_deregister(one), 0);
    }
    stop = true;
    for (int i = 0; i < CALLERS; i++) pthread_join(callers[i], NULL);
    CHECK_INT(freed, TIMES);
    CHECK_INT(wrong, 0);
    CHECK(called > 0);
}

int main(void) {
    CHECK_INT(tp_declare_ops(&op, &info, 1), 0);
    tp_compute_all_tables();
    test_takes_itself_out();
    test_override_and_fallback();
    test_taken_out_under_calls();
    return check_report();
}
