/* softmax.c: softmax, log_softmax and their gradients; the kernel is softmax.cl. On a GPU a work-group has one row or
 * several, which its work-items share.
 */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

#define GROUP 256
#define ACROSS 32 /* neighbouring rows that a group of a GPU has where elements of a row lie apart */
#define VECTOR_BYTES 64

typedef struct {
    uint8_t in, other, out;    /* dtypes */
    bool log, backward, along; /* along: a row lies contiguous */
    uint16_t group, rows;      /* of a GPU: work-items that share a row, and rows in a group */
    bool across;               /* neighbours have neighbouring rows, not neighbouring elements */
    uint8_t rest[1];
} variant;

/* How a GPU's work-groups share rows of n elements that lie `inner` apart. */
static void share_rows(variant *v, const tp_cl_device *d, int64_t rows, int64_t n, int64_t inner) {
    int64_t most = (int64_t)d->max_group, whole = most < GROUP ? most : GROUP;
    v->across = inner >= ACROSS / 4;
    int64_t neighbours = v->across ? ACROSS : 1, each = v->across ? 16 : 8; /* elements of a row for a work-item */
    if (rows < 8 * (int64_t)d->compute_units) whole = most;                 /* few rows: more work-items for each */
    int64_t group = 1;
    while (group * 2 * each <= n && group * 2 * neighbours <= whole) group *= 2;
    v->group = (uint16_t)group;
    v->rows = (uint16_t)(v->across || group >= GROUP ? neighbours : GROUP / group);
    while (v->rows * group > whole) v->rows /= 2;
}

static int64_t width_of(tp_dtype dtype) { return VECTOR_BYTES / tp_itemsize(tp_compute_dtype(dtype)); }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    const struct {
        const char *name;
        tp_dtype dtype;
    } operands[] = {{"IN", (tp_dtype)v->in}, {"OTHER", (tp_dtype)v->other}, {"OUT", (tp_dtype)v->out}};
    tp_dtype compute = tp_compute_dtype((tp_dtype)v->in);
    int width = (int)width_of((tp_dtype)v->in);
    for (int i = 0; i < 3; i++) {
        tp_cl_define(s, operands[i].name, operands[i].dtype, compute);
        if (d->is_cpu) tp_cl_define_vectors(s, operands[i].name, operands[i].dtype, width);
    }
    if (!d->is_cpu)
        tp_text_add(s, "#define GROUP %d\n#define ROWS %d\n%s", v->group, v->rows, v->across ? "#define ACROSS\n" : "");
    tp_text_add(s, "#define T %s\n%s%s%s", tp_cl_type(compute), v->log ? "#define LOG\n" : "",
                v->backward ? "#define BACKWARD\n" : "", compute == TP_FLOAT32 ? "#define T_SINGLE\n" : "");
    if (d->is_cpu)
        tp_text_add(s, "#define W %d\n#define VECTOR(name) name##%d\n%s%s", width, width,
                    v->along ? "#define ALONG\n" : "", v->out == compute ? "#define OUT_WIDE\n" : "");
}

static const tp_cl_family family = {"softmax.cl", define, .size = TP_CL_SIZE(variant)};

static int run(tp_tensor *in, tp_tensor *other, int64_t dim, bool log, tp_tensor *out) {
    tp_tensor *const tensors[] = {in, other, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 3);
    if (!d) return -1;
    int64_t n = in->ndim ? in->sizes[dim] : 1, inner = 1;
    for (int64_t i = dim + 1; i < in->ndim; i++) inner *= in->sizes[i];
    variant v = {.in = (uint8_t)in->dtype,
                 .other = (uint8_t)(other ? other : in)->dtype,
                 .out = (uint8_t)out->dtype,
                 .log = log,
                 .backward = other != NULL,
                 .along = d->is_cpu && inner == 1};
    int64_t rows = in->numel / n, units = rows, width = width_of((tp_dtype)in->dtype);
    if (!d->is_cpu) share_rows(&v, d, rows, n, inner);
    if (d->is_cpu && inner > 1) units = rows / inner * ((inner + width - 1) / width);
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "softmax", &v));
    tp_cl_pass_tensor(&c, in);
    tp_cl_pass_tensor(&c, other ? other : in);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, rows);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, inner);
    if (d->is_cpu) return tp_cl_run(&c, units, units < 64 ? 1 : 4);
    return tp_cl_run(&c, rows * v.group, (size_t)(v.group * v.rows));
}

int softmax_forward_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, false, out); }
int softmax_log_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, true, out); }
int softmax_backward_opencl(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, false, out);
}
int softmax_log_backward_opencl(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, true, out);
}
