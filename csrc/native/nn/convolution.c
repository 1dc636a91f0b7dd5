/* convolution.c: convolutions as operators: shapes, checks, the user's forms, gradients.
 *
 * A transposed convolution with weight [in, out/groups, ...] is the data gradient of the convolution that the same
 * weight describes from its output to its input; its own gradients are that convolution and its weight gradient. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "core/determinism.h"
#include "native/common/conj.h"
#include "prim/transfer.h"
#include "native/common/variants.h"
#include "prim/plain.h"

#include <string.h>

typedef struct {
    tp_ints stride, padding, dilation, output_padding;
    bool transposed;
    int64_t groups;
} settings;

static int64_t at(tp_ints v, int64_t i) { return v.size == 1 ? v.data[0] : v.data[i]; }

/* ---- checks and shapes ---- */

static int check_list(const char *name, tp_ints v, int64_t n, int64_t least, const char *what) {
    if (v.size != n && v.size != 1)
        return tp_fail(TP_RuntimeError,
                       "expected %s to be a single integer value or a list of %lld values to match the convolution "
                       "dimensions, but got %lld values",
                       name, (long long)n, (long long)v.size);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] < least) return tp_fail(TP_RuntimeError, "%s is not supported", what);
    for (int64_t i = 0; i < v.size; i++)
        if (v.data[i] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "convolution: %s of %lld is too large", name, (long long)v.data[i]);
    return 0;
}

static int check_settings(const settings *s, int64_t n) {
    if (check_list("stride", s->stride, n, 1, "non-positive stride") < 0) return -1;
    if (check_list("padding", s->padding, n, 0, "negative padding") < 0) return -1;
    if (check_list("dilation", s->dilation, n, 1, "dilation should be greater than zero; what is less") < 0) return -1;
    if (check_list("output_padding", s->output_padding, n, 0, "negative output_padding") < 0) return -1;
    if (s->groups < 1) return tp_fail(TP_RuntimeError, "non-positive groups is not supported");
    for (int64_t i = 0; s->transposed && i < n; i++)
        if (at(s->output_padding, i) >= at(s->stride, i) && at(s->output_padding, i) >= at(s->dilation, i))
            return tp_fail(TP_RuntimeError, "output padding must be smaller than either stride or dilation");
    return 0;
}

static int fail_channels(const tp_tensor *input, const tp_tensor *weight, const settings *s, int64_t wanted) {
    tp_autotext w = {0}, x = {0};
    tp_text_ints(&w, tp_sizes(weight));
    tp_text_ints(&x, tp_sizes(input));
    return tp_fail(
        TP_RuntimeError,
        "Given %s=%lld, weight of size %s, expected input%s to have %lld channels, but got %lld channels instead",
        s->transposed ? "transposed=1, groups" : "groups", (long long)s->groups, w.text, x.text, (long long)wanted,
        (long long)input->sizes[1]);
}

