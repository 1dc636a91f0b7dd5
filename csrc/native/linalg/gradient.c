/* gradient.c: how a function changes along the dimensions of its values, estimated from neighbours: central differences
 * of second order, at the ends of first or second order; differentiated by its parts.
 *
 * Places are a distance apart, or at coordinates of their own (B. Fornberg, "Generation of finite difference formulas
 * on arbitrarily spaced grids", 1988). */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/common/checks.h"

typedef struct {
    const tp_scalar *distance;
    tp_tensor *places; /* borrowed; NULL: `distance` apart */
} spacing;

/* a x + b y + c z, with numbers for weights. */
static tp_tensor *weighed(tp_tensor *x, double a, tp_tensor *y, double b, tp_tensor *z, double c) {
    tp_autoref *p = tp_mul_Scalar(x, TP_SCALAR_F(a)), *q = p ? tp_mul_Scalar(y, TP_SCALAR_F(b)) : NULL,
               *sum = q ? tp_add_Tensor(p, q, TP_SCALAR_I(1)) : NULL,
               *r = sum ? tp_mul_Scalar(z, TP_SCALAR_F(c)) : NULL;
    return r ? tp_add_Tensor(sum, r, TP_SCALAR_I(1)) : NULL;
}

/* An end of places that are 1 apart; `sign` is -1 at the far one. */
static tp_tensor *even_end(tp_tensor *self, int64_t dim, int64_t order, int sign) {
    int64_t n = self->sizes[dim], first = sign > 0 ? 0 : n - 1;
    tp_autoref *x = tp_narrow(self, dim, first, 1), *y = x ? tp_narrow(self, dim, first + sign, 1) : NULL,
               *z = y && order == 2 ? tp_narrow(self, dim, first + 2 * sign, 1) : NULL;
    if (!y || (order == 2 && !z)) return NULL;
    if (order == 2) return weighed(x, -1.5 * sign, y, 2 * sign, z, -0.5 * sign);
    return sign > 0 ? tp_sub_Tensor(y, x, TP_SCALAR_I(1)) : tp_sub_Tensor(x, y, TP_SCALAR_I(1));
}

/* Differences come before they are divided, since those of neighbours that are near to each other are exact. */
static tp_tensor *evenly(tp_tensor *self, int64_t dim, const tp_scalar *distance, int64_t order) {
    int64_t n = self->sizes[dim];
    tp_autoseq *parts = tp_tensor_seq_new(3);
    tp_autoref *after = parts ? tp_narrow(self, dim, 2 < n ? 2 : n, n > 2 ? n - 2 : 0) : NULL,
               *before = after ? tp_narrow(self, dim, 0, n > 2 ? n - 2 : 0) : NULL,
               *both = before ? tp_sub_Tensor(after, before, TP_SCALAR_I(1)) : NULL;
    if (!both) return NULL;
    parts->items[0] = even_end(self, dim, order, 1);
    parts->items[1] = parts->items[0] ? tp_mul_Scalar(both, TP_SCALAR_F(0.5)) : NULL;
    parts->items[2] = parts->items[1] ? even_end(self, dim, order, -1) : NULL;
    tp_autoref *slopes = parts->items[2] ? tp_cat(tp_tensor_seq_borrow(parts), dim) : NULL;
    return slopes ? tp_div_Scalar(slopes, distance) : NULL;
}

/* The slope at place `at` (0, 1, 2) of the parabola through three neighbours, with steps d and e between them. */
static tp_tensor *through_three(tp_tensor *const v[3], tp_tensor *d, tp_tensor *e, int at) {
    tp_autoref *both = tp_add_Tensor(d, e, TP_SCALAR_I(1));
    tp_autoref *y0 = both ? tp_sub_Tensor(v[1], v[0], TP_SCALAR_I(1)) : NULL,
               *y1 = y0 ? tp_sub_Tensor(v[2], v[1], TP_SCALAR_I(1)) : NULL;
    tp_autoref *s = y1 ? tp_div_Tensor(y0, d) : NULL, *t = s ? tp_div_Tensor(y1, e) : NULL; /* slopes of the steps */
    tp_autoref *bend = t ? tp_sub_Tensor(t, s, TP_SCALAR_I(1)) : NULL, *curve = bend ? tp_div_Tensor(bend, both) : NULL;
    if (!curve) return NULL;
    tp_autoref *turn = tp_mul_Tensor(curve, at == 2 ? e : d);
    if (!turn) return NULL;
    return at == 0 ? tp_sub_Tensor(s, turn, TP_SCALAR_I(1)) : tp_add_Tensor(at == 1 ? s : t, turn, TP_SCALAR_I(1));
}

