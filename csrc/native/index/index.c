/* index.c: what an index by tensors means: masks become index tensors, shapes are checked and broadcast. */
#include "native/index/index.h"

#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/determinism.h"
#include "iter/iter.h"
#include "native/index/gather.h"
#include "prim/plain.h"

#include <string.h>

void tp_index_plan_free(tp_index_plan *p) {
    for (int i = 0; i < p->nindices; i++) tp_release(p->indices[i]);
}

static int too_many(const tp_tensor *self) {
    return tp_fail(TP_IndexError, "too many indices for tensor of dimension %d", self->ndim);
}

static int check_mask(const tp_tensor *self, const tp_tensor *mask, int dim) {
    if (dim + mask->ndim > self->ndim) return too_many(self);
    for (int i = 0; i < mask->ndim; i++) {
        if (mask->sizes[i] == self->sizes[dim + i]) continue;
        tp_autotext a = {0}, b = {0};
        tp_text_ints(&a, tp_sizes(mask));
        tp_text_ints(&b, tp_sizes(self));
        return tp_fail(
            TP_IndexError,
            "The shape of the mask %s at index %d does not match the shape of the indexed tensor %s at index %d",
            a.text, i, b.text, dim + i);
    }
    return 0;
}

/* A mask as the columns of nonzero. */
static int add_mask(tp_index_plan *p, tp_tensor *self, tp_tensor *mask, int dim) {
    if (check_mask(self, mask, dim) < 0) return -1;
    tp_autoref *places = tp_nonzero(mask);
    if (!places) return -1;
    for (int i = 0; i < mask->ndim; i++) {
        p->dims[p->nindices] = dim + i;
        p->indices[p->nindices] = tp_select_int(places, 1, i);
        if (!p->indices[p->nindices++]) return -1;
    }
    return 0;
}

static int add_index(tp_index_plan *p, tp_tensor *self, tp_tensor *index, int dim) {
    if (dim >= self->ndim) return too_many(self);
    if (index->dtype != TP_INT64 && index->dtype != TP_INT32)
        return tp_fail(TP_IndexError, "tensors used as indices must be long, int, byte or bool tensors");
    if (index->device.type != self->device.type && index->device.type != TP_DEVICE_CPU)
        return tp_fail(TP_RuntimeError,
                       "indices should be either on cpu or on the same device as the indexed tensor (%s)",
                       tp_device_type_name(self->device.type));
    p->dims[p->nindices] = dim;
    p->indices[p->nindices] = tp_to_dtype(index, TP_INT64, false, false, TP_NO_FORMAT);
    return p->indices[p->nindices++] ? 0 : -1;
}

/* Bytes that are masks could be meant as places. */
static int TP_COLD warn_of_bytes(void) {
    return tp_warn("indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.");
}

static bool is_mask(const tp_tensor *index) { return index && (index->dtype == TP_BOOL || index->dtype == TP_UINT8); }

static int add_all(tp_index_plan *p, tp_tensor *self, tp_tensors indices) {
    int dim = 0;
    for (int64_t i = 0; i < indices.size; i++) {
        tp_tensor *index = indices.data[i];
        bool mask = is_mask(index);
        if (mask && index->dtype == TP_UINT8 && warn_of_bytes() < 0) return -1;
        int status = !index ? (dim < self->ndim ? 0 : too_many(self))
                     : mask ? add_mask(p, self, index, dim)
                            : add_index(p, self, index, dim);
        if (status < 0) return -1;
        dim += mask ? index->ndim : 1;
    }
    return 0;
}

/* The shape that the indices have together. */
static int broadcast_places(tp_index_plan *p) {
    for (int i = 0; i < p->nindices; i++) {
        int64_t joined[TP_MAX_DIMS];
        int n = tp_broadcast_sizes((tp_ints){p->places, p->nplaces}, tp_sizes(p->indices[i]), joined);
        if (n >= 0) {
            memcpy(p->places, joined, (size_t)n * sizeof *joined);
            p->nplaces = n;
            continue;
        }
        tp_error_clear();
        tp_autotext text = {0};
        for (int k = 0; k < p->nindices; k++) {
            tp_text_add(&text, k ? ", " : "");
            tp_text_ints(&text, tp_sizes(p->indices[k]));
        }
        return tp_fail(TP_IndexError, "shape mismatch: indexing tensors could not be broadcast together with shapes %s",
                       text.text);
    }
    return 0;
}

