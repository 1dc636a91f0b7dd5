/* linalg.c: the factorizations of matrices: LAPACK's functions over batches.
 *
 * LAPACK comes with the BLAS library (cpu/lapack.h). Each primitive fills a `job`: the function for the dtype, the
 * sizes, the memory of its tensors and a `unit` that calls the function for one matrix; run() asks the unit how much
 * room it needs, then threads share the batch. Matrices whose order is wrong for LAPACK are the caller's matter. */
#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/blas.h"
#include "cpu/lapack.h"

#include <math.h>
#include <string.h>

/* What LAPACK computes in beside the matrix: numbers of the dtype, reals of its precision, ints. */
typedef struct {
    int64_t items, reals, ints;
} room;

typedef struct job {
    void (*fn)(void);
    /* Calls fn for one matrix. `query`: no matrix is touched, and room says what the next calls need. */
    void (*unit)(const struct job *j, char *const *at, int *info, char *work, room *size, bool query);
    int m, n, k, leading;
    bool flag, upper, left;
    double rcond;
    bool two, wide; /* the dtype: complex (of two numbers), of double precision */
    int count;      /* tensors */
    tp_tensor *tensor[5];
    char *data[5];
    int64_t step[5]; /* bytes from a matrix to the next */
    int *info;       /* of the batch, or NULL */
    room size;
    bool finite;    /* the first tensor's matrices are to be without NaN and infinities */
    bool takes_inf; /* one with infinities alone is no failure */
    int blank;      /* of those that are not, the tensors from 1 on that become NaN */
    int64_t batch;
} job;

static int64_t item_of(const job *j) { return (int64_t)(j->wide ? 8 : 4) << j->two; }
static int64_t real_of(const job *j) { return j->wide ? 8 : 4; }

/* The parts of the room. */
static char *reals_in(const job *j, char *work, const room *size) { return work + size->items * item_of(j); }
static int *ints_in(const job *j, char *work, const room *size) {
    return (int *)(reals_in(j, work, size) + size->reals * real_of(j));
}
/* The size that a query has left in the first number; a float may have rounded it down. */
static int64_t asked(const job *j, const char *number) {
    return j->wide ? (int64_t)*(const double *)number : (int64_t)ceil(*(const float *)number * 1.000001) + 1;
}
static int at_least_1(int n) { return n > 1 ? n : 1; }

/* Whether all numbers are finite, and in `nan` whether one is a NaN. */
static bool is_finite(const job *j, const char *data, int64_t bytes, bool *nan) {
    int64_t n = bytes / real_of(j);
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        double value = j->wide ? ((const double *)data)[i] : ((const float *)data)[i];
        finite &= isfinite(value) != 0, *nan |= isnan(value) != 0;
    }
    return finite;
}
static void fill_nan(const job *j, char *data, int64_t bytes) {
    for (int64_t i = 0; i < bytes / real_of(j); i++)
        if (j->wide) ((double *)data)[i] = NAN;
        else ((float *)data)[i] = NAN;
}

static void run_units(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    room size = j->size;
    size_t bytes = (size_t)(size.items * item_of(j) + size.reals * real_of(j) + size.ints * 4 + 64);
    char *work = tp_blas_get() ? tp_alloc(bytes) : NULL;
    for (int64_t i = begin; work && i < end; i++) {
        char *at[5] = {NULL};
        int info = 0;
        bool nan = false;
        for (int t = 0; t < j->count; t++) at[t] = j->data[t] ? j->data[t] + i * j->step[t] : NULL;
        if (!j->finite || is_finite(j, at[0], j->step[0], &nan)) j->unit(j, at, &info, work, &size, false);
        else {
            info = nan || !j->takes_inf ? -1 : 0;
            for (int t = 0; t < j->blank; t++)
                if (at[t]) fill_nan(j, at[t], j->step[t]);
        }
        if (j->info) j->info[i] = info;
        if (tp_host_look() < 0) break;
    }
    if (work) tp_free(work, bytes);
    else if (tp_error_pending() == TP_NoError) tp_fail_memory((int64_t)bytes);
}

static int64_t last_size(const tp_tensor *t) { return t->sizes[t->ndim - 1]; }

