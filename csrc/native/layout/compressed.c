/* compressed.c: sparse matrices whose rows, or columns, follow each other: CSR, CSC, and in blocks BSR, BSC.
 *
 * A line is a row of CSR and BSR, a column of CSC and BSC, counted in blocks; compressed[i] says where line i begins,
 * plain[k] where in its line value k (a number, or a block) stands. Dimensions in front of the last of both, and of the
 * values, are those of a batch of matrices, which have as many values each; dimensions of the values behind these and
 * the block's two are dense. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"

static bool by_rows(tp_layout layout) { return layout == TP_SPARSE_CSR || layout == TP_SPARSE_BSR; }
static bool in_blocks(tp_layout layout) { return layout == TP_SPARSE_BSR || layout == TP_SPARSE_BSC; }

/* _compressed(Tensor compressed, Tensor plain, Tensor(a) values, int[] size, Layout layout) -> Tensor(a): what is given
 * was checked. */
tp_tensor *_compressed_composite(tp_tensor *compressed, tp_tensor *plain, tp_tensor *values, tp_ints size,
                                 tp_layout layout) {
    int blocks = in_blocks(layout) ? 2 : 0;
    bool fits = layout >= TP_SPARSE_CSR && compressed->ndim == plain->ndim && plain->ndim >= 1 &&
                values->ndim >= plain->ndim + blocks && size.size == values->ndim - blocks + 1;
    for (int d = 0; fits && d < plain->ndim; d++) fits = values->sizes[d] == plain->sizes[d];
    if (!fits)
        return tp_fail_null(TP_RuntimeError, "_compressed: parts do not fit each other, or a layout that has none");
    return tp_of_parts(layout, (tp_tensor *[]){compressed, plain, values}, NULL, size);
}

static tp_tensor *flat_longs(tp_tensor *t) {
    tp_autoref *longs = tp_to_dtype(t, TP_INT64, false, false, TP_NO_FORMAT);
    return longs ? tp_reshape(longs, TP_INTS(-1)) : NULL;
}

/* Block numbers (n) as the numbers of all their elements along the dimension, (n * blocks[0] * blocks[1]). */
static tp_tensor *spread(tp_tensor *numbers, const int64_t blocks[2], int along) {
    int64_t own[3] = {1, 1, 1}, whole[3] = {numbers->numel, blocks[0], blocks[1]};
    own[along + 1] = blocks[along];
    tp_autoref *column = tp_reshape(numbers, TP_INTS(-1, 1, 1));
    tp_autoref *first = column ? tp_mul_Scalar(column, TP_SCALAR_I(blocks[along])) : NULL;
    tp_autoref *steps = first ? tp_arange(TP_SCALAR_I(blocks[along]), TP_INT64, TP_STRIDED, numbers->device, -1) : NULL;
    tp_autoref *shaped = steps ? tp_reshape(steps, (tp_ints){own, 3}) : NULL;
    tp_autoref *each = shaped ? tp_add_Tensor(first, shaped, TP_SCALAR_I(1)) : NULL;
    tp_autoref *wide = each ? tp_expand(each, (tp_ints){whole, 3}, false) : NULL;
    return wide ? tp_reshape(wide, TP_INTS(-1)) : NULL;
}

static tp_tensor *repeated(tp_tensor *rows, int64_t times) {
    tp_autoref *column = tp_unsqueeze(rows, -1);
    tp_autoref *wide = column ? tp_expand(column, TP_INTS(rows->sizes[0], rows->sizes[1], times), false) : NULL;
    return wide ? tp_reshape(wide, TP_INTS(rows->sizes[0], rows->sizes[1] * times)) : NULL;
}

/* The number of each value's line, counted through all matrices of a batch. */
static tp_tensor *lines_of(tp_tensor *compressed) {
    tp_autoref *counts = tp_diff(compressed, 1, -1, NULL, NULL), *flat = counts ? flat_longs(counts) : NULL;
    return flat ? tp_repeat_interleave_Tensor(flat, TP_NO_INT) : NULL;
}

static tp_tensor *indices_of(const tp_tensor *t, const tp_parts *p, const int64_t blocks[2]) {
    int batch = p->part[1]->ndim - 1;
    int64_t lines[TP_MAX_DIMS];
    for (int d = 0; d < batch; d++) lines[d] = t->sizes[d];
    lines[batch] = p->part[0]->sizes[batch] - 1;
    tp_autoref *line = lines_of(p->part[0]), *places = flat_longs(p->part[1]);
    if (!line || !places) return NULL;
    if (line->numel != places->numel)
        return tp_fail_null(TP_RuntimeError, "%s: lines of %lld values together, but there are %lld",
                            tp_layouts[p->layout].name, (long long)line->numel, (long long)places->numel);
    tp_autoref *columns = tp__coo_columns(line, (tp_ints){lines, batch + 1});
    tp_autoref *own = columns ? tp_row_of(columns, batch) : NULL;
    tp_autoref *front = own ? tp_narrow(columns, 0, 0, batch) : NULL;
    if (!front) return NULL;
    tp_tensor *row = by_rows(p->layout) ? own : places, *column = by_rows(p->layout) ? places : own;
    tp_autoref *rows = spread(row, blocks, 0), *cols = spread(column, blocks, 1);
    tp_autoref *many = repeated(front, blocks[0] * blocks[1]), *last = rows && cols ? tp_stacked(rows, cols) : NULL;
    return many && last ? tp_cat((tp_tensors){(tp_tensor *[]){many, last}, 2}, 0) : NULL;
}

