/* sparse_dims.c: sparse tensors of other sizes: dimensions exchanged, added, taken from, joined and summed over. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"

/* Sizes with some changed: room for one more than there are. */
typedef struct {
    int64_t data[TP_MAX_DIMS + 1];
    int64_t count;
} sizes;
#define SIZES(s) ((tp_ints){(s).data, (s).count})

static sizes sizes_of(const tp_tensor *t) {
    sizes s = {.count = t->ndim};
    for (int d = 0; d < t->ndim; d++) s.data[d] = t->sizes[d];
    return s;
}

static void insert(sizes *s, int64_t at, int64_t n) {
    for (int64_t d = s->count++; d > at; d--) s->data[d] = s->data[d - 1];
    s->data[at] = n;
}

static void take_out(sizes *s, int64_t at) {
    s->count--;
    for (int64_t d = at; d < s->count; d++) s->data[d] = s->data[d + 1];
}

/* A dense dimension's place among the values'. */
static int64_t in_values(const tp_coo *c, int64_t dim) { return dim - c->sparse_dim + 1; }

/* ---- exchanged ---- */

/* permute(Tensor(a) self, int[] dims) -> Tensor(a) */
tp_tensor *permute_layout(tp_tensor *self, tp_ints dims) {
    tp_autocoo c = {0};
    if (dims.size != self->ndim)
        return tp_fail_null(TP_RuntimeError,
                            "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                            "of the desired ordering of dimensions i.e. input.dim() = %d is not equal to "
                            "len(dims) = %lld",
                            self->ndim, (long long)dims.size);
    if (tp_coo_of(self, &c) < 0) return NULL;
    int64_t order[TP_MAX_DIMS], n = c.sparse_dim, of_values[TP_MAX_DIMS + 1] = {0};
    bool seen[TP_MAX_DIMS] = {0}, same = true;
    sizes s = {.count = dims.size};
    for (int64_t i = 0; i < dims.size; i++) {
        order[i] = tp_wrap_dim(dims.data[i], self->ndim);
        if (order[i] < 0) return NULL;
        if (seen[order[i]]) return tp_fail_null(TP_RuntimeError, "permute(): duplicate dims are not allowed.");
        if ((i < n) != (order[i] < n))
            return tp_fail_null(
                TP_RuntimeError,
                "permute(sparse_coo): transpositions between sparse and dense dimensions are not allowed");
        seen[order[i]] = true;
        same &= order[i] == i;
        s.data[i] = self->sizes[order[i]];
        if (i >= n) of_values[i - n + 1] = in_values(&c, order[i]);
    }
    const bool merged = same ? c.coalesced && (!dims.size || dims.data[0] == 0) : false; /* as PyTorch: not by -n */
    return tp_as_layout_steal(self, tp_make_coo_steal(tp_rows_of(c.indices, (tp_ints){order, n}),
                                                      tp_permute(c.values, (tp_ints){of_values, self->ndim - n + 1}),
                                                      SIZES(s), merged));
}

/* transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a) */
tp_tensor *transpose_layout(tp_tensor *self, int64_t dim0, int64_t dim1) {
    int64_t order[TP_MAX_DIMS], a = tp_wrap_dim(dim0, self->ndim), b = a < 0 ? -1 : tp_wrap_dim(dim1, self->ndim);
    if (b < 0) return NULL;
    if (self->ndim == 0) return tp_retain(self);
    tp_autoref *turned = NULL;
    if (tp_turned_lines(self, a, b, &turned) < 0 || turned) return tp_take(turned);
    for (int64_t d = 0; d < self->ndim; d++) order[d] = d == a ? b : d == b ? a : d;
    tp_autoref *made = tp_permute(self, (tp_ints){order, self->ndim});
    int64_t count = 1;
    if (!made || tp_layout_of(made) != TP_SPARSE_COO) return tp_take(made);
    if (tp__nnz(made, &count) < 0 || (a != b && !count && tp__coalesced_(made, true) < 0)) return NULL;
    return tp_take(made);
}

