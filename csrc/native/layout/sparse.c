/* sparse.c: sparse tensors by coordinates: making, reading, merging and converting them (Note [Sparse kernels]). */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "core/scalar_math.h"
#include "prim/table.h"

#include <string.h>

/* ---- taking apart, and making ---- */

static int64_t fact_of(const tp_tensor *t, int number) {
    tp_autoparts *parts = tp_parts_of(t);
    return parts ? parts->fact[number] : -1;
}

int tp_coo_of(tp_tensor *t, tp_coo *coo) {
    *coo = (tp_coo){0};
    tp_autoref *whole = tp__as_coo(t);
    tp_autoparts *parts = whole ? tp_parts_of(whole) : NULL;
    if (!parts) return -1;
    coo->indices = tp_retain(parts->part[0]);
    coo->sparse_dim = coo->indices->sizes[0];
    coo->coalesced = parts->fact[TP_FACT_COALESCED];
    coo->values = tp__layout_values(whole);
    return coo->values ? 0 : -1;
}

void tp_coo_release(tp_coo *coo) {
    tp_release(coo->indices);
    tp_release(coo->values);
}

tp_tensor *tp_make_coo_steal(tp_tensor *indices, tp_tensor *values, tp_ints size, bool coalesced) {
    tp_autoref *i = indices, *v = values;
    return i && v ? tp__coo(i, v, size, coalesced) : NULL;
}

/* Whether values are one for each column of indices, with the dense sizes; what numbers the indices are is not asked.
 */
static bool coo_parts_fit(const tp_tensor *indices, const tp_tensor *values, tp_ints size) {
    if (indices->ndim != 2 || indices->dtype != TP_INT64 || values->ndim < 1) return false;
    const int64_t sparse_dim = indices->sizes[0];
    if (values->sizes[0] != indices->sizes[1] || sparse_dim + values->ndim - 1 != size.size) return false;
    for (int64_t d = sparse_dim; d < size.size; d++)
        if (values->sizes[d - sparse_dim + 1] != size.data[d]) return false;
    return true;
}

/* _coo(Tensor indices, Tensor(a) values, int[] size, bool coalesced) -> Tensor(a) */
tp_tensor *_coo_composite(tp_tensor *indices, tp_tensor *values, tp_ints size, bool coalesced) {
    if (!coo_parts_fit(indices, values, size)) {
        tp_autotext i = {0}, v = {0}, s = {0};
        tp_text_ints(&i, tp_sizes(indices));
        tp_text_ints(&v, tp_sizes(values));
        tp_text_ints(&s, size);
        return tp_fail_null(TP_RuntimeError,
                            "_coo: indices of (sparse_dim, nnz) in int64 and values of (nnz, *dense sizes) make a "
                            "tensor, but indices of %s, values of %s and the size %s do not",
                            i.text, v.text, s.text);
    }
    return tp_of_parts(TP_SPARSE_COO, (tp_tensor *[]){indices, values},
                       (int64_t[TP_MAX_FACTS]){[TP_FACT_COALESCED] = coalesced}, size);
}

/* ---- small steps ---- */

tp_tensor *tp_row_of(tp_tensor *indices, int64_t row) { return tp_select_int(indices, 0, row); }

static tp_tensor *ints_like(const tp_tensor *like, tp_ints numbers) {
    int64_t *values;
    tp_autoref *host = tp_table_int64(TP_INTS(numbers.size), &values);
    if (!host) return NULL;
    for (int64_t i = 0; i < numbers.size; i++) values[i] = numbers.data[i];
    return tp_to_device(host, like->device, TP_INT64, false, false, TP_NO_FORMAT);
}

tp_tensor *tp_rows_of(tp_tensor *indices, tp_ints rows) {
    tp_autoref *order = ints_like(indices, rows);
    return order ? tp_index_select(indices, 0, order) : NULL;
}

tp_tensor *tp_where_true(tp_tensor *mask) {
    tp_autoref *found = tp_nonzero(mask);
    return found ? tp_select_int(found, 1, 0) : NULL;
}

tp_tensor *tp_stacked(tp_tensor *first, tp_tensor *second) {
    return tp_stack((tp_tensors){(tp_tensor *[]){first, second}, 2}, 0);
}

