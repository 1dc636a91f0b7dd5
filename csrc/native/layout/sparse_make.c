/* sparse_make.c: sparse tensors like others: copies, other dtypes and devices, zeros. */
#include "native/layout/layout.h"

#include "NativeFunctions.h"
#include "core/scalar.h"

/* The parts that say where elements are, each made by `each`, and the values given. */
static tp_tensor *with_indices(tp_tensor *self, tp_tensor *(*each)(tp_tensor *, tp_device), tp_device device,
                               tp_tensor *values) {
    tp_autoparts *p = tp_parts_of(self);
    if (!p || !values) return NULL;
    tp_autoref *first = each(p->part[0], device);
    if (!first) return NULL;
    if (p->layout == TP_SPARSE_COO) return tp__coo(first, values, tp_sizes(self), p->fact[TP_FACT_COALESCED]);
    tp_autoref *second = each(p->part[1], device);
    return second ? tp__compressed(first, second, values, tp_sizes(self), p->layout) : NULL;
}

static tp_tensor *copied(tp_tensor *part, tp_device device TP_UNUSED) { return tp_clone(part, TP_NO_FORMAT); }
static tp_tensor *moved(tp_tensor *part, tp_device device) {
    return tp_to_device(part, device, (tp_dtype)part->dtype, false, false, TP_NO_FORMAT);
}

/* clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor */
tp_tensor *clone_layout(tp_tensor *self, tp_memory_format memory_format TP_UNUSED) {
    tp_autoref *values = tp__layout_values(self), *own = values ? tp_clone(values, TP_NO_FORMAT) : NULL;
    return own ? with_indices(self, copied, self->device, own) : NULL;
}

/* _to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, ...) -> Tensor */
tp_tensor *_to_copy_layout(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory,
                           bool non_blocking, tp_memory_format memory_format TP_UNUSED) {
    tp_autoref *values = tp__layout_values(self);
    tp_autoref *own =
        values ? tp__to_copy(values, dtype, TP_NO_LAYOUT, device, pin_memory, non_blocking, TP_NO_FORMAT) : NULL;
    tp_autoref *made =
        own ? with_indices(self, tp_device_equal(own->device, self->device) ? copied : moved, own->device, own) : NULL;
    if (!made || layout < 0 || layout == tp_layout_of(self)) return tp_take(made);
    return tp_to_sparse(made, layout, TP_NO_INTS, TP_NO_INT);
}

/* ---- zeros ---- */

static tp_device or_device(tp_device wanted, const tp_tensor *like) { return wanted.type < 0 ? like->device : wanted; }

/* A tensor of coordinates with no values. */
static tp_tensor *empty_coo(tp_ints size, int64_t sparse_dim, tp_dtype dtype, tp_device device) {
    int64_t room[TP_MAX_DIMS + 1] = {0};
    for (int64_t d = sparse_dim; d < size.size; d++) room[d - sparse_dim + 1] = size.data[d];
    tp_ints shape = {room, size.size - sparse_dim + 1};
    return tp_make_coo_steal(tp_zeros(TP_INTS(sparse_dim, 0), TP_INT64, TP_STRIDED, device, -1),
                             tp_zeros(shape, dtype, TP_STRIDED, device, -1), size, true);
}

tp_tensor *tp_empty_of_layout(tp_ints size, tp_layout layout, tp_dtype dtype, tp_device device) {
    const bool rows = layout == TP_SPARSE_CSR;
    if (tp_checked_numel(size) < 0) return NULL;
    if (layout == TP_SPARSE_COO) return empty_coo(size, size.size, dtype, device);
    if (!rows && layout != TP_SPARSE_CSC)
        return tp_fail_null(TP_RuntimeError, "empty: a tensor of the layout %s is not made of its size alone",
                            tp_layouts[layout].name);
    if (size.size < 2)
        return tp_fail_null(TP_RuntimeError, "empty: the layout %s is for matrices, not for %lld dimensions",
                            tp_layouts[layout].name, (long long)size.size);
    int64_t shape[TP_MAX_DIMS], batch = size.size - 2;
    for (int64_t d = 0; d < batch; d++) shape[d] = size.data[d];
    shape[batch] = size.data[batch + (rows ? 0 : 1)] + 1;
    tp_ints sizes = {shape, batch + 1};
    tp_autoref *begins = tp_zeros(sizes, TP_INT64, TP_STRIDED, device, -1);
    shape[batch] = 0;
    tp_autoref *places = begins ? tp_zeros(sizes, TP_INT64, TP_STRIDED, device, -1) : NULL,
               *values = places ? tp_zeros(sizes, dtype, TP_STRIDED, device, -1) : NULL;
    return values ? tp__compressed(begins, places, values, size, layout) : NULL;
}

