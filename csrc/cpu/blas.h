/* blas.h: the BLAS library, opened at the first matrix product.
 *
 * Which library: TENSORPY_BLAS (a path or a soname), else the one that the host names (tp_blas_set_locator; the Python
 * package finds the one that scipy-openblas32 brings), else libopenblas.so.0, libblas.so.3. Symbols may carry the
 * prefix `scipy_`. Integers are 32 bits wide. On AMD CPUs with AVX-512 that library would pick its AVX2 kernels; it is
 * told OPENBLAS_CORETYPE=SkylakeX before it is opened, unless the user has set that variable. */
#pragma once

#include "core/dtype.h"

enum { TP_BLAS_ROW_MAJOR = 101, TP_BLAS_NO_TRANS = 111, TP_BLAS_TRANS = 112, TP_BLAS_CONJ_TRANS = 113 };

typedef struct {
    void (*sgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                  int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);
    void (*cgemm)(int order, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                  const void *b, int ldb, const void *beta, void *c, int ldc);
    void (*zgemm)(int order, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int lda,
                  const void *b, int ldb, const void *beta, void *c, int ldc);
    void (*sgemv)(int order, int ta, int m, int n, float alpha, const float *a, int lda, const float *x, int incx,
                  float beta, float *y, int incy);
    void (*dgemv)(int order, int ta, int m, int n, double alpha, const double *a, int lda, const double *x, int incx,
                  double beta, double *y, int incy);
    void (*cgemv)(int order, int ta, int m, int n, const void *alpha, const void *a, int lda, const void *x, int incx,
                  const void *beta, void *y, int incy);
    void (*zgemv)(int order, int ta, int m, int n, const void *alpha, const void *a, int lda, const void *x, int incx,
                  const void *beta, void *y, int incy);
    float (*sdot)(int n, const float *x, int incx, const float *y, int incy);
    double (*ddot)(int n, const double *x, int incx, const double *y, int incy);
    int (*get_num_threads)(void); /* NULL if the library has none; the next one too */
    void (*set_num_threads)(int n);
    const char *path;
    bool is_named; /* by TENSORPY_BLAS */
} tp_blas;

/* The library, on one thread: products are split by their callers. NULL and a RuntimeError that says what was tried. */
const tp_blas *tp_blas_get(void);
/* A function of the library, which tp_blas_get has opened; NULL if it has none of the name. */
void *tp_blas_symbol(const char *name);
/* What is used where no library is found, which is an error else; it stays. */
void tp_blas_set_stand_in(const tp_blas *plain);
/* `locate` gives a malloc'd path, or NULL if there is none; -1 with the error set ends the attempt. */
void tp_blas_set_locator(int (*locate)(char **path));
