/* random_new.c: random numbers in new tensors: an empty tensor and an in-place draw (native/random/random.c). */
#include "NativeFunctions.h"
#include "native/common/checks.h"
#include "native/common/out.h"
#include "native/common/variants.h"
#include "Primitives.h"
#include "core/generator.h"

#define OPTIONS tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory
#define PASS_OPTIONS dtype, layout, device, pin_memory

static tp_tensor *empty(tp_ints size, OPTIONS) { return tp_empty_memory_format(size, PASS_OPTIONS, TP_NO_FORMAT); }

/* ---- by sizes ---- */

/* rand.generator(SymInt[] size, *, Generator? generator, ...) -> Tensor */
tp_tensor *rand_generator_composite(tp_ints size, tp_generator *generator, OPTIONS) {
    tp_autoref *t = empty(size, PASS_OPTIONS);
    return t && tp_uniform_(t, 0, 1, generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *rand_composite(tp_ints size, OPTIONS) { return rand_generator_composite(size, NULL, PASS_OPTIONS); }

/* randn.generator(SymInt[] size, *, Generator? generator, ...) -> Tensor */
tp_tensor *randn_generator_composite(tp_ints size, tp_generator *generator, OPTIONS) {
    tp_autoref *t = empty(size, PASS_OPTIONS);
    return t && tp_normal_(t, 0, 1, generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *randn_composite(tp_ints size, OPTIONS) { return randn_generator_composite(size, NULL, PASS_OPTIONS); }

/* randint.low_generator(SymInt low, SymInt high, SymInt[] size, *, Generator? generator, ...) -> Tensor */
tp_tensor *randint_low_generator_composite(int64_t low, int64_t high, tp_ints size, tp_generator *generator, OPTIONS) {
    tp_autoref *t = empty(size, dtype == TP_NO_DTYPE ? TP_INT64 : dtype, layout, device, pin_memory);
    return t && tp_random__from(t, low, TP_SOME_INT(high), generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *randint_low_composite(int64_t low, int64_t high, tp_ints size, OPTIONS) {
    return randint_low_generator_composite(low, high, size, NULL, PASS_OPTIONS);
}
tp_tensor *randint_generator_composite(int64_t high, tp_ints size, tp_generator *generator, OPTIONS) {
    return randint_low_generator_composite(0, high, size, generator, PASS_OPTIONS);
}
tp_tensor *randint_composite(int64_t high, tp_ints size, OPTIONS) {
    return randint_low_generator_composite(0, high, size, NULL, PASS_OPTIONS);
}

/* ---- like another tensor ---- */

#define LIKE_OPTIONS \
    tp_dtype dtype, tp_layout layout, tp_device device, tp_opt_bool pin_memory, tp_memory_format memory_format
#define PASS_LIKE dtype, layout, device, pin_memory, memory_format

tp_tensor *rand_like_generator_composite(tp_tensor *self, tp_generator *generator, LIKE_OPTIONS) {
    tp_autoref *t = tp_empty_like(self, PASS_LIKE);
    return t && tp_uniform_(t, 0, 1, generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *rand_like_composite(tp_tensor *self, LIKE_OPTIONS) {
    return rand_like_generator_composite(self, NULL, PASS_LIKE);
}

tp_tensor *randn_like_generator_composite(tp_tensor *self, tp_generator *generator, LIKE_OPTIONS) {
    tp_autoref *t = tp_empty_like(self, PASS_LIKE);
    return t && tp_normal_(t, 0, 1, generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *randn_like_composite(tp_tensor *self, LIKE_OPTIONS) {
    return randn_like_generator_composite(self, NULL, PASS_LIKE);
}

tp_tensor *randint_like_low_generator_dtype_composite(tp_tensor *self, int64_t low, int64_t high,
                                                      tp_generator *generator, LIKE_OPTIONS) {
    tp_autoref *t = tp_empty_like(self, PASS_LIKE);
    return t && tp_random__from(t, low, TP_SOME_INT(high), generator) == 0 ? tp_take(t) : NULL;
}
tp_tensor *randint_like_low_dtype_composite(tp_tensor *self, int64_t low, int64_t high, LIKE_OPTIONS) {
    return randint_like_low_generator_dtype_composite(self, low, high, NULL, PASS_LIKE);
}
tp_tensor *randint_like_generator_composite(tp_tensor *self, int64_t high, tp_generator *generator, LIKE_OPTIONS) {
    return randint_like_low_generator_dtype_composite(self, 0, high, generator, PASS_LIKE);
}
tp_tensor *randint_like_composite(tp_tensor *self, int64_t high, LIKE_OPTIONS) {
    return randint_like_low_generator_dtype_composite(self, 0, high, NULL, PASS_LIKE);
}
tp_tensor *randint_like_Tensor_generator_composite(tp_tensor *self, tp_tensor *high, tp_generator *generator,
                                                   LIKE_OPTIONS) {
    tp_scalar bound;
    if (high->ndim > 0) return tp_fail_null(TP_RuntimeError, "randint_like: high must be a tensor without dimensions");
    if (tp_item(high, &bound) < 0) return NULL;
    return randint_like_low_generator_dtype_composite(self, 0, tp_scalar_int(&bound), generator, PASS_LIKE);
}
tp_tensor *randint_like_Tensor_composite(tp_tensor *self, tp_tensor *high, LIKE_OPTIONS) {
    return randint_like_Tensor_generator_composite(self, high, NULL, PASS_LIKE);
}

/* ---- normal ---- */

/* The size is that of mean and std broadcast, the dtype mean's (or std's). */
static tp_tensor *normal_of(tp_tensor *like, tp_ints size, tp_generator *generator) {
    tp_autoref *t = empty(size, (tp_dtype)like->dtype, TP_NO_LAYOUT, like->device, -1);
    return t && tp_normal_(t, 0, 1, generator) == 0 ? tp_take(t) : NULL;
}
static int check_deviations(tp_tensor *std) {
    if (tp_is_complex(std)) return tp_fail(TP_RuntimeError, "normal expects standard deviation to be non-complex");
    if (std->numel == 0 || !tp_has_values(std)) return 0;
    tp_autoref *negative = tp_lt_Scalar(std, TP_SCALAR_I(0)), *any = negative ? tp_any(negative) : NULL;
    bool found = false;
    if (!any || tp_holds(any, &found) < 0) return -1;
    return found ? tp_fail(TP_RuntimeError, "normal expects all elements of std >= 0.0") : 0;
}
/* normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor */
tp_tensor *normal_Tensor_float_composite(tp_tensor *mean, double std, tp_generator *generator) {
    if (!(std >= 0)) return tp_fail_null(TP_RuntimeError, "normal expects std >= 0.0, but found std %g", std);
    tp_autoref *t = normal_of(mean, tp_sizes(mean), generator);
    return t && tp_mul__Scalar(t, TP_SCALAR_F(std)) == 0 && tp_add__Tensor(t, mean, TP_SCALAR_I(1)) == 0 ? tp_take(t)
                                                                                                         : NULL;
}
tp_tensor *normal_float_Tensor_composite(double mean, tp_tensor *std, tp_generator *generator) {
    if (check_deviations(std) < 0) return NULL;
    tp_autoref *t = normal_of(std, tp_sizes(std), generator);
    return t && tp_mul__Tensor(t, std) == 0 && tp_add__Scalar(t, TP_SCALAR_F(mean), TP_SCALAR_I(1)) == 0 ? tp_take(t)
                                                                                                         : NULL;
}
tp_tensor *normal_Tensor_Tensor_composite(tp_tensor *mean, tp_tensor *std, tp_generator *generator) {
    int64_t sizes[TP_MAX_DIMS];
    if (check_deviations(std) < 0) return NULL;
    int ndim = tp_broadcast_sizes(tp_sizes(mean), tp_sizes(std), sizes);
    tp_autoref *t = ndim < 0 ? NULL : normal_of(mean, (tp_ints){sizes, ndim}, generator);
    return t && tp_mul__Tensor(t, std) == 0 && tp_add__Tensor(t, mean, TP_SCALAR_I(1)) == 0 ? tp_take(t) : NULL;
}
tp_tensor *normal_float_float_composite(double mean, double std, tp_ints size, tp_generator *generator, OPTIONS) {
    tp_autoref *t = empty(size, PASS_OPTIONS);
    return t && tp_normal_(t, mean, std, generator) == 0 ? tp_take(t) : NULL;
}

/* ---- randperm ---- */

/* Integers up to a power of two are numbers of their own in a float. */
static int check_all_differ(int64_t n, tp_dtype dtype) {
    static const struct {
        tp_dtype dtype;
        int digits;
        const char *most;
    } floats[] = {{TP_FLOAT16, 11, "2049"}, {TP_FLOAT32, 24, "2^24+1"}, {TP_FLOAT64, 53, "2^53+1"}};
    for (size_t i = 0; i < TP_COUNTOF(floats); i++)
        if (dtype == floats[i].dtype && n > ((int64_t)1 << floats[i].digits) + 1)
            return tp_fail(TP_RuntimeError, "n cannot be greater than %s for %s type.", floats[i].most,
                           tp_scalar_type_name(dtype));
    return 0;
}

static tp_tensor *randperm_empty(int64_t n, OPTIONS) {
    if (n < 0) return tp_fail_null(TP_RuntimeError, "n must be non-negative, got %lld", (long long)n);
    if (check_all_differ(n, dtype) < 0) return NULL;
    return empty(TP_INTS(n), dtype == TP_NO_DTYPE ? TP_INT64 : dtype, layout, device, pin_memory);
}
/* Each step depends on the ones before it, so a permutation for another device is made on the host too, and sent there.
 */
tp_tensor *randperm_generator_dense(int64_t n, tp_generator *generator, OPTIONS) {
    tp_philox_state state;
    tp_autoref *t = randperm_empty(n, dtype, layout, device, pin_memory);
    if (!t || !tp_has_values(t)) return tp_take(t);
    if (!generator && !(generator = tp_default_generator_borrow(t->device))) return NULL;
    if (tp_scalar_check_fits(TP_SCALAR_I(n ? n - 1 : 0), (tp_dtype)t->dtype) < 0)
        return tp_fail_null(TP_RuntimeError, "n is too large for result tensor type: '%s'", tp_dtype_names[t->dtype]);
    tp_tensor *serial;
    if (tp_generator_serial(generator, t->device, &serial) < 0) return NULL;
    bool small = !serial && n >= 4096 && n <= INT32_MAX;
    tp_autoref *order = t->dtype == (small ? TP_INT32 : TP_INT64) && tp_device_equal(t->device, TP_CPU)
                            ? tp_retain(t)
                            : tp_new_empty(TP_INTS(n), small ? TP_INT32 : TP_INT64, TP_CPU);
    if (!order || (!serial && tp_generator_reserve(generator, 1, &state) < 0)) return NULL;
    int status = !n       ? 0
                 : serial ? tp_prim_serial_permutation(serial, order)
                          : tp_prim_permutation((int64_t)state.seed, (int64_t)state.offset, order);
    if (status < 0) return NULL;
    return order == t || tp_copy_(t, order, false) == 0 ? tp_take(t) : NULL;
}
tp_tensor *randperm_composite(int64_t n, OPTIONS) { return tp_randperm_generator(n, NULL, PASS_OPTIONS); }

/* ---- dropout ---- */

static int check_dropout(double p) {
    return p >= 0 && p <= 1 ? 0
                            : tp_fail(TP_RuntimeError, "dropout probability has to be between 0 and 1, but got %g", p);
}
/* native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor) */
tp_tensor2 native_dropout_dense(tp_tensor *input, double p, tp_opt_bool train) {
    tp_tensor2 failed = {{NULL, NULL}};
    if (check_dropout(p) < 0) return failed;
    tp_autoref *mask = tp_empty_like(input, TP_BOOL, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    if (!mask) return failed;
    if (train == 0) {
        tp_autoref *same = tp_clone(input, TP_NO_FORMAT);
        if (!same || tp_fill__Scalar(mask, TP_SCALAR_B(true)) < 0) return failed;
        return (tp_tensor2){{tp_take(same), tp_take(mask)}};
    }
    if (!tp_is_floating(input) && !tp_is_complex(input)) /* 1 / (1 - p) is no number of such a dtype */
        return tp_fail(TP_RuntimeError, "result type Float can't be cast to the desired output type %s",
                       tp_scalar_type_name((tp_dtype)input->dtype)),
               failed;
    if (tp_bernoulli__float(mask, 1 - p, NULL) < 0) return failed;
    tp_autoref *out = tp_native_dropout_backward(input, mask, p == 1 ? 0 : 1 / (1 - p));
    return out ? (tp_tensor2){{tp_take(out), tp_take(mask)}} : failed;
}
/* dropout(Tensor input, float p, bool train) -> Tensor */
tp_tensor *dropout_composite(tp_tensor *input, double p, bool train) {
    if (check_dropout(p) < 0) return NULL;
    if (p == 0 || !train || input->numel == 0) return tp_retain(input);
    if (p == 1) return tp_mul_Scalar(input, TP_SCALAR_I(0));
    tp_tensor2 both = tp_native_dropout(input, p, 1);
    tp_release(both.v[1]);
    return both.v[0];
}
/* dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!) */
int dropout__composite(tp_tensor *self, double p, bool train) {
    if (check_dropout(p) < 0) return -1;
    if (p == 0 || !train || self->numel == 0) return 0;
    if (p == 1) return tp_mul__Scalar(self, TP_SCALAR_I(0));
    tp_autoref *mask = tp_empty_like(self, TP_BOOL, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT);
    if (!mask || tp_bernoulli__float(mask, 1 - p, NULL) < 0 || tp_mul__Tensor(self, mask) < 0) return -1;
    return tp_mul__Scalar(self, TP_SCALAR_F(1 / (1 - p)));
}

/* ---- multinomial ---- */

static tp_tensor *multinomial_empty(tp_tensor *self, int64_t n, bool replacement) {
    if (self->ndim < 1 || self->ndim > 2) return tp_fail_null(TP_RuntimeError, "prob_dist must be 1 or 2 dim");
    if (!tp_is_floating(self))
        return tp_fail_null(TP_RuntimeError, "multinomial only supports floating-point dtypes for input, got: %s",
                            tp_dtype_names[self->dtype]);
    if (n <= 0) return tp_fail_null(TP_RuntimeError, "cannot sample n_sample <= 0 samples");
    int64_t categories = self->sizes[self->ndim - 1];
    if (!replacement && n > categories)
        return tp_fail_null(TP_RuntimeError, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    if (categories > 1 << 24) return tp_fail_null(TP_RuntimeError, "number of categories cannot exceed 2^24");
    return tp_new_empty(self->ndim == 1 ? TP_INTS(n) : TP_INTS(self->sizes[0], n), TP_INT64, self->device);
}
/* Whether all elements of a boolean tensor (stolen) are true; -1 with the error set. */
static int all_true_steal(tp_tensor *mask) {
    tp_autoref *owned = mask, *all = owned ? tp_all(owned) : NULL;
    bool found;
    return !all || tp_holds(all, &found) < 0 ? -1 : found;
}
/* Rows that can be drawn from: before the generator moves on, and here for every device. 1: each has as many weights
 * above 0 as are drawn; 0: one has fewer, and weights of 0 are drawn after them; -1: an error. */
static int check_weights(tp_tensor *rows, int64_t wanted, bool replacement) {
    tp_autoref *low = tp_ge_Scalar(rows, TP_SCALAR_I(0)), *finite = low ? tp_isfinite(rows) : NULL;
    int sound = finite ? all_true_steal(tp_logical_and(low, finite)) : -1;
    if (sound == 0)
        tp_fail(TP_RuntimeError,
                replacement && wanted > 1
                    ? "invalid multinomial distribution (encountering probability entry < 0, infinity or NaN)"
                    : "probability tensor contains either `inf`, `nan` or element < 0");
    tp_autoref *positive = sound == 1 ? tp_gt_Scalar(rows, TP_SCALAR_I(0)) : NULL;
    tp_autoref *count = positive ? tp_count_nonzero_dim_IntList(positive, TP_INTS(1)) : NULL;
    int some = count ? all_true_steal(tp_gt_Scalar(count, TP_SCALAR_I(0))) : -1;
    if (some == 0) tp_fail(TP_RuntimeError, "invalid multinomial distribution (sum of probabilities <= 0)");
    if (some != 1) return -1;
    return replacement ? 1 : all_true_steal(tp_ge_Scalar(count, TP_SCALAR_I(wanted)));
}
/* By the steps of PyTorch's: where a sample is not put back, the largest shares of weights over exponential numbers;
 * else places in the sums of weights. For a serial generator, and where a row has weights of 0 to draw. new. */
static tp_tensor *samples_in_order(tp_tensor *rows, int64_t n, bool replacement, tp_generator *generator) {
    if (replacement && n > 1) {
        tp_autoref *sums = tp_cumsum(rows, -1, TP_FLOAT64), *all = sums ? tp_select_int(sums, 1, -1) : NULL;
        tp_autoref *total = all ? tp_unsqueeze(all, 1) : NULL, *parts = total ? tp_div_Tensor(sums, total) : NULL;
        tp_autoref *u = parts ? tp_new_empty(TP_INTS(rows->sizes[0], n), TP_FLOAT64, rows->device) : NULL;
        if (!u || tp_uniform_(u, 0, 1, generator) < 0) return NULL;
        return tp_searchsorted_Tensor(parts, u, false, false, NULL, NULL);
    }
    tp_autoref *times = tp_new_empty(tp_sizes(rows), (tp_dtype)rows->dtype, rows->device);
    if (!times || tp_exponential_(times, 1, generator) < 0) return NULL;
    tp_autoref *shares = tp_div_Tensor(rows, times);
    if (!shares || n == 1) return shares ? tp_argmax(shares, TP_SOME_INT(-1), true) : NULL;
    tp_tensor2 best = tp_topk(shares, n, -1, true, true);
    tp_release(best.v[0]);
    return best.v[1];
}
/* multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor */
tp_tensor *multinomial_dense(tp_tensor *self, int64_t num_samples, bool replacement, tp_generator *generator) {
    tp_philox_state state;
    tp_autoref *out = multinomial_empty(self, num_samples, replacement);
    tp_autoref *rows =
        out ? tp_reshape(self, TP_INTS(self->ndim == 2 ? self->sizes[0] : 1, self->sizes[self->ndim - 1])) : NULL;
    tp_autoref *weights = rows ? tp_contiguous(rows, TP_CONTIGUOUS_FORMAT) : NULL;
    if (!weights) return NULL;
    if (out->numel == 0 || !tp_has_values(out)) return tp_take(out);
    int enough = check_weights(weights, num_samples, replacement);
    if (enough < 0) return NULL;
    if (!generator && !(generator = tp_default_generator_borrow(self->device))) return NULL;
    tp_tensor *serial;
    if (tp_generator_serial(generator, self->device, &serial) < 0) return NULL;
    if (serial || !enough) {
        tp_autoref *samples = samples_in_order(weights, num_samples, replacement, generator);
        return samples ? tp_reshape(samples, tp_sizes(out)) : NULL;
    }
    if (tp_generator_reserve(generator, 1, &state) < 0) return NULL;
    int status = tp_prim_multinomial(weights, replacement, (int64_t)state.seed, (int64_t)state.offset, out);
    return status == 0 ? tp_take(out) : NULL;
}
/* Nothing is drawn for an out= that does not fit.
 * multinomial.out(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None, Tensor(a!)
 * out) -> Tensor(a!) */
int multinomial_out_composite(tp_tensor *self, int64_t num_samples, bool replacement, tp_generator *generator,
                              tp_tensor *out) {
    if (out->dtype != TP_INT64)
        return tp_fail(TP_RuntimeError, "multinomial expects Long tensor out, got: %s",
                       tp_scalar_type_name((tp_dtype)out->dtype));
    if (tp_check_given(out, TP_VARIANT_OUT, TP_INT64, self->device) < 0) return -1;
    tp_autoref *made = tp_multinomial(self, num_samples, replacement, generator);
    return made ? tp_copy_into_out(out, made) : -1;
}
