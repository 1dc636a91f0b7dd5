/* recurrent.c: one step of recurrent cells; the kernels are in recurrent.cl. */
#include "PrimitiveKernels.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

#define GROUP 64

static void define(tp_text *s, const tp_cl_device *d TP_UNUSED, const void *dtype) {
    tp_dtype t = (tp_dtype) * (const uint8_t *)dtype;
    tp_text_add(s, "#define T %s\n%s", tp_cl_type(t), t == TP_FLOAT32 ? "#define T_SINGLE\n" : "");
}

static const tp_cl_family family = {"recurrent.cl", define, .size = TP_CL_SIZE(uint8_t)};

/* Tensors by their place; of one that is absent that of `any`, which the kernel does not touch. */
static int run(const char *kernel, const tp_tensor *state, tp_tensor *const *tensors, int count, const bool *given,
               int optional) {
    tp_tensor *any = (tp_tensor *)state;
    tp_cl_device *d = tp_cl_device_of(&any, 1);
    if (!d) return -1;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, kernel, &state->dtype));
    for (int i = 0; i < count; i++) tp_cl_pass_tensor(&c, tensors[i] ? tensors[i] : state);
    for (int i = 0; i < optional; i++) tp_cl_pass_int(&c, given[i]);
    tp_cl_pass_long(&c, state->sizes[0]);
    tp_cl_pass_long(&c, state->sizes[1]);
    return tp_cl_run(&c, state->numel, GROUP);
}

int recurrent_lstm_opencl(tp_tensor *input, tp_tensor *hidden, tp_tensor *cell, tp_tensor *out, tp_tensor *saved) {
    tp_tensor *const all[] = {input, hidden, cell, out, saved};
    return run("lstm", cell, all, 5, (const bool[]){saved != NULL}, 1);
}
int recurrent_lstm_backward_opencl(tp_tensor *grad, tp_tensor *saved, tp_tensor *grad_cell, tp_tensor *out) {
    tp_tensor *const all[] = {grad, saved, grad_cell, out};
    return run("lstm_backward", grad_cell, all, 4, NULL, 0);
}
int recurrent_gru_opencl(tp_tensor *input, tp_tensor *hidden, tp_tensor *bias, tp_tensor *state, tp_tensor *saved) {
    tp_tensor *const all[] = {input, hidden, bias, state, saved};
    return run("gru", state, all, 5, (const bool[]){bias != NULL, saved != NULL}, 2);
}
int recurrent_gru_backward_opencl(tp_tensor *saved, tp_tensor *before, tp_tensor *grad, tp_tensor *to_input,
                                  tp_tensor *to_hidden) {
    tp_tensor *const all[] = {saved, before, grad, to_input, to_hidden};
    return run("gru_backward", grad, all, 5, NULL, 0);
}
