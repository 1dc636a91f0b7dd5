/* index.c: the primitives index and index_put on an OpenCL device, by take and put.
 *
 * One index takes or writes rows along its dimension. With several indices, their dimensions are brought to the front
 * and become the rows of a matrix, the other dimensions the columns; the indices become row numbers. Where the indexed
 * dimensions lead already, no element of self is copied for it. */
#include "Functions.h"
#include "PrimitiveKernels.h"
#include "opencl/runtime/launch.h"
#include "prim/transfer.h"

#include <string.h>

static void define(tp_text *s TP_UNUSED, const tp_cl_device *d TP_UNUSED, const void *variant TP_UNUSED) {}

static const tp_cl_family family = {"index.cl", define, .size = TP_CL_SIZE(bool)};

/* Folds one more index into the row numbers; -1 stays where an index is out of range. */
static int next_rows(const tp_tensor *line, int64_t dim, int64_t size, int64_t fault, tp_tensor *rows, bool first) {
    const bool variant = true;
    tp_cl_device *d = tp_cl_get(line->device.index);
    if (!d) return -1;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "next_rows", &variant));
    tp_cl_pass_tensor(&c, line);
    tp_cl_pass_tensor(&c, rows);
    tp_cl_pass_long(&c, line->numel);
    tp_cl_pass_long(&c, size);
    tp_cl_pass_long(&c, dim);
    tp_cl_pass_int(&c, first);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, line->numel, 0);
}

/* An index as one line without gaps; new. */
static tp_tensor *line_of(tp_tensor *index) {
    tp_autoref *line = tp_reshape(index, TP_INTS(-1));
    return line ? tp_contiguous(line, TP_CONTIGUOUS_FORMAT) : NULL;
}

/* self with the indexed dimensions in front; a view. */
static tp_tensor *indexed_first(tp_tensor *self, tp_ints dims) {
    int64_t order[TP_MAX_DIMS], n = dims.size;
    memcpy(order, dims.data, (size_t)n * sizeof *order);
    for (int64_t d = 0, k = 0; d < self->ndim; d++)
        if (k < dims.size && dims.data[k] == d) k++;
        else order[n++] = d;
    return tp_permute(self, (tp_ints){order, self->ndim});
}

/* A call by rows: row `lines[i]` of `table` goes with row i of the values. */
typedef struct {
    tp_tensor *first, *table, *lines; /* owned */
    bool wrap;
    int64_t sizes[TP_MAX_DIMS]; /* of the values: as many rows as there are places */
} rows_call;

static void free_rows(rows_call *c) {
    tp_release(c->first);
    tp_release(c->table);
    tp_release(c->lines);
}

static int number_rows(rows_call *c, tp_tensors index, tp_ints dims, int64_t fault) {
    int64_t rows = 1, columns = 1;
    for (int d = 0; d < c->first->ndim; d++) *(d < dims.size ? &rows : &columns) *= c->first->sizes[d];
    c->table = tp_reshape(c->first, TP_INTS(rows, columns));
    c->lines = tp_new_empty(TP_INTS(index.data[0]->numel), TP_INT64, index.data[0]->device);
    if (!c->table || !c->lines) return -1;
    for (int64_t k = 0; k < index.size; k++) {
        tp_autoref *line = line_of(index.data[k]);
        if (!line || next_rows(line, dims.data[k], c->first->sizes[k], fault, c->lines, k == 0) < 0) return -1;
    }
    return 0;
}

static int make_rows(rows_call *c, tp_tensor *self, tp_tensors index, tp_ints dims, int64_t fault) {
    c->first = indexed_first(self, dims);
    if (!c->first) return -1;
    if (index.size == 1) {
        c->table = tp_retain(c->first);
        c->lines = line_of(index.data[0]);
        c->wrap = true;
    } else if (number_rows(c, index, dims, fault) < 0) {
        return -1;
    }
    if (!c->lines) return -1;
    memcpy(c->sizes, c->table->sizes, c->table->ndim * sizeof *c->sizes);
    c->sizes[0] = c->lines->numel;
    return 0;
}

/* The row numbers, one to each element of the values; new. */
static tp_tensor *spread(const rows_call *c) {
    int64_t strides[TP_MAX_DIMS] = {1};
    return tp_new_alias(c->lines, (tp_ints){c->sizes, c->table->ndim}, (tp_ints){strides, c->table->ndim},
                        c->lines->byte_offset);
}

/* index(Tensor self, Tensor[] index, int[] dims, int fault, *, Tensor(a!) out) -> () */
int index_opencl(tp_tensor *self, tp_tensors index, tp_ints dims, int64_t fault, tp_tensor *out) {
    TP_CLEANUP(free_rows) rows_call c;
    c.first = c.table = c.lines = NULL;
    c.wrap = false;
    if (make_rows(&c, self, index, dims, fault) < 0) return -1;
    bool direct = tp_is_contiguous(out);
    tp_autoref *made = direct ? tp_retain(out) : tp_new_empty(tp_sizes(out), (tp_dtype)out->dtype, out->device);
    tp_autoref *at = made ? spread(&c) : NULL;
    tp_autoref *rows = at ? tp_reshape(made, (tp_ints){c.sizes, c.table->ndim}) : NULL;
    if (!rows || take_opencl(c.table, 0, at, fault, c.wrap, rows) < 0) return -1;
    return direct ? 0 : copy_opencl(made, out);
}

typedef int (*put_fn)(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap);

static int put(put_fn how, tp_tensor *self, tp_tensors index, tp_ints dims, tp_tensor *values, int64_t fault) {
    TP_CLEANUP(free_rows) rows_call c;
    c.first = c.table = c.lines = NULL;
    c.wrap = false;
    if (make_rows(&c, self, index, dims, fault) < 0) return -1;
    tp_autoref *at = spread(&c), *from = at ? tp_reshape(values, (tp_ints){c.sizes, c.table->ndim}) : NULL;
    if (!from || how(c.table, 0, at, from, fault, c.wrap) < 0) return -1;
    if (c.table->storage == self->storage) return 0;
    tp_autoref *back = tp_reshape(c.table, tp_sizes(c.first));
    return back ? tp_copy_data(c.first, back) : -1;
}

/* index_put.set(Tensor(a!) self, Tensor[] index, int[] dims, Tensor values, int fault) -> () */
int index_put_set_opencl(tp_tensor *self, tp_tensors index, tp_ints dims, tp_tensor *values, int64_t fault) {
    return put(put_set_opencl, self, index, dims, values, fault);
}

int index_put_add_opencl(tp_tensor *self, tp_tensors index, tp_ints dims, tp_tensor *values, int64_t fault) {
    return put(put_add_opencl, self, index, dims, values, fault);
}
