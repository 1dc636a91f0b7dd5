/* softmax.c: the primitive softmax on the CPU: threads share the rows; the loops are in softmax_loops.c. 16-bit floats
 * are computed in float32, a piece at a time. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "prim/pieces.h"
#include "prim/plain.h"
#include "core/memory.h"

typedef struct {
    const void *in, *other;
    void *out;
    int64_t n, inner;
    bool log;
    const tp_softmax_loops *loops;
} job;

static void run_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    if (j->other) j->loops->backward(j->in, j->other, j->out, j->n, j->inner, begin, end, j->log);
    else j->loops->forward(j->in, j->out, j->n, j->inner, begin, end, j->log);
}

typedef struct {
    int64_t dim;
    bool log;
} which;

/* parts: out, what is read, and for gradients the output. */
static int run_part(tp_tensor *const *parts, const void *context) {
    const which *w = context;
    tp_tensor *out = parts[0], *in = parts[1], *output = parts[2];
    tp_dtype dtype = tp_compute_dtype((tp_dtype)in->dtype);
    tp_autoref *a = tp_plain(in, dtype), *b = tp_plain(output, dtype);
    tp_autoref *target = tp_target(out, dtype);
    if (!a || !target || (output && !b)) return -1;
    job j = {.in = tp_data(a),
             .other = b ? tp_data(b) : NULL,
             .out = tp_data(target),
             .n = in->ndim ? in->sizes[w->dim] : 1,
             .inner = 1,
             .log = w->log,
             .loops = dtype == TP_FLOAT32 ? &tp_cpu.softmax->f32 : &tp_cpu.softmax->f64};
    for (int64_t i = w->dim + 1; i < in->ndim; i++) j.inner *= in->sizes[i];
    int status = tp_parallel_unlocked(in->numel > 100000, in->numel / j.n, 1 + TP_GRAIN / 4 / j.n, run_rows, &j);
    return status < 0 ? -1 : tp_finish(target, out);
}

static int run(tp_tensor *in, tp_tensor *output, int64_t dim, bool log, tp_tensor *out) {
    tp_tensor *const all[] = {out, in, output};
    which w = {dim, log};
    bool widens = tp_compute_dtype((tp_dtype)in->dtype) != (tp_dtype)in->dtype;
    return tp_by_pieces(all, TP_COUNTOF(all), widens ? (uint64_t)1 << dim : TP_WHOLE, run_part, &w);
}

int softmax_forward_cpu(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, false, out); }
int softmax_log_cpu(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, true, out); }
int softmax_backward_cpu(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, false, out);
}
int softmax_log_backward_cpu(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, true, out);
}
