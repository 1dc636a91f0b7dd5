/* scan.cl: running sums, products, extremes and logarithms of sums along a dimension.
 *
 * Defined in front: X_* (element.h) in the dtype of in and out, T, OP_<name>; A, what is added up or compared in, with
 * TO_A and TO_T; COLUMNS, GROUP.
 *
 * The data are (outer, n, inner). A line's n steps are cut into parts of `part`. With one part `scan` does all; else
 * fold_parts first folds each part by itself, join_parts turns these into what lies before each part, and scan starts
 * from there. A work-item has COLUMNS neighbouring lines, or a work-group shares a part of one line (inner 1). Which
 * elements are joined together depends on shapes only, so results are the same in every run. */
#include "tensorpy/math.h"

#if defined(OP_CUMMAX) || defined(OP_CUMMIN)
#define PLACES
typedef struct {
    A best;
    long at; /* -1: nothing yet */
} acc_t;
#ifdef OP_CUMMAX
#define BEATS(x, best) ((x) >= (best) || (x) != (x))
#else
#define BEATS(x, best) ((x) <= (best) || (x) != (x))
#endif
static inline acc_t nothing(void) {
    acc_t a = {(A)0, -1};
    return a;
}
static inline acc_t element(X_S x, long i) {
    acc_t a = {TO_A(X_LOAD(x)), i};
    return a;
}
/* What comes later is the place of equal values; a NaN stays. */
static inline acc_t join(acc_t a, acc_t b) {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    bool later = a.best == a.best ? BEATS(b.best, a.best) : b.best != b.best;
    return later ? b : a;
}
#else
typedef A acc_t;
static inline acc_t element(X_S x, long i) { return TO_A(X_LOAD(x)); }
#if defined(OP_CUMSUM)
static inline acc_t nothing(void) { return (A)(0); }
static inline acc_t join(acc_t a, acc_t b) { return a + b; }
#elif defined(OP_CUMPROD)
static inline acc_t nothing(void) { return ONE; }
static inline acc_t join(acc_t a, acc_t b) { return MUL(a, b); }
#elif defined(OP_LOGCUMSUMEXP) && defined(COMPLEX)
static inline acc_t nothing(void) { return (A)(-INFINITY, 0); }
/* log(exp(a) + exp(b)), from the one with the larger real part. */
static inline acc_t join(acc_t a, acc_t b) {
    if (isnan(a.x) || isnan(a.y) || isnan(b.x) || isnan(b.y)) {
        if (a.x == -INFINITY || b.x == -INFINITY) return a.x == -INFINITY ? b : a;
        return (A)(NAN, NAN);
    }
    if (a.x == -INFINITY) return b;
    if (b.x == -INFINITY) return a;
    const A high = a.x >= b.x ? a : b, low = a.x >= b.x ? b : a;
    if (isinf(high.x)) return high;
    return high + TP_PASTE(tp_log_, COMPLEX)((A)(1, 0) + TP_PASTE(tp_exp_, COMPLEX)(low - high));
}
#else
static inline acc_t nothing(void) { return -INFINITY; }
static inline acc_t join(acc_t a, acc_t x) {
    const A high = x > a || x != x ? x : a, low = high == a ? x : a;
    if (x != x || a != a) return NAN;
    return isinf(high) && high == low ? high : high + log1p(exp(low - high));
}
#endif
#endif

#ifdef PLACES
#define VALUE(a) ((a).best)
#define PUT(i, a) (out[i] = X_STORE(TO_T((a).best)), at[i] = (a).at)
#else
#define VALUE(a) (a)
#define PUT(i, a) (out[i] = X_STORE(TO_T(a)))
#endif

/* Unit u is part u % parts of column block u / parts; a block is COLUMNS lines of one outer index. */
#define GEOMETRY long outer, long n, long inner, long part, long parts
#define FIND_UNIT                                                                     \
    long blocks = (inner + COLUMNS - 1) / COLUMNS, block = unit / parts;            \
    if (block >= outer * blocks) return;                                              \
    long column = block % blocks * COLUMNS, begin = unit % parts * part, end = min(n, begin + part); \
    int width = (int)min((long)COLUMNS, inner - column);                              \
    long first = block / blocks * n * inner + column;

