/* segment.c: reductions of segments that follow each other along a dimension, by their lengths or where they begin.
 * Each element learns its segment, and scatter_reduce does the rest. The gradient goes by the same way, but for NaNs,
 * which are the extremes of their segments. */
#include "NativeFunctions.h"
#include "core/scalar_math.h"
#include "iter/iter.h"
#include "native/common/checks.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *name, *scatter;
    double start;
} segment_kind;

static const segment_kind kinds[] = {
    {"max", "amax", -INFINITY}, {"mean", "sum", 0}, {"min", "amin", INFINITY}, {"sum", "sum", 0}, {"prod", "prod", 1},
};

static const segment_kind *kind_of(const char *reduce) {
    for (size_t i = 0; i < TP_COUNTOF(kinds); i++)
        if (strcmp(kinds[i].name, reduce) == 0) return &kinds[i];
    return tp_fail_null(TP_RuntimeError,
                        "segment_reduce(): expected reduction to be one of 'max', 'mean', 'min', 'sum', 'prod', got "
                        "'%s'",
                        reduce);
}

static int check_all(tp_tensor *condition, const char *message) {
    tp_autoref *all = condition ? tp_all(condition) : NULL;
    return all ? tp__assert_async_msg(all, message) : -1;
}
static int check_lengths(tp_tensor *lengths, int64_t last, int64_t along) {
    tp_autoref *positive = tp_ge_Scalar(lengths, TP_SCALAR_I(0));
    if (check_all(positive, "lengths contains negative value!") < 0) return -1;
    tp_autoref *sum = tp_sum_dim_IntList(lengths, TP_INTS(last), false, TP_INT64),
               *fits = sum ? tp_eq_Scalar(sum, TP_SCALAR_I(along)) : NULL;
    return check_all(fits, "segment_reduce(): Expected all rows of lengths along axis to sum to "
                           "data.size(lengths.dim()-1) when !unsafe.");
}

/* Where segments begin and the last one ends. */
static tp_tensor *bounds_of(tp_tensor *lengths, int64_t axis) {
    tp_autoref *ends = tp_cumsum(lengths, axis, TP_INT64);
    return ends ? tp_constant_pad_nd(ends, TP_INTS(1, 0), TP_SCALAR_I(0)) : NULL;
}

/* The segment of each element, in the shape of `data`, counted from 1: 0 is before the first one, and the last number
 * after all of them. */
static tp_tensor *segments(tp_tensor *data, tp_tensor *bounds, int64_t axis) {
    int64_t sizes[TP_MAX_DIMS + 1], along = data->sizes[axis];
    tp_autoref *places = tp_arange(TP_SCALAR_I(along), TP_INT64, TP_STRIDED, data->device, -1);
    memcpy(sizes, bounds->sizes, (size_t)axis * sizeof *sizes);
    sizes[axis] = along;
    tp_autoref *each = places ? tp_expand(places, (tp_ints){sizes, (int)axis + 1}, false) : NULL,
               *packed = each ? tp_contiguous(each, TP_CONTIGUOUS_FORMAT) : NULL,
               *found = packed ? tp_searchsorted_Tensor(bounds, packed, false, true, NULL, NULL) : NULL;
    for (int d = (int)axis + 1; d < data->ndim; d++) sizes[d] = 1;
    tp_autoref *thin = found ? tp_reshape(found, (tp_ints){sizes, data->ndim}) : NULL;
    return thin ? tp_expand_as(thin, data) : NULL;
}

/* A sum divided by how many elements it has; an empty segment without an initial value has no mean. */
static tp_tensor *mean_of(tp_tensor *sum, tp_tensor *lengths, bool initial) {
    int64_t sizes[TP_MAX_DIMS];
    for (int d = 0; d < sum->ndim; d++) sizes[d] = d < lengths->ndim ? lengths->sizes[d] : 1;
    tp_autoref *counts = tp_reshape(lengths, (tp_ints){sizes, sum->ndim}),
               *some = counts ? tp_clamp_min(counts, TP_SCALAR_I(1)) : NULL,
               *as_sum = some ? tp_to_dtype(some, (tp_dtype)sum->dtype, false, false, TP_NO_FORMAT) : NULL,
               *mean = as_sum ? tp_div_Tensor(sum, as_sum) : NULL;
    if (!mean || initial) return mean ? tp_take(mean) : NULL;
    tp_autoref *none = tp_eq_Scalar(counts, TP_SCALAR_I(0));
    return none ? tp_masked_fill_Scalar(mean, none, TP_SCALAR_F(NAN)) : NULL;
}

