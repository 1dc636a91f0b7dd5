/* determinism.h: whether operators may give other last bits from run to run, and warnings to the user.
 *
 * Both are the process's: the mode is a switch of the program, and a warning goes to whoever has said where (the
 * Python layer: warnings.warn). */
#pragma once

#include "core/error.h"

typedef enum { TP_DETERMINISM_OFF, TP_DETERMINISM_WARN, TP_DETERMINISM_ERROR } tp_determinism_mode;

tp_determinism_mode tp_determinism(void);
void tp_set_determinism(tp_determinism_mode mode);

/* Whether memory that an operator leaves unset is filled while the mode is on, so that a program which reads it gives
 * the same from run to run; a switch of the program as well, on from the start. */
bool tp_fills_unset(void);       /* the switch and the mode */
bool tp_fill_unset_wanted(void); /* the switch */
void tp_want_fill_unset(bool wanted);

/* Warns the user; 0, or -1 with the error set if the warning was turned into one. Without a sink nothing happens. */
int tp_warn(const char *format, ...) TP_COLD TP_PRINTF(1, 2);
/* The same where the process has not been warned at this place before. */
#define tp_warn_once(...)                                   \
    __extension__({                                         \
        static bool warned_;                                \
        tp_warns_here(&warned_) ? tp_warn(__VA_ARGS__) : 0; \
    })
/* Whether a place that warns once does so now; `warned` becomes true. With tp_want_all_warnings it always does. */
bool tp_warns_here(bool *warned);
void tp_want_all_warnings(bool wanted);
void tp_set_warning_sink(int (*sink)(const char *message));