static int check_operands(const tp_tensor *input, const tp_tensor *weight, const tp_tensor *bias, const settings *s) {
    if (weight->ndim != input->ndim) {
        tp_autotext w = {0}, x = {0};
        tp_text_ints(&w, tp_sizes(weight));
        tp_text_ints(&x, tp_sizes(input));
        return tp_fail(TP_RuntimeError,
                       "Expected %d-dimensional input for %d-dimensional weight %s, but got %d-dimensional input of "
                       "size %s instead",
                       weight->ndim, weight->ndim, w.text, input->ndim, x.text);
    }
    if (input->dtype != weight->dtype)
        return tp_fail(TP_RuntimeError, "Input type (%s) and weight type (%s) should be the same",
                       tp_scalar_type_name((tp_dtype)input->dtype), tp_scalar_type_name((tp_dtype)weight->dtype));
    if (bias && bias->dtype != input->dtype)
        return tp_fail(TP_RuntimeError, "Input type (%s) and bias type (%s) should be the same",
                       tp_scalar_type_name((tp_dtype)input->dtype), tp_scalar_type_name((tp_dtype)bias->dtype));
    if (input->dtype == TP_BOOL) return tp_fail(TP_NotImplementedError, "convolution is not implemented for bool");
    int64_t product;
    if (__builtin_mul_overflow(weight->sizes[1], s->groups, &product))
        return tp_fail(TP_RuntimeError, "convolution: groups=%lld is too large", (long long)s->groups);
    int64_t channels = s->transposed ? weight->sizes[0] : product;
    if (weight->sizes[0] < s->groups)
        return tp_fail(TP_RuntimeError,
                       "Given groups=%lld, expected weight to be at least %lld at dimension 0, but got %lld instead",
                       (long long)s->groups, (long long)s->groups, (long long)weight->sizes[0]);
    if (input->sizes[1] != channels) return fail_channels(input, weight, s, channels);
    if (weight->sizes[0] % s->groups)
        return tp_fail(TP_RuntimeError,
                       "Given groups=%lld, expected weight to be divisible by it at dimension 0, but got %lld",
                       (long long)s->groups, (long long)weight->sizes[0]);
    for (int i = 2; i < weight->ndim; i++)
        if (weight->sizes[i] == 0) {
            tp_autotext kernel = {0};
            tp_text_ints(&kernel, (tp_ints){weight->sizes + 2, weight->ndim - 2});
            return tp_fail(TP_RuntimeError, "kernel size should be greater than zero, but got %s", kernel.text);
        }
    int64_t outputs = s->transposed ? product : weight->sizes[0];
    if (bias && (bias->ndim != 1 || bias->sizes[0] != outputs)) {
        tp_autotext b = {0};
        tp_text_ints(&b, tp_sizes(bias));
        return tp_fail(TP_RuntimeError,
                       "expected bias to be 1-dimensional with %lld elements, but got bias of size %s instead",
                       (long long)outputs, b.text);
    }
    return 0;
}

static TP_COLD int fail_room(const tp_tensor *input, const tp_tensor *weight, const settings *s) {
    tp_autotext padded = {0}, kernel = {0};
    for (int i = 2; i < input->ndim; i++) {
        const char *between = i > 2 ? " x " : "";
        tp_text_add(&padded, "%s%lld", between, (long long)(input->sizes[i] + 2 * at(s->padding, i - 2)));
        tp_text_add(&kernel, "%s%lld", between, (long long)(at(s->dilation, i - 2) * (weight->sizes[i] - 1) + 1));
    }
    return tp_fail(TP_RuntimeError,
                   "Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel size can't be greater "
                   "than actual input size",
                   padded.text, kernel.text);
}

/* The sizes of the result, into `sizes` (input->ndim of them). Of no channels come no channels, as in PyTorch. */
static int output_sizes(const tp_tensor *input, const tp_tensor *weight, const settings *s, int64_t *sizes) {
    sizes[0] = input->sizes[0];
    sizes[1] = s->transposed ? weight->sizes[1] * s->groups : input->sizes[1] ? weight->sizes[0] : 0;
    for (int i = 2; i < input->ndim; i++) {
        if (weight->sizes[i] > INT32_MAX || input->sizes[i] > INT32_MAX)
            return tp_fail(TP_RuntimeError, "convolution: sizes of 2**31 are too large");
        int64_t span = at(s->dilation, i - 2) * (weight->sizes[i] - 1) + 1, pad = 2 * at(s->padding, i - 2),
                stride = at(s->stride, i - 2);
        if (s->transposed) {
            sizes[i] = (input->sizes[i] - 1) * stride - pad + span + at(s->output_padding, i - 2);
        } else {
            int64_t room = input->sizes[i] + pad - span;
            if (room < 0) return fail_room(input, weight, s);
            sizes[i] = room / stride + 1;
        }
        if (sizes[i] < 0 || (sizes[i] == 0 && input->sizes[i] != 0))
            return tp_fail(TP_RuntimeError,
                           "Given input size per channel %lld, the calculated output size %lld is too small",
                           (long long)input->sizes[i], (long long)sizes[i]);
    }
    return 0;
}