/* t(Tensor(a) self) -> Tensor(a) */
tp_tensor *t_layout(tp_tensor *self) {
    if (self->ndim > 2)
        return tp_fail_null(TP_RuntimeError, "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got %d",
                            self->ndim);
    return self->ndim == 2 ? tp_transpose_int(self, 0, 1) : tp_retain(self);
}

/* ---- added ---- */

/* unsqueeze(Tensor(a) self, int dim) -> Tensor(a) */
tp_tensor *unsqueeze_layout(tp_tensor *self, int64_t dim) {
    tp_autocoo c = {0};
    int64_t d = tp_wrap_dim(dim, self->ndim + 1);
    if (d < 0 || tp_coo_of(self, &c) < 0) return NULL;
    sizes s = sizes_of(self);
    insert(&s, d, 1);
    if (d > c.sparse_dim)
        return tp_make_coo_steal(tp_retain(c.indices), tp_unsqueeze(c.values, in_values(&c, d)), SIZES(s), c.coalesced);
    tp_autoref *zeros = tp_zeros(TP_INTS(1, c.indices->sizes[1]), TP_INT64, TP_STRIDED, c.indices->device, -1);
    tp_autoref *before = tp_narrow(c.indices, 0, 0, d), *after = tp_narrow(c.indices, 0, d, c.sparse_dim - d);
    if (!zeros || !before || !after) return NULL;
    return tp_make_coo_steal(tp_cat((tp_tensors){(tp_tensor *[]){before, zeros, after}, 3}, 0), tp_retain(c.values),
                             SIZES(s), c.coalesced);
}

/* squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a) */
tp_tensor *squeeze_dims_layout(tp_tensor *self, tp_ints dim) {
    bool out[TP_MAX_DIMS] = {0};
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], self->ndim);
        if (d < 0) return NULL;
        out[d] = self->ndim > 0 && self->sizes[d] == 1;
    }
    tp_autoref *made = tp_retain(self);
    for (int64_t d = self->ndim - 1; made && d >= 0; d--) {
        if (!out[d]) continue;
        tp_tensor *next = tp_select_int(made, d, 0);
        tp_release(made);
        made = next;
    }
    return tp_take(made);
}
tp_tensor *squeeze_dim_layout(tp_tensor *self, int64_t dim) { return squeeze_dims_layout(self, TP_INTS(dim)); }
tp_tensor *squeeze_layout(tp_tensor *self) {
    int64_t all[TP_MAX_DIMS];
    for (int64_t d = 0; d < self->ndim; d++) all[d] = d;
    return squeeze_dims_layout(self, (tp_ints){all, self->ndim});
}

/* ---- taken from ---- */

/* The values where `there` is True, with `indices` that lost or changed a row. */
static tp_tensor *selected(tp_tensor *there, tp_tensor *indices, const tp_coo *c, tp_ints size) {
    tp_autoref *places = there ? tp_where_true(there) : NULL;
    if (!places || !indices) return NULL;
    return tp_make_coo_steal(tp_index_select(indices, 1, places), tp_index_select(c->values, 0, places), size,
                             c->coalesced);
}

static tp_tensor *without_row(tp_tensor *indices, int64_t row) {
    tp_autoref *before = tp_narrow(indices, 0, 0, row),
               *after = tp_narrow(indices, 0, row + 1, indices->sizes[0] - row - 1);
    return before && after ? tp_cat((tp_tensors){(tp_tensor *[]){before, after}, 2}, 0) : NULL;
}

static tp_tensor *with_row(tp_tensor *indices, int64_t row, tp_tensor *other) {
    tp_autoref *before = tp_narrow(indices, 0, 0, row), *line = other ? tp_unsqueeze(other, 0) : NULL,
               *after = tp_narrow(indices, 0, row + 1, indices->sizes[0] - row - 1);
    return before && line && after ? tp_cat((tp_tensors){(tp_tensor *[]){before, line, after}, 3}, 0) : NULL;
}

