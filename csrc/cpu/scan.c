/* scan.c: the primitive scan on the CPU: threads share the positions across the dimension, TP_SCAN_COLUMNS neighbouring
 * ones at a time; the loops are in scan_loops.c. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "core/memory.h"
#include "prim/transfer.h"

typedef struct {
    tp_scan_fn fn;
    char *out, *at, *in;
    int64_t item, n, inner, chunks; /* elements' size, steps, columns, chunks of columns of one outer index */
} scan;

static void run_chunks(int64_t begin, int64_t end, void *context) {
    const scan *s = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = s->chunks == 1 ? i : i / s->chunks, column = (i - row * s->chunks) * TP_SCAN_COLUMNS;
        int64_t first = row * s->n * s->inner + column;
        int64_t width = s->inner - column < TP_SCAN_COLUMNS ? s->inner - column : TP_SCAN_COLUMNS;
        s->fn(s->out + first * s->item, s->at ? s->at + first * 8 : NULL, s->in + first * s->item, s->n, s->inner,
              width);
        if (tp_error_pending() != TP_NoError) return;
    }
}

/* What has one element in each line is what it was. */
static int one_step(const tp_tensor *in, tp_tensor *out, tp_tensor *at) {
    if (tp_data(out) != tp_data(in) && tp_copy_data(out, in) < 0) return -1;
    return at ? tp_fill_data(at, TP_SCALAR_I(0)) : 0;
}

static int run(const tp_scan_fn *table, const tp_tensor *in, int64_t dim, tp_tensor *out, tp_tensor *at) {
    int64_t outer = 1, inner = 1;
    for (int64_t d = 0; d < in->ndim; d++) *(d < dim ? &outer : &inner) *= d == dim ? 1 : in->sizes[d];
    if (outer * inner == in->numel) return one_step(in, out, at);
    scan s = {table[in->dtype],
              tp_data(out),
              at ? tp_data(at) : NULL,
              tp_data(in),
              tp_itemsize((tp_dtype)in->dtype),
              in->ndim ? in->sizes[dim] : 1,
              inner,
              (inner + TP_SCAN_COLUMNS - 1) / TP_SCAN_COLUMNS};
    int64_t chunks = outer * s.chunks, grain = TP_GRAIN * chunks / (4 * in->numel + 1) + 1;
    return tp_parallel_unlocked(in->numel >= TP_GRAIN, chunks, grain, run_chunks, &s);
}

int scan_sum_cpu(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(tp_cpu.scan->cumsum, x, dim, out, NULL); }
int scan_prod_cpu(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(tp_cpu.scan->cumprod, x, dim, out, NULL); }
int scan_logsumexp_cpu(tp_tensor *x, int64_t dim, tp_tensor *out) {
    return run(tp_cpu.scan->logcumsumexp, x, dim, out, NULL);
}
int scan_max_cpu(tp_tensor *x, int64_t dim, tp_tensor *out, tp_tensor *at) {
    return run(tp_cpu.scan->cummax, x, dim, out, at);
}
int scan_min_cpu(tp_tensor *x, int64_t dim, tp_tensor *out, tp_tensor *at) {
    return run(tp_cpu.scan->cummin, x, dim, out, at);
}
