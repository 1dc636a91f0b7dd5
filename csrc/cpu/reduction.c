/* reduction.c: see reduction.h.
 *
 * The plan splits the input's dimensions into kept and reduced ones, each list ordered by stride and merged. Outputs
 * are worked on in tiles along the first kept dimension; the reduced space of a tile is cut into leaves, runs along the
 * first reduced dimension. A leaf is folded in one of two ways:
 *   - inner: the reduced dimension lies closest in memory; each output of the tile folds its own run;
 *   - outer: the kept one does; the tile's accumulators take row after row, which vectorises across them.
 * Rows of few kept elements without gaps between them are widened: several rows count as one, and the accumulators of
 * the same output are combined at the end.
 *
 * Leaves go onto a stack of tiles of accumulators in the manner of a binary counter. Where there are few outputs, the
 * leaves are dealt out in parts of a fixed size; the parts' tiles are kept and combined by the caller, in the same
 * manner.
 *
 * Where a source makes the elements, a leaf's are made into a buffer that is laid out as the leaf would be in memory.
 */
#include "cpu/reduction.h"

#include "core/alloc.h"
#include "core/host.h"
#include "core/parallel.h"
#include "core/scalar_math.h"
#include "core/tls.h"
#include "cpu/kernels.h"
#include "cpu/run.h"
#include "core/memory.h"
#include "iter/dims.h"
#include "prim/transfer.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define TILE_BYTES 4096     /* of accumulators in a tile, */
#define TILE_OUTPUTS 512    /* but so many outputs at least */
#define PART_ELEMENTS 65536 /* input elements in a part, at least */
#define MANY_TILES 32       /* with so many tiles, parts are not needed to keep threads busy */
#define MAX_PARTS 64
#define LOOK_ELEMENTS (1 << 20) /* input elements between two looks for signals, at least */
#define BLOCK 1024              /* elements converted at a time */
#define LAID_LEAST 16           /* elements with gaps that are worth being laid side by side */
#define ROW_SET 4               /* rows that a fold may add up first: pieces of rows are whole sets of them */
#define LEAF_ROWS 64            /* rows of a leaf, by default */
#define SHORT_RUN 32            /* below this a run is better taken as rows */
#define NARROW 64               /* rows below this are widened, to about WIDE elements */
#define WIDE 256
#define MAX_SLOTS 48 /* the stack: one slot per bit of the number of leaves */
#define STACK_BYTES 16384

/* ---- the plan ---- */

typedef struct {
    const tp_reduction *r;
    const void *params;
    char *in, *out;
    tp_dtype in_dtype, out_dtype;
    tp_dims kept, reduced;
    bool rows;            /* fold by rows (outer), not by runs (inner) */
    int64_t widen;        /* rows of the input in a row that is folded; the tile has as many times its outputs */
    int64_t count;        /* elements per output */
    int64_t width, tiles; /* outputs in a tile, tiles along the first kept dimension times the other kept ones */
    int64_t tiles_across; /* tiles along the first kept dimension */
    int64_t leaf;         /* elements of the first reduced dimension in a leaf */
    int64_t leaves_along, leaves; /* leaves along the first reduced dimension, and in all */
    int64_t look_leaves;          /* between two looks for signals */
    int64_t parts, part_leaves;
    char *partials;                 /* tile accumulators of each part, if there are several */
    const tp_reduce_source *source; /* of the elements, or NULL; `in` only counts them, then */
} plan;

/* From the last dimension, so that among equal strides the last one stays first. Reduced dimensions are walked forward;
 * the order inside them is free unless the reduction is indexed. */
static void split_dims(plan *p, const tp_tensor *self, uint64_t mask, const tp_tensor *out) {
    int64_t in_item = tp_itemsize(p->in_dtype), out_item = tp_itemsize(p->out_dtype);
    bool keepdim = out->ndim == self->ndim;
    int kept = out->ndim;
    for (int d = self->ndim - 1; d >= 0; d--) {
        bool reduce = mask >> d & 1;
        int64_t size = self->sizes[d], in = self->strides[d] * in_item;
        if (!reduce || keepdim) kept--;
        if (size == 1) continue;
        if (!reduce) {
            tp_dims_add(&p->kept, size, in, out->strides[kept] * out_item);
            continue;
        }
        if (in < 0 && !p->r->indexed) {
            p->in += (size - 1) * in;
            in = -in;
        }
        tp_dims_add(&p->reduced, size, in, 0);
    }
    tp_dims_merge(&p->kept);
    tp_dims_merge(&p->reduced);
}