/* zeros_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, ...) -> Tensor */
tp_tensor *zeros_like_layout(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                             tp_opt_bool pin_memory, tp_memory_format memory_format TP_UNUSED) {
    tp_dtype own = dtype < 0 ? (tp_dtype)self->dtype : dtype;
    tp_device where = or_device(device, self);
    if (layout == TP_STRIDED) return tp_zeros(tp_sizes(self), own, TP_STRIDED, where, pin_memory);
    int64_t n;
    if (tp_sparse_dim(self, &n) < 0) return NULL;
    if (tp_layout_of(self) != TP_SPARSE_COO) {
        int64_t dense;
        if (tp_dense_dim(self, &dense) < 0) return NULL;
        n = self->ndim - dense;
    }
    tp_tensor *none = empty_coo(tp_sizes(self), n, own, where);
    if (layout < 0 || layout == tp_layout_of(self)) return tp_as_layout_steal(self, none);
    tp_autoref *made = none;
    tp_autoparts *p = made ? tp_parts_of(self) : NULL;
    int64_t blocks[2];
    bool in_blocks = tp_layout_of(self) == TP_SPARSE_BSR || tp_layout_of(self) == TP_SPARSE_BSC;
    if (!p || layout == TP_SPARSE_COO) return tp_take(made);
    if (in_blocks) tp_block_sizes(p, blocks);
    return tp_to_sparse(made, layout, in_blocks ? (tp_ints){blocks, 2} : TP_NO_INTS, TP_NO_INT);
}

/* empty_like(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, ...) -> Tensor: in lines with self's pattern.
 */
tp_tensor *empty_like_layout(tp_tensor *self, tp_dtype dtype, tp_layout layout, tp_device device,
                             tp_opt_bool pin_memory, tp_memory_format memory_format) {
    if (tp_layout_of(self) == TP_SPARSE_COO || (layout >= 0 && layout != tp_layout_of(self)))
        return zeros_like_layout(self, dtype, layout, device, pin_memory, memory_format);
    tp_device where = or_device(device, self);
    tp_autoref *plain = tp__values(self),
               *values = plain ? tp_empty_like(plain, dtype, TP_NO_LAYOUT, where, pin_memory, TP_NO_FORMAT) : NULL;
    return values ? with_indices(self, tp_device_equal(where, self->device) ? copied : moved, where, values) : NULL;
}

/* _in_lines(Tensor self, Layout? layout=None) -> Tensor */
tp_tensor *_in_lines_layout(tp_tensor *self, tp_layout layout) {
    if (tp_layout_of(self) != TP_SPARSE_COO && (layout < 0 || layout == tp_layout_of(self))) return tp_retain(self);
    return tp_fail_null(TP_NotImplementedError,
                        "there is no kernel that makes a tensor of the layout %s like one of the layout %s, whose "
                        "places without values would be zeros. Tensor.to_dense() gives a dense one",
                        tp_layouts[layout < 0 ? TP_SPARSE_COO : layout].name, tp_layouts[tp_layout_of(self)].name);
}

/* new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None, ...) -> Tensor, and new_empty */
tp_tensor *new_zeros_layout(tp_tensor *self, tp_ints size, tp_dtype dtype, tp_layout layout, tp_device device,
                            tp_opt_bool pin_memory) {
    tp_dtype own = dtype < 0 ? (tp_dtype)self->dtype : dtype;
    tp_layout wanted = layout < 0 ? tp_layout_of(self) : layout;
    if (wanted == TP_STRIDED) return tp_zeros(size, own, TP_STRIDED, or_device(device, self), pin_memory);
    return tp_empty_of_layout(size, wanted, own, or_device(device, self));
}

