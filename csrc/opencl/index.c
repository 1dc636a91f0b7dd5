/* index.c: index and index_put_ on an OpenCL device.
 *
 * One index takes or writes rows along its dimension. Of several the dimensions are brought to the front and become the
 * rows of a matrix, the others the columns; the indices become row numbers. Where the indexed dimensions lead already,
 * no element of self is copied for it. A mask is an index by the coordinates of its true elements, for whose number the
 * host waits, but for one value written through a mask. */
#include "opencl/index.h"

#include "NativeFunctions.h"
#include "PrimitiveKernels.h"
#include "iter/iter.h"
#include "native/gather.h"
#include "native/index.h"
#include "opencl/fault.h"

#include <string.h>

static int64_t product_of(const int64_t *sizes, int n) {
    int64_t product = 1;
    for (int i = 0; i < n; i++) product *= sizes[i];
    return product;
}

static void define(tp_text *s, const tp_cl_device *d, const void *rows) {
    if (*(const bool *)rows) tp_text_add(s, "#define ROWS\n");
}

static const tp_cl_family family = {"index.cl", define, .size = TP_CL_SIZE(bool)};

int tp_cl_check_index(const char *op, tp_error_class cls, const tp_tensor *index, int64_t dim, int64_t size, bool wrap,
                      tp_tensor *rows, bool first) {
    tp_cl_device *d = tp_cl_get(index->device.index);
    if (!d || index->numel == 0) return d ? 0 : -1;
    const bool with_rows = rows != NULL;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "next_rows", &with_rows));
    tp_cl_pass_tensor(&c, index);
    tp_cl_pass_tensor(&c, rows ? rows : index);
    tp_cl_pass_long(&c, index->numel);
    tp_cl_pass_long(&c, size);
    tp_cl_pass_long(&c, dim);
    tp_cl_pass_int(&c, wrap);
    tp_cl_pass_int(&c, first);
    tp_cl_pass_fault(&c, tp_fault_id(cls, op, NULL));
    return tp_cl_run_checked(&c, index->numel, 0);
}