/* select.int(Tensor(a) self, int dim, int index) -> Tensor(a) */
tp_tensor *select_layout(tp_tensor *self, int64_t dim, int64_t index) {
    tp_autocoo c = {0};
    if (self->ndim == 0) return tp_fail_null(TP_IndexError, "select() cannot be applied to a 0-dim tensor.");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0 || tp_coo_of(self, &c) < 0) return NULL;
    int64_t n = self->sizes[d];
    if (index < -n || index >= n) {
        tp_autotext text = {0};
        tp_text_ints(&text, tp_sizes(self));
        return tp_fail_null(TP_IndexError, "select(): index %lld out of range for tensor of size %s at dimension %lld",
                            (long long)index, text.text, (long long)d);
    }
    if (index < 0) index += n;
    sizes s = sizes_of(self);
    take_out(&s, d);
    if (d >= c.sparse_dim)
        return tp_make_coo_steal(tp_retain(c.indices), tp_select_int(c.values, in_values(&c, d), index), SIZES(s),
                                 c.coalesced);
    tp_autoref *row = tp_row_of(c.indices, d), *there = row ? tp_eq_Scalar(row, TP_SCALAR_I(index)) : NULL;
    if (!there) return NULL;
    if (c.sparse_dim == 1) {
        tp_autoref *places = tp_where_true(there), *found = places ? tp_index_select(c.values, 0, places) : NULL;
        return found ? tp_sum_dim_IntList(found, TP_INTS(0), false, (tp_dtype)self->dtype) : NULL;
    }
    tp_autoref *rest = without_row(c.indices, d);
    tp_tensor *made = selected(there, rest, &c, SIZES(s));
    return d < c.sparse_dim - 2 ? tp_as_layout_steal(self, made) : made; /* of a batch: matrices are left */
}

/* slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a) */
tp_tensor *slice_layout(tp_tensor *self, int64_t dim, tp_opt_int start, tp_opt_int end, int64_t step) {
    tp_autocoo c = {0};
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "slice() cannot be applied to a 0-dim tensor.");
    if (step != 1) return tp_fail_null(TP_RuntimeError, "a sparse tensor is not sliced with a step");
    int64_t n = self->sizes[d], from = start.has ? start.value : 0, to = end.has ? end.value : n;
    from = from < 0 ? from + n : from, to = to < 0 ? to + n : to;
    from = from < 0 ? 0 : from > n ? n : from, to = to < from ? from : to > n ? n : to;
    if (from == 0 && to == n) return tp_retain(self);
    if (tp_coo_of(self, &c) < 0) return NULL;
    sizes s = sizes_of(self);
    s.data[d] = to - from;
    if (d >= c.sparse_dim)
        return tp_as_layout_steal(self, tp_make_coo_steal(tp_retain(c.indices),
                                                          tp_narrow(c.values, in_values(&c, d), from, to - from),
                                                          SIZES(s), c.coalesced));
    tp_autoref *row = tp_row_of(c.indices, d), *above = row ? tp_ge_Scalar(row, TP_SCALAR_I(from)) : NULL;
    tp_autoref *below = above ? tp_lt_Scalar(row, TP_SCALAR_I(to)) : NULL;
    tp_autoref *there = below ? tp_logical_and(above, below) : NULL;
    tp_autoref *moved = there ? tp_sub_Scalar(row, TP_SCALAR_I(from), TP_SCALAR_I(1)) : NULL;
    tp_autoref *indices = moved ? with_row(c.indices, d, moved) : NULL;
    return tp_as_layout_steal(self, selected(there, indices, &c, SIZES(s)));
}

/* narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a) */
tp_tensor *narrow_layout(tp_tensor *self, int64_t dim, int64_t start, int64_t length) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
    int64_t n = self->sizes[d], from = start < 0 ? start + n : start;
    if (length < 0) return tp_fail_null(TP_RuntimeError, "narrow(): length must be non-negative.");
    if (from < 0 || from > n - length)
        return tp_fail_null(TP_RuntimeError, "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                            (long long)start, (long long)length, (long long)n);
    return tp_slice_Tensor(self, d, (tp_opt_int){true, from}, (tp_opt_int){true, from + length}, 1);
}

/* index_select(Tensor self, int dim, Tensor index) -> Tensor: each value goes wherever its place is asked for: pairs of
 * (asked, value) that agree. */
