/* blas.c: finds and opens the BLAS library.
 *
 * Opening asks the host where the library is, which runs Python code: it is one thread's turn, and who comes meanwhile
 * waits without the host lock. Invariant: `blas` does not change any more once it is `loaded`. */
#include "cpu/blas.h"

#include "core/error.h"
#include "core/turn.h"
#include "core/room.h"
#include "cpu/capability.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tp_blas blas;
static const tp_blas *stand_in;
static void *opened; /* the library, once it is loaded */
static _Atomic bool loaded;
static tp_turn opening;
static __thread bool has_buffer;

#define BUFFER ((size_t)32 << 20)  /* what OpenBLAS maps for each thread that is inside at once */
#define LIBRARY ((size_t)40 << 20) /* with what it maps when it is opened */
static int (*locate)(char **path);

void tp_blas_set_locator(int (*fn)(char **path)) { locate = fn; }

static void *find_symbol(void *library, const char *name) {
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    void *symbol = dlsym(library, prefixed);
    return symbol ? symbol : dlsym(library, name);
}

static bool read_symbols(void *library) {
    *(void **)&blas.sgemm = find_symbol(library, "cblas_sgemm");
    *(void **)&blas.dgemm = find_symbol(library, "cblas_dgemm");
    *(void **)&blas.cgemm = find_symbol(library, "cblas_cgemm");
    *(void **)&blas.zgemm = find_symbol(library, "cblas_zgemm");
    *(void **)&blas.sgemv = find_symbol(library, "cblas_sgemv");
    *(void **)&blas.dgemv = find_symbol(library, "cblas_dgemv");
    *(void **)&blas.cgemv = find_symbol(library, "cblas_cgemv");
    *(void **)&blas.zgemv = find_symbol(library, "cblas_zgemv");
    *(void **)&blas.sdot = find_symbol(library, "cblas_sdot");
    *(void **)&blas.ddot = find_symbol(library, "cblas_ddot");
    *(void **)&blas.get_num_threads = find_symbol(library, "openblas_get_num_threads");
    *(void **)&blas.set_num_threads = find_symbol(library, "openblas_set_num_threads");
    return blas.sgemm && blas.dgemm && blas.cgemm && blas.zgemm && blas.sgemv && blas.dgemv && blas.cgemv &&
           blas.zgemv && blas.sdot && blas.ddot;
}

/* Whether the library would choose AVX2 kernels on a CPU that has AVX-512. */
static bool needs_core_type(void) {
#if defined(__x86_64__)
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

/* OpenBLAS starts a thread for each CPU when it is opened, with a buffer each, and here only one is ever used. */
static void *open_with_one_thread(const char *path) {
    bool ours = !getenv("OPENBLAS_NUM_THREADS") && setenv("OPENBLAS_NUM_THREADS", "1", 0) == 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (ours) unsetenv("OPENBLAS_NUM_THREADS");
    return library;
}

static bool try_open(const char *path, tp_text *tried) {
    void *library = open_with_one_thread(path);
    if (library && read_symbols(library)) {
        blas.path = strdup(path);
        opened = library;
        return true;
    }
    tp_text_add(tried, "\n  %s: %s", path, library ? "has no cblas functions" : dlerror());
    if (library) dlclose(library);
    return false;
}

static const char *named(void) {
    const char *path = getenv("TENSORPY_BLAS");
    return path && *path ? path : NULL;
}

static int open_library(void) {
    tp_autotext tried = {0};
    const char *wanted = named();
    if (tp_ask_for_room(LIBRARY + BUFFER, "the BLAS library") < 0) return -1;
    if (needs_core_type()) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    if (wanted) {
        if ((blas.is_named = try_open(wanted, &tried))) return 0;
        return tp_fail(TP_RuntimeError, "TENSORPY_BLAS names a library that cannot be used:%s", tried.text);
    }
    char *found = NULL;
    if (locate && locate(&found) < 0) return -1; /* a signal's handler, for one, has raised */
    bool ok = found && try_open(found, &tried);
    free(found);
    if (ok || try_open("libopenblas.so.0", &tried) || try_open("libblas.so.3", &tried)) return 0;
    if (stand_in) return blas = *stand_in, 0;
    return tp_fail(TP_RuntimeError,
                   "no BLAS library was found; install scipy-openblas32, or set TENSORPY_BLAS. Tried:%s", tried.text);
}

static int open_in_turn(void) {
    if (tp_turn_take(&opening) < 0) return -1;
    int status = atomic_load(&loaded) ? 0 : open_library();
    if (status == 0) atomic_store(&loaded, true);
    tp_turn_pass(&opening);
    return status;
}

const tp_blas *tp_blas_get(void) {
    if (tp_unlikely(!atomic_load_explicit(&loaded, memory_order_acquire)) && open_in_turn() < 0) return NULL;
    if (tp_unlikely(!has_buffer)) {
        if (tp_ask_for_room(BUFFER, "a matrix product") < 0) return NULL;
        has_buffer = true;
    }
    /* gemm.c splits. Others in the process may have raised the number since the last call. */
    if (blas.set_num_threads && blas.get_num_threads && blas.get_num_threads() != 1) blas.set_num_threads(1);
    return &blas;
}

void *tp_blas_symbol(const char *name) { return opened ? find_symbol(opened, name) : NULL; }

void tp_blas_set_stand_in(const tp_blas *plain) { stand_in = plain; }
