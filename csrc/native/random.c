/* random.c: operators that draw random numbers.
 *
 * A draw reserves one offset of its generator and numbers its elements in row-major order from 0, so the same seed
 * gives the same numbers for any layout of the result and any number of threads. The loops are in cpu/random.c;
 * everything else (rand, randn_like, normal of tensors, dropout, ...) is an in-place draw into a tensor made for it. */
#include "NativeFunctions.h"
#include "core/generator.h"
#include "core/host.h"
#include "core/parallel.h"
#include "cpu/kernels.h"
#include "native/device_kernels.h"

#include <math.h>

/* ---- the driver ---- */

static const tp_dtype made_dtypes[TP_NUM_DRAWS] = {TP_FLOAT32, TP_FLOAT64, TP_FLOAT32, TP_FLOAT64, TP_FLOAT32,
                                                   TP_FLOAT64, TP_INT64,   TP_BOOL,    TP_FLOAT64, TP_FLOAT64};

typedef struct {
    tp_draw draw;
    void (*make)(const tp_draw *d, int64_t first, void *out);
    tp_loop_fn cast; /* NULL: made in place */
    int64_t made_size, to_size, n;
    char *to;
} draw_run;

static void run_blocks(int64_t begin, int64_t end, void *context) {
    const draw_run *r = context;
    _Alignas(64) char made[TP_DRAW_BLOCK * 8];
    for (int64_t b = begin; b < end; b++) {
        int64_t first = b * TP_DRAW_BLOCK, count = r->n - first < TP_DRAW_BLOCK ? r->n - first : TP_DRAW_BLOCK;
        char *to = r->to + first * r->to_size;
        if (!r->cast && count == TP_DRAW_BLOCK) {
            r->make(&r->draw, first, to);
            continue;
        }
        r->make(&r->draw, first, made);
        if (r->cast) r->cast((char *const[]){to, made}, (const int64_t[]){r->to_size, r->made_size}, count, NULL);
        else memcpy(to, made, (size_t)(count * r->to_size));
    }
}

static int check_generator(const tp_generator *g, const tp_tensor *self) {
    if (!g || g->device.type == self->device.type) return 0;
    return tp_fail(TP_RuntimeError, "Expected a '%s' device type for generator but found '%s'",
                   tp_device_type_name((tp_device_type)self->device.type),
                   tp_device_type_name((tp_device_type)g->device.type));
}

/* Fills a tensor with a draw; `kind` is that for float, the next one serves double. A complex tensor is twice the
 * reals. */
