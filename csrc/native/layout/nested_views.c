/* nested_views.c: views of nested tensors, copies, and writes to them (Note [Nested kernels]). */
#include "native/layout/nested.h"

#include "NativeFunctions.h"
#include "core/scalar.h"
#include "core/tls.h"
#include "prim/table.h"

/* What an operator gives for each piece, as a nested tensor or, with `stack`, a dense one. */
typedef tp_tensor *(*on_piece)(tp_tensor *piece, const int64_t *with);

static tp_tensor *of_each(const tp_nested *n, on_piece f, const int64_t *with, bool stack) {
    tp_autoseq *pieces = tp_pieces(n), *made = pieces ? tp_tensor_seq_new(n->count) : NULL;
    for (int64_t i = 0; made && i < n->count; i++)
        if (!(made->items[i] = f(pieces->items[i], with))) return NULL;
    if (!made) return NULL;
    tp_tensors list = tp_tensor_seq_borrow(made);
    return stack ? tp_stack(list, 0) : tp_nested_of_results(n, list);
}

/* A dimension that is not the batch; -1 and the error set. */
static int64_t inner_dim(int64_t dim, int64_t ndim, const char *op) {
    int64_t at = tp_wrap_dim(dim, ndim);
    if (at == 0) return tp_fail(TP_RuntimeError, "%s(): not supported for NestedTensor on dim=0", op);
    return at;
}

/* The class of errors about an order of dimensions, which differs by layout as in PyTorch. */
static tp_error_class order_error(const tp_tensor *self) {
    return tp_layout_of(self) == TP_JAGGED ? TP_ValueError : TP_RuntimeError;
}

/* unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *unbind_nested(tp_tensor *self, int64_t dim) {
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, self->ndim);
    if (at < 0) return NULL;
    if (at)
        return tp_fail(TP_RuntimeError,
                       "NestedTensor can only be unbound along dimension 0 got dimension %lld instead.", (long long)at),
               NULL;
    return tp_nested_of(self, &n) < 0 ? NULL : tp_pieces(&n);
}

static tp_tensor *one_piece(const tp_nested *n, int64_t index) {
    int64_t i = index < 0 ? index + n->count : index, room[TP_MAX_DIMS];
    if (i < 0 || i >= n->count)
        return tp_fail_null(TP_IndexError, "index %lld is out of bounds for dimension 0 with size %lld",
                            (long long)index, (long long)n->count);
    tp_autoref *piece = tp_narrow(n->values, n->ragged - 1, n->from[i], n->length[i]);
    return piece && n->shapes ? tp_view(piece, tp_piece_sizes(n, i, room)) : tp_take(piece);
}

static tp_tensor *select_piece(tp_tensor *piece, const int64_t *with) { return tp_select_int(piece, with[0], with[1]); }

/* select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a) */
tp_tensor *select_nested(tp_tensor *self, int64_t dim, int64_t index) {
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, self->ndim);
    if (at < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (at == 0) return one_piece(&n, index);
    if (n.shapes || at == n.ragged) return of_each(&n, select_piece, (int64_t[]){at - 1, index}, n.jagged);
    return tp_nested_with_steal(&n, tp_select_int(n.values, at - 1, index), n.ragged - (at < n.ragged));
}

static tp_tensor *slice_piece(tp_tensor *piece, const int64_t *with) {
    return tp_slice_Tensor(piece, with[0], TP_SOME_INT(with[1]), TP_SOME_INT(with[2]), with[3]);
}

static tp_tensor *some_pieces(const tp_nested *n, int64_t start, int64_t end, int64_t step) {
    tp_autoseq *pieces = tp_pieces(n);
    if (!pieces) return NULL;
    if (step < 1) return tp_fail_null(TP_ValueError, "slice step must be positive");
    start = start < 0 ? start + n->count : start;
    end = end < 0 ? end + n->count : end > n->count ? n->count : end;
    start = start < 0 ? 0 : start;
    int64_t count = 0;
    tp_autoseq *kept = tp_tensor_seq_new(n->count);
    for (int64_t i = start; kept && i < end; i += step) kept->items[count++] = tp_retain(pieces->items[i]);
    if (!kept || !count) return kept ? tp_nested_none(n) : NULL;
    return tp__nested_from_list((tp_tensors){kept->items, count}, n->jagged);
}

/* slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a) */
tp_tensor *slice_nested(tp_tensor *self, int64_t dim, tp_opt_int start, tp_opt_int end, int64_t step) {
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, self->ndim), from = start.has ? start.value : 0, to = end.has ? end.value : INT64_MAX;
    if (at < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (at == 0) return some_pieces(&n, from, to, step);
    if (n.shapes || at == n.ragged) return of_each(&n, slice_piece, (int64_t[]){at - 1, from, to, step}, false);
    return tp_nested_with_steal(&n, tp_slice_Tensor(n.values, at - 1, start, end, step), n.ragged);
}

static tp_tensor *transpose_piece(tp_tensor *piece, const int64_t *with) {
    return tp_transpose_int(piece, with[0], with[1]);
}

/* transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a) */
tp_tensor *transpose_nested(tp_tensor *self, int64_t dim0, int64_t dim1) {
    tp_autonested n = {0};
    int64_t a = tp_wrap_dim(dim0, self->ndim), b = a < 0 ? -1 : tp_wrap_dim(dim1, self->ndim);
    if (b < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (a == 0 || b == 0)
        return tp_fail_null(order_error(self), "transpose(): not supported for NestedTensor on dim=0");
    if (n.shapes) return of_each(&n, transpose_piece, (int64_t[]){a - 1, b - 1}, false);
    return tp_nested_with_steal(&n, tp_transpose_int(n.values, a - 1, b - 1),
                                n.ragged == a   ? b
                                : n.ragged == b ? a
                                                : n.ragged);
}

/* permute(Tensor(a) self, int[] dims) -> Tensor(a) */
tp_tensor *permute_nested(tp_tensor *self, tp_ints dims) {
    tp_autonested n = {0};
    int64_t inner[TP_MAX_DIMS], ragged = 1;
    if (dims.size != self->ndim || dims.data[0] != 0)
        return tp_fail_null(order_error(self), "permute(): the batch of a nested tensor stays in front");
    if (tp_nested_of(self, &n) < 0) return NULL;
    for (int64_t d = 1; d < dims.size; d++) {
        int64_t at = inner_dim(dims.data[d], self->ndim, "permute");
        if (at < 0) return NULL;
        if (at == n.ragged) ragged = d;
        inner[d - 1] = at - 1;
    }
    if (n.shapes) return tp_fail_null(TP_NotImplementedError, "permute() of pieces that differ in several dimensions");
    return tp_nested_with_steal(&n, tp_permute(n.values, (tp_ints){inner, dims.size - 1}), ragged);
}

static tp_tensor *unsqueeze_piece(tp_tensor *piece, const int64_t *with) { return tp_unsqueeze(piece, with[0]); }

/* unsqueeze(Tensor(a) self, int dim) -> Tensor(a) */
tp_tensor *unsqueeze_nested(tp_tensor *self, int64_t dim) {
    tp_autonested n = {0};
    int64_t at = inner_dim(dim, self->ndim + 1, "unsqueeze");
    if (at < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (n.shapes) return of_each(&n, unsqueeze_piece, (int64_t[]){at - 1}, false);
    return tp_nested_with_steal(&n, tp_unsqueeze(n.values, at - 1), n.ragged + (at <= n.ragged));
}

static tp_tensor *squeeze_piece(tp_tensor *piece, const int64_t *with) {
    return tp_squeeze_dims(piece, (tp_ints){with + 1, with[0]});
}

/* Squeezes those dimensions of `wanted` (from 1 on, a bit each) that have the size 1 in all pieces; the differing one
 * of a jagged tensor stays. */
static tp_tensor *squeeze_some(const tp_nested *n, uint64_t wanted) {
    int64_t room[TP_MAX_DIMS], dims[TP_MAX_DIMS + 1] = {0}, before = 0;
    if (n->jagged) wanted &= ~(UINT64_C(1) << n->ragged);
    for (int64_t i = 0; i < n->count; i++) {
        tp_ints sizes = tp_piece_sizes(n, i, room);
        for (int64_t d = 0; d < sizes.size; d++)
            if (sizes.data[d] != 1) wanted &= ~(UINT64_C(1) << (d + 1));
    }
    for (int64_t d = 1; d <= tp_piece_dims(n); d++) {
        if (!(wanted >> d & 1)) continue;
        dims[++dims[0]] = d - 1;
        before += d < n->ragged;
    }
    if (n->shapes || wanted >> n->ragged & 1) return of_each(n, squeeze_piece, dims, false);
    return tp_nested_with_steal(n, tp_squeeze_dims(n->values, (tp_ints){dims + 1, dims[0]}), n->ragged - before);
}

/* squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a) */
tp_tensor *squeeze_dims_nested(tp_tensor *self, tp_ints dim) {
    tp_autonested n = {0};
    uint64_t wanted = 0;
    for (int64_t i = 0; i < dim.size; i++) {
        int64_t at = inner_dim(dim.data[i], self->ndim, "squeeze");
        if (at <= 0) return NULL;
        wanted |= UINT64_C(1) << at;
    }
    if (tp_nested_of(self, &n) < 0) return NULL;
    if (n.jagged && wanted >> n.ragged & 1)
        return tp_fail_null(TP_RuntimeError, "squeeze(): not supported for NestedTensor on ragged dim");
    return squeeze_some(&n, wanted);
}
/* squeeze.dim(Tensor(a) self, int dim) -> Tensor(a) */
tp_tensor *squeeze_dim_nested(tp_tensor *self, int64_t dim) { return squeeze_dims_nested(self, (tp_ints){&dim, 1}); }
/* squeeze(Tensor(a) self) -> Tensor(a) */
tp_tensor *squeeze_nested(tp_tensor *self) {
    return tp_fail_null(
        tp_layout_of(self) == TP_JAGGED ? TP_NotImplementedError : TP_RuntimeError,
        "squeeze(): For nested tensors, squeeze without the dim argument is not supported: squeeze(dim) "
        "names the dimension");
}

/* expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a): -1 for sizes that stay, among them the
 * one that differs. */
tp_tensor *expand_nested(tp_tensor *self, tp_ints size, bool implicit) {
    tp_autonested n = {0};
    int64_t inner[TP_MAX_DIMS];
    if (tp_nested_of(self, &n) < 0) return NULL;
    if (n.shapes) return tp_fail_null(TP_NotImplementedError, "expand of pieces that differ in several dimensions");
    if (size.size != self->ndim || (size.data[0] != n.count && size.data[0] != -1) || size.data[n.ragged] != -1)
        return tp_fail_null(TP_RuntimeError, "expand(): a nested tensor keeps its batch and the dimension whose sizes "
                                             "differ");
    for (int64_t d = 1; d < size.size; d++) inner[d - 1] = size.data[d];
    return tp_nested_with_steal(&n, tp_expand(n.values, (tp_ints){inner, size.size - 1}, implicit), n.ragged);
}

/* chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *chunk_nested(tp_tensor *self, int64_t chunks, int64_t dim) {
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, self->ndim);
    if (at < 0 || tp_nested_of(self, &n) < 0 || tp_nested_check_no_holes(&n, TP_ValueError, "chunk") < 0) return NULL;
    if (n.shapes || at == n.ragged)
        return tp_fail(TP_RuntimeError, "chunk(): not supported for NestedTensor on ragged dim%s",
                       n.jagged ? ""
                                : ". Chunk for nested tensors is currently only supported for the last dimension."),
               NULL;
    if (chunks < 1) return tp_fail(TP_RuntimeError, "chunk() expects `chunks` to be greater than 0"), NULL;
    int64_t size = at ? n.values->sizes[at - 1] : n.count, step = (size + chunks - 1) / chunks;
    tp_autoseq *made = tp_tensor_seq_new(step ? (size + step - 1) / step : chunks);
    for (int64_t i = 0; made && i < made->size; i++) {
        int64_t from = i * step, to = from + step < size ? from + step : size;
        if (!(made->items[i] = slice_nested(self, at, TP_SOME_INT(from), TP_SOME_INT(to), 1))) return NULL;
    }
    return tp_take(made);
}

static int64_t product(const int64_t *sizes, int64_t n) {
    int64_t p = 1;
    for (int64_t i = 0; i < n; i++) p *= sizes[i];
    return p;
}

/* reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a), and view: -1 stands for the dimension that differs. */
tp_tensor *reshape_nested(tp_tensor *self, tp_ints shape) {
    tp_autonested n = {0};
    int64_t inner[TP_MAX_DIMS], ragged = 0;
    if (tp_nested_of(self, &n) < 0) return NULL;
    if (shape.size < 2 || shape.size > TP_MAX_DIMS || (shape.data[0] != n.count && shape.data[0] != -1))
        return tp_fail_null(TP_RuntimeError, "view: the first size of a nested tensor, %lld, stays",
                            (long long)n.count);
    if (n.shapes) return tp_fail_null(TP_NotImplementedError, "view of pieces that differ in several dimensions");
    int64_t before = product(n.values->sizes, n.ragged - 1);
    for (int64_t d = 1; d < shape.size; d++) {
        inner[d - 1] = shape.data[d];
        if (!ragged && shape.data[d] == -1 && product(shape.data + 1, d - 1) == before) ragged = d;
    }
    if (!ragged)
        return tp_fail_null(TP_RuntimeError, "view: -1 stands for the dimension of a nested tensor whose sizes differ");
    inner[ragged - 1] = n.values->sizes[n.ragged - 1];
    return tp_nested_with_steal(&n, tp_reshape(n.values, (tp_ints){inner, shape.size - 1}), ragged);
}

/* unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a) */
tp_tensor *unflatten_nested(tp_tensor *self, int64_t dim, tp_ints sizes) {
    tp_autonested n = {0};
    int64_t at = inner_dim(dim, self->ndim, "unflatten");
    if (at < 0 || tp_nested_of(self, &n) < 0) return NULL;
    if (n.shapes || at == n.ragged)
        return tp_fail_null(TP_RuntimeError, "unflatten(): not supported for NestedTensor on ragged dim");
    return tp_nested_with_steal(&n, tp_unflatten_int(n.values, at - 1, sizes),
                                n.ragged + (at < n.ragged ? sizes.size - 1 : 0));
}

/* cat(Tensor[] tensors, int dim=0) -> Tensor: along dimension 0 the pieces of all. */
static tp_tensor *cat_pieces(tp_tensors tensors, bool jagged) {
    int64_t count = 0, at = 0;
    for (int64_t i = 0; i < tensors.size; i++) count += tensors.data[i]->ndim ? tensors.data[i]->sizes[0] : 0;
    tp_autoseq *all = tp_tensor_seq_new(count);
    for (int64_t i = 0; all && i < tensors.size; i++) {
        tp_autoseq *pieces = tp_unbind_int(tensors.data[i], 0);
        if (!pieces) return NULL;
        for (int64_t k = 0; k < pieces->size && at < count; k++) all->items[at++] = tp_retain(pieces->items[k]);
    }
    return all ? tp__nested_from_list((tp_tensors){all->items, at}, jagged) : NULL;
}
tp_tensor *cat_nested(tp_tensors tensors, int64_t dim) {
    for (int64_t i = 0; i < tensors.size; i++)
        if (!tp_is_nested(tensors.data[i]))
            return tp_fail_null(TP_RuntimeError, "cat(): nested tensors and dense ones are not joined");
    tp_autonested n = {0};
    int64_t at = tp_wrap_dim(dim, tensors.data[0]->ndim);
    if (at < 0 || tp_nested_of(tensors.data[0], &n) < 0) return NULL;
    if (at == 0 && n.jagged) return tp_fail_null(TP_RuntimeError, "cat(): not supported for NestedTensor on dim=0");
    if (at == 0) return cat_pieces(tensors, false);
    tp_autoseq *made = tp_tensor_seq_new(n.count), *row = made ? tp_tensor_seq_new(tensors.size) : NULL;
    for (int64_t i = 0; row && i < n.count; i++) {
        for (int64_t k = 0; k < tensors.size; k++) {
            tp_release(tp_take(row->items[k]));
            if (!(row->items[k] = tp_select_int(tensors.data[k], 0, i))) return NULL;
        }
        if (!(made->items[i] = tp_cat(tp_tensor_seq_borrow(row), at - 1))) return NULL;
    }
    return row ? tp_nested_of_results(&n, tp_tensor_seq_borrow(made)) : NULL;
}

/* values(Tensor(a) self) -> Tensor(a): all in one dimension, unless the layout is jagged. */
tp_tensor *values_nested(tp_tensor *self) {
    tp_autonested n = {0};
    if (tp_layout_of(self) == TP_JAGGED) return tp__layout_values(self);
    return tp_nested_of(self, &n) < 0 ? NULL : tp_nested_flat_of(&n);
}

/* A strided one has its pieces one after the other. */
static bool is_contiguous(const tp_nested *n) {
    return n->whole && (n->ragged == 1 || n->jagged) && tp_is_contiguous(n->values);
}

/* sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool */
int is_contiguous_nested(tp_tensor *self, tp_memory_format memory_format TP_UNUSED, bool *result) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return -1;
    *result = is_contiguous(&n);
    return 0;
}

/* contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a) */
tp_tensor *contiguous_nested(tp_tensor *self, tp_memory_format memory_format TP_UNUSED) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return NULL;
    if (is_contiguous(&n)) return tp_retain(self);
    if (n.whole && (n.ragged == 1 || n.jagged))
        return tp_nested_with_steal(&n, tp_contiguous(n.values, TP_CONTIGUOUS_FORMAT), n.ragged);
    tp_autoseq *pieces = n.count ? tp_pieces(&n) : NULL;
    if (!pieces) return n.count ? NULL : tp_nested_none(&n);
    return n.jagged ? tp_nested_of_results(&n, tp_tensor_seq_borrow(pieces))
                    : tp__nested_from_list(tp_tensor_seq_borrow(pieces), false);
}