tp_tensor *index_select_layout(tp_tensor *self, int64_t dim, tp_tensor *index) {
    tp_autocoo c = {0};
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (tp_is_sparse(index) || index->ndim > 1)
        return tp_fail_null(TP_IndexError, "index_select(): Index is expected to be a dense vector");
    if (d < 0 || tp_coo_of(self, &c) < 0) return NULL;
    sizes s = sizes_of(self);
    s.data[d] = index->numel;
    if (d >= c.sparse_dim)
        return tp_as_layout_steal(self, tp_make_coo_steal(tp_retain(c.indices),
                                                          tp_index_select(c.values, in_values(&c, d), index), SIZES(s),
                                                          c.coalesced));
    tp_autoref *all = tp_arange(TP_SCALAR_I(self->sizes[d]), TP_INT64, TP_STRIDED, index->device, -1);
    tp_autoref *asked = all ? tp_index_select(all, 0, index) : NULL; /* refuses what is out of range */
    tp_autoref *row = asked ? tp_row_of(c.indices, d) : NULL,
               *order = row ? tp_argsort_stable(row, true, 0, false) : NULL;
    tp_autoref *sorted = order ? tp_index_select(row, 0, order) : NULL;
    tp_autoref *first = sorted ? tp_searchsorted_Tensor(sorted, asked, false, false, NULL, NULL) : NULL;
    tp_autoref *end = first ? tp_searchsorted_Tensor(sorted, asked, false, true, NULL, NULL) : NULL;
    tp_autoref *counts = end ? tp_sub_Tensor(end, first, TP_SCALAR_I(1)) : NULL;
    tp_tensor2 pairs = counts ? tp_ranges(first, counts) : (tp_tensor2){{NULL, NULL}};
    tp_autoref *which = pairs.v[0], *sources = pairs.v[1], *source = which ? tp_index_select(order, 0, sources) : NULL;
    tp_autoref *kept = source ? tp_index_select(c.indices, 1, source) : NULL;
    tp_autoref *indices = kept ? with_row(kept, d, which) : NULL,
               *values = indices ? tp_index_select(c.values, 0, source) : NULL;
    tp_autoref *made = values ? tp__coo(indices, values, SIZES(s), false) : NULL;
    bool merge = c.coalesced || tp_layout_of(self) != TP_SPARSE_COO;
    return made ? tp_as_layout_steal(self, merge ? tp__coalesce(made) : tp_take(made)) : NULL;
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor: by one list of whole numbers. */
tp_tensor *index_layout(tp_tensor *self, tp_tensors indices) {
    int64_t dim = -1, count = 0;
    for (int64_t d = 0; d < indices.size; d++)
        if (indices.data[d]) dim = d, count++;
    tp_tensor *index = count == 1 ? indices.data[dim] : NULL;
    if (!index || !tp_is_sparse(self) || index->ndim != 1 || (index->dtype != TP_INT64 && index->dtype != TP_INT32))
        return tp_fail_null(TP_NotImplementedError,
                            "a sparse tensor is indexed by numbers, slices and one list of whole numbers; to_dense() "
                            "gives a tensor that takes all others");
    tp_autoref *longs = tp_to_dtype(index, TP_INT64, false, false, TP_NO_FORMAT);
    tp_autoref *size = longs ? tp_add_Scalar(longs, TP_SCALAR_I(self->sizes[dim]), TP_SCALAR_I(1)) : NULL;
    tp_autoref *below = size ? tp_lt_Scalar(longs, TP_SCALAR_I(0)) : NULL;
    tp_autoref *places = below ? tp_where_self(below, size, longs) : NULL; /* negative ones count from the end */
    return places ? tp_index_select(self, dim, places) : NULL;
}

/* embedding(Tensor weight, Tensor indices, ...) -> Tensor: rows of a sparse table, which a list of numbers names. */
tp_tensor *embedding_layout(tp_tensor *weight, tp_tensor *indices, int64_t padding_idx TP_UNUSED,
                            bool scale_grad_by_freq TP_UNUSED, bool sparse TP_UNUSED) {
    if (weight->ndim != 2 || indices->ndim != 1 || tp_is_sparse(indices))
        return tp_fail_null(TP_NotImplementedError, "embedding: of a sparse table only a list of rows is taken");
    return tp_index_select(weight, 0, indices);
}

/* view_as_real(Tensor(a) self) -> Tensor(a), view_as_complex(Tensor(a) self) -> Tensor(a): the parts of a number are a
 * dense dimension. */
static tp_tensor *with_values_steal(tp_tensor *self, tp_tensor *values, tp_ints size) {
    tp_autoref *own = values;
    tp_autoparts *p = own ? tp_parts_of(self) : NULL;
    if (!p) return NULL;
    if (p->layout == TP_SPARSE_COO) return tp__coo(p->part[0], own, size, p->fact[TP_FACT_COALESCED]);
    return tp__compressed(p->part[0], p->part[1], own, size, p->layout);
}
tp_tensor *view_as_real_layout(tp_tensor *self) {
    sizes s = sizes_of(self);
    insert(&s, self->ndim, 2);
    tp_autoref *values = tp__layout_values(self);
    return values ? with_values_steal(self, tp_view_as_real(values), SIZES(s)) : NULL;
}
tp_tensor *view_as_complex_layout(tp_tensor *self) {
    int64_t dense;
    if (tp_dense_dim(self, &dense) < 0) return NULL;
    if (dense == 0 || self->sizes[self->ndim - 1] != 2)
        return tp_fail_null(TP_RuntimeError,
                            "view_as_complex: the last dimension of a sparse tensor is dense, of size 2");
    sizes s = sizes_of(self);
    take_out(&s, self->ndim - 1);
    tp_autoref *values = tp__layout_values(self);
    return values ? with_values_steal(self, tp_view_as_complex(values), SIZES(s)) : NULL;
}

/* unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *unbind_layout(tp_tensor *self, int64_t dim) {
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "unbind: the tensor has no dimensions");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    tp_autoseq *parts = d < 0 ? NULL : tp_tensor_seq_new(self->sizes[d]);
    for (int64_t i = 0; parts && i < parts->size; i++)
        if (!(parts->items[i] = tp_select_int(self, d, i))) return NULL;
    return tp_take(parts);
}

/* split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *split_with_sizes_layout(tp_tensor *self, tp_ints split_sizes, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim), from = 0, sum = 0;
    if (d < 0) return NULL;
    for (int64_t i = 0; i < split_sizes.size; i++) sum += split_sizes.data[i];
    if (self->ndim == 0 || sum != self->sizes[d])
        return tp_fail_null(TP_RuntimeError, "split_with_sizes: the sizes do not add up to that of the dimension");
    tp_autoseq *parts = tp_tensor_seq_new(split_sizes.size);
    for (int64_t i = 0; parts && i < parts->size; from += split_sizes.data[i++])
        if (!(parts->items[i] = tp_narrow(self, d, from, split_sizes.data[i]))) return NULL;
    return tp_take(parts);
}

/* equal(Tensor self, Tensor other) -> bool: of merged values. */
int equal_layout(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = false;
    if (tp_layout_of(self) != tp_layout_of(other))
        return tp_fail(TP_NotImplementedError, "equal: tensors of the layouts %s and %s",
                       tp_layouts[tp_layout_of(self)].name, tp_layouts[tp_layout_of(other)].name);
    if (!tp_same_sizes(self, other)) return 0;
    tp_autoref *a = tp__merged(self), *b = a ? tp__merged(other) : NULL;
    if (!b || tp__same_pattern(a, b, result) < 0) return -1;
    if (!*result) return 0;
    tp_autoref *x = tp__layout_values(a), *y = x ? tp__layout_values(b) : NULL;
    return y ? tp_equal(x, y, result) : -1;
}

/* ---- joined ---- */

static int same_but(const tp_tensor *a, const tp_tensor *b, int64_t dim, int64_t at) {
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) same = d == dim || a->sizes[d] == b->sizes[d];
    if (same) return 0;
    tp_autotext first = {0}, second = {0};
    tp_text_ints(&first, tp_sizes(a));
    tp_text_ints(&second, tp_sizes(b));
    return tp_fail(TP_RuntimeError,
                   "cat: All tensors must have the same shape: %s (but for dimension %lld), and the one at position "
                   "%lld is of %s",
                   first.text, (long long)dim, (long long)at, second.text);
}