/* The job of some tensors, the first of them the matrices, [batch, n columns, m rows]. */
static job job_of(tp_lapack_name name, int count, tp_tensor *const *tensors, tp_tensor *info) {
    const tp_tensor *a = tensors[0];
    job j = {.count = count,
             .two = tp_is_complex(a),
             .wide = a->dtype == TP_FLOAT64 || a->dtype == TP_COMPLEX128,
             .batch = a->sizes[0],
             .m = (int)last_size(a),
             .n = a->ndim > 2 ? (int)a->sizes[1] : 1,
             .info = info ? tp_data(info) : NULL};
    for (int t = 0; t < count; t++) {
        tp_tensor *x = tensors[t];
        if (!x) continue;
        j.tensor[t] = x;
        j.data[t] = tp_data(x);
        j.step[t] = x->numel / x->sizes[0] * tp_itemsize((tp_dtype)x->dtype);
    }
    j.fn = tp_lapack_find(name, (tp_dtype)a->dtype);
    return j;
}
#define JOB(name, info, ...) \
    job_of(name, (int)TP_COUNTOF(((tp_tensor *[]){__VA_ARGS__})), (tp_tensor *[]){__VA_ARGS__}, info)

static int run(job *j, void (*unit)(const job *, char *const *, int *, char *, room *, bool)) {
    char answer[16] = {0};
    char *nowhere[5] = {answer, answer, answer, answer, answer};
    int info = 0;
    if (!j->fn) return -1;
    j->unit = unit;
    j->leading = at_least_1(j->m);
    for (int t = 0; t < j->count; t++)
        if (!j->data[t]) nowhere[t] = NULL;
    unit(j, nowhere, &info, answer, &j->size, true);
    if (j->size.items > INT32_MAX)
        return tp_fail(TP_RuntimeError, "linalg: matrices of %d by %d are too large", j->m, j->n);
    double work = (double)j->m * j->n * (j->m < j->n ? j->m : j->n) + 1;
    return tp_parallel_unlocked(work * (double)j->batch >= TP_GRAIN, j->batch, (int64_t)(4 * TP_GRAIN / work) + 1,
                                run_units, j);
}

/* A LAPACK function as the unit calls it; after the arguments stand the lengths of its strings. */
#define CALL(types, ...) ((void(*) types)j->fn)(__VA_ARGS__)
#define UNIT(name)                                                                                                   \
    static void name(const job *j, char *const *at TP_UNUSED, int *info, char *work TP_UNUSED, room *size TP_UNUSED, \
                     bool query)
typedef const int *in;
typedef const char *word;
typedef void *data;

/* ---- cholesky, lu, ldl ---- */

UNIT(potrf) {
    if (query) return;
    CALL((word, in, data, in, int *, size_t), j->upper ? "U" : "L", &j->n, at[0], &j->leading, info, 1);
    int64_t step = ((int64_t)j->leading + 1) * item_of(j);
    for (int64_t i = 0; *info == 0 && i < j->n; i++) { /* some libraries call a NaN positive, and inf / inf a 0 */
        char *one = at[0] + i * step;
        double value = j->wide ? *(const double *)one : *(const float *)one;
        if (isnan(value)) *info = (int)i + 1;
        else if (isinf(value) && i + 1 < j->n) {
            fill_nan(j, one + step, real_of(j));
            *info = (int)i + 2;
        }
    }
}
int cholesky_cpu(bool upper, tp_tensor *a, tp_tensor *info) {
    job j = JOB(TP_POTRF, info, a);
    j.upper = upper;
    return run(&j, potrf);
}

UNIT(getrf) {
    if (query) return;
    CALL((in, in, data, in, data, int *), &j->m, &j->n, at[0], &j->leading, at[1], info);
}
int lu_cpu(tp_tensor *a, tp_tensor *pivots, tp_tensor *info) {
    job j = JOB(TP_GETRF, info, a, pivots);
    return run(&j, getrf);
}

UNIT(getrs) {
    if (query) return;
    CALL((word, in, in, data, in, data, data, in, int *, size_t),
         !j->flag ? "N"
         : j->two ? "C"
                  : "T",
         &j->n, &j->k, at[0], &j->leading, at[1], at[2], &j->leading, info, 1);
}
static const char swaps_below[] =
    "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass the result of lu_factor?";
