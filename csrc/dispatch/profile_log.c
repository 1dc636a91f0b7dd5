/* profile_log.c: a profile that writes each call to a file as soon as the outermost one has ended: for programs that
 * cannot be changed. */
#include "dispatch/profiler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static FILE *file;

static const int64_t *put_tensor(tp_text *text, const int64_t *w) {
    int64_t word = *w++, n = tp_word_count(word);
    if (tp_word_kind_of(word) != TP_WORD_TENSOR) {
        tp_text_add(text, "-");
        return w + n;
    }
    tp_text_add(text, "%s", tp_dtype_names[tp_word_dtype(word)]);
    tp_text_ints(text, (tp_ints){w, n});
    return w + n;
}

static const int64_t *put_argument(tp_text *text, const int64_t *w) {
    if (tp_word_kind_of(*w) != TP_WORD_LIST) return put_tensor(text, w);
    int64_t n = tp_word_count(*w++);
    tp_text_add(text, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i) tp_text_add(text, ", ");
        w = put_tensor(text, w);
    }
    tp_text_add(text, "]");
    return w;
}

static void put_kernel(tp_text *text, const tp_profile_event *e) {
    tp_origin o;
    if (!e->backend || !tp_find_origin(e->op, (tp_key)e->backend, &o)) return;
    tp_text_add(text, " %s: %s%s%s", tp_key_name((tp_key)e->backend), o.source, o.file[0] ? " in " : "", o.file);
}

static void put_operator(tp_text *text, const tp_profile_thread *t, const tp_profile_event *e) {
    char name[128];
    tp_text_add(text, "%s(", tp_op_name(e->op, name));
    const int64_t *w = e->shapes < 0 ? NULL : t->words + e->shapes;
    for (int i = 0; w && i < e->op->info->nargs; i++) {
        if (i) tp_text_add(text, ", ");
        w = put_argument(text, w);
    }
    tp_text_add(text, ")");
    put_kernel(text, e);
}

static int depth_of(const tp_profile_thread *t, int64_t at) {
    int depth = 0;
    while ((at = t->events[at].parent) >= 0) depth++;
    return depth;
}

static void write_calls(tp_profile_thread *t) {
    for (int64_t i = 0; i < t->count; i++) {
        const tp_profile_event *e = &t->events[i];
        tp_autotext text = {0};
        tp_text_add(&text, "tensorpy[%u] %*s", t->number, 2 * depth_of(t, i), "");
        if (e->op) put_operator(&text, t, e);
        else tp_text_add(&text, "%s", e->name ? e->name : "?");
        tp_text_add(&text, " %.1f us%s\n", 1e-3 * (double)(e->end - e->begin), e->failed ? ", failed" : "");
        if (text.text) fputs(text.text, file);
    }
    fflush(file);
}

int tp_profile_log(const char *path) {
    static tp_profile profile = {.shapes = true, .ended = write_calls};
    file = strcmp(path, "1") == 0 ? stderr : fopen(path, "w");
    if (!file) return tp_fail(TP_RuntimeError, "TENSORPY_TRACE: %s cannot be written: %s", path, strerror(errno));
    return tp_profile_start(&profile);
}