static int fill(tp_tensor *self, tp_draw_kind kind, tp_draw draw, tp_generator *generator) {
    if (check_generator(generator, self) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    if (self->numel == 0) return 0;
    tp_dtype dtype = tp_to_real_dtype((tp_dtype)self->dtype);
    if (kind < TP_DRAW_INTEGERS && dtype == TP_FLOAT64) kind = (tp_draw_kind)(kind + 1);
    draw.bits = dtype == TP_FLOAT16 ? 11 : dtype == TP_BFLOAT16 ? 8 : 24;
    tp_autoref *into =
        tp_is_contiguous(self) ? tp_retain(self) : tp_new_empty(tp_sizes(self), (tp_dtype)self->dtype, self->device);
    if (!generator && tp_elsewhere(self) && !(generator = tp_default_generator_borrow(self->device))) return -1;
    if (!into || tp_generator_reserve(generator, 1, &draw.state) < 0) return -1;
    tp_dtype made = made_dtypes[kind];
    if (tp_elsewhere(into)) {
        const tp_device_kernels *k = tp_device_kernels_of(into->device);
        int64_t n = self->numel * (tp_is_complex(self) ? 2 : 1);
        if (!k || k->draw(into, kind, &draw, made, dtype, n) < 0) return -1;
        return into == self ? 0 : tp_copy_data(self, into);
    }
    draw_run run = {.draw = draw,
                    .make = tp_cpu.random->make[kind],
                    .cast = made == dtype ? NULL : tp_cast_loop(made, dtype),
                    .made_size = tp_itemsize(made),
                    .to_size = tp_itemsize(dtype),
                    .n = self->numel * (tp_is_complex(self) ? 2 : 1),
                    .to = tp_data(into)};
    void *lock = run.n > TP_GRAIN ? tp_host_lock_release() : NULL;
    int status =
        tp_parallel_for((run.n + TP_DRAW_BLOCK - 1) / TP_DRAW_BLOCK, TP_GRAIN / TP_DRAW_BLOCK / 4, run_blocks, &run);
    if (run.n > TP_GRAIN) tp_host_lock_acquire(lock);
    return status < 0 || into == self ? status : tp_copy_data(self, into);
}

static int check_float(const tp_tensor *self, const char *op) {
    if (tp_is_floating(self) || tp_is_complex(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

/* ---- in-place draws ---- */

static int check_uniform(const tp_tensor *self, double from, double to) {
    if (check_float(self, "uniform_") < 0) return -1;
    if (!(from <= to))
        return tp_fail(TP_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                       from, to);
    return 0;
}
/* uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!) */
int uniform__cpu(tp_tensor *self, double from, double to, tp_generator *generator) {
    if (check_uniform(self, from, to) < 0) return -1;
    return fill(self, TP_DRAW_UNIFORM_FLOAT, (tp_draw){.a = from, .b = to}, generator);
}
int uniform__meta(tp_tensor *self, double from, double to, tp_generator *generator) {
    (void)generator;
    return check_uniform(self, from, to);
}

static int check_normal(const tp_tensor *self, double std) {
    if (check_float(self, "normal_") < 0) return -1;
    return std >= 0 ? 0 : tp_fail(TP_RuntimeError, "normal expects std >= 0.0, but found std %g", std);
}
/* normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
 * The variance of a complex number is shared by its parts. */
int normal__cpu(tp_tensor *self, double mean, double std, tp_generator *generator) {
    if (check_normal(self, std) < 0) return -1;
    bool split = tp_is_complex(self);
    tp_draw draw = {.a = split ? 0 : mean, .b = split ? std * M_SQRT1_2 : std};
    if (fill(self, TP_DRAW_NORMAL_FLOAT, draw, generator) < 0) return -1;
    return split && mean != 0 ? tp_add__Scalar(self, TP_SCALAR_F(mean), TP_SCALAR_I(1)) : 0;
}
int normal__meta(tp_tensor *self, double mean, double std, tp_generator *generator) {
    (void)mean, (void)generator;
    return check_normal(self, std);
}

static int check_exponential(const tp_tensor *self, double lambd) {
    if (tp_is_complex(self) || check_float(self, "exponential_") < 0) {
        return tp_fail(TP_RuntimeError,
                       "Exponential distribution is a continuous probability distribution. dtype must be a floating "
                       "point but you specified %s",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    }
    return lambd > 0 ? 0 : tp_fail(TP_RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
}
/* exponential_(Tensor(a!) self, float lambd=1, *, Generator? generator=None) -> Tensor(a!) */
int exponential__cpu(tp_tensor *self, double lambd, tp_generator *generator) {
    if (check_exponential(self, lambd) < 0) return -1;
    return fill(self, TP_DRAW_EXPONENTIAL_FLOAT, (tp_draw){.a = lambd}, generator);
}
int exponential__meta(tp_tensor *self, double lambd, tp_generator *generator) {
    (void)generator;
    return check_exponential(self, lambd);
}

/* The whole numbers from 0 on that a dtype holds without gaps; the largest of them. */
static uint64_t largest_whole(tp_dtype d) {
    switch (d) {
    case TP_BOOL: return 1;
    case TP_FLOAT16: return 1 << 11;
    case TP_BFLOAT16: return 1 << 8;
    case TP_FLOAT32: return 1 << 24;
    case TP_FLOAT64: return UINT64_C(1) << 53;
    default: break;
    }
    int bits = 8 * (int)tp_itemsize(d) - (tp_dtype_categories[d] == TP_SIGNED);
    return UINT64_MAX >> (64 - bits);
}
static int check_random(const tp_tensor *self) {
    if (!tp_is_complex(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"random_\" not implemented for '%s'",
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

static int check_bound(const char *name, int64_t value, tp_dtype d) {
    bool bad = d == TP_BOOL ? value < 0 || value > 1 : false;
    if (d != TP_BOOL && !tp_is_floating_dtype(d)) {
        uint64_t most = largest_whole(d);
        bad = value > 0                             ? (uint64_t)value > most
              : tp_dtype_categories[d] == TP_SIGNED ? value < -(int64_t)most - 1
                                                    : value < 0;
    }
    if (d == TP_FLOAT16) bad = value > 65504 || value < -65504;
    return bad ? tp_fail(TP_RuntimeError, "%s is out of bounds for %s", name, tp_scalar_type_name(d)) : 0;
}

/* From `low` up to but without `high`; TP_NO_INT: up to the largest number of the dtype. Gives the draw. */
static int random_range(const tp_tensor *self, int64_t low, tp_opt_int high, tp_draw *draw) {
    tp_dtype d = (tp_dtype)self->dtype;
    if (check_random(self) < 0) return -1;
    draw->base = low;
    if (!high.has) {
        if (check_bound("from", low, d) < 0) return -1;
        draw->range = largest_whole(d) - (uint64_t)low + 1;
        return 0;
    }
    if (low >= high.value)
        return tp_fail(TP_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                       (long long)low, (long long)high.value);
    if (check_bound("from", low, d) < 0 || check_bound("to - 1", high.value - 1, d) < 0) return -1;
    draw->range = (uint64_t)high.value - (uint64_t)low;
    return 0;
}
/* random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!) */
int random__from_cpu(tp_tensor *self, int64_t from, tp_opt_int to, tp_generator *generator) {
    tp_draw draw = {0};
    return random_range(self, from, to, &draw) < 0 ? -1 : fill(self, TP_DRAW_INTEGERS, draw, generator);
}
int random__from_meta(tp_tensor *self, int64_t from, tp_opt_int to, tp_generator *generator) {
    (void)generator;
    return random_range(self, from, to, &(tp_draw){0});
}
int random__to_cpu(tp_tensor *self, int64_t to, tp_generator *generator) {
    return random__from_cpu(self, 0, TP_SOME_INT(to), generator);
}
int random__to_meta(tp_tensor *self, int64_t to, tp_generator *generator) {
    return random__from_meta(self, 0, TP_SOME_INT(to), generator);
}
int random__cpu(tp_tensor *self, tp_generator *generator) { return random__from_cpu(self, 0, TP_NO_INT, generator); }
int random__meta(tp_tensor *self, tp_generator *generator) { return random__from_meta(self, 0, TP_NO_INT, generator); }

/* ---- bernoulli ---- */

static int check_probability(double p) {
    return p >= 0 && p <= 1 ? 0 : tp_fail(TP_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
}
/* bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!) */
int bernoulli__float_cpu(tp_tensor *self, double p, tp_generator *generator) {
    if (check_probability(p) < 0) return -1;
    if (!tp_is_complex(self)) return fill(self, TP_DRAW_BERNOULLI, (tp_draw){.a = p}, generator);
    return tp_fail(TP_NotImplementedError, "\"bernoulli_scalar_cpu_\" not implemented for '%s'",
                   tp_scalar_type_name((tp_dtype)self->dtype));
}
int bernoulli__float_meta(tp_tensor *self, double p, tp_generator *generator) {
    (void)self, (void)generator;
    return check_probability(p);
}
static int check_probabilities(tp_tensor *p) {
    if (!tp_is_floating(p))
        return tp_fail(TP_RuntimeError, "expected probabilities tensor to have floating type, got %s",
                       tp_scalar_type_name((tp_dtype)p->dtype));
    tp_autoref *low = tp_ge_Scalar(p, TP_SCALAR_I(0)), *high = low ? tp_le_Scalar(p, TP_SCALAR_I(1)) : NULL;
    tp_autoref *both = high ? tp_logical_and(low, high) : NULL, *out = both ? tp_logical_not(both) : NULL;
    tp_autoref *any = out ? tp_any(out) : NULL;
    bool found;
    if (!any || tp_is_nonzero(any, &found) < 0) return -1;
    return found ? tp_fail(TP_RuntimeError, "bernoulli_ expects all probabilities to be in [0, 1]") : 0;
}
/* bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!) */
int bernoulli__Tensor_cpu(tp_tensor *self, tp_tensor *p, tp_generator *generator) {
    if (check_probabilities(p) < 0 || check_generator(generator, self) < 0) return -1;
    tp_autoref *u = tp_new_empty(tp_sizes(self), p->dtype == TP_FLOAT64 ? TP_FLOAT64 : TP_FLOAT32, self->device);
    if (!u || fill(u, TP_DRAW_UNIFORM_FLOAT, (tp_draw){.a = 0, .b = 1}, generator) < 0) return -1;
    tp_autoref *hit = tp_lt_Tensor(u, p);
    return hit ? tp_copy_(self, hit, false) : -1;
}
int bernoulli__Tensor_meta(tp_tensor *self, tp_tensor *p, tp_generator *generator) {
    (void)generator;
    tp_autoref *fitted = tp_expand(p, tp_sizes(self), false);
    return fitted ? 0 : -1;
}
tp_tensor *bernoulli_composite(tp_tensor *self, tp_generator *generator) {
    tp_autoref *t = tp_empty_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return t && tp_bernoulli__Tensor(t, self, generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *bernoulli_p_composite(tp_tensor *self, double p, tp_generator *generator) {
    tp_autoref *t = tp_empty_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return t && tp_bernoulli__float(t, p, generator) == 0 ? tp_take(t) : NULL;
}

/* ---- made from other draws ---- */

static int check_cauchy(const tp_tensor *self, double sigma) {
    if (!tp_is_floating(self))
        return tp_fail(
            TP_RuntimeError,
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but "
            "you specified %s",
            tp_scalar_type_name((tp_dtype)self->dtype));
    return sigma > 0 ? 0 : tp_fail(TP_RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
}
static double cauchy_of(double u, double median, double sigma) { return median + sigma * tan(M_PI * (u - 0.5)); }
/* How many trials a success takes: at least one. 1 - u is in (0, 1]. */
static double geometric_of(double u, double log_failure, double unused) {
    (void)unused;
    double trials = ceil(log1p(-u) / log_failure);
    return trials < 1 ? 1 : trials;
}
/* self = of(u, a, b), u uniform in [0, 1) in double precision. */
static int fill_from_uniform(tp_tensor *self, tp_draw_kind kind, double (*of)(double u, double a, double b), double a,
                             double b, tp_generator *generator) {
    if (tp_elsewhere(self)) return fill(self, kind, (tp_draw){.a = a, .b = b}, generator);
    if (check_generator(generator, self) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *made = tp_new_empty(tp_sizes(self), TP_FLOAT64, self->device);
    if (!made || fill(made, TP_DRAW_UNIFORM_FLOAT, (tp_draw){.a = 0, .b = 1}, generator) < 0) return -1;
    double *v = tp_data(made);
    for (int64_t i = 0; i < made->numel; i++) v[i] = of(v[i], a, b);
    return tp_copy_data(self, made);
}
/* cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!) */
int cauchy__cpu(tp_tensor *self, double median, double sigma, tp_generator *generator) {
    return check_cauchy(self, sigma) < 0 ? -1
                                         : fill_from_uniform(self, TP_DRAW_CAUCHY, cauchy_of, median, sigma, generator);
}
int cauchy__meta(tp_tensor *self, double median, double sigma, tp_generator *generator) {
    (void)median, (void)generator;
    return check_cauchy(self, sigma);
}

static int check_geometric(const tp_tensor *self, double p) {
    if (self->dtype == TP_BOOL || tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "\"geometric_cpu\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return p > 0 && p < 1 ? 0 : tp_fail(TP_RuntimeError, "geometric_ expects p to be in (0, 1), but got p=%g", p);
}
/* geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!) */
int geometric__cpu(tp_tensor *self, double p, tp_generator *generator) {
    return check_geometric(self, p) < 0
               ? -1
               : fill_from_uniform(self, TP_DRAW_GEOMETRIC, geometric_of, log1p(-p), 0, generator);
}
int geometric__meta(tp_tensor *self, double p, tp_generator *generator) {
    (void)generator;
    return check_geometric(self, p);
}

static int check_log_normal(const tp_tensor *self, double std) {
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"log_normal_cpu\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return std > 0 ? 0 : tp_fail(TP_RuntimeError, "log_normal_ expects std > 0.0, but found std=%g", std);
}
/* log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!) */
int log_normal__cpu(tp_tensor *self, double mean, double std, tp_generator *generator) {
    if (check_log_normal(self, std) < 0 || tp_check_internal_overlap(self) < 0) return -1;
    tp_autoref *made = tp_new_empty(tp_sizes(self), self->dtype == TP_FLOAT64 ? TP_FLOAT64 : TP_FLOAT32, self->device);
    if (!made || check_generator(generator, self) < 0 ||
        fill(made, TP_DRAW_NORMAL_FLOAT, (tp_draw){.a = mean, .b = std}, generator) < 0 || tp_exp_(made) < 0)
        return -1;
    return tp_copy_data(self, made);
}
int log_normal__meta(tp_tensor *self, double mean, double std, tp_generator *generator) {
    (void)mean, (void)generator;
    return check_log_normal(self, std);
}
