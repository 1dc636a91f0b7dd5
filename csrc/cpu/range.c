/* range.c: sequences and triangles on the CPU. A sequence is made as int64 or double in blocks that stay in the L1
 * cache, then converted. */
#include "PrimitiveKernels.h"
#include "core/parallel.h"
#include "iter/iter.h"
#include "cpu/run.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

#define BLOCK 1024

typedef struct {
    int64_t first, step;
    double a, b, last, base;
    int64_t half, n, itemsize;
    bool whole, single, fused;
    char *data;
    tp_loop_fn cast;
} sequence;

static void make_whole(const sequence *s, int64_t begin, int64_t n, int64_t *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (int64_t)((uint64_t)s->first + (uint64_t)(begin + i) * (uint64_t)s->step);
}

static void make_real(const sequence *s, int64_t begin, int64_t n, double *out) {
    for (int64_t i = 0; i < n; i++) {
        int64_t k = begin + i;
        out[i] = k < s->half ? s->a + (double)k * s->b : s->last - (double)(s->n - 1 - k) * s->b;
        if (s->fused) out[i] = k < s->half ? fma((double)k, s->b, s->a) : fma(-(double)(s->n - 1 - k), s->b, s->last);
        if (s->single)
            out[i] = (float)(k < s->half ? s->a : s->last) + (float)(k < s->half ? k : k + 1 - s->n) * (float)s->b;
    }
    if (s->base != 0)
        for (int64_t i = 0; i < n; i++) out[i] = pow(s->base, out[i]);
}

static void run_blocks(int64_t first, int64_t end, void *context) {
    const sequence *s = context;
    int64_t whole[BLOCK];
    double real[BLOCK];
    for (int64_t b = first; b < end; b++) {
        int64_t begin = b * BLOCK, n = s->n - begin < BLOCK ? s->n - begin : BLOCK;
        if (s->whole) make_whole(s, begin, n, whole);
        else make_real(s, begin, n, real);
        char *from = s->whole ? (char *)whole : (char *)real;
        s->cast((char *const[]){s->data + begin * s->itemsize, from}, (const int64_t[]){s->itemsize, 8}, n, NULL);
    }
}

static int run(sequence *s, tp_tensor *out) {
    s->n = out->numel;
    s->itemsize = tp_itemsize((tp_dtype)out->dtype);
    s->data = tp_data(out);
    s->cast = tp_cast_loop(s->whole ? TP_INT64 : TP_FLOAT64, (tp_dtype)out->dtype);
    return tp_parallel_for((s->n + BLOCK - 1) / BLOCK, TP_GRAIN / BLOCK, run_blocks, s);
}

int range_int_cpu(int64_t first, int64_t step, tp_tensor *out) {
    return run(&(sequence){.whole = true, .first = first, .step = step}, out);
}

int range_float_cpu(double a, double b, double last, double base, int64_t half, bool single, tp_tensor *out) {
    return run(&(sequence){.a = a,
                           .b = b,
                           .last = last,
                           .base = base,
                           .half = half,
                           .single = single,
                           .fused = half < out->numel && out->dtype == TP_FLOAT64},
               out);
}

/* ---- triangles ---- */

static int64_t within(int64_t low, int64_t x, int64_t high) { return x < low ? low : x > high ? high : x; }

/* Rows of the result are a copied and a zeroed part. */
static int triangle(const tp_tensor *x, int64_t diagonal, bool lower, tp_tensor *out) {
    int64_t rows = x->sizes[x->ndim - 2], columns = x->sizes[x->ndim - 1], item = tp_itemsize((tp_dtype)x->dtype);
    const char *in = tp_data(x);
    char *to = tp_data(out);
    diagonal = within(-rows - 1, diagonal, columns);
    for (int64_t r = 0; r < out->numel / columns; r++, in += columns * item, to += columns * item) {
        int64_t edge = within(0, r % rows + diagonal + (lower ? 1 : 0), columns);
        int64_t first = lower ? 0 : edge, last = lower ? edge : columns;
        memset(to, 0, (size_t)(first * item));
        tp_copy_bytes(to + first * item, in + first * item, (size_t)((last - first) * item));
        memset(to + last * item, 0, (size_t)((columns - last) * item));
    }
    return 0;
}
int triangle_lower_cpu(tp_tensor *x, int64_t diagonal, tp_tensor *out) { return triangle(x, diagonal, true, out); }
int triangle_upper_cpu(tp_tensor *x, int64_t diagonal, tp_tensor *out) { return triangle(x, diagonal, false, out); }

static int triangle_indices(int64_t columns, int64_t diagonal, bool lower, tp_tensor *out) {
    int64_t n = out->sizes[1], at = 0, *rows = tp_data(out), *cols = rows + n;
    for (int64_t r = lower && diagonal < 0 ? -diagonal : 0; at < n; r++) {
        int64_t edge = within(0, r + diagonal + (lower ? 1 : 0), columns);
        for (int64_t c = lower ? 0 : edge; c < (lower ? edge : columns); c++, at++) {
            rows[at] = r;
            cols[at] = c;
        }
    }
    return 0;
}
int triangle_indices_lower_cpu(int64_t rows TP_UNUSED, int64_t columns, int64_t diagonal, tp_tensor *out) {
    return triangle_indices(columns, diagonal, true, out);
}
int triangle_indices_upper_cpu(int64_t rows TP_UNUSED, int64_t columns, int64_t diagonal, tp_tensor *out) {
    return triangle_indices(columns, diagonal, false, out);
}
