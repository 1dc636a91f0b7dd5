/* random.c: random draws, and samples of given weights; the kernels are in random.cl. */
#include "PrimitiveKernels.h"
#include "prim/draw.h"
#include "opencl/kernels/element.h"
#include "opencl/runtime/launch.h"

static const struct {
    const char *name;
    int words;
} kinds[TP_NUM_DRAWS] = {{"UNIFORM_FLOAT", 1}, {"UNIFORM_DOUBLE", 2},    {"NORMAL_FLOAT", 1},
                         {"NORMAL_DOUBLE", 2}, {"EXPONENTIAL_FLOAT", 1}, {"EXPONENTIAL_DOUBLE", 2},
                         {"INTEGERS", 2},      {"BERNOULLI", 1},         {"CAUCHY", 2},
                         {"GEOMETRIC", 2}};

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

/* How many Philox blocks a work-item makes. */
static int blocks_on(const tp_cl_device *d) { return d->is_cpu ? 32 : 1; }

typedef struct {
    uint8_t kind, dtype, made;
} variant;

static void define(tp_text *s, const tp_cl_device *d, const void *given) {
    const variant *v = given;
    tp_dtype made = (tp_dtype)v->made;
    tp_cl_define(s, "OUT", (tp_dtype)v->dtype, made);
    tp_text_add(s, "#define DRAW_%s\n#define WORDS %d\n#define MADE %s\n#define BLOCKS %d\n", kinds[v->kind].name,
                kinds[v->kind].words, tp_cl_type(made), blocks_on(d));
}

static const tp_cl_family family = {"random.cl", define, .size = TP_CL_SIZE(variant)};

static int run(tp_draw_kind kind, tp_dtype made, tp_draw draw, int64_t seed, int64_t offset, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&out, 1);
    if (!d) return -1;
    if (made == TP_FLOAT64 && !d->has_fp64) made = TP_FLOAT32;
    const variant v = {(uint8_t)kind, (uint8_t)out->dtype, (uint8_t)made};
    tp_cl_call c = tp_cl_begin(d, tp_cl_plan(d, &family, "random", &v));
    draw.state = (tp_philox_state){(uint64_t)seed, (uint64_t)offset};
    draw.bits = out->dtype == TP_FLOAT16 ? 11 : out->dtype == TP_BFLOAT16 ? 8 : 24;
    pass_draw(&c, kind, &draw);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, out->numel);
    int64_t each = 4 / kinds[kind].words * blocks_on(d);
    return tp_cl_run(&c, (out->numel + each - 1) / each, d->is_cpu ? 16 : 0);
}

/* `single` is the kind for float; the next one serves double. */
static int run_real(tp_draw_kind single, double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    bool wide = out->dtype == TP_FLOAT64;
    return run((tp_draw_kind)(single + wide), wide ? TP_FLOAT64 : TP_FLOAT32, (tp_draw){.a = a, .b = b}, seed, offset,
               out);
}
int draw_uniform_opencl(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_UNIFORM_FLOAT, a, b, seed, offset, out);
}
int draw_normal_opencl(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_NORMAL_FLOAT, a, b, seed, offset, out);
}
int draw_exponential_opencl(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run_real(TP_DRAW_EXPONENTIAL_FLOAT, a, b, seed, offset, out);
}
int draw_cauchy_opencl(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(TP_DRAW_CAUCHY, TP_FLOAT64, (tp_draw){.a = a, .b = b}, seed, offset, out);
}
int draw_geometric_opencl(double a, double b, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(TP_DRAW_GEOMETRIC, TP_FLOAT64, (tp_draw){.a = a, .b = b}, seed, offset, out);
}
int draw_bernoulli_opencl(double a, double b TP_UNUSED, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(TP_DRAW_BERNOULLI, TP_BOOL, (tp_draw){.a = a}, seed, offset, out);
}
int draw_integers_opencl(int64_t base, int64_t range, int64_t seed, int64_t offset, tp_tensor *out) {
    return run(TP_DRAW_INTEGERS, TP_INT64, (tp_draw){.base = base, .range = (uint64_t)range}, seed, offset, out);
}