static int check_all(const tp_tensor *input, const tp_tensor *weight, const tp_tensor *bias, const settings *s,
                     int64_t *sizes) {
    int64_t n = weight->ndim - 2;
    if (n < 1 || n > 3)
        return tp_fail(TP_RuntimeError, "convolution: weight should have 3 to 5 dimensions, but got %d", weight->ndim);
    if (check_settings(s, n) < 0 || check_operands(input, weight, bias, s) < 0) return -1;
    return output_sizes(input, weight, s, sizes);
}

/* The numbers of the settings, one for each spatial dimension, as the primitives take them. */
typedef struct {
    int64_t stride[3], padding[3], dilation[3], n;
} lists;

static lists lists_of(const settings *s, const tp_tensor *weight) {
    lists l = {.n = weight->ndim - 2};
    for (int64_t i = 0; i < l.n; i++) {
        l.stride[i] = at(s->stride, i);
        l.padding[i] = at(s->padding, i);
        l.dilation[i] = at(s->dilation, i);
    }
    return l;
}
#define PASS_LISTS(l) \
    (tp_ints){(l).stride, (l).n}, (tp_ints){(l).padding, (l).n}, (tp_ints) { (l).dilation, (l).n }

/* The convolution, or where that is asked for, its adjoint; without channels or window the bias, or zeros. */
static int run(bool adjoint, tp_tensor *x, tp_tensor *weight, tp_tensor *bias, const settings *s, tp_tensor *out) {
    if (out->numel == 0) return 0;
    if (x->numel == 0 || weight->numel == 0) {
        if (!bias) return tp_fill_data(out, TP_SCALAR_I(0));
        int64_t strides[5] = {0, bias->strides[0]};
        tp_autoref *spread = tp_new_alias(bias, tp_sizes(out), (tp_ints){strides, out->ndim}, bias->byte_offset);
        return spread ? tp_copy_data(out, spread) : -1;
    }
    lists l = lists_of(s, weight);
    return (adjoint ? tp_prim_convolution_data : tp_prim_convolution_forward)(x, weight, bias, PASS_LISTS(l), s->groups,
                                                                              out);
}

/* ---- the operator ---- */

static tp_dtype compute_dtype(const tp_tensor *t) {
    return tp_is_integral_dtype((tp_dtype)t->dtype) ? TP_INT64 : tp_compute_dtype((tp_dtype)t->dtype);
}

/* Channels come last in the result where they do in the input or the weight. */
static tp_memory_format result_format(const tp_tensor *input, const tp_tensor *weight) {
    tp_memory_format format = tp_suggest_memory_format(input);
    return format == TP_CONTIGUOUS_FORMAT ? tp_suggest_memory_format(weight) : format;
}

