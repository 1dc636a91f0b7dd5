/* sparse.c: products of sparse matrices with dense ones on the CPU (prim sparse.*). The loops are in sparse_of.h: those
 * of floats in sparse_loops.c, once per capability, those of other dtypes here.
 *
 * All indices are looked at before anything is written. Threads share rows of the product, so that one thread adds up
 * each element, in the order of the values. */
#include "PrimitiveKernels.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "cpu/sparse.h"
#include "prim/fault.h"

#define LANES 8

#define T uint64_t
#define OF(name) name##_i64
#include "cpu/sparse_of.h"
#undef T
#undef OF
#define T tp_complex64
#define OF(name) name##_c64
#include "cpu/sparse_of.h"
#undef T
#undef OF
#define T tp_complex128
#define OF(name) name##_c128
#include "cpu/sparse_of.h"
#undef T
#undef OF

static tp_sparse_loops loops_of(const tp_tensor *t) {
    switch ((tp_dtype)t->dtype) {
    case TP_FLOAT32: return tp_cpu.sparse->f32;
    case TP_FLOAT64: return tp_cpu.sparse->f64;
    case TP_COMPLEX64: return (tp_sparse_loops){rows_c64, places_c64, dots_c64};
    case TP_COMPLEX128: return (tp_sparse_loops){rows_c128, places_c128, dots_c128};
    default: return (tp_sparse_loops){rows_i64, places_i64, dots_i64};
    }
}

/* ---- indices ---- */

#define PIECE 8192

typedef struct {
    const int64_t *indices;
    int64_t size;
    _Atomic int64_t bad; /* the place of one that is out of range; of several, any */
    _Atomic bool falls;  /* one is less than the one before it */
} index_look;

static void look(int64_t begin, int64_t end, void *context) {
    index_look *l = context;
    for (int64_t at = begin; at < end; at += PIECE) {
        int64_t stop = end - at < PIECE ? end : at + PIECE;
        uint64_t wrong = 0, falls = 0;
        for (int64_t i = at; i < stop; i++) wrong |= (uint64_t)l->indices[i] >= (uint64_t)l->size;
        for (int64_t i = at ? at : 1; i < stop; i++) falls |= l->indices[i] < l->indices[i - 1];
        if (falls) l->falls = true;
        for (int64_t i = at; wrong && i < stop; i++)
            if ((uint64_t)l->indices[i] >= (uint64_t)l->size) l->bad = i;
    }
}

/* Whether all indices are in range; an error otherwise. */
static int check_indices(tp_tensor *indices, int64_t size, int64_t fault, bool *falls) {
    index_look l = {.indices = tp_data(indices), .size = size, .bad = -1};
    if (tp_parallel_for(indices->numel, TP_GRAIN, look, &l) < 0) return -1;
    if (falls) *falls = l.falls;
    return l.bad < 0 ? 0 : tp_raise_fault((int)fault, l.indices[l.bad], 0, size, "");
}

static int check_begins(tp_tensor *begins, int64_t n) {
    const int64_t *b = tp_data(begins), last = begins->numel - 1;
    bool falls = false;
    for (int64_t i = 0; i < last; i++) falls |= b[i + 1] < b[i];
    if (!falls && b[0] == 0 && b[last] == n) return 0;
    return tp_fail(TP_RuntimeError, "a sparse matrix: its lines do not go from 0 to the number of values, %lld",
                   (long long)n);
}

/* ---- products ---- */

typedef struct {
    tp_sparse_job job;
    tp_sparse_loops loops;
    int64_t lines;
} product;

static product product_of(tp_tensor *columns, tp_tensor *values, tp_tensor *dense, tp_tensor *out) {
    return (product){.job = {.columns = tp_data(columns),
                             .n = columns->numel,
                             .values = values ? tp_data(values) : NULL,
                             .dense = tp_data(dense),
                             .width = dense->sizes[1],
                             .out = tp_data(out)},
                     .loops = loops_of(dense),
                     .lines = out->sizes[0]};
}

