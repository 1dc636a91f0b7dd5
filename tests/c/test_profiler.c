/* test_profiler.c: what the recorder under the key Profiler writes, and when it writes nothing. */
#include "check.h"

#include "dispatch/profiler.h"

static const tp_op_info infos[] = {{.name = "profiled_outer", .overload = "", .schema = "profiled_outer() -> ()"},
                                   {.name = "profiled_inner", .overload = "", .schema = "profiled_inner() -> ()"}};
static tp_op ops[2];
static tp_profile *ending; /* what the outer operator stops */

static int call(tp_op *op) {
    tp_value none[1] = {{TP_NONE}};
    return tp_redispatch_boxed(op, tp_effective_keys(TP_BIT(CPU)), none, none);
}

static int inner(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)op, (void)ks, (void)args, (void)results, (void)context;
    return tp_fail(TP_RuntimeError, "inner fails");
}

static int outer(const tp_op *op, tp_keyset ks, tp_value *args, tp_value *results, void *context) {
    (void)op, (void)ks, (void)args, (void)results, (void)context;
    if (ending) tp_profile_stop(ending);
    CHECK_INT(call(&ops[1]), -1);
    CHECK_ERROR(RuntimeError, "inner fails");
    return 0;
}

static void test_events(void) {
    tp_profile p = {.shapes = true, .memory = true};
    CHECK_INT(call(&ops[0]), 0);
    CHECK_INT(tp_profile_start(&p), 0);
    tp_profile_mark range = tp_profile_enter(TP_PROFILED_RANGE, "range", -1);
    CHECK_INT(call(&ops[0]), 0);
    tp_profile_leave(range, 0);
    tp_profile_stop(&p);
    CHECK_INT(call(&ops[0]), 0);
    const tp_profile_thread *t = p.threads;
    CHECK(t && !t->next);
    CHECK_INT(t->count, 3);
    CHECK_STR(t->events[0].name, "range");
    CHECK(t->events[1].op == &ops[0] && t->events[2].op == &ops[1]);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(t->events[i].parent, i - 1);
        CHECK_INT(t->events[i].failed, i == 2);
        CHECK(t->events[i].end >= t->events[i].begin && t->events[i].begin > 0);
    }
    CHECK(t->events[2].end <= t->events[1].end && t->events[1].end <= t->events[0].end);
    CHECK_INT(t->events[1].backend, TP_KEY_CPU);
    tp_profile_clear(&p);
}

static void test_an_inner_profile_records_alone(void) {
    tp_profile a = {0}, b = {0};
    CHECK_INT(tp_profile_start(&a), 0);
    tp_profile_mark range = tp_profile_enter(TP_PROFILED_RANGE, "around", -1);
    CHECK_INT(tp_profile_start(&b), 0);
    call(&ops[0]);
    tp_profile_stop(&b);
    call(&ops[0]);
    tp_profile_leave(range, 0);
    tp_profile_stop(&a);
    tp_profile_stop(&a);
    CHECK_INT(a.threads->count, 3);
    CHECK_INT(a.threads->events[1].parent, 0);
    CHECK_INT(b.threads->count, 2);
    tp_profile_clear(&a);
    tp_profile_clear(&b);
}

static void test_a_profile_ends_inside_a_call(void) {
    tp_profile p = {0};
    ending = &p;
    CHECK_INT(tp_profile_start(&p), 0);
    CHECK_INT(call(&ops[0]), 0);
    ending = NULL;
    CHECK_INT(p.threads->count, 1);
    CHECK_INT(p.threads->events[0].end, 0);
    tp_profile_clear(&p);
}

static void test_the_key_is_free_afterwards(void) {
    CHECK(!(tp_tls.include & TP_BIT(Profiler)));
    CHECK(!(ops[0].live & TP_BIT(Profiler)));
    int64_t handle = tp_register_fallback(TP_KEY_Profiler, inner, NULL, NULL, "test_profiler.c");
    CHECK(handle > 0);
    tp_profile p = {0};
    CHECK_INT(tp_profile_start(&p), -1);
    CHECK_ERROR(RuntimeError, "already has a fallback, registered from test_profiler.c");
    CHECK_INT(tp_deregister(handle), 0);
}

int main(void) {
    CHECK_INT(tp_declare_ops(ops, infos, 2), 0);
    tp_compute_all_tables();
    CHECK(tp_register(&ops[0], TP_KEY_CPU, NULL, outer, NULL, NULL, "outer", false) > 0);
    CHECK(tp_register(&ops[1], TP_KEY_CPU, NULL, inner, NULL, NULL, "inner", false) > 0);
    test_events();
    test_an_inner_profile_records_alone();
    test_a_profile_ends_inside_a_call();
    test_the_key_is_free_afterwards();
    return check_report();
}
