/* program.c: programs in memory and on disk; see program.h.
 *
 * Building takes from a tenth of a second to several: it is one thread's turn, without a lock and without the host
 * lock, and other threads build other programs meanwhile.
 *
 * Invariant: an entry of the table is never removed, so that a kernel may be borrowed for good. */
#define _GNU_SOURCE /* strcasestr */
#include "opencl/runtime/program.h"

#include "opencl/runtime/binary.h"
#include "core/host.h"
#include "core/lock.h"
#include "core/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
#define TURNS 64
#define OPTIONS "-cl-std=CL1.2 -w"
#define CPU_OPTIONS OPTIONS " -DTP_CPU_DEVICE" /* what vectorises: see tensorpy/math_f32.h */

typedef struct entry {
    struct entry *next;
    tp_cl_device *device;
    cl_program program; /* of which the kernel is one; kept for good, as the entry is */
    tp_cl_built kernel;
    uint64_t hash;
    char key[]; /* the program's key, a newline, the kernel's name */
} entry;

/* Table and counts: under the lock ClPrograms. */
static entry *buckets[BUCKETS];
static tp_cl_program_stats stats;
static tp_turn turns[TURNS]; /* by hash; who builds takes no second one */

tp_cl_program_stats tp_cl_programs(void) {
    tp_lock(TP_LOCK_ClPrograms);
    tp_cl_program_stats now = stats;
    tp_unlock(TP_LOCK_ClPrograms);
    return now;
}

static void count_one(int64_t *counter) {
    tp_lock(TP_LOCK_ClPrograms);
    ++*counter;
    tp_unlock(TP_LOCK_ClPrograms);
}

static const char *options_of(const tp_cl_device *d) { return d->is_cpu ? CPU_OPTIONS : OPTIONS; }

tp_cl_hash tp_cl_hash_device(const tp_cl_device *d) {
    const char *const parts[] = {options_of(d), d->name, d->platform_name, d->driver, d->version};
    tp_cl_hash h = TP_CL_HASH_START;
    for (size_t i = 0; i < TP_COUNTOF(parts); i++) h = tp_cl_hash_text(h, parts[i]);
    return h;
}

/* ---- building ---- */