static const char swaps_above[] =
    "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you properly pass the result of "
    "lu_factor?";
/* LAPACK moves rows by the pivots as they are. */
static int check_swaps(const tp_tensor *pivots, int rows) {
    const int *pivot = tp_data(pivots);
    for (int64_t i = 0; i < pivots->numel; i++)
        if (pivot[i] < 1 || pivot[i] > rows)
            return tp_fail(TP_RuntimeError, "%s", pivot[i] < 1 ? swaps_below : swaps_above);
    return 0;
}
int lu_solve_cpu(tp_tensor *lu, tp_tensor *pivots, bool adjoint, tp_tensor *b) {
    if (check_swaps(pivots, (int)last_size(lu)) < 0) return -1;
    job j = JOB(TP_GETRS, NULL, lu, pivots, b);
    j.flag = adjoint, j.k = (int)b->sizes[1];
    return run(&j, getrs);
}

int permutation_of_pivots_cpu(tp_tensor *pivots, tp_tensor *out) {
    int64_t count = last_size(pivots), rows = last_size(out), *row = tp_data(out);
    const int *pivot = tp_data(pivots);
    for (int64_t b = 0; b < out->sizes[0]; b++, row += rows, pivot += count) {
        for (int64_t i = 0; i < rows; i++) row[i] = i;
        for (int64_t i = 0; i < count; i++) {
            int64_t other = (int64_t)pivot[i] - 1, mine = row[i];
            if (other < 0 || other >= rows)
                return tp_fail(TP_RuntimeError,
                               "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive, but one is %d "
                               "among %lld rows. Did you properly pass the result of lu_factor?",
                               pivot[i], (long long)rows);
            row[i] = row[other], row[other] = mine;
        }
    }
    return 0;
}

UNIT(sytrf) {
    int all = query ? -1 : (int)size->items;
    CALL((word, in, data, in, data, data, in, int *, size_t), "L", &j->n, at[0], &j->leading, at[1], work, &all, info,
         1);
    if (query) size->items = asked(j, work);
}
int ldl_cpu(bool hermitian, tp_tensor *a, tp_tensor *pivots, tp_tensor *info) {
    job j = JOB(hermitian ? TP_HETRF : TP_SYTRF, info, a, pivots);
    return run(&j, sytrf);
}
UNIT(sytrs) {
    if (query) return;
    CALL((word, in, in, data, in, data, data, in, int *, size_t), "L", &j->n, &j->k, at[0], &j->leading, at[1], at[2],
         &j->leading, info, 1);
}
/* A pivot above 0 names the row that one was swapped with; two below 0 in a row belong to a block of two rows. LAPACK
 * walks over the blocks from either end, so a single one would lead it out of the matrix. */
static int check_blocks(const tp_tensor *pivots) {
    int64_t n = last_size(pivots);
    const int *pivot = tp_data(pivots), *end = pivot + pivots->numel;
    for (; pivot < end; pivot += n)
        for (int64_t i = 0; i < n; i++) {
            int64_t row = pivot[i] < 0 ? -(int64_t)pivot[i] : pivot[i];
            bool paired = pivot[i] > 0 || (i + 1 < n && pivot[i + 1] < 0 && -(int64_t)pivot[i + 1] <= n);
            if (row < 1 || row > n || !paired)
                return tp_fail(TP_RuntimeError,
                               "linalg.ldl_solve: pivot %lld is %d, which no factorization of %lld rows gives. Did you "
                               "properly pass the result of ldl_factor?",
                               (long long)i, pivot[i], (long long)n);
            i += pivot[i] < 0;
        }
    return 0;
}
int ldl_solve_cpu(tp_tensor *ld, tp_tensor *pivots, bool hermitian, tp_tensor *b) {
    if (check_blocks(pivots) < 0) return -1;
    job j = JOB(hermitian ? TP_HETRS : TP_SYTRS, NULL, ld, pivots, b);
    j.k = (int)b->sizes[1];
    return run(&j, sytrs);
}

