/* norm_channels.c: normalisations of (N, C, ...) tensors: batch_norm, group_norm and instance_norm.
 *
 * A channel of one image is a run of `rest` neighbours. batch_norm's statistics are those of a channel over all images,
 * group_norm's those of a group of channels of one image, which is one long run. Without further dimensions batch_norm
 * works on the transposed input, so that channels are runs there too. */
#include "NativeFunctions.h"
#include "Primitives.h"
#include "prim/transfer.h"
#include "prim/plain.h"
#include "native/common/checks.h"
#include "native/common/variants.h"
#include "prim/norm.h"
#include "iter/iter.h"

#include <math.h>
#include <string.h>

static void release_all(tp_tensor3 *r) {
    for (int i = 0; i < 3; i++) {
        tp_release(r->v[i]);
        r->v[i] = NULL;
    }
}

static bool all_there(tp_tensor3 *r) {
    if (r->v[0] && r->v[1] && r->v[2]) return true;
    release_all(r);
    return false;
}

static int check_floating(const char *op, const tp_tensor *input) {
    if (tp_is_floating(input)) return 0;
    return tp_fail(TP_NotImplementedError, "\"%s\" not implemented for '%s'", op,
                   tp_scalar_type_name((tp_dtype)input->dtype));
}

static int check_channels(const char *op, const tp_tensor *input, tp_tensor *const *per_channel,
                          const char *const *names, int n) {
    if (input->ndim < 2)
        return tp_fail(TP_RuntimeError, "%s: Expected at least 2 dimensions for input tensor but received %d", op,
                       input->ndim);
    for (int i = 0; i < n; i++)
        if (per_channel[i] && (per_channel[i]->ndim != 1 || per_channel[i]->numel != input->sizes[1]))
            return tp_fail(TP_RuntimeError, "%s: %s should contain %lld elements not %lld", op, names[i],
                           (long long)input->sizes[1], (long long)per_channel[i]->numel);
    return 0;
}

/* ---- batch_norm ---- */

static const char *const batch_names[] = {"weight", "bias", "running_mean", "running_var"};

/* Channels as runs: t itself, contiguous and in the dtype, or transposed where it has two dimensions; new. */
static tp_tensor *channel_runs(tp_tensor *t, tp_dtype dtype) {
    if (t->ndim > 2) return tp_plain(t, dtype);
    tp_autoref *turned =
        tp_new_alias(t, TP_INTS(t->sizes[1], t->sizes[0]), TP_INTS(t->strides[1], t->strides[0]), t->byte_offset);
    return turned ? tp_plain(turned, dtype) : NULL;
}

/* What was computed as channel_runs, in the dtype and as it was; takes it over. */
static tp_tensor *from_channel_runs_steal(tp_tensor *made, const tp_tensor *like) {
    tp_autoref *t = made;
    if (!t || like->ndim > 2) return tp_narrow_steal(tp_take(t), (tp_dtype)like->dtype);
    tp_autoref *turned = tp_new_alias(t, tp_sizes(like), TP_INTS(1, like->sizes[0]), 0);
    tp_autoref *out = turned ? tp_new_empty(tp_sizes(like), (tp_dtype)like->dtype, like->device) : NULL;
    return out && tp_copy_data(out, turned) == 0 ? tp_take(out) : NULL;
}

/* Rows are channels: a run of each image. */
static tp_norm_rows batch_rows(const tp_tensor *input) {
    int64_t n = input->sizes[0], c = input->sizes[1], rest = n && c ? input->numel / (n * c) : 0;
    bool turned = input->ndim == 2;
    tp_norm_rows r = {.rows = c, .groups = c, .per_row = 1, .runs = turned ? 1 : n, .length = turned ? n : rest};
    r.first = r.length;
    r.next = c * r.length;
    return r;
}

