/* convolution.c: the products of convolutions; the kernels are in convolution.cl.
 *
 * Which kernel: floats on a CPU device go through a copy with a border of zeros and the weight in panels of channels,
 * on a GPU through tiles in local memory; other dtypes, and groups of one channel, are one work-item for each element.
 *
 * Invariant: how sums are cut into parts depends on shapes only, so results are the same in every run. */
#include "PrimitiveKernels.h"

#include "opencl/kernels/element.h"
#include "opencl/kernels/tile.h"
#include "opencl/runtime/launch.h"
#include "prim/convolution.h"
#include "prim/program.h"

#include <string.h>

#define PANEL_BYTES 64
#define ROWS 6                           /* as in convolution.cl */
#define LONGEST_SUM 16384                /* pixels in one part of a weight gradient, */
#define MOST_PARTIAL ((int64_t)16 << 20) /* as long as the parts have no more elements than this */
#define WORDS (sizeof(geometry) / sizeof(int64_t))

typedef struct {
    int64_t batch, groups, inputs, outputs;
    int64_t read[3], made[3], kernel[3];
    int64_t step[3], shift[3], turn[3], part[3];
    int64_t weight_group, weight_input, weight_output;
    int64_t low[3], padded[3];
    int64_t parts;
} geometry;

/* The ways to compute a product. */
enum { BY_ELEMENT, BY_PANELS, BY_ROWS, BY_TILES, WEIGHT };
static const char *const ways[] = {"BY_ELEMENT",        "BY_PANELS",        "BY_ROWS",        "BY_TILES",
                                   "WEIGHT_BY_ELEMENT", "WEIGHT_BY_PANELS", "WEIGHT_BY_ROWS", "WEIGHT_BY_TILES"};

typedef struct {
    tp_cl_device *device;
    int way;
    tp_dtype dtype;
    geometry g;
    int64_t panel, window, pixels, area, padded_area;
    tp_cl_tile tile;
    bool small; /* positions fit 32 bits */
} product;

static int panel_of(tp_dtype dtype) { return PANEL_BYTES / (int)tp_itemsize(dtype); }
static int64_t volume(const int64_t v[3]) { return v[0] * v[1] * v[2]; }

/* ---- geometry ---- */

static void set_sides(geometry *g, const tp_conv_plan *p, bool data) {
    g->batch = p->batch, g->groups = p->groups, g->parts = 1;
    g->inputs = data ? p->out_channels : p->in_channels, g->outputs = data ? p->in_channels : p->out_channels;
    for (int d = 0; d < 3; d++) {
        g->read[d] = data ? p->out[d] : p->in[d], g->made[d] = data ? p->in[d] : p->out[d];
        g->kernel[d] = p->kernel[d];
        g->step[d] = data ? 1 : p->stride[d], g->part[d] = data ? p->stride[d] : 1;
        g->shift[d] = data ? p->padding[d] : -p->padding[d];
        g->turn[d] = data ? -p->dilation[d] : p->dilation[d];
    }
    int64_t window = volume(g->kernel);
    g->weight_group = p->out_channels * p->in_channels * window;
    g->weight_input = data ? p->in_channels * window : window;
    g->weight_output = data ? window : p->in_channels * window;
}

