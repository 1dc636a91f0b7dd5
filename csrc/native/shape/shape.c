/* shape.c: other shapes of a tensor by way of the basic views of view.c: joined, moved, split and windowed dimensions,
 * and the views that change a tensor in place.
 *
 * A function without a dispatch entry of its own calls operators, which autograd sees; diagonal, unfold, view.dtype and
 * the in-place views make an alias or set the geometry themselves. */
#include "NativeFunctions.h"
#include "core/host.h"
#include "iter/iter.h"
#include "native/common/tags.h"
#include "native/common/unset.h"
#include "core/alloc.h"
#include "core/scalar_math.h"
#include "dispatch/key.h"
#include "native/common/host_ints.h"
#include "prim/table.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    int64_t sizes[TP_MAX_DIMS + 1], strides[TP_MAX_DIMS + 1];
    int ndim;
} geometry;

static geometry geometry_of(const tp_tensor *t) {
    geometry g = {.ndim = t->ndim};
    memcpy(g.sizes, t->sizes, t->ndim * sizeof *g.sizes);
    memcpy(g.strides, t->strides, t->ndim * sizeof *g.strides);
    return g;
}
static tp_tensor *alias_of(tp_tensor *self, const geometry *g, int64_t skip) {
    return tp_new_alias(self, (tp_ints){g->sizes, g->ndim}, (tp_ints){g->strides, g->ndim},
                        self->byte_offset + skip * tp_itemsize((tp_dtype)self->dtype));
}

/* ---- joined and split dimensions ---- */

/* flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a) */
tp_tensor *flatten_using_ints_composite(tp_tensor *self, int64_t start_dim, int64_t end_dim) {
    int64_t first = tp_wrap_dim(start_dim, self->ndim), last = tp_wrap_dim(end_dim, self->ndim);
    if (first < 0 || last < 0) return NULL;
    if (first > last)
        return tp_fail_null(TP_RuntimeError, "flatten() has invalid args: start_dim cannot come after end_dim");
    if (self->ndim == 0) return tp_reshape(self, TP_INTS(1));
    if (first == last) return tp_retain(self);
    int64_t sizes[TP_MAX_DIMS], joined = 1;
    int n = 0;
    for (int d = 0; d < self->ndim; d++) {
        if (d >= first && d <= last) joined *= self->sizes[d];
        if (d < first || d > last) sizes[n++] = self->sizes[d];
        else if (d == last) sizes[n++] = joined;
    }
    return tp_reshape(self, (tp_ints){sizes, n});
}

/* unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a) */
tp_tensor *unflatten_int_composite(tp_tensor *self, int64_t dim, tp_ints sizes) {
    int64_t d = tp_wrap_dim(dim, self->ndim), out[2 * TP_MAX_DIMS], known = 1, n = 0, unknown = -1;
    if (d < 0) return NULL;
    if (self->ndim == 0)
        return tp_fail_null(TP_RuntimeError, "unflatten: a tensor without dimensions has none to split");
    if (sizes.size == 0) return tp_fail_null(TP_RuntimeError, "unflatten: sizes must be non-empty");
    if (self->ndim + sizes.size - 1 > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "unflatten: more than %d dimensions", TP_MAX_DIMS);
    int64_t whole = tp_size_at(tp_sizes(self), d);
    for (int64_t i = 0; i < d; i++) out[n++] = self->sizes[i];
    for (int64_t i = 0; i < sizes.size; i++) {
        if (sizes.data[i] == -1 && unknown >= 0)
            return tp_fail_null(TP_RuntimeError, "unflatten: only one dimension can be inferred");
        if (sizes.data[i] == -1) unknown = n;
        else if (__builtin_mul_overflow(known, sizes.data[i], &known))
            return tp_fail_null(TP_RuntimeError, "unflatten: the product of sizes does not fit 64 bits");
        out[n++] = sizes.data[i];
    }
    if (unknown < 0 ? known != whole : known <= 0 || whole % known) {
        tp_autotext text = {0};
        tp_text_ints(&text, sizes);
        return tp_fail_null(
            TP_RuntimeError,
            "unflatten: Provided sizes %s don't multiply up to the size of dim %lld (%lld) in the input tensor",
            text.text, (long long)d, (long long)whole);
    }
    if (unknown >= 0) out[unknown] = whole / known;
    for (int i = (int)d + 1; i < self->ndim; i++) out[n++] = self->sizes[i];
    return tp_view(self, (tp_ints){out, n});
}