static int check_batch(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *mean, tp_tensor *var,
                       bool training) {
    tp_tensor *all[] = {weight, bias, mean, var};
    if (!training && (!mean || !var))
        return tp_fail(TP_RuntimeError, "batch_norm: running_mean and running_var must be defined in evaluation mode");
    if (check_channels("batch_norm", input, all, batch_names, 4) < 0) return -1;
    if (check_floating("batch_norm", input) < 0) return -1;
    return tp_check_norm_dtypes("batch_norm", input, all, batch_names, 4);
}

static tp_tensor *per_channel(tp_tensor *like, int64_t n, tp_dtype dtype) {
    return tp_new_empty(TP_INTS(n), dtype, like->device);
}

/* The running statistics of a training step: copies, which take the place of what is there when all else is done, so
 * that a call that fails or is interrupted has moved nothing. NULL where there is nothing to move. */
typedef struct {
    tp_tensor *made[2];
} moving;
static void free_moving(moving *m) {
    tp_release(m->made[0]);
    tp_release(m->made[1]);
}
static int start_moving(moving *m, tp_tensor *const running[2], double momentum, tp_dtype dtype) {
    for (int i = 0; i < 2 && momentum != 0; i++) {
        if (!running[i]) continue;
        if (tp_check_writable(running[i], "batch_norm") < 0) return -1;
        m->made[i] = tp_new_empty(tp_sizes(running[i]), dtype, running[i]->device);
        if (!m->made[i] || tp_copy_data(m->made[i], running[i]) < 0) return -1;
    }
    return 0;
}
static int finish_moving(const moving *m, tp_tensor *const running[2]) {
    for (int i = 0; i < 2; i++)
        if (m->made[i] && tp_copy_data(running[i], m->made[i]) < 0) return -1;
    return 0;
}

/* With an eps of 0, a channel of one value has 0 for the reciprocal of its deviation, as in PyTorch: its elements are 0
 * then, and not NaN. The kernel gets the least eps whose reciprocal there is, and what came of that alone is cleared.
 */
static double positive_eps(double eps, tp_dtype dtype) {
    return eps != 0 ? eps : dtype == TP_FLOAT64 ? 0x1p-1022 : 0x1p-126;
}
static int clear_infinite(tp_tensor *rstd, double eps) {
    if (eps != 0) return 0;
    tp_autoref *of_nothing = tp_ge_Scalar(rstd, TP_SCALAR_F(rstd->dtype == TP_FLOAT64 ? 0x1p510 : 0x1p62));
    return of_nothing ? tp_masked_fill__Scalar(rstd, of_nothing, TP_SCALAR_I(0)) : -1;
}

static tp_dtype statistics_dtype(tp_tensor *input, tp_tensor *weight) {
    return (tp_dtype)(weight ? weight->dtype : input->dtype);
}

