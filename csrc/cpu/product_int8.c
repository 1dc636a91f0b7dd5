/* product_int8.c: products of bytes with a weight that lies in panels, and what becomes of the sums: over threads. */
#include "cpu/product_int8.h"

#include "PrimitiveKernels.h"
#include "core/alloc.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "iter/iter.h"
#include "core/memory.h"

#include <math.h>
#include <string.h>

/* Bytes of a cache line. Rows that are an even number of them apart share sets of the cache: a tenth slower. */
#define LINE 64
#define BLOCK TP_INT8_BLOCK /* rows that are widened at once: they stay in the L2 cache while the panels go by */
#define QUADS 128           /* of a panel at once */

typedef struct {
    tp_int8_result to;
    const uint8_t *a;
    const int8_t *panels;
    bool is_signed;
    int64_t m, k, quads;
    int64_t pitch; /* bytes from one row to the next, as products take them */
    int64_t block; /* rows that all panels meet before the next */
    char *rows;    /* all, if there are few */
} job;

/* ---- what becomes of the sums ---- */

static tp_int8_columns columns_of(const tp_int8_result *to, int64_t number, int64_t first, int64_t n) {
    tp_int8_columns c = {.centred = true};
    if (to->bytes) memcpy(c.starts, to->starts + number * TP_INT8_COLUMNS, sizeof c.starts);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = to->channels ? first + i : 0;
        float step = to->scale * to->scales[at], bias = to->bias ? to->bias[first + i] : 0;
        c.factor[i] = to->narrow ? step / to->out_scale : step;
        c.shift[i] = !to->narrow ? bias : to->channels ? bias / step : bias * (1 / step);
        c.zero_points[i] = to->zero_points[at];
        c.centred = c.centred && c.zero_points[i] == 0;
    }
    return c;
}

static void write_rows(const tp_int8_result *to, const int32_t *sums, const tp_int8_columns *c, int64_t rows,
                       int64_t row, int64_t first, int64_t n) {
    int64_t at = row * to->n + first;
    if (!to->narrow) {
        tp_cpu.product_int8->to_floats(sums, c, to->relu ? 0 : -INFINITY, rows, n, (float *)to->out + at, to->n);
        return;
    }
    int32_t low = to->is_signed ? INT8_MIN : 0, high = to->is_signed ? INT8_MAX : UINT8_MAX,
            zero = (int32_t)to->out_zero_point;
    tp_cpu.product_int8->to_bytes(sums, c, zero, to->relu && zero > low ? zero : low, high, rows, n,
                                  (uint8_t *)to->out + at, to->n);
}

enum kind { WIDE, BYTES, EACH }; /* what rows are, and whether columns have numbers of their own */

/* The sums of lines with some pieces of a panel, or some quads of one, which stay in the L1 cache beside six rows. */
static void add_products(tp_int8_part *part, const tp_int8_lines *a, const tp_int8_rows *rows, const int8_t *panel,
                         const tp_int8_order *order, enum kind kind, bool more, int32_t *sums) {
    const tp_product_int8_kernels *kernels = tp_cpu.product_int8;
    const tp_int8_bytes *bytes = part->to->bytes;
    for (int64_t i = 0; i < a->lines; i++) {
        tp_int8_rows some = *rows;
        some.at += i * a->line;
        for (int64_t left = a->count, n; left; left -= n, some.at += n * a->rows.apart, sums += n * TP_INT8_COLUMNS) {
            int64_t most = kind == BYTES ? bytes->rows : kernels->rows, groups = (left + most - 1) / most;
            n = (left + groups - 1) / groups; /* of equal size: the last would be slow, were it short */
            if (kind == EACH) kernels->multiply_each(&some, n, panel, sums);
            else if (order) bytes->multiply_mixed(&some, order, n, panel, more, sums);
            else if (kind == BYTES) bytes->multiply(part, &some, n, panel, more, sums);
            else kernels->multiply(&some, n, panel, more, sums);
        }
    }
}

/* False: all quads are tame, and need no order. */
static bool put_in_order(tp_int8_order *order, const tp_int8_rows *rows, const uint8_t *wild) {
    int64_t n = rows->pieces * rows->quads;
    if (!memchr(wild, true, (size_t)n)) return false;
    order->count = 0;
    for (int later = 0; later <= 1; later++) {
        for (int64_t i = 0; i < n; i++) {
            if (wild[i] != later) continue;
            order->quads[order->count].row = rows->offsets[i / rows->quads] + 4 * (i % rows->quads);
            order->quads[order->count++].panel = i * 4 * TP_INT8_COLUMNS;
        }
        if (!later) order->tame = order->count;
    }
    return true;
}

