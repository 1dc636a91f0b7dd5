/* random.c: operators that draw random numbers.
 *
 * A draw reserves one offset of its generator and numbers its elements in row-major order from 0, so the same seed
 * gives the same numbers for any layout of the result, any device and any number of threads. Everything else (rand,
 * randn_like, normal of tensors, dropout, ...) is an in-place draw into a tensor made for it. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/generator.h"
#include "iter/iter.h"
#include "native/common/checks.h"
#include "native/common/out.h"
#include "native/random/random.h"
#include "prim/transfer.h"

#include <float.h>
#include <math.h>

int tp_check_generator(const tp_generator *g, const tp_tensor *self) {
    if (!g || !tp_has_values(self) || g->device.type == self->device.type) return 0;
    return tp_fail(TP_RuntimeError, "Expected a '%s' device type for generator but found '%s'",
                   tp_device_type_name((tp_device_type)self->device.type),
                   tp_device_type_name((tp_device_type)g->device.type));
}

int tp_reserve_draw(tp_generator *g, const tp_tensor *self, tp_philox_state *state) {
    if (!g && !(g = tp_default_generator_borrow(self->device))) return -1;
    return tp_generator_reserve(g, 1, state);
}

typedef int (*draw_fn)(double a, double b, int64_t seed, int64_t offset, tp_tensor *out);

/* Where a draw goes: the tensor itself, or a contiguous one instead; complex numbers are drawn as their parts. */
typedef struct {
    tp_tensor *whole, *reals; /* owned */
    tp_philox_state state;
} target;

static void free_target(target *t) {
    tp_release(t->whole);
    tp_release(t->reals);
}

static int start(target *t, tp_tensor *self, tp_generator *generator) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    t->whole = tp_is_contiguous(self) ? tp_retain(self) : tp_new_empty(tp_sizes(self), dtype, self->device);
    if (!t->whole || tp_reserve_draw(generator, self, &t->state) < 0) return -1;
    t->reals = !tp_is_complex(self) ? tp_retain(t->whole)
                                    : tp_new_on_storage(t->whole->storage, TP_INTS(2 * self->numel), TP_INTS(1),
                                                        t->whole->byte_offset, tp_to_real_dtype(dtype));
    return t->reals ? 0 : -1;
}

static int finish(const target *t, tp_tensor *self) { return t->whole == self ? 0 : tp_copy_data(self, t->whole); }

static int check_target(tp_tensor *self, const tp_generator *generator) {
    return tp_check_generator(generator, self) < 0 ? -1 : tp_check_internal_overlap(self);
}

static int fill(tp_tensor *self, tp_serial_kind kind, double a, double b, tp_generator *generator) {
    static const draw_fn draws[TP_NUM_SERIAL] = {
        [TP_SERIAL_UNIFORM] = tp_prim_draw_uniform,         [TP_SERIAL_NORMAL] = tp_prim_draw_normal,
        [TP_SERIAL_EXPONENTIAL] = tp_prim_draw_exponential, [TP_SERIAL_CAUCHY] = tp_prim_draw_cauchy,
        [TP_SERIAL_GEOMETRIC] = tp_prim_draw_geometric,     [TP_SERIAL_BERNOULLI] = tp_prim_draw_bernoulli};
    TP_CLEANUP(free_target) target t = {0};
    tp_tensor *serial;
    if (check_target(self, generator) < 0) return -1;
    if (self->numel == 0 || !tp_has_values(self)) return 0;
    if (tp_generator_serial(generator, self->device, &serial) < 0) return -1;
    if (serial) return tp_draw_serial(serial, kind, a, b, self);
    const draw_fn draw = draws[kind];
    if (start(&t, self, generator) < 0) return -1;
    return draw(a, b, (int64_t)t.state.seed, (int64_t)t.state.offset, t.reals) < 0 ? -1 : finish(&t, self);
}

static int fill_integers(tp_tensor *self, int64_t base, uint64_t range, bool all, tp_generator *generator) {
    TP_CLEANUP(free_target) target t = {0};
    tp_tensor *serial;
    if (check_target(self, generator) < 0) return -1;
    if (self->numel == 0 || !tp_has_values(self)) return 0;
    if (tp_generator_serial(generator, self->device, &serial) < 0) return -1;
    if (serial) return tp_draw_serial_integers(serial, base, range, all, self);
    if (start(&t, self, generator) < 0) return -1;
    int status = tp_prim_draw_integers(base, (int64_t)range, (int64_t)t.state.seed, (int64_t)t.state.offset, t.reals);
    return status < 0 ? -1 : finish(&t, self);
}

