/* gemm.c: brings matrix products to BLAS, or those of float32 to sgemm.c, which is faster where there are vectors,
 * unless the user names a library.
 *
 * BLAS takes a matrix whose rows or columns are contiguous, with a leading dimension between them. out = a b in
 * column-major order is out^T = b^T a^T in row-major order, so a column-major out swaps the operands instead of being
 * copied. */
#include "cpu/gemm.h"

#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/blas.h"
#include "cpu/kernels.h"
#include "cpu/sgemm.h"
#include "prim/panels.h"
#include "prim/pieces.h"
#include "prim/transfer.h"
#include "iter/iter.h"
#include "core/memory.h"

#include <string.h>

#define PER_LOOK 1e10 /* some tenths of a second, after which a signal is heard */
#define MIN_PIECE 256 /* rows or columns, where it is cut for that */

typedef struct {
    char *data;
    int64_t rows, cols, row_stride, col_stride;
} matrix;

static matrix matrix_of(const tp_tensor *t) {
    return (matrix){tp_data(t), t->sizes[0], t->sizes[1], t->strides[0], t->strides[1]};
}
static matrix transposed(matrix m) { return (matrix){m.data, m.cols, m.rows, m.col_stride, m.row_stride}; }

/* How BLAS would read the matrix: leading dimension and whether it is the transposed of row-major; false if it cannot.
 */
static bool blas_layout(const matrix *m, int *leading, int *trans) {
    int64_t at_least_cols = m->cols > 1 ? m->cols : 1, at_least_rows = m->rows > 1 ? m->rows : 1;
    bool one_row = m->rows == 1, one_col = m->cols == 1;
    if ((m->col_stride == 1 || one_col) && (m->row_stride >= at_least_cols || one_row)) {
        *leading = (int)(one_row ? at_least_cols : m->row_stride);
        *trans = TP_BLAS_NO_TRANS;
        return m->col_stride == 1 || one_col ? (one_row ? at_least_cols : m->row_stride) <= INT32_MAX : false;
    }
    if ((m->row_stride == 1 || one_row) && (m->col_stride >= at_least_rows || one_col)) {
        *leading = (int)(one_col ? at_least_rows : m->col_stride);
        *trans = TP_BLAS_TRANS;
        return (one_col ? at_least_rows : m->col_stride) <= INT32_MAX;
    }
    return false;
}

/* A product with one column: c = alpha * a @ b + beta * c. */
static void call_gemv(const tp_blas *blas, tp_dtype dtype, matrix a, int lda, int ta, matrix b, matrix c,
                      const tp_scalar *alpha, const tp_scalar *beta) {
    int rows = (int)(ta == TP_BLAS_TRANS ? a.cols : a.rows), cols = (int)(ta == TP_BLAS_TRANS ? a.rows : a.cols);
    int incx = (int)b.row_stride, incy = (int)c.row_stride, order = TP_BLAS_ROW_MAJOR;
    tp_complex128 za = tp_scalar_complex(alpha), zb = tp_scalar_complex(beta);
    tp_complex64 ca = (tp_complex64)za, cb = (tp_complex64)zb;
    switch (dtype) {
    case TP_FLOAT32:
        blas->sgemv(order, ta, rows, cols, (float)tp_scalar_double(alpha), (float *)a.data, lda, (float *)b.data, incx,
                    (float)tp_scalar_double(beta), (float *)c.data, incy);
        break;
    case TP_FLOAT64:
        blas->dgemv(order, ta, rows, cols, tp_scalar_double(alpha), (double *)a.data, lda, (double *)b.data, incx,
                    tp_scalar_double(beta), (double *)c.data, incy);
        break;
    case TP_COMPLEX64: blas->cgemv(order, ta, rows, cols, &ca, a.data, lda, b.data, incx, &cb, c.data, incy); break;
    default: blas->zgemv(order, ta, rows, cols, &za, a.data, lda, b.data, incx, &zb, c.data, incy); break;
    }
}

/* A product of one row and one column: c = alpha * a @ b + beta * c. */
static void call_dot(const tp_blas *blas, tp_dtype dtype, matrix a, matrix b, matrix c, double alpha, double beta) {
    int n = (int)a.cols, incx = (int)a.col_stride, incy = (int)b.row_stride;
    if (dtype == TP_FLOAT32) {
        float *out = (float *)c.data, sum = blas->sdot(n, (float *)a.data, incx, (float *)b.data, incy);
        *out = (float)alpha * sum + (beta == 0 ? 0 : (float)beta * *out);
    } else {
        double *out = (double *)c.data, sum = blas->ddot(n, (double *)a.data, incx, (double *)b.data, incy);
        *out = alpha * sum + (beta == 0 ? 0 : beta * *out);
    }
}

