/* scan.c: scans along a dimension; the kernel is scan.cl. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

static const char *name_of(tp_scan_fn fn, tp_dtype d) {
    const struct {
        const tp_scan_fn *table;
        const char *name;
    } known[] = {{tp_cpu.scan->cumsum, "CUMSUM"},
                 {tp_cpu.scan->cumprod, "CUMPROD"},
                 {tp_cpu.scan->cummax, "CUMMAX"},
                 {tp_cpu.scan->cummin, "CUMMIN"},
                 {tp_cpu.scan->logcumsumexp, "LOGCUMSUMEXP"}};
    for (int64_t i = 0; i < TP_COUNTOF(known); i++)
        if (known[i].table[d] == fn) return known[i].name;
    return NULL;
}

int tp_cl_scan(tp_scan_fn fn, const tp_tensor *in, int64_t dim, tp_tensor *out, tp_tensor *at) {
    tp_tensor *const tensors[] = {(tp_tensor *)in, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d) return -1;
    tp_dtype dtype = (tp_dtype)in->dtype;
    const char *name = fn ? name_of(fn, dtype) : NULL;
    if (!name) return tp_fail(TP_NotImplementedError, "OpenCL: a scan of %s without a kernel", tp_dtype_names[dtype]);
    int64_t n = in->ndim ? in->sizes[dim] : 1, inner = 1;
    for (int64_t i = dim + 1; i < in->ndim; i++) inner *= in->sizes[i];
    tp_autotext s = {0};
    tp_cl_define(&s, "X", dtype, dtype);
    /* Logarithms of sums run in double, as on the CPU. */
    bool wide = fn == tp_cpu.scan->logcumsumexp[dtype] && d->has_fp64 && dtype == TP_FLOAT32;
    tp_text_add(&s, "#define T %s\n#define OP_%s\n", wide ? "double" : tp_cl_type(dtype), name);
    if (tp_is_complex_dtype(dtype)) tp_text_add(&s, "#define COMPLEX %s\n", tp_cl_suffix(dtype));
    if (tp_is_complex_dtype(dtype)) tp_text_add(&s, "#define MUL(x, y) tp_mul_%s(x, y)\n", tp_cl_suffix(dtype));
    else tp_text_add(&s, "#define MUL(x, y) ((x) * (y))\n");
    tp_cl_call c = tp_cl_begin(d, tp_cl_file_kernel(d, "scan.cl", "scan", s.text));
    tp_cl_pass_tensor(&c, in);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, at ? at : out);
    tp_cl_pass_long(&c, in->numel / n);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, inner);
    return tp_cl_run(&c, in->numel / n, 16);
}