static tp_tensor *compute(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, const settings *s, tp_ints sizes) {
    tp_dtype dtype = compute_dtype(input);
    tp_autoref *x = tp_plain(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    tp_autoref *out = tp_new_empty(sizes, dtype, input->device);
    if (!x || !w || !out || (bias && !b)) return NULL;
    if (run(s->transposed, x, w, b, s, out) < 0) return NULL;
    return tp_in_format_steal(tp_narrow_steal(tp_take(out), (tp_dtype)input->dtype), result_format(input, weight));
}

/* convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool
 * transposed, SymInt[] output_padding, SymInt groups) -> Tensor */
tp_tensor *convolution_dense(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding,
                             tp_ints dilation, bool transposed, tp_ints output_padding, int64_t groups) {
    settings s = {stride, padding, dilation, output_padding, transposed, groups};
    int64_t sizes[TP_MAX_DIMS];
    if (check_all(input, weight, bias, &s, sizes) < 0) return NULL;
    return compute(input, weight, bias, &s, (tp_ints){sizes, input->ndim});
}

/* ---- gradients ---- */

static bool wanted(tp_bools mask, int i) { return mask.size > i && mask.data[i]; }

/* The bias's: a sum over all but the channels; zeros where it went into no output. */
static tp_tensor *bias_gradient(tp_tensor *grad, const tp_tensor *weight, const settings *s) {
    const int64_t channels = s->transposed ? weight->sizes[1] * s->groups : weight->sizes[0];
    if (grad->sizes[1] != channels) {
        tp_autoref *none = tp_new_empty(TP_INTS(channels), (tp_dtype)grad->dtype, grad->device);
        return none && tp_fill_data(none, TP_SCALAR_I(0)) == 0 ? tp_take(none) : NULL;
    }
    int64_t dims[TP_MAX_DIMS], n = 0;
    for (int i = 0; i < grad->ndim; i++)
        if (i != 1) dims[n++] = i;
    return tp_sum_dim_IntList(grad, (tp_ints){dims, n}, false, TP_NO_DTYPE);
}

static tp_tensor *zeros_of(tp_tensor *like) {
    tp_autoref *t = tp_new_empty(tp_sizes(like), (tp_dtype)like->dtype, like->device);
    return t && tp_fill_data(t, TP_SCALAR_I(0)) == 0 ? tp_take(t) : NULL;
}

static tp_tensor *input_gradient(tp_tensor *grad, tp_tensor *input, tp_tensor *weight, const settings *s) {
    tp_dtype dtype = compute_dtype(input);
    tp_autoref *w0 = tp_conj_values(weight);
    if (!w0) return NULL;
    if (input->numel == 0 || grad->numel == 0) return zeros_of(input);
    tp_autoref *g = tp_plain(grad, dtype), *w = tp_plain(w0, dtype),
               *out = tp_new_empty(tp_sizes(input), dtype, input->device);
    if (!g || !w || !out) return NULL;
    if (run(!s->transposed, g, w, NULL, s, out) < 0) return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)input->dtype);
}

/* In a transposed convolution the gradient is the large side and the input the small one. The kernel multiplies without
 * conjugates: the input's is taken first, or where that is the small side, the same. */
static tp_tensor *weight_gradient(tp_tensor *grad, tp_tensor *input, tp_tensor *weight, const settings *s) {
    tp_dtype dtype = compute_dtype(input);
    if (input->numel == 0 || grad->numel == 0) return zeros_of(weight);
    tp_autoref *x0 = tp_conj_values(input);
    tp_autoref *g = tp_plain(grad, dtype), *x = x0 ? tp_plain(x0, dtype) : NULL,
               *out = tp_new_empty(tp_sizes(weight), dtype, input->device);
    if (!g || !x || !out) return NULL;
    tp_tensor *large = s->transposed ? g : x, *small = s->transposed ? x : g;
    lists l = lists_of(s, weight);
    if (out->numel && tp_prim_convolution_weight(small, large, PASS_LISTS(l), s->groups, out) < 0) return NULL;
    return tp_narrow_steal(tp_take(out), (tp_dtype)input->dtype);
}

static int check_gradient(const tp_tensor *grad, const tp_tensor *input, const tp_tensor *weight, const settings *s) {
    int64_t sizes[TP_MAX_DIMS];
    if (check_all(input, weight, NULL, s, sizes) < 0) return -1;
    for (int i = 0; i < input->ndim; i++)
        if (grad->ndim != input->ndim || grad->sizes[i] != sizes[i]) {
            tp_autotext a = {0}, b = {0};
            tp_text_ints(&a, (tp_ints){sizes, input->ndim});
            tp_text_ints(&b, tp_sizes(grad));
            return tp_fail(TP_RuntimeError, "convolution_backward: expected grad_output of size %s, but got %s", a.text,
                           b.text);
        }
    return 0;
}

