/* run.c: see run.h.
 *
 * A range of the flattened iteration space is walked in pieces of whole rows where possible. Rows that are short are
 * turned: the loop then runs down the second dimension, in tiles that stay in the L1 cache, so that a call serves many
 * elements. Where an operand lies across the rows (it is transposed), the rectangle is walked in tiles, so that each of
 * its cache lines is fetched once, and an input's part of a tile is first laid along the rows. Operands whose dtype is
 * not the loop's pass through blocks on the stack. Where short rows follow each other without gaps, and operands come
 * again and again (a bias of ten numbers), these are laid out a few times over, and the rows are one; so are operands
 * whose rows lie apart, a block at a time. */
#include "cpu/run.h"

#include "core/parallel.h"
#include "core/tls.h"
#include "cpu/permuted.h"
#include "cpu/transpose.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512           /* elements of an operand converted at a time */
#define SHORT_ROW 16        /* a row below this is turned, */
#define TURN_RATIO 4        /* if there are this many times as many rows */
#define REPEATED 3          /* operands that may come again, */
#define REPEATED_ROW 256    /* in rows below this, */
#define REPEATED_BYTES 8192 /* and what they are laid out in; */
#define REPEATED_STAY 4     /* of fewer elements that stay, turned rows are faster */
#define PACKED_ROW 64       /* operands whose shorter rows lie apart are laid out too; conversions take their time */
#define TILE_ROWS 256
#define TILE 64         /* a square tile of an operand that lies across, */
#define LINE 64         /* which is one that leaves its cache line with each element; */
#define MOST_LAID 2     /* inputs of a tile that are laid along the rows, */
#define LAID_BYTES 8192 /* in so many bytes, */
#define LAID_ROW 128    /* in rows of so many elements, */
#define LAID_LEAST 8    /* where there are so many and as many rows */

typedef struct {
    const tp_iter *it;
    tp_loop_fn loop;
    const void *params;
    bool converts;
    /* For operands that come again: after how many elements all do (0: there are none), how many are laid out, and how
     * many are taken at once. */
    int64_t period, length, block;
    bool repeats[TP_MAX_OPERANDS], packs[TP_MAX_OPERANDS];
    int64_t stays[TP_MAX_OPERANDS]; /* for how many elements each of an operand stays; 0: it is none of these */
} run;

/* ---- one dimension ---- */

typedef struct {
    const run *r;
    char *data[TP_MAX_OPERANDS];
    int64_t strides[TP_MAX_OPERANDS];
    tp_loop_fn cast[TP_MAX_OPERANDS]; /* NULL: the loop works on the operand itself */
    alignas(64) char buffers[TP_MAX_OPERANDS][BLOCK * sizeof(tp_complex128)];
} blocks;

static void cast_input(blocks *b, int i, char *from, int64_t stride, int64_t n) {
    char *const data[] = {b->buffers[i], from};
    const int64_t strides[] = {tp_itemsize(b->r->it->loop_dtype[i]), stride};
    b->cast[i](data, strides, n, NULL);
}

static void cast_output(blocks *b, int i, char *to, int64_t stride, int64_t n) {
    char *const data[] = {to, b->buffers[i]};
    const int64_t strides[] = {stride, tp_itemsize(b->r->it->loop_dtype[i])};
    b->cast[i](data, strides, n, NULL);
}

static void start_blocks(blocks *b, const int64_t *strides, char *const *data) {
    const tp_iter *it = b->r->it;
    for (int i = 0; i < it->noperands; i++) {
        tp_dtype stored = it->dtype[i], wanted = it->loop_dtype[i];
        b->cast[i] = NULL;
        b->strides[i] = strides[i];
        if (stored == wanted) continue;
        b->cast[i] = i < it->noutputs ? tp_cast_loop(wanted, stored) : tp_cast_loop(stored, wanted);
        b->data[i] = b->buffers[i];
        b->strides[i] = strides[i] == 0 && i >= it->noutputs ? 0 : tp_itemsize(wanted);
        if (b->strides[i] == 0) cast_input(b, i, data[i], 0, 1);
    }
}