/* BLAS sees the transposed of what stands by rows: X^T A^T = B^T for A X = B, with the other triangle. */
UNIT(trsm) {
    static const double one[2] = {1, 0};
    static const float single[2] = {1, 0};
    if (query) return;
    int order = j->left ? j->n : j->m;
    *info = 0;
    CALL((word, word, word, word, in, in, const void *, data, in, data, in, size_t, size_t, size_t, size_t),
         j->left ? "R" : "L", j->upper == j->flag ? "U" : "L", j->flag ? "T" : "N", j->k ? "U" : "N", &j->m, &j->n,
         j->wide ? (const void *)one : single, at[1], &order, at[0], &j->leading, 1, 1, 1, 1);
}
int triangular_solve_cpu(tp_tensor *a, bool upper, bool left, bool transposed, bool unit, tp_tensor *b) {
    job j = JOB(TP_TRSM, NULL, b, a);
    if (a->sizes[0] == 1) j.step[1] = 0;
    j.upper = upper, j.left = left, j.flag = transposed, j.k = unit;
    return run(&j, trsm);
}

/* ---- qr ---- */

UNIT(geqrf) {
    int all = query ? -1 : (int)size->items;
    CALL((in, in, data, in, data, data, in, int *), &j->m, &j->n, at[0], &j->leading, at[1], work, &all, info);
    if (query) size->items = asked(j, work);
}
int qr_cpu(tp_tensor *a, tp_tensor *tau) {
    job j = JOB(TP_GEQRF, NULL, a, tau);
    return run(&j, geqrf);
}
UNIT(orgqr) {
    int all = query ? -1 : (int)size->items;
    CALL((in, in, in, data, in, data, data, in, int *), &j->m, &j->n, &j->k, at[0], &j->leading, at[1], work, &all,
         info);
    if (query) size->items = asked(j, work);
}
int householder_cpu(tp_tensor *tau, tp_tensor *a) {
    job j = JOB(TP_ORGQR, NULL, a, tau);
    j.k = (int)last_size(tau);
    return run(&j, orgqr);
}
UNIT(ormqr) {
    int all = query ? -1 : (int)size->items, order = at_least_1(j->left ? j->m : j->n);
    CALL((word, word, in, in, in, data, in, data, data, in, data, in, int *, size_t, size_t), j->left ? "L" : "R",
         !j->flag ? "N"
         : j->two ? "C"
                  : "T",
         &j->m, &j->n, &j->k, at[1], &order, at[2], at[0], &j->leading, work, &all, info, 1, 1);
    if (query) size->items = asked(j, work);
}
int householder_multiply_cpu(tp_tensor *a, tp_tensor *tau, bool left, bool adjoint, tp_tensor *c) {
    job j = JOB(TP_ORMQR, NULL, c, a, tau);
    j.left = left, j.flag = adjoint, j.k = (int)last_size(tau);
    return run(&j, ormqr);
}

/* ---- eigenvalues ---- */

UNIT(syevd) {
    int items = query ? -1 : (int)size->items, reals = query ? -1 : (int)size->reals,
        ints = query ? -1 : (int)size->ints;
    char *real = query ? work + 8 : reals_in(j, work, size);
    int first[2] = {0}, *whole = query ? first : ints_in(j, work, size);
    char number[32] = {0};
    if (query) work = number, real = number + 16;
    word what = j->flag ? "V" : "N", half = j->upper ? "U" : "L";
    if (j->two)
        CALL((word, word, in, data, in, data, data, in, data, in, data, in, int *, size_t, size_t), what, half, &j->n,
             at[0], &j->leading, at[1], work, &items, real, &reals, whole, &ints, info, 1, 1);
    else
        CALL((word, word, in, data, in, data, data, in, data, in, int *, size_t, size_t), what, half, &j->n, at[0],
             &j->leading, at[1], work, &items, whole, &ints, info, 1, 1);
    if (query) *size = (room){asked(j, work), j->two ? asked(j, real) : 0, whole[0] + 1};
}
int eigh_cpu(bool upper, bool vectors, tp_tensor *a, tp_tensor *values, tp_tensor *info) {
    job j = JOB(TP_SYEVD, info, a, values);
    j.upper = upper, j.flag = vectors; /* LAPACK's steps end for NaN, too */
    return run(&j, syevd);
}