/* native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * training, float momentum, float eps) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_batch_norm_dense(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                   tp_tensor *running_var, bool training, double momentum, double eps) {
    tp_tensor3 r = {{NULL}};
    if (check_batch(input, weight, bias, running_mean, running_var, training) < 0) return r;
    if (training && !input->numel) {
        tp_autotext sizes = {0};
        tp_text_ints(&sizes, tp_sizes(input));
        return tp_fail(TP_RuntimeError, "input tensor must have at least one element, but got input_sizes = %s",
                       sizes.text),
               r;
    }
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t channels = input->sizes[1];
    tp_autoref *x = channel_runs(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    tp_autoref *out = x ? tp_new_empty(tp_sizes(x), dtype, input->device) : NULL;
    tp_autoref *mean = training ? per_channel(input, channels, dtype) : tp_plain(running_mean, dtype),
               *spread = training ? per_channel(input, channels, dtype) : tp_plain(running_var, dtype);
    if (!out || !mean || !spread || (weight && !w) || (bias && !b)) return r;
    tp_tensor *const running[] = {running_mean, running_var};
    TP_CLEANUP(free_moving) moving next = {{NULL}};
    bool moves = training && input->numel;
    if (moves && start_moving(&next, running, momentum, dtype) < 0) return r;
    tp_norm_rows rows = batch_rows(input);
    int status = 0;
    if (moves)
        status = tp_prim_norm_forward(x, w, b, tp_norm_words(&rows), positive_eps(eps, dtype), momentum, out, mean,
                                      spread, next.made[0], next.made[1]);
    else if (input->numel) status = tp_prim_norm_frozen(x, w, b, mean, spread, tp_norm_words(&rows), eps, out);
    if (status < 0 || (moves && clear_infinite(spread, eps) < 0)) return r;
    tp_dtype kept = statistics_dtype(input, weight);
    r.v[0] = tp_in_format_steal(from_channel_runs_steal(tp_take(out), input), tp_suggest_memory_format(input));
    r.v[1] = training ? tp_narrow_steal(tp_take(mean), kept) : per_channel(input, 0, kept);
    r.v[2] = training ? tp_narrow_steal(tp_take(spread), kept) : per_channel(input, 0, kept);
    if (all_there(&r) && finish_moving(&next, running) < 0) release_all(&r);
    return r;
}

int native_batch_norm_out_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                    tp_tensor *running_var, bool training, double momentum, double eps, tp_tensor *out,
                                    tp_tensor *save_mean, tp_tensor *save_invstd) {
    tp_tensor3 made = tp_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    return made.v[0] ? tp_copy_into_outs_steal((tp_tensor *const[]){out, save_mean, save_invstd}, made.v, 3) : -1;
}

/* _batch_norm_with_update.out: nothing is kept in reserve. */
int batch_norm_with_update_into(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                tp_tensor *running_var, double momentum, double eps, tp_tensor *out,
                                tp_tensor *save_mean, tp_tensor *save_invstd, tp_tensor *reserve) {
    tp_tensor4 made = tp__batch_norm_with_update(input, weight, bias, running_mean, running_var, momentum, eps);
    tp_tensor *const outs[] = {out, save_mean, save_invstd, reserve};
    return made.v[0] ? tp_copy_into_outs_steal(outs, made.v, 4) : -1;
}

/* native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var,
 * Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_batch_norm_backward_dense(tp_tensor *grad_out, tp_tensor *input, tp_tensor *weight,
                                            tp_tensor *running_mean, tp_tensor *running_var, tp_tensor *save_mean,
                                            tp_tensor *save_invstd, bool train, double eps, tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    if (check_batch(input, weight, NULL, running_mean, running_var, train) < 0) return r;
    bool saved =
        save_mean && save_invstd && save_mean->numel == input->sizes[1] && save_invstd->numel == input->sizes[1];
    if (!tp_same_sizes(grad_out, input) || (train && !saved))
        return tp_fail(TP_RuntimeError, "native_batch_norm_backward: grad_out or the saved statistics do not fit"), r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype);
    int64_t channels = input->sizes[1];
    tp_autoref *x = channel_runs(input, dtype), *g = channel_runs(grad_out, dtype), *w = tp_plain(weight, dtype);
    tp_autoref *mean = tp_plain(train ? save_mean : running_mean, dtype),
               *spread = tp_plain(train ? save_invstd : running_var, dtype);
    if (!x || !g || !mean || !spread || (weight && !w)) return r;
    tp_tensor *made[3] = {NULL};
    for (int i = 0; i < 3; i++)
        if (output_mask.data[i]) {
            made[i] = i ? per_channel(input, channels, dtype) : tp_new_empty(tp_sizes(x), dtype, input->device);
            if (!made[i] || (i && !input->numel && tp_fill_data(made[i], TP_SCALAR_I(0)) < 0)) goto done;
        }
    tp_norm_rows rows = batch_rows(input);
    if (input->numel) {
        int status = train
                         ? tp_prim_norm_backward(g, x, w, mean, spread, tp_norm_words(&rows), made[0], made[1], made[2])
                         : tp_prim_norm_frozen_backward(g, x, w, mean, spread, tp_norm_words(&rows), eps, made[0],
                                                        made[1], made[2]);
        if (status < 0) goto done;
    }
    for (int i = 0; i < 3; i++) {
        if (!made[i]) continue;
        r.v[i] = i ? tp_narrow_steal(made[i], statistics_dtype(input, weight))
                   : tp_in_format_steal(from_channel_runs_steal(made[0], input), tp_suggest_memory_format(input));
        made[i] = NULL;
        if (!r.v[i]) {
            release_all(&r);
            goto done;
        }
    }
done:
    for (int i = 0; i < 3; i++) tp_release(made[i]);
    return r;
}

/* batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training,
 * float momentum, float eps, bool cudnn_enabled) -> Tensor */
