/* product_int8.h: products of bytes whose sums are exact, in int32. */
#pragma once

#include "core/tensor.h"

#define TP_INT8_COLUMNS 16 /* of a panel */
#define TP_INT8_BLOCK 96   /* rows whose sums are made at once */

/* Rows that begin `apart` from each other. Each is `pieces` runs of quads of numbers, which begin `offsets` behind its
 * own; all in bytes. `numbers` of a run have weights, the others meet zeros. The numbers are of 16 bits, less their
 * zero point, or the bytes themselves. */
typedef struct {
    const char *at;
    int64_t apart;
    const int64_t *offsets;
    int64_t pieces, quads, numbers;
} tp_int8_rows;

/* What the sums of one panel become numbers by. */
typedef struct {
    float shift[TP_INT8_COLUMNS], factor[TP_INT8_COLUMNS];
    int32_t zero_points[TP_INT8_COLUMNS];
    int32_t starts[TP_INT8_COLUMNS]; /* what the zero point of rows of bytes adds to the sums */
    bool centred;                    /* the weights' zero points are 0 */
} tp_int8_columns;

/* Sums of one panel that wait to become numbers of the result: `done` of `rows` have. */
typedef struct {
    tp_int8_columns columns;
    const int32_t *sums;
    int64_t rows, done;
    int64_t row, first, n; /* where they are written: n columns from `first` on */
} tp_int8_waiting;

/* What a thread has of a product, on its stack: sums that are made, and sums that wait. */
typedef struct tp_int8_part {
    const struct tp_int8_result *to;
    tp_int8_waiting waiting;
    int32_t sums[2][TP_INT8_BLOCK * TP_INT8_COLUMNS];
    int turn; /* which are made */
} tp_int8_part;
/* At most so many rows of sums that wait become numbers. */
void tp_int8_finish(tp_int8_part *part, int64_t rows);

/* Quads of a part of a panel, the tame ones first: for these the sum of two products with any bytes fits into 16 bits.
 */
#define TP_INT8_QUADS 128
typedef struct {
    int64_t tame, count;
    struct {
        int64_t row, panel; /* bytes from the begin of a row, and of the panel */
    } quads[TP_INT8_QUADS];
} tp_int8_order;

/* Products of rows of bytes; `more`: they are added to the sums. Each kind has its bounds. */
typedef struct {
    int64_t rows, quads; /* that are best at once; where there is multiply_mixed at most TP_INT8_QUADS */
    int64_t near;        /* bytes of rows that should stay in the L1 cache while the panels go by; 0: no need */
    int largest;         /* a byte of a row, for `multiply` */
    bool finishes;       /* sums wait, and `multiply` finishes them between its own steps */
    void (*multiply)(tp_int8_part *part, const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more,
                     int32_t *sums);
    void (*done)(void); /* after a thread's last product, before anyone else's code; or NULL */
    /* `multiply` of any bytes, quad by quad in this order; NULL: there is none, or no need. */
    void (*multiply_mixed)(const tp_int8_rows *a, const tp_int8_order *order, int64_t rows, const int8_t *panel,
                           bool more, int32_t *sums);
} tp_int8_bytes;
/* That of CPUs with AVX-512 and more, or NULL. */
const tp_int8_bytes *tp_int8_dots(void);