static void run_blocks(const run *r, char *const *data, const int64_t *strides, int64_t n) {
    const tp_iter *it = r->it;
    blocks b;
    b.r = r;
    start_blocks(&b, strides, data);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
        for (int i = 0; i < it->noperands; i++) {
            char *here = data[i] + at * strides[i];
            if (!b.cast[i]) b.data[i] = here;
            else if (i >= it->noutputs && b.strides[i]) cast_input(&b, i, here, strides[i], count);
        }
        r->loop(b.data, b.strides, count, r->params);
        for (int i = 0; i < it->noutputs; i++)
            if (b.cast[i]) cast_output(&b, i, data[i] + at * strides[i], strides[i], count);
    }
}

static inline void run_row(const run *r, char *const *data, const int64_t *strides, int64_t n) {
    if (r->converts) run_blocks(r, data, strides, n);
    else r->loop(data, strides, n, r->params);
}

/* ---- two dimensions ---- */

typedef struct {
    char *data[TP_MAX_OPERANDS];
    int64_t inner[TP_MAX_OPERANDS], outer[TP_MAX_OPERANDS];
    int n;
} rectangle;

/* `count` runs of n elements: `step` leads from one run to the next, `along` from an element to the next. */
static void run_rows(const run *r, char *const *data, const int64_t *along, const int64_t *step, int64_t n,
                     int64_t count) {
    char *at[TP_MAX_OPERANDS];
    int operands = r->it->noperands;
    for (int i = 0; i < operands; i++) at[i] = data[i];
    for (int64_t row = 0; row < count; row++) {
        run_row(r, at, along, n);
        for (int i = 0; i < operands; i++) at[i] += step[i];
    }
}

static void run_turned(const run *r, const rectangle *x, int64_t n, int64_t rows) {
    char *at[TP_MAX_OPERANDS];
    for (int64_t row = 0; row < rows; row += TILE_ROWS) {
        for (int i = 0; i < x->n; i++) at[i] = x->data[i] + row * x->outer[i];
        run_rows(r, at, x->outer, x->inner, tp_at_most(rows - row, TILE_ROWS), n);
    }
}

static void run_tiles(const run *r, const rectangle *x, int64_t n, int64_t rows) {
    char *at[TP_MAX_OPERANDS];
    for (int64_t row = 0; row < rows; row += TILE)
        for (int64_t column = 0; column < n; column += TILE) {
            for (int i = 0; i < x->n; i++) at[i] = x->data[i] + row * x->outer[i] + column * x->inner[i];
            run_rows(r, at, x->inner, x->outer, tp_at_most(n - column, TILE), tp_at_most(rows - row, TILE));
        }
}

static bool lies_across(const rectangle *x) {
    for (int i = 0; i < x->n; i++)
        if (x->outer[i] && llabs(x->inner[i]) >= LINE && llabs(x->outer[i]) < LINE) return true;
    return false;
}

/* Inputs whose elements follow each other down the columns. */
typedef struct {
    int count, operand[MOST_LAID];
    int64_t item[MOST_LAID], rows; /* bytes of an element; rows of a tile */
    tp_transpose_fn transpose[MOST_LAID];
    alignas(64) char room[MOST_LAID][LAID_BYTES];
} laid;

static bool find_laid(const run *r, const rectangle *x, laid *l) {
    l->count = 0;
    l->rows = TILE;
    for (int i = r->it->noutputs; i < x->n && l->count < MOST_LAID; i++) {
        int64_t item = tp_itemsize(r->it->dtype[i]);
        if (x->outer[i] != item || x->inner[i] == item || x->inner[i] == 0) continue;
        l->transpose[l->count] = tp_transpose_of(item);
        l->item[l->count] = item;
        l->operand[l->count++] = i;
        l->rows = tp_at_most(l->rows, LAID_BYTES / LAID_ROW / item);
    }
    return l->count > 0;
}