/* `wild`: which quads of the panel are not tame, or NULL. */
static void multiply_lines(tp_int8_part *part, const tp_int8_lines *a, const int8_t *panel, const uint8_t *wild,
                           enum kind kind, int32_t *sums) {
    const tp_int8_rows *whole = &a->rows;
    if (kind == EACH) {
        add_products(part, a, whole, panel, NULL, EACH, false, sums);
        return;
    }
    tp_int8_order order;
    const int64_t most = kind == BYTES ? part->to->bytes->quads : QUADS, size = kind == BYTES ? 4 : 8;
    int64_t pieces = whole->quads < most ? most / whole->quads : 1;
    int64_t quads = whole->quads < most ? whole->quads : most;
    for (int64_t p = 0; p < whole->pieces; p += pieces)
        for (int64_t q = 0; q < whole->quads; q += quads) {
            tp_int8_rows some = *whole;
            some.at += size * q;
            some.offsets += p;
            some.pieces = whole->pieces - p < pieces ? whole->pieces - p : pieces;
            some.quads = whole->quads - q < quads ? whole->quads - q : quads;
            bool mixed = wild && put_in_order(&order, &some, wild);
            add_products(part, a, &some, panel, mixed ? &order : NULL, kind, p || q, sums);
            panel += some.pieces * some.quads * 4 * TP_INT8_COLUMNS;
            if (wild) wild += some.pieces * some.quads;
        }
}

static int room_for_starts(tp_int8_result *to, int64_t count, int64_t quads) {
    if (!to->bytes) return 0;
    to->starts_count = count * TP_INT8_COLUMNS;
    to->starts = tp_alloc((size_t)to->starts_count * sizeof *to->starts);
    to->wild_count = count * quads;
    if (to->starts && to->mixed) to->wild = tp_alloc((size_t)to->wild_count);
    if (to->starts && (to->wild || !to->mixed)) return 0;
    tp_int8_free_starts(to);
    return -1;
}

/* What begins panel `number`, if rows are bytes. */
static void make_start(const tp_int8_result *to, const int8_t *panels, int64_t number, int64_t quads) {
    if (!to->bytes) return;
    int32_t *starts = to->starts + number * TP_INT8_COLUMNS;
    const int8_t *panel = panels + number * quads * 4 * TP_INT8_COLUMNS;
    tp_cpu.product_int8->weights(panel, quads, starts);
    if (to->wild) tp_cpu.product_int8->find_wild(panel, quads, to->wild + number * quads);
    for (int i = 0; i < TP_INT8_COLUMNS; i++) starts[i] = (int32_t)(0 - (uint32_t)starts[i] * (uint32_t)to->zero_point);
}

int tp_int8_make_starts(tp_int8_result *to, const int8_t *panels, int64_t count, int64_t quads) {
    if (room_for_starts(to, count, quads) < 0) return -1;
    for (int64_t p = 0; p < count; p++) make_start(to, panels, p, quads);
    return 0;
}

void tp_int8_done(tp_int8_part *part) {
    const tp_int8_bytes *bytes = part->to->bytes;
    tp_int8_finish(part, part->waiting.rows);
    if (bytes && bytes->done) bytes->done();
}

void tp_int8_free_starts(tp_int8_result *to) {
    tp_free(to->starts, (size_t)to->starts_count * sizeof *to->starts);
    tp_free(to->wild, (size_t)to->wild_count);
    to->starts = NULL;
    to->wild = NULL;
}

void tp_int8_finish(tp_int8_part *part, int64_t rows) {
    tp_int8_waiting *w = &part->waiting;
    int64_t left = w->rows - w->done, some = rows < left ? rows : left;
    if (!some) return;
    write_rows(part->to, w->sums + w->done * TP_INT8_COLUMNS, &w->columns, some, w->row + w->done, w->first, w->n);
    w->done += some;
}

