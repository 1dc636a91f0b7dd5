/* scan.c: scans along a dimension; the kernels are in scan.cl.
 *
 * Lines of neighbouring elements are walked by a work-item each on a CPU device and by a work-group on a GPU, EACH
 * elements to a work-item; lines that lie side by side by a work-item for a few of them, or one. Where that keeps the
 * device idle, lines are cut into parts. Sums and products run in double where the device has it, as on the CPU. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/program.h"

#define GROUP 128
#define EACH 8
#define COLUMNS 32
#define MANY_COLUMNS 256 /* where there are enough of them: longer runs of memory */
#define LONG_PART 65536
#define LEAST_PART 4096
#define ACCUMULATOR 16 /* bytes, at most */

enum { CUMSUM, CUMPROD, CUMMAX, CUMMIN, LOGCUMSUMEXP };
static const char *const names[] = {"CUMSUM", "CUMPROD", "CUMMAX", "CUMMIN", "LOGCUMSUMEXP"};

typedef struct {
    int64_t outer, n, inner, part, parts, blocks;
    int group, columns;
} cut;

static cut cut_of(const tp_cl_device *d, const tp_tensor *in, int64_t dim) {
    cut c = {.outer = 1, .n = in->ndim ? in->sizes[dim] : 1, .inner = 1, .group = 1, .columns = 1};
    for (int64_t i = 0; i < in->ndim; i++) *(i < dim ? &c.outer : &c.inner) *= i == dim ? 1 : in->sizes[i];
    if (d->is_cpu && c.inner > 1) c.columns = c.inner < COLUMNS ? 4 : COLUMNS;
    if (d->is_cpu && c.outer * (c.inner / MANY_COLUMNS) >= 2 * (int64_t)d->compute_units) c.columns = MANY_COLUMNS;
    if (!d->is_cpu && c.inner == 1 && c.n >= GROUP) c.group = GROUP;
    c.blocks = c.outer * tp_divide_up(c.inner, c.columns);
    int64_t busy = (int64_t)d->compute_units * (d->is_cpu ? 2 : c.group > 1 ? 8 : 1024);
    int64_t wanted = c.blocks >= busy ? 1 : tp_divide_up(busy, c.blocks);
    int64_t least = c.group > 1 || c.columns == 1 ? LEAST_PART : LEAST_PART / 16;
    if (d->is_cpu && c.blocks >= d->compute_units) wanted = 1;
    c.part = tp_divide_up(c.n, wanted);
    if (c.part < least) c.part = least;
    c.parts = tp_divide_up(c.n, c.part);
    return c;
}

typedef struct {
    uint8_t dtype, op;
    uint16_t group, columns;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    bool is_complex = tp_is_complex_dtype(dtype), places = v->op == CUMMAX || v->op == CUMMIN;
    bool wide = d->has_fp64 && !places && (dtype == TP_FLOAT32 || dtype == TP_COMPLEX64);
    tp_dtype acc = !wide ? dtype : is_complex ? TP_COMPLEX128 : TP_FLOAT64;
    if (places && tp_itemsize(dtype) == 1) acc = TP_INT32; /* Mesa's llvmpipe mixes up structs that begin with a byte */
    tp_cl_define(s, "X", dtype, dtype);
    tp_text_add(s,
                "#define T %s\n#define A %s\n#define OP_%s\n#define GROUP %d\n#define EACH %d\n"
                "#define COLUMNS %d\n",
                tp_cl_type(dtype), tp_cl_type(acc), names[v->op], v->group, EACH, v->columns);
    if (is_complex)
        tp_text_add(s,
                    "#define COMPLEX %s\n#define TO_A(v) convert_%s2(v)\n#define TO_T(v) convert_%s2(v)\n"
                    "#define ONE (A)(1, 0)\n#define MUL(x, y) tp_mul_%s(x, y)\n",
                    tp_dtype_suffix(acc), acc == TP_COMPLEX128 ? "double" : "float",
                    dtype == TP_COMPLEX128 ? "double" : "float", tp_dtype_suffix(acc));
    else
        tp_text_add(s, "#define TO_A(v) ((A)(v))\n#define TO_T(v) ((T)(v))\n#define ONE (A)(1)\n"
                       "#define MUL(x, y) ((x) * (y))\n");
}

static const tp_cl_family family = {"scan.cl", define, .size = TP_CL_SIZE(variant)};

static void pass_cut(tp_cl_call *call, const cut *c) {
    tp_cl_pass_long(call, c->outer);
    tp_cl_pass_long(call, c->n);
    tp_cl_pass_long(call, c->inner);
    tp_cl_pass_long(call, c->part);
    tp_cl_pass_long(call, c->parts);
}

static int run(int op, tp_tensor *in, int64_t dim, tp_tensor *out, tp_tensor *at) {
    tp_tensor *const tensors[] = {in, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d) return -1;
    tp_dtype dtype = (tp_dtype)in->dtype;
    cut c = cut_of(d, in, dim);
    const variant v = {(uint8_t)dtype, (uint8_t)op, (uint16_t)c.group, (uint16_t)c.columns};
    tp_autoref *partial =
        c.parts > 1 ? tp_new_empty(TP_INTS(c.blocks * c.columns * c.parts * ACCUMULATOR), TP_UINT8, in->device) : NULL;
    if (c.parts > 1 && !partial) return -1;
    int64_t units = c.blocks * c.parts;
    size_t group = c.group > 1 ? (size_t)c.group : d->is_cpu ? (units < 256 ? 1 : 16) : 64;
    if (partial) {
        tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "fold_parts", &v));
        tp_cl_pass_tensor(&call, in);
        tp_cl_pass_tensor(&call, partial);
        pass_cut(&call, &c);
        if (tp_cl_run(&call, units * c.group, group) < 0) return -1;
        call = tp_cl_begin(d, tp_cl_plan(d, &family, "join_parts", &v));
        tp_cl_pass_tensor(&call, partial);
        tp_cl_pass_long(&call, c.blocks * c.columns);
        tp_cl_pass_long(&call, c.parts);
        int64_t lines = c.blocks * c.columns;
        size_t joining = c.group > 1 ? (size_t)c.group : d->is_cpu ? 16 : 64;
        if (tp_cl_run(&call, lines * c.group, joining) < 0) return -1;
    }
    tp_cl_call call = tp_cl_begin(d, tp_cl_plan(d, &family, "scan", &v));
    tp_cl_pass_tensor(&call, in);
    tp_cl_pass_tensor(&call, out);
    tp_cl_pass_tensor(&call, at ? at : out);
    tp_cl_pass_tensor(&call, partial ? partial : out);
    pass_cut(&call, &c);
    return tp_cl_run(&call, units * c.group, group);
}

int scan_sum_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(CUMSUM, x, dim, out, NULL); }
int scan_prod_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(CUMPROD, x, dim, out, NULL); }
int scan_logsumexp_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(LOGCUMSUMEXP, x, dim, out, NULL); }
int scan_max_opencl(tp_tensor *x, int64_t dim, tp_tensor *out, tp_tensor *at) { return run(CUMMAX, x, dim, out, at); }
int scan_min_opencl(tp_tensor *x, int64_t dim, tp_tensor *out, tp_tensor *at) { return run(CUMMIN, x, dim, out, at); }