/* ---- multinomial ---- */

typedef struct {
    tp_cl_device *d;
    const tp_tensor *weights;
    tp_tensor *sums, *last; /* owned: running sums of each row, and its last weight that is not 0 */
    tp_dtype real;
    int64_t rows, n, wanted;
    tp_philox_state state;
} sampling;

static void free_sampling(sampling *s) {
    tp_release(s->sums);
    tp_release(s->last);
}

static void define_samples(tp_text *s, const tp_cl_device *d, const void *given) {
    tp_dtype dtype = (tp_dtype) * (const uint8_t *)given;
    tp_cl_define(s, "W", dtype, tp_compute_dtype(dtype));
    tp_text_add(s, "#define SAMPLES\n");
}

static const tp_cl_family samples = {"random.cl", define_samples, .size = TP_CL_SIZE(uint8_t)};

static tp_cl_call begin_samples(const sampling *s, const char *kernel) {
    tp_cl_call c = tp_cl_begin(s->d, tp_cl_plan(s->d, &samples, kernel, &s->weights->dtype));
    pass_draw(&c, TP_DRAW_INTEGERS, &(tp_draw){.state = s->state});
    return c;
}

static int sum_weights(const sampling *s) {
    tp_cl_call c = begin_samples(s, "sum_weights");
    tp_cl_pass_tensor(&c, s->weights);
    tp_cl_pass_tensor(&c, s->sums);
    tp_cl_pass_tensor(&c, s->last);
    tp_cl_pass_long(&c, s->rows);
    tp_cl_pass_long(&c, s->n);
    return tp_cl_run(&c, s->rows, 16);
}

static int sample_with(const sampling *s, tp_tensor *out) {
    tp_cl_call c = begin_samples(s, "sample");
    tp_cl_pass_tensor(&c, s->sums);
    tp_cl_pass_tensor(&c, s->last);
    tp_cl_pass_tensor(&c, out);
    tp_cl_pass_long(&c, s->rows);
    tp_cl_pass_long(&c, s->n);
    tp_cl_pass_long(&c, s->wanted);
    return tp_cl_run(&c, s->rows * s->wanted, 0);
}

/* The first arrivals; the sums are looked at no more, so their memory takes the times. */
static int sample_without(const sampling *s, tp_tensor *out) {
    tp_cl_call c = begin_samples(s, "arrivals");
    tp_cl_pass_tensor(&c, s->weights);
    tp_cl_pass_tensor(&c, s->sums);
    tp_cl_pass_long(&c, s->rows * s->n);
    if (tp_cl_run(&c, s->rows * s->n, 0) < 0) return -1;
    return topk_opencl(s->sums, s->wanted, false, out);
}

int multinomial_opencl(tp_tensor *weights, bool replacement, int64_t seed, int64_t offset, tp_tensor *out) {
    tp_cl_device *d = tp_cl_device_of(&weights, 1);
    if (!d) return -1;
    TP_CLEANUP(free_sampling)
    sampling s = {.d = d,
                  .weights = weights,
                  .real = d->has_fp64 ? TP_FLOAT64 : TP_FLOAT32,
                  .rows = weights->sizes[0],
                  .n = weights->sizes[1],
                  .wanted = out->sizes[out->ndim - 1],
                  .state = {(uint64_t)seed, (uint64_t)offset}};
    s.sums = tp_new_empty(tp_sizes(weights), s.real, weights->device);
    s.last = s.sums ? tp_new_empty(TP_INTS(s.rows), TP_INT64, weights->device) : NULL;
    if (!s.last || sum_weights(&s) < 0) return -1;
    return replacement ? sample_with(&s, out) : sample_without(&s, out);
}