/* Windows of one pixel that are moved by one: all pixels are a row. */
static void merge_pixels(geometry *g) {
    for (int d = 0; d < 3; d++)
        if (g->kernel[d] != 1 || g->step[d] != 1 || g->part[d] != 1 || g->shift[d] || g->read[d] != g->made[d]) return;
    g->read[2] = g->made[2] = volume(g->made);
    g->read[0] = g->read[1] = g->made[0] = g->made[1] = 1;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* The border that windows reach into; returns the largest position on the way. */
static int64_t set_border(geometry *g) {
    int64_t most = 0;
    for (int d = 0; d < 3; d++) {
        int64_t reach = g->turn[d] * (g->kernel[d] - 1), last = g->step[d] * (g->made[d] - 1) + g->shift[d];
        int64_t low = g->shift[d] + (reach < 0 ? reach : 0), high = last + (reach > 0 ? reach : 0);
        int64_t first = floor_div(low, g->part[d]), end = floor_div(high, g->part[d]) + 1;
        g->low[d] = first < 0 ? -first : 0;
        g->padded[d] = g->low[d] + (end > g->read[d] ? end : g->read[d]);
        if (-low > most) most = -low;
        if (high > most) most = high;
    }
    return most;
}

static product make_product(tp_cl_device *d, const tp_conv_plan *plan, bool data) {
    product p = {.device = d, .dtype = plan->dtype};
    geometry *g = &p.g;
    set_sides(g, plan, data);
    merge_pixels(g);
    int64_t most = set_border(g);
    p.panel = panel_of(p.dtype);
    p.window = volume(g->kernel), p.pixels = volume(g->made), p.area = volume(g->read);
    p.padded_area = volume(g->padded);
    const int64_t all = g->batch * g->groups, wide = g->outputs + p.panel;
    const double sizes[] = {(double)most, (double)(all * wide) * (double)p.pixels,
                            (double)(all * g->inputs) * (double)p.padded_area,
                            (double)g->groups * (double)wide * (double)g->inputs * (double)p.window};
    p.small = true;
    for (int i = 0; i < TP_COUNTOF(sizes); i++) p.small = p.small && sizes[i] < (double)(INT32_MAX / 2);
    return p;
}

/* ---- launching ---- */

typedef struct {
    uint8_t dtype, way, down, across;
    bool small;
    uint8_t rest[3];
} variant;

static bool is_floating(tp_dtype dtype) { return dtype == TP_FLOAT32 || dtype == TP_FLOAT64; }

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype dtype = (tp_dtype)v->dtype;
    int panel = panel_of(dtype);
    tp_text_add(s, "#define %s\n#define T %s\n#define index %s\n%s", ways[v->way], tp_cl_type(dtype),
                v->small ? "int" : "long", v->way & WEIGHT ? "#define PARTS\n" : "");
    if (tp_is_complex_dtype(dtype))
        tp_text_add(s, "#define MUL_ADD(x, y, z) ((z) + tp_mul_%s(x, y))\n", tp_dtype_suffix(dtype));
    else if (is_floating(dtype)) tp_text_add(s, "#define MUL_ADD(x, y, z) fma(x, y, z)\n");
    else tp_text_add(s, "#define MUL_ADD(x, y, z) ((z) + (x) * (y))\n");
    int way = v->way & ~WEIGHT;
    if (way == BY_PANELS || way == BY_ROWS)
        tp_text_add(s, "#define PANEL %d\n#define VECTOR %s%d\n#define VLOAD vload%d\n#define VSTORE vstore%d\n", panel,
                    dtype == TP_FLOAT64 ? "double" : "float", panel, panel, panel);
    else if (way == BY_TILES)
        tp_text_add(s, "#define DOWN %d\n#define ACROSS %d\n#define T4 %s4\n", v->down, v->across,
                    dtype == TP_FLOAT64 ? "double" : "float");
}

static const tp_cl_family family = {"convolution.cl", define, .size = TP_CL_SIZE(variant)};

/* A call of a kernel, with no arguments yet. */
static tp_cl_call begin_bare(const product *p, const char *kernel) {
    const variant v = {.dtype = (uint8_t)p->dtype,
                       .way = (uint8_t)p->way,
                       .down = (uint8_t)p->tile.down,
                       .across = (uint8_t)p->tile.across,
                       .small = p->small};
    return tp_cl_begin(p->device, tp_cl_plan(p->device, &family, kernel, &v));
}

static tp_cl_call begin(const product *p, const char *kernel) {
    tp_cl_call c = begin_bare(p, kernel);
    int64_t words[WORDS];
    int32_t narrow[WORDS];
    memcpy(words, &p->g, sizeof words);
    for (size_t i = 0; i < WORDS; i++) narrow[i] = (int32_t)words[i];
    if (p->small) tp_cl_pass(&c, sizeof narrow, narrow);
    else tp_cl_pass(&c, sizeof words, words);
    return c;
}

static tp_tensor *scratch(const product *p, int64_t n, const tp_tensor *like) {
    return tp_new_empty(TP_INTS(n), p->dtype, like->device);
}

static void pass_bias(tp_cl_call *c, const tp_tensor *bias, const tp_tensor *other) {
    tp_cl_pass_tensor(c, bias ? bias : other);
    tp_cl_pass_int(c, bias != NULL);
}

/* read itself, or a copy with the border; new. */
static tp_tensor *padded(const product *p, const tp_tensor *read) {
    const geometry *g = &p->g;
    if (p->padded_area == p->area) return tp_retain((tp_tensor *)read);
    int64_t planes = g->batch * g->groups * g->inputs;
    tp_autoref *made = scratch(p, planes * p->padded_area, read);
    if (!made) return NULL;
    tp_cl_call c = begin(p, "pad");
    tp_cl_pass_tensor(&c, read);
    tp_cl_pass_tensor(&c, made);
    return tp_cl_run(&c, planes * g->padded[0] * g->padded[1], 16) < 0 ? NULL : tp_take(made);
}

/* ---- the products ---- */