/* ---- a few numbers ----
 *
 * A call of BLAS would cost more than the products of a batch of short vectors do. */

#define FEW_PRODUCTS 256
#define SHORT_SUM 32    /* which waits for itself, number by number */
#define SMALL_LOOK 4096 /* of them between two looks for signals */

static bool is_small(tp_dtype dtype, const matrix *a, const matrix *c) {
    bool real = dtype == TP_FLOAT32 || dtype == TP_FLOAT64;
    return real && a->cols <= SHORT_SUM && c->rows <= FEW_PRODUCTS && c->cols <= FEW_PRODUCTS &&
           c->rows * c->cols * a->cols <= FEW_PRODUCTS;
}

#define MULTIPLY_SMALL(T)                                                                                         \
    static void multiply_small_##T(const matrix *a, const matrix *b, const matrix *c, T alpha, T beta) {          \
        for (int64_t i = 0; i < c->rows; i++)                                                                     \
            for (int64_t j = 0; j < c->cols; j++) {                                                               \
                const T *x = (const T *)a->data + i * a->row_stride, *y = (const T *)b->data + j * b->col_stride; \
                T sum = 0, *out = (T *)c->data + i * c->row_stride + j * c->col_stride;                           \
                for (int64_t k = 0; k < a->cols; k++) sum += x[k * a->col_stride] * y[k * b->row_stride];         \
                *out = alpha * sum + (beta == 0 ? 0 : beta * *out);                                               \
            }                                                                                                     \
    }
MULTIPLY_SMALL(float)
MULTIPLY_SMALL(double)
#undef MULTIPLY_SMALL

static void multiply_small(tp_dtype dtype, const matrix *a, const matrix *b, const matrix *c, double alpha,
                           double beta) {
    if (dtype == TP_FLOAT32) multiply_small_float(a, b, c, (float)alpha, (float)beta);
    else multiply_small_double(a, b, c, alpha, beta);
}

/* ---- a few rows ---- */

#define IN_CACHE (1 << 16)      /* numbers of the matrix, which all rows meet one after the other */
#define MOST_READ_AGAIN 4194304 /* numbers of a matrix that more than TP_FEW_ROWS rows meet so */

typedef struct {
    matrix a, b, c;
    float alpha, beta;
} few_job;

/* Some of the job's columns and of the terms of their sums, TP_FEW_ROWS rows at a time while a cache has the numbers.
 */
static void run_near(const few_job *j, int64_t column, int64_t columns, int64_t term, int64_t terms) {
    const matrix *a = &j->a, *b = &j->b, *c = &j->c;
    const float *from = (const float *)b->data + column * b->col_stride + term * b->row_stride;
    for (int64_t i = 0; i < c->rows; i += TP_FEW_ROWS) {
        const float *row = (const float *)a->data + i * a->row_stride + term;
        float *out = (float *)c->data + i * c->row_stride + column * c->col_stride, beta = term ? 1 : j->beta;
        int64_t rows = tp_at_most(c->rows - i, TP_FEW_ROWS);
        if (b->row_stride == 1)
            tp_cpu.panels->dots(row, a->row_stride, rows, from, b->col_stride, columns, terms, j->alpha, beta, out,
                                c->row_stride, c->col_stride);
        else
            tp_cpu.panels->sums(row, a->row_stride, rows, from, b->row_stride, columns, terms, j->alpha, beta, out,
                                c->row_stride);
    }
}

/* How many lines of the matrix, `length` numbers each, are taken together. */
static int64_t near_lines(const few_job *j, int64_t length) {
    int64_t lines = IN_CACHE / length / 8 * 8;
    return j->c.rows <= TP_FEW_ROWS ? INT64_MAX : lines > 8 ? lines : 8;
}