static tp_tensor3 all_or_none(tp_tensor3 r, tp_bools mask) {
    for (int i = 0; i < 3; i++)
        if (wanted(mask, i) && !r.v[i]) {
            for (int k = 0; k < 3; k++) tp_release(r.v[k]);
            return (tp_tensor3){{NULL}};
        }
    return r;
}

/* convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[]
 * padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor,
 * Tensor, Tensor) */
tp_tensor3 convolution_backward_dense(tp_tensor *grad_output, tp_tensor *input, tp_tensor *weight,
                                      tp_ints bias_sizes TP_UNUSED, tp_ints stride, tp_ints padding, tp_ints dilation,
                                      bool transposed, tp_ints output_padding, int64_t groups, tp_bools output_mask) {
    settings s = {stride, padding, dilation, output_padding, transposed, groups};
    tp_tensor3 r = {{NULL}};
    if (check_gradient(grad_output, input, weight, &s) < 0) return r;
    if (wanted(output_mask, 0)) r.v[0] = input_gradient(grad_output, input, weight, &s);
    if (wanted(output_mask, 1)) r.v[1] = weight_gradient(grad_output, input, weight, &s);
    if (wanted(output_mask, 2)) r.v[2] = bias_gradient(grad_output, weight, &s);
    return all_or_none(r, output_mask);
}

/* _convolution_double_backward: the gradients of convolution_backward, which is linear in grad_output and, each output
 * on its own, in weight (ggI's) or input (ggW's). A gradient that nothing flows into stays undefined. */
tp_tensor3 _convolution_double_backward_composite(tp_tensor *ggI, tp_tensor *ggW, tp_tensor *ggb, tp_tensor *gO,
                                                  tp_tensor *weight, tp_tensor *self, tp_ints stride, tp_ints padding,
                                                  tp_ints dilation, bool transposed, tp_ints output_padding,
                                                  int64_t groups, tp_bools output_mask) {
    tp_tensor3 none = {{NULL}};
    tp_autoref *grad = NULL, *to_self = NULL, *to_weight = NULL;
    if (wanted(output_mask, 0)) {
        tp_autoref *a = NULL, *b = NULL, *c = NULL;
        if (ggI &&
            !(a = tp_convolution(ggI, weight, NULL, stride, padding, dilation, transposed, output_padding, groups)))
            return none;
        if (ggW &&
            !(b = tp_convolution(self, ggW, NULL, stride, padding, dilation, transposed, output_padding, groups)))
            return none;
        if (ggb) {
            int64_t sizes[TP_MAX_DIMS];
            for (int i = 0; i < gO->ndim; i++) sizes[i] = i == 1 ? ggb->numel : 1;
            tp_autoref *row = tp_reshape(ggb, (tp_ints){sizes, gO->ndim});
            if (!row || !(c = tp_expand(row, tp_sizes(gO), false))) return none;
        }
        tp_tensor *parts[3] = {a, b, c};
        for (int i = 0; i < 3; i++) {
            if (!parts[i]) continue;
            tp_tensor *sum = grad ? tp_add_Tensor(grad, parts[i], TP_SCALAR_I(1)) : tp_retain(parts[i]);
            if (!sum) return none;
            tp_release(grad);
            grad = sum;
        }
    }
    if (wanted(output_mask, 1) && ggW) {
        tp_tensor3 r =
            tp_convolution_backward(gO, self, ggW, TP_NO_INTS, stride, padding, dilation, transposed, output_padding,
                                    groups, (tp_bools){(const bool[]){true, false, false}, 3});
        if (!(to_self = r.v[0])) return none;
    }
    if (wanted(output_mask, 2) && ggI) {
        tp_tensor3 r =
            tp_convolution_backward(gO, ggI, weight, TP_NO_INTS, stride, padding, dilation, transposed, output_padding,
                                    groups, (tp_bools){(const bool[]){false, true, false}, 3});
        if (!(to_weight = r.v[1])) return none;
    }
    return (tp_tensor3){{tp_take(grad), tp_take(to_self), tp_take(to_weight)}};
}