/* Values of one tensor along a joined dense dimension: zeros where the others have theirs. */
static tp_tensor *padded(tp_tensor *values, int64_t dim, int64_t before, int64_t whole) {
    int64_t shape[TP_MAX_DIMS + 1];
    for (int d = 0; d < values->ndim; d++) shape[d] = values->sizes[d];
    shape[dim] = before;
    tp_autoref *front =
        tp_zeros((tp_ints){shape, values->ndim}, (tp_dtype)values->dtype, TP_STRIDED, values->device, -1);
    shape[dim] = whole - before - values->sizes[dim];
    tp_autoref *back =
        front ? tp_zeros((tp_ints){shape, values->ndim}, (tp_dtype)values->dtype, TP_STRIDED, values->device, -1)
              : NULL;
    return back ? tp_cat((tp_tensors){(tp_tensor *[]){front, values, back}, 3}, dim) : NULL;
}

static int join(tp_tensors tensors, int64_t d, int64_t whole, tp_tensor_seq *indices, tp_tensor_seq *values,
                int64_t *sparse_dim, bool *ordered) {
    int64_t offset = 0;
    for (int64_t i = 0; i < tensors.size; i++) {
        tp_autocoo c = {0};
        if (tp_coo_of(tensors.data[i], &c) < 0) return -1;
        if (i == 0) *sparse_dim = c.sparse_dim;
        if (c.sparse_dim != *sparse_dim)
            return tp_fail(TP_RuntimeError,
                           "cat: All tensors must have the same sparse_dim and dense_dim: %lld, %lld, but tensor at "
                           "position %lld has %lld, %lld.",
                           (long long)*sparse_dim, (long long)(tensors.data[i]->ndim - *sparse_dim), (long long)i,
                           (long long)c.sparse_dim, (long long)(tensors.data[i]->ndim - c.sparse_dim));
        *ordered &= c.coalesced && d == 0;
        if (d >= c.sparse_dim) {
            indices->items[i] = tp_retain(c.indices);
            values->items[i] = padded(c.values, in_values(&c, d), offset, whole);
        } else {
            tp_autoref *row = tp_row_of(c.indices, d),
                       *moved = row ? tp_add_Scalar(row, TP_SCALAR_I(offset), TP_SCALAR_I(1)) : NULL;
            indices->items[i] = moved ? with_row(c.indices, d, moved) : NULL;
            values->items[i] = tp_retain(c.values);
        }
        if (!indices->items[i] || !values->items[i]) return -1;
        offset += tensors.data[i]->sizes[d];
    }
    return 0;
}