tp_tensor2 tp_ranges(tp_tensor *first, tp_tensor *counts) {
    tp_tensor2 none = {{NULL, NULL}};
    tp_autoref *which = tp_repeat_interleave_Tensor(counts, TP_NO_INT);
    tp_autoref *ends = which ? tp_cumsum(counts, 0, TP_NO_DTYPE) : NULL;
    tp_autoref *starts = ends ? tp_sub_Tensor(ends, counts, TP_SCALAR_I(1)) : NULL;
    tp_autoref *shift = starts ? tp_sub_Tensor(first, starts, TP_SCALAR_I(1)) : NULL;
    tp_autoref *shifts = shift ? tp_index_select(shift, 0, which) : NULL;
    tp_autoref *order = shifts ? tp_arange(TP_SCALAR_I(which->numel), TP_INT64, TP_STRIDED, which->device, -1) : NULL;
    tp_tensor *number = order ? tp_add_Tensor(order, shifts, TP_SCALAR_I(1)) : NULL;
    return number ? (tp_tensor2){{tp_take(which), number}} : none;
}

/* _coo_keys(Tensor indices, int[] size) -> Tensor: one number for each column of indices: its place in a dense tensor
 * of these sizes. */
tp_tensor *_coo_keys_composite(tp_tensor *indices, tp_ints size) {
    if (size.size == 0) return tp_zeros(TP_INTS(indices->sizes[1]), TP_INT64, TP_STRIDED, indices->device, -1);
    tp_autoref *keys = tp_row_of(indices, 0);
    for (int64_t d = 1; keys && d < size.size; d++) {
        tp_autoref *row = tp_row_of(indices, d);
        tp_tensor *next = row ? tp_add_Tensor(row, keys, TP_SCALAR_I(size.data[d])) : NULL;
        tp_release(keys);
        keys = next;
    }
    return tp_take(keys);
}

/* _coo_columns(Tensor keys, int[] size) -> Tensor: the indices of such numbers. */
tp_tensor *_coo_columns_composite(tp_tensor *keys, tp_ints size) {
    if (size.size == 0) return tp_zeros(TP_INTS(0, keys->numel), TP_INT64, TP_STRIDED, keys->device, -1);
    tp_autoseq *rows = tp_tensor_seq_new(size.size);
    tp_autoref *rest = tp_retain(keys);
    for (int64_t d = size.size - 1; rows && d > 0; d--) {
        const int64_t n = size.data[d] > 0 ? size.data[d] : 1;
        tp_tensor *above = tp_div_Scalar_mode(rest, TP_SCALAR_I(n), "floor");
        rows->items[d] = above ? tp_sub_Tensor(rest, above, TP_SCALAR_I(n)) : NULL;
        tp_release(rest);
        rest = above;
        if (!rows->items[d]) return NULL;
    }
    if (rows) rows->items[0] = tp_take(rest);
    return rows ? tp_stack((tp_tensors){rows->items, rows->size}, 0) : NULL;
}

static tp_ints sparse_sizes(const tp_tensor *t, const tp_coo *c) { return (tp_ints){t->sizes, c->sparse_dim}; }

tp_tensor *tp_keys_of(const tp_tensor *t, const tp_coo *c) { return tp__coo_keys(c->indices, sparse_sizes(t, c)); }

tp_ints tp_rows_and_dense(const tp_tensor *t, const tp_coo *c, int64_t rows, int64_t *room) {
    tp_ints dense = {t->sizes + c->sparse_dim, t->ndim - c->sparse_dim};
    room[0] = rows;
    for (int64_t i = 0; i < dense.size; i++) room[i + 1] = dense.data[i];
    return (tp_ints){room, dense.size + 1};
}

/* ---- merging ---- */

/* Sums of bool are of uint8: 256 times True is True. */
static tp_tensor *added_at(tp_tensor *values, tp_ints size, tp_tensor *places) {
    bool is_bool = values->dtype == TP_BOOL;
    tp_dtype dtype = is_bool ? TP_INT64 : (tp_dtype)values->dtype;
    tp_autoref *work = is_bool ? tp_to_dtype(values, dtype, false, false, TP_NO_FORMAT) : tp_retain(values);
    tp_autoref *zeros = work ? tp_zeros(size, dtype, TP_STRIDED, values->device, -1) : NULL;
    tp_autoref *sums = zeros ? tp_index_add(zeros, 0, places, work, TP_SCALAR_I(1)) : NULL;
    return sums && is_bool ? tp_to_dtype(sums, TP_BOOL, false, false, TP_NO_FORMAT) : tp_take(sums);
}

/* The values of each place added up; those of a place follow each other in `order`, from its number in `begins` on. */
static tp_tensor *added_in_order(tp_tensor *values, tp_tensor *begins, tp_tensor *order, tp_ints size) {
    int64_t width = tp_checked_numel((tp_ints){size.data + 1, size.size - 1});
    tp_autoref *flat = width < 0 ? NULL : tp_reshape(values, TP_INTS(values->sizes[0], width));
    tp_autoref *sums = flat ? tp__csr_mm(begins, order, NULL, flat) : NULL;
    return sums ? tp_reshape(sums, size) : NULL;
}

