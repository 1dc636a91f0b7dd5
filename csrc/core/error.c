/* error.c: the thread's pending error.
 *
 * Invariant: a message is complete before it replaces the pending one, so an error may quote the one before it. */
#include "core/error.h"

#include "core/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const class_names[] = {"NoError",
#define NAME(name) #name,
                                          TP_FORALL_ERRORS(NAME)
#undef NAME
};

void (*tp_host_forget)(void);

/* The pending error is gone, and what the host has of it. */
static void forget_host_error(void) {
    if (tp_tls.error_class == TP_PythonError && tp_host_forget) tp_host_forget();
}

static void replace_message(tp_error_class cls, tp_text message) {
    tp_thread_register(); /* so that the text is freed when the thread ends */
    tp_text_free(&tp_tls.error_text);
    tp_tls.error_text = message;
    if (cls != TP_PythonError) forget_host_error();
    tp_tls.error_class = cls;
    tp_tls.declined = false;
}

int tp_fail(tp_error_class cls, const char *format, ...) {
    tp_text message = {0};
    va_list args;
    va_start(args, format);
    tp_text_add_list(&message, format, args);
    va_end(args);
    replace_message(cls, message);
    return -1;
}

int tp_fail_memory(int64_t bytes) {
    return tp_fail(TP_MemoryError, "can't allocate memory: you tried to allocate %lld bytes", (long long)bytes);
}

int tp_decline(void) {
    replace_message(TP_RuntimeError, (tp_text){0});
    tp_text_add(&tp_tls.error_text, "a kernel declined the call, and its entry does not say that it 'declines'");
    tp_tls.declined = true;
    return -1;
}

bool tp_take_decline(void) {
    if (tp_tls.error_class == TP_NoError || !tp_tls.declined) return false;
    tp_error_clear();
    return true;
}

int tp_error_prefix(const char *format, ...) {
    tp_text message = {0};
    va_list args;
    va_start(args, format);
    tp_text_add_list(&message, format, args);
    va_end(args);
    tp_text_add(&message, "%s", tp_error_message());
    replace_message(tp_tls.error_class, message);
    return -1;
}

tp_error_class tp_error_pending(void) { return tp_tls.error_class; }

const char *tp_error_message(void) {
    if (tp_tls.error_text.text) return tp_tls.error_text.text;
    return tp_tls.error_class == TP_NoError ? "" : "out of memory";
}

const char *tp_error_class_name(tp_error_class cls) {
    return (size_t)cls < sizeof class_names / sizeof *class_names ? class_names[cls] : "unknown";
}

void tp_error_clear(void) {
    if (tp_tls.error_class == TP_NoError) return;
    tp_text_free(&tp_tls.error_text);
    forget_host_error();
    tp_tls.error_class = TP_NoError;
}

tp_saved_error tp_error_take(void) {
    tp_saved_error saved = {tp_tls.error_class, tp_tls.error_text};
    tp_tls.error_class = TP_NoError;
    tp_tls.error_text = (tp_text){0};
    return saved;
}

void tp_error_restore_steal(tp_saved_error *saved) {
    replace_message(saved->cls, saved->message);
    *saved = (tp_saved_error){TP_NoError, {0}};
}
