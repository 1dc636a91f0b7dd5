/* product_int8.c: products of bytes with a weight that lies in panels, and what becomes of the sums: over threads. */
#include "cpu/product_int8.h"

#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "iter/iter.h"
#include "core/memory.h"

#include <math.h>

#define BLOCK 96 /* rows that are widened at once: they stay in the L2 cache while the panels go by */

typedef struct {
    const uint8_t *a;
    const int8_t *panels;
    const float *scales, *bias;
    const int32_t *zero_points;
    char *out;
    bool is_signed, narrow, relu;
    bool channels; /* each column has its scale and zero point */
    int64_t m, k, n, pairs, zero_point, out_zero_point;
    float scale, out_scale;
    int16_t *wide; /* all rows, if there are few; */
    int32_t *totals;
} job;

/* What the sums of one panel become numbers by. */
typedef struct {
    float shift[TP_INT8_COLUMNS], factor[TP_INT8_COLUMNS];
    int32_t zero_points[TP_INT8_COLUMNS];
    bool centred; /* the weights' zero points are 0 */
} columns;

static columns columns_of(const job *j, int64_t first, int64_t n) {
    columns c = {.centred = true};
    for (int64_t i = 0; i < n; i++) {
        int64_t at = j->channels ? first + i : 0;
        float step = j->scale * j->scales[at], bias = j->bias ? j->bias[first + i] : 0;
        c.factor[i] = j->narrow ? step / j->out_scale : step;
        c.shift[i] = !j->narrow ? bias : j->channels ? bias / step : bias * (1 / step);
        c.zero_points[i] = j->zero_points[at];
        c.centred = c.centred && c.zero_points[i] == 0;
    }
    return c;
}

/* Sums of products with integers that are read from a zero point on. */
static void centre(int32_t *sums, const columns *c, int32_t total) {
    for (int i = 0; i < TP_INT8_COLUMNS; i++)
        sums[i] = (int32_t)((uint32_t)sums[i] - (uint32_t)c->zero_points[i] * (uint32_t)total);
}

static void write_row(const job *j, const int32_t *sums, const columns *c, int64_t row, int64_t first, int64_t n) {
    int64_t at = row * j->n + first;
    if (!j->narrow) {
        tp_cpu.product_int8->to_floats(sums, c->shift, c->factor, j->relu ? 0 : -INFINITY, n, (float *)j->out + at);
        return;
    }
    int32_t low = j->is_signed ? INT8_MIN : 0, high = j->is_signed ? INT8_MAX : UINT8_MAX,
            zero = (int32_t)j->out_zero_point;
    tp_cpu.product_int8->to_bytes(sums, c->shift, c->factor, zero, j->relu && zero > low ? zero : low, high, n,
                                  (uint8_t *)j->out + at);
}

/* Rows first .. first + count with one panel. */
static void run_panel(const job *j, int64_t panel, const int16_t *wide, const int32_t *totals, int64_t first,
                      int64_t count) {
    int64_t from = panel * TP_INT8_COLUMNS, n = j->n - from < TP_INT8_COLUMNS ? j->n - from : TP_INT8_COLUMNS;
    const columns c = columns_of(j, from, n);
    int32_t sums[TP_INT8_ROWS * TP_INT8_COLUMNS];
    for (int64_t r = 0, group = tp_cpu.product_int8->rows; r < count; r += group) {
        int64_t rows = count - r < group ? count - r : group;
        tp_cpu.product_int8->multiply(wide + r * 2 * j->pairs, 2 * j->pairs, rows, j->pairs,
                                      j->panels + panel * j->pairs * 2 * TP_INT8_COLUMNS, sums);
        for (int64_t i = 0; i < rows; i++) {
            if (!c.centred) centre(sums + i * TP_INT8_COLUMNS, &c, totals[r + i]);
            write_row(j, sums + i * TP_INT8_COLUMNS, &c, first + r + i, from, n);
        }
    }
}

static int64_t panels_of(const job *j) { return (j->n + TP_INT8_COLUMNS - 1) / TP_INT8_COLUMNS; }

static void widen(const job *j, int64_t first, int64_t count, int16_t *wide, int32_t *totals) {
    for (int64_t r = 0; r < count; r++)
        totals[r] = tp_cpu.product_int8->widen(j->a + (first + r) * j->k, j->is_signed, j->k, (int32_t)j->zero_point,
                                               wide + r * 2 * j->pairs);
}

/* Room for as many rows: their numbers, then their totals. NULL and the error set: there is none. */
static int16_t *room_for(const job *j, int64_t rows, size_t *bytes, int32_t **totals) {
    size_t wide = (size_t)(rows * 2 * j->pairs) * sizeof(int16_t);
    *bytes = wide + (size_t)rows * sizeof(int32_t);
    int16_t *room = tp_alloc(*bytes);
    *totals = room ? (int32_t *)((char *)room + wide) : NULL;
    return room;
}

/* ---- over threads: by panels where there are few rows, else by rows ---- */

static void run_columns(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    for (int64_t p = begin; p < end; p++) run_panel(j, p, j->wide, j->totals, 0, j->m);
}

static void run_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    size_t bytes;
    int32_t *totals;
    int16_t *wide = room_for(j, BLOCK, &bytes, &totals);
    for (int64_t b = begin; wide && b < end; b++) {
        int64_t first = b * BLOCK, count = j->m - first < BLOCK ? j->m - first : BLOCK;
        widen(j, first, count, wide, totals);
        for (int64_t p = 0; p < panels_of(j); p++) run_panel(j, p, wide, totals, first, count);
    }
    tp_free(wide, bytes);
}

static int run_few(job *j, bool is_long, int64_t grain) {
    size_t bytes;
    j->wide = room_for(j, j->m, &bytes, &j->totals);
    if (!j->wide) return -1;
    widen(j, 0, j->m, j->wide, j->totals);
    int status = tp_parallel_unlocked(is_long, panels_of(j), grain, run_columns, j);
    tp_free(j->wide, bytes);
    return status;
}

int product_int8_cpu(tp_tensor *a, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points, tp_tensor *bias,
                     double scale, int64_t zero_point, double out_scale, int64_t out_zero_point, bool relu,
                     tp_tensor *out) {
    job j = {.a = tp_data(a),
             .panels = tp_data(panels),
             .scales = tp_data(scales),
             .bias = bias ? tp_data(bias) : NULL,
             .zero_points = tp_data(zero_points),
             .out = tp_data(out),
             .is_signed = a->dtype == TP_INT8,
             .narrow = out->dtype != TP_FLOAT32,
             .relu = relu,
             .channels = scales->numel > 1,
             .m = a->sizes[0],
             .k = a->sizes[1],
             .n = out->sizes[1],
             .pairs = (a->sizes[1] + 1) / 2,
             .zero_point = zero_point,
             .out_zero_point = out_zero_point,
             .scale = (float)scale,
             .out_scale = (float)out_scale};
    int64_t panel_work = 1 + j.m * j.k, few = 1 << 18;
    bool is_long = panel_work * panels_of(&j) > 1 << 16;
    if (j.m <= 2 * BLOCK) return run_few(&j, is_long, 1 + few / panel_work / 4);
    return tp_parallel_unlocked(is_long, (j.m + BLOCK - 1) / BLOCK, 1 + few / (BLOCK * j.k * panels_of(&j)), run_rows,
                                &j);
}