/* _coalesce(Tensor self) -> Tensor */
tp_tensor *_coalesce_layout(tp_tensor *self) {
    if (tp_layout_of(self) == TP_SPARSE_COO && fact_of(self, TP_FACT_COALESCED) == 1) return tp_retain(self);
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return NULL;
    tp_autoref *keys = tp_keys_of(self, &c);
    int64_t room[TP_MAX_DIMS + 1], places = tp_checked_numel(sparse_sizes(self, &c));
    tp_tensor3 found = keys && places >= 0 ? tp__coo_order(keys, places) : (tp_tensor3){{NULL}};
    tp_autoref *once = found.v[0], *begins = found.v[1], *order = found.v[2];
    if (!once) return NULL;
    tp_ints size = tp_rows_and_dense(self, &c, once->numel, room);
    return tp_make_coo_steal(tp__coo_columns(once, sparse_sizes(self, &c)),
                             added_in_order(c.values, begins, order, size), tp_sizes(self), true);
}

static tp_tensor *expected(const char *what, const char *wanted, const tp_tensor *self) {
    return tp_fail_null(TP_RuntimeError, "%s expected %s tensor layout but got %s", what, wanted,
                        tp_layouts[tp_layout_of(self)].spoken);
}
#define COORDINATES "sparse coordinate"

/* coalesce(Tensor(a) self) -> Tensor(a) */
tp_tensor *coalesce_composite(tp_tensor *self) { return expected("coalesce", COORDINATES, self); }
tp_tensor *coalesce_layout(tp_tensor *self) {
    return tp_layout_of(self) == TP_SPARSE_COO ? tp__coalesce(self) : expected("coalesce", COORDINATES, self);
}

/* is_coalesced(Tensor self) -> bool */
int is_coalesced_composite(tp_tensor *self, bool *result TP_UNUSED) {
    expected("is_coalesced", COORDINATES, self);
    return -1;
}
int is_coalesced_layout(tp_tensor *self, bool *result) {
    if (tp_layout_of(self) != TP_SPARSE_COO) return is_coalesced_composite(self, result);
    *result = fact_of(self, TP_FACT_COALESCED) == 1;
    return 0;
}

/* _coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!) */
int _coalesced__composite(tp_tensor *self, bool coalesced) {
    if (tp_layout_of(self) != TP_SPARSE_COO) return expected("_coalesced_", COORDINATES, self), -1;
    tp_autoparts *parts = tp_parts_of(self);
    tp_parts *made = parts ? tp_parts_new(parts->layout, parts->part, (int64_t[TP_MAX_FACTS]){coalesced}) : NULL;
    return made ? tp_put_parts_steal(self, made) : -1;
}

/* _merged(Tensor self) -> Tensor: one value for each place; of rows one after another as they are. */
tp_tensor *_merged_layout(tp_tensor *self) {
    return tp_layout_of(self) == TP_SPARSE_COO ? tp__coalesce(self) : tp_retain(self);
}

/* ---- reading ---- */

static tp_tensor *part_named(tp_tensor *self, const char *name, const char *wanted) {
    const tp_layout_info *info = &tp_layouts[tp_layout_of(self)];
    for (int i = 0; i < info->count; i++)
        if (strcmp(info->parts[i], name) == 0) return tp__layout_part(self, i);
    return expected(name, wanted, self);
}

static tp_tensor *merged_part(tp_tensor *self, const char *name) {
    if (tp_layout_of(self) != TP_SPARSE_COO || fact_of(self, TP_FACT_COALESCED) == 1) return tp_retain(self);
    return tp_fail_null(TP_RuntimeError, "Cannot get %s on an uncoalesced tensor, please call .coalesce() first", name);
}

/* indices(Tensor(a) self) -> Tensor(a) */
tp_tensor *indices_composite(tp_tensor *self) { return expected("indices", COORDINATES, self); }
tp_tensor *indices_layout(tp_tensor *self) {
    if (tp_layout_of(self) != TP_SPARSE_COO) return expected("indices", COORDINATES, self);
    tp_autoref *merged = merged_part(self, "indices");
    return merged ? tp__layout_part(merged, 0) : NULL;
}

/* values(Tensor(a) self) -> Tensor(a): differentiable. */
tp_tensor *values_composite(tp_tensor *self) { return expected("values", "sparse", self); }
tp_tensor *values_layout(tp_tensor *self) {
    tp_autoref *merged = merged_part(self, "values");
    return merged ? tp__layout_values(merged) : NULL;
}