/* _to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) -> Tensor */
tp_tensor *_to_copy_nested(tp_tensor *self, tp_dtype dtype, tp_layout layout TP_UNUSED, tp_device device,
                           tp_opt_bool pin_memory, bool non_blocking, tp_memory_format memory_format TP_UNUSED) {
    tp_autonested n = {0};
    if (tp_nested_of(self, &n) < 0) return NULL;
    tp_autoref *values = tp__to_copy(n.values, dtype, TP_NO_LAYOUT, device, pin_memory, non_blocking, TP_NO_FORMAT);
    if (!values) return NULL;
    tp_autoref *offsets = tp_to_device(n.offsets, values->device, TP_INT64, false, false, TP_NO_FORMAT);
    tp_autoref *lengths =
        offsets && n.lengths ? tp_to_device(n.lengths, values->device, TP_INT64, false, false, TP_NO_FORMAT) : NULL;
    if (!offsets || (n.lengths && !lengths)) return NULL;
    return tp__nested_make(values, offsets, lengths, n.shapes, n.ragged, n.jagged, n.least, n.most);
}

/* ---- writing ---- */

int (*tp_nested_check_inplace)(tp_tensor *t, const char *op, bool records);
int (*tp_nested_written)(tp_tensor *t, const tp_nested *n);