static tp_tensor *step_from(tp_tensor *places, int64_t dim, int64_t at, int64_t count) {
    tp_autoref *low = tp_narrow(places, dim, at, count), *high = low ? tp_narrow(places, dim, at + 1, count) : NULL;
    return high ? tp_sub_Tensor(high, low, TP_SCALAR_I(1)) : NULL;
}

/* `count` slopes of parabolas that begin at place `first`. */
static tp_tensor *parabolas(tp_tensor *self, tp_tensor *places, int64_t dim, int64_t first, int64_t count, int at) {
    tp_autoref *a = tp_narrow(self, dim, first, count), *b = a ? tp_narrow(self, dim, first + 1, count) : NULL,
               *c = b ? tp_narrow(self, dim, first + 2, count) : NULL;
    tp_autoref *d = c ? step_from(places, dim, first, count) : NULL,
               *e = d ? step_from(places, dim, first + 1, count) : NULL;
    tp_tensor *const v[3] = {a, b, c};
    return e ? through_three(v, d, e, at) : NULL;
}

static tp_tensor *straight(tp_tensor *self, tp_tensor *places, int64_t dim, int64_t at) {
    tp_autoref *rise = step_from(self, dim, at, 1), *run = rise ? step_from(places, dim, at, 1) : NULL;
    return run ? tp_div_Tensor(rise, run) : NULL;
}

static tp_tensor *unevenly(tp_tensor *self, int64_t dim, tp_tensor *coordinates, int64_t order) {
    int64_t n = self->sizes[dim], shape[TP_MAX_DIMS];
    if (coordinates->ndim != 1 || coordinates->numel != n)
        return tp_fail_null(
            TP_RuntimeError,
            "torch.gradient expected each element of spacing to have one coordinate for each place of its "
            "dimension, but got %lld for %lld places",
            (long long)coordinates->numel, (long long)n);
    for (int d = 0; d < self->ndim; d++) shape[d] = d == dim ? n : 1;
    tp_autoref *places = tp_reshape(coordinates, (tp_ints){shape, self->ndim});
    tp_autoseq *parts = places ? tp_tensor_seq_new(n > 2 ? 3 : 2) : NULL;
    if (!parts) return NULL;
    int64_t last = parts->size - 1;
    parts->items[0] = order == 1 ? straight(self, places, dim, 0) : parabolas(self, places, dim, 0, 1, 0);
    if (!parts->items[0]) return NULL;
    if (n > 2 && !(parts->items[1] = parabolas(self, places, dim, 0, n - 2, 1))) return NULL;
    parts->items[last] = order == 1 ? straight(self, places, dim, n - 2) : parabolas(self, places, dim, n - 3, 1, 2);
    return parts->items[last] ? tp_cat(tp_tensor_seq_borrow(parts), dim) : NULL;
}

static int check_dims(const tp_tensor *self, tp_ints dims, int64_t order, int64_t *out) {
    bool seen[TP_MAX_DIMS] = {false};
    if (order != 1 && order != 2)
        return tp_fail(TP_RuntimeError, "torch.gradient only supports edge_order=1 and edge_order=2.");
    if (self->dtype == TP_UINT8) return tp_fail(TP_RuntimeError, "torch.gradient does not support uint8 input.");
    if (self->dtype == TP_BOOL)
        return tp_fail(TP_RuntimeError,
                       "torch.gradient: bool tensors have no differences; use `^` on neighbours instead");
    for (int64_t i = 0; i < dims.size; i++) {
        if ((out[i] = tp_wrap_own_dim(dims.data[i], self)) < 0) return -1;
        if (seen[out[i]])
            return tp_fail(TP_RuntimeError, "dim %lld appears multiple times in the list of dims", (long long)out[i]);
        seen[out[i]] = true;
        if (self->sizes[out[i]] < order + 1)
            return tp_fail(TP_RuntimeError, "torch.gradient expected each dimension size to be at least edge_order+1");
    }
    return 0;
}

/* Along each dimension of dims, whose spacings are as many. */
static tp_tensor_seq *along(tp_tensor *self, tp_ints dims, const spacing *spacings, int64_t order) {
    int64_t wrapped[TP_MAX_DIMS];
    if (dims.size > TP_MAX_DIMS) return tp_fail_null(TP_RuntimeError, "torch.gradient: too many dimensions");
    if (check_dims(self, dims, order, wrapped) < 0) return NULL;
    tp_autoseq *out = tp_tensor_seq_new(dims.size);
    for (int64_t i = 0; out && i < dims.size; i++) {
        out->items[i] = spacings[i].places ? unevenly(self, wrapped[i], spacings[i].places, order)
                                           : evenly(self, wrapped[i], spacings[i].distance, order);
        if (!out->items[i]) return NULL;
    }
    return tp_take(out);
}