/* ---- the user's forms ---- */

/* Adds the batch dimension where there is none; new. */
static tp_tensor *batched(const char *name, tp_tensor *input, int n, bool *added) {
    *added = input->ndim == n + 1;
    if (input->ndim == n + 2) return tp_retain(input);
    if (*added) return tp_unsqueeze(input, 0);
    tp_autotext x = {0};
    tp_text_ints(&x, tp_sizes(input));
    return tp_fail_null(TP_RuntimeError,
                        "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s", n + 1,
                        n + 2, name, x.text);
}

static tp_tensor *convolve(const char *name, int n, tp_tensor *input, tp_tensor *weight, tp_tensor *bias,
                           tp_ints stride, tp_ints padding, tp_ints dilation, bool transposed, tp_ints output_padding,
                           int64_t groups) {
    bool added;
    tp_autoref *x = batched(name, input, n, &added);
    if (!x) return NULL;
    if (weight->ndim != n + 2) {
        tp_autotext w = {0};
        tp_text_ints(&w, tp_sizes(weight));
        if (weight->ndim < 3)
            return tp_fail_null(TP_RuntimeError, "%s: weight should have at least three dimensions, but got size %s",
                                name, w.text);
        return tp_fail_null(TP_RuntimeError,
                            "%s: Expected %d-dimensional input for %d-dimensional weight %s, but got %d dimensions",
                            name, weight->ndim, weight->ndim, w.text, n + 2);
    }
    tp_autoref *out = tp_convolution(x, weight, bias, stride, padding, dilation, transposed, output_padding, groups);
    if (!out) return NULL;
    return added ? tp_squeeze_dim(out, 0) : tp_take(out);
}

#define CONV(n, zeros)                                                                                           \
    tp_tensor *conv##n##d_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_ints stride,        \
                                    tp_ints padding, tp_ints dilation, int64_t groups) {                         \
        return convolve("conv" #n "d", n, input, weight, bias, stride, padding, dilation, false, zeros, groups); \
    }
CONV(1, TP_INTS(0))
CONV(2, TP_INTS(0, 0))
CONV(3, TP_INTS(0, 0, 0))

#define CONV_TRANSPOSE(name, n)                                                                                        \
    tp_tensor *name##_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_ints stride, tp_ints padding, \
                                tp_ints output_padding, int64_t groups, tp_ints dilation) {                            \
        return convolve("conv_transpose" #n "d", n, input, weight, bias, stride, padding, dilation, true,              \
                        output_padding, groups);                                                                       \
    }
CONV_TRANSPOSE(conv_transpose1d, 1)
CONV_TRANSPOSE(conv_transpose2d_input, 2)
CONV_TRANSPOSE(conv_transpose3d_input, 3)

/* Zeros after the input along a dimension, for an odd "same" padding. */
static tp_tensor *pad_end(tp_tensor *input, int64_t dim, int64_t n) {
    int64_t sizes[TP_MAX_DIMS];
    memcpy(sizes, input->sizes, input->ndim * sizeof *sizes);
    sizes[dim] = n;
    tp_autoref *border =
        tp_zeros((tp_ints){sizes, input->ndim}, (tp_dtype)input->dtype, TP_NO_LAYOUT, input->device, -1);
    return border ? tp_cat((tp_tensors){(tp_tensor *const[]){input, border}, 2}, dim) : NULL;
}

