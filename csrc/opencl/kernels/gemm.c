/* gemm.c: matrix products; the kernels are in gemm.cl.
 *
 * Which kernel: CLBlast's where it is asked for (clblast.h); of the own ones, on a CPU device floats of some size go
 * through a copy of b in panels, on a GPU through tiles in local memory, or where rows or columns are few, through dot
 * products of several work-items; what is small, and integers and complex numbers, is one work-item for each element.
 */
#include "PrimitiveKernels.h"
#include "core/scalar.h"
#include "opencl/runtime/clblast.h"
#include "opencl/kernels/element.h"
#include "opencl/kernels/tile.h"
#include "opencl/runtime/launch.h"
#include "prim/program.h"

#define DOTS 256
#define LEAST_PART 128 /* of the summed dimension */
#define PANEL 16
#define ROWS 6
#define FEW 8 /* below so many rows a copy of b does not pay, nor do tiles */

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
    tp_cl_tile tile;
} product;

typedef struct {
    uint8_t dtype, down, across; /* 0: no tiles */
    uint8_t rest;
} variant;

static void strides_of(const tp_tensor *t, int64_t *s) {
    s[0] = t->ndim == 3 && t->sizes[0] > 1 ? t->strides[0] : 0;
    s[1] = t->strides[t->ndim - 2];
    s[2] = t->strides[t->ndim - 1];
}

static bool is_floating(tp_dtype compute) { return compute == TP_FLOAT32 || compute == TP_FLOAT64; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype, compute = tp_compute_dtype(dtype);
    const char *type = tp_cl_type(compute);
    bool wide = compute == TP_FLOAT64;
    for (int i = 0; i < 3; i++) tp_cl_define(s, (const char *const[]){"A", "B", "C"}[i], dtype, compute);
    tp_text_add(s, "#define T %s\n#define T_ARGUMENT %s\n", type, compute == TP_BOOL ? "int" : type);
    if (compute == TP_BOOL) tp_text_add(s, "#define T_BOOL\n");
    if (tp_is_complex_dtype(compute))
        tp_text_add(s, "#define T_COMPLEX\n#define MUL(x, y) tp_mul_%s(x, y)\n", tp_dtype_suffix(compute));
    if (!is_floating(compute)) return;
    tp_text_add(s, "#define T_FLOATING\n");
    if (!d->is_cpu) tp_text_add(s, "#define DOTS %d\n#define T4 %s4\n", DOTS, wide ? "double" : "float");
    if (v->down) tp_text_add(s, "#define DOWN %d\n#define ACROSS %d\n", v->down, v->across);
    if (d->is_cpu)
        tp_text_add(
            s,
            "#define PANEL %d\n#define ROWS %d\n#define VECTOR %s%d\n#define VLOAD vload%d\n#define VSTORE vstore%d\n",
            wide ? PANEL / 2 : PANEL, ROWS, wide ? "double" : "float", wide ? PANEL / 2 : PANEL,
            wide ? PANEL / 2 : PANEL, wide ? PANEL / 2 : PANEL);
}

static const tp_cl_family family = {"gemm.cl", define, .size = TP_CL_SIZE(variant)};

static tp_cl_call begin(const product *p, const char *kernel) {
    const variant v = {.dtype = p->out->dtype, .down = (uint8_t)p->tile.down, .across = (uint8_t)p->tile.across};
    tp_cl_call call = tp_cl_begin(p->device, tp_cl_plan(p->device, &family, kernel, &v));
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

/* Among how many groups the sums of a tile are dealt out, so that all compute units have some. */
static int64_t parts_of(const product *p) {
    int64_t tiles = tp_cl_tiles(p->tile, p->g.m, p->g.n) * p->batches, units = p->device->compute_units;
    int64_t parts = tiles < units ? 2 * units / tiles : 1, most = p->g.k / LEAST_PART;
    return parts > most ? most > 1 ? most : 1 : parts;
}

static int run_tiled(product *p) {
    const geometry *g = &p->g;
    p->tile = tp_cl_tile_of(p->device, p->compute, g->m, g->n, p->batches);
    int64_t part = tp_divide_up(tp_divide_up(g->k, parts_of(p)), TP_CL_DEPTH) * TP_CL_DEPTH;
    int64_t parts = g->k > part ? tp_divide_up(g->k, part) : 1;
    tp_autoref *partial =
        parts > 1 ? tp_new_empty(TP_INTS(p->batches * parts * g->m * g->n), p->compute, p->out->device) : NULL;
    if (parts > 1 && !partial) return -1;
    tp_cl_call call = begin(p, "tiled");
    tp_cl_pass_tensor(&call, p->a);
    tp_cl_pass_tensor(&call, p->b);
    pass_rest(&call, p);
    tp_cl_pass_tensor(&call, partial ? partial : p->out);
    tp_cl_pass_long(&call, part);
    tp_cl_pass_long(&call, parts);
    const size_t groups[] = {(size_t)tp_divide_up(g->n, p->tile.across), (size_t)tp_divide_up(g->m, p->tile.down),
                             (size_t)(p->batches * parts)};
    if (tp_cl_run_groups(&call, groups, (const size_t[]){16, 16, 1}, 3) < 0) return -1;
    if (!partial) return 0;
    call = begin(p, "join");
    tp_cl_pass_tensor(&call, partial);
    pass_rest(&call, p);
    tp_cl_pass_long(&call, p->batches);
    tp_cl_pass_long(&call, parts);
    return tp_cl_run(&call, p->batches * g->m * g->n, 64);
}

/* Few rows or few columns: the other factor is read once, along the dimension that lies closest in memory. */
static int run_dots(const product *p) {
    const geometry *g = &p->g;
    int64_t elements = p->batches * g->m * g->n;
    bool by_rows = g->n < g->m, across = by_rows ? g->a[2] != 1 : g->b[1] != 1;
    int lanes = across ? DOTS / 32 : elements < 8 * (int64_t)p->device->compute_units ? DOTS : 32;
    tp_cl_call call = begin(p, "dots");
    tp_cl_pass_tensor(&call, p->a);
    tp_cl_pass_tensor(&call, p->b);
    pass_rest(&call, p);
    tp_cl_pass_long(&call, p->batches);
    tp_cl_pass_int(&call, lanes);
    tp_cl_pass_int(&call, across);
    tp_cl_pass_int(&call, by_rows);
    return tp_cl_run(&call, tp_divide_up(elements, DOTS / lanes) * DOTS, DOTS);
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
    bool floating = is_floating(p.compute), few = p.g.m < FEW || p.g.n < FEW;
    if (!p.device->is_cpu && floating && few) return run_dots(&p);
    int by_clblast = tp_cl_clblast(p.device, a, b, out, alpha, beta);
    if (by_clblast) return by_clblast < 0 ? -1 : 0;
    if (!floating || p.g.m < FEW) return run_simple(&p);
    return p.device->is_cpu ? run_panels(&p) : run_tiled(&p);
}