void tp_int8_panel(tp_int8_part *part, const tp_int8_lines *a, const int8_t *panel, int64_t number, bool each,
                   int64_t row, int64_t first, int64_t n) {
    const tp_int8_result *to = part->to;
    const enum kind kind = each ? EACH : to->bytes ? BYTES : WIDE;
    tp_int8_columns c = columns_of(to, number, first, n);
    int64_t width = a->count < BLOCK ? a->count : BLOCK, height = BLOCK / width;
    bool finishes = kind == BYTES && to->bytes->finishes;
    const uint8_t *wild = kind == BYTES && to->wild ? to->wild + number * a->rows.pieces * a->rows.quads : NULL;
    for (int64_t y = 0; y < a->lines; y += height)
        for (int64_t x = 0; x < a->count; x += width) {
            tp_int8_lines some = *a;
            some.rows.at += y * a->line + x * a->rows.apart;
            some.count = a->count - x < width ? a->count - x : width;
            some.lines = a->lines - y < height ? a->lines - y : height;
            int32_t *sums = part->sums[part->turn];
            multiply_lines(part, &some, panel, wild, kind, sums);
            tp_int8_finish(part, part->waiting.rows);
            /* Lines are whole where there are several: their rows follow each other. */
            part->waiting = (tp_int8_waiting){c, sums, some.lines * some.count, 0, row + y * a->count + x, first, n};
            if (finishes) {
                part->turn = !part->turn;
                continue;
            }
            for (int64_t i = 0; kind == WIDE && !c.centred && i < some.lines; i++, some.rows.at += a->line)
                tp_cpu.product_int8->centre(&some.rows, some.count, &c, sums + i * some.count * TP_INT8_COLUMNS);
            tp_int8_finish(part, part->waiting.rows);
        }
}

tp_int8_result tp_int8_result_of(tp_tensor *scales, tp_tensor *zero_points, tp_tensor *bias, double scale,
                                 int64_t zero_point, double out_scale, int64_t out_zero_point, bool relu,
                                 tp_tensor *out) {
    return (tp_int8_result){.scales = tp_data(scales),
                            .bias = bias ? tp_data(bias) : NULL,
                            .zero_points = tp_data(zero_points),
                            .out = tp_data(out),
                            .is_signed = out->dtype == TP_INT8,
                            .narrow = out->dtype != TP_FLOAT32,
                            .relu = relu,
                            .channels = scales->numel > 1,
                            .n = out->sizes[out->ndim - 1],
                            .zero_point = zero_point,
                            .out_zero_point = out_zero_point,
                            .scale = (float)scale,
                            .out_scale = (float)out_scale};
}

/* Whether at most three of four quads are wild, as far as some of them show: else widened rows are quicker. */
static bool are_tame(const tp_tensor *panels) {
    const int64_t step = 61, quads = panels->numel / (4 * TP_INT8_COLUMNS);
    int64_t asked = 0, found = 0;
    for (int64_t i = 0; i < quads; i += step, asked++) {
        uint8_t wild;
        tp_cpu.product_int8->find_wild((const int8_t *)tp_data(panels) + i * 4 * TP_INT8_COLUMNS, 1, &wild);
        found += wild;
    }
    return 4 * found <= 3 * asked;
}

void tp_int8_stay_bytes(tp_int8_result *to, const tp_tensor *x, const tp_tensor *panels, const tp_tensor *zero_points,
                        int64_t rows) {
    const int32_t *zeros = tp_data(zero_points);
    const tp_product_int8_kernels *kernels = tp_cpu.product_int8;
    const tp_int8_bytes *bytes = kernels->bytes();
    if (!bytes || x->dtype != TP_UINT8) return;
    for (int64_t i = 0; i < zero_points->numel; i++)
        if (zeros[i]) return;
    if (bytes->largest < UINT8_MAX) {
        if (rows < 2 * kernels->rows) return;
        to->mixed = kernels->largest(tp_data(x), x->numel) > bytes->largest;
        if (to->mixed && (!bytes->multiply_mixed || rows < 4 * kernels->rows || !are_tame(panels))) return;
    }
    to->bytes = bytes;
}

/* ---- rows of a matrix ---- */

static int64_t panels_of(const job *j) { return (j->to.n + TP_INT8_COLUMNS - 1) / TP_INT8_COLUMNS; }

static size_t room_for(const job *j, int64_t rows) { return (size_t)(rows * j->pitch); }

static void take_rows(const job *j, int64_t first, int64_t count, char *rows) {
    int64_t size = j->k * (j->to.bytes ? 1 : 2);
    for (int64_t r = 0; r < count; r++, rows += j->pitch) {
        const uint8_t *from = j->a + (first + r) * j->k;
        if (j->to.bytes) memcpy(rows, from, (size_t)size);
        else tp_cpu.product_int8->widen(from, j->is_signed, j->k, (int32_t)j->to.zero_point, (int16_t *)rows);
        memset(rows + size, 0, (size_t)(j->pitch - size));
    }
}

