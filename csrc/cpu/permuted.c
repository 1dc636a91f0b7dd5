/* permuted.c: see permuted.h.
 *
 * Dimension 0 is the destination's: its elements follow each other there. A unit is a rectangle of the first two
 * dimensions, or a strip of one, so no loop over a few elements is called for each row. Where the source's elements
 * follow each other along dimension 1 (the iterator brings such a dimension there if that pays) it is a transposition;
 * else short rows are copied, or gathered from elements that lie far apart, in the order of the destination. */
#include "cpu/permuted.h"

#include "core/memory.h"
#include "core/parallel.h"
#include "cpu/transpose.h"

#include <string.h>

#define LINE 64
#define LINES_ACROSS 4   /* of the source that are read together by a transposition */
#define LEAST_SIDE 32    /* bytes of a side that is worth one */
#define MOST_GATHERED 64 /* elements of a row; longer rows take as long by any loop */

/* Rows of n elements, `step` apart at the source. */
typedef void (*gather_fn)(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t step, int64_t n,
                          int64_t rows);

typedef struct {
    const tp_iter *it;
    int64_t itemsize;
    tp_transpose_fn transpose; /* or NULL */
    int64_t strip, strips;     /* rows of a unit, units in a rectangle */
} permuted;

/* ---- rows of a few bytes ---- */

/* Whole pieces, and one that ends with the row. */
#define PIECES(bytes_of_piece)                                                                  \
    for (; rows > 0; rows--, to += to_stride, from += from_stride) {                            \
        for (int64_t i = 0; i + (bytes_of_piece) < bytes; i += bytes_of_piece)                  \
            memcpy(to + i, from + i, bytes_of_piece);                                           \
        memcpy(to + bytes - (bytes_of_piece), from + bytes - (bytes_of_piece), bytes_of_piece); \
    }

static void copy_rows(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t bytes, int64_t rows) {
    if (bytes >= 256)
        for (; rows > 0; rows--, to += to_stride, from += from_stride) tp_copy_bytes(to, from, (size_t)bytes);
    else if (bytes >= 16) PIECES(16)
    else if (bytes >= 8) PIECES(8)
    else if (bytes >= 4) PIECES(4)
    else if (bytes >= 2) PIECES(2)
    else PIECES(1)
}

/* ---- rows whose elements come from far apart ---- */

#define EACH_ROW for (; rows > 0; rows--, to += to_row, from += from_row)
#define AT(i) (*(const T *)(from + (i) * step))
#define GATHER_ROWS(name, type)                                                                             \
    static void name(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t step, int64_t n, \
                     int64_t rows) {                                                                        \
        typedef type T;                                                                                     \
        if (n == 2) EACH_ROW((T *)to)[0] = AT(0), ((T *)to)[1] = AT(1);                                     \
        else if (n == 3) EACH_ROW((T *)to)[0] = AT(0), ((T *)to)[1] = AT(1), ((T *)to)[2] = AT(2);          \
        else if (n == 4)                                                                                    \
            EACH_ROW((T *)to)[0] = AT(0), ((T *)to)[1] = AT(1), ((T *)to)[2] = AT(2), ((T *)to)[3] = AT(3); \
        else EACH_ROW for (int64_t i = 0; i < n; i++)((T *)to)[i] = AT(i);                                  \
    }
GATHER_ROWS(gather_1, uint8_t)
GATHER_ROWS(gather_2, uint16_t)
GATHER_ROWS(gather_4, uint32_t)
GATHER_ROWS(gather_8, uint64_t)
GATHER_ROWS(gather_16, tp_complex128)

static gather_fn gather_of(int64_t itemsize) {
    switch (itemsize) {
    case 1: return gather_1;
    case 2: return gather_2;
    case 4: return gather_4;
    case 8: return gather_8;
    default: return gather_16;
    }
}

void tp_copy_rectangle(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t step, int64_t itemsize,
                       int64_t n, int64_t rows) {
    if (step == itemsize) copy_rows(to, to_row, from, from_row, n * itemsize, rows);
    else gather_of(itemsize)(to, to_row, from, from_row, step, n, rows);
}

/* ---- units ---- */

static void run_unit(const permuted *p, char *to, const char *from, int64_t rows) {
    const tp_iter *it = p->it;
    const int64_t to_row = it->strides[0][1], from_row = it->strides[1][1], step = it->strides[1][0];
    if (p->transpose) p->transpose(to, to_row, from, step, it->shape[0], rows);
    else tp_copy_rectangle(to, to_row, from, from_row, step, p->itemsize, it->shape[0], rows);
}

static void run_units(int64_t begin, int64_t end, void *context) {
    const permuted *p = context;
    const tp_iter *it = p->it;
    int64_t at[TP_MAX_DIMS], rest = begin / p->strips, strip = begin % p->strips;
    char *to = it->data[0], *from = it->data[1];
    for (int d = 2; d < it->ndim; rest /= it->shape[d++]) {
        at[d] = rest % it->shape[d];
        to += at[d] * it->strides[0][d];
        from += at[d] * it->strides[1][d];
    }
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = strip * p->strip;
        run_unit(p, to + row * it->strides[0][1], from + row * it->strides[1][1],
                 tp_at_most(it->shape[1] - row, p->strip));
        if (++strip < p->strips) continue;
        strip = 0;
        for (int d = 2; d < it->ndim; d++) { /* on to the next rectangle */
            to += it->strides[0][d];
            from += it->strides[1][d];
            if (++at[d] < it->shape[d]) break;
            to -= at[d] * it->strides[0][d];
            from -= at[d] * it->strides[1][d];
            at[d] = 0;
        }
    }
}

/* ---- the plan ---- */

static bool goes_forward(const tp_iter *it) {
    for (int d = 0; d < it->ndim; d++)
        if (it->strides[0][d] <= 0 || it->strides[1][d] <= 0) return false;
    return true;
}

/* False: a loop along rows is as good. */
static bool choose(permuted *p) {
    const tp_iter *it = p->it;
    const int64_t item = p->itemsize, step = it->strides[1][0], n = it->shape[0];
    p->strip = tp_at_most(it->shape[1], TP_GRAIN / n + 1);
    if (step == item) return true;
    if (step < LINE) return false;
    if (it->strides[1][1] != item || n * item < LEAST_SIDE || it->shape[1] * item < LEAST_SIDE)
        return n <= MOST_GATHERED;
    p->transpose = tp_transpose_of(item);
    p->strip = LINES_ACROSS * LINE / item;
    return true;
}

bool tp_copy_permuted(const tp_iter *it, int64_t itemsize, int *status) {
    permuted p = {.it = it, .itemsize = itemsize};
    if (it->ndim < 2 || it->strides[0][0] != itemsize) return false;
    if (!goes_forward(it) || !choose(&p)) return false;
    p.strips = (it->shape[1] + p.strip - 1) / p.strip;
    int64_t units = it->numel / (it->shape[0] * it->shape[1]) * p.strips;
    int64_t grain = TP_GRAIN / (it->shape[0] * tp_at_most(p.strip, it->shape[1])) + 1;
    *status = tp_parallel_unlocked(it->numel >= TP_GRAIN, units, grain, run_units, &p);
    return true;
}