static int lay_out(tp_index_plan *p, const tp_tensor *self) {
    bool neighbours = true;
    for (int i = 1; i < p->nindices; i++) neighbours &= p->dims[i] == p->dims[i - 1] + 1;
    for (int d = 0, i = 0; d < self->ndim; d++) {
        if (i < p->nindices && p->dims[i] == d) i++;
        else p->rest[p->nrest++] = d;
    }
    p->before = neighbours && p->nindices ? p->dims[0] : 0;
    if (p->nrest + p->nplaces > TP_MAX_DIMS)
        return tp_fail(TP_IndexError, "index: the result would have more than %d dimensions", TP_MAX_DIMS);
    for (int i = 0; i < p->before; i++) p->sizes[p->ndim++] = self->sizes[p->rest[i]];
    for (int i = 0; i < p->nplaces; i++) p->sizes[p->ndim++] = p->places[i];
    for (int i = p->before; i < p->nrest; i++) p->sizes[p->ndim++] = self->sizes[p->rest[i]];
    return 0;
}

int tp_index_plan_make(tp_index_plan *p, tp_tensor *self, tp_tensors indices) {
    p->nindices = p->nrest = p->before = p->nplaces = p->ndim = 0;
    if (add_all(p, self, indices) < 0 || broadcast_places(p) < 0 || lay_out(p, self) < 0) return -1;
    int64_t n = tp_checked_numel((tp_ints){p->places, p->nplaces});
    if (n < 0) return -1;
    for (int i = 0; i < p->nindices; i++)
        if (self->sizes[p->dims[i]] == 0 && n > 0 && tp_has_values(self))
            return tp_fail(TP_IndexError, "index is out of bounds for dimension with size 0");
    return 0;
}

int tp_index_fit_values(const tp_index_plan *p, const tp_tensor *values, int64_t *strides) {
    int lead = p->ndim - values->ndim;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < p->ndim; i++) {
        int64_t size = i < lead ? 1 : values->sizes[i - lead];
        fits = size == 1 || size == p->sizes[i];
        strides[i] = size == 1 ? 0 : values->strides[i - lead];
    }
    if (fits) return 0;
    tp_autotext have = {0}, want = {0};
    tp_text_ints(&have, tp_sizes(values));
    tp_text_ints(&want, (tp_ints){p->sizes, p->ndim});
    return tp_fail(TP_RuntimeError,
                   "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of shape %s",
                   have.text, want.text);
}

/* ---- the primitives' arguments ---- */

/* The indices on self's device, as views of the shape of the places; owned. */
typedef struct {
    int n;
    tp_tensor *items[TP_MAX_DIMS];
    int64_t dims[TP_MAX_DIMS];
} index_list;
static void free_list(index_list *l) {
    for (int i = 0; i < l->n; i++) tp_release(l->items[i]);
}

static bool has_sizes(const tp_tensor *t, tp_ints sizes) {
    return t->ndim == sizes.size && memcmp(t->sizes, sizes.data, (size_t)sizes.size * sizeof *sizes.data) == 0;
}

/* An index, stretched over the places; new. */
static tp_tensor *spread(const tp_index_plan *p, tp_tensor *index) {
    int64_t strides[TP_MAX_DIMS];
    if (has_sizes(index, (tp_ints){p->places, p->nplaces})) return tp_retain(index);
    int lead = p->nplaces - index->ndim;
    for (int d = 0; d < p->nplaces; d++)
        strides[d] = d < lead || index->sizes[d - lead] == 1 ? 0 : index->strides[d - lead];
    return tp_new_alias(index, (tp_ints){p->places, p->nplaces}, (tp_ints){strides, p->nplaces}, index->byte_offset);
}

static int make_list(index_list *l, const tp_index_plan *p, const tp_tensor *self) {
    for (l->n = 0; l->n < p->nindices; l->n++) {
        tp_autoref *here = p->indices[l->n]->device.type == self->device.type
                               ? tp_retain(p->indices[l->n])
                               : tp_to_device(p->indices[l->n], self->device, TP_INT64, false, false, TP_NO_FORMAT);
        l->dims[l->n] = p->dims[l->n];
        if (!here || !(l->items[l->n] = spread(p, here))) return -1;
    }
    return 0;
}