static void run_few(int64_t begin, int64_t end, void *context) {
    const few_job *j = context;
    const int64_t columns = end - begin, terms = j->a.cols;
    if (j->b.row_stride == 1) {
        int64_t near = near_lines(j, terms);
        for (int64_t i = 0, n; i < columns; i += n) run_near(j, begin + i, n = tp_at_most(near, columns - i), 0, terms);
    } else {
        int64_t near = near_lines(j, columns);
        for (int64_t i = 0, n; i < terms; i += n) run_near(j, begin, columns, i, n = tp_at_most(near, terms - i));
    }
}

/* A few rows with a matrix whose columns are contiguous, a linear layer's weight, or whose rows are. BLAS would
 * rearrange the matrix for each call. false: it is another product. */
static bool few_rows(tp_dtype dtype, matrix a, matrix b, matrix c, const tp_scalar *alpha, const tp_scalar *beta) {
    bool dots = b.row_stride == 1, sums = b.col_stride == 1 && c.col_stride == 1;
    bool fits = dtype == TP_FLOAT32 && c.rows <= tp_cpu.panels->most_rows && c.cols > 1 && a.cols >= 16 &&
                a.col_stride == 1 && (dots || sums) && (c.rows <= TP_FEW_ROWS || b.rows * b.cols <= MOST_READ_AGAIN);
    if (!fits) return false;
    few_job j = {a, b, c, (float)tp_scalar_double(alpha), (float)tp_scalar_double(beta)};
    double work = (double)a.cols * (double)c.cols;
    int64_t grain = (int64_t)(1 << 17) / a.cols / 16 * 16;
    tp_parallel_unlocked(work > 1e5, c.cols, grain > 16 ? grain : 16, run_few, &j);
    return true;
}

static bool fits_int(int64_t stride) { return stride > 0 && stride <= INT32_MAX; }

static int call_blas_here(tp_dtype dtype, matrix a, matrix b, matrix c, const tp_scalar *alpha, const tp_scalar *beta) {
    const tp_blas *blas = tp_blas_get();
    int lda = 0, ldb = 0, ldc = 0, ta = 0, tb = 0, tc = 0;
    if (!blas) return -1;
    blas_layout(&c, &ldc, &tc);
    if (tc == TP_BLAS_TRANS) {
        matrix swapped = transposed(a);
        a = transposed(b);
        b = swapped;
        c = transposed(c);
        blas_layout(&c, &ldc, &tc);
    }
    blas_layout(&a, &lda, &ta);
    blas_layout(&b, &ldb, &tb);
    int m = (int)c.rows, n = (int)c.cols, k = (int)a.cols;
    bool real = dtype == TP_FLOAT32 || dtype == TP_FLOAT64;
    if (n == 1 && m == 1 && real && fits_int(a.col_stride) && fits_int(b.row_stride)) {
        call_dot(blas, dtype, a, b, c, tp_scalar_double(alpha), tp_scalar_double(beta));
        return 0;
    }
    if (n == 1 && m > 1 && fits_int(b.row_stride) && c.row_stride <= INT32_MAX) {
        call_gemv(blas, dtype, a, lda, ta, b, c, alpha, beta);
        return 0;
    }
    if (m == 1 && n > 1 && fits_int(a.col_stride)) { /* the columns of b with the row */
        int turned = tb == TP_BLAS_TRANS ? TP_BLAS_NO_TRANS : TP_BLAS_TRANS;
        call_gemv(blas, dtype, transposed(b), ldb, turned, transposed(a), transposed(c), alpha, beta);
        return 0;
    }
    bool release = (double)m * n * k > 1e5;
    void *host = release ? tp_host_lock_release() : NULL;
    tp_complex128 za = tp_scalar_complex(alpha), zb = tp_scalar_complex(beta);
    tp_complex64 ca = (tp_complex64)za, cb = (tp_complex64)zb;
    switch (dtype) {
    case TP_FLOAT32:
        blas->sgemm(TP_BLAS_ROW_MAJOR, ta, tb, m, n, k, (float)tp_scalar_double(alpha), (float *)a.data, lda,
                    (float *)b.data, ldb, (float)tp_scalar_double(beta), (float *)c.data, ldc);
        break;
    case TP_FLOAT64:
        blas->dgemm(TP_BLAS_ROW_MAJOR, ta, tb, m, n, k, tp_scalar_double(alpha), (double *)a.data, lda,
                    (double *)b.data, ldb, tp_scalar_double(beta), (double *)c.data, ldc);
        break;
    case TP_COMPLEX64:
        blas->cgemm(TP_BLAS_ROW_MAJOR, ta, tb, m, n, k, &ca, a.data, lda, b.data, ldb, &cb, c.data, ldc);
        break;
    default: blas->zgemm(TP_BLAS_ROW_MAJOR, ta, tb, m, n, k, &za, a.data, lda, b.data, ldb, &zb, c.data, ldc); break;
    }
    if (release) tp_host_lock_acquire(host);
    return 0;
}