/* Takes `widen` rows as one where rows of few elements follow each other without a gap. */
static void widen_rows(plan *p) {
    tp_dims *k = &p->kept, *r = &p->reduced;
    p->widen = 1;
    if (p->r->indexed || k->size[0] >= NARROW || k->in[0] != tp_itemsize(p->in_dtype)) return;
    if (r->in[0] != k->size[0] * k->in[0] || r->size[0] < 4 * WIDE) return;
    int64_t most = tp_at_most(WIDE, TILE_BYTES / p->r->size) / k->size[0], widen = most;
    while (widen > most / 2 && r->size[0] % widen) widen--; /* a divisor, if there is one close by */
    p->widen = tp_at_least(widen, 1);
}

/* Runs where the reduced dimension is the closer one and long enough, or where rows would be too short to vectorise. */
static bool prefers_rows(const plan *p) {
    const tp_dims *k = &p->kept, *r = &p->reduced;
    if (k->size[0] == 1) return false;
    if (llabs(r->in[0]) < llabs(k->in[0])) return r->size[0] < SHORT_RUN && k->size[0] >= 4;
    return k->size[0] >= 8 || p->widen > 1 || r->size[0] < k->size[0];
}

static void cut(plan *p) {
    int64_t per_output = p->rows ? p->widen : 1;
    int64_t outputs = tp_at_least(TILE_BYTES / p->r->size, TILE_OUTPUTS);
    p->width = tp_at_most(p->kept.size[0], tp_at_least(outputs / per_output, 1));
    if (!p->rows) p->width = tp_at_most(p->width, tp_at_least(PART_ELEMENTS / tp_at_least(p->reduced.size[0], 16), 1));
    p->tiles_across = tp_divide_up(p->kept.size[0], p->width);
    p->tiles = p->tiles_across * (tp_dims_numel(&p->kept) / p->kept.size[0]);
    p->leaf = !p->rows ? (p->r->leaf ? p->r->leaf : TP_REDUCE_LEAF)
                       : (p->r->leaf_rows ? p->r->leaf_rows : LEAF_ROWS) * p->widen;
    p->leaves_along = tp_divide_up(p->reduced.size[0], p->leaf);
    p->leaves = p->leaves_along * (tp_dims_numel(&p->reduced) / p->reduced.size[0]);
    int64_t elements = p->width * tp_at_most(p->reduced.size[0], p->leaf); /* in a leaf of a tile */
    p->look_leaves = LOOK_ELEMENTS / tp_at_least(elements, 1) + 1;
    p->parts = p->tiles >= MANY_TILES ? 1 : tp_at_most(p->leaves * elements / PART_ELEMENTS, MAX_PARTS);
    p->parts = tp_at_least(p->parts, 1);
    p->part_leaves = tp_divide_up(p->leaves, p->parts);
    p->parts = tp_divide_up(p->leaves, p->part_leaves);
    if (p->count == 0) p->leaves = p->part_leaves = 0;
}

/* ---- a leaf ---- */

typedef struct {
    const plan *p;
    tp_loop_fn cast; /* NULL: the input is what the reduction reads, side by side where that matters */
    tp_loop_fn cast_out;
    char *made;  /* a leaf's elements, if a source makes them, */
    void *state; /* and its own */
    alignas(64) char block[BLOCK * sizeof(tp_complex128)];
} worker;

static void convert(const worker *w, char *to, const char *from, int64_t stride, int64_t n) {
    char *const data[] = {to, (char *)from};
    const int64_t strides[] = {tp_itemsize(w->p->r->in), stride};
    w->cast(data, strides, n, NULL);
}