/* _indices(Tensor(a) self) -> Tensor(a), _values(Tensor(a) self) -> Tensor(a): as they are, without history. */
tp_tensor *_indices_composite(tp_tensor *self) { return part_named(self, "indices", COORDINATES); }
tp_tensor *_values_composite(tp_tensor *self) { return part_named(self, "values", "sparse"); }
tp_tensor *crow_indices_composite(tp_tensor *self) { return part_named(self, "crow_indices", "sparse row compressed"); }
tp_tensor *col_indices_composite(tp_tensor *self) { return part_named(self, "col_indices", "sparse row compressed"); }
tp_tensor *ccol_indices_composite(tp_tensor *self) {
    return part_named(self, "ccol_indices", "sparse column compressed");
}
tp_tensor *row_indices_composite(tp_tensor *self) {
    return part_named(self, "row_indices", "sparse column compressed");
}

/* _nnz(Tensor self) -> int */
int _nnz_composite(tp_tensor *self, int64_t *result) {
    tp_autoref *values = tp_is_sparse(self) ? tp__values(self) : expected("_nnz", "sparse", self);
    if (!values) return -1;
    tp_autoparts *parts = tp_parts_of(self);
    bool batched = parts && parts->layout != TP_SPARSE_COO;
    *result = batched ? parts->part[1]->sizes[parts->part[1]->ndim - 1] : values->sizes[0];
    return parts ? 0 : -1;
}

/* sparse_dim(Tensor self) -> int: 0 of a dense tensor. */
int sparse_dim_composite(tp_tensor *self, int64_t *result) {
    *result = 0;
    if (!tp_is_sparse(self)) return 0;
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return -1;
    *result = parts->layout == TP_SPARSE_COO ? parts->part[0]->sizes[0] : 2;
    return 0;
}

/* dense_dim(Tensor self) -> int: all of a dense tensor. */
int dense_dim_composite(tp_tensor *self, int64_t *result) {
    *result = self->ndim;
    if (!tp_is_sparse(self)) return 0;
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return -1;
    *result = parts->layout == TP_SPARSE_COO ? self->ndim - parts->part[0]->sizes[0] : tp_dense_dims_of_lines(parts);
    return 0;
}

/* ---- between layouts ---- */

/* to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor */
tp_tensor *to_dense_composite(tp_tensor *self, tp_dtype dtype, tp_opt_bool masked_grad TP_UNUSED) {
    return dtype < 0 ? tp_retain(self) : tp_to_dtype(self, dtype, false, false, TP_NO_FORMAT);
}
tp_tensor *to_dense_layout(tp_tensor *self, tp_dtype dtype, tp_opt_bool masked_grad TP_UNUSED) {
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return NULL;
    tp_autoref *keys = tp_keys_of(self, &c);
    tp_autoref *values = dtype < 0 ? tp_retain(c.values) : tp_to_dtype(c.values, dtype, false, false, TP_NO_FORMAT);
    int64_t room[TP_MAX_DIMS + 1], places = tp_checked_numel(sparse_sizes(self, &c));
    if (!keys || !values || places < 0) return NULL;
    tp_autoref *flat = added_at(values, tp_rows_and_dense(self, &c, places, room), keys);
    return flat ? tp_reshape(flat, tp_sizes(self)) : NULL;
}

/* _layout_at(Tensor self, Tensor pattern) -> Tensor: the values of a tensor, of any layout, at the places of a pattern,
 * in the shape of the pattern's values. */