static int check_float(const tp_tensor *self, const char *op) {
    if (tp_is_floating(self) || tp_is_complex(self)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)self->dtype));
}

/* ---- in-place draws ---- */

static int check_uniform(const tp_tensor *self, double from, double to) {
    if (check_float(self, "uniform_") < 0) return -1;
    double most = self->dtype == TP_FLOAT16    ? 65504
                  : self->dtype == TP_BFLOAT16 ? 0x1.fep127
                  : self->dtype == TP_FLOAT32  ? FLT_MAX
                                               : DBL_MAX;
    for (int i = 0; i < 2; i++)
        if (!(fabs(i ? to : from) <= most))
            return tp_fail(TP_RuntimeError, "%s is out of bounds for %s", i ? "to" : "from",
                           tp_dtype_names[self->dtype]);
    if (to - from > most)
        return tp_fail(TP_RuntimeError,
                       "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g",
                       tp_scalar_type_name((tp_dtype)self->dtype), to, from);
    if (!(from <= to))
        return tp_fail(TP_RuntimeError, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                       from, to);
    return 0;
}
/* uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!) */
int uniform__dense(tp_tensor *self, double from, double to, tp_generator *generator) {
    if (check_uniform(self, from, to) < 0) return -1;
    return fill(self, TP_SERIAL_UNIFORM, from, to, generator);
}

static int check_normal(const tp_tensor *self, double std) {
    if (check_float(self, "normal_") < 0) return -1;
    return std >= 0 ? 0 : tp_fail(TP_RuntimeError, "normal expects std >= 0.0, but found std %g", std);
}
/* normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
 * The variance of a complex number is shared by its parts. */
