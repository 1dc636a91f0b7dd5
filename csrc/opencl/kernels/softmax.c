/* softmax.c: softmax, log_softmax and their gradients; the kernel is softmax.cl. On a GPU a work-group shares a row. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

#define GROUP 128
#define VECTOR_BYTES 64

typedef struct {
    uint8_t in, other, out;    /* dtypes */
    bool log, backward, along; /* along: a row lies contiguous */
    uint8_t group;
} variant;

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
    tp_text_add(s, "#define T %s\n#define GROUP %d\n%s%s%s", tp_cl_type(compute), v->group,
                v->log ? "#define LOG\n" : "", v->backward ? "#define BACKWARD\n" : "",
                compute == TP_FLOAT32 ? "#define T_SINGLE\n" : "");
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
    int group = d->is_cpu || n < GROUP / 2 ? 1 : GROUP;
    const variant v = {(uint8_t)in->dtype,  (uint8_t)(other ? other : in)->dtype,
                       (uint8_t)out->dtype, log,
                       other != NULL,       d->is_cpu && inner == 1,
                       (uint8_t)group};
    int64_t rows = in->numel / n, units = rows, width = width_of((tp_dtype)in->dtype);
    if (d->is_cpu && inner > 1) units = rows / inner * ((inner + width - 1) / width);
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "softmax", &v));
    tp_cl_pass_tensor(&c, in);
    tp_cl_pass_tensor(&c, other ? other : in);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, rows);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, inner);
    return tp_cl_run(&c, units * group, (size_t)(group > 1 ? group : d->is_cpu ? (units < 64 ? 1 : 4) : 16));
}

int softmax_forward_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, false, out); }
int softmax_log_opencl(tp_tensor *x, int64_t dim, tp_tensor *out) { return run(x, NULL, dim, true, out); }
int softmax_backward_opencl(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, false, out);
}
int softmax_log_backward_opencl(tp_tensor *grad, tp_tensor *output, int64_t dim, tp_tensor *out) {
    return run(grad, output, dim, true, out);
}