tp_tensor *_layout_at_composite(tp_tensor *self, tp_tensor *pattern) {
    bool same = false;
    if (tp_is_sparse(self) && tp__same_pattern(self, pattern, &same) < 0) return NULL;
    if (same) return tp__layout_values(self);
    tp_autoref *shape = tp__values(pattern);
    tp_autocoo wanted = {0};
    if (tp_coo_of(pattern, &wanted) < 0 || !shape) return NULL;
    tp_autoref *keys = tp_keys_of(pattern, &wanted);
    if (!keys) return NULL;
    int64_t room[TP_MAX_DIMS + 1];
    tp_autoref *made = NULL;
    if (!tp_is_sparse(self)) {
        tp_autoref *wide = tp_expand(self, tp_sizes(pattern), false);
        int64_t places = tp_checked_numel(sparse_sizes(pattern, &wanted));
        tp_autoref *flat = wide ? tp_reshape(wide, tp_rows_and_dense(pattern, &wanted, places, room)) : NULL;
        made = flat ? tp_index_select(flat, 0, keys) : NULL;
    } else {
        tp_autoref *merged = tp__as_coo(self), *once = merged ? tp__coalesce(merged) : NULL;
        tp_autocoo there = {0};
        if (!once || tp_coo_of(once, &there) < 0) return NULL;
        tp_autoref *have = tp_keys_of(once, &there);
        if (!have) return NULL;
        if (have->numel == 0) return tp_zeros(tp_sizes(shape), (tp_dtype)self->dtype, TP_STRIDED, self->device, -1);
        tp_autoref *found = tp_searchsorted_Tensor(have, keys, false, false, NULL, NULL);
        tp_autoref *inside = found ? tp_clamp_max(found, TP_SCALAR_I(have->numel - 1)) : NULL;
        tp_autoref *key = inside ? tp_index_select(have, 0, inside) : NULL, *hit = key ? tp_eq_Tensor(key, keys) : NULL;
        int64_t ones[TP_MAX_DIMS + 1];
        for (int i = 0; i <= TP_MAX_DIMS; i++) ones[i] = 1;
        ones[0] = keys->numel;
        tp_autoref *miss = hit ? tp_logical_not(hit) : NULL,
                   *mask = miss ? tp_reshape(miss, (tp_ints){ones, there.values->ndim}) : NULL;
        tp_autoref *values = mask ? tp_index_select(there.values, 0, inside) : NULL;
        made = values ? tp_masked_fill_Scalar(values, mask, TP_SCALAR_I(0)) : NULL;
    }
    return made ? tp_reshape(made, tp_sizes(shape)) : NULL;
}

/* A tensor without dimensions: its only place, if it is not zero. */
static tp_tensor *coo_of_number(tp_tensor *self) {
    tp_autoref *plain = tp_detach(self), *line = tp_reshape(self, TP_INTS(1)),
               *there = plain && line ? tp_ne_Scalar(plain, TP_SCALAR_I(0)) : NULL,
               *mask = there ? tp_reshape(there, TP_INTS(1)) : NULL, *places = mask ? tp_where_true(mask) : NULL;
    if (!places) return NULL;
    return tp_make_coo_steal(tp_zeros(TP_INTS(0, places->numel), TP_INT64, TP_STRIDED, self->device, -1),
                             tp_index_select(line, 0, places), TP_EMPTY_INTS, true);
}

/* Places that are not zero. */
static tp_tensor *coo_of_dense(tp_tensor *self, int64_t sparse_dim) {
    if (sparse_dim < (self->ndim > 0) || sparse_dim > self->ndim)
        return tp_fail_null(TP_RuntimeError, "to_sparse: sparse_dim is from 1 to %d, not %lld", self->ndim,
                            (long long)sparse_dim);
    if (self->ndim == 0) return coo_of_number(self);
    tp_autoref *plain = tp_detach(self), *there = plain ? tp_ne_Scalar(plain, TP_SCALAR_I(0)) : NULL;
    tp_autoref *lines =
        !there || sparse_dim == self->ndim ? tp_retain(there) : tp_flatten_using_ints(there, sparse_dim, -1);
    tp_autoref *some = !lines || sparse_dim == self->ndim ? tp_retain(lines) : tp_any_dim(lines, -1, false);
    tp_autoref *places = some ? tp_nonzero(some) : NULL, *turned = places ? tp_t(places) : NULL;
    tp_autoref *indices = turned ? tp_contiguous(turned, TP_CONTIGUOUS_FORMAT) : NULL;
    int64_t room[TP_MAX_DIMS + 1] = {0};
    tp_coo c = {indices, NULL, sparse_dim, true};
    if (!indices) return NULL;
    tp_autoref *none = tp_zeros(tp_rows_and_dense(self, &c, indices->sizes[1], room), (tp_dtype)self->dtype, TP_STRIDED,
                                self->device, -1);
    tp_autoref *pattern = none ? tp__coo(indices, none, tp_sizes(self), true) : NULL;
    tp_autoref *values = pattern ? tp__layout_at(self, pattern) : NULL;
    return values ? tp__layout_like(pattern, values) : NULL;
}

/* to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor */
tp_tensor *to_sparse_sparse_dim_composite(tp_tensor *self, int64_t sparse_dim) {
    return coo_of_dense(self, sparse_dim);
}
tp_tensor *to_sparse_sparse_dim_layout(tp_tensor *self, int64_t sparse_dim) {
    int64_t n;
    if (tp_sparse_dim(self, &n) < 0) return NULL;
    if (n == sparse_dim)
        return tp_layout_of(self) == TP_SPARSE_COO ? tp_retain(self)
                                                   : tp_to_sparse(self, TP_SPARSE_COO, TP_NO_INTS, TP_NO_INT);
    return tp_fail_null(TP_RuntimeError, "to_sparse: a sparse tensor with %lld sparse dimensions keeps them",
                        (long long)n);
}