static bool is_recorded(const tp_tensor *self, const tp_tensor *from) {
    return !tp_tls.grad_disabled && (self->flags | (from ? from->flags : 0)) & TP_FLAG_REQUIRES_GRAD;
}

/* A nested tensor that is written where its values are. */
static int to_write(tp_tensor *self, const tp_tensor *from, tp_nested *n, const char *op) {
    if (!tp_is_nested(self)) return tp_fail(TP_RuntimeError, "%s: a dense tensor takes no nested one", op);
    if (tp_nested_check_inplace(self, op, is_recorded(self, from)) < 0 || tp_nested_of(self, n) < 0) return -1;
    tp_nested_own_values(n);
    return 0;
}

static int wrote(tp_tensor *self, const tp_tensor *from, const tp_nested *n, int status) {
    return status == 0 && is_recorded(self, from) ? tp_nested_written(self, n) : status;
}

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!) */
int copy__nested(tp_tensor *self, tp_tensor *src, bool non_blocking) {
    tp_autonested n = {0};
    tp_autoref *beside = to_write(self, src, &n, "copy_") < 0 ? NULL : tp_beside(&n, src, false);
    return beside ? wrote(self, src, &n, tp_copy_(n.values, beside, non_blocking)) : -1;
}
/* fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!) */
int fill__Scalar_nested(tp_tensor *self, const tp_scalar *value) {
    tp_autonested n = {0};
    return to_write(self, NULL, &n, "fill_") < 0 ? -1 : wrote(self, NULL, &n, tp_fill__Scalar(n.values, value));
}
/* fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!) */
int fill__Tensor_nested(tp_tensor *self, tp_tensor *value) {
    tp_autonested n = {0};
    return to_write(self, value, &n, "fill_") < 0 ? -1 : wrote(self, value, &n, tp_fill__Tensor(n.values, value));
}
/* zero_(Tensor(a!) self) -> Tensor(a!) */
int zero__nested(tp_tensor *self) { return fill__Scalar_nested(self, TP_SCALAR_I(0)); }