/* The first line that begins[line] + line, which a line's number and its values count in, is not below. */
static int64_t line_from(const product *p, int64_t bound) {
    int64_t low = 0, high = p->lines;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (p->job.begins[middle] + middle < bound) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void run_rows(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    p->loops.rows(&p->job, line_from(p, begin), line_from(p, end));
}

/* A grain for units of `width` operations each. */
static int64_t grain_of(int64_t width) { return 1 + TP_GRAIN / (width + 1); }

/* sparse.rows(Tensor begins, Tensor columns, Tensor? values, Tensor dense, int fault, *, Tensor(a!) out) -> () */
int sparse_rows_cpu(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, int64_t fault,
                    tp_tensor *out) {
    product p = product_of(columns, values, dense, out);
    p.job.begins = tp_data(begins);
    if (check_begins(begins, p.job.n) < 0 || check_indices(columns, dense->sizes[0], fault, NULL) < 0) return -1;
    int64_t units = p.job.n + p.lines;
    return tp_parallel_unlocked(units * p.job.width > TP_GRAIN, units, grain_of(p.job.width), run_rows, &p);
}

/* Rows ascend: a part of the values has the rows that begin in it. */
static void run_in_order(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    const int64_t *rows = p->job.rows;
    while (begin > 0 && begin < p->job.n && rows[begin] == rows[begin - 1]) begin++;
    while (end < p->job.n && rows[end] == rows[end - 1]) end++;
    if (begin < end) p->loops.places(&p->job, begin, end, 0, p->lines);
}

/* In any order: a thread takes those of its rows. */
static void run_any(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    for (int64_t at = 0; at < p->job.n; at += 1 << 20) {
        p->loops.places(&p->job, at, p->job.n - at < 1 << 20 ? p->job.n : at + (1 << 20), begin, end);
        if (tp_host_look() < 0) return;
    }
}

/* sparse.places(Tensor rows, Tensor columns, Tensor? values, Tensor dense, int fault, *, Tensor(a!) out) -> () */
int sparse_places_cpu(tp_tensor *rows, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, int64_t fault,
                      tp_tensor *out) {
    product p = product_of(columns, values, dense, out);
    p.job.rows = tp_data(rows);
    bool falls;
    if (check_indices(rows, p.lines, fault, &falls) < 0 || check_indices(columns, dense->sizes[0], fault, NULL) < 0)
        return -1;
    int64_t work = p.job.n * (p.job.width + 1);
    if (!falls) return tp_parallel_unlocked(work > TP_GRAIN, p.job.n, grain_of(p.job.width), run_in_order, &p);
    int64_t parts = p.lines / tp_get_num_threads() + 1;
    return tp_parallel_unlocked(work > TP_GRAIN, p.lines, work > 4 * TP_GRAIN ? parts : p.lines, run_any, &p);
}

static void run_dots(int64_t begin, int64_t end, void *context) {
    const product *p = context;
    p->loops.dots(&p->job, begin, end);
}

/* sparse.dots(Tensor rows, Tensor columns, Tensor a, Tensor b, int fault, *, Tensor(a!) out) -> () */
int sparse_dots_cpu(tp_tensor *rows, tp_tensor *columns, tp_tensor *a, tp_tensor *b, int64_t fault, tp_tensor *out) {
    product p = product_of(columns, NULL, a, out);
    p.job.rows = tp_data(rows);
    p.job.other = tp_data(b);
    if (check_indices(rows, a->sizes[0], fault, NULL) < 0 || check_indices(columns, b->sizes[0], fault, NULL) < 0)
        return -1;
    return tp_parallel_unlocked(p.job.n * p.job.width > TP_GRAIN, p.job.n, grain_of(p.job.width), run_dots, &p);
}

/* ---- extremes ---- */

typedef struct {
    product product;
    const tp_tensor *dense;
    bool largest;
} extremes;

#define EXTREMES(T, s)                                                                           \
    static void extremes_##s(int64_t begin, int64_t end, void *context) {                        \
        const extremes *e = context;                                                             \
        const tp_sparse_job *job = &e->product.job;                                              \
        const T *values = job->values, *dense = job->dense, sign = e->largest ? 1 : -1;          \
        for (int64_t i = begin; i < end; i++) {                                                  \
            const int64_t row = i / job->width, c = i % job->width, from = job->begins[row];     \
            int64_t at = -1;                                                                     \
            T most = 0;                                                                          \
            for (int64_t j = from; j < job->begins[row + 1]; j++) {                              \
                T x = (values ? values[j] : 1) * dense[job->columns[j] * job->width + c] * sign; \
                if (at < 0 || x > most || (x != x && most == most)) at = j, most = x;            \
            }                                                                                    \
            ((int64_t *)job->out)[i] = at;                                                       \
        }                                                                                        \
    }
EXTREMES(float, f32)
EXTREMES(double, f64)

/* sparse.extremes(Tensor begins, Tensor columns, Tensor? values, Tensor dense, bool largest, int fault, *, Tensor(a!)
 * at) -> () */
int sparse_extremes_cpu(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, bool largest,
                        int64_t fault, tp_tensor *at) {
    extremes e = {product_of(columns, values, dense, at), dense, largest};
    e.product.job.begins = tp_data(begins);
    if (check_begins(begins, columns->numel) < 0 || check_indices(columns, dense->sizes[0], fault, NULL) < 0) return -1;
    return tp_parallel_unlocked(columns->numel * dense->sizes[1] > TP_GRAIN, at->numel,
                                grain_of(columns->numel / e.product.lines),
                                dense->dtype == TP_FLOAT32 ? extremes_f32 : extremes_f64, &e);
}