static void fold_runs(worker *w, char *acc, int64_t n, const char *in, int64_t length, int64_t index) {
    const tp_reduction *r = w->p->r;
    int64_t stride = w->p->kept.in[0], run_stride = w->p->reduced.in[0];
    if (!w->cast) {
        r->fold_runs(acc, n, in, stride, run_stride, length, index);
        return;
    }
    int64_t item = tp_itemsize(r->in), some = tp_at_least(BLOCK / length, 1); /* short runs are folded together */
    for (int64_t run = 0; run < n; run += some)
        for (int64_t i = 0; i < length; i += BLOCK) {
            int64_t count = tp_at_most(length - i, BLOCK), m = tp_at_most(n - run, some);
            for (int64_t k = 0; k < m; k++)
                convert(w, w->block + k * count * item, in + (run + k) * stride + i * run_stride, run_stride, count);
            r->fold_runs(acc + run * r->size, m, w->block, count * item, item, count, index + i);
        }
}

static void fold_rows(worker *w, char *acc, int64_t n, const char *in, int64_t row_stride, int64_t rows,
                      int64_t index) {
    const tp_reduction *r = w->p->r;
    int64_t stride = w->p->kept.in[0];
    if (!w->cast) {
        r->fold_rows(acc, n, in, stride, row_stride, rows, index);
        return;
    }
    int64_t item = tp_itemsize(r->in);
    for (int64_t i = 0, count; i < n; i += count) {
        count = tp_at_most(n - i, BLOCK / ROW_SET);
        int64_t some = BLOCK / count / ROW_SET * ROW_SET; /* short rows are folded together */
        for (int64_t row = 0; row < rows; row += some) {
            int64_t m = tp_at_most(rows - row, some);
            for (int64_t k = 0; k < m; k++)
                convert(w, w->block + k * count * item, in + (row + k) * row_stride + i * stride, stride, count);
            r->fold_rows(acc + i * r->size, count, w->block, item, count * item, m, index + row);
        }
    }
}

/* Rows that count as several: whole ones, then what is left, each into its own accumulators. */
static void fold_wide_rows(worker *w, char *acc, const char *in, int64_t rows) {
    const plan *p = w->p;
    int64_t n = p->kept.size[0], step = p->reduced.in[0], whole = rows / p->widen, rest = rows % p->widen;
    if (whole) fold_rows(w, acc, n * p->widen, in, step * p->widen, whole, 0);
    if (rest) fold_rows(w, acc, n * rest, in + whole * p->widen * step, 0, 1, 0);
}

/* Makes n elements from an address on that would be the input's. */
static const char *make(worker *w, const char *in, char *buffer, int64_t n) {
    const tp_reduce_source *source = w->p->source;
    return source->make(source->context, w->state, buffer, (in - w->p->in) / tp_itemsize(w->p->in_dtype), n);
}

static void fold_made_runs(worker *w, char *acc, int64_t width, const char *in, int64_t length, int64_t index) {
    for (int64_t run = 0; run < width; run++, in += w->p->kept.in[0]) {
        const char *made = make(w, in, w->made, length);
        fold_runs(w, acc + run * w->p->r->size, 1, made, length, index);
    }
}

static void fold_made_rows(worker *w, char *acc, int64_t width, const char *in, int64_t rows, int64_t index) {
    int64_t step = w->p->reduced.in[0], row_bytes = width * tp_itemsize(w->p->in_dtype);
    const char *made = step == row_bytes ? make(w, in, w->made, rows * width) : w->made;
    for (int64_t row = 0; step != row_bytes && row < rows; row++) {
        char *to = w->made + row * row_bytes;
        const char *from = make(w, in + row * step, to, width);
        if (from != to) tp_copy_bytes(to, from, (size_t)row_bytes);
    }
    if (w->p->widen > 1) fold_wide_rows(w, acc, made, rows);
    else fold_rows(w, acc, width, made, row_bytes, rows, index);
}

