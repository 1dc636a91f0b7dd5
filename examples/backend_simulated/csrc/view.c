/* view.c: how kernels walk over tensors: element by element, in row-major order, whatever the strides. */
#include "device.h"

char *at(const view *v, int64_t i) {
    char *p = v->data;
    for (int d = v->ndim - 1; d >= 0 && i; d--) {
        p += i % v->sizes[d] * v->strides[d];
        i /= v->sizes[d];
    }
    return p;
}

number get(const view *v, int64_t i) { return number_at(at(v, i), v->dtype); }
void put(const view *v, int64_t i, number x) { number_to(at(v, i), v->dtype, x); }
int64_t get_int(const view *v, int64_t i) { return *(const int64_t *)at(v, i); }

view broadcast(const view *v, const view *like) {
    view made = *like;
    int missing = like->ndim - v->ndim;
    made.data = v->data, made.dtype = v->dtype, made.item = v->item;
    for (int d = 0; d < like->ndim; d++)
        made.strides[d] = d < missing || v->sizes[d - missing] == 1 ? 0 : v->strides[d - missing];
    return made;
}

view at_coordinates_of(const view *v, const view *like) {
    view made = *like;
    made.data = v->data, made.dtype = v->dtype, made.item = v->item;
    for (int d = 0; d < like->ndim; d++) made.strides[d] = d < v->ndim ? v->strides[d] : 0;
    return made;
}

static view some_dims(const view *v, const int64_t *dims, int64_t ndims, bool wanted) {
    view made = {.data = v->data, .dtype = v->dtype, .item = v->item, .numel = 1};
    for (int d = 0; d < v->ndim; d++) {
        bool named = false;
        for (int64_t k = 0; k < ndims; k++) named = named || dims[k] == d;
        if (named != wanted) continue;
        made.sizes[made.ndim] = v->sizes[d], made.strides[made.ndim++] = v->strides[d];
        made.numel *= v->sizes[d];
    }
    return made;
}
view along(const view *v, const int64_t *dims, int64_t ndims) { return some_dims(v, dims, ndims, true); }
view across(const view *v, const int64_t *dims, int64_t ndims) { return some_dims(v, dims, ndims, false); }

view view_of(const tp_tensor *t) {
    tp_view from = tp_view_of(t);
    view v = {.dtype = from.dtype, .ndim = from.ndim, .numel = from.numel, .item = tp_itemsize(from.dtype)};
    v.data = from.numel ? memory_at(from.device.index, from.data) : NULL;
    for (int d = 0; d < from.ndim; d++) v.sizes[d] = from.sizes[d], v.strides[d] = from.strides[d] * v.item;
    return v;
}

int64_t place(int64_t index, int64_t size, bool wrap, int64_t fault, int64_t dim) {
    int64_t found = wrap && index < 0 ? index + size : index;
    if (found >= 0 && found < size) return found;
    note_fault(fault, index, dim, size);
    return -1;
}