/* LAPACK's real eigenvectors: a real one in a column, or real and imaginary part of a conjugate pair in two. */
#define UNPACK(name, T)                                                                    \
    static void name(int n, const T *wr, const T *wi, const T *v, T *values, T *vectors) { \
        for (int c = 0; c < n; c++) values[2 * c] = wr[c], values[2 * c + 1] = wi[c];      \
        for (int c = 0; vectors && c < n; c++) {                                           \
            bool pair = wi[c] != 0 && c + 1 < n;                                           \
            const T *real = v + (size_t)c * (size_t)n, *imag = real + n;                   \
            T *out = vectors + (size_t)c * (size_t)n * 2, *next = out + (size_t)n * 2;     \
            for (int r = 0; r < n; r++) {                                                  \
                out[2 * r] = real[r], out[2 * r + 1] = pair ? imag[r] : 0;                 \
                if (pair) next[2 * r] = real[r], next[2 * r + 1] = -imag[r];               \
            }                                                                              \
            c += pair;                                                                     \
        }                                                                                  \
    }
UNPACK(unpack_float, float)
UNPACK(unpack_double, double)

UNIT(geev) {
    int all = query ? -1 : (int)size->items, one = 1, n = j->n;
    bool vectors = at[2] != NULL;
    if (j->two) {
        char *real = query ? work : reals_in(j, work, size);
        CALL((word, word, in, data, in, data, data, in, data, in, data, in, data, int *, size_t, size_t), "N",
             vectors ? "V" : "N", &n, at[0], &j->leading, at[1], NULL, &one, at[2], &j->leading, work, &all, real, info,
             1, 1);
        if (query) *size = (room){asked(j, work), 2 * (int64_t)n, 0};
        return;
    }
    char *wr = query ? work : reals_in(j, work, size), *wi = wr + (query ? 0 : n * real_of(j));
    char *v = query ? work : wi + n * real_of(j);
    CALL((word, word, in, data, in, data, data, data, in, data, in, data, in, int *, size_t, size_t), "N",
         vectors ? "V" : "N", &n, at[0], &j->leading, wr, wi, NULL, &one, v, &j->leading, work, &all, info, 1, 1);
    if (query) *size = (room){asked(j, work), 2 * (int64_t)n + (vectors ? (int64_t)n * n : 0), 0};
    else if (j->wide) unpack_double(n, (double *)wr, (double *)wi, (double *)v, (double *)at[1], (double *)at[2]);
    else unpack_float(n, (float *)wr, (float *)wi, (float *)v, (float *)at[1], (float *)at[2]);
}
int eig_cpu(tp_tensor *a, tp_tensor *values, tp_tensor *vectors, tp_tensor *info) {
    job j = JOB(TP_GEEV, info, a, values, vectors);
    j.finite = true, j.blank = 3;
    return run(&j, geev);
}

/* ---- singular values ---- */

UNIT(gesdd) {
    int all = query ? -1 : (int)size->items, least = j->m < j->n ? j->m : j->n, most = j->m < j->n ? j->n : j->m;
    char number[16] = {0};
    if (query) work = number;
    char *real = query ? work : reals_in(j, work, size);
    int few[2], *whole = query ? few : ints_in(j, work, size);
    int wide = at_least_1(j->k);
    word what = !at[1] ? "N" : j->flag ? "A" : "S";
    if (j->two)
        CALL((word, in, in, data, in, data, data, in, data, in, data, in, data, data, int *, size_t), what, &j->m,
             &j->n, at[0], &j->leading, at[2], at[1], &j->leading, at[3], &wide, work, &all, real, whole, info, 1);
    else
        CALL((word, in, in, data, in, data, data, in, data, in, data, in, data, int *, size_t), what, &j->m, &j->n,
             at[0], &j->leading, at[2], at[1], &j->leading, at[3], &wide, work, &all, whole, info, 1);
    int64_t l = least, both = 5 * l * l + 5 * l, other = 2 * most * l + 2 * l * l + l;
    if (query) *size = (room){asked(j, work), j->two ? (both > other ? both : other) + 7 * l : 0, 8 * l};
}
int svd_cpu(tp_tensor *a, tp_tensor *u, tp_tensor *s, tp_tensor *vh, tp_tensor *info) {
    job j = JOB(TP_GESDD, info, a, u, s, vh);
    j.k = vh ? (int)last_size(vh) : 1; /* rows of vh */
    j.flag = u && vh && (u->sizes[1] > last_size(s) || last_size(vh) > last_size(s));
    j.finite = true, j.takes_inf = true, j.blank = 4;
    return run(&j, gesdd);
}