/* Lays what a tile of n elements in each of `rows` rows needs along the rows. */
static void lay(laid *l, const rectangle *x, char **at, int64_t n, int64_t rows) {
    for (int k = 0; k < l->count; k++) {
        int i = l->operand[k];
        l->transpose[k](l->room[k], LAID_ROW * l->item[k], at[i], x->inner[i], n, rows);
        at[i] = l->room[k];
    }
}

/* False: no input can be laid along the rows. */
static bool run_laid(const run *r, const rectangle *x, int64_t n, int64_t rows) {
    char *at[TP_MAX_OPERANDS];
    int64_t along[TP_MAX_OPERANDS], step[TP_MAX_OPERANDS];
    laid l;
    if (n < LAID_LEAST || rows < LAID_LEAST || !find_laid(r, x, &l)) return false;
    memcpy(along, x->inner, sizeof along);
    memcpy(step, x->outer, sizeof step);
    for (int k = 0; k < l.count; k++) {
        along[l.operand[k]] = l.item[k];
        step[l.operand[k]] = LAID_ROW * l.item[k];
    }
    for (int64_t row = 0; row < rows; row += l.rows)
        for (int64_t column = 0; column < n; column += LAID_ROW) {
            int64_t count = tp_at_most(n - column, LAID_ROW), height = tp_at_most(rows - row, l.rows);
            for (int i = 0; i < x->n; i++) at[i] = x->data[i] + row * x->outer[i] + column * x->inner[i];
            lay(&l, x, at, count, height);
            run_rows(r, at, along, step, count, height);
        }
    return true;
}

static void run_rectangle(const run *r, const rectangle *x, int64_t n, int64_t rows) {
    if (n < SHORT_ROW && rows >= TURN_RATIO * n) run_turned(r, x, n, rows);
    else if (run_laid(r, x, n, rows)) return;
    else if (rows > 1 && n > TILE && lies_across(x)) run_tiles(r, x, n, rows);
    else run_rows(r, x->data, x->inner, x->outer, n, rows);
}

/* ---- operands that come again ---- */

/* The dimensions of an operand from the first to the last that it has elements along. Whether these follow each other
 * in memory. */
static bool spans(const tp_iter *it, int i, int *first, int *last) {
    int64_t step = tp_itemsize(it->dtype[i]);
    int low = 0, high = it->ndim;
    while (high && !it->strides[i][high - 1]) high--;
    while (low < high && !it->strides[i][low]) low++;
    *first = low, *last = high;
    for (int d = low; d < high; step *= it->shape[d++])
        if (it->strides[i][d] != step) return false;
    return true;
}

static int64_t product(const int64_t *sizes, int n) {
    int64_t product = 1;
    for (int d = 0; d < n; d++) product *= sizes[d];
    return product;
}

/* Whether short rows of an operand are worth being laid out: not those that tiles turn (run_laid). */
static bool packs(const run *r, int i) {
    const tp_iter *it = r->it;
    int64_t item = tp_itemsize(it->dtype[i]);
    bool across = it->strides[i][1] == item && it->shape[0] >= LAID_LEAST && it->shape[1] >= LAID_LEAST;
    return !across && it->shape[0] < (r->converts ? REPEATED_ROW : PACKED_ROW);
}

/* Finds out whether the plan is lines without gaps, operands that come again, such that stay for a while, and such
 * whose rows lie apart. */