/* What has the sizes of the result, through `strides`, with the places in front; new, a view. */
static tp_tensor *places_first(const tp_index_plan *p, tp_tensor *t, const int64_t *strides) {
    int64_t sizes[TP_MAX_DIMS], turned[TP_MAX_DIMS];
    if (p->before == 0 && strides == t->strides) return tp_retain(t);
    for (int d = 0; d < p->ndim; d++) {
        int from = d < p->nplaces ? d + p->before : d < p->nplaces + p->before ? d - p->nplaces : d;
        sizes[d] = p->sizes[from];
        turned[d] = strides[from];
    }
    return tp_new_alias(t, (tp_ints){sizes, p->ndim}, (tp_ints){turned, p->ndim}, t->byte_offset);
}

/* ---- index ---- */

/* self[mask] with a mask of self's shape. */
static bool is_plain_mask(const tp_tensor *self, tp_tensors indices) {
    const tp_tensor *mask = indices.size == 1 ? indices.data[0] : NULL;
    return mask && mask->dtype == TP_BOOL && mask->ndim > 0 && tp_same_sizes(self, mask) &&
           tp_device_equal(mask->device, self->device) && tp_has_values(self) && self->numel;
}

static tp_tensor *select_masked(tp_tensor *self, tp_tensor *mask) {
    tp_autoref *from = tp_plain(self, (tp_dtype)self->dtype), *where = from ? tp_plain(mask, TP_BOOL) : NULL;
    return where ? tp_prim_pack(from, where) : NULL;
}

/* self as the result walks over it: it stands still along the places. New, a view. */
static tp_tensor *walked(const tp_index_plan *p, const tp_tensor *self) {
    int64_t strides[TP_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) {
        bool place = d >= p->before && d < p->before + p->nplaces;
        strides[d] = place ? 0 : self->strides[p->rest[d < p->before ? d : d - p->nplaces]];
    }
    return tp_new_alias(self, (tp_ints){p->sizes, p->ndim}, (tp_ints){strides, p->ndim}, self->byte_offset);
}

/* An index of the places' shape with the dimensions of the result: those of self have one element. New. */
static tp_tensor *beside_places(const tp_index_plan *p, tp_tensor *index) {
    int64_t sizes[TP_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) sizes[d] = 1;
    memcpy(sizes + p->before, p->places, (size_t)p->nplaces * sizeof *sizes);
    return tp_reshape(index, (tp_ints){sizes, p->ndim});
}