/* cat(Tensor[] tensors, int dim=0) -> Tensor */
tp_tensor *cat_layout(tp_tensors tensors, int64_t dim) {
    const tp_tensor *first = tensors.data[0];
    int64_t d = tp_wrap_dim(dim, first->ndim), whole = 0, sparse_dim = 0;
    if (d < 0) return NULL;
    for (int64_t i = 0; i < tensors.size; i++) {
        if (!tp_is_sparse(tensors.data[i]))
            return tp_fail_null(TP_RuntimeError, "cat: sparse tensors are put after sparse tensors only");
        if (same_but(first, tensors.data[i], d, i) < 0) return NULL;
        whole += tensors.data[i]->sizes[d];
    }
    bool ordered = true;
    tp_autoseq *indices = tp_tensor_seq_new(tensors.size), *values = indices ? tp_tensor_seq_new(tensors.size) : NULL;
    if (!values || join(tensors, d, whole, indices, values, &sparse_dim, &ordered) < 0) return NULL;
    sizes s = sizes_of(first);
    s.data[d] = whole;
    return tp_as_layout_steal(first, tp_make_coo_steal(tp_cat(tp_tensor_seq_borrow(indices), 1),
                                                       tp_cat(tp_tensor_seq_borrow(values), 0), SIZES(s), ordered));
}

/* stack(Tensor[] tensors, int dim=0) -> Tensor */
tp_tensor *stack_layout(tp_tensors tensors, int64_t dim) {
    tp_autoseq *parts = tp_tensor_seq_new(tensors.size);
    for (int64_t i = 0; parts && i < tensors.size; i++)
        if (!(parts->items[i] = tp_unsqueeze(tensors.data[i], dim))) return NULL;
    return parts ? tp_cat(tp_tensor_seq_borrow(parts), dim) : NULL;
}

