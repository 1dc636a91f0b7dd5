/* softmax.c: softmax, log_softmax and their gradients; the kernel is softmax.cl. On a GPU a work-group shares a row. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

#define GROUP 128
#define VECTOR_BYTES 64

static int softmax(tp_cl_device *d, const tp_tensor *in, const tp_tensor *other, int64_t dim, tp_tensor *out,
                   bool log) {
    tp_autotext s = {0};
    tp_dtype compute = tp_compute_dtype((tp_dtype)in->dtype);
    int64_t n = in->ndim ? in->sizes[dim] : 1, inner = 1;
    for (int64_t i = dim + 1; i < in->ndim; i++) inner *= in->sizes[i];
    int group = d->is_cpu || n < GROUP / 2 ? 1 : GROUP;
    tp_cl_define(&s, "IN", (tp_dtype)in->dtype, compute);
    tp_cl_define(&s, "OTHER", (tp_dtype)(other ? other : in)->dtype, compute);
    tp_cl_define(&s, "OUT", (tp_dtype)out->dtype, compute);
    tp_text_add(&s, "#define T %s\n#define GROUP %d\n%s%s", tp_cl_type(compute), group, log ? "#define LOG\n" : "",
                other ? "#define BACKWARD\n" : "");
    if (compute == TP_FLOAT32) tp_text_add(&s, "#define T_SINGLE\n");
    int64_t rows = in->numel / n, units = rows, width = VECTOR_BYTES / tp_itemsize(compute);
    if (d->is_cpu) {
        tp_cl_define_vectors(&s, "IN", (tp_dtype)in->dtype, (int)width);
        tp_cl_define_vectors(&s, "OTHER", (tp_dtype)(other ? other : in)->dtype, (int)width);
        tp_cl_define_vectors(&s, "OUT", (tp_dtype)out->dtype, (int)width);
        tp_text_add(&s, "#define W %d\n#define VECTOR(name) name##%d\n%s%s", (int)width, (int)width,
                    inner == 1 ? "#define ALONG\n" : "", (tp_dtype)out->dtype == compute ? "#define OUT_WIDE\n" : "");
        if (inner > 1) units = rows / inner * ((inner + width - 1) / width);
    }
    tp_cl_call c = tp_cl_begin(d, tp_cl_file_kernel(d, "softmax.cl", "softmax", s.text));
    tp_cl_pass_tensor(&c, in);
    tp_cl_pass_tensor(&c, other ? other : in);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, rows);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, inner);
    return tp_cl_run(&c, units * group, (size_t)(group > 1 ? group : d->is_cpu ? (units < 64 ? 1 : 4) : 16));
}

static tp_tensor *contiguous(tp_tensor *t) {
    if (!t || tp_is_contiguous(t)) return tp_retain(t);
    tp_autoref *made = tp_new_empty(tp_sizes(t), (tp_dtype)t->dtype, t->device);
    return made && tp_copy_data(made, t) == 0 ? tp_take(made) : NULL;
}

int tp_cl_softmax(tp_tensor *in, tp_tensor *output, int64_t dim, tp_tensor *out, bool log) {
    tp_tensor *const tensors[] = {in, output, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 3);
    if (!d || out->numel == 0) return d ? 0 : -1;
    tp_autoref *a = contiguous(in), *b = contiguous(output);
    tp_autoref *to =
        tp_is_contiguous(out) ? tp_retain(out) : tp_new_empty(tp_sizes(out), (tp_dtype)out->dtype, out->device);
    if (!a || (output && !b) || !to || softmax(d, a, b, dim, to, log) < 0) return -1;
    return to == out ? 0 : tp_copy_data(out, to);
}