/* An empty batch: its result depends on weight and bias, whose gradients are zeros. */
static tp_tensor *of_nothing(tp_tensor *input, tp_tensor *weight, tp_tensor *bias) {
    tp_autoref *out = tp_clone(input, TP_NO_FORMAT), *factor = out && weight ? tp_select_int(weight, 0, 0) : NULL;
    if (!out || (weight && !factor)) return NULL;
    tp_autoref *scaled = factor ? tp_mul_Tensor(out, factor) : tp_retain(out),
               *term = scaled && bias ? tp_select_int(bias, 0, 0) : NULL;
    if (!scaled || (bias && !term)) return NULL;
    return term ? tp_add_Tensor(scaled, term, TP_SCALAR_I(1)) : tp_take(scaled);
}
tp_tensor *batch_norm_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                tp_tensor *running_var, bool training, double momentum, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    if (input->numel == 0) return of_nothing(input, weight, bias);
    tp_tensor3 r = tp_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* ---- group_norm ---- */

static int check_group(const tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t n, int64_t channels,
                       int64_t rest, int64_t group) {
    tp_tensor *both[] = {weight, bias};
    tp_autotext shape = {0};
    if (group < 1 || channels % group) tp_text_ints(&shape, tp_sizes(input));
    if (group < 1 || channels % group)
        return tp_fail(TP_RuntimeError,
                       "Expected number of channels in input to be divisible by num_groups, but got input of "
                       "shape %s, %lld channels and num_groups=%lld",
                       shape.text, (long long)channels, (long long)group);
    int64_t plane, numel;
    if (__builtin_mul_overflow(channels, rest, &plane) || __builtin_mul_overflow(n, plane, &numel) ||
        input->numel != numel)
        return tp_fail(TP_RuntimeError, "native_group_norm: an input of %lld elements is not %lld x %lld x %lld",
                       (long long)input->numel, (long long)n, (long long)channels, (long long)rest);
    for (int i = 0; i < 2; i++)
        if (both[i] && (both[i]->ndim != 1 || both[i]->numel != channels))
            return tp_fail(TP_RuntimeError,
                           "Expected %s to be a vector of size equal to the number of channels in input, but got %lld "
                           "elements for %lld channels",
                           i ? "bias" : "weight", (long long)both[i]->numel, (long long)channels);
    if (check_floating("GroupNormKernelImpl", input) < 0) return -1;
    return tp_check_norm_dtypes("group_norm", input, both, batch_names, 2);
}

/* Rows are the groups of an image: a run of each channel. */
static tp_norm_rows group_rows(int64_t n, int64_t channels, int64_t rest, int64_t groups) {
    int64_t depth = channels / groups;
    return (tp_norm_rows){.rows = n * groups,
                          .runs = depth,
                          .length = rest,
                          .first = depth * rest,
                          .next = rest,
                          .groups = groups,
                          .per_row = depth,
                          .per_run = 1};
}

/* Rows are channels in all images. */
static tp_norm_rows channel_rows(int64_t n, int64_t channels, int64_t rest, int64_t groups) {
    tp_norm_rows r = group_rows(n, channels, rest, groups);
    r.rows = channels, r.runs = n, r.first = rest, r.next = channels * rest;
    return r;
}