typedef struct {
    int64_t rows; /* that `multiply` takes at most at once */
    /* Integers less a zero point, one after another. */
    void (*widen)(const void *from, bool is_signed, int64_t n, int32_t zero_point, int16_t *to);
    /* sums[rows][TP_INT8_COLUMNS] of rows with a panel [pieces][quads][TP_INT8_COLUMNS][4]; `more`: added to them. */
    void (*multiply)(const tp_int8_rows *a, int64_t rows, const int8_t *panel, bool more, int32_t *sums);
    /* The same of bytes; NULL: there is nothing quicker than `multiply`. */
    const tp_int8_bytes *(*bytes)(void);
    /* The sums of numbers of 16 bits where each column has its own, beside each other, with [pieces][TP_INT8_COLUMNS].
     */
    void (*multiply_each)(const tp_int8_rows *a, int64_t rows, const int8_t *panel, int32_t *sums);
    /* The sum of each column of a panel, for products of bytes, and which of its quads are not tame. */
    void (*weights)(const int8_t *panel, int64_t quads, int32_t *sums);
    void (*find_wild)(const int8_t *panel, int64_t quads, uint8_t *wild);
    uint8_t (*largest)(const uint8_t *from, int64_t n);
    /* Sums of products with integers that are read from the columns' zero points on. */
    void (*centre)(const tp_int8_rows *a, int64_t rows, const tp_int8_columns *c, int32_t *sums);
    /* (sums + starts + shift) * factor as the nearest integers, from low to high after `zero_point` is added: n columns
     * of rows that lie `step` apart. */
    void (*to_bytes)(const int32_t *sums, const tp_int8_columns *c, int32_t zero_point, int32_t low, int32_t high,
                     int64_t rows, int64_t n, uint8_t *out, int64_t step);
    /* (sums + starts) * factor + shift, rounded once, nothing below `least`; as to_bytes. */
    void (*to_floats)(const int32_t *sums, const tp_int8_columns *c, float least, int64_t rows, int64_t n, float *out,
                      int64_t step);
} tp_product_int8_kernels;

/* What becomes of the sums, and where it is written: [rows, n] numbers. */
typedef struct tp_int8_result {
    const float *scales, *bias;
    const int32_t *zero_points;
    char *out;
    bool is_signed, narrow, relu;
    const tp_int8_bytes *bytes; /* rows are bytes, and the weights' zero points 0; or NULL */
    int32_t *starts;            /* of sums of bytes: what their zero point adds to each column of every panel */
    int64_t starts_count;
    uint8_t *wild; /* of sums by multiply_mixed: which quads of every panel are not tame; else NULL */
    int64_t wild_count;
    bool mixed;
    bool channels; /* each column has its scale and zero point */
    int64_t n, zero_point, out_zero_point;
    float scale, out_scale;
} tp_int8_result;

tp_int8_result tp_int8_result_of(tp_tensor *scales, tp_tensor *zero_points, tp_tensor *bias, double scale,
                                 int64_t zero_point, double out_scale, int64_t out_zero_point, bool relu,
                                 tp_tensor *out);
/* Sets `bytes` where rows may stay the bytes that they are, which is quicker, if their number is worth it. */
void tp_int8_stay_bytes(tp_int8_result *to, const tp_tensor *x, const tp_tensor *panels, const tp_tensor *zero_points,
                        int64_t rows);
/* Makes the starts of that many panels, of so many quads each, if rows are bytes; -1 with an error set if memory ran
 * out. */
int tp_int8_make_starts(tp_int8_result *to, const int8_t *panels, int64_t count, int64_t quads);
void tp_int8_free_starts(tp_int8_result *to);
/* A thread begins with its panels, and has worked them off. */
static inline void tp_int8_begin(tp_int8_part *part, const tp_int8_result *to) {
    part->to = to, part->turn = 0, part->waiting.rows = part->waiting.done = 0;
}
void tp_int8_done(tp_int8_part *part);
/* Lines of rows, which begin `line` from each other, with one panel, the `number`-th, whose columns are
 * first .. first + n of the result; they become its rows from `row` on. `each`: as multiply_each. */
typedef struct {
    tp_int8_rows rows; /* of the first line */
    int64_t count;     /* rows of a line */
    int64_t lines, line;
} tp_int8_lines;
void tp_int8_panel(tp_int8_part *part, const tp_int8_lines *a, const int8_t *panel, int64_t number, bool each,
                   int64_t row, int64_t first, int64_t n);
