/* error.h: the thread's pending error.
 *
 * The core never knows Python. A failing function records a class and a message here and returns NULL or -1
 * (Note [Status] in base.h); the Python layer turns the pending error into the exception of that class. A second error
 * before the first was taken replaces it. */
#pragma once

#include "core/base.h"
#include "core/text.h"
#include "tensorpy/types.h"

/* Records the error; always returns -1, so that `return tp_fail(...)` serves a status function. */
int tp_fail(tp_error_class cls, const char *format, ...) TP_COLD TP_PRINTF(2, 3);
int tp_fail_memory(int64_t bytes) TP_COLD;
/* The same for a function that returns a pointer. */
#define tp_fail_null(...) (tp_fail(__VA_ARGS__), NULL)
/* What a kernel returns that takes only some calls, before it has done anything else: Note [Declining] in
 * dispatch/op.h. Always -1. */
int tp_decline(void) TP_COLD;
#define tp_decline_null() (tp_decline(), NULL)
/* Whether the pending error says that the kernel declined; then it is gone. */
bool tp_take_decline(void);
/* Puts "prefix" in front of the pending message; returns -1. Used to add the operator or the argument's name. */
int tp_error_prefix(const char *format, ...) TP_COLD TP_PRINTF(1, 2);

tp_error_class tp_error_pending(void);
const char *tp_error_message(void); /* "" without one; valid until the next tp_fail on this thread */
const char *tp_error_class_name(tp_error_class cls);
void tp_error_clear(void);

/* Drops the host's exception that a TP_PythonError stands for, which nobody will hear of; what a handler of a signal
 * has raised comes again when the host goes on. NULL where there is no host. */
extern void (*tp_host_forget)(void);

/* The pending error as a value: moved out of the thread (which then has none) and put back, here or on another thread.
 * For clean-up that must not lose it, and for errors of worker threads. */
typedef struct {
    tp_error_class cls;
    tp_text message;
} tp_saved_error;
tp_saved_error tp_error_take(void);
void tp_error_restore_steal(tp_saved_error *saved);
