/* places.c: elements by their places: take, put, index, and by a mask. An index that is out of range is noted, and left
 * out. */
#include "device.h"

#include <string.h>

/* ---- along one dimension ---- */

/* Where the element of t for element i of an index is: `coordinates` is t along all other dimensions, as the index
 * walks over them. */
typedef struct {
    view coordinates;
    int64_t size, stride;
} line;

static line line_of(const view *t, int64_t dim, const view *index) {
    line l = {at_coordinates_of(t, index), t->ndim ? t->sizes[dim] : 1, t->ndim ? t->strides[dim] : 0};
    if (t->ndim) l.coordinates.strides[dim] = 0;
    return l;
}

/* take(Tensor self, int dim, Tensor index, int fault, bool wrap, *, Tensor(a!) out) -> () */
static void take(const argument *a) {
    const view *index = a[2].tensors, *out = a[5].tensors;
    line l = line_of(a[0].tensors, a[1].i, index);
    for (int64_t i = 0; i < index->numel; i++) {
        int64_t k = place(get_int(index, i), l.size, a[4].b, a[3].i, a[1].i);
        if (k >= 0) memcpy(at(out, i), at(&l.coordinates, i) + k * l.stride, (size_t)out->item);
    }
}

typedef number (*change)(number there, number given, tp_dtype d);

/* put.set(Tensor(a!) self, int dim, Tensor index, Tensor src, int fault, bool wrap) -> (), and those shaped like it */
static void change_places(const argument *a, change changed) {
    const view *self = a[0].tensors, *index = a[2].tensors;
    view src = at_coordinates_of(a[3].tensors, index);
    line l = line_of(self, a[1].i, index);
    for (int64_t i = 0; i < index->numel; i++) {
        int64_t k = place(get_int(index, i), l.size, a[5].b, a[4].i, a[1].i);
        if (k < 0) continue;
        char *to = at(&l.coordinates, i) + k * l.stride;
        if (!changed) memmove(to, at(&src, i), (size_t)self->item);
        else number_to(to, self->dtype, changed(number_at(to, self->dtype), get(&src, i), self->dtype));
    }
}
static number least(number a, number b, tp_dtype d) {
    return is_nan(a, d) ? a : is_nan(b, d) || compared(b, a, d) < 0 ? b : a;
}
static number most(number a, number b, tp_dtype d) {
    return is_nan(a, d) ? a : is_nan(b, d) || compared(b, a, d) > 0 ? b : a;
}
static void put_set(const argument *a) { change_places(a, NULL); }
static void put_add(const argument *a) { change_places(a, plus); }
static void put_mul(const argument *a) { change_places(a, times); }
static void put_min(const argument *a) { change_places(a, least); }
static void put_max(const argument *a) { change_places(a, most); }

/* ---- in several dimensions ---- */

typedef struct {
    const view *self, *index;
    const int64_t *dims;
    int64_t n, fault;
    view rest; /* self along the other dimensions */
} grid;

static grid grid_of(const argument *self, const argument *index, const argument *dims, const argument *fault) {
    return (grid){self->tensors, index->tensors, dims->ints,
                  dims->n,       fault->i,       across(self->tensors, dims->ints, dims->n)};
}
/* Where self has the place that element i of the indices names, less its data; false: it names none. */
static bool offset_of(const grid *g, int64_t i, int64_t *offset) {
    *offset = 0;
    for (int64_t k = 0; k < g->n; k++) {
        int64_t d = g->dims[k], found = place(get_int(&g->index[k], i), g->self->sizes[d], true, g->fault, d);
        if (found < 0) return false;
        *offset += found * g->self->strides[d];
    }
    return true;
}

/* index(Tensor self, Tensor[] index, int[] dims, int fault, *, Tensor(a!) out) -> () */
static void gather(const argument *a) {
    grid g = grid_of(&a[0], &a[1], &a[2], &a[3]);
    const view *out = a[4].tensors;
    int64_t offset, n = g.rest.numel;
    for (int64_t i = 0; i < g.index->numel; i++)
        for (int64_t k = 0; offset_of(&g, i, &offset) && k < n; k++)
            memcpy(at(out, i * n + k), at(&g.rest, k) + offset, (size_t)out->item);
}

