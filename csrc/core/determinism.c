/* determinism.c: the process's mode, and the sink of warnings. */
#include "core/determinism.h"

#include "core/tls.h"

#include <stdatomic.h>
#include <stdio.h>

static atomic_int mode = TP_DETERMINISM_OFF;
static atomic_bool fills = true;
static int (*warning_sink)(const char *message);

tp_determinism_mode tp_determinism(void) {
    return (tp_determinism_mode)atomic_load_explicit(&mode, memory_order_relaxed);
}
void tp_set_determinism(tp_determinism_mode m) { atomic_store_explicit(&mode, m, memory_order_relaxed); }

bool tp_fill_unset_wanted(void) { return atomic_load_explicit(&fills, memory_order_relaxed); }
void tp_want_fill_unset(bool wanted) { atomic_store_explicit(&fills, wanted, memory_order_relaxed); }
bool tp_fills_unset(void) { return tp_determinism() != TP_DETERMINISM_OFF && tp_fill_unset_wanted(); }

void tp_set_warning_sink(int (*sink)(const char *message)) { warning_sink = sink; }

static atomic_bool always;
void tp_want_all_warnings(bool wanted) { atomic_store_explicit(&always, wanted, memory_order_relaxed); }
bool tp_warns_here(bool *warned) {
    bool before = __atomic_exchange_n(warned, true, __ATOMIC_RELAXED);
    return !before || atomic_load_explicit(&always, memory_order_relaxed);
}

int tp_warn(const char *format, ...) {
    char message[512];
    va_list args;
    if (!warning_sink) return 0;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    tp_at_once_guard guard = tp_at_once();
    return warning_sink(message);
}
