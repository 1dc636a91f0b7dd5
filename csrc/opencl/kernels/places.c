/* places.c: gather and the scatters; the kernel is places.cl.
 *
 * Dimensions that lie one after another in all three tensors are one. On a CPU device a work-item has a long piece of
 * the innermost one, where the compiler finds vectors; on a GPU an element, so that neighbours read neighbours. */
#include "PrimitiveKernels.h"
#include "iter/iter.h"
#include "opencl/kernels/element.h"
#include "opencl/kernels/sort.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"
#include "prim/transfer.h"
#include "prim/program.h"

#define MAX_DIMS 16
#define LONG_PIECE 1024
#define PIECE 64
#define SHORT_PIECE 16
#define LONG_LINE 64 /* along the index, */
#define MANY_UNITS 8192

typedef enum { GET, SET, ADD, MUL, MIN, MAX, NUM_PLACES } places_op;

/* What an index is checked against; fault TP_TRUSTED: nothing. */
typedef struct {
    int fault;
    int64_t dim, size;
    bool wrap;
} index_check;

typedef struct {
    int n; /* fastest first */
    int64_t size[MAX_DIMS], self[MAX_DIMS], index[MAX_DIMS], other[MAX_DIMS];
} dims;

static void add_dim(dims *d, int64_t size, int64_t self, int64_t index, int64_t other) {
    int at = d->n - 1;
    if (size == 1) return;
    if (d->n && d->self[at] * d->size[at] == self && d->index[at] * d->size[at] == index &&
        d->other[at] * d->size[at] == other) {
        d->size[at] *= size;
        return;
    }
    at = d->n++;
    d->size[at] = size;
    d->self[at] = self;
    d->index[at] = index;
    d->other[at] = other;
}

static void add_dims(dims *d, places_op op, int64_t dim, const tp_tensor *self, const tp_tensor *index,
                     const tp_tensor *other) {
    d->n = 0;
    for (int i = index->ndim - 1; i >= 0; i--)
        if (i != dim) add_dim(d, index->sizes[i], self->strides[i], index->strides[i], other->strides[i]);
        else if (op == GET) add_dim(d, index->sizes[i], 0, index->strides[i], other->strides[i]);
}

static int64_t numel_of(const dims *d) { return tp_ints_numel((tp_ints){d->size, d->n}); }

/* How many elements of a row a work-item of a CPU device has: few where else there is not enough to do. */
static int64_t piece_of(const tp_cl_device *d, places_op op, const dims *split) {
    if (op == GET) return LONG_PIECE;
    return numel_of(split) / PIECE >= 2 * (int64_t)d->compute_units ? PIECE : SHORT_PIECE;
}

/* The words of the kernel's `geometry`; returns how many work-items there are. */
static int64_t pass_geometry(tp_cl_call *c, const dims *d, bool columns, int64_t piece, places_op op, int64_t dim,
                             const tp_tensor *self, const tp_tensor *index, const tp_tensor *other,
                             const index_check *check) {
    int64_t words[4 * MAX_DIMS + 13], outer = 1;
    int at = 0, from = columns ? 1 : 0, kept = d->n > from ? d->n - from : 0;
    const int64_t *const arrays[] = {d->size, d->self, d->index, d->other};
    bool writes = op != GET && index->ndim;
    for (int k = 0; k < 4; k++) {
        if (!kept) words[at++] = k == 0 ? 1 : 0;
        for (int i = 0; i < kept; i++) words[at++] = arrays[k][from + i];
    }
    for (int i = 0; i < kept; i++) outer *= d->size[from + i];
    for (int k = 0; k < 4; k++) words[at++] = columns ? arrays[k][0] : k == 0 ? 1 : 0;
    int64_t inner = columns ? d->size[0] : 1, pieces = (inner + piece - 1) / piece;
    words[at++] = pieces;
    words[at++] = pieces * outer;
    words[at++] = writes ? index->sizes[dim] : 1;
    words[at++] = self->ndim ? self->strides[dim] : 0;
    words[at++] = writes ? index->strides[dim] : 0;
    words[at++] = writes && other->ndim ? other->strides[dim] : 0;
    words[at++] = check->size;
    words[at++] = check->dim;
    words[at++] = check->wrap;
    tp_cl_pass(c, (size_t)at * sizeof *words, words);
    return pieces * outer;
}

typedef struct {
    uint8_t dtype, op, ndim;
    bool checked, single;   /* single: a work-item has one element */
    bool ordered, by_lines; /* by_lines: each line has an order of its own */
    uint16_t piece, rest;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    static const char *const names[NUM_PLACES] = {"GET", "SET", "ADD", "MUL", "MIN", "MAX"};
    const variant *v = given;
    tp_dtype compute = tp_compute_dtype((tp_dtype)v->dtype);
    tp_cl_define(s, "X", (tp_dtype)v->dtype, compute);
    tp_text_add(s, "#define OP_%s\n#define NDIM %d\n#define PIECE %d\n#define T %s\n%s%s", names[v->op], v->ndim,
                v->piece, tp_cl_type(compute), v->checked ? "#define CHECKED\n" : "",
                v->single ? "#define SINGLE\n" : "");
    if (v->ordered) tp_text_add(s, "#define ORDERED\n#define LINES %d\n", v->by_lines);
    if (compute == TP_BOOL) tp_text_add(s, "#define T_BOOL\n");
    if (tp_is_complex_dtype(compute)) tp_text_add(s, "#define MUL(x, y) tp_mul_%s(x, y)\n", tp_dtype_suffix(compute));
    else tp_text_add(s, "#define MUL(x, y) ((x) * (y))\n");
}