/* _as_coo(Tensor self) -> Tensor: coordinates; a tensor that has them as it is. */
tp_tensor *_as_coo_layout(tp_tensor *self) {
    tp_autoparts *p = tp_parts_of(self);
    if (!p) return NULL;
    if (p->layout == TP_SPARSE_COO) return tp_retain(self);
    int64_t blocks[2], shape[TP_MAX_DIMS] = {-1};
    const int dense = tp_dense_dims_of_lines(p);
    tp_block_sizes(p, blocks);
    for (int d = 0; d < dense; d++) shape[d + 1] = self->sizes[self->ndim - dense + d];
    if (p->part[2]->numel == 0) shape[0] = p->part[1]->numel * blocks[0] * blocks[1];
    tp_autoref *indices = indices_of(self, p, blocks), *all = indices ? tp__layout_values(self) : NULL;
    tp_autoref *flat = all ? tp_reshape(all, (tp_ints){shape, dense + 1}) : NULL;
    return flat ? tp__coo(indices, flat, tp_sizes(self), false) : NULL;
}

/* What becomes lines: coordinates in order of a batch of matrices, counted in blocks, and their values. */
typedef struct {
    tp_tensor *indices, *values;
    int64_t sizes[TP_MAX_DIMS]; /* of the batch, and of a matrix */
    int batch;                  /* how many dimensions it has */
} in_lines;

/* Where each line begins in its matrix, and the end; all matrices have `each` values. */
static tp_tensor *starts_of(const in_lines *l, tp_tensor *lines, int64_t count, int64_t each) {
    int64_t shape[TP_MAX_DIMS], total = count;
    for (int d = 0; d < l->batch; d++) total *= shape[d] = l->sizes[d];
    shape[l->batch] = count;
    bool even = false;
    tp_autoref *counts = tp_bincount(lines, NULL, total),
               *shaped = counts ? tp_reshape(counts, (tp_ints){shape, l->batch + 1}) : NULL;
    tp_autoref *ends = shaped ? tp_cumsum(shaped, -1, TP_NO_DTYPE) : NULL;
    shape[l->batch] = 1;
    tp_autoref *zero = ends ? tp_zeros((tp_ints){shape, l->batch + 1}, TP_INT64, TP_STRIDED, lines->device, -1) : NULL;
    tp_autoref *made = zero ? tp_cat((tp_tensors){(tp_tensor *[]){zero, ends}, 2}, -1) : NULL;
    tp_autoref *last = made ? tp_select_int(made, -1, -1) : NULL,
               *all = last ? tp_full_like(last, TP_SCALAR_I(each), TP_NO_DTYPE, TP_NO_LAYOUT, (tp_device){-1, -1}, -1,
                                          TP_NO_FORMAT)
                           : NULL;
    if (!all || tp_equal(last, all, &even) < 0) return NULL;
    return even ? tp_take(made)
                : tp_fail_null(TP_RuntimeError, "Expect the same number of specified elements per batch.");
}

/* The parts, with the batch's dimensions in front of a dimension of values. */
static tp_tensor *in_batches(const in_lines *l, tp_tensor *t, int64_t each) {
    int64_t shape[TP_MAX_DIMS + 1], n = 0;
    for (; n < l->batch; n++) shape[n] = l->sizes[n];
    shape[n++] = each;
    for (int d = 1; d < t->ndim; d++) shape[n++] = t->sizes[d];
    return tp_reshape(t, (tp_ints){shape, n});
}

