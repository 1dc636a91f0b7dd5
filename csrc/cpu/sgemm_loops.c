/* sgemm_loops.c: the inner loops of float32 products, compiled once per capability.
 *
 * A tile of ROWS rows and COLUMNS columns of the result stays in registers while k runs: a panel of b, [k, COLUMNS],
 * gives the vectors, and each of ROWS numbers of a multiplies all of them. ROWS rows of a stay in the L1 cache while
 * panels that the L2 cache keeps pass by (Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication,
 * 2008, with the operands' parts exchanged: the result is written along its rows). For many panels the rows are packed
 * in groups, so that the numbers of a step lie side by side. */
#include "cpu/sgemm.h"

#include "cpu/kernels.h"
#include "cpu/lanes.h"

#include <string.h>

#ifdef LANES
#define VECTORS 2
#define COLUMNS (VECTORS * LANES)
/* With the panel's vectors and one of a these sums take all registers but one or two. */
#define ROWS (LANES == 16 ? TP_SGEMM_ROWS : 6)
#define LINE 16           /* of the cache */
#define AHEAD 8           /* steps of k */
#define FEW_PANELS 8      /* for so many a is read as it lies */
#define BLOCK_COLUMNS 256 /* whose panels stay in the L2 cache */

/* What a tile is made of; of its columns n are wanted. */
typedef struct {
    const float *a, *panel;
    int64_t row, step, k, n; /* rows of a are `row` apart, its columns `step` */
    float alpha, beta, *c;
    int64_t ldc;
} operands;

/* rows, vectors of the panel, and whether all of its columns are wanted, are known where this is called. */
TP_INLINE void tile(operands o, const int rows, const int vectors, const bool whole) {
    lanes sum[ROWS][VECTORS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vectors; v += LINE / LANES) __builtin_prefetch(o.c + r * o.ldc + v * LANES, 1);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = (lanes){0};
    for (int64_t i = 0; i < o.k; i++, o.a += o.step, o.panel += vectors * LANES) {
        lanes x[VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) {
            if (v * LANES % LINE == 0) __builtin_prefetch(o.panel + (AHEAD * vectors + v) * LANES);
            x[v] = load(o.panel + v * LANES);
        }
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
    for (; rows >= (n); rows -= (n), o.a += (n) * o.row, o.c += (n) * o.ldc) tile(o, n, vectors, whole);
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

/* The last columns, which are fewer, lie in a panel of one vector if they fit. */
static void pack_panel(tp_strided b, int64_t k, int64_t n, float *panel) {
    int64_t width = n > LANES ? COLUMNS : LANES;
    if (b.column != 1) {
        if (n < width) memset(panel, 0, (size_t)(k * width) * sizeof(float));
        turn(b.data, b.column, n, k, panel, width);
        return;
    }
    for (int64_t i = 0; i < k; i++, panel += width) {
        const float *from = b.data + i * b.row;
        if (n == COLUMNS) {
            UNROLL for (int v = 0; v < VECTORS; v++) store(panel + v * LANES, load(from + v * LANES));
            continue;
        }
        if (n > LANES) store(panel, load(from));
        store(panel + width - LANES, load_first(from + width - LANES, n - (width - LANES)));
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

static void multiply(tp_strided a, int64_t m, int64_t k, const float *panels, int64_t n, float alpha, float beta,
                     float *c, int64_t ldc, float *room) {
    bool packed = n > FEW_PANELS * COLUMNS;
    for (int64_t r = 0; packed && r < m; r += ROWS) {
        tp_strided group = {a.data + r * a.row, a.row, a.column};
        pack_rows(group, m - r < ROWS ? m - r : ROWS, m - r - ROWS, k, room + r * k);
    }
    operands o = {.row = a.row, .step = packed ? ROWS : a.column, .k = k, .alpha = alpha, .beta = beta, .ldc = ldc};
    void (*any)(operands, int64_t) = packed || a.column != 1 ? tiles_of_columns : tiles_of_rows;
    for (int64_t begin = 0; begin < n; begin += BLOCK_COLUMNS)
        for (int64_t r = 0; r < m; r += ROWS) {
            int64_t rows = m - r < ROWS ? m - r : ROWS, end = n - begin < BLOCK_COLUMNS ? n : begin + BLOCK_COLUMNS;
            o.a = packed ? room + r * k : a.data + r * a.row;
            for (int64_t j = begin; j < end; j += COLUMNS) {
                o.panel = panels + j * k;
                o.c = c + r * ldc + j;
                o.n = n - j < COLUMNS ? n - j : COLUMNS;
                any(o, rows);
            }
        }
}

static void turn_rows(const float *from, int64_t next, int64_t rows, int64_t n, float *to, int64_t width) {
    turn(from, next, rows, n, to, width);
}

const tp_sgemm_kernels TP_CAP(tp_sgemm) = {
    .rows = ROWS, .columns = COLUMNS, .pack = pack_panel, .multiply = multiply, .turn = turn_rows};
#else
const tp_sgemm_kernels TP_CAP(tp_sgemm) = {0};
#endif
