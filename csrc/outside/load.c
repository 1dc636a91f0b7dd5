/* load.c: libraries are opened and taken out again. Who loads or unloads has the turn `loading`; the list of libraries
 * changes only there. */
#define _GNU_SOURCE
#include "outside/backend.h"
#include "outside/library.h"

#include "core/error.h"
#include "core/turn.h"
#include "dispatch/schema.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(name) #name
#define NAME_OF(macro) TEXT_OF(macro)
static tp_turn loading;
static tp_library *libraries; /* that are loaded */

/* A namespace that a library has opened. */
typedef struct opened {
    struct opened *next;
    const tp_library *by;
    char *ns, *where;
} opened;
static opened *namespaces;

static int open_namespace(const tp_library *l) {
    char place[256];
    const char *ns = l->part->ns;
    snprintf(place, sizeof place, "%s:%d", l->part->file, l->part->line);
    if (strcmp(ns, "aten") == 0 || strcmp(ns, "prim") == 0 || strcmp(ns, "_") == 0)
        return tp_fail(TP_RuntimeError, "the namespace '%s' is tensorpy's own: open one of yours (%s)", ns, place);
    for (const opened *o = namespaces; o; o = o->next)
        if (strcmp(o->ns, ns) == 0)
            return tp_fail(TP_RuntimeError,
                           "the namespace '%s' was opened at %s, and again at %s: use TENSORPY_LIBRARY_FRAGMENT", ns,
                           o->where, place);
    opened *o = malloc(sizeof *o);
    char *name = strdup(ns), *where = strdup(place);
    if (!o || !name || !where) {
        free(o), free(name), free(where);
        return tp_fail_memory((int64_t)sizeof *o);
    }
    *o = (opened){namespaces, l, name, where};
    namespaces = o;
    return 0;
}

static void close_namespaces(const tp_library *l) {
    for (opened **at = &namespaces, *o; (o = *at);) {
        if (o->by != l) {
            at = &o->next;
            continue;
        }
        *at = o->next;
        free(o->ns), free(o->where), free(o);
    }
}

/* Takes out all that a library declared and registered. */
static void take_out(tp_library *l) {
    while (l->nhandles) tp_deregister(l->handles[--l->nhandles]);
    while (l->nops) tp_undefine(l->ops[--l->nops]);
    close_namespaces(l);
}

static void free_library(tp_library *l) { free(l->path), free(l->handles), free(l->ops), free(l); }

static int run_part(tp_library *l) {
    const tensorpy_part *p = l->part;
    if (p->kind == TENSORPY_PART_BACKEND) return tp_begin_backend(l, p->fill_backend, p->ns);
    if (p->kind == TENSORPY_PART_DEF && open_namespace(l) < 0) return -1;
    if (p->fill(l) == 0 && !tp_error_pending()) return 0;
    if (tp_error_pending()) return tp_error_prefix("%s:%d: ", p->file, p->line);
    return tp_fail(TP_RuntimeError, "%s:%d: this part of the library failed and set no error", p->file, p->line);
}

/* The list is in the order opposite to that of the files. */
static int run_parts(tp_library *l, const tensorpy_part *parts) {
    const tensorpy_part *in_order[256];
    int n = 0;
    for (const tensorpy_part *p = parts; p; p = p->next) {
        if (n == TP_COUNTOF(in_order)) return tp_fail(TP_RuntimeError, "%s has more than %d parts", l->path, n);
        in_order[n++] = p;
    }
    for (int kind = TENSORPY_PART_DEF; kind <= TENSORPY_PART_IMPL; kind++)
        for (int i = n; i-- > 0;)
            if ((int)in_order[i]->kind == kind && (l->part = in_order[i], run_part(l)) < 0) return -1;
    return 0;
}

static int run_module(tp_library *l, tensorpy_entry entry) {
    const tensorpy_module *m = entry(&tp_api);
    if (!m || m->size < sizeof *m)
        return tp_fail(TP_RuntimeError, "%s: %s gave nothing", l->path, NAME_OF(TENSORPY_ENTRY));
    if (m->version != TENSORPY_API_VERSION || m->api_size > sizeof tp_api)
        return tp_fail(
            TP_RuntimeError,
            "%s was built for version %u of tensorpy's API, with a table of %zu bytes; this tensorpy (%s) has "
            "version %d, with %zu bytes: build it again",
            l->path, m->version, m->api_size, tp_api.tensorpy, TENSORPY_API_VERSION, sizeof tp_api);
    if (!m->parts) return tp_fail(TP_RuntimeError, "%s has no parts: no TENSORPY_LIBRARY, nothing", l->path);
    return run_parts(l, m->parts);
}

static tp_library **place_of(const char *path) {
    tp_library **at = &libraries;
    while (*at && strcmp((*at)->path, path) != 0) at = &(*at)->next;
    return at;
}

static int load_with_turn(const char *path) {
    tensorpy_entry entry;
    if (*place_of(path)) return 0;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return tp_fail(TP_RuntimeError, "the library cannot be opened: %s", dlerror());
    *(void **)&entry = dlsym(object, NAME_OF(TENSORPY_ENTRY));
    if (!entry)
        return tp_fail(TP_RuntimeError, "%s is no library of tensorpy: it has no %s", path, NAME_OF(TENSORPY_ENTRY));
    tp_library *l = calloc(1, sizeof *l);
    if (!l || !(l->path = strdup(path))) return free(l), tp_fail_memory((int64_t)sizeof *l);
    tp_error_clear();
    if (run_module(l, entry) == 0 && tp_publish_backends() == 0) {
        l->next = libraries;
        libraries = l;
        return 0;
    }
    tp_saved_error failure = tp_error_take();
    take_out(l);
    tp_forget_backends();
    free_library(l);
    tp_error_restore_steal(&failure);
    return -1;
}

int tp_load_library(const char *path) {
    if (tp_turn_take(&loading) < 0) return -1;
    int status = loading.depth ? tp_fail(TP_RuntimeError, "%s is loaded by a part of another library", path)
                               : load_with_turn(path);
    tp_turn_pass(&loading);
    return status;
}

static int unload_with_turn(const char *path) {
    tp_library **at = place_of(path), *l = *at;
    if (!l) return tp_fail(TP_RuntimeError, "no library is loaded from %s", path);
    if (l->nbackends) return tp_fail(TP_RuntimeError, "%s brought a device, and a device stays", path);
    *at = l->next;
    take_out(l);
    free_library(l);
    return 0;
}

int tp_unload_library(const char *path) {
    if (tp_turn_take(&loading) < 0) return -1;
    int status = unload_with_turn(path);
    tp_turn_pass(&loading);
    return status;
}

tp_op *const *tp_library_operators(const char *path, int64_t *n) {
    static tp_op *const none[1] = {NULL}; /* of one that only registers kernels */
    const tp_library *l = *place_of(path);
    *n = l ? l->nops : 0;
    return !l ? NULL : l->ops ? l->ops : none;
}