/* ---- over threads ----
 *
 * BLAS itself runs on one thread: its own threads and OpenMP's, both waiting busily, would take each other's CPUs. A
 * large product is split into pieces that depend on its shape only, so the number of threads changes no result. */

#define WORTH_A_SPLIT 4e6 /* multiplications; a piece costs a few per cent of what it takes from its neighbours */
#define WORTH_FOUR 6e7

typedef struct {
    tp_dtype dtype;
    matrix a, b, c;
    const tp_scalar *alpha, *beta;
    bool by_rows;
    int64_t piece; /* rows or columns */
} split_job;

static int run_piece(split_job j, int64_t i) {
    int64_t item = tp_itemsize(j.dtype), left = (j.by_rows ? j.c.rows : j.c.cols) - i * j.piece,
            n = left < j.piece ? left : j.piece;
    if (j.by_rows) {
        j.a.data += i * j.piece * j.a.row_stride * item;
        j.c.data += i * j.piece * j.c.row_stride * item;
        j.a.rows = j.c.rows = n;
    } else {
        j.b.data += i * j.piece * j.b.col_stride * item;
        j.c.data += i * j.piece * j.c.col_stride * item;
        j.b.cols = j.c.cols = n;
    }
    return call_blas_here(j.dtype, j.a, j.b, j.c, j.alpha, j.beta);
}

static void run_split(int64_t begin, int64_t end, void *context) {
    for (int64_t i = begin; i < end; i++)
        if (run_piece(*(const split_job *)context, i) < 0 || tp_host_look() < 0) return; /* the loop passes it on */
}

static tp_strided strided(matrix m) { return (tp_strided){(const float *)m.data, m.row_stride, m.col_stride}; }

static bool for_sgemm(const tp_blas *blas, tp_dtype dtype, int64_t m, int64_t n, int64_t k, tp_strided b) {
    return dtype == TP_FLOAT32 && !blas->is_named && tp_sgemm_fits(m, n, k, b);
}

static int call_sgemm(matrix a, matrix b, matrix c, float alpha, float beta) {
    bool release = (double)c.rows * (double)c.cols * (double)a.cols > 1e5;
    void *host = release ? tp_host_lock_release() : NULL;
    int status = tp_sgemm(c.rows, c.cols, a.cols, alpha, strided(a), strided(b), beta, (float *)c.data, c.row_stride);
    if (release) tp_host_lock_acquire(host);
    return status;
}

static int call_blas(tp_dtype dtype, matrix a, matrix b, matrix c, const tp_scalar *alpha, const tp_scalar *beta) {
    const tp_blas *blas = tp_blas_get();
    if (!blas) return -1;
    if (is_small(dtype, &a, &c)) {
        multiply_small(dtype, &a, &b, &c, tp_scalar_double(alpha), tp_scalar_double(beta));
        return 0;
    }
    if (c.col_stride != 1 && c.row_stride == 1)
        return call_blas(dtype, transposed(b), transposed(a), transposed(c), alpha, beta);
    if (few_rows(dtype, a, b, c, alpha, beta)) return 0;
    if (few_rows(dtype, transposed(b), transposed(a), transposed(c), alpha, beta)) return 0;
    if (for_sgemm(blas, dtype, c.rows, c.cols, a.cols, strided(b)))
        return call_sgemm(a, b, c, (float)tp_scalar_double(alpha), (float)tp_scalar_double(beta));
    split_job j = {dtype, a, b, c, alpha, beta, c.rows >= c.cols, 0};
    int64_t length = j.by_rows ? c.rows : c.cols;
    double work = (double)c.rows * (double)c.cols * (double)a.cols;
    if (work < WORTH_A_SPLIT || length <= 64 || c.cols == 1) return call_blas_here(dtype, a, b, c, alpha, beta);
    int64_t wanted = work < WORTH_FOUR ? 2 : 4, by_look = (int64_t)(work / PER_LOOK);
    if (by_look > wanted && length / MIN_PIECE > wanted)
        wanted = by_look < length / MIN_PIECE ? by_look : length / MIN_PIECE;
    j.piece = ((length + wanted - 1) / wanted + 63) / 64 * 64;
    int64_t pieces = (length + j.piece - 1) / j.piece;
    return tp_parallel_unlocked(true, pieces, 1, run_split, &j);
}

