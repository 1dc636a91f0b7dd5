/* random_of.c: draws with a parameter for each element, given as tensors. As in random.c a draw reserves one offset of
 * its generator and numbers its elements in row-major order; all of them are made in double, or in float on a device
 * that has no double. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/generator.h"
#include "iter/iter.h"
#include "native/random/random.h"
#include "prim/plain.h"

#include <float.h>

static int check_floating(const tp_tensor *t, const char *what) {
    if (tp_is_floating(t)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", what,
                   tp_scalar_type_name((tp_dtype)t->dtype));
}

static tp_dtype widest_on(const tp_tensor *t) { return tp_device_has_double(t->device) ? TP_FLOAT64 : TP_FLOAT32; }

/* tp_prim_serial_fill_of's kind, and the draw by counters. */
typedef int (*draw_of_fn)(tp_tensor *parameter, int64_t seed, int64_t offset, tp_tensor *out);

/* The draws in the widest dtype, contiguous; new. */
static tp_tensor *draws_of(tp_tensor *self, draw_of_fn draw, tp_serial_kind_of kind, tp_generator *generator) {
    tp_philox_state state;
    tp_tensor *serial;
    if (tp_check_generator(generator, self) < 0) return NULL;
    tp_autoref *still = tp_still(self), *parameter = still ? tp_plain(still, widest_on(self)) : NULL;
    tp_autoref *out = parameter ? tp_new_empty(tp_sizes(parameter), widest_on(self), self->device) : NULL;
    if (!out || out->numel == 0) return tp_take(out);
    if (tp_generator_serial(generator, self->device, &serial) < 0) return NULL;
    if (serial) return tp_prim_serial_fill_of(kind, parameter, serial, out) < 0 ? NULL : tp_take(out);
    if (tp_reserve_draw(generator, self, &state) < 0) return NULL;
    return draw(parameter, (int64_t)state.seed, (int64_t)state.offset, out) < 0 ? NULL : tp_take(out);
}

/* poisson(Tensor self, Generator? generator=None) -> Tensor */
tp_tensor *poisson_dense(tp_tensor *self, tp_generator *generator) {
    if (check_floating(self, "poisson_cpu") < 0) return NULL;
    return tp_narrow_steal(draws_of(self, tp_prim_draw_poisson, TP_SERIAL_POISSON, generator), (tp_dtype)self->dtype);
}

/* binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor */
tp_tensor *binomial_dense(tp_tensor *count, tp_tensor *prob, tp_generator *generator) {
    tp_philox_state state;
    int64_t sizes[TP_MAX_DIMS];
    if (!tp_is_floating(count))
        return tp_fail_null(TP_ValueError, "binomial only supports floating-point dtypes for count, got: %s",
                            tp_scalar_type_name((tp_dtype)count->dtype));
    if (!tp_is_floating(prob))
        return tp_fail_null(TP_ValueError, "binomial only supports floating-point dtypes for prob, got: %s",
                            tp_scalar_type_name((tp_dtype)prob->dtype));
    if (prob->dtype != count->dtype)
        return tp_fail_null(TP_RuntimeError, "binomial: count and prob must have one dtype, but have %s and %s",
                            tp_dtype_names[count->dtype], tp_dtype_names[prob->dtype]);
    int ndim = tp_broadcast_sizes(tp_sizes(count), tp_sizes(prob), sizes);
    if (ndim < 0 || tp_check_generator(generator, count) < 0) return NULL;
    tp_autoref *n = tp_expand(count, (tp_ints){sizes, ndim}, false),
               *p = n ? tp_expand(prob, tp_sizes(n), false) : NULL;
    const tp_dtype wide = widest_on(count);
    tp_autoref *trials = p ? tp_plain(n, wide) : NULL, *chance = trials ? tp_plain(p, wide) : NULL;
    tp_autoref *out = chance ? tp_new_empty(tp_sizes(n), wide, count->device) : NULL;
    if (!out) return NULL;
    if (out->numel) {
        if (tp_reserve_draw(generator, count, &state) < 0) return NULL;
        if (tp_prim_draw_binomial(trials, chance, (int64_t)state.seed, (int64_t)state.offset, out) < 0) return NULL;
    }
    return tp_narrow_steal(tp_take(out), (tp_dtype)count->dtype);
}