static int run_panels(const product *p, const tp_tensor *read, const tp_tensor *weight, const tp_tensor *bias,
                      tp_tensor *made) {
    const geometry *g = &p->g;
    int64_t panels = tp_divide_up(g->outputs, p->panel), lines = g->groups * panels * p->window * g->inputs;
    tp_autoref *from = padded(p, read), *packed = from ? scratch(p, lines * p->panel, read) : NULL;
    if (!packed) return -1;
    tp_cl_call c = begin(p, "pack");
    tp_cl_pass_tensor(&c, weight);
    tp_cl_pass_tensor(&c, packed);
    if (tp_cl_run(&c, lines, 16) < 0) return -1;
    c = begin(p, "windows");
    tp_cl_pass_tensor(&c, from);
    tp_cl_pass_tensor(&c, packed);
    pass_bias(&c, bias, made);
    tp_cl_pass_tensor(&c, made);
    return tp_cl_run(&c, g->groups * panels * g->batch * g->part[2] * g->made[0] * g->made[1], 1);
}

static int run_single(const product *p, const tp_tensor *read, const tp_tensor *weight, const tp_tensor *bias,
                      tp_tensor *made) {
    tp_autoref *from = padded(p, read);
    if (!from) return -1;
    tp_cl_call c = begin(p, "single");
    tp_cl_pass_tensor(&c, from);
    tp_cl_pass_tensor(&c, weight);
    pass_bias(&c, bias, made);
    tp_cl_pass_tensor(&c, made);
    return tp_cl_run(&c, made->numel / p->g.made[2], 16);
}

static int run_tiled(product *p, const tp_tensor *read, const tp_tensor *weight, const tp_tensor *bias,
                     tp_tensor *made) {
    const geometry *g = &p->g;
    p->tile = tp_cl_tile_of(p->device, p->dtype, g->outputs, g->batch * p->pixels, g->groups);
    tp_cl_call c = begin(p, "tiled");
    tp_cl_pass_tensor(&c, read);
    tp_cl_pass_tensor(&c, weight);
    pass_bias(&c, bias, made);
    tp_cl_pass_tensor(&c, made);
    const size_t groups[] = {(size_t)tp_divide_up(g->batch * p->pixels, p->tile.across),
                             (size_t)tp_divide_up(g->outputs, p->tile.down), (size_t)g->groups};
    return tp_cl_run_groups(&c, groups, (const size_t[]){16, 16, 1}, 3);
}

static int run_direct(const product *p, const tp_tensor *read, const tp_tensor *weight, const tp_tensor *bias,
                      tp_tensor *made) {
    tp_cl_call c = begin(p, "direct");
    tp_cl_pass_tensor(&c, read);
    tp_cl_pass_tensor(&c, weight);
    pass_bias(&c, bias, made);
    tp_cl_pass_tensor(&c, made);
    return tp_cl_run(&c, made->numel, 64);
}

/* In how many parts the `n` pixels of a weight gradient of `elements` are summed by `units` work-items or groups each;
 * `wanted` of them keep the device busy. */
static int64_t parts_of(int64_t units, int64_t wanted, int64_t n, int64_t lines, int64_t elements) {
    int64_t parts = tp_divide_up(wanted, units), least = tp_divide_up(n, LONGEST_SUM);
    if (parts < least) parts = least;
    if (parts > MOST_PARTIAL / (elements + 1)) parts = MOST_PARTIAL / (elements + 1);
    if (parts > lines) parts = lines;
    return parts < 1 ? 1 : parts;
}

static int join_parts(const product *p, const tp_tensor *partial, tp_tensor *made) {
    tp_cl_call c = begin_bare(p, "join");
    tp_cl_pass_tensor(&c, partial);
    tp_cl_pass_tensor(&c, made);
    tp_cl_pass_long(&c, made->numel);
    tp_cl_pass_long(&c, p->g.parts);
    return tp_cl_run(&c, made->numel, 64);
}

static int run_panels_weight(product *p, const tp_tensor *out, const tp_tensor *read, tp_tensor *made) {
    geometry *g = &p->g;
    int64_t panels = tp_divide_up(g->outputs, p->panel), lines = g->batch * g->made[0] * g->made[1];
    int64_t units = g->groups * panels * tp_divide_up(g->inputs * p->window, ROWS);
    g->parts = parts_of(units, 32, g->batch * p->pixels, lines, made->numel);
    tp_autoref *from = padded(p, read);
    tp_autoref *turned = from ? scratch(p, g->groups * panels * g->batch * p->pixels * p->panel, read) : NULL;
    tp_autoref *sums = turned && g->parts > 1 ? scratch(p, made->numel * g->parts, made) : tp_retain(made);
    if (!turned || !sums) return -1;
    tp_cl_call c = begin(p, "turn");
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, turned);
    if (tp_cl_run(&c, g->groups * panels * lines, 16) < 0) return -1;
    c = begin(p, "weights");
    tp_cl_pass_tensor(&c, turned);
    tp_cl_pass_tensor(&c, from);
    tp_cl_pass_tensor(&c, sums);
    if (tp_cl_run(&c, units * g->parts, 1) < 0) return -1;
    return g->parts > 1 ? join_parts(p, sums, made) : 0;
}