/* ---- integers ---- */

#define INTEGER_LOOK (1 << 20) /* multiplications between two looks for signals */

/* A bool is any byte that is not 0, whatever else it is: bools are loaded as bytes. */
#define AS_NUMBER(x) (x)
#define AS_BOOL(x) ((x) != 0)

#define INTEGER_GEMM(name, type, wide, load)                                                        \
    static int gemm_##name(matrix a, matrix b, matrix c, int64_t alpha, int64_t beta) {             \
        int64_t done = 0;                                                                           \
        for (int64_t i = 0; i < c.rows; i++)                                                        \
            for (int64_t j = 0; j < c.cols; j++) {                                                  \
                wide sum = 0;                                                                       \
                for (int64_t k = 0; k < a.cols;) {                                                  \
                    int64_t n = a.cols - k < INTEGER_LOOK ? a.cols - k : INTEGER_LOOK, end = k + n; \
                    for (; k < end; k++)                                                            \
                        sum += (wide)load(((type *)a.data)[i * a.row_stride + k * a.col_stride]) *  \
                               (wide)load(((type *)b.data)[k * b.row_stride + j * b.col_stride]);   \
                    if ((done += n) < INTEGER_LOOK) continue;                                       \
                    if (tp_host_look() < 0) return -1;                                              \
                    done = 0;                                                                       \
                }                                                                                   \
                type *out = &((type *)c.data)[i * c.row_stride + j * c.col_stride];                 \
                *out = (type)load((wide)alpha * sum + (beta ? (wide)beta * (wide)load(*out) : 0));  \
            }                                                                                       \
        return 0;                                                                                   \
    }
INTEGER_GEMM(uint8, uint8_t, uint32_t, AS_NUMBER)
INTEGER_GEMM(uint16, uint16_t, uint32_t, AS_NUMBER)
INTEGER_GEMM(uint32, uint32_t, uint32_t, AS_NUMBER)
INTEGER_GEMM(uint64, uint64_t, uint64_t, AS_NUMBER)
INTEGER_GEMM(bool, uint8_t, uint64_t, AS_BOOL)

static int integer_gemm(tp_dtype dtype, matrix a, matrix b, matrix c, const tp_scalar *alpha, const tp_scalar *beta) {
    int64_t x = tp_scalar_int(alpha), y = tp_scalar_int(beta); /* modulo 2**n, signed and unsigned agree */
    switch (tp_itemsize(dtype)) {
    case 1: return (dtype == TP_BOOL ? gemm_bool : gemm_uint8)(a, b, c, x, y);
    case 2: return gemm_uint16(a, b, c, x, y);
    case 4: return gemm_uint32(a, b, c, x, y);
    default: return gemm_uint64(a, b, c, x, y);
    }
}

/* The same with the host lock given up while it is long. */
static int multiply_integers(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *alpha,
                             const tp_scalar *beta) {
    bool release = (double)out->numel * (double)a->sizes[1] > 1e5;
    void *host = release ? tp_host_lock_release() : NULL;
    int status = integer_gemm((tp_dtype)out->dtype, matrix_of(a), matrix_of(b), matrix_of(out), alpha, beta);
    if (release) tp_host_lock_acquire(host);
    return status;
}

/* ---- on memory ---- */

/* A product too long for one call of BLAS, by columns of b and c. */
static int gemm_by_columns(tp_dtype dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const void *a,
                           int64_t lda, const void *b, int64_t ldb, int beta, void *c, int64_t ldc) {
    int64_t item = tp_itemsize(dtype), piece = (int64_t)((double)n * PER_LOOK / ((double)m * n * k)) / 64 * 64;
    if (piece < MIN_PIECE) piece = MIN_PIECE;
    for (int64_t i = 0; i < n; i += piece) {
        const char *part = (const char *)b + i * item * (trans_b ? ldb : 1);
        int64_t width = n - i < piece ? n - i : piece;
        if (tp_gemm_raw(dtype, trans_a, trans_b, m, width, k, a, lda, part, ldb, beta, (char *)c + i * item, ldc) < 0 ||
            tp_host_look() < 0)
            return -1;
    }
    return 0;
}