static tp_tensor *compress(in_lines *l, tp_ints size, tp_layout layout) {
    const int line = l->batch + (by_rows(layout) ? 0 : 1), plain = l->batch + (by_rows(layout) ? 1 : 0);
    const int64_t count = l->sizes[line];
    int64_t front[TP_MAX_DIMS], rows[TP_MAX_DIMS], matrices = 1;
    for (int d = 0; d < l->batch; d++) matrices *= front[d] = l->sizes[d], rows[d] = d;
    front[l->batch] = count, rows[l->batch] = line;
    const int64_t each = matrices ? l->values->sizes[0] / matrices : 0;
    tp_autoref *chosen = tp_rows_of(l->indices, (tp_ints){rows, l->batch + 1});
    tp_autoref *lines = chosen ? tp__coo_keys(chosen, (tp_ints){front, l->batch + 1}) : NULL,
               *starts = lines ? starts_of(l, lines, count, each) : NULL;
    tp_autoref *places = starts ? tp_row_of(l->indices, plain) : NULL, *values = places ? tp_retain(l->values) : NULL;
    if (values && !by_rows(layout)) { /* coordinates are in the order of rows */
        tp_autoref *order = tp_argsort_stable(lines, true, 0, false);
        tp_tensor *sorted = order ? tp_index_select(places, 0, order) : NULL;
        tp_release(places);
        places = sorted;
        tp_release(values);
        values = places ? tp_index_select(l->values, 0, order) : NULL;
    }
    tp_autoref *own = values ? tp_contiguous(places, TP_CONTIGUOUS_FORMAT) : NULL;
    tp_autoref *numbers = own ? in_batches(l, own, each) : NULL, *shaped = numbers ? in_batches(l, values, each) : NULL;
    return shaped ? tp__compressed(starts, numbers, shaped, size, layout) : NULL;
}

/* A row of indices in whole blocks, and what is left over. */
static tp_tensor2 cut(tp_tensor *indices, int64_t row, int64_t block) {
    tp_autoref *line = tp_row_of(indices, row),
               *whole = line ? tp_div_Scalar_mode(line, TP_SCALAR_I(block), "floor") : NULL;
    tp_tensor *rest = whole ? tp_sub_Tensor(line, whole, TP_SCALAR_I(block)) : NULL;
    return rest ? (tp_tensor2){{tp_take(whole), rest}} : (tp_tensor2){{NULL, NULL}};
}

/* Blocks of zeros, with the values of `c` where they belong: `which` is the block of each. */
static tp_tensor *filled_blocks(const tp_coo *c, tp_tensor *which, tp_tensor *row, tp_tensor *column, int64_t count,
                                const int64_t blocks[2]) {
    int64_t shape[TP_MAX_DIMS + 2] = {count, blocks[0], blocks[1]},
                                flat[TP_MAX_DIMS + 1] = {count * blocks[0] * blocks[1]};
    const int dense = c->values->ndim - 1;
    for (int d = 1; d <= dense; d++) shape[d + 2] = flat[d] = c->values->sizes[d];
    tp_autoref *line = tp_add_Tensor(row, which, TP_SCALAR_I(blocks[0])),
               *place = line ? tp_add_Tensor(column, line, TP_SCALAR_I(blocks[1])) : NULL;
    tp_autoref *zeros =
        place ? tp_zeros((tp_ints){flat, dense + 1}, (tp_dtype)c->values->dtype, TP_STRIDED, c->values->device, -1)
              : NULL;
    tp_autoref *filled = zeros ? tp_index_copy(zeros, 0, place, c->values) : NULL;
    return filled ? tp_reshape(filled, (tp_ints){shape, dense + 3}) : NULL;
}

/* Blocks that have a value. */
static tp_tensor *compress_blocks(tp_tensor *coo, const tp_coo *c, const int64_t blocks[2], tp_layout layout) {
    in_lines l = {.batch = (int)c->sparse_dim - 2};
    for (int d = 0; d < c->sparse_dim; d++) l.sizes[d] = coo->sizes[d] / (d < l.batch ? 1 : blocks[d - l.batch]);
    tp_tensor2 rows = cut(c->indices, l.batch, blocks[0]);
    tp_autoref *row = rows.v[0], *in_row = rows.v[1];
    tp_tensor2 columns = row ? cut(c->indices, l.batch + 1, blocks[1]) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *column = columns.v[0], *in_column = columns.v[1];
    tp_autoref *front = column ? tp_narrow(c->indices, 0, 0, l.batch) : NULL,
               *matrix = front ? tp_stacked(row, column) : NULL;
    tp_autoref *all = matrix ? tp_cat((tp_tensors){(tp_tensor *[]){front, matrix}, 2}, 0) : NULL,
               *keys = all ? tp__coo_keys(all, (tp_ints){l.sizes, c->sparse_dim}) : NULL;
    tp_tensor3 found = keys ? tp__unique2(keys, true, true, false) : (tp_tensor3){{NULL}};
    tp_autoref *once = found.v[0], *which = found.v[1], *counts = found.v[2];
    (void)counts;
    tp_autoref *indices = once ? tp__coo_columns(once, (tp_ints){l.sizes, c->sparse_dim}) : NULL;
    tp_autoref *values = indices ? filled_blocks(c, which, in_row, in_column, once->numel, blocks) : NULL;
    l.indices = indices, l.values = values;
    return values ? compress(&l, tp_sizes(coo), layout) : NULL;
}