/* `size` along `dim`, and one more before and after: for what no segment has. */
static tp_tensor *with_ends(tp_tensor *t, int64_t dim, const tp_scalar *value) {
    int64_t pads[2 * TP_MAX_DIMS] = {0}, n = 2 * (t->ndim - dim);
    pads[n - 2] = pads[n - 1] = 1;
    return tp_constant_pad_nd(t, (tp_ints){pads, n}, value);
}

/* segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int
 * axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor */
tp_tensor *segment_reduce_composite(tp_tensor *input, const char *reduce, tp_tensor *lengths, tp_tensor *indices,
                                    tp_tensor *offsets, int64_t axis, bool unsafe, const tp_scalar *initial) {
    const segment_kind *kind = kind_of(reduce);
    if (!kind) return NULL;
    if (indices)
        return tp_fail_null(TP_RuntimeError, "segment_reduce(): indices based reduction is not supported yet.");
    if (!lengths && !offsets)
        return tp_fail_null(TP_RuntimeError, "segment_reduce(): Either lengths or offsets must be defined.");
    if (tp_dtype_categories[input->dtype] != TP_FLOATING)
        return tp_fail_null(TP_NotImplementedError, "\"_segment_reduce_cpu\" not implemented for '%s'",
                            tp_scalar_type_name((tp_dtype)input->dtype));
    tp_autoref *data = tp_contiguous(input, TP_CONTIGUOUS_FORMAT);
    if (!data) return NULL;
    int64_t dim = tp_wrap_dim(axis, data->ndim);
    if (dim < 0) return NULL;
    tp_tensor *given = lengths ? lengths : offsets;
    if (given->ndim != dim + 1)
        return tp_fail_null(TP_RuntimeError,
                            "segment_reduce(): Expected axis to be the last dimension of %s but got %lld.",
                            lengths ? "lengths" : "offsets", (long long)dim);
    if (!lengths && given->sizes[dim] < 1)
        return tp_fail_null(TP_RuntimeError,
                            "segment_reduce(): offsets needs one more element than there are segments");
    tp_autoref *counts = lengths ? tp_retain(lengths) : tp_diff(offsets, 1, dim, NULL, NULL);
    if (!counts || (!unsafe && check_lengths(counts, dim, data->sizes[dim]) < 0)) return NULL;
    int64_t sizes[TP_MAX_DIMS], segment_count = counts->sizes[dim];
    memcpy(sizes, data->sizes, (size_t)data->ndim * sizeof *sizes);
    memcpy(sizes, counts->sizes, (size_t)counts->ndim * sizeof *sizes);
    sizes[dim] += 2; /* for what stands before and after the segments */
    const tp_scalar *start = initial ? initial : TP_SCALAR_F(kind->start);
    tp_autoref *base =
                   tp_new_full(data, (tp_ints){sizes, data->ndim}, start, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1),
               *bounds = !base     ? NULL
                         : lengths ? bounds_of(lengths, dim)
                                   : tp_contiguous(offsets, TP_CONTIGUOUS_FORMAT),
               *of = bounds ? segments(data, bounds, dim) : NULL,
               *all = of ? tp_scatter_reduce_two(base, dim, of, data, kind->scatter, true) : NULL,
               *made = all ? tp_narrow(all, dim, 1, segment_count) : NULL;
    if (made && strcmp(kind->name, "mean") == 0) return mean_of(made, counts, initial != NULL);
    return made ? tp_contiguous(made, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* `t` where it is a number, `value` where it is none. */
static tp_tensor *without_nan(tp_tensor *t, double value) {
    tp_autoref *none = tp_isnan(t);
    return none ? tp_masked_fill_Scalar(t, none, TP_SCALAR_F(value)) : NULL;
}

/* A product with a NaN is one: its other factors have no slope. */
static tp_tensor *beside_nan(tp_tensor *slopes, tp_tensor *data, tp_tensor *products, int64_t dim, tp_tensor *of) {
    tp_autoref *none = tp_isnan(products), *beside = none ? tp_gather(none, dim, of, false) : NULL,
               *number = beside ? tp_eq_Tensor(data, data) : NULL,
               *where = number ? tp_logical_and(beside, number) : NULL;
    return where ? tp_masked_fill_Scalar(slopes, where, TP_SCALAR_F(NAN)) : NULL;
}

/* _segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? lengths=None, Tensor?
 * offsets=None, int axis=0, Scalar? initial=None) -> Tensor */
tp_tensor *_segment_reduce_backward_composite(tp_tensor *grad, tp_tensor *output, tp_tensor *data, const char *reduce,
                                              tp_tensor *lengths, tp_tensor *offsets, int64_t axis,
                                              const tp_scalar *initial) {
    const segment_kind *kind = kind_of(reduce);
    if (!kind) return NULL;
    const tp_dtype dtype = (tp_dtype)data->dtype, wide = tp_compute_dtype(dtype);
    if (wide != dtype && (lengths || offsets)) { /* 16 bits: the result is made again, since it was rounded */
        tp_autoref *x = tp_to_dtype(data, wide, false, false, TP_NO_FORMAT),
                   *slope = x ? tp_to_dtype(grad, wide, false, false, TP_NO_FORMAT) : NULL,
                   *y = slope ? tp_segment_reduce(x, reduce, lengths, NULL, offsets, axis, true, initial) : NULL,
                   *made = y ? _segment_reduce_backward_composite(slope, y, x, reduce, lengths, offsets, axis, initial)
                             : NULL;
        return made ? tp_to_dtype(made, dtype, false, false, TP_NO_FORMAT) : NULL;
    }
    if (!lengths && !offsets)
        return tp_fail_null(TP_RuntimeError,
                            "segment_reduce(): Either lengths or offsets must be provided to segment_reduce_backward");
    tp_tensor *given = lengths ? lengths : offsets;
    int64_t dim = tp_wrap_dim(axis, data->ndim);
    if (dim < 0) return NULL;
    if (given->ndim != dim + 1 || output->ndim != data->ndim || !tp_same_sizes(grad, output) ||
        output->sizes[dim] != given->sizes[dim] - (lengths ? 0 : 1))
        return tp_fail_null(TP_RuntimeError,
                            "segment_reduce(): the gradient and the output have one element for each segment");
    bool mean = strcmp(kind->name, "mean") == 0, extreme = isinf(kind->start);
    tp_autoref *counts = !mean     ? NULL
                         : lengths ? tp_retain(lengths)
                                   : tp_diff(offsets, 1, dim, NULL, NULL),
               *share = !mean    ? tp_retain(grad)
                        : counts ? mean_of(grad, counts, true)
                                 : NULL,
               *bounds = lengths ? bounds_of(lengths, dim) : tp_contiguous(offsets, TP_CONTIGUOUS_FORMAT),
               *of = share && bounds ? segments(data, bounds, dim) : NULL;
    /* A NaN is the only extreme of its segment, and of a product's factors the one that is left out, as 0 is. */
    tp_autoref *numbers = of ? without_nan(data, extreme ? -kind->start : 0) : NULL,
               *reduced = numbers && extreme ? without_nan(output, -kind->start) : tp_retain(output);
    if (!numbers || !reduced) return NULL;
    const tp_scalar *start = initial ? initial : TP_SCALAR_F(kind->start);
    tp_autoref *above = with_ends(share, dim, TP_SCALAR_I(0)), *result = above ? with_ends(reduced, dim, start) : NULL,
               *base = result ? tp_full_like(result, start, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT)
                              : NULL;
    tp_autoref *made =
        base ? tp__scatter_reduce_backward_src(above, base, dim, of, numbers, kind->scatter, !extreme, result) : NULL;
    tp_autoref *slopes = made && kind->start == 1 ? beside_nan(made, data, result, dim, of) : tp_retain(made);
    return slopes ? tp_contiguous(slopes, TP_CONTIGUOUS_FORMAT) : NULL;
}