static int fail_build(tp_cl_device *d, cl_program p, cl_int status, const char *key) {
    char log[4000] = "";
    tp_cl.clGetProgramBuildInfo(p, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    return tp_fail(TP_RuntimeError, "OpenCL: a kernel does not compile on %s: %s\n%s\n  kernel: %s", d->name,
                   tp_cl_error_name(status), log, key);
}

/* ---- saying so ---- */

/* What this process has compiled, under the lock ClPrograms: from outside it seems to stand still meanwhile. */
static struct {
    int programs;
    double seconds, at; /* at: when the host had waited after the last one */
    bool is_new;        /* the host has not waited since */
    bool begun;         /* it was said that it compiles, and not yet how long that took */
    const tp_cl_device *device;
} compiled;
static _Atomic bool unsettled; /* something was compiled, and is not written or not said */

static bool is_quiet(void) {
    const char *text = getenv("TENSORPY_OPENCL_QUIET");
    return text && *text;
}

/* Said once, after a second of it. */
static void note_build(const tp_cl_device *d, double seconds) {
    static bool said;
    tp_lock(TP_LOCK_ClPrograms);
    stats.built++;
    compiled.programs++;
    compiled.seconds += seconds;
    compiled.is_new = true;
    compiled.device = d;
    bool is_time = !said && compiled.seconds >= 1;
    if (is_time) said = compiled.begun = true;
    int programs = compiled.programs;
    tp_unlock(TP_LOCK_ClPrograms);
    unsettled = true;
    if (is_time && !is_quiet())
        fprintf(stderr,
                "tensorpy: compiling OpenCL kernels for %s, which are kept for the next time (%d program%s so far)\n",
                d->name, programs, programs == 1 ? "" : "s");
}

static void say_how_long(void) {
    tp_lock(TP_LOCK_ClPrograms);
    bool begun = compiled.begun;
    int programs = compiled.programs;
    double seconds = compiled.seconds;
    const tp_cl_device *d = compiled.device;
    compiled.begun = false;
    tp_unlock(TP_LOCK_ClPrograms);
    if (begun && !is_quiet())
        fprintf(stderr, "tensorpy: compiled %d OpenCL program%s for %s in %.1f s\n", programs, programs == 1 ? "" : "s",
                d->name, seconds);
}

#define QUIET_SECONDS 1 /* after that, without a build, before the work that was put off is taken up */

void tp_cl_settle_programs(bool ends) {
    if (tp_likely(!unsettled)) return;
    tp_lock(TP_LOCK_ClPrograms);
    if (compiled.is_new) compiled.at = tp_cl_now(); /* a wait may be for a driver that still compiles */
    compiled.is_new = false;
    bool is_time = ends || tp_cl_now() - compiled.at >= QUIET_SECONDS;
    tp_unlock(TP_LOCK_ClPrograms);
    if (!is_time) return;
    say_how_long();
    void *host = ends ? NULL : tp_host_lock_release(); /* at its end a process has none */
    tp_cl_binaries_write(ends);
    if (!ends) tp_host_lock_acquire(host);
    if (tp_cl_binaries_put_off() == 0) unsettled = false;
}

/* ---- building ---- */

/* PoCL's compiler reads a header of all functions of OpenCL C, 900 KB, in front of each program, which takes it five
 * times as long as most programs of the tree. This is the header's include guard; built_ins.cl stands in its place. */
#define WITHOUT_HEADER " -D_OPENCL_H_ -DTP_BUILT_INS"

static bool does_without_header(const tp_cl_device *d, const char *source) {
    const char *own = tp_cl_source("built_ins.cl");
    return strcmp(d->platform_name, "Portable Computing Language") == 0 && strncmp(source, own, strlen(own)) == 0;
}

static cl_int compile(tp_cl_device *d, cl_program p, const char *source) {
    if (does_without_header(d, source)) {
        const char *options = d->is_cpu ? CPU_OPTIONS WITHOUT_HEADER : OPTIONS WITHOUT_HEADER;
        cl_int status = tp_cl.clBuildProgram(p, 1, &d->id, options, NULL, NULL);
        if (status != CL_BUILD_PROGRAM_FAILURE) return status;
        count_one(&stats.with_header); /* of another release, or built_ins.cl lacks something */
    }
    return tp_cl.clBuildProgram(p, 1, &d->id, options_of(d), NULL, NULL);
}

static cl_program build(tp_cl_device *d, const char *key, const char *source) {
    cl_int status;
    double begun = tp_cl_now();
    tp_cl_hash name = tp_cl_hash_text(tp_cl_hash_device(d), source);
    cl_program p = tp_cl_binary_read(d, name, options_of(d));
    if (p) return count_one(&stats.from_disk), p;
    p = tp_cl.clCreateProgramWithSource(d->context, 1, &source, NULL, &status);
    if (!p) return tp_cl_fail(status, "clCreateProgramWithSource"), NULL;
    status = compile(d, p, source);
    if (status != CL_SUCCESS) {
        fail_build(d, p, status, key);
        tp_cl.clReleaseProgram(p);
        return NULL;
    }
    tp_cl_binary_put_off(p, name);
    note_build(d, tp_cl_now() - begun);
    return p;
}

/* A program may have several kernels; each gets an entry, all in one bucket. */
static entry *add_entry(tp_cl_device *d, const char *key, const char *name, uint64_t hash, cl_program p) {
    cl_int status;
    entry *e = malloc(sizeof *e + strlen(key) + strlen(name) + 2);
    if (!e) return tp_fail_memory((int64_t)sizeof *e), NULL;
    sprintf(e->key, "%s\n%s", key, name);
    e->device = d;
    e->program = p;
    e->hash = hash;
    e->kernel = (tp_cl_built){.id = tp_cl.clCreateKernel(p, name, &status), .name = e->key + strlen(key) + 1};
    if (!e->kernel.id) {
        tp_cl_fail(status, "clCreateKernel");
        free(e);
        return NULL;
    }
    tp_lock(TP_LOCK_ClPrograms);
    e->next = buckets[hash % BUCKETS];
    buckets[hash % BUCKETS] = e;
    tp_unlock(TP_LOCK_ClPrograms);
    return e;
}

/* The program of a key, new; and the entry of a kernel of it. */
static entry *build_entry(tp_cl_device *d, const char *key, const char *name, uint64_t hash, tp_cl_writer write,
                          const void *context) {
    tp_autotext source = {0};
    write(&source, context);
    if (!source.text) return tp_fail_memory(1), NULL;
    void *host = tp_host_lock_release();
    cl_program p = build(d, key, source.text);
    tp_host_lock_acquire(host);
    entry *e = p ? add_entry(d, key, name, hash, p) : NULL;
    if (p && !e) tp_cl.clReleaseProgram(p); /* else the table has it, for good */
    return e;
}

/* `name` NULL: any kernel of the program. */
static bool is_entry(const entry *e, const tp_cl_device *d, const char *key, const char *name, uint64_t hash) {
    size_t length = strlen(key);
    return e->hash == hash && e->device == d && strncmp(e->key, key, length) == 0 && e->key[length] == '\n' &&
           (!name || strcmp(e->key + length + 1, name) == 0) && !strchr(e->key + length + 1, '\n');
}

static entry *find_entry(const tp_cl_device *d, const char *key, const char *name, uint64_t hash, bool counts) {
    tp_lock(TP_LOCK_ClPrograms);
    entry *e = buckets[hash % BUCKETS];
    while (e && !is_entry(e, d, key, name, hash)) e = e->next;
    if (counts) e ? stats.hits++ : stats.misses++;
    tp_unlock(TP_LOCK_ClPrograms);
    return e;
}

tp_cl_built *tp_cl_kernel(tp_cl_device *d, const char *key, const char *name, tp_cl_writer write, const void *context) {
    uint64_t hash = tp_cl_hash_text(TP_CL_HASH_START, key).word[0] + (uint64_t)d->index;
    entry *e = find_entry(d, key, name, hash, true), *other;
    if (e) return &e->kernel;
    tp_turn *turn = &turns[hash % TURNS];
    if (tp_turn_take(turn) < 0) return NULL;
    e = find_entry(d, key, name, hash, false); /* who had the turn before may have built it */
    if (!e && (other = find_entry(d, key, NULL, hash, false))) e = add_entry(d, key, name, hash, other->program);
    else if (!e) e = build_entry(d, key, name, hash, write, context);
    tp_turn_pass(turn);
    return e ? &e->kernel : NULL;
}

/* ---- sources of the tree ---- */

typedef struct {
    const char *file, *definitions;
} file_source;

/* Whether a text that was printed calls a math helper, as tp_exp_f32, or has a macro of theirs; tp_f32 is a type. */
static bool calls_math(const char *text) {
    for (const char *c = text; (c = strcasestr(c, "tp_")); c += 3) {
        if (*c == 'T' && strncmp(c, "TP_FN ", 6) != 0) return true;
        if (*c == 't' && c[3 + strspn(c + 3, "abcdefghijklmnopqrstuvwxyz0123456789")] == '_') return true;
    }
    return false;
}

/* Whether it calls one of the special functions, which are two thirds of the math helpers. */
static bool calls_special(const char *text) {
    for (const char *c = text; (c = strstr(c, "tp_")); c += 3)
        for (const char *const *name = tp_cl_special_functions; *name; name++) {
            size_t length = strlen(*name);
            if (strncmp(c + 3, *name, length) == 0 && c[3 + length] == '_') return true;
        }
    return false;
}

void tp_cl_add_source(tp_text *s, const char *definitions, const char *text, const char *file) {
    const char *content = file ? tp_cl_source(file) : "";
    bool math = calls_math(definitions) || calls_math(text) || (file && tp_cl_source_includes_math(file));
    bool special = math && (calls_special(definitions) || calls_special(text) || calls_special(content));
    tp_text_add(s, "%s%s%s%s%s%s%s", tp_cl_source("built_ins.cl"), special ? "" : "#define TP_ELEMENTARY\n",
                definitions, tp_cl_source(math ? "math.h" : "types.cl"), tp_cl_source("common.cl"), text, content);
}

static void write_file_source(tp_text *source, const void *context) {
    const file_source *f = context;
    tp_cl_add_source(source, f->definitions, "", f->file);
}

tp_cl_built *tp_cl_file_kernel(tp_cl_device *d, const char *file, const char *name, const char *definitions) {
    tp_autotext key = {0};
    file_source f = {file, definitions};
    if (!tp_cl_source(file)) return tp_fail_null(TP_RuntimeError, "OpenCL: there is no source %s", file);
    tp_text_add(&key, "%s\n%s", file, definitions);
    if (!key.text) return tp_fail_memory(1), NULL;
    return tp_cl_kernel(d, key.text, name, write_file_source, &f);
}
