/* range.c: sequences and triangles; the kernels are in range.cl. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

static void pass_real(tp_cl_call *c, double x) {
    if (c->device->has_fp64) tp_cl_pass(c, sizeof x, &x);
    else tp_cl_pass_float(c, (float)x);
}

typedef struct {
    uint8_t dtype;
    bool whole; /* computed in int64 */
} variant;

static void define_range(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype real = d->has_fp64 ? TP_FLOAT64 : TP_FLOAT32;
    tp_cl_define(s, "OUT", (tp_dtype)v->dtype, v->whole ? TP_INT64 : real);
    tp_text_add(s, v->whole ? "#define WHOLE\n" : "#define REAL %s\n", tp_cl_type(real));
}

static const tp_cl_family ranges = {"range.cl", define_range, .size = TP_CL_SIZE(variant)};

static tp_cl_call begin_range(tp_cl_device *d, const tp_tensor *out, bool whole) {
    const variant v = {out->dtype, whole};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &ranges, "range", &v));
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, out->numel);
    return c;
}

int range_int_opencl(int64_t first, int64_t step, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    tp_cl_call c = begin_range(d, out, true);
    tp_cl_pass_long(&c, first);
    tp_cl_pass_long(&c, step);
    return tp_cl_run(&c, out->numel, 0);
}

int range_float_opencl(double a, double b, double last, double base, int64_t half, bool single, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    tp_cl_call c = begin_range(d, out, false);
    pass_real(&c, a);
    pass_real(&c, b);
    pass_real(&c, last);
    pass_real(&c, base);
    tp_cl_pass_long(&c, half);
    tp_cl_pass_int(&c, single);
    return tp_cl_run(&c, out->numel, 0);
}

static void define_triangle(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    tp_cl_define(s, "OUT", dtype, tp_compute_dtype(dtype));
    tp_text_add(s, "#define WHOLE\n");
}

static const tp_cl_family triangles = {"range.cl", define_triangle, .size = TP_CL_SIZE(variant)};

static int triangle(tp_tensor *self, int64_t diagonal, bool lower, tp_tensor *out) {
    tp_tensor *const tensors[] = {self, out};
    tp_cl_device *d = tp_cl_device_of(tensors, 2);
    if (!d) return -1;
    const variant v = {(uint8_t)tp_moved_dtype((tp_dtype)self->dtype), true};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &triangles, "triangle", &v));
    tp_cl_pass_tensor(&c, self);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, out->numel);
    tp_cl_pass_long(&c, out->sizes[out->ndim - 2]);
    tp_cl_pass_long(&c, out->sizes[out->ndim - 1]);
    tp_cl_pass_long(&c, diagonal);
    tp_cl_pass_int(&c, lower);
    return tp_cl_run(&c, out->numel, 0);
}

static int triangle_indices(int64_t rows, int64_t columns, int64_t diagonal, bool lower, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    const variant v = {TP_INT64, true};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &triangles, "triangle_indices", &v));
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, out->sizes[1]);
    tp_cl_pass_long(&c, rows);
    tp_cl_pass_long(&c, columns);
    tp_cl_pass_long(&c, diagonal);
    tp_cl_pass_int(&c, lower);
    return tp_cl_run(&c, out->sizes[1], 0);
}
int triangle_lower_opencl(tp_tensor *x, int64_t diagonal, tp_tensor *out) { return triangle(x, diagonal, true, out); }
int triangle_indices_lower_opencl(int64_t rows, int64_t columns, int64_t diagonal, tp_tensor *out) {
    return triangle_indices(rows, columns, diagonal, true, out);
}
int triangle_upper_opencl(tp_tensor *x, int64_t diagonal, tp_tensor *out) { return triangle(x, diagonal, false, out); }
int triangle_indices_upper_opencl(int64_t rows, int64_t columns, int64_t diagonal, tp_tensor *out) {
    return triangle_indices(rows, columns, diagonal, false, out);
}