static void fold_leaf(worker *w, char *acc, int64_t width, const char *in, int64_t leaf) {
    const plan *p = w->p;
    int64_t chunk = leaf % p->leaves_along, rest = leaf / p->leaves_along, begin = chunk * p->leaf;
    int64_t n = tp_at_most(p->reduced.size[0] - begin, p->leaf),
            index = leaf / p->leaves_along * p->reduced.size[0] + begin;
    in += begin * p->reduced.in[0];
    for (int d = 1; d < p->reduced.n; d++) {
        in += rest % p->reduced.size[d] * p->reduced.in[d];
        rest /= p->reduced.size[d];
    }
    if (p->source && p->rows) fold_made_rows(w, acc, width, in, n, index);
    else if (p->source) fold_made_runs(w, acc, width, in, n, index);
    else if (p->rows && p->widen > 1) fold_wide_rows(w, acc, in, n);
    else if (p->rows) fold_rows(w, acc, width, in, p->reduced.in[0], n, index);
    else fold_runs(w, acc, width, in, n, index);
}

/* ---- a tile ---- */

/* Accumulators in a slot of the stack. */
static int64_t slot_width(const plan *p) { return p->width * p->widen; }

static int slots_for(int64_t leaves) {
    int slots = 1;
    while (leaves >>= 1) slots++;
    return slots;
}

/* The pair of slots that a binary counter merges after its `done`-th step, and at the end all that are left. */
static int merge_slots(const tp_reduction *r, char *stack, int64_t slot_bytes, int64_t n, int top, int64_t done,
                       bool last) {
    for (; top > 1 && (last || !(done & 1)); done >>= 1, top--)
        r->combine(stack + (top - 2) * slot_bytes, stack + (top - 1) * slot_bytes, n);
    return top;
}

/* Reduces leaves [begin, end) of a tile into the first slot; fails if a signal ends it. */
static int reduce_leaves(worker *w, char *stack, int64_t width, const char *in, int64_t begin, int64_t end) {
    const plan *p = w->p;
    int64_t n = width * p->widen, slot_bytes = slot_width(p) * p->r->size;
    int top = 0;
    if (begin == end) p->r->init(stack, n);
    for (int64_t leaf = begin; leaf < end; leaf++) {
        char *slot = stack + top++ * slot_bytes;
        p->r->init(slot, n);
        fold_leaf(w, slot, width, in, leaf);
        if (tp_unlikely(p->source && tp_tls.error_class != TP_NoError)) return -1;
        bool settled = p->r->settled && !(p->source && p->source->whole) && p->r->settled(slot, n);
        bool last = leaf + 1 == end || settled;
        top = merge_slots(p->r, stack, slot_bytes, n, top, leaf - begin + 1, last);
        if (last) return 0;
        if ((leaf - begin + 1) % p->look_leaves == 0 && tp_host_look() < 0) return -1;
    }
    return 0;
}

/* Combines what widening has spread out. */
static void narrow(const plan *p, char *acc) {
    int64_t n = p->kept.size[0];
    for (int64_t rows = p->widen; rows > 1;) {
        int64_t half = (rows + 1) / 2;
        p->r->combine(acc, acc + half * n * p->r->size, (rows - half) * n);
        rows = half;
    }
}

static void write_results(worker *w, char *out, char *acc, int64_t width) {
    const plan *p = w->p;
    if (p->widen > 1) narrow(p, acc);
    if (!w->cast_out) {
        p->r->finish(out, acc, width, p->count, p->params);
        return;
    }
    int64_t itemsize = tp_itemsize(p->r->out);
    for (int64_t i = 0; i < width; i += BLOCK) {
        int64_t n = tp_at_most(width - i, BLOCK);
        p->r->finish(w->block, acc + i * p->r->size, n, p->count, p->params);
        char *const data[] = {out + i * p->kept.out[0], w->block};
        const int64_t strides[] = {p->kept.out[0], itemsize};
        w->cast_out(data, strides, n, NULL);
    }
}

/* Where tile t begins in the input and the output, and how many outputs it has. */
static int64_t locate_tile(const plan *p, int64_t t, char **in, char **out) {
    int64_t first = t % p->tiles_across * p->width, rest = t / p->tiles_across;
    *in = p->in + first * p->kept.in[0];
    *out = p->out + first * p->kept.out[0];
    for (int d = 1; d < p->kept.n; d++) {
        *in += rest % p->kept.size[d] * p->kept.in[d];
        *out += rest % p->kept.size[d] * p->kept.out[d];
        rest /= p->kept.size[d];
    }
    return tp_at_most(p->kept.size[0] - first, p->width);
}

