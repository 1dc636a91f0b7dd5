/* im2col.c: columns added up as the windows of images; the kernel is im2col.cl. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

/* As the kernel takes it, whole: windows of images of `planes` planes of `in` pixels. */
typedef struct {
    int64_t planes, in[2], out[2], kernel[2], dilation[2], padding[2], stride[2];
} geometry;

static void define(tp_text *s, const tp_cl_device *d, const void *dtype) {
    tp_text_add(s, "#define T %s\n", tp_cl_type((tp_dtype) * (const uint8_t *)dtype));
}

static const tp_cl_family family = {"im2col.cl", define, .size = TP_CL_SIZE(uint8_t)};

int fold_opencl(tp_tensor *columns, tp_ints kernel, tp_ints dilation, tp_ints padding, tp_ints stride, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    geometry g = {.planes = out->sizes[0] * out->sizes[1]};
    if (!d) return -1;
    for (int i = 0; i < 2; i++) {
        g.in[i] = out->sizes[2 + i], g.kernel[i] = kernel.data[i];
        g.dilation[i] = dilation.data[i], g.padding[i] = padding.data[i], g.stride[i] = stride.data[i];
        g.out[i] = (g.in[i] + 2 * g.padding[i] - g.dilation[i] * (g.kernel[i] - 1) - 1) / g.stride[i] + 1;
    }
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "col2im", &out->dtype));
    tp_cl_pass(&c, sizeof g, &g);
    tp_cl_pass_tensor(&c, columns);
    tp_cl_pass_tensor(&c, out);
    return tp_cl_run(&c, out->numel, 64);
}