static void find_repeats(run *r) {
    const tp_iter *it = r->it;
    int count = 0;
    int64_t period = 1, widest = 1;
    if (it->ndim < 2 || it->shape[0] >= REPEATED_ROW) return;
    for (int i = 0; i < it->noperands; i++) {
        int first, last;
        bool line = spans(it, i, &first, &last);
        int64_t item = tp_itemsize(it->dtype[i]), size = product(it->shape, last), stays = product(it->shape, first);
        if (line && (last == 0 || (first == 0 && last == it->ndim))) continue;
        if (i < it->noutputs || ++count > REPEATED) return;
        if (last < it->ndim && size * item <= REPEATED_BYTES) {
            r->repeats[i] = true;
            if (size > period) period = size; /* a multiple of the others: all are products of the first sizes */
        } else if (line && last == it->ndim && stays >= REPEATED_STAY && stays < REPEATED_ROW) {
            r->stays[i] = stays;
        } else if (it->strides[i][0] && packs(r, i)) {
            r->packs[i] = true;
        } else {
            return;
        }
        if (item > widest) widest = item;
    }
    if (!count || period > it->numel / 8 || (period > BLOCK && period * widest > REPEATED_BYTES)) return;
    r->period = period;
    r->length = period > BLOCK ? period : BLOCK / period * period;
    r->block = REPEATED_BYTES / widest;
}

/* Lays n elements of an operand from `begin` on out; after the last one comes the first. */
static void lay_out(const tp_iter *it, int i, char *to, int64_t begin, int64_t n) {
    const int64_t *strides = it->strides[i], item = tp_itemsize(it->dtype[i]), size = it->shape[0];
    int64_t at[TP_MAX_DIMS], rest = begin;
    const char *from = it->data[i];
    for (int d = 0; d < it->ndim; rest /= it->shape[d++]) {
        at[d] = rest % it->shape[d];
        from += at[d] * strides[d];
    }
    for (int64_t some, rows; n > 0; n -= some * rows, to += some * rows * item) {
        some = tp_at_most(size - at[0], n);
        rows = some == size ? tp_at_most(it->shape[1] - at[1], n / size) : 1;
        tp_copy_rectangle(to, some * item, from, strides[1], strides[0], item, some, rows);
        at[0] += some;
        from += some * strides[0];
        if (at[0] < size) continue; /* the last one */
        at[0] = 0;
        at[1] += rows;
        from += rows * strides[1] - size * strides[0];
        for (int d = 1; d < it->ndim && at[d] == it->shape[d]; d++) {
            from -= at[d] * strides[d];
            at[d] = 0;
            if (d + 1 == it->ndim) break;
            from += strides[d + 1];
            at[d + 1]++;
        }
    }
}

/* Lays n elements out of a line of which each stays for `stays`, in whole chunks: up to CHUNK bytes more are written.
 */
#define CHUNK 64
#define SPREAD(T)                                                                 \
    for (int64_t at = 0; at < n; from += sizeof(T), inside = 0) {                 \
        T value, *here = (T *)to + at;                                            \
        int64_t most = stays - inside < n - at ? stays - inside : n - at, k = 0;  \
        memcpy(&value, from, sizeof value);                                       \
        for (; k < most; k += CHUNK / (int64_t)sizeof(T))                         \
            for (int l = 0; l < CHUNK / (int)sizeof(T); l++) here[k + l] = value; \
        at += most;                                                               \
    }
static void spread(char *to, const char *from, int64_t item, int64_t stays, int64_t begin, int64_t n) {
    int64_t inside = begin % stays;
    from += begin / stays * item;
    switch (item) {
    case 1: SPREAD(uint8_t) break;
    case 2: SPREAD(uint16_t) break;
    case 4: SPREAD(uint32_t) break;
    case 8: SPREAD(uint64_t) break;
    default: SPREAD(tp_complex128)
    }
}