/* A new result. It keeps the order in which the dimensions of self, and of the indices, lie in memory. */
static tp_tensor *laid_out(const tp_index_plan *p, const tp_tensor *self, const index_list *l) {
    tp_ints sizes = {p->sizes, p->ndim};
    bool plain = tp_is_contiguous(self);
    for (int i = 0; i < l->n; i++) plain &= tp_is_contiguous(l->items[i]);
    if (plain) return tp_new_empty(sizes, (tp_dtype)self->dtype, self->device);
    tp_operand operands[TP_MAX_OPERANDS] = {0};
    int n = l->n < TP_MAX_OPERANDS ? l->n + 1 : TP_MAX_OPERANDS;
    bool made = (operands[0].tensor = walked(p, self)) != NULL;
    for (int i = 1; made && i < n; i++) made = (operands[i].tensor = beside_places(p, l->items[i - 1])) != NULL;
    int64_t strides[TP_MAX_DIMS];
    if (made) tp_iter_output_strides(operands, n, sizes, strides);
    for (int i = 0; i < n; i++) tp_release(operands[i].tensor);
    return made ? tp_new_empty_strided(sizes, (tp_ints){strides, p->ndim}, (tp_dtype)self->dtype, self->device) : NULL;
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor */
tp_tensor *index_Tensor_dense(tp_tensor *self, tp_tensors indices) {
    if (is_plain_mask(self, indices)) return select_masked(self, indices.data[0]);
    tp_auto_index_plan p;
    TP_CLEANUP(free_list) index_list list;
    list.n = 0;
    if (tp_index_plan_make(&p, self, indices) < 0) return NULL;
    if (make_list(&list, &p, self) < 0) return NULL;
    tp_autoref *out = laid_out(&p, self, &list);
    if (!out || out->numel == 0) return tp_take(out);
    if (p.nindices == 0) return tp_copy_data(out, self) == 0 ? tp_take(out) : NULL;
    tp_autoref *to = places_first(&p, out, out->strides);
    int status = to ? tp_prim_index(self, (tp_tensors){list.items, list.n}, (tp_ints){list.dims, list.n},
                                    TP_INDEX_FAULT(TP_IndexError, "index"), to)
                    : -1;
    return status == 0 ? tp_take(out) : NULL;
}

/* ---- index_put_ ---- */

/* index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor */
tp_tensor *index_put_composite(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_autoref *copy = tp_clone(self, TP_NO_FORMAT);
    return copy && tp_index_put_(copy, indices, values, accumulate) == 0 ? tp_take(copy) : NULL;
}

/* The only index if it is a mask that covers dimensions of self from *dim on, borrowed; else NULL. */
static tp_tensor *only_mask(const tp_tensor *self, tp_tensors indices, int *dim) {
    tp_tensor *mask = NULL;
    for (int64_t i = 0; i < indices.size; i++) {
        if (!indices.data[i]) continue;
        if (mask) return NULL;
        mask = indices.data[i];
        *dim = (int)i;
    }
    if (!is_mask(mask) || *dim + mask->ndim > self->ndim) return NULL;
    for (int i = 0; i < mask->ndim; i++)
        if (mask->sizes[i] != self->sizes[*dim + i]) return NULL;
    return mask;
}

/* One value of any dtype where a mask is true, as masked_fill_ has it: 1 if this is such a call, and done. */
static int fill_masked(tp_tensor *self, tp_tensors indices, tp_tensor *values) {
    int dim = 0;
    int64_t sizes[TP_MAX_DIMS];
    tp_tensor *mask = values->numel == 1 ? only_mask(self, indices, &dim) : NULL;
    if (!mask || tp_overlaps_itself(self)) return 0; /* memory of several elements is put one at a time */
    if (mask->dtype != TP_BOOL)                      /* as in PyTorch, where bytes are masks of several values only */
        return tp_fail(TP_RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype %s",
                       tp_scalar_type_name((tp_dtype)mask->dtype));
    int rest = self->ndim - dim - mask->ndim;
    memcpy(sizes, mask->sizes, mask->ndim * sizeof *sizes);
    for (int i = 0; i < rest; i++) sizes[mask->ndim + i] = 1;
    tp_autoref *here = tp_to_device(mask, self->device, TP_BOOL, false, false, TP_NO_FORMAT);
    tp_autoref *wide = here ? tp_reshape(here, (tp_ints){sizes, mask->ndim + rest}) : NULL;
    tp_autoref *one = wide ? tp_reshape(values, TP_EMPTY_INTS) : NULL;
    tp_autoref *typed = one ? tp_to_device(one, self->device, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    if (!typed) return -1;
    return tp_masked_fill__Tensor(self, wide, typed) == 0 ? 1 : -1;
}

static int check_dtypes(const tp_tensor *self, const tp_tensor *values) {
    if (values->dtype == self->dtype) return 0;
    return tp_fail(TP_RuntimeError,
                   "Index put requires the source and destination dtypes match, got %s for the destination and %s for "
                   "the source.",
                   tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)values->dtype));
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!) */
int index_put__dense(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    int filled = accumulate ? 0 : fill_masked(self, indices, values);
    if (filled) return filled < 0 ? -1 : 0;
    tp_auto_index_plan p;
    TP_CLEANUP(free_list) index_list list;
    list.n = 0;
    int64_t strides[TP_MAX_DIMS];
    if (tp_index_plan_make(&p, self, indices) < 0 || tp_warn_of_expanded("index_put_", self) < 0) return -1;
    if (tp_index_fit_values(&p, values, strides) < 0) return -1;
    if (check_dtypes(self, values) < 0) return -1;
    for (int64_t i = 0; i < indices.size; i++)
        if (indices.data[i] && tp_check_no_overlap(self, indices.data[i]) < 0) return -1;
    tp_autoref *here = tp_to_device(values, self->device, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT);
    tp_autoref *own = here ? tp_apart(here, self) : NULL;
    if (!own || tp_index_fit_values(&p, own, strides) < 0 || make_list(&list, &p, self) < 0) return -1;
    if (tp_checked_numel((tp_ints){p.sizes, p.ndim}) == 0) return 0;
    tp_autoref *from = places_first(&p, own, strides);
    if (!from) return -1;
    if (p.nindices == 0) return accumulate ? tp_add__Tensor(self, from, TP_SCALAR_I(1)) : tp_copy_data(self, from);
    int fault = TP_INDEX_FAULT(TP_IndexError, "index_put_");
    tp_tensors index = {list.items, list.n};
    tp_ints dims = {list.dims, list.n};
    return accumulate ? tp_prim_index_put_add(self, index, dims, from, fault)
                      : tp_prim_index_put_set(self, index, dims, from, fault);
}

