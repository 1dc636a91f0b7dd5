/* lapack.h: LAPACK's functions in the BLAS library (blas.h), by name and dtype. */
#pragma once

#include "core/dtype.h"

/* X(name, LAPACK's name of the real functions, and of the complex ones). */
#define TP_FORALL_LAPACK(X)    \
    X(POTRF, "potrf", "potrf") \
    X(GETRF, "getrf", "getrf") \
    X(GETRS, "getrs", "getrs") \
    X(SYTRF, "sytrf", "sytrf") \
    X(HETRF, "sytrf", "hetrf") \
    X(SYTRS, "sytrs", "sytrs") \
    X(HETRS, "sytrs", "hetrs") \
    X(TRSM, "trsm", "trsm")    \
    X(GEQRF, "geqrf", "geqrf") \
    X(ORGQR, "orgqr", "ungqr") \
    X(ORMQR, "ormqr", "unmqr") \
    X(SYEVD, "syevd", "heevd") \
    X(GEEV, "geev", "geev")    \
    X(GESDD, "gesdd", "gesdd") \
    X(GELS, "gels", "gels")    \
    X(GELSY, "gelsy", "gelsy") \
    X(GELSD, "gelsd", "gelsd") \
    X(GELSS, "gelss", "gelss")

typedef enum {
#define TP_LAPACK_ENUM(name, real, complexes) TP_##name,
    TP_FORALL_LAPACK(TP_LAPACK_ENUM)
#undef TP_LAPACK_ENUM
        TP_LAPACK_COUNT
} tp_lapack_name;

/* In Fortran's convention: every argument is an address, and the lengths of strings stand after all. NULL and a
 * RuntimeError where there is no BLAS library, or one without the function. */
void (*tp_lapack_find(tp_lapack_name name, tp_dtype dtype))(void);