/* ---- moved dimensions ---- */

/* movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a) */
tp_tensor *movedim_intlist_composite(tp_tensor *self, tp_ints source, tp_ints destination) {
    int64_t order[TP_MAX_DIMS];
    bool taken[TP_MAX_DIMS + 1] = {0};
    tp_autotext s = {0}, d = {0};
    if (source.size != destination.size) {
        tp_text_ints(&s, source);
        tp_text_ints(&d, destination);
        return tp_fail_null(TP_RuntimeError,
                            "movedim: Invalid source or destination dims: source (%s dims) should contain the same "
                            "number of dims as destination (%s dims)",
                            s.text, d.text);
    }
    for (int i = 0; i < self->ndim; i++) order[i] = -1;
    for (int64_t i = 0; i < source.size; i++) {
        int64_t from = tp_wrap_dim(source.data[i], self->ndim), to = tp_wrap_dim(destination.data[i], self->ndim);
        if (from < 0 || to < 0) return NULL;
        if (taken[from]) {
            tp_text_ints(&s, source);
            return tp_fail_null(TP_RuntimeError, "movedim: repeated dim in `source` (%s)", s.text);
        }
        if (self->ndim == 0) continue;
        if (order[to] >= 0) {
            tp_text_ints(&d, destination);
            return tp_fail_null(TP_RuntimeError, "movedim: repeated dim in `destination` (%s)", d.text);
        }
        taken[from] = true;
        order[to] = from;
    }
    for (int i = 0, next = 0; i < self->ndim; i++) {
        if (order[i] >= 0) continue;
        while (taken[next]) next++;
        order[i] = next++;
    }
    return tp_permute(self, (tp_ints){order, self->ndim});
}
tp_tensor *movedim_int_composite(tp_tensor *self, int64_t source, int64_t destination) {
    return movedim_intlist_composite(self, TP_INTS(source), TP_INTS(destination));
}
tp_tensor *moveaxis_intlist_composite(tp_tensor *self, tp_ints source, tp_ints destination) {
    return movedim_intlist_composite(self, source, destination);
}
tp_tensor *moveaxis_int_composite(tp_tensor *self, int64_t source, int64_t destination) {
    return movedim_intlist_composite(self, TP_INTS(source), TP_INTS(destination));
}

/* ---- parts ---- */

/* narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor */
tp_tensor *narrow_copy_composite(tp_tensor *self, int64_t dim, int64_t start, int64_t length) {
    if (self->ndim > 0 && dim >= self->ndim) /* another class of error than narrow's, as in PyTorch */
        return tp_fail_null(TP_RuntimeError,
                            "narrow_copy: Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got "
                            "false. dim is %lld, for %d dimensions",
                            (long long)dim, self->ndim);
    if (self->ndim > 0 && length < 0 && dim >= -self->ndim)
        return tp_fail_null(TP_RuntimeError, "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                            (long long)start, (long long)length, (long long)self->sizes[tp_wrap_dim(dim, self->ndim)]);
    return tp_copy_of_view_steal(tp_narrow(self, dim, start, length));
}

/* narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a) */
tp_tensor *narrow_composite(tp_tensor *self, int64_t dim, int64_t start, int64_t length) {
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "narrow() cannot be applied to a 0-dim tensor.");
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d], from = start < 0 ? start + size : start;
    if (length < 0) return tp_fail_null(TP_RuntimeError, "narrow(): length must be non-negative.");
    if (start < -size || start > size)
        return tp_fail_null(TP_IndexError, "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                            (long long)-size, (long long)size, (long long)start);
    if (from > size - length)
        return tp_fail_null(TP_RuntimeError, "start (%lld) + length (%lld) exceeds dimension size (%lld).",
                            (long long)from, (long long)length, (long long)size);
    return tp_slice_Tensor(self, d, TP_SOME_INT(from), TP_SOME_INT(from + length), 1);
}
tp_tensor *narrow_Tensor_composite(tp_tensor *self, int64_t dim, tp_tensor *start, int64_t length) {
    tp_scalar first;
    if (start->ndim != 0 || !tp_is_integral_dtype((tp_dtype)start->dtype))
        return tp_fail_null(TP_RuntimeError, "start must be an 0-dim integral Tensor.");
    return tp_item(start, &first) < 0 ? NULL : narrow_composite(self, dim, tp_scalar_int(&first), length);
}