/* How many elements a mask chooses is not known there, and nothing is written. */
int index_put__meta(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    int64_t masks = 0, dims = 0;
    for (int64_t i = 0; i < indices.size; i++) {
        masks += is_mask(indices.data[i]);
        dims += is_mask(indices.data[i]) ? indices.data[i]->ndim : 1;
    }
    if (masks == 0 || dims > self->ndim) return index_put__dense(self, indices, values, accumulate);
    return check_dtypes(self, values);
}

tp_tensor_seq *nonzero_numpy_composite(tp_tensor *self) {
    tp_autoref *whole = self->ndim ? tp_retain(self) : tp_unsqueeze(self, 0);
    tp_autoref *places = whole ? tp_nonzero(whole) : NULL;
    return places ? tp_unbind_int(places, 1) : NULL;
}

/* The gradient of index: zeros with grad added where the elements came from. */
tp_tensor *_index_backward_composite(tp_tensor *grad_output, tp_ints input_sizes, tp_tensors indices) {
    tp_autoref *into = tp_zeros(input_sizes, (tp_dtype)grad_output->dtype, TP_NO_LAYOUT, grad_output->device, -1);
    return into && tp_index_put_(into, indices, grad_output, true) == 0 ? tp_take(into) : NULL;
}

/* ---- where a mask is true ---- */

/* The indices brought between the bounds of their dimensions. New. */
static tp_tensor_seq *between_bounds(const char *op, tp_tensor *self, tp_tensors indices) {
    if (indices.size > self->ndim)
        return tp_fail_null(TP_IndexError, "%s: too many indices for a tensor of %d dimensions", op, self->ndim);
    tp_autoseq *inside = tp_tensor_seq_new(indices.size);
    if (!inside) return NULL;
    for (int64_t i = 0; i < indices.size; i++) {
        tp_tensor *index = indices.data[i];
        if (!index) continue;
        if (index->dtype != TP_INT64 && index->dtype != TP_INT32)
            return tp_fail_null(TP_RuntimeError, "%s: tensors used as indices must be long or int tensors", op);
        int64_t size = self->sizes[i];
        if (!(inside->items[i] = tp_clamp(index, TP_SCALAR_I(-size), TP_SCALAR_I(size - 1)))) return NULL;
    }
    return tp_take(inside);
}

/* _unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor */
tp_tensor *_unsafe_masked_index_composite(tp_tensor *self, tp_tensor *mask, tp_tensors indices, const tp_scalar *fill) {
    if (self->numel == 0) return tp_new_full(self, tp_sizes(mask), fill, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1);
    tp_autoseq *inside = between_bounds("_unsafe_masked_index", self, indices);
    tp_autoref *found = inside ? tp_index_Tensor(self, tp_tensor_seq_borrow(inside)) : NULL,
               *outside = found ? tp_logical_not(mask) : NULL;
    return outside ? tp_masked_fill_Scalar(found, outside, fill) : NULL;
}
/* _unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> Tensor */
tp_tensor *_unsafe_masked_index_put_accumulate_composite(tp_tensor *self, tp_tensor *mask, tp_tensors indices,
                                                         tp_tensor *values) {
    if (self->numel == 0) return tp_clone(self, TP_NO_FORMAT);
    tp_autoseq *inside = between_bounds("_unsafe_masked_index_put_accumulate", self, indices);
    tp_autoref *outside = inside ? tp_logical_not(mask) : NULL,
               *added = outside ? tp_masked_fill_Scalar(values, outside, TP_SCALAR_I(0)) : NULL;
    return added ? tp_index_put(self, tp_tensor_seq_borrow(inside), added, true) : NULL;
}
