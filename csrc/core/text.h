/* text.h: a text that grows, for messages and printed forms. */
#pragma once

#include "core/base.h"

#include <stdarg.h>

/* `text` is NUL-terminated and owned; lost bytes are dropped
 * silently when memory is out, since it serves messages only. */
typedef struct {
    char *text;
    size_t length, capacity;
} tp_text;
void tp_text_add(tp_text *t, const char *format, ...) TP_PRINTF(2, 3);
void tp_text_add_list(tp_text *t, const char *format, va_list args);
void tp_text_free(tp_text *t);
#define tp_autotext TP_CLEANUP(tp_text_free) tp_text