static bool is_of(const tp_reduction *r, const void *table, size_t bytes) {
    return (uintptr_t)r - (uintptr_t)table < bytes;
}

/* Whether elements with gaps are folded as fast as others: sums and moments have loops for them, others end early. */
static bool takes_gaps(const tp_reduction *r) {
    return r->settled || is_of(r, tp_cpu.reduce, sizeof *tp_cpu.reduce) ||
           is_of(r, tp_cpu.moments, sizeof *tp_cpu.moments);
}

/* Whether the elements of a run with gaps between them are laid side by side, where runs are folded by vectors. */
static bool lays_together(const plan *p) {
    bool has_gaps = p->reduced.in[0] != tp_itemsize(p->in_dtype);
    return has_gaps && !p->rows && !takes_gaps(p->r) && !p->source && p->reduced.size[0] >= LAID_LEAST;
}

static void start_worker(worker *w, const plan *p) {
    const tp_reduction *r = p->r;
    w->p = p;
    w->made = NULL;
    w->cast = p->in_dtype == r->in && !lays_together(p) ? NULL : tp_cast_loop(p->in_dtype, r->in);
    bool direct = p->out_dtype == r->out && (p->width == 1 || p->kept.out[0] == tp_itemsize(r->out));
    w->cast_out = direct ? NULL : tp_cast_loop(r->out, p->out_dtype);
}

static int run_tile(worker *w, char *stack, int64_t unit) {
    const plan *p = w->p;
    char *in, *out;
    int64_t part = unit % p->parts, begin = part * p->part_leaves, width = locate_tile(p, unit / p->parts, &in, &out);
    if (reduce_leaves(w, stack, width, in, begin, tp_at_most(begin + p->part_leaves, p->leaves)) < 0) return -1;
    int64_t slot_bytes = slot_width(p) * p->r->size;
    if (p->parts > 1) memcpy(p->partials + unit * slot_bytes, stack, (size_t)slot_bytes);
    else write_results(w, out, stack, width);
    return 0;
}

/* The bytes of the buffer for what a source makes of a leaf, in whole cache lines. */
static size_t leaf_bytes(const plan *p) {
    int64_t elements = tp_at_most(p->leaf, p->reduced.size[0]) * (p->rows ? p->width : 1);
    return (size_t)(elements * tp_itemsize(p->in_dtype) + 63) & ~(size_t)63;
}

static void run_units(int64_t begin, int64_t end, void *context) {
    const plan *p = context;
    worker w;
    alignas(64) char small[STACK_BYTES];
    size_t bytes = (size_t)(slots_for(p->part_leaves) * slot_width(p) * p->r->size);
    char *stack = bytes <= sizeof small ? small : tp_alloc(bytes);
    if (!stack) return;
    start_worker(&w, p);
    size_t room = p->source ? leaf_bytes(p) + p->source->state : 0;
    if (!room || (w.made = tp_alloc(room))) {
        w.state = room ? w.made + leaf_bytes(p) : NULL;
        for (int64_t unit = begin; unit < end && run_tile(&w, stack, unit) == 0; unit++) {
        }
    }
    tp_free(w.made, room);
    if (stack != small) tp_free(stack, bytes);
}

/* Combines the parts of each tile, in the first parts' place. */
static void combine_parts(plan *p) {
    worker w;
    start_worker(&w, p);
    int64_t slot_bytes = slot_width(p) * p->r->size;
    for (int64_t t = 0; t < p->tiles; t++) {
        char *in, *out, *tile = p->partials + t * p->parts * slot_bytes;
        int64_t width = locate_tile(p, t, &in, &out);
        for (int64_t step = 1; step < p->parts; step *= 2)
            for (int64_t i = 0; i + step < p->parts; i += 2 * step)
                p->r->combine(tile + i * slot_bytes, tile + (i + step) * slot_bytes, width * p->widen);
        write_results(&w, out, tile, width);
    }
}