/* ---- summed ---- */

/* sum(Tensor self, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *sum_layout(tp_tensor *self, tp_dtype dtype) {
    tp_autoref *values = tp__layout_values(self);
    return values ? tp_sum(values, dtype) : NULL;
}

static tp_tensor *reshaped_steal(tp_tensor *made, tp_ints size) {
    tp_autoref *own = made;
    return own ? tp_reshape(own, size) : NULL;
}

/* Whether it is one matrix in lines of numbers: sums that keep dimensions are as well. */
static bool is_lines(const tp_tensor *t) {
    return t->ndim == 2 && (tp_layout_of(t) == TP_SPARSE_CSR || tp_layout_of(t) == TP_SPARSE_CSC);
}

/* A matrix with one element, which is stored. */
static tp_tensor *one_value(tp_tensor *like, tp_tensor *number) {
    return tp_as_layout_steal(like, tp_make_coo_steal(tp_zeros(TP_INTS(2, 1), TP_INT64, TP_STRIDED, like->device, -1),
                                                      reshaped_steal(number, TP_INTS(1)), TP_INTS(1, 1), true));
}

/* sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor */
tp_tensor *sum_dim_layout(tp_tensor *self, tp_ints dim, bool keepdim, tp_dtype dtype) {
    bool out[TP_MAX_DIMS] = {0};
    const bool lines = is_lines(self);
    int64_t gone = 0, dense[TP_MAX_DIMS], kept[TP_MAX_DIMS], ndense = 0, nkept = 0, taken = 0;
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t d = tp_wrap_dim(dim.data[i], self->ndim);
        if (d < 0) return NULL;
        if (out[d])
            return tp_fail_null(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)d);
        out[d] = true;
        gone++;
    }
    if (gone == 0 || gone == self->ndim) {
        for (int d = 0; d < self->ndim; d++) dense[d] = 1;
        tp_tensor *whole = tp_sum(self, dtype);
        if (keepdim && lines) return one_value(self, whole);
        return keepdim ? reshaped_steal(whole, (tp_ints){dense, self->ndim}) : whole;
    }
    if (dtype < 0 && (self->dtype == TP_BOOL || tp_is_integral_dtype((tp_dtype)self->dtype))) dtype = TP_INT64;
    tp_autocoo c = {0};
    if (tp_coo_of(self, &c) < 0) return NULL;
    sizes s = {.count = 0}, full = sizes_of(self);
    for (int64_t d = 0; d < self->ndim; d++) {
        if (out[d]) full.data[d] = 1;
        else s.data[s.count++] = self->sizes[d];
        if (d >= c.sparse_dim && out[d]) dense[ndense++] = in_values(&c, d);
        if (d < c.sparse_dim && !out[d]) kept[nkept++] = d;
        taken += d < c.sparse_dim && out[d];
    }
    tp_autoref *values = ndense      ? tp_sum_dim_IntList(c.values, (tp_ints){dense, ndense}, false, dtype)
                         : dtype < 0 ? tp_retain(c.values)
                                     : tp_to_dtype(c.values, dtype, false, false, TP_NO_FORMAT);
    if (!values) return NULL;
    if (nkept == 0) {
        tp_tensor *made = tp_sum_dim_IntList(values, TP_INTS(0), false, dtype);
        return keepdim ? reshaped_steal(made, SIZES(full)) : made;
    }
    tp_tensor *indices = taken ? tp_rows_of(c.indices, (tp_ints){kept, nkept}) : tp_retain(c.indices);
    tp_autoref *joined = tp_make_coo_steal(indices, tp_retain(values), SIZES(s), !taken && c.coalesced);
    tp_autoref *made = joined && taken ? tp__coalesce(joined) : tp_retain(joined);
    for (int64_t d = 0; made && keepdim && d < self->ndim; d++) {
        if (!out[d]) continue;
        tp_tensor *next = tp_unsqueeze(made, d);
        tp_release(made);
        made = next;
    }
    return keepdim && lines ? tp_as_layout_steal(self, tp_take(made)) : tp_take(made);
}