/* native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps)
 * -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_group_norm_dense(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, int64_t N, int64_t C,
                                   int64_t HxW, int64_t group, double eps) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, bias, N, C, HxW, group) < 0) return r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype), kept = statistics_dtype(input, weight);
    tp_autoref *x = tp_plain(input, dtype), *w = tp_plain(weight, dtype), *b = tp_plain(bias, dtype);
    if (!x || (weight && !w) || (bias && !b)) return r;
    r.v[0] = tp_new_empty(tp_sizes(input), dtype, input->device);
    r.v[1] = tp_new_empty(TP_INTS(N, group), dtype, input->device);
    r.v[2] = tp_new_empty(TP_INTS(N, group), dtype, input->device);
    if (!all_there(&r)) return r;
    tp_norm_rows rows = group_rows(N, C, HxW, group);
    int status = input->numel
                     ? tp_prim_norm_forward(x, w, b, tp_norm_words(&rows), eps, 0, r.v[0], r.v[1], r.v[2], NULL, NULL)
                 : tp_fill_data(r.v[1], TP_SCALAR_I(0)) < 0 ? -1
                                                            : tp_fill_data(r.v[2], TP_SCALAR_F(NAN));
    if (status < 0) return release_all(&r), r;
    r.v[0] = tp_in_format_steal(tp_narrow_steal(r.v[0], (tp_dtype)input->dtype), tp_suggest_memory_format(input));
    r.v[1] = tp_narrow_steal(r.v[1], kept);
    r.v[2] = tp_narrow_steal(r.v[2], kept);
    all_there(&r);
    return r;
}

/* native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, SymInt N, SymInt
 * C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 native_group_norm_backward_dense(tp_tensor *grad_out, tp_tensor *input, tp_tensor *mean, tp_tensor *rstd,
                                            tp_tensor *weight, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                            tp_bools output_mask) {
    tp_tensor3 r = {{NULL}};
    if (check_group(input, weight, NULL, N, C, HxW, group) < 0) return r;
    if (grad_out->numel != input->numel || mean->numel != N * group || rstd->numel != N * group)
        return tp_fail(TP_RuntimeError, "native_group_norm_backward: grad_out, mean or rstd does not fit the input"), r;
    tp_dtype dtype = tp_compute_dtype((tp_dtype)input->dtype), kept = statistics_dtype(input, weight);
    tp_autoref *x = tp_plain(input, dtype), *g = tp_plain(grad_out, dtype), *w = tp_plain(weight, dtype),
               *m = tp_plain(mean, dtype), *s = tp_plain(rstd, dtype);
    if (!x || !g || !m || !s || (weight && !w)) return r;
    for (int i = 0; i < 3; i++) {
        if (!output_mask.data[i]) continue;
        r.v[i] = i ? per_channel(input, C, dtype) : tp_new_empty(tp_sizes(input), dtype, input->device);
        if (!r.v[i] || (i && tp_fill_data(r.v[i], TP_SCALAR_I(0)) < 0)) return release_all(&r), r;
    }
    tp_norm_rows rows = group_rows(N, C, HxW, group), channels = channel_rows(N, C, HxW, group);
    if (input->numel && r.v[0] && tp_prim_norm_backward(g, x, w, m, s, tp_norm_words(&rows), r.v[0], NULL, NULL) < 0)
        return release_all(&r), r;
    if (input->numel && (r.v[1] || r.v[2]) &&
        tp_prim_norm_channels(g, x, m, s, tp_norm_words(&channels), r.v[1], r.v[2]) < 0)
        return release_all(&r), r;
    for (int i = 0; i < 3; i++)
        if (r.v[i] && !(r.v[i] = tp_narrow_steal(r.v[i], i ? kept : (tp_dtype)input->dtype))) return release_all(&r), r;
    return r;
}

/* What the input gets from the gradients of the mean and the reciprocal deviation of its groups: (N, group, length). */
static tp_tensor *through_statistics(tp_tensor *grad_mean, tp_tensor *grad_rstd, tp_tensor *input, tp_tensor *mean,
                                     tp_tensor *rstd) {
    tp_autoref *rows = tp_reshape(input, TP_INTS(mean->sizes[0], mean->sizes[1], -1)),
               *middle = rows ? tp_unsqueeze(mean, -1) : NULL,
               *x = middle ? tp_sub_Tensor(rows, middle, TP_SCALAR_I(1)) : NULL;
    tp_autoref *slope = x ? tp_zeros_like(x, TP_NO_DTYPE, TP_NO_LAYOUT, TP_NO_DEVICE, -1, TP_NO_FORMAT) : NULL;
    if (slope && grad_mean) {
        tp_autoref *wide = tp_unsqueeze(grad_mean, -1), *before = slope;
        slope = wide ? tp_add_Tensor(before, wide, TP_SCALAR_I(1)) : NULL;
    }
    if (slope && grad_rstd) {
        tp_autoref *cube = tp_pow_Tensor_Scalar(rstd, TP_SCALAR_I(3)),
                   *scale = cube ? tp_mul_Tensor(grad_rstd, cube) : NULL,
                   *wide = scale ? tp_unsqueeze(scale, -1) : NULL, *before = slope;
        slope = wide ? tp_addcmul(before, wide, x, TP_SCALAR_I(-1)) : NULL;
    }
    tp_autoref *each = slope ? tp_div_Scalar(slope, TP_SCALAR_I(slope->sizes[2])) : NULL;
    return each ? tp_reshape(each, tp_sizes(input)) : NULL;
}
/* _group_norm_backward(Tensor? grad, Tensor? grad_mean, Tensor? grad_rstd, Tensor input, Tensor mean, Tensor rstd,
 * Tensor? weight, SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor) */
