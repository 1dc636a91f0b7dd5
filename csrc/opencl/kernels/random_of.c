/* random_of.c: draws with a parameter for each element; the kernels are in random_of.cl. */
#include "PrimitiveKernels.h"
#include "opencl/runtime/launch.h"
#include "prim/fault.h"

enum { GAMMA, POISSON, BINOMIAL, SLOPE };

static void define(tp_text *s, const tp_cl_device *d TP_UNUSED, const void *kind) {
    static const char *const draws[] = {"gamma", "poisson", "binomial"};
    const uint8_t k = *(const uint8_t *)kind;
    if (k != SLOPE) tp_text_add(s, "#define DRAW %s_draw\n", draws[k]);
}

static const tp_cl_family family = {"random_of.cl", define, .size = TP_CL_SIZE(uint8_t)};

static int run(uint8_t kind, tp_tensor *a, tp_tensor *b, int64_t seed, int64_t offset, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "draws", &kind));
    tp_cl_pass_tensor(&c, a);
    tp_cl_pass_tensor(&c, b);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, out->numel);
    tp_cl_pass_long(&c, seed);
    tp_cl_pass_long(&c, offset);
    tp_cl_pass_int(&c, kind == POISSON);
    tp_cl_pass_fault(&c,
                     TP_FAULT(TP_RuntimeError, "poisson", "invalid Poisson rate, expected rate to be non-negative"));
    return tp_cl_run_checked(&c, out->numel, 0);
}

int draw_gamma_opencl(tp_tensor *alpha, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(GAMMA, alpha, alpha, seed, offset, out);
}
int draw_poisson_opencl(tp_tensor *rate, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(POISSON, rate, rate, seed, offset, out);
}
int draw_binomial_opencl(tp_tensor *count, tp_tensor *chance, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(BINOMIAL, count, chance, seed, offset, out);
}

int beta_slope_opencl(tp_tensor *x, tp_tensor *alpha, tp_tensor *total, tp_tensor *out) {
    tp_tensor *const all[] = {x, alpha, total, out};
    const uint8_t kind = SLOPE;
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "slopes", &kind));
    for (int i = 0; i < 4; i++) tp_cl_pass_tensor(&c, all[i]);
    tp_cl_pass_long(&c, out->numel);
    return tp_cl_run(&c, out->numel, 0);
}
