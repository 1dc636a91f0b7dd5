/* lapack.c: see lapack.h. A function is looked for once; what was found stays. */
#include "cpu/lapack.h"

#include "core/error.h"
#include "cpu/blas.h"

#include <stdatomic.h>
#include <stdio.h>

typedef void (*function)(void);

static const char *const names[][2] = {
#define NAMES(name, real, complexes) {real, complexes},
    TP_FORALL_LAPACK(NAMES)
#undef NAMES
};
static function _Atomic found[TP_LAPACK_COUNT][4];

void (*tp_lapack_find(tp_lapack_name name, tp_dtype dtype))(void) {
    const bool two = tp_is_complex_dtype(dtype), wide = dtype == TP_FLOAT64 || dtype == TP_COMPLEX128;
    function _Atomic *place = &found[name][2 * two + wide];
    function fn = atomic_load_explicit(place, memory_order_relaxed);
    if (fn) return fn;
    char symbol[16];
    const tp_blas *blas = tp_blas_get();
    if (!blas) return NULL;
    snprintf(symbol, sizeof symbol, "%c%s_", "sdcz"[2 * two + wide], names[name][two]);
    *(void **)&fn = tp_blas_symbol(symbol);
    if (!fn)
        return tp_fail_null(TP_RuntimeError,
                            "the BLAS library %s has no LAPACK function %s; install scipy-openblas32, or let "
                            "TENSORPY_BLAS name a library that has LAPACK",
                            blas->path, symbol);
    atomic_store_explicit(place, fn, memory_order_relaxed);
    return fn;
}