/* zero_(Tensor(a!) self) -> Tensor(a!) */
int zero__layout(tp_tensor *self) {
    tp_autoref *none = tp_zeros_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, (tp_device){-1, -1}, -1, TP_NO_FORMAT);
    return none ? tp_write_layout(self, none, "zero_") : -1;
}

/* A tensor of coordinates may become larger where it is written, and smaller if it is empty; one of lines keeps its
 * size. */
static int check_room(tp_tensor *self, tp_tensor *src) {
    const bool lines = tp_layout_of(self) != TP_SPARSE_COO;
    int64_t count = -1;
    for (int d = 0; d < self->ndim && d < src->ndim; d++) {
        if (lines ? self->sizes[d] == src->sizes[d] : self->sizes[d] <= src->sizes[d]) continue;
        if (count < 0 && !lines && tp__nnz(self, &count) < 0) return -1;
        if (count == 0) return 0;
        return tp_fail(TP_RuntimeError,
                       "copy_: shrinking the size of sparse dimensions (dimension %d from %lld to %lld) on a non-empty "
                       "sparse tensor is not supported",
                       d, (long long)self->sizes[d], (long long)src->sizes[d]);
    }
    return 0;
}

/* copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!) */
int copy__layout(tp_tensor *self, tp_tensor *src, bool non_blocking TP_UNUSED) {
    if (!tp_is_sparse(self) || !tp_is_sparse(src))
        return tp_fail(TP_RuntimeError,
                       "copy_() between dense and sparse Tensors is not implemented! Found self type = %s and src type "
                       "= %s",
                       tp_layouts[tp_layout_of(self)].name, tp_layouts[tp_layout_of(src)].name);
    if (self->ndim != src->ndim && self->numel > 0)
        return tp_fail(TP_RuntimeError,
                       "copy_: changing the number of dimensions (from %d to %d) on a non-empty sparse tensor is not "
                       "supported",
                       self->ndim, src->ndim);
    if (check_room(self, src) < 0) return -1;
    tp_autoref *like = tp_to_sparse(src, tp_layout_of(self), TP_NO_INTS, TP_NO_INT),
               *own = like ? tp_clone(like, TP_NO_FORMAT) : NULL;
    tp_autoref *there = own ? tp_to_device(own, self->device, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    bool done = false;
    if (!there || tp_copy_lines(self, there, "copy_", &done) < 0) return -1;
    return done ? 0 : tp_write_layout(self, there, "copy_");
}

/* fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!), fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!):
 * of values in lines, which keep their places. */
static int write_values_steal(tp_tensor *self, tp_tensor *values, const char *op) {
    tp_autoref *own = values, *made = own ? tp__layout_like(self, own) : NULL;
    return made ? tp_write_layout(self, made, op) : -1;
}
int fill__Scalar_layout(tp_tensor *self, const tp_scalar *value) {
    tp_autoref *lines = tp__in_lines(self, TP_NO_LAYOUT), *values = lines ? tp__layout_values(lines) : NULL;
    return values ? write_values_steal(self, tp_fill_Scalar(values, value), "fill_") : -1;
}
int fill__Tensor_layout(tp_tensor *self, tp_tensor *value) {
    tp_autoref *lines = tp__in_lines(self, TP_NO_LAYOUT), *values = lines ? tp__layout_values(lines) : NULL;
    return values ? write_values_steal(self, tp_fill_Tensor(values, value), "fill_") : -1;
}

/* is_pinned(Tensor self, Device? device=None) -> bool */
int is_pinned_layout(tp_tensor *self, tp_device device, bool *result) {
    tp_autoref *values = tp__values(self);
    return values ? tp_is_pinned(values, device, result) : -1;
}

/* is_same_size(Tensor self, Tensor other) -> bool */
int is_same_size_layout(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = tp_same_sizes(self, other);
    return 0;
}