/* index_put.set(Tensor(a!) self, Tensor[] index, int[] dims, Tensor values, int fault) -> () */
static void scatter(const argument *a, bool adds) {
    grid g = grid_of(&a[0], &a[1], &a[2], &a[4]);
    const view *values = a[3].tensors;
    int64_t offset, n = g.rest.numel;
    tp_dtype d = g.self->dtype;
    for (int64_t i = 0; i < g.index->numel; i++)
        for (int64_t k = 0; offset_of(&g, i, &offset) && k < n; k++) {
            char *to = at(&g.rest, k) + offset;
            if (!adds) memmove(to, at(values, i * n + k), (size_t)g.self->item);
            else number_to(to, d, plus(number_at(to, d), get(values, i * n + k), d));
        }
}
static void scatter_set(const argument *a) { scatter(a, false); }
static void scatter_add(const argument *a) { scatter(a, true); }

/* ---- by a mask ---- */

static int64_t count_true(const view *mask) {
    int64_t n = 0;
    for (int64_t i = 0; i < mask->numel; i++) n += mask->data[i] != 0;
    return n;
}

/* The results of these two are as large as there are true bytes: the host waits for the count. */
TENSORPY_KERNEL(tp_tensor *, pack, (tp_tensor *, from), (tp_tensor *, mask)) {
    tp_device device = tp_view_of(from).device;
    if (wait_here(device.index) < 0) return NULL;
    view x = view_of(from), where = view_of(mask);
    int64_t n = count_true(&where);
    tp_tensor *made = tp_new_empty((tp_ints){&n, 1}, x.dtype, device);
    char *to = made ? view_of(made).data : NULL;
    for (int64_t i = 0; to && i < where.numel; i++)
        if (where.data[i]) memcpy(to, at(&x, i), (size_t)x.item), to += x.item;
    return made;
}

TENSORPY_KERNEL(tp_tensor *, nonzero, (tp_tensor *, mask)) {
    tp_device device = tp_view_of(mask).device;
    if (wait_here(device.index) < 0) return NULL;
    view where = view_of(mask);
    int64_t n = count_true(&where), sizes[] = {n, where.ndim}, strides[] = {1, n ? n : 1};
    tp_tensor *made = tp_new_empty_strided((tp_ints){sizes, 2}, (tp_ints){strides, 2}, TP_INT64, device);
    if (!made || !n) return made;
    int64_t *to = (int64_t *)view_of(made).data;
    for (int64_t i = 0; i < where.numel; i++) {
        int64_t rest = i;
        if (!where.data[i]) continue;
        for (int d = where.ndim - 1; d >= 0; d--) to[d * n] = rest % where.sizes[d], rest /= where.sizes[d];
        to++;
    }
    return made;
}

/* unpack(Tensor from, Tensor mask, int fault, *, Tensor(a!) out) -> () */
static void unpack(const argument *a) {
    const view *from = a[0].tensors, *mask = a[1].tensors, *out = a[3].tensors;
    for (int64_t i = 0, next = 0; i < mask->numel; i++) {
        if (!mask->data[i]) continue;
        if (next == from->numel) return note_fault(a[2].i, next, 0, from->numel);
        memcpy(at(out, i), at(from, next++), (size_t)out->item);
    }
}

IMPLEMENT(prim, DEVICE, m) { return tp_impl(m, "pack", pack) < 0 ? -1 : tp_impl(m, "nonzero", nonzero); }
PRIMITIVES({"take", take}, {"put.set", put_set}, {"put.add", put_add}, {"put.mul", put_mul}, {"put.min", put_min},
           {"put.max", put_max}, {"index", gather}, {"index_put.set", scatter_set}, {"index_put.add", scatter_add},
           {"unpack", unpack})
