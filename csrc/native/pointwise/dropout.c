/* dropout.c: dropouts of whole channels, and those that keep mean and variance (alpha); the plain one is in
 * random_new.c.
 *
 * Each multiplies by noise that is drawn once: 0 or 1, for every element or for every channel of every image. */
#include "NativeFunctions.h"

#include <math.h>

/* What selu's negative side tends to. */
#define ALPHA 1.7580993408473766

typedef enum { FEATURE = 1, SCALED = 2 } kind; /* FEATURE: by channels; SCALED: alpha dropout */

static int check_dropout(double p) {
    if (!(p >= 0 && p <= 1))
        return tp_fail(TP_RuntimeError, "dropout probability has to be between 0 and 1, but got %g", p);
    return 0;
}

static tp_tensor *noise_for(tp_tensor *input, double p, int k) {
    int64_t sizes[TP_MAX_DIMS];
    if (k == FEATURE && input->ndim < 2)
        return tp_fail_null(TP_RuntimeError,
                            "Feature dropout requires at least 2 dimensions in the input (a batch and a channel)");
    for (int i = 0; i < input->ndim; i++) sizes[i] = k & FEATURE && i > 1 ? 1 : input->sizes[i];
    tp_autoref *like = tp_empty_memory_format((tp_ints){sizes, input->ndim}, (tp_dtype)input->dtype, TP_NO_LAYOUT,
                                              input->device, -1, TP_NO_FORMAT);
    return like ? tp_bernoulli_p(like, 1 - p, NULL) : NULL; /* under vmap each sample may draw its own */
}

/* The factor and the summand of an input; *shift is NULL but for alpha dropout. */
static tp_tensor *factor_for(tp_tensor *input, double p, int k, tp_tensor **shift) {
    tp_autoref *noise = noise_for(input, p, k);
    *shift = NULL;
    if (!noise) return NULL;
    if (!(k & SCALED)) return tp_div_Scalar(noise, TP_SCALAR_F(1 - p));
    double a = 1 / sqrt((ALPHA * ALPHA * p + 1) * (1 - p));
    tp_autoref *dropped = tp_sub_Scalar(noise, TP_SCALAR_I(1), TP_SCALAR_I(1)),
               *lowered = dropped ? tp_mul_Scalar(dropped, TP_SCALAR_F(ALPHA * a)) : NULL;
    tp_autoref *factor = tp_mul_Scalar(noise, TP_SCALAR_F(a));
    *shift = lowered ? tp_add_Scalar(lowered, TP_SCALAR_F(ALPHA * a * p), TP_SCALAR_I(1)) : NULL;
    return *shift ? tp_take(factor) : NULL;
}

static tp_tensor *drop(tp_tensor *input, double p, bool train, int k) {
    if (check_dropout(p) < 0) return NULL;
    if (p == 0 || !train || input->numel == 0) return tp_retain(input);
    if (p == 1) return tp_mul_Scalar(input, TP_SCALAR_I(0));
    tp_tensor *summand = NULL;
    tp_autoref *factor = factor_for(input, p, k, &summand), *shift = summand;
    tp_autoref *out = factor ? tp_mul_Tensor(input, factor) : NULL;
    return out && shift ? tp_add_Tensor(out, shift, TP_SCALAR_I(1)) : tp_take(out);
}

static int drop_inplace(tp_tensor *self, double p, bool train, int k) {
    if (check_dropout(p) < 0) return -1;
    if (p == 0 || !train || self->numel == 0) return 0;
    if (p == 1) return tp_mul__Scalar(self, TP_SCALAR_I(0));
    tp_tensor *summand = NULL;
    tp_autoref *factor = factor_for(self, p, k, &summand), *shift = summand;
    if (!factor || tp_mul__Tensor(self, factor) < 0) return -1;
    return shift ? tp_add__Tensor(self, shift, TP_SCALAR_I(1)) : 0;
}

/* feature_dropout(Tensor input, float p, bool train) -> Tensor, feature_dropout_(Tensor(a!) self, float p, bool train)
 * -> Tensor(a!), and their kin. */
#define DROPOUT(name, k)                                                                                     \
    tp_tensor *name##_composite(tp_tensor *input, double p, bool train) { return drop(input, p, train, k); } \
    int name##__composite(tp_tensor *self, double p, bool train) { return drop_inplace(self, p, train, k); }
DROPOUT(feature_dropout, FEATURE)
DROPOUT(alpha_dropout, SCALED)
DROPOUT(feature_alpha_dropout, FEATURE | SCALED)