/* ---- questions ---- */

/* is_same_size(Tensor self, Tensor other) -> bool */
int is_same_size_nested(tp_tensor *self, tp_tensor *other, bool *result) {
    tp_autonested a = {0}, b = {0};
    int64_t one[TP_MAX_DIMS], two[TP_MAX_DIMS];
    *result = false;
    if (!tp_is_nested(self) || !tp_is_nested(other))
        return tp_fail(TP_RuntimeError, "is_same_size: Expected both self and other to be nested tensors.");
    if (tp_nested_of(self, &a) < 0 || tp_nested_of(other, &b) < 0) return -1;
    *result = a.count == b.count && self->ndim == other->ndim;
    for (int64_t i = 0; *result && i < a.count; i++) {
        tp_piece_sizes(&a, i, one);
        tp_piece_sizes(&b, i, two);
        for (int64_t d = 0; d < self->ndim - 1; d++) *result &= one[d] == two[d];
    }
    return 0;
}

/* equal(Tensor self, Tensor other) -> bool */
int equal_nested(tp_tensor *self, tp_tensor *other, bool *result) {
    tp_autonested a = {0}, b = {0};
    *result = false;
    if (!tp_is_nested(self) || !tp_is_nested(other)) return 0;
    if (is_same_size_nested(self, other, result) < 0) return -1;
    if (!*result) return 0;
    if (tp_nested_of(self, &a) < 0 || tp_nested_of(other, &b) < 0) return -1;
    tp_autoseq *one = tp_pieces(&a), *two = one ? tp_pieces(&b) : NULL;
    if (!two) return -1;
    for (int64_t i = 0; *result && i < a.count; i++)
        if (tp_equal(one->items[i], two->items[i], result) < 0) return -1;
    return 0;
}

/* is_pinned(Tensor self, Device? device=None) -> bool */
int is_pinned_nested(tp_tensor *self, tp_device device, bool *result) {
    tp_autoref *values = tp__layout_values(self);
    return values ? tp_is_pinned(values, device, result) : -1;
}

/* numel(Tensor self) -> int */
int numel_nested(tp_tensor *self, int64_t *result) {
    tp_autoparts *parts = tp_parts_of(self);
    if (!parts) return -1;
    *result = parts->fact[TP_FACT_NUMEL];
    return 0;
}
