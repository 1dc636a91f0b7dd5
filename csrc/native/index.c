/* index.c: what an index by tensors means: masks become index tensors, shapes are checked and broadcast. */
#include "native/index.h"

#include "NativeFunctions.h"

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

static int add_all(tp_index_plan *p, tp_tensor *self, tp_tensors indices) {
    int dim = 0;
    for (int64_t i = 0; i < indices.size; i++) {
        tp_tensor *index = indices.data[i];
        bool mask = index && (index->dtype == TP_BOOL || index->dtype == TP_UINT8);
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
        if (self->sizes[p->dims[i]] == 0 && n > 0 && self->device.type != TP_DEVICE_META)
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

tp_tensor *index_Tensor_meta(tp_tensor *self, tp_tensors indices) {
    tp_auto_index_plan p;
    if (tp_index_plan_make(&p, self, indices) < 0) return NULL;
    return tp_new_empty((tp_ints){p.sizes, p.ndim}, (tp_dtype)self->dtype, self->device);
}

int index_put__meta(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    (void)accumulate;
    tp_auto_index_plan p;
    if (tp_index_plan_make(&p, self, indices) < 0) return -1;
    int64_t strides[TP_MAX_DIMS];
    return tp_index_fit_values(&p, values, strides);
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
