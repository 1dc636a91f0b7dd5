/* test_error.c: the pending error and texts. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

static void test_fail(void) {
    CHECK(tp_error_pending() == TP_NoError);
    CHECK_STR(tp_error_message(), "");
    CHECK_INT(tp_fail(TP_ValueError, "bad %s: %d", "dim", 3), -1);
    CHECK(tp_error_pending() == TP_ValueError);
    CHECK_STR(tp_error_message(), "bad dim: 3");
    CHECK_STR(tp_error_class_name(tp_error_pending()), "ValueError");
    CHECK_INT(tp_error_prefix("add(): "), -1);
    CHECK_STR(tp_error_message(), "add(): bad dim: 3");
    CHECK(tp_error_pending() == TP_ValueError);
    tp_fail(TP_TypeError, "was \"%s\"", tp_error_message());
    CHECK_STR(tp_error_message(), "was \"add(): bad dim: 3\"");
    CHECK(tp_error_pending() == TP_TypeError);
    tp_error_clear();
    CHECK(tp_error_pending() == TP_NoError);
    CHECK_STR(tp_error_message(), "");
    char *p = tp_fail_null(TP_IndexError, "none");
    CHECK(p == NULL);
    CHECK_ERROR(IndexError, "none");
    CHECK_INT(tp_fail_memory(12345), -1);
    CHECK_ERROR(MemoryError, "12345 bytes");
    CHECK_STR(tp_error_class_name(TP_PythonError), "PythonError");
}

static void test_take(void) {
    tp_fail(TP_RuntimeError, "kept");
    tp_saved_error saved = tp_error_take();
    CHECK(tp_error_pending() == TP_NoError);
    tp_fail(TP_ValueError, "replaced");
    tp_error_restore_steal(&saved);
    CHECK(saved.message.text == NULL);
    CHECK_ERROR(RuntimeError, "kept");
}

static void *in_thread(void *unused) {
    CHECK(tp_error_pending() == TP_NoError);
    tp_fail(TP_TypeError, "of the other thread");
    return unused;
}

static void test_thread(void) {
    tp_fail(TP_ValueError, "of this thread");
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    CHECK_ERROR(ValueError, "of this thread");
}

static void test_text(void) {
    tp_autotext t = {0};
    for (int i = 0; i < 1000; i++) tp_text_add(&t, "%d,", i);
    CHECK_INT(t.length, 10 * 2 + 90 * 3 + 900 * 4);
    CHECK(strncmp(t.text, "0,1,2,", 6) == 0 && strcmp(t.text + t.length - 4, "999,") == 0);
    CHECK(t.capacity > t.length);
}

int main(void) {
    test_fail();
    test_take();
    test_thread();
    test_text();
    return check_report();
}
