/* sparse.c: products of sparse matrices with dense ones; the kernels are in sparse.cl.
 *
 * By coordinates, what each value adds to its row is put there in the order of the values. */
#include "Functions.h"
#include "PrimitiveKernels.h"
#include "core/scalar.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"

static void define(tp_text *s, const tp_cl_device *d, const void *dtype) {
    tp_dtype own = *(const uint8_t *)dtype;
    tp_text_add(s, "#define T %s\n#define WHOLE %d\n", tp_cl_type(own), d->is_cpu);
    if (own == TP_COMPLEX64 || own == TP_COMPLEX128) tp_text_add(s, "#define COMPLEX\n");
}

static const tp_cl_family family = {"sparse.cl", define, .size = TP_CL_SIZE(uint8_t)};

#define BAD_BEGINS TP_FAULT(TP_RuntimeError, "a sparse matrix", "its lines do not go from 0 to the number of values")

static tp_cl_call begin(const char *kernel, tp_tensor *any) {
    tp_cl_device *d = tp_cl_device_of(&any, 1);
    return tp_cl_begin(d, d ? tp_cl_plan(d, &family, kernel, &any->dtype) : NULL);
}

static void pass_values(tp_cl_call *c, const tp_tensor *values, const tp_tensor *dense) {
    tp_cl_pass_tensor(c, values ? values : dense);
    tp_cl_pass_int(c, values != NULL);
    tp_cl_pass_tensor(c, dense);
}

static int run(tp_cl_call *c, int64_t rows, int64_t width) {
    bool whole = c->device && c->device->is_cpu;
    return tp_cl_run_checked(c, whole ? rows : rows * width, whole ? 4 : 64);
}

static void pass_by_rows(tp_cl_call *c, tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense,
                         tp_tensor *out) {
    tp_cl_pass_tensor(c, begins);
    tp_cl_pass_tensor(c, columns);
    pass_values(c, values, dense);
    tp_cl_pass_tensor(c, out);
    tp_cl_pass_long(c, out->sizes[0]);
    tp_cl_pass_long(c, columns->numel);
    tp_cl_pass_long(c, dense->sizes[0]);
    tp_cl_pass_long(c, dense->sizes[1]);
}

/* sparse.rows(Tensor begins, Tensor columns, Tensor? values, Tensor dense, int fault, *, Tensor(a!) out) -> () */
int sparse_rows_opencl(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, int64_t fault,
                       tp_tensor *out) {
    tp_cl_call c = begin("rows", dense);
    pass_by_rows(&c, begins, columns, values, dense, out);
    tp_cl_pass_int(&c, BAD_BEGINS + 1);
    tp_cl_pass_fault(&c, (int)fault);
    return run(&c, out->sizes[0], dense->sizes[1]);
}

/* sparse.extremes(Tensor begins, Tensor columns, Tensor? values, Tensor dense, bool largest, int fault, *, Tensor(a!)
 * at) -> () */
int sparse_extremes_opencl(tp_tensor *begins, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, bool largest,
                           int64_t fault, tp_tensor *at) {
    tp_cl_call c = begin("extremes", dense);
    pass_by_rows(&c, begins, columns, values, dense, at);
    tp_cl_pass_int(&c, largest ? 1 : -1);
    tp_cl_pass_int(&c, BAD_BEGINS + 1);
    tp_cl_pass_fault(&c, (int)fault);
    return run(&c, at->sizes[0], dense->sizes[1]);
}

/* sparse.places(Tensor rows, Tensor columns, Tensor? values, Tensor dense, int fault, *, Tensor(a!) out) -> () */
int sparse_places_opencl(tp_tensor *rows, tp_tensor *columns, tp_tensor *values, tp_tensor *dense, int64_t fault,
                         tp_tensor *out) {
    const int64_t n = columns->numel, width = dense->sizes[1];
    tp_autoref *shares = tp_new_empty(TP_INTS(n, width), (tp_dtype)dense->dtype, dense->device);
    tp_autoref *places = shares ? tp_new_alias(rows, TP_INTS(n, width), TP_INTS(1, 0), rows->byte_offset) : NULL;
    if (!places) return -1;
    tp_cl_call c = begin("shares", dense);
    tp_cl_pass_tensor(&c, columns);
    pass_values(&c, values, dense);
    tp_cl_pass_tensor(&c, shares);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, dense->sizes[0]);
    tp_cl_pass_long(&c, width);
    tp_cl_pass_fault(&c, (int)fault);
    return run(&c, n, width) < 0 ? -1 : put_add_opencl(out, 0, places, shares, fault, false);
}

/* sparse.dots(Tensor rows, Tensor columns, Tensor a, Tensor b, int fault, *, Tensor(a!) out) -> () */
int sparse_dots_opencl(tp_tensor *rows, tp_tensor *columns, tp_tensor *a, tp_tensor *b, int64_t fault, tp_tensor *out) {
    tp_cl_call c = begin("dots", a);
    tp_cl_pass_tensor(&c, rows);
    tp_cl_pass_tensor(&c, columns);
    tp_cl_pass_tensor(&c, a);
    tp_cl_pass_tensor(&c, b);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, rows->numel);
    tp_cl_pass_long(&c, a->sizes[0]);
    tp_cl_pass_long(&c, b->sizes[0]);
    tp_cl_pass_long(&c, a->sizes[1]);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, rows->numel, 16);
}

static int look(tp_tensor *keys, int64_t bound, int64_t fault) {
    tp_cl_call c = begin("look", keys);
    tp_cl_pass_tensor(&c, keys);
    tp_cl_pass_long(&c, keys->numel);
    tp_cl_pass_long(&c, bound);
    tp_cl_pass_fault(&c, (int)fault);
    return tp_cl_run_checked(&c, keys->numel, 0);
}

/* sparse.merge(Tensor keys, int bound, int fault) -> (Tensor once, Tensor begins, Tensor order): the groups of equal
 * keys, and the places in the order of their groups. */
tp_tensor3 sparse_merge_opencl(tp_tensor *keys, int64_t bound, int64_t fault) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    tp_tensor3 found = look(keys, bound, fault) < 0 ? failed : distinct_opencl(keys, true);
    tp_autoref *firsts = found.v[0], *counts = found.v[1], *group = found.v[2];
    tp_autoref *once = firsts ? tp_index_select(keys, 0, firsts) : NULL,
               *ends = once ? tp_cumsum(counts, 0, TP_NO_DTYPE) : NULL,
               *zero = ends ? tp_zeros(TP_INTS(1), TP_INT64, TP_STRIDED, keys->device, -1) : NULL,
               *begins = zero ? tp_cat((tp_tensors){(tp_tensor *[]){zero, ends}, 2}, 0) : NULL,
               *order = begins ? tp_argsort_stable(group, true, 0, false) : NULL;
    return order ? (tp_tensor3){{tp_take(once), tp_take(begins), tp_take(order)}} : failed;
}
