/* blas.c: finds and opens the BLAS library.
 *
 * Opening asks the host where the library is, which runs Python code: it is one thread's turn, and who comes meanwhile
 * waits without the host lock. Invariant: `blas` does not change any more once it is `loaded`. */
#include "cpu/blas.h"

#include "core/error.h"
#include "core/lock.h"
#include "cpu/capability.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tp_blas blas;
static _Atomic bool loaded;
static tp_turn opening;
static char *(*locate)(void);

void tp_blas_set_locator(char *(*fn)(void)) { locate = fn; }

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
    *(void **)&blas.sdot = find_symbol(library, "cblas_sdot");
    *(void **)&blas.ddot = find_symbol(library, "cblas_ddot");
    *(void **)&blas.get_num_threads = find_symbol(library, "openblas_get_num_threads");
    *(void **)&blas.set_num_threads = find_symbol(library, "openblas_set_num_threads");
    return blas.sgemm && blas.dgemm && blas.cgemm && blas.zgemm && blas.sgemv && blas.dgemv && blas.sdot && blas.ddot;
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

static bool try_open(const char *path, tp_text *tried) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library && read_symbols(library)) {
        blas.path = strdup(path);
        return true;
    }
    tp_text_add(tried, "\n  %s: %s", path, library ? "has no cblas functions" : dlerror());
    if (library) dlclose(library);
    return false;
}

static int open_library(void) {
    tp_autotext tried = {0};
    const char *wanted = getenv("TENSORPY_BLAS");
    if (needs_core_type()) setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    if (wanted && *wanted) {
        if (try_open(wanted, &tried)) return 0;
        return tp_fail(TP_RuntimeError, "TENSORPY_BLAS names a library that cannot be used:%s", tried.text);
    }
    char *found = locate ? locate() : NULL;
    bool ok = found && try_open(found, &tried);
    free(found);
    if (ok || try_open("libopenblas.so.0", &tried) || try_open("libblas.so.3", &tried)) return 0;
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
    /* gemm.c splits. Others in the process may have raised the number since the last call. */
    if (blas.set_num_threads && blas.get_num_threads && blas.get_num_threads() != 1) blas.set_num_threads(1);
    return &blas;
}
