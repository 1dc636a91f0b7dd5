/* program.c: programs in memory and on disk; see program.h.
 *
 * Building takes from a tenth of a second to several: it is one thread's turn, without a lock and without the host
 * lock, and other threads build other programs meanwhile.
 *
 * Invariant: an entry of the table is never removed, so that a kernel may be borrowed for good. */
#include "opencl/runtime/program.h"

#include "core/host.h"
#include "core/lock.h"
#include "core/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 4096
#define TURNS 64
#define OPTIONS "-cl-std=CL1.2 -w"
#define CPU_OPTIONS OPTIONS " -DTP_CPU_DEVICE" /* what vectorises: see tensorpy/math_f32.h */

typedef struct entry {
    struct entry *next;
    tp_cl_device *device;
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

/* ---- on disk ---- */

static cl_program from_disk(tp_cl_device *d, tp_cl_hash source) {
    size_t size = 0;
    cl_int status, binary_status;
    unsigned char *bytes = tp_cl_disk_read(source, &size);
    const unsigned char *given = bytes;
    if (!given) return NULL;
    cl_program p = tp_cl.clCreateProgramWithBinary(d->context, 1, &d->id, &size, &given, &binary_status, &status);
    free(bytes);
    if (p && status == CL_SUCCESS && tp_cl.clBuildProgram(p, 1, &d->id, options_of(d), NULL, NULL) == CL_SUCCESS)
        return p;
    if (p) tp_cl.clReleaseProgram(p);
    return NULL;
}

static void to_disk(cl_program p, tp_cl_hash source) {
    size_t size = 0;
    if (tp_cl.clGetProgramInfo(p, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) != CL_SUCCESS || !size) return;
    unsigned char *bytes = malloc(size);
    if (bytes && tp_cl.clGetProgramInfo(p, CL_PROGRAM_BINARIES, sizeof bytes, &bytes, NULL) == CL_SUCCESS)
        tp_cl_disk_write(source, bytes, size);
    free(bytes);
}

/* ---- building ---- */

static int fail_build(tp_cl_device *d, cl_program p, cl_int status, const char *key) {
    char log[4000] = "";
    tp_cl.clGetProgramBuildInfo(p, d->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    return tp_fail(TP_RuntimeError, "OpenCL: a kernel does not compile on %s: %s\n%s\n  kernel: %s", d->name,
                   tp_cl_error_name(status), log, key);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A process that has compiled for a second says so, once: from outside it seems to stand still. */
static void say_that_it_compiles(const tp_cl_device *d, double seconds) {
    static double spent; /* under the lock ClPrograms */
    tp_lock(TP_LOCK_ClPrograms);
    bool is_time = spent < 1 && spent + seconds >= 1;
    spent += seconds;
    tp_unlock(TP_LOCK_ClPrograms);
    if (is_time && !getenv("TENSORPY_OPENCL_QUIET"))
        fprintf(stderr, "tensorpy: compiling OpenCL kernels for %s, which are kept for the next time\n", d->name);
}

static cl_program build(tp_cl_device *d, const char *key, const char *source) {
    cl_int status;
    double begun = now();
    tp_cl_hash name = tp_cl_hash_text(tp_cl_hash_device(d), source);
    cl_program p = from_disk(d, name);
    if (p) return count_one(&stats.from_disk), p;
    p = tp_cl.clCreateProgramWithSource(d->context, 1, &source, NULL, &status);
    if (!p) return tp_cl_fail(status, "clCreateProgramWithSource"), NULL;
    status = tp_cl.clBuildProgram(p, 1, &d->id, options_of(d), NULL, NULL);
    if (status != CL_SUCCESS) {
        fail_build(d, p, status, key);
        tp_cl.clReleaseProgram(p);
        return NULL;
    }
    count_one(&stats.built);
    to_disk(p, name);
    say_that_it_compiles(d, now() - begun);
    return p;
}

/* A program may have several kernels; each gets an entry, and the source is only built for the first of them. */
static entry *add_entry(tp_cl_device *d, const char *key, const char *name, uint64_t hash, cl_program p) {
    cl_int status;
    entry *e = malloc(sizeof *e + strlen(key) + strlen(name) + 2);
    if (!e) return tp_fail_memory((int64_t)sizeof *e), NULL;
    sprintf(e->key, "%s\n%s", key, name);
    e->device = d;
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

static entry *build_entry(tp_cl_device *d, const char *key, const char *name, uint64_t hash, tp_cl_writer write,
                          const void *context) {
    tp_autotext source = {0};
    write(&source, context);
    if (!source.text) return tp_fail_memory(1), NULL;
    void *host = tp_host_lock_release();
    cl_program p = build(d, key, source.text);
    tp_host_lock_acquire(host);
    entry *e = p ? add_entry(d, key, name, hash, p) : NULL;
    if (p) tp_cl.clReleaseProgram(p); /* the kernel keeps it */
    return e;
}

static bool is_entry(const entry *e, const tp_cl_device *d, const char *key, const char *name, uint64_t hash) {
    size_t length = strlen(key);
    return e->hash == hash && e->device == d && strncmp(e->key, key, length) == 0 && e->key[length] == '\n' &&
           strcmp(e->key + length + 1, name) == 0;
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
    uint64_t hash = tp_cl_hash_text(tp_cl_hash_text(TP_CL_HASH_START, key), name).word[0] + (uint64_t)d->index;
    entry *e = find_entry(d, key, name, hash, true);
    if (e) return &e->kernel;
    tp_turn *turn = &turns[hash % TURNS];
    if (tp_turn_take(turn) < 0) return NULL;
    e = find_entry(d, key, name, hash, false); /* who had the turn before may have built it */
    if (!e) e = build_entry(d, key, name, hash, write, context);
    tp_turn_pass(turn);
    return e ? &e->kernel : NULL;
}

/* ---- sources of the tree ---- */

typedef struct {
    const char *file, *definitions;
} file_source;

static void write_file_source(tp_text *source, const void *context) {
    const file_source *f = context;
    tp_text_add(source, "%s%s%s%s", f->definitions, tp_cl_source("math.h"), tp_cl_source("common.cl"),
                tp_cl_source(f->file));
}

tp_cl_built *tp_cl_file_kernel(tp_cl_device *d, const char *file, const char *name, const char *definitions) {
    tp_autotext key = {0};
    file_source f = {file, definitions};
    if (!tp_cl_source(file)) return tp_fail_null(TP_RuntimeError, "OpenCL: there is no source %s", file);
    tp_text_add(&key, "%s\n%s", file, definitions);
    if (!key.text) return tp_fail_memory(1), NULL;
    return tp_cl_kernel(d, key.text, name, write_file_source, &f);
}
