/* sgemm.c: cuts a product of float32 matrices into blocks for the caches, and shares them between threads (the loops
 * over a block are in sgemm_loops.c). */
#include "cpu/sgemm.h"

#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/kernels.h"

#define BLOCK_K 384    /* a group of rows of a fits in the L1 cache so, with the panel that passes by it */
#define BLOCK_ROWS 448 /* of a, which stay in the L2 cache with some of the panels */
#define BLOCK_COLUMNS 4096
#define NEAR_COLUMNS 256   /* whose panels stay in the L2 cache while the rows pass by */
#define FEW_COLUMNS 256    /* for so many a is read as it lies, */
#define SAME_SETS 256      /* unless its rows are this apart: a step's numbers would be in few sets of the L1 cache */
#define WORTH_A_SPLIT 8e5  /* multiplications */
#define WORTH_A_PACK 30000 /* numbers */

typedef struct {
    tp_strided a, b;
    int64_t m, n, k; /* of the block at hand */
    float alpha, beta, *c, *panels;
    int64_t ldc, columns;              /* of a panel */
    int64_t block_rows, block_columns; /* of a piece; a multiple of a tile's */
    int64_t column_blocks;             /* beside each other */
    bool packs;                        /* each piece lays its own columns of b */
} job;

static int64_t parts_of(int64_t n, int64_t part) { return (n + part - 1) / part; }

/* n in parts of about the same size, a multiple of `unit` each. */
static int64_t even_part(int64_t n, int64_t parts, int64_t unit) { return parts_of(parts_of(n, parts), unit) * unit; }

static int64_t threads_for(const job *j) {
    double work = (double)j->m * (double)j->n * (double)j->k;
    return work < WORTH_A_SPLIT || tp_in_parallel() ? 1 : tp_get_num_threads();
}

/* ---- many rows ---- */

static void pack_panels(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    int64_t first = begin * j->columns, columns = tp_at_most(end * j->columns, j->n) - first;
    tp_strided b = {j->b.data + first * j->b.column, j->b.row, j->b.column};
    tp_cpu.sgemm->pack(b, j->k, columns, j->panels + first * j->k);
}

static void multiply_pieces(int64_t begin, int64_t end, void *context) {
    const job *j = context;
    bool packs_rows = j->n > FEW_COLUMNS || (j->a.column == 1 && j->a.row % SAME_SETS == 0);
    const size_t bytes = packs_rows ? (size_t)((j->block_rows + tp_cpu.sgemm->rows) * j->k) * sizeof(float) : 0;
    float *room = bytes ? tp_alloc(bytes) : NULL;
    for (int64_t i = begin; (room || !bytes) && i < end; i++) {
        int64_t row = i / j->column_blocks * j->block_rows, column = i % j->column_blocks * j->block_columns;
        int64_t rows = tp_at_most(j->block_rows, j->m - row), last = tp_at_most(column + j->block_columns, j->n);
        tp_strided a = {j->a.data + row * j->a.row, j->a.row, j->a.column};
        float *panels = j->panels + column * j->k;
        if (room) tp_cpu.sgemm->pack_rows(a, rows, j->k, room);
        for (int64_t near; column < last; column = near) {
            near = tp_at_most(column + NEAR_COLUMNS, last);
            tp_strided b = {j->packs ? j->b.data + column * j->b.column : NULL, j->b.row, j->b.column};
            tp_cpu.sgemm->multiply(a, room, rows, j->k, b, panels, near - column, j->alpha, j->beta,
                                   j->c + row * j->ldc + column, j->ldc);
            if (!j->packs) panels += (near - column) * j->k; /* else those that the cache has are written again */
        }
        if (tp_host_look() < 0) break;
    }
    tp_free(room, bytes);
}

/* Columns between threads while all rows fit in a cache; else the threads lay b together, and share the rows. */
static int multiply_block(job *j) {
    int64_t threads = threads_for(j), row_blocks = parts_of(j->m, BLOCK_ROWS);
    int64_t panels = parts_of(j->n, j->columns);
    j->packs = row_blocks == 1 && panels >= threads;
    if (!j->packs) {
        row_blocks = tp_at_most(parts_of(row_blocks, threads) * threads, parts_of(j->m, 4 * tp_cpu.sgemm->rows));
        int64_t grain = threads == 1 ? panels : 1 + WORTH_A_PACK / (j->k * j->columns);
        if (tp_parallel_for(panels, grain, pack_panels, j) < 0) return -1;
    }
    j->block_rows = even_part(j->m, row_blocks, tp_cpu.sgemm->rows);
    row_blocks = parts_of(j->m, j->block_rows);
    j->block_columns = even_part(j->n, tp_at_most(parts_of(threads, row_blocks), panels), j->columns);
    j->column_blocks = parts_of(j->n, j->block_columns);
    int64_t pieces = row_blocks * j->column_blocks;
    return tp_parallel_for(pieces, threads == 1 ? pieces : 1, multiply_pieces, j);
}

static int multiply_blocks(job all, int64_t step) {
    int64_t n = tp_at_most(all.n, BLOCK_COLUMNS);
    size_t bytes = (size_t)(parts_of(n, all.columns) * all.columns * step) * sizeof(float);
    float *panels = tp_alloc(bytes);
    int status = panels ? 0 : -1;
    for (int64_t j = 0; status == 0 && j < all.n; j += BLOCK_COLUMNS)
        for (int64_t i = 0; status == 0 && i < all.k; i += step) {
            job block = all;
            block.a.data += i * all.a.column;
            block.b.data += i * all.b.row + j * all.b.column;
            block.n = tp_at_most(BLOCK_COLUMNS, all.n - j);
            block.k = tp_at_most(step, all.k - i);
            block.beta = i ? 1 : all.beta;
            block.c += j;
            block.panels = panels;
            status = multiply_block(&block);
        }
    tp_free(panels, bytes);
    return status;
}

