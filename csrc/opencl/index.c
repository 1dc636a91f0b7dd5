/* index.c: index and index_put_ on an OpenCL device: rows of a matrix, taken or written by one index.
 *
 * The indexed dimensions are brought to the front and become the rows, the others the columns; the indices become row
 * numbers. Where the indexed dimensions lead already, no element of self is copied for it. */
#include "NativeFunctions.h"
#include "iter/iter.h"
#include "native/index.h"

#include <string.h>

static int64_t product_of(const int64_t *sizes, int n) {
    int64_t product = 1;
    for (int i = 0; i < n; i++) product *= sizes[i];
    return product;
}

/* One index with negative values counted from the end, and checked. */
static tp_tensor *checked(tp_tensor *index, int dim, int64_t size) {
    tp_scalar low, high;
    if (index->numel == 0) return tp_retain(index);
    tp_autoref *least = tp_min(index), *most = least ? tp_max(index) : NULL;
    if (!most || tp__local_scalar_dense(least, &low) < 0 || tp__local_scalar_dense(most, &high) < 0) return NULL;
    int64_t bad = high.i >= size ? high.i : low.i;
    if (high.i >= size || low.i < -size)
        return tp_fail_null(TP_IndexError, "index %lld is out of bounds for dimension %d with size %lld",
                            (long long)bad, dim, (long long)size);
    return low.i < 0 ? tp_remainder_Scalar(index, TP_SCALAR_I(size)) : tp_retain(index);
}

/* The row number of each place: one dimension, int64, on self's device. */
static tp_tensor *row_numbers(const tp_index_plan *p, const tp_tensor *self) {
    tp_autoref *rows = NULL;
    for (int i = 0; i < p->nindices; i++) {
        int64_t size = self->sizes[p->dims[i]];
        tp_autoref *here = tp_to_device(p->indices[i], self->device, TP_INT64, false, false, TP_NO_FORMAT);
        tp_autoref *index = here ? checked(here, p->dims[i], size) : NULL;
        tp_autoref *scaled = rows && index ? tp_mul_Scalar(rows, TP_SCALAR_I(size)) : NULL;
        tp_tensor *sum = scaled ? tp_add_Tensor(scaled, index, TP_SCALAR_I(1)) : i == 0 ? tp_retain(index) : NULL;
        tp_release(rows);
        rows = sum;
        if (!rows) return NULL;
    }
    tp_autoref *spread = tp_expand(rows, (tp_ints){p->places, p->nplaces}, false);
    return spread ? tp_reshape(spread, TP_INTS(-1)) : NULL;
}

/* self with the indexed dimensions in front; a view. */
static tp_tensor *indexed_first(const tp_index_plan *p, tp_tensor *self) {
    int64_t order[TP_MAX_DIMS];
    for (int i = 0; i < p->nindices; i++) order[i] = p->dims[i];
    for (int i = 0; i < p->nrest; i++) order[p->nindices + i] = p->rest[i];
    return tp_permute(self, (tp_ints){order, self->ndim});
}

/* As a matrix: a view where the strides allow it. */
static tp_tensor *as_rows(const tp_index_plan *p, tp_tensor *first) {
    int64_t rows = product_of(first->sizes, p->nindices), columns = product_of(first->sizes + p->nindices, p->nrest);
    return tp_reshape(first, TP_INTS(rows, columns));
}

/* The order of the result's dimensions, seen from places first. */
static void result_order(const tp_index_plan *p, int64_t *order) {
    int n = 0;
    for (int i = 0; i < p->before; i++) order[n++] = p->nplaces + i;
    for (int i = 0; i < p->nplaces; i++) order[n++] = i;
    for (int i = p->before; i < p->nrest; i++) order[n++] = p->nplaces + i;
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor */
tp_tensor *index_Tensor_opencl(tp_tensor *self, tp_tensors indices) {
    tp_auto_index_plan p;
    int64_t sizes[TP_MAX_DIMS], order[TP_MAX_DIMS];
    if (tp_index_plan_make(&p, self, indices) < 0) return NULL;
    tp_ints result = {p.sizes, p.ndim};
    if (tp_checked_numel(result) == 0) return tp_new_empty(result, (tp_dtype)self->dtype, self->device);
    tp_autoref *rows = row_numbers(&p, self), *first = rows ? indexed_first(&p, self) : NULL;
    tp_autoref *matrix = first ? as_rows(&p, first) : NULL, *taken = matrix ? tp_index_select(matrix, 0, rows) : NULL;
    if (!taken) return NULL;
    memcpy(sizes, p.places, sizeof *sizes * (size_t)p.nplaces);
    for (int i = 0; i < p.nrest; i++) sizes[p.nplaces + i] = self->sizes[p.rest[i]];
    result_order(&p, order);
    tp_autoref *shaped = tp_reshape(taken, (tp_ints){sizes, p.ndim});
    tp_autoref *turned = shaped ? tp_permute(shaped, (tp_ints){order, p.ndim}) : NULL;
    return turned ? tp_clone(turned, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* Values, spread over the result, as rows of places. */
static tp_tensor *value_rows(const tp_index_plan *p, tp_tensor *values, int64_t columns) {
    int64_t order[TP_MAX_DIMS], back[TP_MAX_DIMS];
    result_order(p, order);
    for (int i = 0; i < p->ndim; i++) back[order[i]] = i;
    tp_autoref *spread = tp_expand(values, (tp_ints){p->sizes, p->ndim}, false);
    tp_autoref *turned = spread ? tp_permute(spread, (tp_ints){back, p->ndim}) : NULL;
    return turned ? tp_reshape(turned, TP_INTS(-1, columns)) : NULL;
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!) */
int index_put__opencl(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_auto_index_plan p;
    int64_t strides[TP_MAX_DIMS];
    if (values->dtype != self->dtype)
        return tp_fail(TP_RuntimeError,
                       "Index put requires the source and destination dtypes match, got %s for the destination and %s "
                       "for the source.",
                       tp_scalar_type_name((tp_dtype)self->dtype), tp_scalar_type_name((tp_dtype)values->dtype));
    if (tp_index_plan_make(&p, self, indices) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *here = tp_to_device(values, self->device, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT);
    tp_autoref *own =
        !here || tp_overlap_of(self, here) == TP_OVERLAP_NONE ? tp_retain(here) : tp_clone(here, TP_CONTIGUOUS_FORMAT);
    if (!own || tp_index_fit_values(&p, own, strides) < 0) return -1;
    if (tp_checked_numel((tp_ints){p.sizes, p.ndim}) == 0) return 0;
    tp_autoref *rows = row_numbers(&p, self), *first = rows ? indexed_first(&p, self) : NULL;
    tp_autoref *matrix = first ? as_rows(&p, first) : NULL;
    tp_autoref *from = matrix ? value_rows(&p, own, matrix->sizes[1]) : NULL;
    if (!from) return -1;
    int status =
        accumulate ? tp_index_add_(matrix, 0, rows, from, TP_SCALAR_I(1)) : tp_index_copy_(matrix, 0, rows, from);
    if (status < 0 || matrix->storage == self->storage) return status;
    tp_autoref *back = tp_reshape(matrix, tp_sizes(first));
    return back ? tp_copy_(first, back, false) : -1;
}
