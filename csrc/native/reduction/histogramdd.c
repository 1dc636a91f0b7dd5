/* histogramdd.c: histograms of points in several dimensions, and coordinates of places in a flat tensor. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "core/alloc.h"
#include "iter/iter.h"

#include <stdlib.h>

static const char *const NAME = "torch.histogramdd";

/* ---- histograms ---- */

/* The points, one a row. new. */
static tp_tensor *points_of(tp_tensor *self, int64_t nbins, tp_tensor *weight) {
    if (self->ndim < 2)
        return tp_fail_null(TP_RuntimeError, "%s: input tensor should have at least 2 dimensions", NAME);
    int64_t count = self->sizes[self->ndim - 1];
    if (nbins != count)
        return tp_fail_null(TP_RuntimeError,
                            "histogramdd: The size of bins must be equal to the innermost dimension of the input.");
    if (self->dtype != TP_FLOAT32 && self->dtype != TP_FLOAT64)
        return tp_fail_null(TP_NotImplementedError, "\"histogramdd\" not implemented for '%s'",
                            tp_scalar_type_name((tp_dtype)self->dtype));
    if (weight && !tp_ints_equal(tp_sizes(weight), (tp_ints){self->sizes, self->ndim - 1}))
        return tp_fail_null(TP_RuntimeError,
                            "%s: if weight tensor is provided it should have the same shape as the input tensor "
                            "excluding its innermost dimension",
                            NAME);
    if (weight && weight->dtype != self->dtype)
        return tp_fail_null(TP_RuntimeError,
                            "%s: if weight tensor is provided, input tensor and weight tensor should have the same "
                            "dtype, but got input(%s), and weight(%s)",
                            NAME, tp_dtype_names[self->dtype], tp_dtype_names[weight->dtype]);
    int64_t rows = 1;
    for (int d = 0; d < self->ndim - 1; d++) rows *= self->sizes[d];
    return tp_reshape(self, TP_INTS(rows, count));
}

static int check_range(tp_floats range, int64_t n) {
    if (!range.data) return 0;
    if (range.size != 2 * n)
        return tp_fail(TP_RuntimeError,
                       "%s: for a %lld-dimensional histogram range should have %lld elements, but got %lld", NAME,
                       (long long)n, (long long)(2 * n), (long long)range.size);
    for (int64_t i = 0; i < n; i++) {
        double low = range.data[2 * i], high = range.data[2 * i + 1];
        if (!isfinite(low) || !isfinite(high))
            return tp_fail(TP_RuntimeError, "%s: dimension %lld's range [%g, %g] is not finite", NAME, (long long)i,
                           low, high);
        if (low > high)
            return tp_fail(TP_RuntimeError, "%s: min should not exceed max, but got min %g max %g for dimension %lld",
                           NAME, low, high, (long long)i);
    }
    return 0;
}

/* The edges along every dimension, of bins of one width. new. */
static tp_tensor_seq *edges_of(tp_tensor *points, tp_ints bins, tp_floats range) {
    if (check_range(range, bins.size) < 0) return NULL;
    tp_autoseq *edges = tp_tensor_seq_new(bins.size);
    for (int64_t i = 0; edges && i < bins.size; i++) {
        if (bins.data[i] <= 0)
            return tp_fail_null(TP_RuntimeError, "torch.histogram(): bins must be > 0, but got %lld for dimension %lld",
                                (long long)bins.data[i], (long long)i);
        tp_autoref *column = tp_select_int(points, 1, i);
        tp_floats ends = range.data ? (tp_floats){range.data + 2 * i, 2} : range;
        if (!column || !(edges->items[i] = tp__histogram_edges(column, bins.data[i], ends))) return NULL;
    }
    return edges ? tp_take(edges) : NULL;
}

/* Whether each point is between the first edge and the last. new. */
static tp_tensor *between(tp_tensor *column, tp_tensor *edges) {
    tp_autoref *first = tp_select_int(edges, 0, 0), *last = tp_select_int(edges, 0, -1);
    tp_autoref *above = first && last ? tp_ge_Tensor(column, first) : NULL,
               *below = above ? tp_le_Tensor(column, last) : NULL;
    return below ? tp_logical_and(above, below) : NULL;
}
/* The bin that each point is in along one dimension; the last edge belongs to the last bin. new. */
static tp_tensor *bin_of(tp_tensor *column, tp_tensor *edges) {
    tp_autoref *line = tp_contiguous(column, TP_CONTIGUOUS_FORMAT),
               *found = line ? tp_searchsorted_Tensor(edges, line, false, true, NULL, NULL) : NULL,
               *place = found ? tp_sub_Scalar(found, TP_SCALAR_I(1), TP_SCALAR_I(1)) : NULL;
    return place ? tp_clamp(place, TP_SCALAR_I(0), TP_SCALAR_I(edges->sizes[0] - 2)) : NULL;
}

