/* opencl.c: scale on OpenCL, in a kernel of its own. */
#include "tensorpy/library.h"

TENSORPY_HANDLE(tp_tensor *, contiguous, "aten::contiguous", (tp_tensor *, self), (tp_memory_format, format))

static const char source[] =
    "kernel void scale(global const float *x, long x_at, global float *out, long out_at, float by, long n) {\n"
    "    long i = get_global_id(0);\n"
    "    if (i < n) out[out_at + i] = by * x[x_at + i];\n"
    "}\n";

TENSORPY_KERNEL(tp_tensor *, scale_opencl, (tp_tensor *, self), (double, by)) {
    tp_view v = tp_view_of(self);
    if (v.dtype != TP_FLOAT32) return tp_fail_null(TP_TypeError, "scale takes float32, not %s", tp_dtype_name(v.dtype));
    tp_tensor *from = contiguous(self, TP_CONTIGUOUS_FORMAT);
    tp_tensor *out = from ? tp_new_empty_like(from, TP_FLOAT32) : NULL;
    tp_value args[] = {tensorpy_give_tensor(from), tensorpy_give_tensor(out), tensorpy_give_float(by),
                       tensorpy_give_int(v.numel)};
    tp_ints items = {&v.numel, 1}, group = {NULL, -1};
    if (out && tp_opencl_run("scale", source, self, items, group, args, 4) < 0) {
        tp_release(out);
        out = NULL;
    }
    tp_release(from);
    return out;
}

TENSORPY_LIBRARY_IMPL(myops, OpenCL, m) { return tp_impl(m, "scale", scale_opencl); }