/* to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor */
static tp_tensor *converted(tp_tensor *coo, tp_layout layout, tp_ints blocksize) {
    if (layout < 0 || layout == TP_SPARSE_COO) return tp_retain(coo);
    if (layout == TP_STRIDED) return tp_to_dense(coo, TP_NO_DTYPE, -1);
    if (blocksize.size > 0 && layout <= TP_SPARSE_CSC)
        return tp_fail_null(TP_RuntimeError, "to_sparse: the layout %s has no blocksize", tp_layouts[layout].name);
    return tp__coo_to_compressed(coo, layout, blocksize);
}
tp_tensor *to_sparse_composite(tp_tensor *self, tp_layout layout, tp_ints blocksize, tp_opt_int dense_dim) {
    const int64_t dense = dense_dim.has ? dense_dim.value : 0;
    const bool lines = layout >= TP_SPARSE_CSR && layout <= TP_SPARSE_BSC;
    if (lines && self->ndim < 2)
        return tp_fail_null(TP_RuntimeError, "to_sparse: the layout %s is for matrices, not for %d dimensions",
                            tp_layouts[layout].name, self->ndim);
    const int most = lines ? self->ndim - 2 : self->ndim;
    if (dense < 0 || dense > most)
        return tp_fail_null(TP_RuntimeError,
                            "dense_to_%s: dense_dim argument must be in [0,%d] range, but %lld is given",
                            lines ? tp_layouts[layout].name : "sparse", most, (long long)dense);
    tp_autoref *coo = coo_of_dense(self, self->ndim - dense);
    return coo ? converted(coo, layout, blocksize) : NULL;
}
tp_tensor *to_sparse_layout(tp_tensor *self, tp_layout layout, tp_ints blocksize, tp_opt_int dense_dim) {
    if (layout == tp_layout_of(self)) return tp_retain(self);
    tp_autoref *coo = tp__as_coo(self);
    int64_t dense = 0;
    if (!coo || tp_dense_dim(coo, &dense) < 0) return NULL;
    if (dense_dim.has && dense_dim.value != dense)
        return tp_fail_null(TP_RuntimeError, "to_sparse: a sparse tensor with %lld dense dimensions keeps them",
                            (long long)dense);
    if (layout < 0 && tp_layout_of(self) != TP_SPARSE_COO) layout = TP_SPARSE_COO;
    if (layout == TP_SPARSE_COO) return tp__coalesce(coo); /* a line's values may stand in any order */
    return converted(coo, layout, blocksize);
}

/* sparse_mask(Tensor self, Tensor mask) -> Tensor */
tp_tensor *sparse_mask_composite(tp_tensor *self, tp_tensor *mask) {
    if (!tp_is_sparse(mask)) return tp_fail_null(TP_RuntimeError, "sparse_mask: the mask is a sparse tensor");
    if (!tp_same_sizes(self, mask)) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(self));
        tp_text_ints(&b, tp_sizes(mask));
        return tp_fail_null(TP_RuntimeError,
                            "sparse_mask(): operands have incompatible sizes; self has size %s but mask has size %s",
                            a.text, b.text);
    }
    tp_autoref *pattern = tp_detach(mask), *values = pattern ? tp__layout_at(self, pattern) : NULL;
    return values ? tp__layout_like(pattern, values) : NULL;
}

/* ---- other sizes ---- */

/* Values of larger dense sizes: the elements follow each other in memory as before, as where a dense tensor is resized,
 * and zeros come behind them. New. */
static tp_tensor *grown(tp_tensor *values, tp_ints sizes) {
    tp_autoref *made = tp_zeros(sizes, (tp_dtype)values->dtype, TP_STRIDED, values->device, -1);
    tp_autoref *row = made ? tp_view(made, TP_INTS(-1)) : NULL,
               *head = row ? tp_narrow(row, 0, 0, values->numel) : NULL;
    tp_autoref *plain = head ? tp_detach(values) : NULL, *old = plain ? tp_reshape(plain, TP_INTS(-1)) : NULL;
    return old && tp_copy_(head, old, false) == 0 ? tp_take(made) : NULL;
}