int tp_gemm_raw(tp_dtype dtype, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                const void *b, int64_t ldb, int beta, void *c, int64_t ldc) {
    if (m > INT32_MAX || n > INT32_MAX || k > INT32_MAX || lda > INT32_MAX || ldb > INT32_MAX || ldc > INT32_MAX)
        return tp_fail(TP_RuntimeError, "matrix product: a dimension is larger than BLAS takes (2**31 - 1)");
    if ((double)m * n * k > 2 * PER_LOOK && n > 2 * MIN_PIECE)
        return gemm_by_columns(dtype, trans_a, trans_b, m, n, k, a, lda, b, ldb, beta, c, ldc);
    int ta = trans_a ? TP_BLAS_TRANS : TP_BLAS_NO_TRANS, tb = trans_b ? TP_BLAS_TRANS : TP_BLAS_NO_TRANS;
    int mi = (int)m, ni = (int)n, ki = (int)k, la = (int)lda, lb = (int)ldb, lc = (int)ldc;
    if (!tp_is_floating_dtype(dtype) && !tp_is_complex_dtype(dtype)) {
        matrix left = {(char *)a, m, k, trans_a ? 1 : lda, trans_a ? lda : 1};
        matrix right = {(char *)b, k, n, trans_b ? 1 : ldb, trans_b ? ldb : 1};
        return integer_gemm(dtype, left, right, (matrix){c, m, n, ldc, 1}, TP_SCALAR_I(1), TP_SCALAR_I(beta));
    }
    const tp_blas *blas = tp_blas_get();
    if (!blas) return -1;
    tp_strided left = {a, trans_a ? 1 : lda, trans_a ? lda : 1}, right = {b, trans_b ? 1 : ldb, trans_b ? ldb : 1};
    if (for_sgemm(blas, dtype, m, n, k, right)) return tp_sgemm(m, n, k, 1, left, right, (float)beta, c, ldc);
    tp_complex128 z1 = 1, zb = beta;
    tp_complex64 c1 = 1, cb = (float)beta;
    switch (dtype) {
    case TP_FLOAT32: blas->sgemm(TP_BLAS_ROW_MAJOR, ta, tb, mi, ni, ki, 1, a, la, b, lb, (float)beta, c, lc); break;
    case TP_FLOAT64: blas->dgemm(TP_BLAS_ROW_MAJOR, ta, tb, mi, ni, ki, 1, a, la, b, lb, beta, c, lc); break;
    case TP_COMPLEX64: blas->cgemm(TP_BLAS_ROW_MAJOR, ta, tb, mi, ni, ki, &c1, a, la, b, lb, &cb, c, lc); break;
    default: blas->zgemm(TP_BLAS_ROW_MAJOR, ta, tb, mi, ni, ki, &z1, a, la, b, lb, &zb, c, lc); break;
    }
    return 0;
}

/* ---- operands ---- */

/* t, or a contiguous copy of dtype `to`; new. */
static tp_tensor *operand(const tp_tensor *t, tp_dtype to) {
    int leading, trans;
    matrix m = matrix_of(t);
    if ((tp_dtype)t->dtype == to && blas_layout(&m, &leading, &trans)) return tp_retain((tp_tensor *)t);
    tp_autoref *copy = tp_new_empty(tp_sizes(t), to, TP_CPU);
    return copy && tp_copy_data(copy, t) == 0 ? tp_take(copy) : NULL;
}

static int check_fits(const tp_tensor *a, const tp_tensor *out) {
    if (a->sizes[1] <= INT32_MAX && out->sizes[0] <= INT32_MAX && out->sizes[1] <= INT32_MAX) return 0;
    return tp_fail(TP_RuntimeError, "matrix product: a dimension is larger than BLAS takes (2**31 - 1)");
}

typedef struct {
    tp_tensor *a, *b, *out;
    const tp_scalar *alpha, *beta;
} product;

/* Products of 16-bit floats run in float32, for a piece of the rows (or of a batch) at a time. */
static int by_pieces(const product *p, bool batch, tp_piece_fn run) {
    tp_tensor *const all[] = {p->out, p->a, batch ? p->b : NULL};
    bool widens = tp_compute_dtype((tp_dtype)p->out->dtype) != (tp_dtype)p->out->dtype;
    return tp_by_pieces(all, TP_COUNTOF(all), widens ? ~(uint64_t)1 : TP_WHOLE, run, p);
}

