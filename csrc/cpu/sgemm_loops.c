/* sgemm_loops.c: the inner loops of float32 products, compiled once per capability.
 *
 * A tile of ROWS rows and COLUMNS columns of the result stays in registers while k runs: a panel of b, [k, COLUMNS],
 * gives the vectors, and each of ROWS numbers of a multiplies all of them. ROWS rows of a stay in the L1 cache while
 * panels that the L2 cache keeps pass by (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
 * 2008, with the operands' parts exchanged: the result is written along its rows). Rows that pass many panels are
 * packed in groups, so that the numbers of a step lie side by side. */
#include "cpu/sgemm.h"

#include "cpu/kernels.h"
#include "cpu/lanes.h"

#include <string.h>

#ifdef LANES
#define VECTORS 2
#define COLUMNS (VECTORS * LANES)
/* With the panel's vectors and one of a these sums take all registers but one or two. */
#define ROWS (LANES == 16 ? TP_SGEMM_ROWS : 6)
#define LINE 16    /* of the cache */
#define AHEAD 8    /* steps of k */
#define FURTHER 16 /* where each step's numbers lie in another page */

/* What a tile is made of; of its columns n are wanted. */
typedef struct {
    const float *a, *panel;
    int64_t row, step, k, n; /* rows of a are `row` apart, its columns `step` */
    float alpha, beta, *c;
    int64_t ldc;
    const float *b; /* where the panel is laid meanwhile: its columns as they lie, in rows `next` apart */
    int64_t next;
} operands;

/* rows, vectors of the panel, whether all of its columns are wanted, and whether it is laid here, are known where this
 * is called. */
