/* gemm.c: matrix products; the kernels are in gemm.cl.
 *
 * Which kernel: CLBlast's where it is installed (clblast.h); of the own ones, on a CPU device floats of some size go
 * through a copy of b in panels, on a GPU through tiles in local memory; what is small, and integers and complex
 * numbers, is one work-item for each element. */
#include "PrimitiveKernels.h"
#include "core/scalar.h"
#include "opencl/runtime/clblast.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"
#include "prim/program.h"

#define TILE 64
#define PANEL 16
#define ROWS 6
#define FEW 8 /* below so many rows a copy of b does not pay */

typedef struct {
    int64_t m, n, k, a[3], b[3], c[3];
} geometry;

typedef struct {
    tp_cl_device *device;
    const tp_tensor *a, *b;
    tp_tensor *out;
    const tp_scalar *alpha, *beta;
    tp_dtype compute;
    geometry g;
    int64_t batches;
} product;

static void strides_of(const tp_tensor *t, int64_t *s) {
    s[0] = t->ndim == 3 && t->sizes[0] > 1 ? t->strides[0] : 0;
    s[1] = t->strides[t->ndim - 2];
    s[2] = t->strides[t->ndim - 1];
}

static bool is_floating(tp_dtype compute) { return compute == TP_FLOAT32 || compute == TP_FLOAT64; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    tp_dtype dtype = (tp_dtype) * (const uint8_t *)given, compute = tp_compute_dtype(dtype);
    const char *type = tp_cl_type(compute);
    bool wide = compute == TP_FLOAT64;
    for (int i = 0; i < 3; i++) tp_cl_define(s, (const char *const[]){"A", "B", "C"}[i], dtype, compute);
    tp_text_add(s, "#define T %s\n#define T_ARGUMENT %s\n", type, compute == TP_BOOL ? "int" : type);
    if (compute == TP_BOOL) tp_text_add(s, "#define T_BOOL\n");
    if (tp_is_complex_dtype(compute))
        tp_text_add(s, "#define T_COMPLEX\n#define MUL(x, y) tp_mul_%s(x, y)\n", tp_dtype_suffix(compute));
    if (!is_floating(compute)) return;
    tp_text_add(s, "#define T_FLOATING\n");
    if (!d->is_cpu) tp_text_add(s, "#define TILE %d\n", TILE);
    else
        tp_text_add(
            s,
            "#define PANEL %d\n#define ROWS %d\n#define VECTOR %s%d\n#define VLOAD vload%d\n#define VSTORE vstore%d\n",
            wide ? PANEL / 2 : PANEL, ROWS, wide ? "double" : "float", wide ? PANEL / 2 : PANEL,
            wide ? PANEL / 2 : PANEL, wide ? PANEL / 2 : PANEL);
}

static const tp_cl_family family = {"gemm.cl", define, .size = TP_CL_SIZE(uint8_t)};

static tp_cl_call begin(const product *p, const char *kernel) {
    tp_cl_call call = tp_cl_begin(p->device, tp_cl_plan(p->device, &family, kernel, &p->out->dtype));
    tp_cl_pass(&call, sizeof p->g, &p->g);
    return call;
}

static void pass_rest(tp_cl_call *call, const product *p) {
    tp_cl_pass_tensor(call, p->out);
    tp_cl_pass_number(call, p->alpha, p->compute);
    tp_cl_pass_number(call, p->beta, p->compute);
    tp_cl_pass_int(call, !tp_scalar_equals_int(p->beta, 0));
}

static int run_simple(const product *p) {
    tp_cl_call call = begin(p, "simple");
    tp_cl_pass_tensor(&call, p->a);
    tp_cl_pass_tensor(&call, p->b);
    pass_rest(&call, p);
    tp_cl_pass_long(&call, p->batches);
    return tp_cl_run(&call, p->batches * p->g.m * p->g.n, 64);
}

static int run_tiled(const product *p) {
    tp_cl_call call = begin(p, "tiled");
    tp_cl_pass_tensor(&call, p->a);
    tp_cl_pass_tensor(&call, p->b);
    pass_rest(&call, p);
    const size_t groups[] = {(size_t)(p->g.n + TILE - 1) / TILE, (size_t)(p->g.m + TILE - 1) / TILE,
                             (size_t)p->batches};
    return tp_cl_run_groups(&call, groups, (const size_t[]){16, 16, 1}, 3);
}

static int run_panels(const product *p) {
    int64_t width = p->compute == TP_FLOAT64 ? PANEL / 2 : PANEL, panels = (p->g.n + width - 1) / width;
    int64_t copies = p->g.b[0] ? p->batches : 1;
    tp_autoref *packed = tp_new_empty(TP_INTS(copies * panels * p->g.k * width), p->compute, p->out->device);
    if (!packed) return -1;
    tp_cl_call call = begin(p, "pack");
    tp_cl_pass_tensor(&call, p->b);
    tp_cl_pass_tensor(&call, packed);
    tp_cl_pass_long(&call, copies);
    if (tp_cl_run(&call, copies * panels * p->g.k, 64) < 0) return -1;
    call = begin(p, "panels");
    tp_cl_pass_tensor(&call, p->a);
    tp_cl_pass_tensor(&call, packed);
    pass_rest(&call, p);
    tp_cl_pass_long(&call, p->batches);
    return tp_cl_run(&call, p->batches * panels * ((p->g.m + ROWS - 1) / ROWS), 16);
}

int product_opencl(tp_tensor *a, tp_tensor *b, const tp_scalar *alpha, const tp_scalar *beta, tp_tensor *out) {
    tp_tensor *const tensors[] = {out};
    product p = {.device = tp_cl_device_of(tensors, 1), .a = a, .b = b, .out = out, .alpha = alpha, .beta = beta};
    if (!p.device) return -1;
    p.compute = tp_compute_dtype((tp_dtype)out->dtype);
    p.g.m = out->sizes[out->ndim - 2];
    p.g.n = out->sizes[out->ndim - 1];
    p.g.k = a->sizes[a->ndim - 1];
    p.batches = out->ndim == 3 ? out->sizes[0] : 1;
    strides_of(a, p.g.a);
    strides_of(b, p.g.b);
    strides_of(out, p.g.c);
    int by_clblast = tp_cl_clblast(p.device, a, b, out, alpha, beta);
    if (by_clblast) return by_clblast < 0 ? -1 : 0;
    if (!is_floating(p.compute) || p.g.m < FEW) return run_simple(&p);
    return p.device->is_cpu ? run_panels(&p) : run_tiled(&p);
}