#if GROUP > 1
#define UNIT get_group_id(0)
/* The joined values of the group's items before this one, inclusive, in shared memory. */
static inline void scan_group(__local acc_t *shared, int id) {
    for (int reach = 1; reach < GROUP; reach *= 2) {
        acc_t a = shared[id];
        if (id >= reach) a = join(shared[id - reach], a);
        barrier(CLK_LOCAL_MEM_FENCE);
        shared[id] = a;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
/* A tile: EACH neighbouring elements for every work-item, which come and go through local memory, where neighbours read
 * neighbours. PLACE leaves a gap after each work-item's, so that these lie in different banks. */
#define TILE (GROUP * EACH)
#define PLACE(e) ((e) + (e) / EACH)
static inline void load_tile(__local X_S *tile, __global const X_S *in, long i, long end, int id) {
    for (int e = id; e < TILE && i + e < end; e += GROUP) tile[PLACE(e)] = in[i + e];
    barrier(CLK_LOCAL_MEM_FENCE);
}
/* What the work-item's elements, from the first-th of the tile on, are together. */
static inline acc_t fold_tile(__local const X_S *tile, int first, long i, long end) {
    acc_t all = nothing();
    for (int e = first; e < first + EACH && i + e < end; e++) all = join(all, element(tile[PLACE(e)], i + e));
    return all;
}
#else
#define UNIT get_global_id(0)
#endif

/* Sums and products in lanes: one after the other is what a compiler cannot reorder. */
#if !defined(PLACES) && !defined(OP_LOGCUMSUMEXP) && COLUMNS == 1 && GROUP == 1
#define LANES 8
#endif

__kernel void fold_parts(__global const X_S *in, long in_offset, __global acc_t *partial, long partial_offset,
                         GEOMETRY) {
    long unit = UNIT;
    FIND_UNIT
    in += in_offset + first;
    partial = (__global acc_t *)((__global uchar *)partial + partial_offset);
#if GROUP > 1
    __local acc_t shared[GROUP];
    __local X_S tile[PLACE(TILE)];
    int id = get_local_id(0);
    acc_t all = nothing();
    for (long i = begin; i < end; i += TILE) {
        load_tile(tile, in, i, end, id);
        shared[id] = fold_tile(tile, id * EACH, i, end);
        for (int reach = 1; reach < GROUP; reach *= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            if (id % (2 * reach) == 0) shared[id] = join(shared[id], shared[id + reach]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        all = join(all, shared[0]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (id == 0) partial[unit] = all;
#elif defined(LANES)
    acc_t lane[LANES];
    long i = begin;
    for (int k = 0; k < LANES; k++) lane[k] = nothing();
    for (; i + LANES <= end; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = join(lane[k], element(in[(i + k) * inner], i));
    for (; i < end; i++) lane[0] = join(lane[0], element(in[i * inner], i));
    for (int k = 1; k < LANES; k++) lane[0] = join(lane[0], lane[k]);
    partial[unit] = lane[0];
#else
    acc_t acc[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) acc[k] = nothing();
    for (long i = begin; i < end; i++)
        for (int k = 0; k < width; k++) acc[k] = join(acc[k], element(in[i * inner + k], i));
    for (int k = 0; k < COLUMNS; k++) partial[unit * COLUMNS + k] = acc[k];
#endif
}

/* What lies before each part, from what the parts are: a work-item to a line, or a group. */
__kernel void join_parts(__global acc_t *partial, long partial_offset, long lines, long parts) {
    long line = UNIT;
    if (line >= lines) return;
    partial = (__global acc_t *)((__global uchar *)partial + partial_offset);
    partial += line / COLUMNS * parts * COLUMNS + line % COLUMNS;
    acc_t all = nothing();
#if GROUP > 1
    __local acc_t shared[GROUP];
    int id = get_local_id(0);
    for (long i = 0; i < parts; i += GROUP) {
        shared[id] = i + id < parts ? partial[i + id] : nothing();
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_group(shared, id);
        if (i + id < parts) partial[i + id] = id ? join(all, shared[id - 1]) : all;
        all = join(all, shared[GROUP - 1]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (long i = 0; i < parts; i++) {
        acc_t mine = partial[i * COLUMNS];
        partial[i * COLUMNS] = all;
        all = join(all, mine);
    }
#endif
}

__kernel void scan(__global const X_S *in, long in_offset, __global X_S *out, long out_offset, __global long *at,
                   long at_offset, __global const acc_t *partial, long partial_offset, GEOMETRY) {
    long unit = UNIT;
    FIND_UNIT
    in += in_offset + first;
    out += out_offset + first;
    at += at_offset + first;
    partial = (__global const acc_t *)((__global const uchar *)partial + partial_offset);
#if GROUP > 1
    __local acc_t shared[GROUP];
    __local X_S tile[PLACE(TILE)];
#ifdef PLACES
    __local long found[PLACE(TILE)];
#endif
    int id = get_local_id(0);
    acc_t before = parts > 1 ? partial[unit] : nothing();
    for (long i = begin; i < end; i += TILE) {
        load_tile(tile, in, i, end, id);
        shared[id] = fold_tile(tile, id * EACH, i, end);
        barrier(CLK_LOCAL_MEM_FENCE);
        scan_group(shared, id);
        acc_t a = id ? join(before, shared[id - 1]) : before;
        for (int e = id * EACH; e < (id + 1) * EACH && i + e < end; e++) {
            a = join(a, element(tile[PLACE(e)], i + e));
            tile[PLACE(e)] = X_STORE(TO_T(VALUE(a)));
#ifdef PLACES
            found[PLACE(e)] = a.at;
#endif
        }
        before = join(before, shared[GROUP - 1]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = id; e < TILE && i + e < end; e += GROUP) {
            out[i + e] = tile[PLACE(e)];
#ifdef PLACES
            at[i + e] = found[PLACE(e)];
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#elif COLUMNS == 1
    acc_t acc = parts > 1 ? partial[unit] : nothing();
    for (long i = begin; i < end; i++) {
        acc = join(acc, element(in[i * inner], i));
        PUT(i * inner, acc);
    }
#else
    acc_t acc[COLUMNS];
    for (int k = 0; k < COLUMNS; k++) acc[k] = parts > 1 ? partial[unit * COLUMNS + k] : nothing();
    if (width == COLUMNS) {
        for (long i = begin; i < end; i++)
            for (int k = 0; k < COLUMNS; k++) {
                acc[k] = join(acc[k], element(in[i * inner + k], i));
                PUT(i * inner + k, acc[k]);
            }
        return;
    }
    for (long i = begin; i < end; i++)
        for (int k = 0; k < width; k++) {
            acc[k] = join(acc[k], element(in[i * inner + k], i));
            PUT(i * inner + k, acc[k]);
        }
#endif
}
