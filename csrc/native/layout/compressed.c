/* compressed.c: sparse matrices whose rows, or columns, follow each other: CSR, CSC, and in blocks BSR, BSC.
 *
 * A line is a row of CSR and BSR, a column of CSC and BSC, counted in blocks; compressed[i] says where line i begins,
 * plain[k] where in its line value k (a number, or a block) stands. Dimensions in front of the last of both, and of the
 * values, are those of a batch of matrices. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"

static bool by_rows(tp_layout layout) { return layout == TP_SPARSE_CSR || layout == TP_SPARSE_BSR; }
static bool in_blocks(tp_layout layout) { return layout == TP_SPARSE_BSR || layout == TP_SPARSE_BSC; }

/* _compressed(Tensor compressed, Tensor plain, Tensor values, int[] size, Layout layout) -> Tensor: what is given was
 * checked. */
tp_tensor *_compressed_composite(tp_tensor *compressed, tp_tensor *plain, tp_tensor *values, tp_ints size,
                                 tp_layout layout) {
    int blocks = in_blocks(layout) ? 2 : 0;
    bool fits = layout >= TP_SPARSE_CSR && compressed->ndim == plain->ndim && plain->ndim >= 1 &&
                values->ndim == plain->ndim + blocks && size.size == plain->ndim + 1;
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
    int batch = t->ndim - 2;
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
    const tp_tensor *values = p->part[2];
    bool block = in_blocks(p->layout);
    int64_t blocks[2] = {block ? values->sizes[values->ndim - 2] : 1, block ? values->sizes[values->ndim - 1] : 1};
    tp_autoref *indices = indices_of(self, p, blocks), *all = indices ? tp__layout_values(self) : NULL;
    tp_autoref *flat = all ? tp_reshape(all, TP_INTS(-1)) : NULL;
    return flat ? tp__coo(indices, flat, tp_sizes(self), false) : NULL;
}

/* Where each of `count` lines begins that sorted numbers of lines stand in, and the end. */
static tp_tensor *starts_of(tp_tensor *lines, int64_t count) {
    tp_autoref *counts = tp_bincount(lines, NULL, count), *ends = counts ? tp_cumsum(counts, 0, TP_NO_DTYPE) : NULL;
    tp_autoref *zero = ends ? tp_zeros(TP_INTS(1), TP_INT64, TP_STRIDED, lines->device, -1) : NULL;
    return zero ? tp_cat((tp_tensors){(tp_tensor *[]){zero, ends}, 2}, 0) : NULL;
}

/* From merged coordinates of values (numbers, or blocks of a matrix of blocks). */
static tp_tensor *compress(const tp_coo *c, const int64_t *matrix, tp_ints size, tp_layout layout) {
    int line = by_rows(layout) ? 0 : 1;
    tp_autoref *lines = tp_row_of(c->indices, line), *plain = tp_row_of(c->indices, 1 - line), *values = NULL;
    if (!lines || !plain) return NULL;
    if (line == 1) { /* coordinates are in the order of rows */
        tp_autoref *order = tp_argsort_stable(lines, true, 0, false);
        tp_autoref *sorted = order ? tp_index_select(lines, 0, order) : NULL;
        tp_autoref *places = sorted ? tp_index_select(plain, 0, order) : NULL;
        values = places ? tp_index_select(c->values, 0, order) : NULL;
        tp_autoref *starts = values ? starts_of(sorted, matrix[1]) : NULL;
        return starts ? tp__compressed(starts, places, values, size, layout) : NULL;
    }
    values = tp_retain(c->values);
    tp_autoref *starts = starts_of(lines, matrix[0]), *own = starts ? tp_contiguous(plain, TP_CONTIGUOUS_FORMAT) : NULL;
    return own ? tp__compressed(starts, own, values, size, layout) : NULL;
}

/* Blocks that are not all zeros. */
static tp_tensor *compress_blocks(tp_tensor *coo, const int64_t blocks[2], tp_layout layout) {
    int64_t matrix[2] = {coo->sizes[0] / blocks[0], coo->sizes[1] / blocks[1]};
    tp_autoref *dense = tp_to_dense(coo, TP_NO_DTYPE, -1);
    tp_autoref *cut = dense ? tp_reshape(dense, TP_INTS(matrix[0], blocks[0], matrix[1], blocks[1])) : NULL;
    tp_autoref *turned = cut ? tp_permute(cut, TP_INTS(0, 2, 1, 3)) : NULL;
    tp_autoref *each = turned ? tp_reshape(turned, TP_INTS(matrix[0], matrix[1], blocks[0], blocks[1])) : NULL;
    tp_autoref *by_block = each ? tp_to_sparse_sparse_dim(each, 2) : NULL;
    tp_autocoo c = {0};
    if (!by_block || tp_coo_of(by_block, &c) < 0) return NULL;
    return compress(&c, matrix, tp_sizes(coo), layout);
}

/* _coo_to_compressed(Tensor self, Layout layout, int[2]? blocksize) -> Tensor */
tp_tensor *_coo_to_compressed_layout(tp_tensor *self, tp_layout layout, tp_ints blocksize) {
    if (layout < TP_SPARSE_CSR || layout > TP_SPARSE_BSC)
        return tp_fail_null(TP_RuntimeError, "to_sparse: there is no conversion to this layout");
    tp_autoref *merged = tp__coalesce(self);
    tp_autocoo c = {0};
    if (!merged || tp_coo_of(merged, &c) < 0) return NULL;
    if (c.sparse_dim != 2 || self->ndim != 2)
        return tp_fail_null(TP_RuntimeError,
                            "to_sparse: the layout %s is for matrices, not for %lld sparse and %lld dense dimensions",
                            tp_layouts[layout].name, (long long)c.sparse_dim, (long long)(self->ndim - c.sparse_dim));
    if (!in_blocks(layout)) return compress(&c, self->sizes, tp_sizes(self), layout);
    if (blocksize.size != 2 || blocksize.data[0] < 1 || blocksize.data[1] < 1)
        return tp_fail_null(TP_RuntimeError, "to_sparse: the layout %s needs a blocksize of two positive numbers",
                            tp_layouts[layout].name);
    if (self->sizes[0] % blocksize.data[0] || self->sizes[1] % blocksize.data[1])
        return tp_fail_null(TP_RuntimeError,
                            "tensor sparse size (%lld,%lld) must be divisible by given blocksize (%lld,%lld)",
                            (long long)self->sizes[0], (long long)self->sizes[1], (long long)blocksize.data[0],
                            (long long)blocksize.data[1]);
    return compress_blocks(merged, blocksize.data, layout);
}