tp_tensor3 _group_norm_backward_composite(tp_tensor *grad, tp_tensor *grad_mean, tp_tensor *grad_rstd, tp_tensor *input,
                                          tp_tensor *mean, tp_tensor *rstd, tp_tensor *weight, int64_t N, int64_t C,
                                          int64_t HxW, int64_t group, tp_bools output_mask) {
    const tp_tensor3 failed = {{NULL, NULL, NULL}};
    tp_tensor3 r = failed;
    if (grad) {
        r = tp_native_group_norm_backward(grad, input, mean, rstd, weight, N, C, HxW, group, output_mask);
        if (tp_error_pending()) return failed;
    }
    bool further = (grad_mean || grad_rstd) && output_mask.data[0] && input->numel;
    if (!further) return r;
    tp_autoref *straight = r.v[0], *to_weight = r.v[1], *to_bias = r.v[2];
    tp_autoref *more = through_statistics(grad_mean, grad_rstd, input, mean, rstd),
               *sum = !more      ? NULL
                      : straight ? tp_add_Tensor(straight, more, TP_SCALAR_I(1))
                                 : tp_retain(more);
    return sum ? (tp_tensor3){{tp_take(sum), tp_take(to_weight), tp_take(to_bias)}} : failed;
}

/* group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, bool
 * cudnn_enabled=True) -> Tensor */
tp_tensor *group_norm_composite(tp_tensor *input, int64_t num_groups, tp_tensor *weight, tp_tensor *bias, double eps,
                                bool cudnn_enabled TP_UNUSED) {
    static const char *const names[] = {"weight", "bias"};
    tp_tensor *both[] = {weight, bias};
    if (check_channels("group_norm", input, both, names, 2) < 0) return NULL;
    int64_t n = input->sizes[0], channels = input->sizes[1], rest = 1;
    for (int i = 2; i < input->ndim; i++) rest *= input->sizes[i];
    tp_tensor3 r = tp_native_group_norm(input, weight, bias, n, channels, rest, num_groups, eps);
    tp_release(r.v[1]);
    tp_release(r.v[2]);
    return r.v[0];
}

/* ---- instance_norm: batch_norm with every image's channels as channels of one ---- */

static tp_tensor *for_each_image(tp_tensor *per_channel, int64_t images) {
    return per_channel ? tp_repeat(per_channel, TP_INTS(images)) : NULL;
}