TP_INLINE void tile(operands o, const int rows, const int vectors, const bool whole, const bool lays) {
    lanes sum[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v += LINE / LANES) __builtin_prefetch(o.c + r * o.ldc + v * LANES, 1);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = (lanes){0};
    for (int64_t i = 0; i < o.k; i++, o.a += o.step, o.panel += vectors * LANES) {
        lanes x[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) {
            const float *ahead = lays ? o.b + FURTHER * o.next + v * LANES : o.panel + (AHEAD * vectors + v) * LANES;
            if (v * LANES % LINE == 0) __builtin_prefetch(ahead);
            x[v] = load((lays ? o.b : o.panel) + v * LANES);
            if (lays) store((float *)o.panel + v * LANES, x[v]);
        }
        if (lays) o.b += o.next;
        UNROLL for (int r = 0; r < rows; r++) {
            lanes one = all_lanes(o.a[r * o.row]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = multiply_add(one, x[v], sum[r][v]);
        }
    }
    lanes scale = all_lanes(o.alpha), before = all_lanes(o.beta);
    UNROLL for (int r = 0; r < rows; r++, o.c += o.ldc) UNROLL for (int v = 0; v < vectors; v++) {
        lanes result = sum[r][v] * scale;
        float *to = o.c + v * LANES;
        int64_t n = o.n - v * LANES;
        if (whole || n >= LANES) store(to, o.beta == 0 ? result : multiply_add(before, load(to), result));
        else if (n > 0) store_first(to, n, o.beta == 0 ? result : multiply_add(before, load_first(to, n), result));
    }
}

TP_INLINE void tiles(operands o, int64_t rows, const int vectors, const bool whole) {
#define TILES(n) \
    for (; rows >= (n); rows -= (n), o.a += (n) * o.row, o.c += (n) * o.ldc) tile(o, n, vectors, whole, false);
    TILES(ROWS)
#if LANES == 16
    TILES(8)
#endif
    TILES(4)
    TILES(2)
    TILES(1)
}

/* At most ROWS rows, of one panel. */
TP_INLINE void any_tiles(operands o, int64_t rows) {
    if (o.n == COLUMNS) tiles(o, rows, VECTORS, true);
    else if (o.n > LANES) tiles(o, rows, VECTORS, false);
    else tiles(o, rows, 1, false);
}

static void tiles_of_rows(operands o, int64_t rows) {
    o.step = 1;
    any_tiles(o, rows);
}

static void tiles_of_columns(operands o, int64_t rows) {
    o.row = 1;
    any_tiles(o, rows);
}

/* n columns of a row that are contiguous, as the panels' row i. The last ones, which are fewer than a panel's, lie in
 * one of one vector if they fit. */
TP_INLINE void pack_row(const float *from, int64_t n, float *panels, int64_t k, int64_t i) {
    int64_t j = 0;
    for (; j + COLUMNS <= n; j += COLUMNS)
        UNROLL for (int v = 0; v < VECTORS; v++)
            store(panels + j * k + i * COLUMNS + v * LANES, load(from + j + v * LANES));
    if (j == n) return;
    int64_t width = n - j > LANES ? COLUMNS : LANES;
    float *to = panels + j * k + i * width;
    if (n - j > LANES) store(to, load(from + j));
    store(to + width - LANES, load_first(from + j + width - LANES, n - j - (width - LANES)));
}

/* Row by row through several panels: a row's columns are read one after another. */
static void pack_panels(tp_strided b, int64_t k, int64_t n, float *panels) {
    for (int64_t i = 0; b.column == 1 && i < k; i++) pack_row(b.data + i * b.row, n, panels, k, i);
    for (int64_t j = 0; b.column != 1 && j < n; j += COLUMNS) {
        int64_t left = n - j < COLUMNS ? n - j : COLUMNS, width = left > LANES ? COLUMNS : LANES;
        if (left < width) memset(panels + j * k, 0, (size_t)(k * width) * sizeof(float));
        turn(b.data + j * b.column, b.column, left, k, panels + j * k, width);
    }
}

/* A group of rows as [k, ROWS]. Whole vectors and squares are copied where `more` rows after the group are there to be
 * read: what they put after a step's numbers is overwritten by the next step's. */
static void pack_rows(tp_strided a, int64_t rows, int64_t more, int64_t k, float *to) {
    const int64_t whole = (ROWS + 7) / 8 * 8;
    bool fast = rows == ROWS && ROWS + more >= whole;
    int64_t i = 0;
    for (; fast && a.column != 1 && i < k; i++)
        UNROLL for (int64_t r = 0; r < whole; r += LANES) store(to + i * ROWS + r, load(a.data + i * a.column + r));
    for (; fast && i + 8 <= k; i += 8)
        for (int64_t r = whole - 8; r >= 0; r -= 8) turn_8x8(a.data + r * a.row + i, a.row, to + i * ROWS + r, ROWS);
    for (; i < k; i++)
        for (int64_t r = 0; r < rows; r++) to[i * ROWS + r] = a.data[r * a.row + i * a.column];
}

static void pack_groups(tp_strided a, int64_t m, int64_t k, float *room) {
    for (int64_t r = 0; r < m; r += ROWS) {
        tp_strided group = {a.data + r * a.row, a.row, a.column};
        pack_rows(group, m - r < ROWS ? m - r : ROWS, m - r - ROWS, k, room + r * k);
    }
}

/* The first group's tile lays the panel that the others read: what it waits for is hidden behind its own sums. */
static __attribute__((noinline)) void laying_tile(operands o) {
    o.row = 1;
    tile(o, ROWS, VECTORS, true, true);
}

static void multiply(tp_strided a, const float *groups, int64_t m, int64_t k, tp_strided b, float *panels, int64_t n,
                     float alpha, float beta, float *c, int64_t ldc) {
    operands o = {.row = a.row,
                  .step = groups ? ROWS : a.column,
                  .k = k,
                  .alpha = alpha,
                  .beta = beta,
                  .ldc = ldc,
                  .next = b.row};
    void (*any)(operands, int64_t) = groups || a.column != 1 ? tiles_of_columns : tiles_of_rows;
    bool lays = b.data && b.column == 1 && groups && m >= ROWS;
    int64_t laid = lays ? n / COLUMNS * COLUMNS : 0;
    if (b.data && laid < n)
        pack_panels((tp_strided){b.data + laid * b.column, b.row, b.column}, k, n - laid, panels + laid * k);
    for (int64_t r = 0; r < m; r += ROWS) {
        o.a = groups ? groups + r * k : a.data + r * a.row;
        for (int64_t j = 0; j < n; j += COLUMNS) {
            o.panel = panels + j * k;
            o.b = b.data + j;
            o.c = c + r * ldc + j;
            o.n = n - j < COLUMNS ? n - j : COLUMNS;
            if (r == 0 && j < laid) laying_tile(o);
            else any(o, m - r < ROWS ? m - r : ROWS);
        }
    }
}

static void turn_rows(const float *from, int64_t next, int64_t rows, int64_t n, float *to, int64_t width) {
    turn(from, next, rows, n, to, width);
}

const tp_sgemm_kernels TP_CAP(tp_sgemm) = {.rows = ROWS,
                                           .columns = COLUMNS,
                                           .pack = pack_panels,
                                           .pack_rows = pack_groups,
                                           .multiply = multiply,
                                           .turn = turn_rows};
#else
const tp_sgemm_kernels TP_CAP(tp_sgemm) = {0};
#endif