static int check_blocks(const tp_tensor *t, int batch, tp_ints blocksize, tp_layout layout) {
    if (blocksize.size != 2 || blocksize.data[0] < 1 || blocksize.data[1] < 1)
        return tp_fail(TP_RuntimeError, "to_sparse: the layout %s needs a blocksize of two positive numbers",
                       tp_layouts[layout].name);
    if (t->sizes[batch] % blocksize.data[0] || t->sizes[batch + 1] % blocksize.data[1])
        return tp_fail(TP_RuntimeError,
                       "tensor sparse size (%lld,%lld) must be divisible by given blocksize (%lld,%lld)",
                       (long long)t->sizes[batch], (long long)t->sizes[batch + 1], (long long)blocksize.data[0],
                       (long long)blocksize.data[1]);
    return 0;
}

/* _coo_to_compressed(Tensor self, Layout layout, int[2]? blocksize) -> Tensor */
tp_tensor *_coo_to_compressed_layout(tp_tensor *self, tp_layout layout, tp_ints blocksize) {
    if (layout < TP_SPARSE_CSR || layout > TP_SPARSE_BSC)
        return tp_fail_null(TP_RuntimeError, "to_sparse: there is no conversion to this layout");
    tp_autoref *merged = tp__coalesce(self);
    tp_autocoo c = {0};
    if (!merged || tp_coo_of(merged, &c) < 0) return NULL;
    if (c.sparse_dim < 2)
        return tp_fail_null(TP_RuntimeError,
                            "to_sparse: the layout %s is for matrices, not for %lld sparse and %lld dense dimensions",
                            tp_layouts[layout].name, (long long)c.sparse_dim, (long long)(self->ndim - c.sparse_dim));
    in_lines l = {.indices = c.indices, .values = c.values, .batch = (int)c.sparse_dim - 2};
    if (in_blocks(layout))
        return check_blocks(self, l.batch, blocksize, layout) < 0 ? NULL
                                                                  : compress_blocks(merged, &c, blocksize.data, layout);
    for (int d = 0; d < c.sparse_dim; d++) l.sizes[d] = self->sizes[d];
    return compress(&l, tp_sizes(self), layout);
}

/* Another layout of a tensor with `sparse_dim` sparse dimensions, as that of `like`; `made` is taken over. */
tp_tensor *tp_as_layout_steal(const tp_tensor *like, tp_tensor *made) {
    tp_autoref *own = made;
    if (!own || tp_layout_of(like) == TP_STRIDED || tp_layout_of(like) == TP_SPARSE_COO || !tp_is_sparse(own))
        return tp_take(own);
    tp_autoparts *p = tp_parts_of(like);
    int64_t blocks[2], n = 0;
    if (!p || tp_sparse_dim(own, &n) < 0) return NULL;
    if (tp_layout_of(own) != TP_SPARSE_COO || n < 2) return tp_take(own);
    tp_block_sizes(p, blocks);
    const int matrix = (int)n - 2;
    for (int i = 0; i < 2; i++)
        if (own->sizes[matrix + i] % blocks[i]) blocks[i] = 1; /* a product has sizes of its own */
    return tp_to_sparse(own, p->layout, in_blocks(p->layout) ? (tp_ints){blocks, 2} : TP_NO_INTS, TP_NO_INT);
}

/* The same parts, read as those of the matrices turned round; NULL without an error where these are not the two
 * dimensions. */
int tp_turned_lines(tp_tensor *t, int64_t a, int64_t b, tp_tensor **made) {
    static const tp_layout turned[TP_NUM_LAYOUTS] = {[TP_SPARSE_CSR] = TP_SPARSE_CSC,
                                                     [TP_SPARSE_CSC] = TP_SPARSE_CSR,
                                                     [TP_SPARSE_BSR] = TP_SPARSE_BSC,
                                                     [TP_SPARSE_BSC] = TP_SPARSE_BSR};
    *made = NULL;
    tp_autoparts *p = tp_parts_of(t);
    if (!p) return -1;
    const int64_t batch = p->layout == TP_SPARSE_COO ? -1 : p->part[1]->ndim - 1;
    if (batch < 0 || (a < b ? a : b) != batch || (a < b ? b : a) != batch + 1) return 0;
    int64_t sizes[TP_MAX_DIMS];
    for (int d = 0; d < t->ndim; d++) sizes[d] = t->sizes[d == a ? b : d == b ? a : d];
    tp_autoref *values = tp__layout_values(t);
    tp_autoref *own =
        !values || !in_blocks(p->layout) ? tp_retain(values) : tp_transpose_int(values, batch + 1, batch + 2);
    if (own) *made = tp__compressed(p->part[0], p->part[1], own, (tp_ints){sizes, t->ndim}, turned[p->layout]);
    return *made ? 0 : -1;
}