/* How much weight is in each box; with density, divided by the whole and by the box's volume. new. */
static tp_tensor *divided(tp_tensor *counts, tp_tensors edges) {
    tp_autoref *whole = tp_sum(counts, TP_NO_DTYPE), *share = whole ? tp_div_Tensor(counts, whole) : NULL;
    for (int64_t i = 0; share && i < edges.size; i++) {
        int64_t sizes[TP_MAX_DIMS];
        for (int64_t d = 0; d < edges.size; d++) sizes[d] = d == i ? -1 : 1;
        tp_autoref *widths = tp_diff(edges.data[i], 1, -1, NULL, NULL),
                   *along = widths ? tp_reshape(widths, (tp_ints){sizes, edges.size}) : NULL;
        tp_tensor *next = along ? tp_div_Tensor(share, along) : NULL;
        tp_release(share);
        share = next;
    }
    return tp_take(share);
}
static tp_tensor *boxes(tp_tensor *points, tp_tensors edges, tp_tensor *weight, bool density) {
    int64_t sizes[TP_MAX_DIMS], total = 1, rows = points->sizes[0];
    if (edges.size == 0) return tp_zeros((tp_ints){NULL, 0}, (tp_dtype)points->dtype, TP_STRIDED, points->device, -1);
    if (edges.size > TP_MAX_DIMS)
        return tp_fail_null(TP_RuntimeError, "%s: more than %d dimensions", NAME, TP_MAX_DIMS);
    tp_autoref *inside = tp_ones(TP_INTS(rows), TP_BOOL, TP_STRIDED, points->device, -1),
               *place = inside ? tp_zeros(TP_INTS(rows), TP_INT64, TP_STRIDED, points->device, -1) : NULL;
    for (int64_t i = 0; place && i < edges.size; i++) {
        sizes[i] = edges.data[i]->sizes[0] - 1;
        if (__builtin_mul_overflow(total, sizes[i], &total))
            return tp_fail_null(TP_RuntimeError, "%s: too many bins", NAME);
        tp_autoref *column = tp_select_int(points, 1, i), *fits = column ? between(column, edges.data[i]) : NULL,
                   *both = fits ? tp_logical_and(inside, fits) : NULL,
                   *bin = both ? bin_of(column, edges.data[i]) : NULL,
                   *scaled = bin ? tp_mul_Scalar(place, TP_SCALAR_I(sizes[i])) : NULL,
                   *next = scaled ? tp_add_Tensor(scaled, bin, TP_SCALAR_I(1)) : NULL;
        if (!next) return NULL;
        tp_release(inside), tp_release(place);
        inside = tp_take(both), place = tp_take(next);
    }
    if (!place) return NULL;
    tp_dtype dtype = (tp_dtype)points->dtype;
    tp_autoref *given = weight ? tp_reshape(weight, TP_INTS(rows)) : NULL,
               *mass = !weight ? tp_to_dtype(inside, dtype, false, false, TP_NO_FORMAT)
                       : given ? tp_where_ScalarOther(inside, given, TP_SCALAR_I(0))
                               : NULL,
               *none = mass ? tp_zeros(TP_INTS(total), dtype, TP_STRIDED, points->device, -1) : NULL,
               *line = none ? tp_scatter_add(none, 0, place, mass) : NULL,
               *counts = line ? tp_reshape(line, (tp_ints){sizes, edges.size}) : NULL;
    return counts && density ? divided(counts, edges) : tp_take(counts);
}

/* _histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False)
 * -> Tensor[] */
tp_tensor_seq *_histogramdd_bin_edges_composite(tp_tensor *self, tp_ints bins, tp_floats range, tp_tensor *weight,
                                                bool density TP_UNUSED) {
    tp_autoref *points = points_of(self, bins.size, weight);
    return points ? edges_of(points, bins, range) : NULL;
}
/* _histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool density=False)
 * -> Tensor */