static const tp_cl_family family = {"places.cl", define, .size = TP_CL_SIZE(variant)};

/* ---- the order of the writers ---- */

/* Whether the index is one line, expanded over the other dimensions. */
static bool is_one_line(const tp_tensor *index, int64_t dim) {
    for (int i = 0; i < index->ndim; i++)
        if (i != dim && index->sizes[i] > 1 && index->strides[i] != 0) return false;
    return true;
}

/* The index with its dimension last: one line, or all of them. */
static tp_tensor *index_lines(const tp_tensor *index, int64_t dim, bool one) {
    int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
    int n = 0;
    for (int i = 0; !one && i < index->ndim; i++)
        if (i != dim) sizes[n] = index->sizes[i], strides[n++] = index->strides[i];
    sizes[n] = index->sizes[dim], strides[n++] = index->strides[dim];
    tp_autoref *lines =
        tp_new_alias((tp_tensor *)index, (tp_ints){sizes, n}, (tp_ints){strides, n}, index->byte_offset);
    tp_autoref *made = lines ? tp_new_empty(tp_sizes(lines), TP_INT64, index->device) : NULL;
    return made && tp_copy_data(made, lines) == 0 ? tp_take(made) : NULL;
}

/* A GPU has too little to do with a work-item for each of few long lines. */
static bool wants_order(const tp_cl_device *d, places_op op, const dims *split, const tp_tensor *index, int64_t dim,
                        const index_check *check) {
    if (d->is_cpu || op == GET || !index->ndim || check->wrap) return false;
    return index->sizes[dim] >= LONG_LINE && numel_of(split) < MANY_UNITS;
}

/* In which order to look at the elements of each line: those of one place follow each other, as they are in the line;
 * new. */
static tp_tensor *writing_order(const tp_tensor *index, int64_t dim, bool one) {
    tp_autoref *lines = index_lines(index, dim, one);
    tp_autoref *order = lines ? tp_new_empty(tp_sizes(lines), TP_INT64, index->device) : NULL;
    return order && tp_cl_sort_places(lines, false, order) == 0 ? tp_take(order) : NULL;
}

static int run(places_op op, tp_tensor *self, int64_t dim, const tp_tensor *index, tp_tensor *other, int64_t fault,
               bool wrap) {
    const index_check against = {(int)fault, dim, tp_size_at(tp_sizes(self), dim), wrap}, *check = &against;
    tp_tensor *const tensors[] = {self, other};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    dims split;
    if (!d) return -1;
    if (index->ndim > MAX_DIMS)
        return tp_fail(TP_RuntimeError, "OpenCL: an index has at most %d dimensions, not %d", MAX_DIMS, index->ndim);
    add_dims(&split, op, dim, self, index, other);
    bool rows = split.n && (op == GET || (split.self[0] == 1 && split.other[0] <= 1));
    bool columns = d->is_cpu ? rows : split.n > 0;
    int kept = split.n > (columns ? 1 : 0) ? split.n - (columns ? 1 : 0) : 1;
    int64_t piece = d->is_cpu ? piece_of(d, op, &split) : 1;
    bool ordered = wants_order(d, op, &split, index, dim, check), one = ordered && is_one_line(index, dim);
    tp_autoref *order = ordered ? writing_order(index, dim, one) : NULL;
    if (ordered && !order) return -1;
    tp_dtype dtype = tp_moved_dtype((tp_dtype)self->dtype);
    if (dtype == TP_INT8 && (op == GET || op == SET)) dtype = TP_UINT8; /* the same bytes, without a sign to extend */
    const variant v = {.dtype = (uint8_t)dtype,
                       .op = (uint8_t)op,
                       .ndim = (uint8_t)kept,
                       .checked = fault != TP_TRUSTED,
                       .single = !columns || piece == 1,
                       .ordered = ordered,
                       .by_lines = ordered && !one,
                       .piece = (uint16_t)piece};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "places", &v));
    int64_t items = pass_geometry(&c, &split, columns, piece, op, dim, self, index, other, check);
    tp_cl_pass_tensor(&c, self->numel ? self : other);
    tp_cl_pass_tensor(&c, index);
    tp_cl_pass_tensor(&c, other);
    if (ordered) {
        tp_cl_pass_tensor(&c, order);
        items *= index->sizes[dim];
    }
    size_t group = d->is_cpu ? (items < 64 ? 1 : 16) : 64;
    if (fault == TP_TRUSTED) return tp_cl_run(&c, items, group);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, items, group);
}

int take_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, int64_t fault, bool wrap, tp_tensor *out) {
    return run(GET, self, dim, index, out, fault, wrap);
}
int put_set_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return run(SET, self, dim, index, src, fault, wrap);
}
int put_add_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return run(ADD, self, dim, index, src, fault, wrap);
}
int put_mul_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return run(MUL, self, dim, index, src, fault, wrap);
}
int put_min_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return run(MIN, self, dim, index, src, fault, wrap);
}
int put_max_opencl(tp_tensor *self, int64_t dim, tp_tensor *index, tp_tensor *src, int64_t fault, bool wrap) {
    return run(MAX, self, dim, index, src, fault, wrap);
}
