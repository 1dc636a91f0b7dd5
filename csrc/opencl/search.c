/* search.c: searchsorted; the kernel is search.cl. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

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

int tp_cl_search(const tp_tensor *sequence, int64_t n, const tp_tensor *values, int64_t each, bool right,
                 tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of((tp_tensor *const[]){(tp_tensor *)values}, 1);
    if (!d || values->numel == 0) return d ? 0 : -1;
    const variant v = {values->dtype, right};
    int lanes = lanes_of(d);
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "search", &v));
    tp_cl_pass_tensor(&c, sequence->numel ? sequence : values);
    tp_cl_pass_tensor(&c, values);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, values->numel);
    tp_cl_pass_long(&c, n);
    tp_cl_pass_long(&c, each);
    return tp_cl_run(&c, (values->numel + lanes - 1) / lanes, d->is_cpu ? 16 : 0);
}