/* Index i as a line of int64 on self's device, spread over the places. */
static tp_tensor *index_line(const tp_index_plan *p, int i, const tp_tensor *self) {
    tp_autoref *here = tp_to_device(p->indices[i], self->device, TP_INT64, false, false, TP_NO_FORMAT);
    tp_autoref *spread = here ? tp_expand(here, (tp_ints){p->places, p->nplaces}, false) : NULL;
    tp_autoref *line = spread ? tp_reshape(spread, TP_INTS(-1)) : NULL;
    return line ? tp_contiguous(line, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* The row number of each place, -1 where an index is out of range: one dimension, int64, on self's device. */
static tp_tensor *row_numbers(const char *op, const tp_index_plan *p, const tp_tensor *self) {
    tp_autoref *rows =
        tp_new_empty(TP_INTS(tp_checked_numel((tp_ints){p->places, p->nplaces})), TP_INT64, self->device);
    for (int i = 0; rows && i < p->nindices; i++) {
        tp_autoref *line = index_line(p, i, self);
        int64_t size = self->sizes[p->dims[i]];
        if (!line || tp_cl_check_index(op, TP_IndexError, line, p->dims[i], size, true, rows, i == 0) < 0) return NULL;
    }
    return tp_take(rows);
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

/* The only index if it is a mask that covers dimensions of self from *dim on, new, as bools; else NULL, with an error
 * or without. */
static tp_tensor *only_mask(const tp_tensor *self, tp_tensors indices, int *dim) {
    tp_tensor *mask = NULL;
    for (int64_t i = 0; i < indices.size; i++) {
        if (!indices.data[i]) continue;
        if (mask) return NULL;
        mask = indices.data[i];
        *dim = (int)i;
    }
    if (!mask || (mask->dtype != TP_BOOL && mask->dtype != TP_UINT8) || *dim + mask->ndim > self->ndim) return NULL;
    for (int i = 0; i < mask->ndim; i++)
        if (mask->sizes[i] != self->sizes[*dim + i]) return NULL;
    return tp_to_device(mask, self->device, TP_BOOL, false, false, TP_NO_FORMAT);
}

/* self[mask] with a mask of self's shape. */
static tp_tensor *select_masked(tp_tensor *self, tp_tensor *mask) {
    tp_autoref *from = tp_contiguous(self, TP_CONTIGUOUS_FORMAT),
               *where = from ? tp_contiguous(mask, TP_CONTIGUOUS_FORMAT) : NULL;
    return where ? pack_opencl(from, where) : NULL;
}

/* index.Tensor(Tensor self, Tensor?[] indices) -> Tensor */
tp_tensor *index_Tensor_opencl(tp_tensor *self, tp_tensors indices) {
    tp_auto_index_plan p = {.nindices = 0};
    int dim = 0;
    int64_t sizes[TP_MAX_DIMS], order[TP_MAX_DIMS];
    tp_autoref *mask = only_mask(self, indices, &dim);
    if (mask && mask->ndim && tp_same_sizes(mask, self)) return select_masked(self, mask);
    if (tp_error_pending() || tp_index_plan_make(&p, self, indices) < 0) return NULL;
    tp_ints result = {p.sizes, p.ndim};
    if (tp_checked_numel(result) == 0) return tp_new_empty(result, (tp_dtype)self->dtype, self->device);
    if (p.nindices == 1) {
        tp_autoref *line = index_line(&p, 0, self);
        tp_autoref *taken =
            line ? tp_index_take(TP_INDEX_FAULT(TP_IndexError, "index"), self, p.dims[0], line, true) : NULL;
        return taken ? tp_reshape(taken, result) : NULL;
    }
    tp_autoref *rows = row_numbers("index", &p, self), *first = rows ? indexed_first(&p, self) : NULL;
    tp_autoref *matrix = first ? as_rows(&p, first) : NULL,
               *taken = matrix ? tp_index_take(TP_INDEX_FAULT(TP_IndexError, "index"), matrix, 0, rows, false) : NULL;
    if (!taken) return NULL;
    memcpy(sizes, p.places, sizeof *sizes * (size_t)p.nplaces);
    for (int i = 0; i < p.nrest; i++) sizes[p.nplaces + i] = self->sizes[p.rest[i]];
    result_order(&p, order);
    tp_autoref *shaped = tp_reshape(taken, (tp_ints){sizes, p.ndim});
    tp_autoref *turned = shaped ? tp_permute(shaped, (tp_ints){order, p.ndim}) : NULL;
    return turned ? tp_contiguous(turned, TP_CONTIGUOUS_FORMAT) : NULL;
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

/* One value where a mask is true: 1 if this is such a call, and done. Nothing waits. */
static int fill_masked(tp_tensor *self, tp_tensors indices, tp_tensor *values) {
    int dim = 0;
    int64_t sizes[TP_MAX_DIMS];
    tp_scalar number;
    tp_autoref *mask = values->numel == 1 ? only_mask(self, indices, &dim) : NULL;
    if (!mask) return tp_error_pending() ? -1 : 0;
    int rest = self->ndim - dim - mask->ndim;
    memcpy(sizes, mask->sizes, mask->ndim * sizeof *sizes);
    for (int i = 0; i < rest; i++) sizes[mask->ndim + i] = 1;
    tp_autoref *wide = tp_reshape(mask, (tp_ints){sizes, mask->ndim + rest});
    if (!wide || tp_check_internal_overlap(self) < 0) return -1;
    if (values->device.type == TP_DEVICE_CPU)
        return tp_item(values, &number) < 0 || tp_masked_fill__Scalar(self, wide, &number) < 0 ? -1 : 1;
    tp_autoref *one = tp_reshape(values, TP_EMPTY_INTS);
    tp_autoref *typed = one ? tp_to_dtype(one, (tp_dtype)self->dtype, false, false, TP_NO_FORMAT) : NULL;
    return typed && tp_masked_fill__Tensor(self, wide, typed) == 0 ? 1 : -1;
}

/* index_put_ with one index: rows along its dimension. */
static int put_rows(const tp_index_plan *p, tp_tensor *self, tp_tensor *values, tp_put_fn how) {
    int64_t sizes[TP_MAX_DIMS];
    tp_autoref *line = index_line(p, 0, self);
    tp_autoref *spread = line ? tp_expand(values, (tp_ints){p->sizes, p->ndim}, false) : NULL;
    if (!spread) return -1;
    memcpy(sizes, self->sizes, self->ndim * sizeof *sizes);
    sizes[p->dims[0]] = line->numel;
    tp_autoref *from = tp_reshape(spread, (tp_ints){sizes, self->ndim});
    return from ? tp_index_write(TP_INDEX_FAULT(TP_IndexError, "index_put_"), how, self, p->dims[0], line, from, true)
                : -1;
}

/* index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!) */
int index_put__opencl(tp_tensor *self, tp_tensors indices, tp_tensor *values, bool accumulate) {
    tp_auto_index_plan p = {.nindices = 0};
    int64_t strides[TP_MAX_DIMS];
    tp_put_fn how = accumulate ? tp_prim_put_add : tp_prim_put_set;
    int filled = accumulate ? 0 : fill_masked(self, indices, values);
    if (filled) return filled < 0 ? -1 : 0;
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
    if (p.nindices == 1) return put_rows(&p, self, own, how);
    tp_autoref *rows = row_numbers("index_put_", &p, self), *first = rows ? indexed_first(&p, self) : NULL;
    tp_autoref *matrix = first ? as_rows(&p, first) : NULL;
    tp_autoref *from = matrix ? value_rows(&p, own, matrix->sizes[1]) : NULL;
    if (!from || tp_index_write(TP_INDEX_FAULT(TP_IndexError, "index_put_"), how, matrix, 0, rows, from, false) < 0)
        return -1;
    if (matrix->storage == self->storage) return 0;
    tp_autoref *back = tp_reshape(matrix, tp_sizes(first));
    return back ? tp_copy_(first, back, false) : -1;
}