tp_tensor *_histogramdd_from_bin_cts_composite(tp_tensor *self, tp_ints bins, tp_floats range, tp_tensor *weight,
                                               bool density) {
    tp_autoref *points = points_of(self, bins.size, weight);
    tp_autoseq *edges = points ? edges_of(points, bins, range) : NULL;
    return edges ? boxes(points, tp_tensor_seq_borrow(edges), weight, density) : NULL;
}
/* _histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool density=False) -> Tensor */
tp_tensor *_histogramdd_from_bin_tensors_composite(tp_tensor *self, tp_tensors bins, tp_tensor *weight, bool density) {
    tp_autoref *points = points_of(self, bins.size, weight);
    tp_autoseq *edges = points ? tp_tensor_seq_new(bins.size) : NULL;
    for (int64_t i = 0; edges && i < bins.size; i++) {
        const tp_tensor *bin = bins.data[i];
        if (bin->dtype != self->dtype)
            return tp_fail_null(TP_RuntimeError,
                                "%s: input tensor and bins tensors should have the same dtype, but got input with "
                                "dtype %s and bins for dimension %lld with dtype %s",
                                NAME, tp_dtype_names[self->dtype], (long long)i, tp_dtype_names[bin->dtype]);
        if (bin->ndim != 1)
            return tp_fail_null(TP_RuntimeError,
                                "%s: bins tensor should have one dimension, but got %d dimensions in the bins tensor "
                                "for dimension %lld",
                                NAME, bin->ndim, (long long)i);
        if (bin->numel == 0)
            return tp_fail_null(TP_RuntimeError,
                                "%s: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                                "for dimension %lld",
                                NAME, (long long)i);
        if (bin->numel == 1)
            return tp_fail_null(TP_RuntimeError, "torch.histogram(): bins must be > 0, but got 0 for dimension %lld",
                                (long long)i);
        edges->items[i] = tp_retain(bins.data[i]);
    }
    return edges ? boxes(points, tp_tensor_seq_borrow(edges), weight, density) : NULL;
}

/* ---- coordinates ---- */

/* _unravel_index(Tensor indices, SymInt[] shape) -> Tensor[] */
tp_tensor_seq *_unravel_index_composite(tp_tensor *indices, tp_ints shape) {
    if (!tp_is_integral_dtype((tp_dtype)indices->dtype) || indices->dtype == TP_BOOL)
        return tp_fail_null(TP_TypeError, "expected 'indices' to be integer dtype, but got torch.%s",
                            tp_dtype_names[indices->dtype]);
    tp_autoseq *places = tp_tensor_seq_new(shape.size);
    tp_autoref *wide = places ? tp_to_dtype(indices, TP_INT64, false, false, TP_NO_FORMAT) : NULL;
    int64_t stride = 1;
    for (int64_t d = shape.size - 1; wide && d >= 0; d--) {
        if (shape.data[d] < 0) return tp_fail_null(TP_ValueError, "'shape' cannot have negative values");
        tp_autoref *whole = tp_floor_divide_Scalar(wide, TP_SCALAR_I(stride));
        if (!whole || !(places->items[d] = tp_remainder_Scalar(whole, TP_SCALAR_I(shape.data[d])))) return NULL;
        if (__builtin_mul_overflow(stride, shape.data[d], &stride))
            return tp_fail_null(TP_RuntimeError, "unravel_index: the shape has too many elements");
    }
    return wide ? tp_take(places) : NULL;
}

/* ---- what is in the boxes, with their edges ---- */

static int with_edges(tp_tensor *hist, tp_tensor_seq *edges, tp_value *results) {
    results[0] = (tp_value){.tag = TP_TENSOR, .tensor = hist};
    results[1] = (tp_value){.tag = TP_TENSOR_SEQ, .seq = edges};
    return 0;
}

/* histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor hist,
 * Tensor[] bin_edges) */
int histogramdd_composite(tp_tensor *self, tp_ints bins, tp_floats range, tp_tensor *weight, bool density,
                          tp_value *results) {
    tp_autoseq *edges = tp__histogramdd_bin_edges(self, bins, range, weight, density);
    tp_tensor *hist = edges ? tp__histogramdd_from_bin_cts(self, bins, range, weight, density) : NULL;
    return hist ? with_edges(hist, tp_take(edges), results) : -1;
}
/* histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool density=False) -> (Tensor
 * hist, Tensor[] bin_edges) */
int histogramdd_int_bins_composite(tp_tensor *self, int64_t bins, tp_floats range, tp_tensor *weight, bool density,
                                   tp_value *results) {
    int64_t n = self->ndim ? self->sizes[self->ndim - 1] : 0, *each = malloc((size_t)tp_max_int(n, 1) * sizeof *each);
    if (!each) return tp_fail_memory(n * (int64_t)sizeof *each);
    for (int64_t i = 0; i < n; i++) each[i] = bins;
    int status = histogramdd_composite(self, (tp_ints){each, n}, range, weight, density, results);
    free(each);
    return status;
}
/* histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, bool density=False)
 * -> (Tensor hist, Tensor[] bin_edges) */
int histogramdd_TensorList_bins_composite(tp_tensor *self, tp_tensors bins, tp_floats range TP_UNUSED,
                                          tp_tensor *weight, bool density, tp_value *results) {
    tp_autoseq *edges = tp_tensor_seq_new(bins.size);
    for (int64_t i = 0; edges && i < bins.size; i++) edges->items[i] = tp_retain(bins.data[i]);
    tp_tensor *hist = edges ? tp__histogramdd_from_bin_tensors(self, bins, weight, density) : NULL;
    return hist ? with_edges(hist, tp_take(edges), results) : -1;
}