static int resize(tp_tensor *self, tp_ints size, int64_t sparse_dim, int64_t dense_dim, bool clear, const char *op) {
    if (tp_layout_of(self) != TP_SPARSE_COO) return expected(op, COORDINATES, self), -1;
    if (sparse_dim < 0 || dense_dim < 0 || sparse_dim > size.size || dense_dim != size.size - sparse_dim)
        return tp_fail(TP_RuntimeError,
                       "%s: number of dimensions must be sparse_dim (%lld) + dense_dim (%lld), but got "
                       "%lld",
                       op, (long long)sparse_dim, (long long)dense_dim, (long long)size.size);
    if (tp_checked_numel(size) < 0) return -1;
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return -1;
    bool keeps = !clear && c.values->sizes[0] > 0;
    const char *what = NULL;
    if (sparse_dim != c.sparse_dim) what = "changing the number of sparse dimensions";
    else if (size.size != self->ndim) what = "changing the number of dense dimensions";
    for (int64_t d = 0; keeps && !what && d < size.size; d++) {
        if (d < sparse_dim && size.data[d] < self->sizes[d]) what = "shrinking the size of sparse dimensions";
        if (d >= sparse_dim && size.data[d] < self->sizes[d]) what = "shrinking the size of dense dimensions";
    }
    if (keeps && what) return tp_fail(TP_RuntimeError, "%s: %s of a tensor with values is not supported", op, what);
    tp_coo shape = {NULL, NULL, sparse_dim, true};
    tp_tensor whole = {.sizes = (int64_t *)size.data, .ndim = (uint8_t)size.size};
    int64_t room[TP_MAX_DIMS + 1];
    tp_ints sizes = tp_rows_and_dense(&whole, &shape, keeps ? c.values->sizes[0] : 0, room);
    tp_autoref *made = NULL;
    if (!keeps)
        made = tp_make_coo_steal(tp_zeros(TP_INTS(sparse_dim, 0), TP_INT64, TP_STRIDED, self->device, -1),
                                 tp_zeros(sizes, (tp_dtype)self->dtype, TP_STRIDED, self->device, -1), size, true);
    else {
        bool same = tp_ints_equal(sizes, tp_sizes(c.values));
        made = tp_make_coo_steal(tp_retain(c.indices), same ? tp_retain(c.values) : grown(c.values, sizes), size,
                                 c.coalesced);
    }
    return made ? tp_write_layout(self, made, op) : -1;
}

/* sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!) */
int sparse_resize__composite(tp_tensor *self, tp_ints size, int64_t sparse_dim, int64_t dense_dim) {
    return resize(self, size, sparse_dim, dense_dim, false, "sparse_resize_");
}
/* resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!): in lines it gets the template's places. */
int resize_as_sparse__composite(tp_tensor *self, tp_tensor *the_template) {
    int64_t sparse_dim, dense_dim;
    if ((self->keys | the_template->keys) & TP_BIT(SparseCsr)) {
        if (tp_layout_of(self) != tp_layout_of(the_template))
            return tp_fail(TP_RuntimeError, "resize_as_sparse_: self has the layout %s, and the template %s",
                           tp_layouts[tp_layout_of(self)].name, tp_layouts[tp_layout_of(the_template)].name);
        tp_autoref *pattern = tp_detach(the_template);
        tp_autoref *values = pattern ? tp__layout_values(pattern) : NULL;
        tp_autoref *zeros =
            values ? tp_zeros(tp_sizes(values), (tp_dtype)self->dtype, TP_STRIDED, values->device, -1) : NULL;
        tp_autoref *whole = zeros ? tp__layout_like(pattern, zeros) : NULL;
        return whole ? tp_write_layout(self, whole, "resize_as_sparse_") : -1;
    }
    if (tp_sparse_dim(the_template, &sparse_dim) < 0 || tp_dense_dim(the_template, &dense_dim) < 0) return -1;
    return resize(self, tp_sizes(the_template), sparse_dim, dense_dim, false, "resize_as_sparse_");
}
/* Numbers that lines begin at, for `lines` lines: new ones are empty and end at nnz, the last one kept takes what is
 * left of those that go. New. */
static tp_tensor *begins_of(tp_tensor *old, int64_t lines, int64_t nnz) {
    int64_t last = old->sizes[old->ndim - 1] - 1, kept = lines < last ? lines : last + 1, room[TP_MAX_DIMS];
    memcpy(room, old->sizes, sizeof *room * old->ndim);
    room[old->ndim - 1] = lines + 1 - kept;
    tp_autoref *head = tp_narrow(old, -1, 0, kept), *most = head ? tp_clamp_max(head, TP_SCALAR_I(nnz)) : NULL;
    tp_autoref *tail =
        most ? tp_full((tp_ints){room, old->ndim}, TP_SCALAR_I(nnz), (tp_dtype)old->dtype, TP_STRIDED, old->device, -1)
             : NULL;
    return tail ? tp_cat((tp_tensors){(tp_tensor *[]){most, tail}, 2}, -1) : NULL;
}