/* All dimensions, or the one that is given. */
static tp_ints dims_of(const tp_tensor *self, tp_opt_int dim, int64_t *room) {
    if (dim.has) return room[0] = dim.value, (tp_ints){room, 1};
    for (int64_t i = 0; i < self->ndim; i++) room[i] = i;
    return (tp_ints){room, self->ndim};
}

static int check_count(int64_t spacings, int64_t dims, bool all) {
    if (spacings == dims) return 0;
    if (all)
        return tp_fail(TP_RuntimeError,
                       "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                       "'self.dim() = %lld', since dim argument was not given, but got a list of length %lld",
                       (long long)dims, (long long)spacings);
    return tp_fail(
        TP_RuntimeError,
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the "
        "same length, but got a spacing argument of length %lld and a dim argument of length %lld.",
        (long long)spacings, (long long)dims);
}

static tp_tensor_seq *with_number(tp_tensor *self, const tp_scalar *distance, tp_ints dims, int64_t order) {
    spacing s[TP_MAX_DIMS];
    for (int i = 0; i < TP_MAX_DIMS; i++) s[i] = (spacing){distance, NULL};
    return along(self, dims, s, order);
}
static tp_tensor_seq *with_numbers(tp_tensor *self, tp_scalars distances, tp_ints dims, bool all, int64_t order) {
    spacing s[TP_MAX_DIMS];
    if (check_count(distances.size, dims.size, all) < 0) return NULL;
    for (int64_t i = 0; i < dims.size && i < TP_MAX_DIMS; i++) s[i] = (spacing){&distances.data[i], NULL};
    return along(self, dims, s, order);
}
static tp_tensor_seq *with_tensors(tp_tensor *self, tp_tensors places, tp_ints dims, bool all, int64_t order) {
    spacing s[TP_MAX_DIMS];
    if (check_count(places.size, dims.size, all) < 0) return NULL;
    char here[40], there[40];
    for (int64_t i = 0; i < dims.size && i < TP_MAX_DIMS; i++) {
        if (!tp_device_equal(places.data[i]->device, self->device))
            return tp_fail_null(TP_RuntimeError,
                                "torch.gradient expected each tensor to be on the same device, but got devices %s and "
                                "%s!",
                                tp_device_print(self->device, here), tp_device_print(places.data[i]->device, there));
        s[i] = (spacing){NULL, places.data[i]};
    }
    return along(self, dims, s, order);
}

/* gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> Tensor[] */
tp_tensor_seq *gradient_scalarint_composite(tp_tensor *self, const tp_scalar *distance, tp_opt_int dim, int64_t order) {
    int64_t room[TP_MAX_DIMS];
    return with_number(self, distance ? distance : TP_SCALAR_I(1), dims_of(self, dim, room), order);
}
tp_tensor_seq *gradient_scalararray_composite(tp_tensor *self, const tp_scalar *distance, tp_ints dim, int64_t order) {
    return with_number(self, distance, dim, order);
}
tp_tensor_seq *gradient_array_composite(tp_tensor *self, tp_ints dim, int64_t order) {
    return with_number(self, TP_SCALAR_I(1), dim, order);
}
tp_tensor_seq *gradient_scalarrayint_composite(tp_tensor *self, tp_scalars distances, tp_opt_int dim, int64_t order) {
    int64_t room[TP_MAX_DIMS];
    return with_numbers(self, distances, dims_of(self, dim, room), !dim.has, order);
}
tp_tensor_seq *gradient_scalarrayarray_composite(tp_tensor *self, tp_scalars distances, tp_ints dim, int64_t order) {
    return with_numbers(self, distances, dim, false, order);
}
tp_tensor_seq *gradient_tensorarrayint_composite(tp_tensor *self, tp_tensors places, tp_opt_int dim, int64_t order) {
    int64_t room[TP_MAX_DIMS];
    return with_tensors(self, places, dims_of(self, dim, room), !dim.has, order);
}
tp_tensor_seq *gradient_tensorarray_composite(tp_tensor *self, tp_tensors places, tp_ints dim, int64_t order) {
    return with_tensors(self, places, dim, false, order);
}