/* ---- least squares ---- */

UNIT(gels) {
    int all = query ? -1 : (int)size->items, rows = at_least_1(j->m > j->n ? j->m : j->n);
    CALL((word, in, in, in, data, in, data, in, data, in, int *, size_t), "N", &j->m, &j->n, &j->k, at[0], &j->leading,
         at[1], &rows, work, &all, info, 1);
    if (query) size->items = asked(j, work);
}
/* gelsy has pivots where gelsd and gelss have singular values. */
UNIT(gelsx) {
    int all = query ? -1 : (int)size->items, rows = at_least_1(j->m > j->n ? j->m : j->n), few[2] = {0};
    bool pivots = j->flag;
    char numbers[64] = {0};
    if (query) work = numbers;
    char *real = query ? numbers + 32 : reals_in(j, work, size);
    int *whole = query ? few : ints_in(j, work, size);
    const float single = (float)j->rcond;
    const void *rcond = j->wide ? (const void *)&j->rcond : &single;
    void *middle = pivots ? (void *)whole : at[3];
    if (pivots && !query) memset(whole, 0, (size_t)j->n * sizeof *whole);
    void *last = j->two ? (void *)real : (void *)whole;
    if (j->two && j->upper)
        CALL((in, in, in, data, in, data, in, data, const void *, data, data, in, data, data, int *), &j->m, &j->n,
             &j->k, at[0], &j->leading, at[1], &rows, middle, rcond, at[2], work, &all, real, whole, info);
    else if (j->two || j->upper)
        CALL((in, in, in, data, in, data, in, data, const void *, data, data, in, data, int *), &j->m, &j->n, &j->k,
             at[0], &j->leading, at[1], &rows, middle, rcond, at[2], work, &all, last, info);
    else
        CALL((in, in, in, data, in, data, in, data, const void *, data, data, in, int *), &j->m, &j->n, &j->k, at[0],
             &j->leading, at[1], &rows, middle, rcond, at[2], work, &all, info);
    if (!query) return;
    int64_t least = j->m < j->n ? j->m : j->n;
    bool told = j->upper; /* gelsd says what it needs of both */
    *size = (room){asked(j, work), told ? asked(j, real) : 5 * least + 2 * j->n, told ? whole[0] + 1 : j->n};
}
static int least_squares(job j, double rcond, const tp_tensor *b, bool pivots, bool divides) {
    j.rcond = rcond, j.k = (int)b->sizes[1], j.flag = pivots, j.upper = divides;
    j.finite = true, j.blank = 2;
    return run(&j, pivots || j.count == 4 ? gelsx : gels);
}
int lstsq_gels_cpu(tp_tensor *a, tp_tensor *b, tp_tensor *info) {
    return least_squares(JOB(TP_GELS, info, a, b), 0, b, false, false);
}
int lstsq_gelsy_cpu(double rcond, tp_tensor *a, tp_tensor *b, tp_tensor *rank, tp_tensor *info) {
    return least_squares(JOB(TP_GELSY, info, a, b, rank), rcond, b, true, false);
}
int lstsq_gelsd_cpu(double rcond, tp_tensor *a, tp_tensor *b, tp_tensor *rank, tp_tensor *values, tp_tensor *info) {
    return least_squares(JOB(TP_GELSD, info, a, b, rank, values), rcond, b, false, true);
}
int lstsq_gelss_cpu(double rcond, tp_tensor *a, tp_tensor *b, tp_tensor *rank, tp_tensor *values, tp_tensor *info) {
    return least_squares(JOB(TP_GELSS, info, a, b, rank, values), rcond, b, false, false);
}