static int run_plan(plan *p) {
    int64_t units = p->tiles * p->parts, total = tp_dims_numel(&p->kept) * p->count;
    int64_t grain = TP_GRAIN / tp_at_least(total / units, 1) + 1;
    size_t bytes = p->parts > 1 ? (size_t)(units * slot_width(p) * p->r->size) : 0;
    if (bytes && !(p->partials = tp_alloc(bytes))) return -1;
    void *lock = total >= TP_GRAIN ? tp_host_lock_release() : NULL;
    int status = tp_parallel_for(units, grain, run_units, p);
    if (status == 0 && p->parts > 1) combine_parts(p);
    tp_host_lock_acquire(lock);
    tp_free(p->partials, bytes);
    return status;
}

/* ---- entries ---- */

/* A small contiguous tensor as a whole: no plan. */
static bool is_small_whole(const tp_reduction *r, const tp_tensor *self, const tp_tensor *out) {
    return out->numel == 1 && self->numel <= TP_REDUCE_LEAF && tp_is_contiguous(self) &&
           (tp_dtype)self->dtype == r->in && (tp_dtype)out->dtype == r->out;
}

static int reduce_small_whole(const tp_reduction *r, const tp_tensor *self, tp_tensor *out, const void *params) {
    alignas(64) char acc[64];
    r->init(acc, 1);
    if (self->numel) r->fold_runs(acc, 1, tp_data(self), 0, tp_itemsize(r->in), self->numel, 0);
    r->finish(tp_data(out), acc, 1, self->numel, params);
    return 0;
}

static void start_plan(plan *p, const tp_reduction *r, const tp_tensor *self, uint64_t mask, tp_tensor *out,
                       const void *params, const tp_reduce_source *source) {
    p->r = r;
    p->params = params;
    p->in = source ? (char *)p : tp_data(self);
    p->out = tp_data(out);
    p->in_dtype = (tp_dtype)self->dtype;
    p->out_dtype = (tp_dtype)out->dtype;
    p->kept.n = p->reduced.n = 0;
    p->partials = NULL;
    p->source = source;
    split_dims(p, self, mask, out);
    p->count = tp_dims_numel(&p->reduced);
    if (p->count == 0) p->reduced = (tp_dims){.n = 1, .size = {1}}; /* cut as if there were one element, but no leaf */
    widen_rows(p);
    p->rows = prefers_rows(p);
    if (!p->rows) p->widen = 1;
    cut(p);
}

static uint64_t mask_of(tp_ints dim) {
    uint64_t mask = 0;
    for (int64_t i = 0; i < dim.size; i++) mask |= UINT64_C(1) << dim.data[i];
    return mask;
}

static int __attribute__((noinline)) reduce_by_plan(const tp_reduction *r, const tp_tensor *self, uint64_t mask,
                                                    tp_tensor *out, const void *params) {
    plan p;
    start_plan(&p, r, self, mask, out, params, NULL);
    return run_plan(&p);
}

static int refuse(const tp_tensor *self) {
    return tp_fail(TP_NotImplementedError, "a reduction is not implemented for '%s'",
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

int tp_reduce(const tp_reduction *r, const tp_tensor *self, tp_ints dim, tp_tensor *out, const void *params) {
    if (tp_unlikely(!r->init)) return refuse(self);
    if (is_small_whole(r, self, out)) return reduce_small_whole(r, self, out, params);
    if (r->indexed && out->numel == self->numel) return tp_fill_data(out, TP_SCALAR_I(0)); /* of the only element */
    return reduce_by_plan(r, self, mask_of(dim), out, params);
}

bool tp_reduce_made(const tp_reduction *r, const tp_tensor *self, const tp_reduce_source *source, tp_ints dim,
                    tp_tensor *out, int *status) {
    plan p;
    if (!r->init) {
        *status = refuse(self);
        return true;
    }
    start_plan(&p, r, self, mask_of(dim), out, NULL, source);
    int64_t item = tp_itemsize(p.in_dtype);
    bool in_order = p.rows ? p.kept.in[0] == item || p.kept.size[0] == 1 : p.reduced.in[0] == item;
    if (!in_order || r->indexed || !p.leaves || !self->numel) return false;
    *status = run_plan(&p);
    return true;
}