/* Rows and columns of another number, in whole blocks where there are such: values stay as many as there are, and
 * places fit. */
static tp_tensor *resized_lines(tp_tensor *self, tp_ints size) {
    const tp_layout layout = tp_layout_of(self);
    const bool by_rows = layout == TP_SPARSE_CSR || layout == TP_SPARSE_BSR;
    const char *name = tp_layouts[layout].name;
    tp_autoparts *p = tp_parts_of(self);
    if (!p || tp_checked_numel(size) < 0) return NULL;
    int64_t at = p->part[1]->ndim - 1, dense = tp_dense_dims_of_lines(p), nnz = p->part[1]->sizes[at], blocks[2];
    tp_block_sizes(p, blocks);
    bool same = size.size == self->ndim && size.size >= 2 + dense;
    for (int64_t d = 0; same && d < size.size; d++) same = d == at || d == at + 1 || size.data[d] == self->sizes[d];
    if (!same)
        return tp_fail_null(TP_RuntimeError, "resize_: a tensor of the layout %s keeps its batches and dense sizes",
                            name);
    if (size.data[at] % blocks[0] != 0 || size.data[at + 1] % blocks[1] != 0)
        return tp_fail_null(TP_RuntimeError,
                            "resize_: a tensor of the layout %s in blocks of %lld x %lld is not resized to %lld x %lld",
                            name, (long long)blocks[0], (long long)blocks[1], (long long)size.data[at],
                            (long long)size.data[at + 1]);
    int64_t rows = size.data[at] / blocks[0], columns = size.data[at + 1] / blocks[1];
    int64_t places = at + (by_rows ? 1 : 0);
    if (size.data[places] < self->sizes[places])
        return tp_fail_null(TP_RuntimeError,
                            "resize_: Resizing %s of %s tensors to a smaller value is not supported: %lld were there, "
                            "%lld are asked for",
                            by_rows ? "columns" : "rows", name, (long long)self->sizes[places],
                            (long long)size.data[places]);
    int64_t whole = columns == 0 || rows <= nnz / columns ? rows * columns : nnz, kept = whole < nnz ? whole : nnz;
    tp_autoref *begins = begins_of(p->part[0], by_rows ? rows : columns, kept);
    tp_autoref *plain = begins ? tp_narrow(p->part[1], at, 0, kept) : NULL;
    tp_autoref *values = plain ? tp_narrow(p->part[2], at, 0, kept) : NULL;
    return values ? tp__compressed(begins, plain, values, size, layout) : NULL;
}

/* resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
int resize__layout(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    if (!(self->keys & TP_BIT(SparseCsr)))
        return tp_fail(TP_NotImplementedError,
                       "resize_: there is no kernel for tensors of the layout %s, which sparse_resize_ takes",
                       tp_layouts[tp_layout_of(self)].name);
    if (memory_format != TP_NO_FORMAT && memory_format != TP_CONTIGUOUS_FORMAT)
        return tp_fail(TP_RuntimeError, "resize_: a tensor of the layout %s has no memory format",
                       tp_layouts[tp_layout_of(self)].name);
    tp_autoref *plain = tp_detach(self), *made = plain ? resized_lines(plain, size) : NULL;
    return made ? tp_replace_layout(self, made, "resize_") : -1;
}

/* resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
int resize_as__layout(tp_tensor *self, tp_tensor *the_template, tp_memory_format memory_format) {
    if (self->keys & TP_BIT(SparseCsr)) return resize__layout(self, tp_sizes(the_template), memory_format);
    if (tp_layout_of(self) == TP_STRIDED) return tp_resize_(self, tp_sizes(the_template), memory_format);
    if (tp_is_sparse(self) && tp_is_sparse(the_template)) return tp_resize_as_sparse_(self, the_template);
    return tp_fail(TP_NotImplementedError,
                   "resize_as_: a tensor of the layout %s is not resized as one of the layout %s",
                   tp_layouts[tp_layout_of(self)].name, tp_layouts[tp_layout_of(the_template)].name);
}
/* sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!) */
int sparse_resize_and_clear__composite(tp_tensor *self, tp_ints size, int64_t sparse_dim, int64_t dense_dim) {
    return resize(self, size, sparse_dim, dense_dim, true, "sparse_resize_and_clear_");
}