static int run_single_weight(product *p, const tp_tensor *out, const tp_tensor *read, tp_tensor *made) {
    geometry *g = &p->g;
    g->parts = parts_of(made->numel, 32, g->batch * p->pixels, g->batch * g->made[0] * g->made[1], made->numel);
    tp_autoref *from = padded(p, read);
    tp_autoref *sums = from && g->parts > 1 ? scratch(p, made->numel * g->parts, made) : tp_retain(made);
    if (!from || !sums) return -1;
    tp_cl_call c = begin(p, "single_weight");
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, from);
    tp_cl_pass_tensor(&c, sums);
    if (tp_cl_run(&c, made->numel * g->parts, 1) < 0) return -1;
    return g->parts > 1 ? join_parts(p, sums, made) : 0;
}

static int run_tiled_weight(product *p, const tp_tensor *out, const tp_tensor *read, tp_tensor *made) {
    geometry *g = &p->g;
    int64_t n = g->batch * p->pixels, wanted = 2 * (int64_t)p->device->compute_units;
    /* Parts keep the device busy, so that tiles may be large. */
    p->tile = tp_cl_tile_of(p->device, p->dtype, g->outputs, g->inputs * p->window, INT16_MAX);
    int64_t across = tp_divide_up(g->inputs * p->window, p->tile.across);
    int64_t down = tp_divide_up(g->outputs, p->tile.down);
    g->parts = parts_of(across * down * g->groups, wanted, n, tp_divide_up(n, 256), made->numel);
    tp_autoref *sums = g->parts > 1 ? scratch(p, made->numel * g->parts, made) : tp_retain(made);
    if (!sums) return -1;
    tp_cl_call c = begin(p, "tiled_weight");
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, read);
    tp_cl_pass_tensor(&c, sums);
    const size_t groups[] = {(size_t)across, (size_t)down, (size_t)(g->groups * g->parts)};
    if (tp_cl_run_groups(&c, groups, (const size_t[]){16, 16, 1}, 3) < 0) return -1;
    return g->parts > 1 ? join_parts(p, sums, made) : 0;
}

static int run_direct_weight(const product *p, const tp_tensor *out, const tp_tensor *read, tp_tensor *made) {
    tp_cl_call c = begin(p, "direct_weight");
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_tensor(&c, read);
    tp_cl_pass_tensor(&c, made);
    return tp_cl_run(&c, made->numel, 16);
}

/* Vectors pay where the border is no more than the rest, and tiles where there are channels to share them. */
static int choose_way(const product *p) {
    bool fits = (double)p->padded_area <= 8 * ((double)p->area + (double)p->pixels) + 4096;
    if (!is_floating(p->dtype) || !p->g.inputs || !fits) return BY_ELEMENT;
    if (p->device->is_cpu) return p->g.outputs > 1 ? BY_PANELS : BY_ROWS;
    return p->g.outputs > 1 ? BY_TILES : BY_ELEMENT;
}

static int run(bool adjoint, const tp_conv_plan *plan, tp_tensor *x, tp_tensor *weight, tp_tensor *bias,
               tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    product p = make_product(d, plan, adjoint);
    p.way = choose_way(&p);
    switch (p.way) {
    case BY_PANELS: return run_panels(&p, x, weight, bias, out);
    case BY_ROWS: return run_single(&p, x, weight, bias, out);
    case BY_TILES: return run_tiled(&p, x, weight, bias, out);
    default: return run_direct(&p, x, weight, bias, out);
    }
}

int convolution_forward_opencl(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                               tp_ints dilation, int64_t groups, tp_tensor *out) {
    tp_conv_plan plan = tp_conv_plan_of(x, weight, out, stride, padding, dilation, groups);
    return run(false, &plan, x, weight, bias, out);
}

int convolution_data_opencl(tp_tensor *x, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                            tp_ints dilation, int64_t groups, tp_tensor *out) {
    tp_conv_plan plan = tp_conv_plan_of(out, weight, x, stride, padding, dilation, groups);
    return run(true, &plan, x, weight, bias, out);
}

int convolution_weight_opencl(tp_tensor *grad, tp_tensor *x, tp_ints stride, tp_ints padding, tp_ints dilation,
                              int64_t groups, tp_tensor *out) {
    tp_conv_plan plan = tp_conv_plan_of(x, out, grad, stride, padding, dilation, groups);
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    product p = make_product(d, &plan, false);
    p.way = choose_way(&p) | WEIGHT;
    switch (p.way) {
    case WEIGHT | BY_PANELS: return run_panels_weight(&p, grad, x, out);
    case WEIGHT | BY_ROWS: return run_single_weight(&p, grad, x, out);
    case WEIGHT | BY_TILES: return run_tiled_weight(&p, grad, x, out);
    default: return run_direct_weight(&p, grad, x, out);
    }
}
