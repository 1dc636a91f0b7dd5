/* products.c: the functions of BLAS that csrc/cpu/ calls, as plain loops; see parts.h. Row-major only. */
#include "embed/parts.h"

#include "core/base.h"
#include "cpu/blas.h"

/* c = alpha op(a) op(b) + beta c, a row of c at a time: the inner loop goes along rows of b where it can. */
#define GEMM(name, type, number, value)                                                                                \
    static void name(int order TP_UNUSED, int ta, int tb, int m, int n, int k, number alpha_, const void *a_, int lda, \
                     const void *b_, int ldb, number beta_, void *c_, int ldc) {                                       \
        const type *a = a_, *b = b_, alpha = value(type, alpha_), beta = value(type, beta_);                           \
        type *c = c_;                                                                                                  \
        int64_t ai = ta == TP_BLAS_TRANS ? 1 : lda, ak = ta == TP_BLAS_TRANS ? lda : 1;                                \
        int64_t bk = tb == TP_BLAS_TRANS ? 1 : ldb, bj = tb == TP_BLAS_TRANS ? ldb : 1;                                \
        for (int64_t i = 0; i < m; i++) {                                                                              \
            type *row = c + i * ldc;                                                                                   \
            for (int64_t j = 0; j < n; j++) row[j] = beta == 0 ? 0 : beta * row[j];                                    \
            for (int64_t l = 0; l < k; l++) {                                                                          \
                const type x = alpha * a[i * ai + l * ak];                                                             \
                if (bj == 1)                                                                                           \
                    for (int64_t j = 0; j < n; j++) row[j] += x * b[l * bk + j];                                       \
                else                                                                                                   \
                    for (int64_t j = 0; j < n; j++) row[j] += x * b[l * bk + j * bj];                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
#define BY_VALUE(type, x) (x)
#define BY_POINTER(type, x) (*(const type *)(x))
GEMM(gemm_float, float, float, BY_VALUE)
GEMM(gemm_double, double, double, BY_VALUE)
GEMM(gemm_complex64, tp_complex64, const void *, BY_POINTER)
GEMM(gemm_complex128, tp_complex128, const void *, BY_POINTER)

/* y = alpha op(a) x + beta y, a number of y at a time. */
#define GEMV(name, type, number, value)                                                                                \
    static void name(int order TP_UNUSED, int ta, int m, int n, number alpha_, const void *a_, int lda,                \
                     const void *x_, int incx, number beta_, void *y_, int incy) {                                     \
        const type *a = a_, *x = x_, alpha = value(type, alpha_), beta = value(type, beta_);                           \
        type *y = y_;                                                                                                  \
        bool turned = ta == TP_BLAS_TRANS;                                                                             \
        for (int64_t i = 0; i < (turned ? n : m); i++) {                                                               \
            type sum = 0;                                                                                              \
            for (int64_t k = 0; k < (turned ? m : n); k++) sum += a[turned ? k * lda + i : i * lda + k] * x[k * incx]; \
            y[i * incy] = alpha * sum + (beta == 0 ? 0 : beta * y[i * incy]);                                          \
        }                                                                                                              \
    }
GEMV(gemv_float, float, float, BY_VALUE)
GEMV(gemv_double, double, double, BY_VALUE)
GEMV(gemv_complex64, tp_complex64, const void *, BY_POINTER)
GEMV(gemv_complex128, tp_complex128, const void *, BY_POINTER)

#define REAL(prefix, type, gemm, gemv)                                                                                \
    static void prefix##gemm_rows(int order, int ta, int tb, int m, int n, int k, type alpha, const type *a, int lda, \
                                  const type *b, int ldb, type beta, type *c, int ldc) {                              \
        gemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                            \
    }                                                                                                                 \
    static void prefix##gemv_rows(int order, int ta, int m, int n, type alpha, const type *a, int lda, const type *x, \
                                  int incx, type beta, type *y, int incy) {                                           \
        gemv(order, ta, m, n, alpha, a, lda, x, incx, beta, y, incy);                                                 \
    }                                                                                                                 \
    static type prefix##dot_rows(int n, const type *x, int incx, const type *y, int incy) {                           \
        type sum = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++) sum += x[i * incx] * y[i * incy];                                             \
        return sum;                                                                                                   \
    }
REAL(s, float, gemm_float, gemv_float)
REAL(d, double, gemm_double, gemv_double)

void tp_embed_products(void) {
    static const tp_blas plain = {.sgemm = sgemm_rows,
                                  .dgemm = dgemm_rows,
                                  .cgemm = gemm_complex64,
                                  .zgemm = gemm_complex128,
                                  .sgemv = sgemv_rows,
                                  .dgemv = dgemv_rows,
                                  .cgemv = gemv_complex64,
                                  .zgemv = gemv_complex128,
                                  .sdot = sdot_rows,
                                  .ddot = ddot_rows,
                                  .path = "plain loops"};
    tp_blas_set_stand_in(&plain);
}
