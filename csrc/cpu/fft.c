/* fft.c: the primitives fft on the CPU: plans, and lines shared by threads.
 *
 * Plans of short lines are kept between calls, in slots that the length chooses. A call takes the plan out of its slot
 * and puts a plan back when it is done, so that no call waits for another and no plan is freed while it is used. */
#include "cpu/fft.h"

#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/host.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tls.h"
#include "cpu/kernels.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { KEPT = 64, SHORT = 1 << 16, LARGE_PRIME = 50, ROOM = 1 << 19 }; /* ROOM: bytes of lines taken together */
static tp_fft_plan *_Atomic kept[KEPT];

/* ---- plans ---- */

/* The factors of n, fours first; false if one is a large prime. */
static bool factorize(tp_fft_plan *plan, int64_t n) {
    plan->length = n, plan->count = 0, plan->roots = 0;
    int64_t rest = n;
    for (int64_t p = 4; rest > 1; p = p == 4 ? 2 : p == 2 ? 3 : p + 2) {
        if (p > LARGE_PRIME) return false;
        while (rest % p == 0) {
            plan->factors[plan->count++] = (int)p;
            plan->roots += (p - 1) * (rest / p) + (p > 5 ? p : 0);
            rest /= p;
        }
    }
    return true;
}
static void free_plan(tp_fft_plan *plan) {
    if (plan) free(plan->numbers);
    free(plan);
}
static tp_fft_plan *new_plan(int64_t n, bool wide, bool halves) {
    tp_fft_plan *plan = calloc(1, sizeof *plan);
    if (!plan) return NULL;
    int64_t length = 1, more = halves ? n + 1 : 0;
    if (!factorize(plan, n)) {
        while (length < 2 * n - 1) length *= 2;
        factorize(plan, length);
        more += n + length;
    }
    plan->n = n, plan->wide = wide, plan->halves = halves;
    size_t item = wide ? 8 : 4, spare = 4 * (size_t)plan->length * item;
    plan->numbers = aligned_alloc(64, ((size_t)(plan->roots + more + 1) * 2 * item + 63) / 64 * 64);
    void *room = malloc(spare);
    if (plan->numbers && room) tp_cpu.fft->make[wide](plan, room);
    else free_plan(plan), plan = NULL;
    free(room);
    return plan;
}
static tp_fft_plan *_Atomic *place_of(int64_t n, bool wide, bool halves) {
    return &kept[((uint64_t)n * 4 + 2 * wide + halves) * 0x9E3779B97F4A7C15u >> 58];
}
/* NULL and a MemoryError. */
static tp_fft_plan *take_plan(int64_t n, bool wide, bool halves) {
    tp_fft_plan *plan = atomic_exchange(place_of(n, wide, halves), NULL);
    if (plan && plan->n == n && plan->wide == wide && plan->halves == halves) return plan;
    free_plan(plan);
    plan = new_plan(n, wide, halves);
    if (!plan) tp_fail_memory(n * 32);
    return plan;
}
static void leave_plan(tp_fft_plan *plan) {
    free_plan(plan->n > SHORT ? plan : atomic_exchange(place_of(plan->n, plan->wide, plan->halves), plan));
}

/* ---- lines ---- */

typedef struct {
    tp_fft_lines lines;
    int kind, wide;
    const char *in;
    char *out;
    int64_t in_size, out_size, in_item, out_item, together; /* along the dimension, and bytes of an element */
} transform;

static void run_lines(int64_t begin, int64_t end, void *context) {
    const transform *t = context;
    tp_fft_lines l = t->lines;
    size_t bytes = 4 * (size_t)(l.plan->length * t->together + TP_FFT_GAP) * (t->wide ? 8 : 4);
    void *work = tp_alloc(bytes);
    if (!work) return;
    for (int64_t line = begin; line < end;) {
        int64_t count = end - line < t->together ? end - line : t->together;
        for (int64_t v = 0; v < count; v++) {
            int64_t outer = (line + v) / l.step, inner = (line + v) % l.step;
            l.in[v] = t->in + (outer * t->in_size * l.step + inner) * t->in_item;
            l.out[v] = t->out + (outer * t->out_size * l.step + inner) * t->out_item;
        }
        tp_cpu.fft->run[t->kind][t->wide](&l, count, work);
        line += count;
        if (tp_host_look() < 0) break;
    }
    tp_free(work, bytes);
}
static int run(int kind, tp_tensor *x, int64_t dim, bool backward, double scale, tp_tensor *out) {
    int64_t step = 1, in_size = x->ndim ? x->sizes[dim] : 1, out_size = out->ndim ? out->sizes[dim] : 1;
    for (int64_t d = dim + 1; d < x->ndim; d++) step *= x->sizes[d];
    int64_t n = kind == TP_FFT_HERMITIAN ? out_size : in_size, batch = x->numel / in_size;
    bool wide = out->dtype == TP_FLOAT64 || out->dtype == TP_COMPLEX128;
    bool halved = kind != TP_FFT_COMPLEX && n % 2 == 0;
    tp_fft_plan *plan = take_plan(halved ? n / 2 : n, wide, halved);
    int status = -1;
    if (plan) {
        int64_t room = ROOM / (plan->length * (wide ? 32 : 16));
        transform t = {.lines = {.plan = plan, .n = n, .step = step, .backward = backward, .scale = scale},
                       .kind = kind,
                       .wide = wide,
                       .in = tp_data(x),
                       .out = tp_data(out),
                       .in_size = in_size,
                       .out_size = out_size,
                       .in_item = tp_itemsize((tp_dtype)x->dtype),
                       .out_item = tp_itemsize((tp_dtype)out->dtype)};
        int64_t most = room < batch ? room : batch, half = TP_FFT_LINES / 2;
        t.together = most >= TP_FFT_LINES && !wide ? TP_FFT_LINES : most >= half ? half : 1;
        status = tp_parallel_unlocked(x->numel >= TP_GRAIN, batch, TP_GRAIN / n + TP_FFT_LINES, run_lines, &t);
    }
    if (plan) leave_plan(plan);
    return status < 0 ? -1 : tp_status_of_thread();
}
int fft_complex_cpu(tp_tensor *x, int64_t dim, bool backward, double scale, tp_tensor *out) {
    return run(TP_FFT_COMPLEX, x, dim, backward, scale, out);
}
int fft_real_cpu(tp_tensor *x, int64_t dim, double scale, tp_tensor *out) {
    return run(TP_FFT_REAL, x, dim, false, scale, out);
}
int fft_hermitian_cpu(tp_tensor *x, int64_t dim, double scale, tp_tensor *out) {
    return run(TP_FFT_HERMITIAN, x, dim, true, scale, out);
}
