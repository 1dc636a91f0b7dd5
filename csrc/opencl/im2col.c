/* im2col.c: columns added up as the windows of images; the kernel is im2col.cl. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

static void define(tp_text *s, const tp_cl_device *d, const void *dtype) {
    tp_text_add(s, "#define T %s\n", tp_cl_type((tp_dtype) * (const uint8_t *)dtype));
}

static const tp_cl_family family = {"im2col.cl", define, .size = TP_CL_SIZE(uint8_t)};

int tp_cl_col2im(const tp_fold *f, const tp_tensor *columns, tp_tensor *images) {
    tp_tensor *const tensors[] = {images};
    tp_cl_device *d = tp_cl_device_of(tensors, 1);
    if (!d || images->numel == 0) return d ? 0 : -1;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "col2im", &images->dtype));
    tp_cl_pass(&c, sizeof *f, f);
    tp_cl_pass_tensor(&c, columns);
    tp_cl_pass_tensor(&c, images);
    return tp_cl_run(&c, images->numel, 64);
}