static tp_tensor_seq *split_into(tp_tensor *self, int64_t parts, int64_t size, int64_t dim,
                                 tp_tensor_seq *(*split)(tp_tensor *, tp_ints, int64_t)) {
    int64_t left = tp_size_at(tp_sizes(self), dim);
    if (parts > INT32_MAX) return tp_fail_memory(INT64_MAX), NULL;
    int64_t *sizes = tp_alloc((size_t)parts * sizeof *sizes);
    if (!sizes) return NULL;
    for (int64_t i = 0; i < parts; i++, left -= size) sizes[i] = left < size ? left : size;
    tp_tensor_seq *seq = split(self, (tp_ints){sizes, parts}, dim);
    tp_free(sizes, (size_t)parts * sizeof *sizes);
    return seq;
}

/* split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *split_Tensor_composite(tp_tensor *self, int64_t split_size, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "split expects at least a 1-dimensional tensor");
    if (d < 0) return NULL;
    if (split_size < 0)
        return tp_fail_null(TP_RuntimeError, "split expects split_size be non-negative, but got split_size=%lld",
                            (long long)split_size);
    int64_t size = self->sizes[d];
    if (split_size == 0 && size != 0)
        return tp_fail_null(TP_RuntimeError,
                            "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                            (long long)size);
    int64_t parts = size == 0 ? 1 : (size - 1) / split_size + 1;
    return split_into(self, parts, split_size, d, tp_split_with_sizes);
}
tp_tensor_seq *split_sizes_composite(tp_tensor *self, tp_ints split_size, int64_t dim) {
    return tp_split_with_sizes(self, split_size, dim);
}
/* The parts by one or the other of two pairs: split and split_with_sizes, and their unsafe variants. */
static tp_tensor_seq *chunks_by(tp_tensor *self, int64_t chunks, int64_t dim,
                                tp_tensor_seq *(*split)(tp_tensor *, int64_t, int64_t),
                                tp_tensor_seq *(*with_sizes)(tp_tensor *, tp_ints, int64_t)) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (self->ndim == 0) return tp_fail_null(TP_RuntimeError, "chunk expects at least a 1-dimensional tensor");
    if (chunks <= 0)
        return tp_fail_null(TP_RuntimeError, "chunk expects `chunks` to be greater than 0, got: %lld",
                            (long long)chunks);
    if (d < 0) return NULL;
    int64_t size = self->sizes[d] / chunks + (self->sizes[d] % chunks != 0);
    return size == 0 ? split_into(self, chunks, 0, d, with_sizes) : split(self, size, d);
}
/* chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *chunk_composite(tp_tensor *self, int64_t chunks, int64_t dim) {
    return chunks_by(self, chunks, dim, tp_split_Tensor, tp_split_with_sizes);
}
/* unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[] */
tp_tensor_seq *unsafe_split_Tensor_composite(tp_tensor *self, int64_t split_size, int64_t dim) {
    return tp_split_copy_Tensor(self, split_size, dim);
}
/* unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[] */
tp_tensor_seq *unsafe_split_with_sizes_composite(tp_tensor *self, tp_ints split_sizes, int64_t dim) {
    return tp_split_with_sizes_copy(self, split_sizes, dim);
}
/* unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[] */
tp_tensor_seq *unsafe_chunk_composite(tp_tensor *self, int64_t chunks, int64_t dim) {
    return chunks_by(self, chunks, dim, tp_unsafe_split_Tensor, tp_unsafe_split_with_sizes);
}

/* tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *tensor_split_indices_composite(tp_tensor *self, tp_ints indices, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (self->ndim == 0)
        return tp_fail_null(TP_RuntimeError,
                            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    tp_autoseq *seq = d < 0 ? NULL : tp_tensor_seq_new(indices.size + 1);
    int64_t from = 0;
    for (int64_t i = 0; seq && i < seq->size; i++) {
        int64_t to = i < indices.size ? indices.data[i] : self->sizes[d];
        seq->items[i] = tp_slice_Tensor(self, d, TP_SOME_INT(from), TP_SOME_INT(to), 1);
        if (!seq->items[i] || tp_ends_at(i)) return NULL;
        from = to;
    }
    return seq ? tp_take(seq) : NULL;
}
/* tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[] */
tp_tensor_seq *tensor_split_sections_composite(tp_tensor *self, int64_t sections, int64_t dim) {
    int64_t d = tp_wrap_dim(dim, self->ndim);
    if (self->ndim == 0)
        return tp_fail_null(TP_RuntimeError,
                            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    if (sections <= 0)
        return tp_fail_null(TP_RuntimeError, "number of sections must be larger than 0, got %lld", (long long)sections);
    tp_autoseq *seq = d < 0 ? NULL : tp_tensor_seq_new(sections);
    int64_t from = 0;
    for (int64_t i = 0; seq && i < sections; i++) {
        int64_t size = self->sizes[d] / sections + (i < self->sizes[d] % sections);
        seq->items[i] = tp_slice_Tensor(self, d, TP_SOME_INT(from), TP_SOME_INT(from + size), 1);
        if (!seq->items[i] || tp_ends_at(i)) return NULL;
        from += size;
    }
    return seq ? tp_take(seq) : NULL;
}
tp_tensor_seq *tensor_split_tensor_indices_or_sections_composite(tp_tensor *self, tp_tensor *tensor_indices_or_sections,
                                                                 int64_t dim) {
    tp_tensor *given = tensor_indices_or_sections;
    if (given->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError,
                            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
                            tp_scalar_type_name((tp_dtype)given->dtype));
    if (given->device.type != TP_DEVICE_CPU || given->ndim > 1)
        return tp_fail_null(
            TP_RuntimeError,
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional "
            "tensor, but got a tensor with %d dims",
            given->ndim);
    tp_autoref *values = tp_host_ints(given);
    if (!values) return NULL;
    const int64_t *v = tp_table_values(values);
    if (!v) return NULL;
    return given->ndim == 0 ? tensor_split_sections_composite(self, *v, dim)
                            : tensor_split_indices_composite(self, (tp_ints){v, given->numel}, dim);
}

static tp_tensor_seq *named_split(tp_tensor *self, const char *op, int least, int64_t dim, int64_t sections,
                                  tp_ints indices) {
    if (self->ndim < least)
        return tp_fail_null(
            TP_RuntimeError,
            "torch.%s requires a tensor with at least %d dimension, but got a tensor with %d dimensions!", op, least,
            self->ndim);
    if (indices.size >= 0) return tensor_split_indices_composite(self, indices, dim);
    if (sections == 0 || self->sizes[dim] % sections)
        return tp_fail_null(
            TP_RuntimeError,
            "torch.%s attempted to split along dimension %lld, but the size of the dimension %lld is not "
            "divisible by the split_size %lld!",
            op, (long long)dim, (long long)self->sizes[dim], (long long)sections);
    return tensor_split_sections_composite(self, sections, dim);
}
tp_tensor_seq *hsplit_int_composite(tp_tensor *self, int64_t sections) {
    return named_split(self, "hsplit", 1, self->ndim != 1, sections, TP_NO_INTS);
}
tp_tensor_seq *hsplit_array_composite(tp_tensor *self, tp_ints indices) {
    return named_split(self, "hsplit", 1, self->ndim != 1, 0, indices);
}
tp_tensor_seq *vsplit_int_composite(tp_tensor *self, int64_t sections) {
    return named_split(self, "vsplit", 2, 0, sections, TP_NO_INTS);
}
tp_tensor_seq *vsplit_array_composite(tp_tensor *self, tp_ints indices) {
    return named_split(self, "vsplit", 2, 0, 0, indices);
}
tp_tensor_seq *dsplit_int_composite(tp_tensor *self, int64_t sections) {
    return named_split(self, "dsplit", 3, 2, sections, TP_NO_INTS);
}
tp_tensor_seq *dsplit_array_composite(tp_tensor *self, tp_ints indices) {
    return named_split(self, "dsplit", 3, 2, 0, indices);
}

/* ---- diagonals and windows ---- */

/* diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a) */
tp_tensor *diagonal_composite(tp_tensor *self, int64_t offset, int64_t dim1, int64_t dim2) {
    int64_t a = tp_wrap_dim(dim1, self->ndim), b = a < 0 ? -1 : tp_wrap_dim(dim2, self->ndim);
    if (b < 0) return NULL;
    if (a == b)
        return tp_fail_null(TP_RuntimeError, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                            (long long)dim2);
    geometry g = {0};
    for (int d = 0; d < self->ndim; d++) {
        if (d == a || d == b) continue;
        g.sizes[g.ndim] = self->sizes[d];
        g.strides[g.ndim++] = self->strides[d];
    }
    int64_t rows = self->sizes[a] + (offset < 0 ? offset : 0), columns = self->sizes[b] - (offset > 0 ? offset : 0);
    int64_t n = rows < columns ? rows : columns;
    g.sizes[g.ndim] = n > 0 ? n : 0;
    g.strides[g.ndim++] = self->strides[a] + self->strides[b];
    return alias_of(self, &g, n <= 0 ? 0 : offset < 0 ? -offset * self->strides[a] : offset * self->strides[b]);
}
tp_tensor *diagonal_backward_composite(tp_tensor *grad_output, tp_ints input_sizes, int64_t offset, int64_t dim1,
                                       int64_t dim2) {
    tp_autoref *grad = tp_zeros(input_sizes, (tp_dtype)grad_output->dtype, TP_STRIDED, grad_output->device, -1);
    tp_autoref *part = grad ? tp_diagonal(grad, offset, dim1, dim2) : NULL;
    return part && tp_copy_(part, grad_output, false) == 0 ? tp_take(grad) : NULL;
}

/* unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a) */
tp_tensor *unfold_composite(tp_tensor *self, int64_t dimension, int64_t size, int64_t step) {
    int64_t d = tp_wrap_dim(dimension, self->ndim), whole = d < 0 ? 0 : tp_size_at(tp_sizes(self), d);
    if (d < 0) return NULL;
    if (size < 0) return tp_fail_null(TP_RuntimeError, "size is %lld but must be >= 0", (long long)size);
    if (size > whole)
        return tp_fail_null(TP_RuntimeError, "maximum size for tensor at dimension %lld is %lld but size is %lld",
                            (long long)d, (long long)whole, (long long)size);
    if (step <= 0) return tp_fail_null(TP_RuntimeError, "step is %lld but must be > 0", (long long)step);
    if (self->ndim + 1 > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "unfold: more than %d dimensions", TP_MAX_DIMS);
    geometry g = geometry_of(self);
    int64_t stride = self->ndim ? self->strides[d] : 1;
    if (self->ndim) {
        g.sizes[d] = (whole - size) / step + 1;
        if (__builtin_mul_overflow(step, stride, &g.strides[d])) g.strides[d] = stride; /* one window */
    }
    g.sizes[g.ndim] = size;
    g.strides[g.ndim++] = stride;
    return alias_of(self, &g, 0);
}
/* Windows may overlap: one element of all windows at a time. */
tp_tensor *unfold_backward_composite(tp_tensor *grad_in, tp_ints input_sizes, int64_t dim, int64_t size, int64_t step) {
    tp_autoref *grad = tp_zeros(input_sizes, (tp_dtype)grad_in->dtype, TP_STRIDED, grad_in->device, -1);
    int64_t d = tp_wrap_dim(dim, input_sizes.size);
    if (!grad || d < 0) return NULL;
    if (grad_in->ndim == 0 || size != grad_in->sizes[grad_in->ndim - 1] || grad_in->ndim != input_sizes.size + 1 ||
        step < 1)
        return tp_fail_null(TP_RuntimeError, "unfold_backward: the gradient's sizes are not those of an unfold");
    for (int64_t k = 0; k < size; k++) {
        tp_autoref *from = tp_select_int(grad_in, -1, k);
        int64_t n = from && from->ndim ? from->sizes[d] : 1;
        if (from && n == 0) break;
        tp_autoref *to = !from || input_sizes.size == 0
                             ? tp_retain(grad)
                             : tp_slice_Tensor(grad, d, TP_SOME_INT(k), TP_SOME_INT(k + (n - 1) * step + 1), step);
        if (!from || !to || tp_add__Tensor(to, from, TP_SCALAR_I(1)) < 0) return NULL;
    }
    return tp_take(grad);
}

/* ---- another dtype ---- */

static int TP_COLD fail_larger(const tp_tensor *self, tp_dtype dtype, const char *what, int64_t value) {
    return tp_fail(TP_RuntimeError,
                   "self.%s must be divisible by %d to view %s as %s (different element sizes), but got %lld", what,
                   (int)(tp_itemsize(dtype) / tp_itemsize((tp_dtype)self->dtype)),
                   tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name(dtype), (long long)value);
}
/* The geometry of self in elements of another size; -1 where it does not come out. */
static int rescale(const tp_tensor *self, geometry *g, tp_dtype dtype) {
    int64_t from = tp_itemsize((tp_dtype)self->dtype), to = tp_itemsize(dtype);
    const char *own = tp_scalar_type_name((tp_dtype)self->dtype), *wanted = tp_scalar_type_name(dtype);
    int last = self->ndim - 1;
    if (last < 0)
        return tp_fail(TP_RuntimeError, "self.dim() cannot be 0 to view %s as %s (different element sizes)", own,
                       wanted);
    if (self->strides[last] != 1)
        return tp_fail(TP_RuntimeError,
                       "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld", own,
                       wanted, (long long)self->strides[last]);
    if (self->sizes[last] * from % to) return fail_larger(self, dtype, "size(-1)", self->sizes[last]);
    if (self->byte_offset % to) return fail_larger(self, dtype, "storage_offset()", tp_storage_offset(self));
    for (int i = 0; i < last; i++) {
        char what[32];
        snprintf(what, sizeof what, "stride(%d)", i);
        if (self->strides[i] * from % to) return fail_larger(self, dtype, what, self->strides[i]);
        g->strides[i] = self->strides[i] * from / to;
    }
    g->sizes[last] = self->sizes[last] * from / to;
    return 0;
}
/* view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a) */
tp_tensor *view_dtype_composite(tp_tensor *self, tp_dtype dtype) {
    geometry g = geometry_of(self);
    if (tp_itemsize((tp_dtype)self->dtype) != tp_itemsize(dtype) && rescale(self, &g, dtype) < 0) return NULL;
    if (dtype != self->dtype && tp_is_pending(self))
        return tp_fail_null(
            TP_RuntimeError, "torch.Tensor.view is not supported for %s when converting to a different dtype.",
            self->keys & TP_BIT(Conjugate) ? "conjugate view tensors" : "tensors with negative bit set");
    tp_tensor *view = tp_new_on_storage(self->storage, (tp_ints){g.sizes, g.ndim}, (tp_ints){g.strides, g.ndim},
                                        self->byte_offset, dtype);
    if (view) view->keys |= self->keys & TP_PENDING_MATH;
    return view;
}

/* ---- views in place ---- */

/* Takes over the geometry of a view of self. */
static int become(tp_tensor *self, tp_tensor *view) {
    tp_autoref *v = view;
    if (!v || tp_tensor_set_geometry(self, tp_sizes(v), tp_strides(v)) < 0) return -1;
    self->byte_offset = v->byte_offset;
    return 0;
}
int transpose__composite(tp_tensor *self, int64_t dim0, int64_t dim1) {
    return become(self, transpose_int_composite(self, dim0, dim1));
}
int swapaxes__composite(tp_tensor *self, int64_t axis0, int64_t axis1) { return tp_transpose_(self, axis0, axis1); }
int swapdims__composite(tp_tensor *self, int64_t dim0, int64_t dim1) { return tp_transpose_(self, dim0, dim1); }
int t__composite(tp_tensor *self) { return become(self, t_composite(self)); }
int squeeze__composite(tp_tensor *self) { return become(self, squeeze_composite(self)); }
int squeeze__dim_composite(tp_tensor *self, int64_t dim) { return become(self, squeeze_dim_composite(self, dim)); }
int squeeze__dims_composite(tp_tensor *self, tp_ints dim) { return become(self, squeeze_dims_composite(self, dim)); }
int unsqueeze__composite(tp_tensor *self, int64_t dim) { return become(self, unsqueeze_composite(self, dim)); }
int as_strided__composite(tp_tensor *self, tp_ints size, tp_ints stride, tp_opt_int storage_offset) {
    return become(self, as_strided_composite(self, size, stride, storage_offset));
}

/* resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
static int resize(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    if (memory_format == TP_PRESERVE_FORMAT)
        return tp_fail(TP_RuntimeError, "Unsupported memory format preserve_format");
    if (memory_format == TP_NO_FORMAT || memory_format == TP_CONTIGUOUS_FORMAT)
        return tp_tensor_resize(self, size, TP_NO_INTS);
    int64_t strides[TP_MAX_DIMS];
    if (tp_strides_for_format(size, memory_format, strides) < 0) return -1;
    return tp_tensor_resize(self, size, (tp_ints){strides, size.size});
}
int resize__composite(tp_tensor *self, tp_ints size, tp_memory_format memory_format) {
    size_t before = self->storage->nbytes;
    if (resize(self, size, memory_format) < 0) return -1;
    return tp_unlikely(tp_fills_unset()) ? tp_fill_unset_from(self, before) : 0;
}

int set__source_Tensor_composite(tp_tensor *self, tp_tensor *source) {
    if (self == source) return 0;
    return tp_tensor_check_set(self, source) < 0 ? -1 : tp_tensor_assign(self, source);
}
int set__composite(tp_tensor *self) {
    tp_autoref *empty = tp_new_empty(TP_INTS(0), (tp_dtype)self->dtype, self->device);
    return empty ? tp_tensor_assign(self, empty) : -1;
}
int set__source_Tensor_storage_offset_composite(tp_tensor *self, tp_tensor *source, int64_t storage_offset,
                                                tp_ints size, tp_ints stride) {
    int64_t strides[TP_MAX_DIMS];
    if (tp_tensor_check_set(self, source) < 0 || tp_checked_numel(size) < 0) return -1;
    if (size.size > TP_MAX_DIMS) return tp_fail(TP_RuntimeError, "set_: more than %d dimensions", TP_MAX_DIMS);
    tp_contiguous_strides(size, strides);
    tp_ints steps = stride.size > 0 ? stride : (tp_ints){strides, size.size};
    tp_autoref *view = as_strided_composite(source, size, steps, TP_SOME_INT(storage_offset));
    return view ? tp_tensor_assign(self, view) : -1;
}

/* What a storage holds of a dtype, as a row. */
static tp_tensor *row_of(tp_storage *storage, tp_dtype dtype) {
    const int64_t n = (int64_t)storage->nbytes / tp_itemsize(dtype);
    return tp_new_on_storage(storage, TP_INTS(n), TP_INTS(1), 0, dtype);
}

/* set_.source_Storage(Tensor(a!) self, Storage source) -> Tensor(a!) */
int set__source_Storage_composite(tp_tensor *self, tp_storage *source) {
    tp_autoref *row = row_of(source, (tp_dtype)self->dtype);
    return row ? tp_set__source_Tensor(self, row) : -1;
}

/* set_.source_Storage_storage_offset(Tensor(a!) self, Storage source, SymInt storage_offset, SymInt[] size, SymInt[]
 * stride=[]) -> Tensor(a!): a storage that is too small grows, as it does under resize_ */
int set__source_Storage_storage_offset_composite(tp_tensor *self, tp_storage *source, int64_t storage_offset,
                                                 tp_ints size, tp_ints stride) {
    int64_t begin;
    if (storage_offset < 0)
        return tp_fail(TP_RuntimeError, "Tensor: invalid storage offset %lld", (long long)storage_offset);
    if (__builtin_mul_overflow(storage_offset, tp_itemsize((tp_dtype)self->dtype), &begin))
        return tp_fail(TP_RuntimeError, "set_: a storage offset of %lld is too large", (long long)storage_offset);
    if (tp_is_opaque(source)) return tp_fail(TP_RuntimeError, "set_: a storage without an address is taken whole");
    tp_autoref *view = tp_new_on_storage(source, TP_INTS(0), TP_INTS(1), begin, (tp_dtype)self->dtype);
    if (!view || tp_tensor_resize(view, size, stride.size > 0 ? stride : TP_NO_INTS) < 0) return -1;
    return tp_set__source_Tensor(self, view);
}

/* ---- the tensor itself ---- */

tp_tensor *positive_composite(tp_tensor *self) {
    if (self->dtype != TP_BOOL) return tp_retain(self);
    return tp_fail_null(TP_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
}
tp_tensor *resolve_conj_composite(tp_tensor *self) {
    if (!tp_reads_conj(self)) return tp_retain(self);
    tp_autoref *plain = tp__conj(self);
    return plain ? tp_conj_physical(plain) : NULL;
}
tp_tensor *resolve_neg_composite(tp_tensor *self) {
    if (!tp_reads_neg(self)) return tp_retain(self);
    tp_autoref *plain = tp__neg_view(self);
    return plain ? tp_neg(plain) : NULL;
}
int is_same_size_composite(tp_tensor *self, tp_tensor *other, bool *result) {
    *result = tp_same_sizes(self, other);
    return 0;
}

/* ---- as another tensor ---- */

/* resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!) */
int resize_as__composite(tp_tensor *self, tp_tensor *the_template, tp_memory_format memory_format) {
    return tp_resize_(self, tp_sizes(the_template), memory_format);
}

/* The sum over what a tensor of that size was expanded in.
 * sum_to_size(Tensor self, SymInt[] size) -> Tensor */
tp_tensor *sum_to_size_composite(tp_tensor *self, tp_ints size) {
    int64_t dims[TP_MAX_DIMS], count = 0, front = self->ndim - size.size;
    bool fits = front >= 0;
    for (int64_t d = 0; fits && d < self->ndim; d++) {
        int64_t wanted = d < front ? 1 : size.data[d - front];
        fits = wanted == 1 || wanted == self->sizes[d];
        if (d < front || (wanted == 1 && self->sizes[d] != 1)) dims[count++] = d;
    }
    if (!fits) {
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, size);
        tp_text_ints(&b, tp_sizes(self));
        return tp_fail_null(TP_RuntimeError, "size {%s} is not expandable to size {%s}.", a.text, b.text);
    }
    if (size.size == 0) return tp_sum(self, TP_NO_DTYPE); /* a bool too becomes a number */
    if (count == 0) return tp_retain(self);
    tp_autoref *sum = tp_sum_dim_IntList(self, (tp_ints){dims, count}, true, TP_NO_DTYPE);
    return sum ? tp_reshape(sum, size) : NULL;
}

/* ---- shapes that are tensors ---- */

/* _shape_as_tensor(Tensor self) -> Tensor */
tp_tensor *_shape_as_tensor_composite(tp_tensor *self) {
    tp_tensor *sizes[TP_MAX_DIMS];
    int n = 0;
    while (n < self->ndim &&
           (sizes[n] = tp_scalar_tensor(TP_SCALAR_I(self->sizes[n]), TP_INT64, TP_NO_LAYOUT, TP_CPU, -1)))
        n++;
    tp_tensor *made = n < self->ndim ? NULL
                      : n            ? tp_stack((tp_tensors){sizes, n}, 0)
                                     : tp_zeros(TP_INTS(0), TP_INT64, TP_NO_LAYOUT, TP_CPU, -1);
    while (n) tp_release(sizes[--n]);
    return made;
}
/* _reshape_from_tensor(Tensor self, Tensor shape) -> Tensor */
tp_tensor *_reshape_from_tensor_composite(tp_tensor *self, tp_tensor *shape) {
    if (shape->ndim != 1)
        return tp_fail_null(TP_RuntimeError, "_reshape_from_tensor: the shape is a vector, not of %d dimensions",
                            shape->ndim);
    if (shape->dtype != TP_INT64)
        return tp_fail_null(TP_RuntimeError, "expected scalar type Long but found %s",
                            tp_scalar_type_name((tp_dtype)shape->dtype));
    tp_autoref *sizes = tp_host_ints(shape);
    const int64_t *v = sizes ? tp_table_values(sizes) : NULL;
    return v ? tp_reshape(self, (tp_ints){v, shape->numel}) : NULL;
}

/* slice_inverse(Tensor(a) self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) ->
 * Tensor(a): self is a slice of a tensor in the geometry of src */
tp_tensor *slice_inverse_composite(tp_tensor *self, tp_tensor *src, int64_t dim TP_UNUSED, tp_opt_int start TP_UNUSED,
                                   tp_opt_int end TP_UNUSED, int64_t step TP_UNUSED) {
    return tp_as_strided(self, tp_sizes(src), tp_strides(src), TP_SOME_INT(tp_storage_offset(src)));
}