static void run_repeats(const run *r, int64_t begin, int64_t end) {
    alignas(64) char room[REPEATED][REPEATED_BYTES + CHUNK];
    char *base[TP_MAX_OPERANDS], *data[TP_MAX_OPERANDS];
    int64_t strides[TP_MAX_OPERANDS];
    const tp_iter *it = r->it;
    for (int i = 0, count = 0; i < it->noperands; i++) {
        bool one = !r->repeats[i] && !r->packs[i] && !it->strides[i][it->ndim - 1];
        strides[i] = one ? 0 : tp_itemsize(it->dtype[i]);
        base[i] = r->repeats[i] || r->stays[i] || r->packs[i] ? room[count++] : it->data[i];
        if (r->repeats[i]) lay_out(it, i, base[i], 0, r->length);
    }
    for (int64_t n; begin < end; begin += n) {
        int64_t phase = begin % r->period;
        n = tp_at_most(tp_at_most(r->length - phase, r->block), end - begin);
        for (int i = 0; i < it->noperands; i++) {
            data[i] = base[i] + (r->repeats[i] ? phase : r->stays[i] || r->packs[i] ? 0 : begin) * strides[i];
            if (r->packs[i]) lay_out(it, i, data[i], begin, n);
            if (r->stays[i]) spread(data[i], it->data[i], strides[i], r->stays[i], begin, n);
        }
        run_row(r, data, strides, n);
    }
}

/* ---- a range of the flattened space ---- */

typedef struct {
    int64_t at[TP_MAX_DIMS];
    rectangle x;
} position;

static void seek(const tp_iter *it, int64_t flat, position *p) {
    p->x.n = it->noperands;
    for (int i = 0; i < it->noperands; i++) {
        p->x.data[i] = it->data[i];
        p->x.inner[i] = it->strides[i][0];
        p->x.outer[i] = it->ndim > 1 ? it->strides[i][1] : 0;
    }
    for (int d = 0; d < it->ndim; d++) {
        p->at[d] = flat ? flat % it->shape[d] : 0; /* most begin at the beginning, and dividing is slow */
        if (!flat) continue;
        flat /= it->shape[d];
        for (int i = 0; i < it->noperands; i++) p->x.data[i] += p->at[d] * it->strides[i][d];
    }
}

static void move_along(const tp_iter *it, position *p, int d, int64_t steps) {
    p->at[d] += steps;
    for (int i = 0; i < it->noperands; i++) p->x.data[i] += steps * it->strides[i][d];
}

/* Behind a piece of n elements in each of `rows` rows; dimensions that have come to their end carry. */
static void advance(const tp_iter *it, position *p, int64_t n, int64_t rows) {
    move_along(it, p, 0, n);
    for (int d = 0; d + 1 < it->ndim && p->at[d] == it->shape[d]; d++) {
        move_along(it, p, d, -it->shape[d]);
        move_along(it, p, d + 1, d == 0 ? rows : 1);
    }
}

static void walk(int64_t begin, int64_t end, void *context) {
    const run *r = context;
    const tp_iter *it = r->it;
    position p;
    if (r->period) {
        run_repeats(r, begin, end);
        return;
    }
    seek(it, begin, &p);
    while (begin < end) {
        int64_t n = it->shape[0] - p.at[0], rows = 1, left = end - begin;
        if (n > left) {
            n = left;
        } else if (p.at[0] == 0 && it->ndim > 1) {
            rows = it->shape[1] - p.at[1];
            if (rows > left / n) rows = left / n;
        }
        run_rectangle(r, &p.x, n, rows);
        begin += n * rows;
        advance(it, &p, n, rows);
    }
}

int tp_iter_run(const tp_iter *it, tp_loop_fn loop, const void *params, int64_t grain) {
    if (it->numel == 0) return 0;
    run r = {.it = it, .loop = loop, .params = params};
    for (int i = 0; i < it->noperands; i++) r.converts |= it->dtype[i] != it->loop_dtype[i];
    find_repeats(&r);
    if (it->numel < grain) {
        walk(0, it->numel, &r);
        return tp_status_of_thread(); /* a signal ended a recurrence */
    }
    return tp_parallel_unlocked(true, it->numel, grain, walk, &r);
}