/* Never 0 or less than the smallest normal number, so that it can be divided by and has a logarithm. */
static double tiny_of(tp_dtype dtype) {
    return dtype == TP_FLOAT64 ? DBL_MIN : dtype == TP_FLOAT16 ? 0x1p-14 : FLT_MIN;
}

/* _standard_gamma(Tensor self, Generator? generator=None) -> Tensor */
tp_tensor *_standard_gamma_dense(tp_tensor *self, tp_generator *generator) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    if (check_floating(self, "gamma_cpu") < 0) return NULL;
    tp_autoref *draws = draws_of(self, tp_prim_draw_gamma, TP_SERIAL_GAMMA, generator);
    tp_autoref *positive = draws ? tp_clamp_min(draws, TP_SCALAR_F(tiny_of(dtype))) : NULL;
    return positive ? tp_narrow_steal(tp_take(positive), dtype) : NULL;
}

/* The largest number of a dtype below 1. */
static double below_one(tp_dtype dtype) {
    if (dtype == TP_BFLOAT16) return 1 - 0x1p-8;
    if (dtype == TP_FLOAT16) return 1 - 0x1p-11;
    return dtype == TP_FLOAT32 ? 1 - 0x1p-24 : 1 - 0x1p-53;
}

/* Gamma draws over their sum, inside of (0, 1): a density is finite there.
 * _sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor */
tp_tensor *_sample_dirichlet_dense(tp_tensor *self, tp_generator *generator) {
    tp_dtype dtype = (tp_dtype)self->dtype;
    if (check_floating(self, "dirichlet") < 0) return NULL;
    tp_autoref *draws = draws_of(self, tp_prim_draw_gamma, TP_SERIAL_GAMMA, generator);
    tp_autoref *positive = draws ? tp_clamp_min(draws, TP_SCALAR_F(tiny_of((tp_dtype)draws->dtype))) : NULL;
    tp_autoref *total = positive ? tp_sum_dim_IntList(positive, TP_INTS(-1), true, TP_NO_DTYPE) : NULL;
    tp_autoref *shares = total ? tp_div_Tensor(positive, total) : NULL;
    tp_autoref *kept = shares ? tp_clamp(shares, TP_SCALAR_F(tiny_of(dtype)), TP_SCALAR_F(below_one(dtype))) : NULL;
    return kept ? tp_narrow_steal(tp_take(kept), dtype) : NULL;
}

/* _dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor */
tp_tensor *_dirichlet_grad_dense(tp_tensor *x, tp_tensor *alpha, tp_tensor *total) {
    int64_t first[TP_MAX_DIMS], sizes[TP_MAX_DIMS];
    tp_dtype dtype = (tp_dtype)x->dtype;
    if (check_floating(x, "_dirichlet_grad_cpu") < 0) return NULL;
    if (alpha->dtype != x->dtype || total->dtype != x->dtype)
        return tp_fail_null(TP_RuntimeError,
                            "_dirichlet_grad: x, alpha and total must have one dtype, but have %s, %s and %s",
                            tp_dtype_names[x->dtype], tp_dtype_names[alpha->dtype], tp_dtype_names[total->dtype]);
    int n = tp_broadcast_sizes(tp_sizes(x), tp_sizes(alpha), first);
    int ndim = n < 0 ? -1 : tp_broadcast_sizes((tp_ints){first, n}, tp_sizes(total), sizes);
    if (ndim < 0) return NULL;
    tp_tensor *const given[] = {x, alpha, total};
    tp_autoref *a = NULL, *b = NULL, *c = NULL;
    tp_tensor **const plain[] = {&a, &b, &c};
    for (int i = 0; i < 3; i++) {
        tp_autoref *whole = tp_expand(given[i], (tp_ints){sizes, ndim}, false);
        if (!whole || !(*plain[i] = tp_plain(whole, widest_on(x)))) return NULL;
    }
    tp_autoref *out = tp_new_empty((tp_ints){sizes, ndim}, widest_on(x), x->device);
    if (!out || (out->numel && tp_prim_beta_slope(a, b, c, out) < 0)) return NULL;
    return tp_narrow_steal(tp_take(out), dtype);
}