/* ---- few columns ----
 *
 * Panels of 49 columns, an image of 7 x 7, would hold 64. As the rows of c^T = b^T a^T they are no more than they are.
 */

#define FEW_FLIPPED 64

static bool is_flipped(int64_t m, int64_t n, int64_t k, int64_t columns) {
    int64_t half = columns / 2, width = n % columns <= half ? parts_of(n, half) * half : parts_of(n, columns) * columns;
    return n < FEW_FLIPPED && width * 8 > n * 9 && m >= 4 * n && k >= FEW_FLIPPED;
}

static int multiply_flipped(job all, int64_t step) {
    size_t bytes = (size_t)(all.m * all.n) * sizeof(float);
    float *flipped = tp_alloc(bytes);
    if (!flipped) return -1;
    job other = all;
    other.a = (tp_strided){all.b.data, all.b.column, all.b.row};
    other.b = (tp_strided){all.a.data, all.a.column, all.a.row};
    other.m = all.n, other.n = all.m, other.c = flipped, other.ldc = all.m;
    if (all.beta != 0) tp_cpu.sgemm->turn(all.c, all.ldc, all.m, all.n, flipped, all.m);
    int status = multiply_blocks(other, step);
    if (status == 0) tp_cpu.sgemm->turn(flipped, all.m, all.n, all.m, all.c, all.ldc);
    tp_free(flipped, bytes);
    return status;
}

/* ---- few rows ----
 *
 * Times a matrix whose columns are contiguous, a linear layer's weight: it is read as it lies, as the rows of
 * c^T = b^T a^T, with a^T in panels. STRIPS groups of rows at a time are turned on their way out. */

#define FEW_ROWS 64
#define STRIPS 4

/* It turns c and a, where the other way turns b. */
static bool is_turned(int64_t m, int64_t n, int64_t k, tp_strided b) {
    return m <= FEW_ROWS && b.row == 1 && m * (k + n) < n * k;
}

typedef struct {
    job base;
    int64_t step;  /* of k */
    int64_t strip; /* columns of c at a time */
    int64_t width; /* of a panel's row, and of a strip's */
} turned_job;

static void turned_strips(int64_t begin, int64_t end, void *context) {
    const turned_job *t = context;
    const job *j = &t->base;
    float sums[STRIPS * TP_SGEMM_ROWS * FEW_ROWS];
    for (int64_t s = begin; s < end; s++) {
        int64_t first = s * t->strip, n = tp_at_most(t->strip, j->n - first);
        if (j->beta != 0) tp_cpu.sgemm->turn(j->c + first, j->ldc, j->m, n, sums, FEW_ROWS);
        for (int64_t i = 0; i < j->k; i += t->step) {
            tp_strided b = {j->b.data + first * j->b.column + i, j->b.column, 1};
            tp_cpu.sgemm->multiply(b, NULL, n, tp_at_most(t->step, j->k - i), (tp_strided){0}, j->panels + i * t->width,
                                   j->m, j->alpha, i ? 1 : j->beta, sums, FEW_ROWS);
        }
        tp_cpu.sgemm->turn(sums, FEW_ROWS, n, j->m, j->c + first, j->ldc);
        if (tp_host_look() < 0) return;
    }
}

static int multiply_turned(job all, int64_t step) {
    turned_job t = {all, step, STRIPS * tp_cpu.sgemm->rows, parts_of(all.m, all.columns) * all.columns};
    size_t bytes = (size_t)(t.width * all.k) * sizeof(float);
    float *panels = t.base.panels = tp_alloc(bytes);
    if (!panels) return -1;
    for (int64_t i = 0; i < all.k; i += step) {
        tp_strided a = {all.a.data + i * all.a.column, all.a.column, all.a.row};
        tp_cpu.sgemm->pack(a, tp_at_most(step, all.k - i), all.m, panels + i * t.width);
    }
    int64_t strips = parts_of(all.n, t.strip);
    int status = tp_parallel_for(strips, threads_for(&all) == 1 ? strips : 1, turned_strips, &t);
    tp_free(panels, bytes);
    return status;
}

int tp_sgemm(int64_t m, int64_t n, int64_t k, float alpha, tp_strided a, tp_strided b, float beta, float *c,
             int64_t ldc) {
    job all = {.a = a, .b = b, .m = m, .n = n, .k = k, .alpha = alpha, .beta = beta, .c = c, .ldc = ldc};
    all.columns = tp_cpu.sgemm->columns;
    int64_t step = even_part(k, parts_of(k, BLOCK_K), 8), threads = threads_for(&all);
    bool enough_strips = threads == 1 || n >= 4 * threads * STRIPS * tp_cpu.sgemm->rows;
    if (enough_strips && is_turned(m, n, k, b)) return multiply_turned(all, step);
    return (is_flipped(m, n, k, all.columns) ? multiply_flipped : multiply_blocks)(all, step);
}

bool tp_sgemm_fits(int64_t m, int64_t n, int64_t k, tp_strided b) {
    bool enough = m >= 8 || (m > 4 && is_turned(m, n, k, b));
    return tp_cpu.sgemm->multiply && enough && n >= 16 && k >= 16;
}
