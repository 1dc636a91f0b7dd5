/* search.c: searchsorted; the kernel is search.cl. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

#define LANES 16

typedef struct {
    uint8_t dtype;
    bool right;
} variant;

static int lanes_of(const tp_cl_device *d) { return d->is_cpu ? LANES : 1; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    tp_cl_define(s, "X", dtype, dtype);
    tp_text_add(s, "#define LANES %d\n%s%s", lanes_of(d), tp_is_floating_dtype(dtype) ? "#define FLOATING\n" : "",
                v->right ? "#define RIGHT\n" : "");
}

static const tp_cl_family family = {"search.cl", define, .size = TP_CL_SIZE(variant)};

static int run(tp_tensor *sequence, tp_tensor *values, bool right, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&values, 1);
    if (!d) return -1;
    const variant v = {values->dtype, right};
    int lanes = lanes_of(d);
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "search", &v));
    tp_cl_pass_tensor(&c, sequence);
    tp_cl_pass_tensor(&c, values);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, values->numel);
    tp_cl_pass_long(&c, sequence->sizes[sequence->ndim - 1]);
    tp_cl_pass_long(&c, sequence->ndim == 1 ? 0 : values->sizes[values->ndim - 1]);
    return tp_cl_run(&c, (values->numel + lanes - 1) / lanes, d->is_cpu ? 16 : 0);
}
int search_left_opencl(tp_tensor *sequence, tp_tensor *values, tp_tensor *out) {
    return run(sequence, values, false, out);
}
int search_right_opencl(tp_tensor *sequence, tp_tensor *values, tp_tensor *out) {
    return run(sequence, values, true, out);
}