static tp_tensor *convolve_same(const char *name, int n, tp_tensor *input, tp_tensor *weight, tp_tensor *bias,
                                tp_ints stride, tp_ints dilation, tp_ints zeros, int64_t groups) {
    int64_t padding[3] = {0};
    bool added;
    if (check_list("stride", stride, n, 1, "non-positive stride") < 0 ||
        check_list("dilation", dilation, n, 1, "dilation should be greater than zero; what is less") < 0)
        return NULL;
    tp_autoref *x = batched(name, input, n, &added);
    if (!x) return NULL;
    for (int i = 0; i < n; i++) {
        if (at(stride, i) != 1)
            return tp_fail_null(TP_RuntimeError, "padding='same' is not supported for strided convolutions");
        if (weight->ndim != n + 2) break; /* convolve says so */
        int64_t total = at(dilation, i) * (weight->sizes[i + 2] - 1);
        padding[i] = total / 2;
        if (total % 2 == 0) continue;
        if (tp_warn_once(
                "Using padding='same' with even kernel lengths and odd dilation copies the input, with a border on one "
                "side") < 0)
            return NULL;
        tp_tensor *longer = pad_end(x, i + 2, 1);
        if (!longer) return NULL;
        tp_release(x);
        x = longer;
    }
    tp_autoref *out = convolve(name, n, x, weight, bias, stride, (tp_ints){padding, n}, dilation, false, zeros, groups);
    return out && added ? tp_squeeze_dim(out, 0) : tp_take(out);
}

/* The same with the padding in a word. */
static tp_tensor *convolve_word(const char *name, int n, tp_tensor *input, tp_tensor *weight, tp_tensor *bias,
                                tp_ints stride, const char *padding, tp_ints dilation, int64_t groups) {
    tp_ints zeros = {(const int64_t[]){0, 0, 0}, n};
    if (strcmp(padding, "same") == 0)
        return convolve_same(name, n, input, weight, bias, stride, dilation, zeros, groups);
    if (strcmp(padding, "valid") == 0)
        return convolve(name, n, input, weight, bias, stride, zeros, dilation, false, zeros, groups);
    return tp_fail_null(TP_RuntimeError, "Invalid padding string: '%s'; it is 'same' or 'valid'", padding);
}

#define CONV_PADDING(n)                                                                                           \
    tp_tensor *conv##n##d_padding_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_ints stride, \
                                            const char *padding, tp_ints dilation, int64_t groups) {              \
        return convolve_word("conv" #n "d", n, input, weight, bias, stride, padding, dilation, groups);           \
    }
CONV_PADDING(1)
CONV_PADDING(2)
CONV_PADDING(3)

/* _slow_conv2d_backward.output_mask(Tensor grad_output, Tensor self, Tensor weight, SymInt[2] kernel_size, SymInt[2]
 * stride, SymInt[2] padding, bool[3] output_mask) -> (Tensor grad_input, Tensor grad_weight, Tensor grad_bias) */
tp_tensor3 _slow_conv2d_backward_output_mask_composite(tp_tensor *grad_output, tp_tensor *self, tp_tensor *weight,
                                                       tp_ints kernel_size TP_UNUSED, tp_ints stride, tp_ints padding,
                                                       tp_bools output_mask) {
    tp_ints channels = {&weight->sizes[0], 1};
    return tp_convolution_backward(grad_output, self, weight, channels, stride, padding, TP_INTS(1, 1), false,
                                   TP_INTS(0, 0), 1, output_mask);
}

/* _slow_conv2d_backward.grad_input: all three gradients, into tensors. */
int slow_conv2d_backward_into(tp_tensor *grad_output, tp_tensor *self, tp_tensor *weight, tp_ints kernel_size,
                              tp_ints stride, tp_ints padding, tp_tensor *grad_input, tp_tensor *grad_weight,
                              tp_tensor *grad_bias) {
    static const bool all[] = {true, true, true};
    tp_tensor3 made = tp__slow_conv2d_backward_output_mask(grad_output, self, weight, kernel_size, stride, padding,
                                                           (tp_bools){all, 3});
    tp_tensor *const outs[] = {grad_input, grad_weight, grad_bias};
    return made.v[0] ? tp_copy_into_outs_steal(outs, made.v, 3) : -1;
}
