/* text.c: texts that grow. They use malloc, not tp_alloc: they must work while allocations are made to fail, and count
 * in no leak test. */
#include "core/text.h"

#include <stdio.h>
#include <stdlib.h>

static bool text_reserve(tp_text *t, size_t more) {
    if (t->length + more < t->capacity) return true;
    size_t capacity = (t->length + more + 1) * 2;
    char *text = realloc(t->text, capacity);
    if (!text) return false;
    t->text = text;
    t->capacity = capacity;
    return true;
}

void tp_text_add_list(tp_text *t, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0 || !text_reserve(t, (size_t)n)) return;
    vsnprintf(t->text + t->length, (size_t)n + 1, format, args);
    t->length += (size_t)n;
}

void tp_text_add(tp_text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    tp_text_add_list(t, format, args);
    va_end(args);
}

void tp_text_free(tp_text *t) {
    free(t->text);
    *t = (tp_text){0};
}