static void run_panel(const job *j, tp_int8_part *part, int64_t panel, const char *rows, int64_t first, int64_t count) {
    static const int64_t none = 0;
    int64_t from = panel * TP_INT8_COLUMNS, n = j->to.n - from < TP_INT8_COLUMNS ? j->to.n - from : TP_INT8_COLUMNS;
    const tp_int8_lines lines = {{rows, j->pitch, &none, 1, j->quads, j->k}, count, 1, 0};
    tp_int8_panel(part, &lines, j->panels + panel * j->quads * 4 * TP_INT8_COLUMNS, panel, false, first, from, n);
}

/* ---- over threads: by panels where there are few rows, else by rows ---- */

static void run_columns(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    tp_int8_part part;
    tp_int8_begin(&part, &j->to);
    for (int64_t p = begin; p < end; p++) {
        make_start(&j->to, j->panels, p, j->quads); /* here, where the panel is in the cache for its products */
        run_panel(j, &part, p, j->rows, 0, j->m);
    }
    tp_int8_done(&part);
}

static void run_rows(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    size_t bytes = room_for(j, j->block);
    char *rows = tp_alloc(bytes);
    tp_int8_part part;
    tp_int8_begin(&part, &j->to);
    for (int64_t b = begin; rows && b < end; b++) {
        int64_t first = b * j->block, count = j->m - first < j->block ? j->m - first : j->block;
        take_rows(j, first, count, rows);
        for (int64_t p = 0; p < panels_of(j); p++) run_panel(j, &part, p, rows, first, count);
    }
    tp_int8_done(&part);
    tp_free(rows, bytes);
}

static int run_few(job *j, bool is_long, int64_t grain) {
    size_t bytes = room_for(j, j->m);
    j->rows = tp_alloc(bytes);
    if (!j->rows) return -1;
    take_rows(j, 0, j->m, j->rows);
    int status = tp_parallel_unlocked(is_long, panels_of(j), grain, run_columns, j);
    tp_free(j->rows, bytes);
    return status;
}

/* Two tiles' rows, if they stay near; where they are too long for it, as many as there is room for. */
static int64_t block_of(const job *j) {
    const int64_t few = 32, near = j->to.bytes ? j->to.bytes->near : 0;
    return few * j->pitch <= near ? few : BLOCK;
}

int product_int8_cpu(tp_tensor *a, tp_tensor *panels, tp_tensor *scales, tp_tensor *zero_points, tp_tensor *bias,
                     double scale, int64_t zero_point, double out_scale, int64_t out_zero_point, bool relu,
                     tp_tensor *out) {
    job j = {.to =
                 tp_int8_result_of(scales, zero_points, bias, scale, zero_point, out_scale, out_zero_point, relu, out),
             .a = tp_data(a),
             .panels = tp_data(panels),
             .is_signed = a->dtype == TP_INT8,
             .m = a->sizes[0],
             .k = a->sizes[1],
             .quads = (a->sizes[1] + 3) / 4};
    tp_int8_stay_bytes(&j.to, a, panels, zero_points, j.m);
    j.pitch = (j.quads * (j.to.bytes ? 4 : 8) + LINE - 1) / LINE * LINE;
    if (j.pitch / LINE % 2 == 0) j.pitch += LINE;
    int64_t panel_work = 1 + j.m * j.k, few = 1 << 18;
    bool is_long = panel_work * panels_of(&j) > 1 << 16;
    j.block = block_of(&j);
    int64_t blocks = (j.m + j.block - 1) / j.block, block_work = j.block * j.k * panels_of(&j);
    bool are_few = j.m <= (j.block < BLOCK ? j.block : 2 * BLOCK);
    int status = are_few ? room_for_starts(&j.to, panels_of(&j), j.quads)
                         : tp_int8_make_starts(&j.to, j.panels, panels_of(&j), j.quads);
    if (status == 0)
        status = are_few ? run_few(&j, is_long, 1 + few / panel_work / 4)
                         : tp_parallel_unlocked(is_long, blocks, 1 + few / block_work, run_rows, &j);
    tp_int8_free_starts(&j.to);
    return status;
}