static int multiply_rows(tp_tensor *const *parts, const void *context) {
    const product *p = context;
    tp_tensor *out = parts[0], *a = parts[1];
    tp_dtype dtype = (tp_dtype)out->dtype, compute = tp_compute_dtype(dtype);
    tp_autoref *left = operand(a, compute);
    int leading, trans;
    matrix m = matrix_of(out);
    bool direct = dtype == compute && blas_layout(&m, &leading, &trans);
    tp_autoref *target = direct ? tp_retain(out) : tp_new_empty(tp_sizes(out), compute, TP_CPU);
    if (!left || !target) return -1;
    if (!direct && !tp_scalar_equals_int(p->beta, 0) && tp_copy_data(target, out) < 0) return -1;
    if (call_blas(compute, matrix_of(left), matrix_of(p->b), matrix_of(target), p->alpha, p->beta) < 0) return -1;
    return direct ? 0 : tp_copy_data(out, target);
}

static int multiply_one(tp_tensor *a, tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta) {
    tp_dtype dtype = (tp_dtype)out->dtype;
    if (!tp_is_floating_dtype(dtype) && !tp_is_complex_dtype(dtype)) return multiply_integers(a, b, out, alpha, beta);
    if (check_fits(a, out) < 0) return -1;
    tp_autoref *left = tp_still(a), *target = tp_still(out), *right = operand(b, tp_compute_dtype(dtype));
    product p = {left, right, target, alpha, beta};
    return left && target && right ? by_pieces(&p, false, multiply_rows) : -1;
}

/* ---- batches ---- */

static matrix matrix_at(const tp_tensor *t, int64_t i) {
    char *data = (char *)tp_data(t) + i * t->strides[0] * tp_itemsize((tp_dtype)t->dtype);
    return (matrix){data, t->sizes[1], t->sizes[2], t->strides[1], t->strides[2]};
}

/* As operand, for a batch. */
static tp_tensor *batch_operand(const tp_tensor *t, tp_dtype to) {
    int leading, trans;
    matrix m = matrix_at(t, 0);
    if ((tp_dtype)t->dtype == to &&
        (!(tp_is_floating_dtype(to) || tp_is_complex_dtype(to)) || blas_layout(&m, &leading, &trans)))
        return tp_retain((tp_tensor *)t);
    tp_autoref *copy = tp_new_empty(tp_sizes(t), to, TP_CPU);
    return copy && tp_copy_data(copy, t) == 0 ? tp_take(copy) : NULL;
}

typedef struct {
    matrix first;
    int64_t step; /* bytes, from one to the next */
} batch;
static batch batch_of(const tp_tensor *t) {
    return (batch){matrix_at(t, 0), t->strides[0] * tp_itemsize((tp_dtype)t->dtype)};
}
static matrix in_batch(const batch *b, int64_t i) {
    matrix m = b->first;
    m.data += i * b->step;
    return m;
}

typedef struct {
    batch a, b, out;
    tp_dtype dtype;
    const tp_scalar *alpha, *beta;
} batch_job;

static void run_batch(int64_t begin, int64_t end, void *context) {
    const batch_job *j = context;
    bool blas = tp_is_floating_dtype(j->dtype) || tp_is_complex_dtype(j->dtype);
    double alpha = tp_scalar_double(j->alpha), beta = tp_scalar_double(j->beta);
    for (int64_t i = begin; i < end; i++) {
        matrix a = in_batch(&j->a, i), b = in_batch(&j->b, i), c = in_batch(&j->out, i);
        if (is_small(j->dtype, &a, &c)) {
            multiply_small(j->dtype, &a, &b, &c, alpha, beta);
            if (i % SMALL_LOOK == 0 && tp_host_look() < 0) return;
            continue;
        }
        if ((blas ? call_blas : integer_gemm)(j->dtype, a, b, c, j->alpha, j->beta) < 0 || tp_host_look() < 0) return;
    }
}

/* ---- panels ----
 *
 * A few rows times a matrix of which TP_PANEL columns after the other were laid in memory, as a batch: the same rows
 * for each, and the results side by side in the columns of one matrix. Recurrent layers lay their weights so. */