/* The statistic of all images' channels, averaged over the images; new, NULL where there is none to move. */
static tp_tensor *average(tp_tensor *repeated, int64_t images, int64_t channels) {
    tp_autoref *rows = repeated ? tp_view(repeated, TP_INTS(images, channels)) : NULL;
    return rows ? tp_mean_dim(rows, TP_INTS(0), false, TP_NO_DTYPE) : NULL;
}
/* Both running statistics, or none: all that can fail comes before the first is written. */
static int move_averages(tp_tensor *const running[2], tp_tensor *const repeated[2], int64_t images, int64_t channels) {
    tp_autoref *mean = average(repeated[0], images, channels), *var = average(repeated[1], images, channels);
    tp_autoref *to_mean = mean ? tp_detach(running[0]) : NULL, *to_var = var ? tp_detach(running[1]) : NULL;
    if ((running[0] && !to_mean) || (running[1] && !to_var)) return -1;
    if (to_mean && tp_copy_(to_mean, mean, false) < 0) return -1;
    return to_var ? tp_copy_(to_var, var, false) : 0;
}

/* instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor */
tp_tensor *instance_norm_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                   tp_tensor *running_var, bool use_input_stats, double momentum, double eps,
                                   bool cudnn_enabled) {
    tp_tensor *all[] = {weight, bias, running_mean, running_var};
    int64_t sizes[TP_MAX_DIMS];
    if (!use_input_stats && (!running_mean || !running_var))
        return tp_fail_null(TP_RuntimeError,
                            "Expected running_mean and running_var to be defined when use_input_stats is false");
    if (check_channels("instance_norm", input, all, batch_names, 4) < 0) return NULL;
    for (int i = 2; i < 4; i++)
        if (use_input_stats && all[i] && tp_check_writable(all[i], "instance_norm") < 0) return NULL;
    int64_t images = input->sizes[0], channels = input->sizes[1];
    memcpy(sizes, input->sizes, (size_t)input->ndim * sizeof *sizes);
    sizes[0] = 1, sizes[1] = images * channels;
    tp_autoref *w = for_each_image(weight, images), *b = for_each_image(bias, images),
               *mean = for_each_image(running_mean, images), *var = for_each_image(running_var, images);
    if ((weight && !w) || (bias && !b) || (running_mean && !mean) || (running_var && !var)) return NULL;
    tp_autoref *flat = tp_contiguous(input, TP_CONTIGUOUS_FORMAT);
    tp_autoref *x = flat ? tp_view(flat, (tp_ints){sizes, input->ndim}) : NULL;
    tp_autoref *out = x ? tp_batch_norm(x, w, b, mean, var, use_input_stats, momentum, eps, cudnn_enabled) : NULL;
    tp_tensor *const running[] = {running_mean, running_var}, *const repeated[] = {mean, var};
    tp_autoref *shaped = out ? tp_view(out, tp_sizes(input)) : NULL;
    if (!shaped || (use_input_stats && move_averages(running, repeated, images, channels) < 0)) return NULL;
    return tp_take(shaped);
}

/* _batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool
 * training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int): of another
 * library's implementations, which the number tells apart, there is none */
int _batch_norm_impl_index_composite(tp_tensor *input, tp_tensor *weight, tp_tensor *bias, tp_tensor *running_mean,
                                     tp_tensor *running_var, bool training, double momentum, double eps,
                                     bool cudnn_enabled TP_UNUSED, tp_value *results) {
    tp_tensor3 made = tp_native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
    tp_tensor *reserve = made.v[0] ? tp_new_empty(TP_INTS(0), TP_UINT8, input->device) : NULL;
    for (int i = 0; i < 3; i++) {
        if (reserve) results[i] = (tp_value){.tag = TP_TENSOR, .tensor = made.v[i]};
        else tp_release(made.v[i]);
    }
    if (!reserve) return -1;
    results[3] = (tp_value){.tag = TP_TENSOR, .tensor = reserve};
    results[4] = (tp_value){.tag = TP_INT, .i = 0};
    return 0;
}
