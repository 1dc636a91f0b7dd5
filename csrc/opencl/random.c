/* random.c: random draws; the kernel is random.cl. */
#include "opencl/kernels.h"

#include "opencl/element.h"
#include "opencl/launch.h"

static const struct {
    const char *name;
    int words;
} kinds[TP_NUM_DRAWS] = {{"UNIFORM_FLOAT", 1},     {"UNIFORM_DOUBLE", 2},     {"NORMAL_FLOAT", 1}, {"NORMAL_DOUBLE", 2},
                         {"EXPONENTIAL_FLOAT", 1}, {"EXPONENTIAL_DOUBLE", 2}, {"INTEGERS", 2},     {"BERNOULLI", 1}};

/* The kernel's `draw`, with its reals in what the device has. */
typedef struct {
    uint64_t seed, offset, range;
    int64_t base;
    union {
        struct {
            double a, b;
            int32_t bits, unused;
        } wide;
        struct {
            float a, b;
            int32_t bits, unused;
        } narrow;
    };
} draw_argument;

static void pass_draw(tp_cl_call *c, tp_draw_kind kind, const tp_draw *d) {
    draw_argument x = {d->state.seed, d->state.offset, d->range, d->base, .wide = {d->a, d->b, d->bits, 0}};
    if (kind == TP_DRAW_BERNOULLI) x.range = (uint64_t)(d->a * 0x1p32);
    size_t size = sizeof x;
    if (!c->device->has_fp64) {
        x.narrow.a = (float)d->a;
        x.narrow.b = (float)d->b;
        x.narrow.bits = d->bits;
        size -= sizeof x.wide - sizeof x.narrow;
    }
    tp_cl_pass(c, size, &x);
}

int tp_cl_draw(tp_tensor *into, tp_draw_kind kind, const tp_draw *draw, tp_dtype made, tp_dtype dtype, int64_t n) {
    tp_cl_device *d = tp_cl_device_of(&into, 1);
    if (!d) return -1;
    tp_autotext s = {0};
    tp_cl_define(&s, "OUT", dtype, made);
    tp_text_add(&s, "#define DRAW_%s\n#define WORDS %d\n#define MADE %s\n", kinds[kind].name, kinds[kind].words,
                tp_cl_type(made));
    tp_cl_call c = tp_cl_begin(d, tp_cl_file_kernel(d, "random.cl", "random", s.text));
    pass_draw(&c, kind, draw);
    /* A complex tensor is written as its parts. */
    tp_cl_place p = tp_cl_place_of(into, tp_data(into));
    p.offset /= tp_itemsize(dtype);
    tp_cl_pass_place(&c, p);
    tp_cl_pass_long(&c, n);
    int64_t each = 4 / kinds[kind].words;
    return tp_cl_run(&c, (n + each - 1) / each, 0);
}