int normal__dense(tp_tensor *self, double mean, double std, tp_generator *generator) {
    if (check_normal(self, std) < 0) return -1;
    bool split = tp_is_complex(self);
    if (fill(self, TP_SERIAL_NORMAL, split ? 0 : mean, split ? std * M_SQRT1_2 : std, generator) < 0) return -1;
    return split && mean != 0 ? tp_add__Scalar(self, TP_SCALAR_F(mean), TP_SCALAR_I(1)) : 0;
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
int exponential__dense(tp_tensor *self, double lambd, tp_generator *generator) {
    if (check_exponential(self, lambd) < 0) return -1;
    return fill(self, TP_SERIAL_EXPONENTIAL, lambd, 0, generator);
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

/* How many numbers there are from `low` up to but without `high`; TP_NO_INT: up to the largest one of the dtype. */
static int random_range(const tp_tensor *self, int64_t low, tp_opt_int high, uint64_t *range) {
    tp_dtype d = (tp_dtype)self->dtype;
    if (check_random(self) < 0) return -1;
    if (!high.has) {
        if (check_bound("from", low, d) < 0) return -1;
        *range = largest_whole(d) - (uint64_t)low + 1;
        return 0;
    }
    if (low >= high.value)
        return tp_fail(TP_RuntimeError, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                       (long long)low, (long long)high.value);
    if (check_bound("from", low, d) < 0 || check_bound("to - 1", high.value - 1, d) < 0) return -1;
    *range = (uint64_t)high.value - (uint64_t)low;
    return 0;
}
/* random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!) */
int random__from_dense(tp_tensor *self, int64_t from, tp_opt_int to, tp_generator *generator) {
    uint64_t range = 0;
    return random_range(self, from, to, &range) < 0 ? -1 : fill_integers(self, from, range, false, generator);
}
int random__to_dense(tp_tensor *self, int64_t to, tp_generator *generator) {
    return random__from_dense(self, 0, TP_SOME_INT(to), generator);
}
int random__dense(tp_tensor *self, tp_generator *generator) {
    uint64_t range = 0;
    return random_range(self, 0, TP_NO_INT, &range) < 0 ? -1 : fill_integers(self, 0, range, true, generator);
}

/* ---- bernoulli ---- */

static int check_probability(double p) {
    return p >= 0 && p <= 1 ? 0 : tp_fail(TP_RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
}
/* bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!) */
int bernoulli__float_dense(tp_tensor *self, double p, tp_generator *generator) {
    if (check_probability(p) < 0) return -1;
    if (!tp_is_complex(self)) return fill(self, TP_SERIAL_BERNOULLI, p, 0, generator);
    return tp_fail(TP_NotImplementedError, "\"bernoulli_scalar_cpu_\" not implemented for '%s'",
                   tp_scalar_type_name((tp_dtype)self->dtype));
}
static int check_probabilities(tp_tensor *p) {
    if (!tp_has_values(p)) return 0;
    if (!tp_is_floating(p))
        return tp_fail(TP_RuntimeError, "expected probabilities tensor to have floating type, got %s",
                       tp_scalar_type_name((tp_dtype)p->dtype));
    tp_autoref *low = tp_ge_Scalar(p, TP_SCALAR_I(0)), *high = low ? tp_le_Scalar(p, TP_SCALAR_I(1)) : NULL;
    tp_autoref *both = high ? tp_logical_and(low, high) : NULL, *out = both ? tp_logical_not(both) : NULL;
    tp_autoref *any = out ? tp_any(out) : NULL;
    bool found;
    if (!any || tp_holds(any, &found) < 0) return -1;
    return found ? tp_fail(TP_RuntimeError, "Expected p_in >= 0 && p_in <= 1 to be true, but got false: bernoulli_ "
                                            "expects all probabilities to be in [0, 1]")
                 : 0;
}
/* bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!) */
int bernoulli__Tensor_dense(tp_tensor *self, tp_tensor *p, tp_generator *generator) {
    if (check_probabilities(p) < 0 || tp_check_generator(generator, self) < 0) return -1;
    tp_autoref *u = tp_new_empty(tp_sizes(self), p->dtype == TP_FLOAT64 ? TP_FLOAT64 : TP_FLOAT32, self->device);
    if (!u || fill(u, TP_SERIAL_UNIFORM, 0, 1, generator) < 0) return -1;
    tp_autoref *hit = tp_lt_Tensor(u, p);
    return hit ? tp_copy_(self, hit, false) : -1;
}
tp_tensor *bernoulli_composite(tp_tensor *self, tp_generator *generator) {
    tp_autoref *t = tp_empty_like(self, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    return t && tp_bernoulli__Tensor(t, self, generator) == 0 ? tp_take(t) : NULL;
}
/* Draws in the dtype that out has.
 * bernoulli.out(Tensor self, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!) */
int bernoulli_out_composite(tp_tensor *self, tp_generator *generator, tp_tensor *out) {
    if (!tp_same_sizes(out, self) && tp_resize_out(out, tp_sizes(self), TP_NO_INTS) < 0) return -1;
    return tp_bernoulli__Tensor(out, self, generator);
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
/* cauchy_(Tensor(a!) self, float median=0, float sigma=1, *, Generator? generator=None) -> Tensor(a!) */
int cauchy__dense(tp_tensor *self, double median, double sigma, tp_generator *generator) {
    return check_cauchy(self, sigma) < 0 ? -1 : fill(self, TP_SERIAL_CAUCHY, median, sigma, generator);
}

static int check_geometric(const tp_tensor *self, double p) {
    if (self->dtype == TP_BOOL || tp_is_complex(self))
        return tp_fail(TP_NotImplementedError, "\"geometric_cpu\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return p > 0 && p < 1 ? 0 : tp_fail(TP_RuntimeError, "geometric_ expects p to be in (0, 1), but got p=%g", p);
}
/* geometric_(Tensor(a!) self, float p, *, Generator? generator=None) -> Tensor(a!) */
int geometric__dense(tp_tensor *self, double p, tp_generator *generator) {
    return check_geometric(self, p) < 0 ? -1 : fill(self, TP_SERIAL_GEOMETRIC, log1p(-p), 0, generator);
}

static int check_log_normal(const tp_tensor *self, double std) {
    if (!tp_is_floating(self))
        return tp_fail(TP_NotImplementedError, "\"log_normal_cpu\" not implemented for '%s'",
                       tp_scalar_type_name((tp_dtype)self->dtype));
    return std > 0 ? 0 : tp_fail(TP_RuntimeError, "log_normal_ expects std > 0.0, but found std=%g", std);
}
/* log_normal_(Tensor(a!) self, float mean=1, float std=2, *, Generator? generator=None) -> Tensor(a!) */
int log_normal__dense(tp_tensor *self, double mean, double std, tp_generator *generator) {
    tp_tensor *serial;
    if (check_log_normal(self, std) < 0 || tp_check_internal_overlap(self) < 0 ||
        tp_check_generator(generator, self) < 0 || tp_generator_serial(generator, self->device, &serial) < 0)
        return -1;
    if (serial && self->numel && tp_has_values(self))
        return tp_draw_serial(serial, TP_SERIAL_LOG_NORMAL, mean, std, self);
    tp_autoref *made = tp_new_empty(tp_sizes(self), self->dtype == TP_FLOAT64 ? TP_FLOAT64 : TP_FLOAT32, self->device);
    if (!made || fill(made, TP_SERIAL_NORMAL, mean, std, generator) < 0 || tp_exp_(made) < 0) return -1;
    return tp_copy_data(self, made);
}