typedef struct {
    const float *a, *panels;
    float *out;
    int64_t lda, ldc, rows, k;
    bool more;
} panels_job;

static bool in_panels(const tp_tensor *a, const tp_tensor *b, const tp_tensor *out, const tp_scalar *alpha,
                      const tp_scalar *beta) {
    bool plain = tp_cpu.panels->multiply && out->dtype == TP_FLOAT32 && a->dtype == TP_FLOAT32 &&
                 b->dtype == TP_FLOAT32 && tp_is_contiguous(b) && b->sizes[2] == TP_PANEL;
    return plain && a->strides[0] == 0 && a->strides[2] == 1 && out->strides[2] == 1 && out->strides[0] == TP_PANEL &&
           tp_scalar_equals_int(alpha, 1) && (tp_scalar_equals_int(beta, 0) || tp_scalar_equals_int(beta, 1));
}

static void run_panels(int64_t begin, int64_t end, void *context) {
    const panels_job *j = context;
    for (int64_t i = begin; i < end; i++)
        tp_cpu.panels->multiply(j->a, j->lda, j->rows, j->panels + i * j->k * TP_PANEL, j->k, j->out + i * TP_PANEL,
                                j->ldc, j->more);
}

static int multiply_panels(const tp_tensor *a, const tp_tensor *b, tp_tensor *out, const tp_scalar *beta) {
    panels_job j = {tp_data(a),      tp_data(b),  tp_data(out), a->strides[1],
                    out->strides[1], a->sizes[1], a->sizes[2],  !tp_scalar_equals_int(beta, 0)};
    double work = (double)j.rows * (double)j.k * TP_PANEL * (double)b->sizes[0];
    return tp_parallel_unlocked(work > 1e5, b->sizes[0], 1 + (int64_t)(1e6 / ((double)j.rows * (double)j.k * TP_PANEL)),
                                run_panels, &j);
}

const tp_product_shortcut product_shortcut_cpu = {.products = 8, .rows = 4};

static int multiply_some(tp_tensor *const *parts, const void *context) {
    const product *p = context;
    tp_tensor *out = parts[0], *a = parts[1];
    tp_dtype dtype = (tp_dtype)out->dtype, compute = tp_compute_dtype(dtype);
    tp_autoref *left = batch_operand(a, compute), *right = batch_operand(parts[2], compute);
    int leading, trans;
    matrix m = matrix_at(out, 0);
    bool direct =
        dtype == compute && (tp_is_integral_dtype(dtype) || dtype == TP_BOOL || blas_layout(&m, &leading, &trans));
    tp_autoref *target = direct ? tp_retain(out) : tp_new_empty(tp_sizes(out), compute, TP_CPU);
    if (!left || !right || !target) return -1;
    if (!direct && !tp_scalar_equals_int(p->beta, 0) && tp_copy_data(target, out) < 0) return -1;
    batch_job j = {batch_of(left), batch_of(right), batch_of(target), compute, p->alpha, p->beta};
    double work = (double)out->sizes[1] * (double)out->sizes[2] * (double)a->sizes[2];
    int64_t n = out->sizes[0], grain = work > 1e5 ? 1 : (int64_t)(1e5 / work);
    bool threads = n > grain && tp_get_num_threads() > 1 && !tp_in_parallel();
    int status = tp_parallel_unlocked(work * (double)n > 1e5, n, threads ? grain : n, run_batch, &j);
    if (status < 0) return -1;
    return direct ? 0 : tp_copy_data(out, target);
}

static int multiply_batch(tp_tensor *a, tp_tensor *b, tp_tensor *out, const tp_scalar *alpha, const tp_scalar *beta) {
    if (a->sizes[2] > INT32_MAX || out->sizes[1] > INT32_MAX || out->sizes[2] > INT32_MAX)
        return tp_fail(TP_RuntimeError, "matrix product: a dimension is larger than BLAS takes (2**31 - 1)");
    if (in_panels(a, b, out, alpha, beta)) return multiply_panels(a, b, out, beta);
    product p = {a, b, out, alpha, beta};
    return by_pieces(&p, true, multiply_some);
}

int product_cpu(tp_tensor *a, tp_tensor *b, const tp_scalar *alpha, const tp_scalar *beta, tp_tensor *out) {
    return (out->ndim == 3 ? multiply_batch : multiply_one)(a, b, out, alpha, beta);
}
